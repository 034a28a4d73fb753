package dispatch_test

import (
	"math"
	"testing"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver/model"
)

// F-OPT-03, F-WIRE-03: what the solver plans fits what a decision can carry.
func TestPlans_FitTheWire(t *testing.T) {
	if model.MaxIDBytes > domain.MaxIDBytes || model.MaxOrdersPerDecision > wire.MaxOrdersPerDecision || model.MaxWaypointsPerDecision > wire.MaxWaypointsPerDecision {
		t.Error("the solver allows more than the wire")
	}
}

// F-OPT-04: a flight time so long that it means no limit is none, and keeps no
// drone on the ground.
func TestProblemOf_LongFlightTimes(t *testing.T) {
	for _, minutes := range []int{1 << 28, math.MaxInt32, math.MaxInt} {
		w := newTown(1)
		w.drones[0].MaxFlightTimeMinutes = minutes
		w.order("O", domain.PriorityHigh, north(5, 0), 0)
		if round := w.plan(t, planner(t)); len(round.Plan.Routes) != 1 {
			t.Errorf("%d minutes: left out %+v, unserved %+v", minutes, round.Plan.Ignored, round.Plan.Unserved)
		}
	}
}
