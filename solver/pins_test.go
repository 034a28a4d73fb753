package solver_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// pinned is a problem with some of its orders pinned to a drone or forbidden to some.
// A few of these drones are not in the problem.
func pinned(p solver.Problem, seed uint64) solver.Problem {
	rng := rand.New(rand.NewPCG(seed, 11))
	drone := func() string { return fmt.Sprintf("drone-%d", rng.IntN(len(p.Drones)*8/7+1)) }
	for i := range p.Orders {
		o := &p.Orders[i]
		switch rng.IntN(3) {
		case 0:
			o.PinnedDroneID = drone()
		case 1:
			for range rng.IntN(1 + len(p.Drones)) {
				o.ForbiddenDroneIDs = append(o.ForbiddenDroneIDs, drone())
			}
		}
	}
	return p
}

// F-OPR-05: solveChecked's checker knows pins and prohibitions by itself. The warm plan
// is one of the problem without them.
func TestSolve_ObeysPinsAndProhibitions(t *testing.T) {
	sizes := [][2]int{{1, 3}, {3, 8}, {6, 25}, {12, 60}, {40, 400}} // above 300 orders in clusters
	if !longtest.Full(t, "400 orders") {
		sizes = sizes[:4]
	}
	for seed := range uint64(25) {
		size := sizes[seed%uint64(len(sizes))]
		p := town(seed, size[0], size[1])
		warm := solveChecked(t, p, solver.Options{Strategy: solver.Greedy})
		p = pinned(p, seed)
		for _, strategy := range []solver.Strategy{solver.SISR, solver.Greedy, solver.NearestFirst} {
			plan := solveChecked(t, p, solver.Options{Strategy: strategy, Seed: seed, Iterations: 600, Warm: &warm})
			for _, u := range plan.Unserved {
				allowed := false
				for _, d := range p.Drones {
					allowed = allowed || p.Orders[u.Index].Allows(d.ID)
				}
				if allowed == (u.Reason == solver.NoDroneAllowed) && u.Reason != solver.NoCompatibleWarehouse {
					t.Errorf("seed %d: %s waits as %s, allowed on a drone: %t", seed, u.OrderID, u.Reason, allowed)
				}
			}
		}
	}
}

// F-OPR-05: an order that is pinned, or forbidden to some drones, is served if it is
// the only order and a drone that may carry it can.
func TestSolve_ServesARestrictedOrderThatIsAlone(t *testing.T) {
	served, left := 0, 0
	for seed := range uint64(150) {
		p := pinned(town(seed, 1+int(seed%3), 1), seed)
		want, err := enumerate(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, strategy := range []solver.Strategy{solver.SISR, solver.Greedy} {
			plan := solveChecked(t, p, solver.Options{Strategy: strategy, Iterations: 50})
			if got := len(plan.Routes); got != want.Served {
				t.Errorf("seed %d, strategy %v: %d orders served, possible %d: %+v", seed, strategy, got, want.Served, plan.Unserved)
			}
		}
		served, left = served+want.Served, left+1-want.Served
	}
	if served < 30 || left < 30 {
		t.Errorf("%d orders served, %d left: the problems are one-sided", served, left)
	}
}

// F-OPR-05: with pins and prohibitions the solver still finds the best of tiny plans.
func TestSolve_ReachesTheOptimumOfTinyProblemsWithPins(t *testing.T) {
	for seed := range uint64(60) {
		p := pinned(tiny(seed), seed)
		want, err := enumerate(p)
		if err != nil {
			t.Fatal(err)
		}
		plan := solveChecked(t, p, solver.Options{Seed: seed, Iterations: 2000})
		if plan.Objective.MissedByRank != want.MissedByRank {
			t.Errorf("seed %d: missed %v, optimum %v", seed, plan.Objective.MissedByRank, want.MissedByRank)
		}
	}
}
