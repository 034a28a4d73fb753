package planner_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// inTime counts the CRITICAL orders that a plan delivers by their deadlines.
func inTime(r planner.Result) (n int) {
	due := map[string]time.Time{}
	for _, o := range r.Problem.Orders {
		if o.Priority == solver.Critical {
			due[o.ID] = o.Due(r.Problem.Now)
		}
	}
	for _, route := range r.Plan.Routes {
		for _, s := range route.Stops {
			if by, critical := due[s.OrderID]; critical && s.Kind == solver.Delivery && !s.ETA.After(by) {
				n++
			}
		}
	}
	return n
}

// searchAlone is the same search as newPlanner's without looking ahead.
func searchAlone(t interface{ Error(...any) }) *planner.Planner {
	return planner.New(planner.Config{
		Options:   solver.Options{Iterations: 100, Workers: 1},
		Immediate: true,
		Refused:   func(_ solver.Problem, broken error) { t.Error(broken) },
	}, time.Now)
}

// draw is what snapshots are drawn with: rapid's choices or seeded ones.
type draw struct {
	int   func(name string, from, to int) int
	float func(name string, from, to float64) float64
}

func rapidDraw(t *rapid.T) draw {
	return draw{
		func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) },
		func(name string, from, to float64) float64 { return rapid.Float64Range(from, to).Draw(t, name) },
	}
}

func seededDraw(seed uint64) draw {
	random := rand.New(rand.NewPCG(seed, 0))
	return draw{
		func(_ string, from, to int) int { return from + random.IntN(to-from+1) },
		func(_ string, from, to float64) float64 { return from + (to-from)*random.Float64() },
	}
}

func (d draw) point(name string, km float64) domain.Position {
	return north(d.float(name+" north", -km, km), d.float(name+" east", -km, km))
}

// scatter places about one drone in oneIn away from the depot.
func (w *town) scatter(d draw, oneIn int) {
	for i := range w.drones {
		if d.int("away", 1, oneIn) == 1 {
			w.drones[i].Position = d.point("drone", 12)
		}
		w.drones[i].Battery = d.float("battery", 25, 100)
		w.drones[i].PayloadCapacityKg = []float64{0, 1, 5}[d.int("capacity", 0, 2)]
	}
}

// demand adds orders all over the town, two in five of them CRITICAL.
func (w *town) demand(d draw, orders int) {
	priorities := []domain.Priority{domain.PriorityCritical, domain.PriorityCritical, domain.PriorityHigh, domain.PriorityStandard, domain.PriorityStandard}
	for range orders {
		p := priorities[d.int("priority", 0, len(priorities)-1)]
		age := time.Duration(d.int("age", 0, 18)) * time.Minute
		w.order(fmt.Sprint("O", len(w.orders), "-", w.now.Unix()), p, d.point("order", 9), age)
		w.orders[len(w.orders)-1].WeightKg = d.float("weight", 0, 2)
	}
}

// fly removes the drones and orders of a plan's routes.
func (w *town) fly(r planner.Result) {
	flown, done := map[string]bool{}, map[string]bool{}
	for _, route := range r.Plan.Routes {
		flown[route.DroneID] = true
		for _, id := range route.OrderIDs() {
			done[id] = true
		}
	}
	w.drones = slices.DeleteFunc(w.drones, func(d domain.Drone) bool { return flown[string(d.ID)] })
	w.orders = slices.DeleteFunc(w.orders, func(o domain.Order) bool { return done[string(o.ID)] })
}

// F-OPT-07: wherever the drones are, looking ahead brings no fewer CRITICAL
// orders in time than the same search without it, and no CRITICAL order waits
// while a drone that can serve it stands idle.
func TestPlanner_LetsNoCriticalOrderWaitForOrdersToCome(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d, p := rapidDraw(rt), newPlanner(rt)
		w := newTown(d.int("drones", 1, 14))
		w.scatter(d, d.int("one in", 1, 4))
		for range d.int("cycles", 1, 3) {
			w.demand(d, d.int("orders", 0, 14))
			ours := planned(rt, p, w)
			if alone := planned(rt, searchAlone(rt), w); inTime(ours) < inTime(alone) {
				rt.Fatalf("%d CRITICAL orders in time, %d without looking ahead", inTime(ours), inTime(alone))
			}
			idleDronesServeNoCriticalOrder(rt, ours)
			w.fly(ours)
			w.now = w.now.Add(time.Duration(d.int("pause", 1, 900)) * time.Second)
		}
	})
}

type tester interface {
	Helper()
	Context() context.Context
	Fatal(...any)
	Fatalf(string, ...any)
}

func planned(t tester, p *planner.Planner, w *town) planner.Result {
	t.Helper()
	r, err := p.PlanSnapshot(t.Context(), w.snapshot(), w.now)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func idleDronesServeNoCriticalOrder(t tester, r planner.Result) {
	t.Helper()
	flown := map[string]bool{}
	for _, route := range r.Plan.Routes {
		flown[route.DroneID] = true
	}
	p := r.Problem
	p.Drones = slices.DeleteFunc(slices.Clone(p.Drones), func(d solver.Drone) bool { return flown[d.ID] })
	p.Orders = nil
	for _, u := range r.Plan.Unserved {
		if o := r.Problem.Orders[u.Index]; o.Priority == solver.Critical && u.Reason != solver.WaitsForBetterRoute {
			if u.Reason == solver.KeptForCritical {
				t.Fatalf("the CRITICAL order %s waits for CRITICAL orders to come", o.ID)
			}
			p.Orders = append(p.Orders, o)
		}
	}
	plan, err := solver.Solve(t.Context(), p, solver.Options{Strategy: solver.Greedy})
	if err != nil {
		t.Fatal(err)
	}
	for _, route := range plan.Routes {
		t.Fatalf("drone %s stands idle, and could serve the CRITICAL orders %v", route.DroneID, route.OrderIDs())
	}
}

// F-OPT-07: the same with a hundred drones, a third of them away.
func TestPlanner_ServesCriticalOrdersFirstWithManyDrones(t *testing.T) {
	sizes, seeds := []int{150, 500}, uint64(3)
	if !longtest.Full(t, "500 orders, and three seeds") {
		sizes, seeds = []int{150}, 1
	}
	for _, orders := range sizes {
		for seed := range seeds {
			t.Run(fmt.Sprint(orders, "-", seed), func(t *testing.T) {
				w, d := newTown(100), seededDraw(seed)
				w.scatter(d, 3)
				w.demand(d, orders)
				ours, alone := planned(t, newPlanner(t), w), planned(t, searchAlone(t), w)
				if inTime(ours) < inTime(alone) {
					t.Errorf("%d CRITICAL orders in time, %d without looking ahead", inTime(ours), inTime(alone))
				}
				idleDronesServeNoCriticalOrder(t, ours)
			})
		}
	}
}
