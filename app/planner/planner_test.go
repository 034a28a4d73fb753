package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/check"
)

var depot = domain.Depot{ID: "DEPOT-1", Name: "Main", Position: domain.Position{Lat: 48.8566, Lon: 2.3522}}

// town is a depot with a warehouse 3 km to its north.
type town struct {
	now       time.Time
	drones    []domain.Drone
	orders    []domain.Order
	warehouse domain.Position
}

// north is a position by its kilometres north and east of the depot.
func north(km, east float64) domain.Position {
	return domain.Position{Lat: depot.Position.Lat + km/111.19, Lon: depot.Position.Lon + east/73.2}
}

func newTown(drones int) *town {
	town := &town{now: time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC), warehouse: north(3, 0)}
	for i := range drones {
		town.drones = append(town.drones, domain.Drone{
			ID: domain.DroneID(fmt.Sprintf("D%02d", i)), HomeDepotID: depot.ID, Position: depot.Position, Battery: 90,
		})
	}
	return town
}

// order adds an order of the given age.
func (w *town) order(id string, p domain.Priority, to domain.Position, age time.Duration) {
	due := map[domain.Priority]time.Duration{domain.PriorityCritical: 15, domain.PriorityHigh: 30, domain.PriorityStandard: 60}[p] * time.Minute
	w.orders = append(w.orders, domain.Order{
		ID: domain.OrderID(id), CreatedAt: w.now.Add(-age), Deadline: w.now.Add(due - age),
		OrderContent: domain.OrderContent{Priority: p, ProductType: "BLOOD", Delivery: to},
	})
}

func (w *town) snapshot() domain.Snapshot {
	return domain.Snapshot{
		Time: w.now, ReadTime: w.now, Depot: depot, Drones: w.drones, Orders: w.orders,
		Warehouses: []domain.Warehouse{{ID: "WH", Position: w.warehouse, ProductTypes: []string{"BLOOD"}, ColdStorage: true}},
	}
}

// newPlanner returns a planner whose plans depend on the input alone.
func newPlanner(t interface{ Error(...any) }) *planner.Planner {
	return planner.New(planner.Config{
		Options: solver.Options{Iterations: 100, Workers: 1},
		Refused: func(_ solver.Problem, broken error) { t.Error(broken) },
	}, time.Now)
}

