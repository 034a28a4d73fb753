package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// F-INT-04: a PENDING order goes elsewhere and is planned by the depot there, a later one does not.
// The hash of its content stays, so that its first request, redelivered, changes nothing.
func TestOrderPolicy_ChangesTheAddressWhilePending(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	p := DefaultOrderPolicy()
	p.Depots = []domain.Depot{{ID: "NORTH", Position: domain.Position{Lat: 49}}, {ID: "SOUTH", Position: domain.Position{Lat: 48}}}
	req := domain.OrderRequest{ID: "O1", OrderContent: domain.OrderContent{Priority: domain.PriorityHigh, Delivery: domain.Position{Lat: 49}, RequesterID: "H1"}}
	made, err := p.IngestOrder(nil, nil, req, now, now)
	if err != nil {
		t.Fatal(err)
	}
	order := made.Orders[0]
	south := domain.Position{Lat: 48.01}
	change, err := p.ChangeOrder(&order, "O1", domain.OrderChange{Delivery: &south}, "theatre moved", now.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	o := change.Orders[0]
	if o.Delivery != south || o.PlanningDepotID != "SOUTH" || !o.PendingSince.Equal(now.Add(time.Minute)) || o.ContentHash != order.ContentHash || o.Deadline != order.Deadline {
		t.Errorf("order %+v", o)
	}
	if e := change.Events[0]; len(change.Events) != 1 || e.Cause != domain.CauseOperator || !strings.Contains(e.Reason, "theatre moved; delivery at 48.010000,0.000000 instead of 49.000000,0.000000") {
		t.Errorf("events %+v", change.Events)
	}
	if change, err := p.IngestOrder(&o, nil, req, now.Add(time.Hour), now.Add(time.Hour)); !change.Empty() {
		t.Errorf("the first request again: %+v, %v", change, err)
	}
	_, err = p.ChangeOrder(&o, "O1", domain.OrderChange{Delivery: &south}, "again", now)
	if reason, _ := ReasonOf(err); reason != ReasonUnchanged {
		t.Errorf("again: %v", err)
	}
	for _, status := range []domain.OrderStatus{domain.OrderAssigned, domain.OrderInDelivery} {
		o.Status = status
		_, err := p.ChangeOrder(&o, "O1", domain.OrderChange{Delivery: &order.Delivery}, "back", now)
		if reason, _ := ReasonOf(err); reason != ReasonNotPending {
			t.Errorf("%s: %v", status, err)
		}
	}
	_, err = p.ChangeOrder(nil, "O1", domain.OrderChange{Delivery: &south}, "none", now)
	if reason, _ := ReasonOf(err); reason != ReasonNotFound {
		t.Errorf("no order: %v", err)
	}
}
