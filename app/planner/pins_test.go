package planner_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// F-OPR-05: a pinned order that waits alone flies at once, even if its drone is in the reserve or
// far away.
func TestPlanner_FliesAPinnedOrderThatIsAlone(t *testing.T) {
	for _, p := range domain.Priorities {
		for _, immediate := range []bool{false, true} {
			for n := range 4 {
				w := newTown(4)
				w.order("O", p, north(12, 0), 0)
				w.orders[0].PinnedDroneID = w.drones[n].ID
				options := planner.Config{Options: solver.Options{Iterations: 100, Workers: 1}, Immediate: immediate}
				r := w.plan(t, planner.New(options, time.Now))
				if drone, _ := carrier(r, "O"); drone != string(w.drones[n].ID) {
					t.Errorf("%s pinned to %s, immediate %t: flies with %q, %+v", p, w.drones[n].ID, immediate, drone, r.Plan.Unserved)
				}
			}
		}
	}
}

// F-OPR-05: over many cycles of a planner no plan breaks a pin or a prohibition: every stage
// obeys, and the checker refuses none.
func TestPlanner_ObeysPinsAndProhibitions(t *testing.T) {
	seeds := longtest.Size(t, "seeds", uint64(2), 6)
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 3))
		w, p := newTown(8), newPlanner(t)
		for i := range w.drones {
			w.drones[i].Battery = 40 + 50*rng.Float64()
		}
		for cycle := range 4 {
			for i := range 5 {
				w.order(fmt.Sprintf("O-%d-%d", cycle, i), domain.Priorities[rng.IntN(3)], north(2+6*rng.Float64(), 3*rng.Float64()), time.Duration(rng.IntN(70))*time.Minute)
				o := &w.orders[len(w.orders)-1]
				switch rng.IntN(3) {
				case 0:
					o.PinnedDroneID = w.drones[rng.IntN(8)].ID
				case 1:
					o.ForbiddenDroneIDs = []domain.DroneID{w.drones[rng.IntN(8)].ID, w.drones[rng.IntN(8)].ID}
				}
			}
			r := w.plan(t, p)
			for _, d := range planner.DecisionsOf(r.Plan, w.snapshot()) {
				for _, id := range d.OrderIDs {
					for _, o := range w.orders {
						if o.ID == id && !o.Allows(d.DroneID) {
							t.Errorf("seed %d: %s flies %s, pinned to %q, forbidden %q", seed, d.DroneID, id, o.PinnedDroneID, o.ForbiddenDroneIDs)
						}
					}
				}
			}
			w.now = w.now.Add(10 * time.Second)
		}
	}
}

// F-OPR-05, F-ORD-05: an order says why its pinned drone does not take it.
func TestPlanner_SaysWhyAPinnedOrderWaits(t *testing.T) {
	at := func(change func(*domain.Drone)) domain.Drone {
		d := domain.Drone{ID: "PIN", HomeDepotID: depot.ID, Position: depot.Position, Battery: 34, Status: domain.DroneCharging}
		change(&d)
		return d
	}
	for name, c := range map[string]struct {
		drone  domain.Drone
		free   bool
		change func(*domain.Order)
		want   string
	}{
		"grounded":    {drone: at(func(d *domain.Drone) { d.Grounded = true }), want: "no_drone_free: pinned drone PIN is grounded"},
		"flying":      {drone: at(func(d *domain.Drone) { d.CurrentMissionID = "M-1" }), want: "no_drone_free: pinned drone PIN flies mission M-1"},
		"charging":    {drone: at(func(*domain.Drone) {}), want: "no_drone_free: pinned drone PIN is CHARGING with 34 %"},
		"elsewhere":   {drone: at(func(d *domain.Drone) { d.ID = "OTHER" }), want: "no_drone_allowed: pinned drone PIN is not of this depot, or was not heard of lately"},
		"too small":   {drone: at(func(d *domain.Drone) { d.PayloadCapacityKg = 1 }), change: func(o *domain.Order) { o.WeightKg = 2 }, want: "over_capacity"},
		"free, small": {drone: at(func(d *domain.Drone) { d.PayloadCapacityKg, d.Battery = 1, 90 }), free: true, change: func(o *domain.Order) { o.WeightKg = 2 }, want: "over_capacity"},
		"too far":     {drone: at(func(d *domain.Drone) { d.ConsumptionPerKm = 40 }), want: "out_of_range"},
	} {
		w := newTown(3)
		w.order("O", domain.PriorityStandard, north(6, 0), 0)
		w.orders[0].PinnedDroneID = "PIN"
		if c.change != nil {
			c.change(&w.orders[0])
		}
		all := append(w.drones[:3:3], c.drone)
		if c.free {
			w.drones = all
		}
		r := w.plan(t, newPlanner(t))
		planner.JudgeByAllDrones(r.Problem, r.Plan.Unserved, all, r.Learned)
		if len(r.Plan.Unserved) != 1 {
			t.Fatalf("%s: %d orders wait", name, len(r.Plan.Unserved))
		}
		if got := r.Plan.Unserved[0].String(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if n := r.Obstacles[0]; n.NotAllowed != 3 {
			t.Errorf("%s: %s, want 3 not allowed", name, n)
		}
	}
}
