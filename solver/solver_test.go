package solver_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/check"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// town is a seeded problem around one city, hard enough that some orders stay
// unserved.
func town(seed uint64, drones, orders int) solver.Problem {
	rng := rand.New(rand.NewPCG(seed, 7))
	near := func(km float64) solver.Location {
		a, r := rng.Float64()*2*math.Pi, math.Sqrt(rng.Float64())*km/111.2
		return solver.Location{Lat: 5.6 + r*math.Sin(a), Lon: -0.19 + r*math.Cos(a)}
	}
	p := solver.Problem{Now: noon}
	for i := range 2 {
		p.Depots = append(p.Depots, solver.Depot{ID: fmt.Sprintf("depot-%d", i), At: near(6)})
	}
	products := []string{"BLOOD", "VACCINE", "MEDICINE", "PLASMA"}
	for i := range 4 {
		w := solver.Warehouse{ID: fmt.Sprintf("wh-%d", i), At: near(8), ColdStorage: i%2 == 0}
		for j, t := range products {
			if j == i || rng.IntN(2) == 0 {
				w.ProductTypes = append(w.ProductTypes, t)
			}
		}
		p.Warehouses = append(p.Warehouses, w)
	}
	for i := range drones {
		d := solver.Drone{ID: fmt.Sprintf("drone-%d", i), At: near(8), HomeDepotID: p.Depots[i%2].ID,
			BatteryPercent: 40 + 60*rng.Float64(), CapacityKg: []float64{0, 4, 6}[rng.IntN(3)]}
		if rng.IntN(4) == 0 {
			d.SpeedKmh, d.ConsumptionPercentPerKm, d.MaxFlight = 70, 3, 40*time.Minute
		}
		p.Drones = append(p.Drones, d)
	}
	for i := range orders {
		o := solver.Order{ID: fmt.Sprintf("order-%d", i), Delivery: near(10), ProductType: products[rng.IntN(4)],
			WeightKg: rng.Float64() * 3, ColdChain: rng.IntN(4) == 0, Priority: solver.Priority(rng.IntN(3)),
			CreatedAt: noon.Add(-time.Duration(rng.IntN(14)) * time.Minute)}
		if rng.IntN(8) == 0 {
			at := near(8)
			o.Pickup, o.ProductType = &at, ""
		}
		p.Orders = append(p.Orders, o)
	}
	return p
}

func solveChecked(t *testing.T, p solver.Problem, o solver.Options) solver.Plan {
	t.Helper()
	plan, err := solver.Solve(context.Background(), p, o)
	if err != nil {
		t.Fatalf("solve: %v", err)
	}
	if err := check.Plan(p, plan); err != nil {
		t.Fatalf("check: %v", err)
	}
	return plan
}

func TestSolve_EveryStrategyPassesTheChecker(t *testing.T) {
	for _, strategy := range []solver.Strategy{solver.SISR, solver.Greedy, solver.NearestFirst} {
		for seed := range uint64(30) {
			p := town(seed, 1+int(seed%9), int(seed*3%50))
			solveChecked(t, p, solver.Options{Strategy: strategy, Seed: seed, Iterations: 300})
		}
	}
}

// F-CHG-02: a drone whose consumption grows with its load lands with its reserve, and what a
// stop says of its charge is what the load until there has used.
func TestSolve_CountsThePayloadInTheCharge(t *testing.T) {
	loaded := 0
	for seed := range uint64(30) {
		p := town(seed, 1+int(seed%9), int(seed*3%50))
		for i := range p.Drones {
			p.Drones[i].CapacityKg, p.Drones[i].ConsumptionPercentPerKmKg = 5, 0.3
		}
		plan := solveChecked(t, p, solver.Options{Seed: seed, Iterations: 300})
		for _, r := range plan.Routes {
			i := slices.IndexFunc(p.Drones, func(d solver.Drone) bool { return d.ID == r.DroneID })
			empty, full := r.DistanceKm*p.Drones[i].ConsumptionWith(0), r.DistanceKm*p.Drones[i].Consumption()
			if !(r.BatteryUsePercent > empty && r.BatteryUsePercent < full) {
				t.Errorf("seed %d: %s uses %.3f %%, empty %.3f, full %.3f", seed, r.DroneID, r.BatteryUsePercent, empty, full)
			}
			loaded++
		}
	}
	if loaded < 50 {
		t.Errorf("only %d routes", loaded)
	}
}