func (w *town) plan(t *testing.T, p *planner.Planner) planner.Result {
	t.Helper()
	result, err := p.PlanSnapshot(t.Context(), w.snapshot(), w.now)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// carrier is the drone that takes the order, and when it delivers.
func carrier(result planner.Result, order string) (drone string, at time.Time) {
	for _, r := range result.Plan.Routes {
		for _, s := range r.Stops {
			if s.OrderID == order && s.Kind == solver.Delivery {
				return r.DroneID, s.ETA
			}
		}
	}
	return "", time.Time{}
}

func reasons(result planner.Result) map[solver.Reason]int {
	n := map[solver.Reason]int{}
	for _, u := range result.Plan.Unserved {
		n[u.Reason]++
	}
	return n
}

// F-OPT-04: STANDARD orders leave drones for CRITICAL orders to come, and the plan
// says why they wait.
func TestPlanner_KeepsDronesForCriticalOrders(t *testing.T) {
	w := newTown(8)
	for i := range 40 { // far more than eight drones can carry at once
		w.order(fmt.Sprint("S", i), domain.PriorityStandard, north(3+float64(i%8), float64(i%5)-2), time.Minute)
	}
	p := newPlanner(t)
	result := w.plan(t, p)
	if len(result.Kept) == 0 || len(result.Plan.Routes) == 0 || len(result.Plan.Routes)+len(result.Kept) > len(w.drones) {
		t.Fatalf("of the drones %d fly and %d are kept, of %d", len(result.Plan.Routes), len(result.Kept), len(w.drones))
	}
	if n := reasons(result); n[solver.KeptForCritical] == 0 || n[solver.KeptForCritical] != len(result.Plan.Unserved) {
		t.Errorf("reasons of waiting orders: %v", n)
	}
	// The next CRITICAL order takes a drone that was kept.
	flown := map[string]bool{}
	for _, r := range result.Plan.Routes {
		flown[r.DroneID] = true
	}
	w.drones = slices.DeleteFunc(w.drones, func(d domain.Drone) bool { return flown[string(d.ID)] })
	w.now = w.now.Add(10 * time.Second)
	w.orders = w.orders[:0]
	w.order("C", domain.PriorityCritical, north(8, 0), 0)
	if drone, at := carrier(w.plan(t, p), "C"); drone == "" || at.After(w.orders[0].Deadline) {
		t.Errorf("the CRITICAL order flies with %q and arrives %s, due %s", drone, at, w.orders[0].Deadline)
	}
}

// A CRITICAL order is delivered before the others that share its flight, even if
// its deadline would allow a detour.
func TestPlanner_FliesCriticalOrdersDirectly(t *testing.T) {
	w := newTown(1)
	w.order("C", domain.PriorityCritical, north(6, 0), 0)
	for i := range 5 {
		w.order(fmt.Sprint("S", i), domain.PriorityStandard, north(4, float64(i)/2), 0)
	}
	result := w.plan(t, newPlanner(t))
	direct := time.Duration(6.0 / 50 * float64(time.Hour))
	if drone, at := carrier(result, "C"); drone == "" || at.Sub(w.now) > direct+2*time.Minute {
		t.Errorf("arrives with %q after %s; alone it takes %s", drone, at.Sub(w.now), direct)
	}
	if len(result.Plan.Routes[0].OrderIDs()) < 2 {
		t.Errorf("no order shares its flight: %v", result.Plan.Routes[0].OrderIDs())
	}
}

// A drone at an advance position flies neither for STANDARD orders nor for a
// CRITICAL order that another drone can serve.
func TestPlanner_KeepsDronesAtAdvancePositions(t *testing.T) {
	w := newTown(8)
	w.warehouse = north(7, 0)
	w.drones[3].Position = w.warehouse
	far := north(14, 0) // 14 km from the depot: 17 min
	for i := range 3 {
		w.order(fmt.Sprint("S", i), domain.PriorityStandard, far, 0)
	}
	p := newPlanner(t)
	result := w.plan(t, p)
	for _, r := range result.Plan.Routes {
		if r.DroneID == "D03" {
			t.Fatalf("the drone at the advance position flies %v", r.OrderIDs())
		}
	}
	flown := map[string]bool{}
	for _, r := range result.Plan.Routes {
		flown[r.DroneID] = true
	}
	w.drones = slices.DeleteFunc(w.drones, func(d domain.Drone) bool { return flown[string(d.ID)] })
	w.now = w.now.Add(10 * time.Second)
	w.orders = w.orders[:0]
	w.order("NEAR", domain.PriorityCritical, north(7.5, 0), 0)
	if drone, at := carrier(w.plan(t, p), "NEAR"); drone == "" || drone == "D03" || at.After(w.orders[0].Deadline) {
		t.Errorf("the near CRITICAL order flies with %q and arrives %s, due %s", drone, at, w.orders[0].Deadline)
	}
	w.now = w.now.Add(10 * time.Second)
	w.orders = w.orders[:0]
	w.order("FAR", domain.PriorityCritical, far, 0)
	if drone, at := carrier(w.plan(t, p), "FAR"); drone != "D03" || at.After(w.orders[0].Deadline) {
		t.Errorf("the far one flies with %q and arrives %s, due %s", drone, at, w.orders[0].Deadline)
	}
}

// A HIGH order that a free drone would deliver late waits while a drone that
// returns soon can deliver it in time.
func TestPlanner_LetsAnOrderWaitForADroneInTime(t *testing.T) {
	w := newTown(1)
	// From the south the drone must first fly to the warehouse: too late.
	w.drones[0].Position = north(-9, 0)
	w.order("C", domain.PriorityCritical, north(3.5, 0), 0)
	w.orders[0].Deadline = w.now.Add(20 * time.Minute)
	w.order("H", domain.PriorityHigh, north(6, 0), 14*time.Minute)
	p := newPlanner(t)
	result := w.plan(t, p)
	if drone, _ := carrier(result, "C"); drone == "" {
		t.Fatalf("the CRITICAL order is unserved: %+v", result.Plan.Unserved)
	}
	if n := reasons(result); n[solver.WaitsForBetterRoute] != 1 {
		t.Errorf("the HIGH order does not wait: %v", n)
	}
}

// F-OPT-04: however few drones return, one of them serves the longest overdue
// order in the end.
func TestPlanner_ServesEveryFeasibleOrderInTheEnd(t *testing.T) {
	w := newTown(8)
	w.order("S", domain.PriorityStandard, north(5, 0), 0)
	p := newPlanner(t)
	w.plan(t, p) // eight drones are known, most of them out from now on
	w.drones = w.drones[:1]
	w.orders = w.orders[:0]
	w.order("OLD", domain.PriorityStandard, north(9, 3), 2*time.Hour)
	for i := range 20 {
		w.order(fmt.Sprint("H", i), domain.PriorityHigh, north(4, float64(i%4)/4), 0)
	}
	deadline := w.now.Add(11 * time.Minute)
	for w.now.Before(deadline) {
		result := w.plan(t, p)
		if drone, _ := carrier(result, "OLD"); drone != "" {
			return
		}
		w.now = w.now.Add(10 * time.Second)
	}
	t.Error("the last free drone is kept for ever")
}

// F-OPT-04: an order that only one drone can carry gets it in the end, although
// that drone is the best one to keep, other drones are free all the time, and an
// invalid order has waited even longer.
func TestPlanner_ReleasesAKeptDroneThatAnOrderNeeds(t *testing.T) {
	for name, away := range map[string]domain.Position{
		"at the depot":     depot.Position,
		"advance position": north(7, 0),
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(12)
			w.warehouse = north(7, 0)
			for i := range w.drones {
				w.drones[i].PayloadCapacityKg = 1
			}
			heavy := &w.drones[len(w.drones)-1]
			heavy.PayloadCapacityKg, heavy.Battery, heavy.Position = 5, 80, away
			w.order("WRONG", domain.PriorityStandard, north(8, 0), 2*time.Hour)
			w.orders[0].WeightKg = -1
			w.order("HEAVY", domain.PriorityStandard, north(8, 0), time.Hour)
			w.orders[1].WeightKg = 4
			p, fleet, back := newPlanner(t), w.drones, map[string]time.Time{}
			deadline := w.now.Add(3 * time.Hour)
			for n := 0; w.now.Before(deadline); n++ {
				// The other drones always have orders that they can carry.
				w.order(fmt.Sprint("S", n), domain.PriorityStandard, north(8, float64(n%5)-2), 0)
				w.order(fmt.Sprint("FAR", n), domain.PriorityStandard, north(14, 0), 0)
				w.drones = slices.DeleteFunc(slices.Clone(fleet), func(d domain.Drone) bool { return w.now.Before(back[string(d.ID)]) })
				result := w.plan(t, p)
				if drone, _ := carrier(result, "HEAVY"); drone != "" {
					return
				}
				gone := map[string]bool{}
				for _, r := range result.Plan.Routes {
					back[r.DroneID] = w.now.Add(8 * time.Minute)
					for _, id := range r.OrderIDs() {
						gone[id] = true
					}
				}
				w.orders = slices.DeleteFunc(w.orders, func(o domain.Order) bool { return gone[string(o.ID)] })
				w.now = w.now.Add(time.Minute)
			}
			t.Error("its drone is kept for ever")
		})
	}
}

