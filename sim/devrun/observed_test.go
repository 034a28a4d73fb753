package devrun

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// F-FLOW-01: a long run does not fill memory with observations, and still sees
// every step back (I4).
func TestObserved_KeepsWhatTheCheckerNeeds(t *testing.T) {
	began := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	var o observed
	see := func(second int) {
		for _, id := range []string{"D1", "D2"} {
			at := began.Add(time.Duration(second) * time.Second)
			if id == "D2" {
				at = began // never changes
			}
			o.add(invariant.Observation{DroneID: domain.DroneID(id), LastUpdate: at})
		}
	}
	for second := range 10_000 {
		see(second)
	}
	if len(o.list) != 2 {
		t.Errorf("%d observations of two drones are kept", len(o.list))
	}
	check := func() int { return len(invariant.Check(invariant.History{Observations: o.list}).Violations) }
	if n := check(); n != 0 {
		t.Errorf("%d violations", n)
	}
	see(5)
	see(6)
	see(4)
	if n := check(); n != 2 {
		t.Errorf("%d violations, want one of each step back: %+v", n, o.list)
	}
}
