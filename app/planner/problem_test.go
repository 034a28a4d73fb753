package planner_test

import (
	"math"
	"testing"

	"github.com/dronefleet/dronefleet/domain"
)

// F-OPT-04: a flight time too long for a Duration means no limit and grounds no
// drone.
func TestProblemOf_AcceptsAnyFlightTime(t *testing.T) {
	for _, minutes := range []int{1 << 28, math.MaxInt32, math.MaxInt} {
		w := newTown(1)
		w.drones[0].MaxFlightTimeMinutes = minutes
		w.order("O", domain.PriorityHigh, north(5, 0), 0)
		if result := w.plan(t, newPlanner(t)); len(result.Plan.Routes) != 1 {
			t.Errorf("%d minutes: ignored %+v, unserved %+v", minutes, result.Plan.Ignored, result.Plan.Unserved)
		}
	}
}
