package planner_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

// obstacles are those of an order that a plan leaves.
func obstacles(t *testing.T, r planner.Result, order string) domain.Obstacles {
	t.Helper()
	for i, u := range r.Plan.Unserved {
		if u.OrderID == order {
			return r.Obstacles[i]
		}
	}
	t.Fatalf("%s does not wait", order)
	return domain.Obstacles{}
}

// F-ORD-05: each obstacle is counted for the drone that meets it.
func TestResult_CountsEachKindOfObstacle(t *testing.T) {
	w := newTown(5)
	for i, change := range []func(*domain.Drone){
		func(d *domain.Drone) { d.PayloadCapacityKg = 1 },
		func(d *domain.Drone) { d.Battery = 25 },
		func(d *domain.Drone) { d.ConsumptionPerKm = 20 },
		func(d *domain.Drone) { d.MaxFlightTimeMinutes = 5 },
		func(d *domain.Drone) { d.HomeDepotID = "GONE" }, // ignored, so not counted
	} {
		change(&w.drones[i])
	}
	w.order("HEAVY", domain.PriorityStandard, north(6, 0), 0)
	w.orders[0].WeightKg = 2
	w.order("UNSTOCKED", domain.PriorityStandard, north(6, 0), 0)
	w.orders[1].ProductType = "NOT-STOCKED"
	w.order("INVALID", domain.PriorityStandard, north(6, 0), 0)
	w.orders[2].WeightKg = -1
	r := w.plan(t, newPlanner(t))
	if got, want := obstacles(t, r, "HEAVY"), (domain.Obstacles{Free: 4, Payload: 1, Battery: 1, Range: 2}); got != want {
		t.Errorf("HEAVY: %s, want %s", got, want)
	}
	if got, want := obstacles(t, r, "UNSTOCKED"), (domain.Obstacles{Free: 4, Warehouse: 4}); got != want {
		t.Errorf("UNSTOCKED: %s, want %s", got, want)
	}
	if got := obstacles(t, r, "INVALID"); got.Counted() {
		t.Errorf("INVALID: %s", got)
	}
}

// F-ORD-05: a drone that only reaches a warehouse without cold storage is kept
// from an order by its cold chain, not by its range.
func TestResult_CountsTheColdChain(t *testing.T) {
	w := newTown(2)
	w.order("COLD", domain.PriorityHigh, north(4, 0), 0)
	w.orders[0].ColdChain = true
	snap := w.snapshot()
	snap.Warehouses[0].ColdStorage = false
	for name, far := range map[string][]domain.Warehouse{
		"no cold storage":           nil,
		"cold storage out of range": {{ID: "FAR", Position: north(60, 0), ProductTypes: []string{"BLOOD"}, ColdStorage: true}},
	} {
		with := snap
		with.Warehouses = append([]domain.Warehouse{snap.Warehouses[0]}, far...)
		r, err := newPlanner(t).PlanSnapshot(t.Context(), with, w.now)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := obstacles(t, r, "COLD"), (domain.Obstacles{Free: 2, ColdChain: 2}); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// F-ORD-05: of the drones that could carry an order, the record says how many
// fly for others, are kept in reserve, would be late, and how many are busy.
func TestResult_CountsDronesThatCouldCarryAnOrder(t *testing.T) {
	w := newTown(8)
	for i := range w.drones {
		w.drones[i].PayloadCapacityKg = 1
	}
	for i := range 40 {
		w.order(string(rune('A'+i)), domain.PriorityStandard, north(3+float64(i%8), float64(i%5)-2), 0)
		w.orders[i].WeightKg = 1
	}
	w.order("LATE", domain.PriorityStandard, north(9, 0), time.Hour)
	w.orders[40].WeightKg = 1
	p := newPlanner(t)
	r := w.plan(t, p)
	flying := len(r.Plan.Routes)
	for i, u := range r.Plan.Unserved {
		late := 0
		if u.OrderID == "LATE" {
			late = 8
		}
		if got, want := r.Obstacles[i], (domain.Obstacles{Free: 8, Taken: flying, Reserve: len(r.Kept), Unused: 8 - flying - len(r.Kept), Deadline: late}); got != want || len(r.Kept) == 0 {
			t.Errorf("%s: %s, want %s", u.OrderID, got, want)
		}
	}
	w.fly(r)
	w.drones = w.drones[:1]
	w.now = w.now.Add(10 * time.Second)
	if r = w.plan(t, p); len(r.Obstacles) == 0 || r.Obstacles[0].Free != 1 || r.Obstacles[0].Busy != 7 {
		t.Errorf("a cycle later: %+v", r.Obstacles)
	}
}

// F-ORD-05: every free drone is counted once, and a drone that cannot carry an
// order alone is never counted as one that can.
func TestResult_CountsEveryFreeDroneOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := rapidDraw(rt)
		w := newTown(d.int("drones", 0, 8))
		w.scatter(d, d.int("one in", 1, 4))
		w.demand(d, d.int("orders", 0, 14))
		for i := range w.orders {
			w.orders[i].ColdChain = d.int("cold", 0, 3) == 0
		}
		for _, p := range []*planner.Planner{newPlanner(rt), searchAlone(rt)} {
			r := planned(rt, p, w)
			if len(r.Obstacles) != len(r.Plan.Unserved) {
				rt.Fatalf("%d orders wait, %d have counts", len(r.Plan.Unserved), len(r.Obstacles))
			}
			for i, u := range r.Plan.Unserved {
				n := r.Obstacles[i]
				can := n.Taken + n.Reserve + n.Unused
				if n.Free != len(w.drones) || n.Warehouse+n.Payload+n.ColdChain+n.Range+n.Battery+can != n.Free || n.Deadline > can {
					rt.Fatalf("%s of %d drones: %+v", u.OrderID, len(w.drones), n)
				}
				if alone := carriers(rt, r.Problem, u.Index); alone != can {
					rt.Fatalf("%s: %d drones can carry it, counted %+v", u.OrderID, alone, n)
				}
			}
		}
	})
}

