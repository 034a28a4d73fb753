package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
)

// F-LIVE-04: the fleet as it was at a time that Firestore still knows.
func TestAPI_ShowsThePast(t *testing.T) {
	s := serve(t)
	s.fleet()
	if err := s.store.RecordCycle(t.Context(), domain.Cycle{ID: "C1", DepotID: "DEPOT-1", StartedAt: time.Now(), Outcome: domain.CyclePublished}); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if err := s.store.CancelOrder(firestoretx.By(t.Context(), "ann"), "O2", "not needed"); err != nil {
		t.Fatal(err)
	}
	has := func(at time.Time) map[string]string {
		var past struct {
			ReadTime time.Time
			Entities []struct {
				Kind, ID string
				Entity   struct {
					Status  string
					Applied int
					Refused map[string]int
				}
			}
		}
		s.get("/api/v1/snapshot?at="+url.QueryEscape(at.Format(time.RFC3339Nano)), http.StatusOK, &past)
		if !past.ReadTime.Equal(at.Truncate(time.Microsecond)) {
			t.Errorf("read at %s, want %s", past.ReadTime, at)
		}
		found := map[string]string{}
		for _, e := range past.Entities {
			found[e.Kind+"/"+e.ID] = e.Entity.Status
			if e.Kind == "cycle" {
				found["cycle/"+e.ID] = fmt.Sprintf("%d applied, %v refused", e.Entity.Applied, e.Entity.Refused)
			}
		}
		return found
	}
	then, now := has(before), has(time.Now())
	if got := then["cycle/C1"]; got != "1 applied, map[DRONE_NOT_IDLE:1] refused" {
		t.Errorf("a cycle of the past: %q", got)
	}
	for key, status := range map[string]string{"order/O2": "PENDING", "order/O1": "ASSIGNED", "drone/D1": "MOVING", "mission/M-DEC-1": "ACTIVE", "depot/DEPOT-1": "", "warehouse/W1": ""} {
		if got, is := then[key]; !is || got != status {
			t.Errorf("%s was %q, %t, want %q", key, got, is, status)
		}
	}
	if _, is := now["order/O2"]; is {
		t.Error("an order that is over is shown")
	}
	for at, refusal := range map[string]struct {
		status int
		part   string
	}{
		"": {400, "at is missing"}, "?at=noon": {400, `at is "noon"`}, "?at=0001-01-01T00:00:00Z": {400, "before 1970"}, "?at=2020-01-01T00:00:00Z": {410, "Firestore keeps an hour"}, "?at=2120-01-01T00:00:00Z": {410, "in the future"},
	} {
		s.refused(http.MethodGet, "/api/v1/snapshot"+at, refusal.status, refusal.part)
	}
}
