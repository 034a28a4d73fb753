package planner_test

import (
	"math"
	"testing"

	"github.com/dronefleet/dronefleet/domain"
)

// F-OPT-04: a flight time so long that it means no limit is none, and keeps no
// drone on the gresult.
func TestProblemOf_LongFlightTimes(t *testing.T) {
	for _, minutes := range []int{1 << 28, math.MaxInt32, math.MaxInt} {
		w := newTown(1)
		w.drones[0].MaxFlightTimeMinutes = minutes
		w.order("O", domain.PriorityHigh, north(5, 0), 0)
		if result := w.plan(t, newPlanner(t)); len(result.Plan.Routes) != 1 {
			t.Errorf("%d minutes: left out %+v, unserved %+v", minutes, result.Plan.Ignored, result.Plan.Unserved)
		}
	}
}
