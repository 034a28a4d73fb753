package planner_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

// F-LRN-02: the arrivals of a plan follow from the learned speed and stays; without a past they
// are unchanged.
func TestPlanner_PlansWithLearnedSpeedsAndStays(t *testing.T) {
	w := newTown(1)
	w.order("H", domain.PriorityHigh, north(6, 0), time.Minute) // 3 km to the warehouse, 3 km farther
	p := newPlanner(t)
	before := w.plan(t, p)
	_, without := carrier(before, "H")
	p.Learn(learning.Estimates{})
	if again := w.plan(t, newPlanner(t)); !reflect.DeepEqual(again.Plan.Routes, before.Plan.Routes) {
		t.Errorf("without a past %+v, want %+v", again.Plan.Routes, before.Plan.Routes)
	}
	p = newPlanner(t)
	p.Learn(learning.Estimates{SpeedKmh: 50, Speeds: map[domain.DroneID]float64{"D00": 25}, Pickup: time.Minute})
	_, at := carrier(w.plan(t, p), "H")
	flight := without.Sub(w.now)
	if got, want := at.Sub(w.now), 2*flight+time.Minute; (got - want).Abs() > 2*time.Second {
		t.Errorf("arrives after %s, want twice %s and a minute", got, flight)
	}
}

// F-LRN-03: of a fast drone farther away and a slow one that is just in time, the planner takes
// the fast one, because flights are late at times. A deadline that no drone can meet with the
// margin is planned without it.
func TestPlanner_PlansDeadlinesWithAMargin(t *testing.T) {
	margin := learning.Estimates{SpeedKmh: 50, Margin: 0.3}
	for name, row := range map[string]struct {
		learned  learning.Estimates
		left     time.Duration // until the deadline
		deadline time.Duration // that is planned
	}{
		"no margin":      {learning.Estimates{}, 20 * time.Minute, 20 * time.Minute},
		"with a margin":  {margin, 26 * time.Minute, 20 * time.Minute},
		"just reachable": {margin, 9 * time.Minute, 9 * time.Minute},
		"overdue":        {margin, -time.Minute, -time.Minute},
	} {
		w := newTown(1)
		w.order("H", domain.PriorityHigh, north(6, 0), 30*time.Minute-row.left)
		p := newPlanner(t)
		p.Learn(row.learned)
		result := w.plan(t, p)
		if got := result.Problem.Orders[0].Due(w.now).Sub(w.now); (got - row.deadline).Abs() > time.Second {
			t.Errorf("%s: deadline in %s, want %s", name, got, row.deadline)
		}
		if drone, _ := carrier(result, "H"); drone == "" {
			t.Errorf("%s: not served: %v", name, reasons(result))
		}
	}
}

// F-LRN-04: the reserve follows the learned demand of the hour before a new process has seen any
// order.
func TestPlanner_KeepsAReserveForTheHour(t *testing.T) {
	reserve := func(criticalAnHour float64) int {
		w := newTown(40)
		d := domain.Demand{Hours: make([]domain.HourDemand, 24)}
		for h := range d.Hours {
			d.Hours[h] = domain.HourDemand{Hours: 100, Orders: [3]float64{0, 0, 100 * criticalAnHour}}
		}
		p := planner.New(planner.Config{Options: solver.Options{Iterations: 10, Workers: 1}}, time.Now)
		p.Learn(learning.Estimates{Demand: learning.EstimateDemand(d)})
		w.order("S", domain.PriorityStandard, north(4, 0), time.Minute)
		return w.plan(t, p).Reserve
	}
	if calm, busy := reserve(1), reserve(45); calm >= busy || busy < 6 {
		t.Errorf("reserve of %d drones at a calm hour, %d at a busy one", calm, busy)
	}
}
