package main

import (
	"os"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/internal/connect"
)

// The replay without servers tells of the real system: the same orders, about
// as many delivered and flown for. The real one may lag where the machine is
// busy, so the bounds are wide, and time runs slower where it lags by much; whole
// hours agree within a few percent.
func TestOfflineAgreesWithTheRealSystem(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the real system for half a minute")
	}
	if os.Getenv(connect.FirestoreHost) != "" || os.Getenv(connect.PubSubHost) != "" {
		t.Skip("the run starts the embedded servers by design; there is nothing to compare on others")
	}
	c := command{Simulated: 15 * time.Minute, Speed: 30, Drones: 40, OrdersPerMinute: 4, Iterations: 100, Place: "paris"}
	var system outcome
	for ; ; c.Speed /= 2 {
		var err error
		if system, err = c.real(t.Context(), planners[0], 1); err != nil {
			t.Fatal(err)
		}
		if system.Violations > 0 {
			t.Errorf("%d invariants broke", system.Violations)
		}
		if !system.Behind || c.Speed < 8 {
			break
		}
		t.Logf("the machine does not keep up with time x%g", c.Speed)
	}
	offline, err := c.offline(t.Context(), planners[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	created := func(o outcome) (n int) {
		for _, p := range o.Priorities {
			n += p.Created
		}
		return n
	}
	if a, b := created(system), created(offline); a < b-3 || a > b+3 {
		t.Errorf("%d orders came in the real system, %d without", a, b)
	}
	if ratio := float64(system.Delivered) / float64(offline.Delivered); ratio < 0.5 || ratio > 1.3 {
		t.Errorf("the real system delivered %d, the replay %d", system.Delivered, offline.Delivered)
	}
	if ratio := system.FlownKm / offline.FlownKm; ratio < 0.7 || ratio > 1.3 {
		t.Errorf("in the real system they flew %.0f km, in the replay %.0f", system.FlownKm, offline.FlownKm)
	}
	t.Logf("real %v", system)
	t.Logf("replay %v", offline)
}
