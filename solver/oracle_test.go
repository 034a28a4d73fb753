package solver_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/solver"
)

// tiny is a problem that enumerate takes.
func tiny(seed uint64) solver.Problem {
	p := town(seed, 1+int(seed%3), 3+int(seed%3))
	p.Warehouses = p.Warehouses[:3]
	if seed%4 == 0 {
		p.Params.PickupService, p.Params.DeliveryService = time.Minute, 2*time.Minute
	}
	if seed%5 == 0 { // overdue by up to an hour
		for i := range p.Orders {
			p.Orders[i].CreatedAt = p.Orders[i].CreatedAt.Add(-time.Duration(i*20) * time.Minute)
		}
	}
	return p
}

func TestSolve_ReachesTheExhaustiveOptimumOfTinyProblems(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := tiny(seed)
			want, err := enumerate(p)
			if err != nil {
				t.Fatal(err)
			}
			plan := solveChecked(t, p, solver.Options{Seed: seed, Iterations: 2000})
			if plan.Objective.MissedByRank != want.MissedByRank {
				t.Fatalf("missed %v, optimum %v", plan.Objective.MissedByRank, want.MissedByRank)
			}
			if served := len(p.Orders) - len(plan.Unserved); served != want.Served {
				return // further orders are served late: their distance is not the optimum's
			}
			if math.Abs(plan.Objective.DistanceKm-want.DistanceKm) > 1e-6 {
				t.Fatalf("%.6f km, optimum %.6f", plan.Objective.DistanceKm, want.DistanceKm)
			}
		})
	}
}

func TestEnumerate_RefusesWhatIsTooLarge(t *testing.T) {
	for name, c := range map[string]struct {
		drones, orders int
		ok             bool
	}{
		"as much as it can": {mostDrones, mostOrders, true},
		"too many drones":   {mostDrones + 1, 1, false},
		"too many orders":   {1, mostOrders + 1, false},
	} {
		if _, err := enumerate(town(1, c.drones, c.orders)); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