// F-OPT-04: a drone released for starved orders is one that can serve them; here
// the other free drone is nearly empty.
func TestPlanner_ReleasesADroneThatCanFly(t *testing.T) {
	w := newTown(8)
	w.order("S", domain.PriorityStandard, north(5, 0), 0)
	p := newPlanner(t)
	w.plan(t, p) // eight drones are known, most of them out from now on
	w.drones = w.drones[:2]
	w.drones[1].Battery = 24
	w.orders = w.orders[:0]
	w.order("NEW", domain.PriorityStandard, north(9, 3), 0)
	deadline := w.now.Add(11 * time.Minute)
	for w.now.Before(deadline) {
		if drone, _ := carrier(w.plan(t, p), "NEW"); drone != "" {
			return
		}
		w.now = w.now.Add(10 * time.Second)
	}
	t.Error("the drone that could fly is kept for ever")
}

// F-OPT-04: the limit of route durations leaves room for every order that a drone
// can carry, even if the drone last seen cannot, and wherever at the depot it
// stands.
func TestPlanner_RouteLimitAllowsEveryOrder(t *testing.T) {
	for name, spoil := range map[string]func(drones []domain.Drone){
		"another kind of drone":       func(drones []domain.Drone) { drones[2].PayloadCapacityKg = 1 },
		"at the far end of the depot": func(drones []domain.Drone) { moveTo(drones, north(-0.4, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(3)
			spoil(w.drones)
			w.order("HEAVY", domain.PriorityStandard, north(9, 0), 0)
			w.orders[0].WeightKg = 4
			result := w.plan(t, newPlanner(t))
			if drone, _ := carrier(result, "HEAVY"); drone == "" {
				t.Errorf("all drones are idle, but it is unserved: %+v", result.Plan.Unserved)
			}
		})
	}
}

func moveTo(drones []domain.Drone, at domain.Position) {
	for i := range drones {
		drones[i].Position = at
	}
}

// F-OPT-04: a drone that the solver ignores does not count as offered; otherwise
// the only usable one would be kept for ever.
func TestPlanner_DoesNotCountIgnoredDrones(t *testing.T) {
	for name, spoil := range map[string]func(*domain.Drone){
		"unknown home depot":   func(d *domain.Drone) { d.HomeDepotID = "GONE" },
		"invalid consumption":  func(d *domain.Drone) { d.ConsumptionPerKm = 1e-6 },
		"negative flight time": func(d *domain.Drone) { d.MaxFlightTimeMinutes = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(8)
			w.order("S", domain.PriorityStandard, north(5, 0), 0)
			p := newPlanner(t)
			w.plan(t, p) // eight drones are known, most of them out from now on
			w.drones = w.drones[:2]
			w.drones[1].Battery = 95
			spoil(&w.drones[1])
			w.orders = w.orders[:0]
			w.order("OLD", domain.PriorityStandard, north(6, 3), 2*time.Hour)
			deadline := w.now.Add(11 * time.Minute)
			for w.now.Before(deadline) {
				result := w.plan(t, p)
				if len(result.Plan.Ignored) != 1 || result.Plan.Ignored[0].ID != "D01" {
					t.Fatalf("ignored: %+v", result.Plan.Ignored)
				}
				if drone, _ := carrier(result, "OLD"); drone != "" {
					return
				}
				w.now = w.now.Add(10 * time.Second)
			}
			t.Error("the only drone that can fly is kept for ever")
		})
	}
}

