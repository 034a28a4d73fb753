package main

import (
	"os"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// The replay without servers predicts the real system: the same orders, about as
// many delivered and as many kilometres. The real one lags on a busy machine, so
// the bounds are wide and the speed is halved when it lags; whole hours agree
// within a few percent.
func TestOffline_AgreesWithTheRealSystem(t *testing.T) {
	longtest.Only(t, "runs the real system for half a minute")
	if os.Getenv(connect.FirestoreHost) != "" || os.Getenv(connect.PubSubHost) != "" {
		t.Skip("the run starts its own embedded servers")
	}
	c := command{Simulated: 15 * time.Minute, Speed: 45, Drones: 20, OrdersPerMinute: 3, Iterations: 100, Place: "paris", Amend: true, Position: true}
	var system outcome
	for ; ; c.Speed /= 2 {
		var err error
		if system, err = c.real(t.Context(), methods[0], 1); err != nil {
			t.Fatal(err)
		}
		if system.Violations > 0 {
			t.Errorf("%d invariants violated", system.Violations)
		}
		if !system.Behind || c.Speed < 8 {
			break
		}
		t.Logf("the machine does not keep up at speed %g", c.Speed)
	}
	offline, err := c.offline(t.Context(), methods[0], 1)
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
		t.Errorf("%d orders were created in the real system, %d in the replay", a, b)
	}
	if ratio := float64(system.Delivered) / float64(offline.Delivered); ratio < 0.5 || ratio > 1.3 {
		t.Errorf("the real system delivered %d, the replay %d", system.Delivered, offline.Delivered)
	}
	if ratio := system.FlownKm / offline.FlownKm; ratio < 0.7 || ratio > 1.3 {
		t.Errorf("drones flew %.0f km in the real system, %.0f in the replay", system.FlownKm, offline.FlownKm)
	}
	t.Logf("real %v", system)
	t.Logf("replay %v", offline)
}
