package domain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// F-AUD-12: an order's state has its deadline as text and as a timestamp; readers take either.
func TestOrderState_HasTheDeadlineInBothForms(t *testing.T) {
	due := time.Date(2026, 11, 24, 14, 5, 0, 123_456_789, time.FixedZone("", 3600))
	state := domain.OrderState(domain.Order{Deadline: due})
	at, _ := state["deadlineAt"].(time.Time)
	if text := "2026-11-24T13:05:00.123456Z"; state["deadline"] != text || !at.Equal(due.Truncate(time.Microsecond)) {
		t.Errorf("state %v, want %s in both forms", state, text)
	}
	if _, has := domain.OrderState(domain.Order{})["deadlineAt"]; has {
		t.Error("an order without a deadline has one")
	}
	later := domain.WithDeadline(map[string]any{"deadlineAt": at})
	if later["deadline"] != state["deadline"] || later["deadlineAt"] != at {
		t.Errorf("the state of a later version reads %v", later)
	}
	earlier := map[string]any{"deadline": "2026-11-24T13:05:00Z"}
	if got := domain.WithDeadline(earlier); got["deadline"] != earlier["deadline"] || len(got) != 1 {
		t.Errorf("the state of an earlier version reads %v", got)
	}
}

// F-AUD-06: a note says what was refused, in at most 2 KiB.
func TestRefusedState_SaysWhatWasRefused(t *testing.T) {
	due := time.Date(2026, 11, 24, 14, 5, 0, 0, time.UTC)
	r := domain.OrderRequest{ID: "O1", Deadline: due, OrderContent: domain.OrderContent{
		Priority: domain.PriorityHigh, ProductType: "BLOOD", Pickup: &domain.Position{Lat: 48.8, Lon: 2.3}, Delivery: domain.Position{Lat: 48.9, Lon: 2.4},
		WeightKg: 1.5, ColdChain: true, RequesterID: "ward 4",
	}}
	state := domain.RefusedState(r)
	for field, want := range map[string]any{
		"refusedContentHash": r.Hash(), "refusedPriority": "HIGH", "refusedProductType": "BLOOD", "refusedPickup": "48.8,2.3", "refusedDelivery": "48.9,2.4",
		"refusedWeightKg": 1.5, "refusedColdChain": true, "refusedRequesterId": "ward 4", "refusedDeadlineAt": due,
	} {
		if state[field] != want {
			t.Errorf("%s is %v, want %v", field, state[field], want)
		}
	}
	if c := domain.RefusedState(domain.OrderRequest{ID: "O1", Cancel: true, OrderContent: domain.OrderContent{RequesterID: "ward 4"}}); c["refusedCancel"] != true || c["refusedRequesterId"] != "ward 4" {
		t.Errorf("a refused cancellation is %v", c)
	}
	r.ProductType, r.RequesterID = strings.Repeat("é", 10_000), strings.Repeat("x", 10_000)
	size := 0
	for name, value := range domain.RefusedState(r) {
		size += len(name) + 1 + 8
		if text, is := value.(string); is {
			size += len(text)
			if !strings.HasSuffix(strings.ToValidUTF8(text, "?"), text) {
				t.Errorf("%s is not valid UTF-8", name)
			}
		}
	}
	if size > 2<<10 {
		t.Errorf("a state of some %d bytes, want at most 2 KiB", size)
	}
}