// F-OPT-04: a warehouse that the solver ignores, here for the length of its id, does
// not make an order look nearer than it is; otherwise the limit of route durations
// would exclude the order for ever.
func TestPlanner_DoesNotCountIgnoredWarehouses(t *testing.T) {
	w := newTown(1)
	w.order("S", domain.PriorityStandard, north(0.2, 0), 0)
	snap := w.snapshot()
	near := domain.Warehouse{ID: domain.WarehouseID(strings.Repeat("W", 129)), Position: depot.Position, ProductTypes: []string{"BLOOD"}}
	snap.Warehouses = append(snap.Warehouses, near)
	result, err := newPlanner(t).PlanSnapshot(t.Context(), snap, w.now)
	if err != nil || len(result.Plan.Ignored) != 1 {
		t.Fatalf("ignored: %+v, %v", result.Plan.Ignored, err)
	}
	if drone, _ := carrier(result, "S"); drone == "" {
		t.Errorf("the drone is idle, but it is unserved: %+v", result.Plan.Unserved)
	}
}

// A CRITICAL order that no drone can deliver in time leaves before HIGH orders with
// time to spare.
func TestPlanner_ServesLateCriticalOrdersFirst(t *testing.T) {
	w := newTown(8)
	w.order("LATE", domain.PriorityCritical, north(8, 0), 20*time.Minute)
	for i := range 30 {
		w.order(fmt.Sprint("H", i), domain.PriorityHigh, north(3.5, float64(i%7)), 0)
	}
	result := w.plan(t, newPlanner(t))
	if drone, at := carrier(result, "LATE"); drone == "" || at.Sub(w.now) > 14*time.Minute {
		t.Errorf("flies with %q and arrives after %s", drone, at.Sub(w.now))
	}
}