// Problems of many orders are cut into clusters, whose drones may be few, one or
// none.
func TestSolve_PlansProblemsOfEveryShape(t *testing.T) {
	for _, shape := range []struct{ drones, orders int }{{1, 301}, {2, 900}, {5, 2000}, {40, 1100}, {400, 1}, {300, 310}} {
		t.Run(fmt.Sprintf("%dx%d", shape.drones, shape.orders), func(t *testing.T) {
			p := town(uint64(shape.orders), shape.drones, shape.orders)
			for _, o := range []solver.Options{{Iterations: 40}, {Iterations: 40, Goal: solver.ReferenceScalar}, {Strategy: solver.Greedy}, {Strategy: solver.NearestFirst}} {
				plan := solveChecked(t, p, o)
				if len(plan.Routes) == 0 && o.Goal == solver.Production { // the reference may drop all orders
					t.Errorf("%+v: no drone flies", o)
				}
			}
		})
	}
}

// A machine that stalls for longer than a tiny problem is searched has most of the
// limit left all the same: drones fly.
func TestSolve_PlansATinyProblemDespiteAStall(t *testing.T) {
	p := town(1, 3, 10)
	for _, strategy := range []solver.Strategy{solver.SISR, solver.Greedy} {
		for stall := 1; stall < 8; stall++ {
			looks := 0
			clock := func() time.Time {
				if looks++; looks > stall {
					return noon.Add(100 * time.Millisecond)
				}
				return noon
			}
			plan := solveChecked(t, p, solver.Options{Strategy: strategy, Workers: 1, Clock: clock})
			if len(plan.Routes) == 0 {
				t.Errorf("strategy %v, a stall before look %d: no drone flies", strategy, stall+1)
			}
		}
	}
}

// F-OPT-03: a tiny problem is searched even with a fleet so large that preparing it
// takes as long as the search of a tiny problem.
func TestSolve_SearchesALargeFleetForFewOrders(t *testing.T) {
	looks := 0
	clock := func() time.Time {
		if looks++; looks > 1 {
			return noon.Add(60*time.Millisecond + time.Duration(looks)*time.Millisecond)
		}
		return noon
	}
	if plan := solveChecked(t, town(1, 10_000, 10), solver.Options{Workers: 1, Clock: clock}); plan.Stats.Iterations == 0 {
		t.Error("no step in 8 s")
	}
}

// F-OPT-04: orders that cannot be in time beside the others are delivered late, even
// though the search has used all of its time.
func TestSolve_LeavesTimeForLateDeliveries(t *testing.T) {
	// One drone and a ring of orders, each in time only if it goes there first.
	center := solver.Location{Lat: 5.6, Lon: -0.19}
	p := solver.Problem{
		Now: noon, Depots: []solver.Depot{{ID: "D", At: center}},
		Drones:     []solver.Drone{{ID: "1", At: center, BatteryPercent: 100, HomeDepotID: "D"}},
		Warehouses: []solver.Warehouse{{ID: "W", At: center, ProductTypes: []string{"BLOOD"}}},
	}
	for i := range 30 {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / 30)
		p.Orders = append(p.Orders, solver.Order{
			ID: fmt.Sprint(i), ProductType: "BLOOD", WeightKg: 1, CreatedAt: noon, Deadline: noon.Add(6 * time.Minute),
			Delivery: solver.Location{Lat: center.Lat + 0.025*sin, Lon: center.Lon + 0.025*cos},
		})
	}
	// The clock moves with every look, so that nothing depends on the machine.
	now := noon
	clock := func() time.Time {
		now = now.Add(20 * time.Microsecond)
		return now
	}
	plan := solveChecked(t, p, solver.Options{Seed: 1, Workers: 1, Clock: clock, TimeLimit: 40 * time.Millisecond})
	if took := now.Sub(noon); took < 30*time.Millisecond {
		t.Fatalf("the search took only %v of its time", took)
	}
	if plan.Objective.LateTotal() == 0 {
		t.Errorf("nothing is delivered late; %d orders are in no route", len(plan.Unserved))
	}
}

// F-OPT-03: a problem whose preparation takes longer than the limit, because
// thousands of orders wait or the machine is busy, has a plan all the same: in the
// next cycle even more orders would wait.
func TestSolve_PlansAlthoughPreparingTookTheLimit(t *testing.T) {
	for _, orders := range []int{10, 200, 1000} {
		for _, strategy := range []solver.Strategy{solver.SISR, solver.Greedy} {
			looks := 0
			clock := func() time.Time {
				if looks++; looks == 1 {
					return noon
				}
				return noon.Add(10*time.Second + time.Duration(looks)*time.Millisecond)
			}
			p := town(1, orders/5, orders)
			plan := solveChecked(t, p, solver.Options{Workers: 1, Clock: clock, Strategy: strategy})
			first := solveChecked(t, p, solver.Options{Strategy: solver.Greedy})
			if served, could := orders-len(plan.Unserved), orders-len(first.Unserved); served < could*9/10 { // the rest would be late
				t.Errorf("strategy %d serves %d of %d orders, a construction %d", strategy, served, orders, could)
			}
			if plan.Stats.Iterations > 0 {
				t.Errorf("strategy %d searches for %d steps after its time", strategy, plan.Stats.Iterations)
			}
		}
	}
}