// carriers counts the drones that can serve an order if they have nothing else to do.
func carriers(t tester, p solver.Problem, order int) (n int) {
	t.Helper()
	drones := p.Drones
	p.Orders = p.Orders[order : order+1]
	for i := range drones {
		p.Drones = drones[i : i+1]
		plan, err := solver.Solve(t.Context(), p, solver.Options{Strategy: solver.Greedy})
		if err != nil {
			t.Fatal(err)
		}
		n += len(plan.Routes)
	}
	return n
}

// F-REG-05: a registered drone without a cold box takes no order that requires a cold chain, and
// counts as kept from it by that. What drones of earlier versions have is not known.
func TestPlanner_GivesAColdChainToDronesWithAColdBox(t *testing.T) {
	registered := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(*domain.Drone)
		serves bool
	}{
		"no cold box": {func(d *domain.Drone) { d.RegisteredAt = registered }, false},
		"a cold box": {func(d *domain.Drone) {
			d.RegisteredAt, d.ColdBox = registered, &domain.ColdBox{MinCelsius: 2, MaxCelsius: 8}
		}, true},
		"of an earlier version": {func(*domain.Drone) {}, true},
	} {
		w := newTown(2)
		c.change(&w.drones[1])
		w.drones[0].RegisteredAt = registered
		own := north(2, 0)
		w.order("COLD", domain.PriorityHigh, north(4, 0), 0)
		w.orders[0].ColdChain, w.orders[0].Pickup = true, &own
		r := w.plan(t, newPlanner(t))
		if c.serves {
			if len(r.Plan.Routes) != 1 || r.Plan.Routes[0].DroneID != string(w.drones[1].ID) {
				t.Errorf("%s: routes %+v, unserved %+v", name, r.Plan.Routes, r.Plan.Unserved)
			}
			continue
		}
		if got, want := obstacles(t, r, "COLD"), (domain.Obstacles{Free: 2, ColdChain: 2}); got != want || r.Plan.Unserved[0].Reason != solver.NoDroneAllowed {
			t.Errorf("%s: %s %s, want %s", name, r.Plan.Unserved[0].Reason, got, want)
		}
	}
}