// F-OPT-04: deadlines so long ago that the time since overflows a Duration, as from
// a clock set to 1601, are overdue like others: all such orders fly before those
// with time to spare.
func TestPlanner_HandlesDeadlinesCenturiesAgo(t *testing.T) {
	w := newTown(4)
	for i := range w.drones {
		w.drones[i].PayloadCapacityKg = 1
	}
	for _, id := range []string{"OLD", "OLD-TOO"} {
		w.order(id, domain.PriorityStandard, north(5, 0), time.Hour)
		w.orders[len(w.orders)-1].Deadline = time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	for i := range 8 {
		w.order(fmt.Sprint("H", i), domain.PriorityHigh, north(4, float64(i)/4), 0)
	}
	for i := range w.orders {
		w.orders[i].WeightKg = 1
	}
	result := w.plan(t, newPlanner(t))
	for _, id := range []string{"OLD", "OLD-TOO"} {
		if drone, _ := carrier(result, id); drone == "" {
			t.Errorf("%s is unserved: %+v", id, result.Plan.Unserved)
		}
	}
}

// F-OPT-04: the reason of a late order follows from its own deadline, not from the
// one that the planner works with.
func TestPlanner_GivesReasonsByTheOrdersDeadline(t *testing.T) {
	w := newTown(1)
	w.order("URGENT", domain.PriorityCritical, north(12, 0), 20*time.Minute)
	w.order("LATE", domain.PriorityHigh, north(-8, 0), 42*time.Minute)
	result := w.plan(t, newPlanner(t))
	if drone, _ := carrier(result, "URGENT"); drone == "" {
		t.Fatalf("unserved %+v", result.Plan.Unserved)
	}
	if n := reasons(result); n[solver.DeadlineUnreachable] != 1 {
		t.Errorf("reasons %v", n)
	}
}

// F-OPT-04: for any snapshot, a plan passes the checker and accounts for every
// order once, with the right reason.
func TestPlanner_PlansAnySnapshot(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newPlanner(rt)
		w := newTown(rapid.IntRange(0, 12).Draw(rt, "drones"))
		point := func(name string) domain.Position {
			return north(rapid.Float64Range(-12, 12).Draw(rt, name+" north"), rapid.Float64Range(-12, 12).Draw(rt, name+" east"))
		}
		for i := range w.drones {
			if rapid.Bool().Draw(rt, "away") {
				w.drones[i].Position = point("drone")
			}
			w.drones[i].Battery = rapid.Float64Range(15, 100).Draw(rt, "battery")
			w.drones[i].PayloadCapacityKg = rapid.SampledFrom([]float64{0, 1, 5}).Draw(rt, "capacity")
			w.drones[i].MaxFlightTimeMinutes = rapid.SampledFrom([]int{0, 20, 38}).Draw(rt, "flight")
		}
		for cycle := range 3 {
			for i := range rapid.IntRange(0, 12).Draw(rt, "orders") {
				priority := rapid.SampledFrom(domain.Priorities[:]).Draw(rt, "priority")
				age := time.Duration(rapid.IntRange(0, 200).Draw(rt, "age")) * time.Minute
				w.order(fmt.Sprint("O", cycle, "-", i), priority, point("order"), age)
				o := &w.orders[len(w.orders)-1]
				o.WeightKg = rapid.Float64Range(0, 6).Draw(rt, "weight")
				if rapid.IntRange(0, 5).Draw(rt, "kind") == 0 {
					at := point("pickup")
					o.Pickup = &at
				} else if rapid.IntRange(0, 9).Draw(rt, "kind") == 0 {
					o.ProductType = "NOT-STOCKED"
				}
			}
			result, err := p.PlanSnapshot(rt.Context(), w.snapshot(), w.now)
			if err != nil {
				rt.Fatal(err)
			}
			if broken := check.Plan(result.Problem, result.Plan); broken != nil {
				rt.Fatal(broken)
			}
			for _, u := range result.Plan.Unserved {
				want, why := reasonAlone(rt, result.Problem, u.Index)
				if u.Reason != want && !(why && lookAheadReasons[u.Reason]) {
					rt.Fatalf("order %s waits with reason %s, want %s", u.OrderID, u.Reason, want)
				}
			}
			done := map[domain.OrderID]bool{}
			flown := map[domain.DroneID]bool{}
			for _, d := range planner.DecisionsOf(result.Plan, w.snapshot()) {
				flown[d.DroneID] = true
				for _, id := range d.OrderIDs {
					done[id] = true
				}
			}
			if len(done)+len(result.Plan.Unserved) != len(w.orders) {
				rt.Fatalf("%d orders fly, %d wait, of %d", len(done), len(result.Plan.Unserved), len(w.orders))
			}
			w.orders = slices.DeleteFunc(w.orders, func(o domain.Order) bool { return done[o.ID] })
			w.drones = slices.DeleteFunc(w.drones, func(d domain.Drone) bool { return flown[d.ID] })
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 1200).Draw(rt, "pause")) * time.Second)
		}
	})
}

// lookAheadReasons are given by looking ahead only.
var lookAheadReasons = map[solver.Reason]bool{solver.KeptForCritical: true, solver.WaitsForBetterRoute: true}

// reasonAlone is the reason of an order if all drones were free for it alone, and
// whether one of them could take it.
func reasonAlone(t *rapid.T, p solver.Problem, order int) (_ solver.Reason, possible bool) {
	p.Orders = p.Orders[order : order+1]
	plan, err := solver.Solve(t.Context(), p, solver.Options{Iterations: 50, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range plan.Unserved {
		return u.Reason, false
	}
	if plan.Objective.LateTotal() > 0 {
		return solver.DeadlineUnreachable, true
	}
	return solver.NoDroneFree, true
}

// F-OPT-01: planning goes on after the clock was set back, as by its first
// synchronization, even with drones at advance positions.
func TestPlanner_ToleratesAClockThatIsSetBack(t *testing.T) {
	for _, back := range []time.Duration{6 * time.Minute, time.Hour} {
		w := newTown(8)
		w.warehouse = north(20, 0)
		w.drones[0].Position = north(20, 0)
		w.order("S", domain.PriorityStandard, north(21, 0), 0)
		p := newPlanner(t)
		w.plan(t, p)
		w.now = w.now.Add(-back)
		w.plan(t, p)
	}
}
