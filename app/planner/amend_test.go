package planner_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/check"
)

// flying is a drone of the town that has been seen some kilometres north of the depot,
// one minute after it took off, on the way to deliver ABOARD 8 km north.
func (w *town) flying(seenAt float64, p domain.Priority, due time.Duration) domain.Flight {
	aboard := domain.Order{
		ID: "ABOARD", Status: domain.OrderInDelivery, CreatedAt: w.now.Add(-time.Minute), Deadline: w.now.Add(due),
		OrderContent: domain.OrderContent{Priority: p, ProductType: "BLOOD", Delivery: north(8, 0)},
	}
	return domain.Flight{
		Drone: domain.Drone{
			ID: "FLYING", HomeDepotID: depot.ID, Position: north(seenAt, 0), Battery: 90, SeenAt: w.now, SupportsAmendments: true,
			CurrentMissionID: "M", MissionAcked: true, NamedRevision: 1, Status: domain.DroneMoving,
		},
		Mission: domain.Mission{
			ID: "M", DroneID: "FLYING", Status: domain.MissionActive, StartTime: w.now.Add(-time.Minute), RouteRevision: 1, ReachedStops: 2,
			OrderIDs: []domain.OrderID{"ABOARD"},
			Route: []domain.Waypoint{
				{Type: domain.WaypointDepotStart, Position: depot.Position},
				{Type: domain.WaypointWarehousePickup, Position: north(0.5, 0), OrderID: "ABOARD"},
				{Type: domain.WaypointHospitalDelivery, Position: north(8, 0), OrderID: "ABOARD"},
				{Type: domain.WaypointDepotReturn, Position: depot.Position},
			},
		},
		Orders: []domain.Order{aboard},
	}
}

// planFlights plans the town with drones in flight.
func (w *town) planFlights(t *testing.T, flights ...domain.Flight) (planner.Result, []domain.Decision) {
	t.Helper()
	snap := w.snapshot()
	snap.CycleID, snap.Flights = "C1", flights
	result, err := newPlanner(t).PlanSnapshot(t.Context(), snap, w.now)
	if err != nil {
		t.Fatal(err)
	}
	return result, planner.DecisionsOf(result.Plan, snap)
}

// stops names the kinds and orders of a route.
func stops(route []domain.Waypoint) (list []string) {
	for _, w := range route {
		list = append(list, string(w.Type)+" "+string(w.OrderID))
	}
	return list
}

// F-AMD-01: a CRITICAL order goes to the drone that flies past its warehouse. The depot's
// drone would take 2 x 8.06 km for it; the one in flight takes 1.06 km more.
func TestPlanner_AddsACriticalOrderToAFlight(t *testing.T) {
	w := newTown(1)
	w.order("URGENT", domain.PriorityCritical, north(8, 1), 0)
	result, decisions := w.planFlights(t, w.flying(1, domain.PriorityCritical, 14*time.Minute))
	if len(result.Plan.Routes) != 0 || len(result.Plan.Amendments) != 1 || len(result.Plan.Unserved) != 0 || len(decisions) != 1 {
		t.Fatalf("plan %+v", result.Plan)
	}
	d := decisions[0]
	want := []string{
		"DEPOT_START ", "WAREHOUSE_PICKUP ABOARD", "WAREHOUSE_PICKUP URGENT", "HOSPITAL_DELIVERY ABOARD", "HOSPITAL_DELIVERY URGENT", "DEPOT_RETURN ",
	}
	if !slices.Equal(stops(d.Route), want) || d.AmendsMissionID != "M" || d.AmendsRevision != 1 || !slices.Equal(d.OrderIDs, []domain.OrderID{"ABOARD", "URGENT"}) {
		t.Errorf("decision %+v", d)
	}
	if d.ID != domain.DecisionIDFor("C1", "FLYING") {
		t.Errorf("the decision's id is %s", d.ID)
	}
	// 7 km to the first delivery, one more to the second, at 72 s/km.
	for i, after := range map[int]time.Duration{3: 504 * time.Second, 4: 576 * time.Second} {
		if diff := d.Route[i].ETA.Sub(w.now) - after; diff.Abs() > time.Second {
			t.Errorf("stop %d is expected after %s, want %s", i, d.Route[i].ETA.Sub(w.now), after)
		}
	}
	a := result.Plan.Amendments[0]
	if diff := a.Detour - 76*time.Second; diff.Abs() > time.Second || a.DetourKm < 1.05 || a.DetourKm > 1.07 {
		t.Errorf("detour %s, %.3f km", a.Detour, a.DetourKm)
	}
	if used := d.EstimatedBatteryConsumption; used < 40.1 || used > 40.2 { // 16.06 km
		t.Errorf("uses %v %%", used)
	}
}

// F-AMD-01: a flight with a spoiled record, as after an edit by hand, stays as it is, and the
// others can still be changed.
func TestPlanner_LeavesOutAFlightThatMakesNoSense(t *testing.T) {
	for name, spoil := range map[string]func(*domain.Flight){
		"carries more than it can":  func(f *domain.Flight) { f.Drone.PayloadCapacityKg, f.Orders[0].WeightKg = 2, 3 },
		"weighs nothing sensible":   func(f *domain.Flight) { f.Orders[0].WeightKg = math.NaN() },
		"delivers to another place": func(f *domain.Flight) { f.Orders[0].Delivery = north(9, 0) },
		"delivers a waiting order": func(f *domain.Flight) {
			f.Orders[0].ID = "C"
			f.Mission.Route[1].OrderID, f.Mission.Route[2].OrderID = "C", "C"
		},
		"was seen in the far future": func(f *domain.Flight) { f.Drone.SeenAt = f.Drone.SeenAt.AddDate(300, 0, 0) },
		"ends nowhere":               func(f *domain.Flight) { f.Mission.Route[3].Position.Lat = math.Inf(1) },
		"fetches a parcel twice": func(f *domain.Flight) {
			f.Mission.Route[2].Type, f.Mission.ReachedStops = domain.WaypointWarehousePickup, 1
		},
	} {
		w := newTown(1)
		sound, spoiled := w.flying(1, domain.PriorityStandard, time.Hour), w.flying(1, domain.PriorityStandard, time.Hour)
		sound.Drone.ID, sound.Mission.DroneID, sound.Mission.ID, sound.Drone.CurrentMissionID = "SOUND", "SOUND", "M2", "M2"
		sound.Orders[0].ID, sound.Mission.OrderIDs = "OTHER", []domain.OrderID{"OTHER"}
		sound.Mission.Route[1].OrderID, sound.Mission.Route[2].OrderID = "OTHER", "OTHER"
		spoil(&spoiled)
		w.order("C", domain.PriorityCritical, north(5, 0), 0)
		_, decisions := w.planFlights(t, spoiled, sound)
		if len(decisions) != 1 || decisions[0].DroneID != "SOUND" || decisions[0].AmendsMissionID != "M2" {
			t.Errorf("%s: decisions %+v", name, decisions)
		}
	}
}

// F-AMD-02: what the drone reaches within half a minute stays its next stop.
func TestPlanner_KeepsTheStopThatADroneCannotTurnFrom(t *testing.T) {
	for name, c := range map[string]struct {
		seenAt float64
		first  string // of the stops that are not reached
	}{
		"at 43 s it can turn": {7.4, "WAREHOUSE_PICKUP URGENT"},
		"at 22 s it cannot":   {7.7, "HOSPITAL_DELIVERY ABOARD"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(0)
			w.warehouse = north(7.2, 0)
			w.order("URGENT", domain.PriorityCritical, north(7.2, 0.5), 13*time.Minute+30*time.Second)
			_, decisions := w.planFlights(t, w.flying(c.seenAt, domain.PriorityStandard, time.Hour))
			if len(decisions) != 1 || stops(decisions[0].Route)[2] != c.first {
				t.Errorf("%+v", decisions)
			}
		})
	}
}

// homebound is flying with its mission COMPLETED, after as many deliveries as a mission can have.
func (w *town) homebound(seenAt float64) domain.Flight {
	f := w.flying(seenAt, domain.PriorityStandard, time.Hour)
	f.Mission.Status, f.Mission.ReachedStops, f.Orders = domain.MissionCompleted, 3, nil
	for len(f.Mission.OrderIDs) < 64 {
		f.Mission.OrderIDs = append(f.Mission.OrderIDs, "DELIVERED")
	}
	return f
}

// F-DEC-02: a drone on its way home takes a CRITICAL order as its next mission. Other orders wait
// for a charged drone, and a drone that is about to land is left alone.
func TestPlanner_GivesDronesOnTheirWayHomeCriticalOrders(t *testing.T) {
	for _, row := range []struct {
		name     string
		seenAt   float64
		priority domain.Priority
		want     []string
	}{
		{"a CRITICAL order", 4, domain.PriorityCritical, []string{"WAREHOUSE_PICKUP WANTED", "HOSPITAL_DELIVERY WANTED", "DEPOT_RETURN "}},
		{"one that can wait", 4, domain.PriorityHigh, nil},
		{"ten seconds before it lands", 0.13, domain.PriorityCritical, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newTown(0)
			w.order("WANTED", row.priority, north(3, 1), 0)
			_, decisions := w.planFlights(t, w.homebound(row.seenAt))
			var got []string
			for _, d := range decisions {
				if d.Amends() || !slices.Equal(d.OrderIDs, []domain.OrderID{"WANTED"}) {
					t.Errorf("%+v", d)
				}
				got = stops(d.Route)
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("route %q, want %q", got, row.want)
			}
		})
	}
}

// A CRITICAL parcel aboard is never made late, not even for another CRITICAL order: 7 km in
// 8 min 25 s leave no time for a detour.
func TestPlanner_NeverMakesACriticalParcelLate(t *testing.T) {
	w := newTown(0)
	w.warehouse = north(3, 2)
	w.order("URGENT", domain.PriorityCritical, north(3, 3), 6*time.Minute)
	if result, _ := w.planFlights(t, w.flying(1, domain.PriorityCritical, 505*time.Second)); len(result.Plan.Amendments) > 0 {
		for _, s := range result.Plan.Amendments[0].Stops {
			if s.OrderID == "ABOARD" && s.ETA.After(w.now.Add(505*time.Second)) {
				t.Errorf("made late: %+v", result.Plan.Amendments[0])
			}
		}
	}
	result, _ := w.planFlights(t, w.flying(1, domain.PriorityStandard, time.Hour))
	if len(result.Plan.Amendments) != 1 || result.Plan.Amendments[0].Stops[0].OrderID != "URGENT" {
		t.Errorf("beside a STANDARD parcel: %+v", result.Plan)
	}
}

// The whole amended route must leave the drone with its reserve: 16.06 km use 40.2 %.
func TestPlanner_KeepsTheReserveOfAnAmendedRoute(t *testing.T) {
	for battery, added := range map[float64]int{61: 0, 61.5: 1} {
		w := newTown(0)
		w.order("URGENT", domain.PriorityCritical, north(8, 1), 0)
		f := w.flying(1, domain.PriorityStandard, time.Hour)
		f.Drone.Battery = battery
		if result, _ := w.planFlights(t, f); len(result.Plan.Amendments) != added {
			t.Errorf("with %v %%: %+v", battery, result.Plan)
		}
	}
}

// F-CHG-02: the rest of a flight is planned as if the drone carried all it can: 16.06 km use 56.2
// % at 3.5 % a kilometre. It will use less, because it flies home empty.
func TestPlanner_CountsThePayloadInFlight(t *testing.T) {
	for battery, added := range map[float64]int{77: 0, 77.5: 1} {
		w := newTown(0)
		w.order("URGENT", domain.PriorityCritical, north(8, 1), 0)
		f := w.flying(1, domain.PriorityStandard, time.Hour)
		f.Drone.Battery, f.Drone.PayloadCapacityKg, f.Drone.ConsumptionPerKmKg = battery, 2, 0.5
		f.Orders[0].WeightKg = 1
		result, _ := w.planFlights(t, f)
		if len(result.Plan.Amendments) != added {
			t.Errorf("with %v %%: %+v", battery, result.Plan)
			continue
		}
		for _, a := range result.Plan.Amendments {
			if used := a.BatteryUsePercent; !(used > 16.06*2.5+3 && used < 16.06*3.5-3) {
				t.Errorf("it uses %.2f %%", used)
			}
		}
	}
}

// Limits of the drone count for the whole of the mission: weight aboard, and flight time
// since take-off. 16.06 km take 19:16 min, after one minute.
func TestPlanner_KeepsADronesLimitsInFlight(t *testing.T) {
	for name, c := range map[string]struct {
		minutes int
		kg      float64
		added   int
	}{
		"enough":       {21, 3, 1},
		"too long":     {20, 3, 0},
		"too heavy":    {21, 1.9, 0},
		"at the limit": {21, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(0)
			w.order("URGENT", domain.PriorityCritical, north(8, 1), 9*time.Minute+55*time.Second) // cannot wait for the delivery
			w.orders[0].Deadline, w.orders[0].WeightKg = w.now.Add(577*time.Second), 1
			f := w.flying(1, domain.PriorityStandard, time.Hour)
			f.Orders[0].WeightKg = 1
			f.Drone.MaxFlightTimeMinutes, f.Drone.PayloadCapacityKg = c.minutes, c.kg
			if result, _ := w.planFlights(t, f); len(result.Plan.Amendments) != c.added {
				t.Errorf("%+v", result.Plan)
			}
		})
	}
}

// An amendment that gains less than a minute of a drone's time is not worth it: the
// depot's drone flies 2.4 km, and so would the one in flight on its way home.
func TestPlanner_DoesNotTurnADroneForSeconds(t *testing.T) {
	w := newTown(1)
	pickup := north(-1, 0)
	w.order("URGENT", domain.PriorityCritical, north(-1.2, 0), 0)
	w.orders[0].Pickup = &pickup
	w.orders[0].Deadline = w.now.Add(time.Hour)
	result, _ := w.planFlights(t, w.flying(1, domain.PriorityStandard, time.Hour))
	if drone, _ := carrier(result, "URGENT"); drone != "D00" || len(result.Plan.Amendments) > 0 {
		t.Errorf("plan %+v", result.Plan)
	}
}

// An order that no idle drone serves joins a flight that it delays little.
func TestPlanner_AddsAWaitingOrderToAFlight(t *testing.T) {
	w := newTown(0)
	w.order("STANDARD", domain.PriorityStandard, north(8, 1), 0)
	result, _ := w.planFlights(t, w.flying(1, domain.PriorityCritical, 14*time.Minute))
	if len(result.Plan.Amendments) != 1 || len(result.Plan.Unserved) != 0 {
		t.Errorf("plan %+v", result.Plan)
	}
}

// While a HIGH order waits for a drone, STANDARD ones make no flight longer. One that no drone
// can fly does not count.
func TestPlanner_KeepsFlightsForHighOrders(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*domain.Order)
		added int
	}{
		"needs a drone": {func(*domain.Order) {}, 0},
		"too far":       {func(o *domain.Order) { o.Delivery = north(80, 0) }, 1},
		"not stocked":   {func(o *domain.Order) { o.ProductType = "RARE" }, 1},
		"too heavy":     {func(o *domain.Order) { o.WeightKg = 9 }, 1},
		"pinned":        {func(o *domain.Order) { o.PinnedDroneID = "GROUNDED" }, 1},
	} {
		w := newTown(1) // on the ground, with too little charge now
		w.drones[0].Battery, w.drones[0].PayloadCapacityKg = 22, 5
		w.order("STANDARD", domain.PriorityStandard, north(8, 1), 0)
		w.order("HIGH", domain.PriorityHigh, north(-7, -7), 0)
		c.spoil(&w.orders[1])
		f := w.flying(1, domain.PriorityCritical, 14*time.Minute)
		f.Drone.PayloadCapacityKg = 5
		if result, _ := w.planFlights(t, f); len(result.Plan.Amendments) != c.added {
			t.Errorf("%s: plan %+v", name, result.Plan)
		}
	}
}

// A drone is where it will be when it hears of the plan: 10 s after it was seen, 139 m
// farther, with 0.35 % less.
func TestPlanner_PredictsWhereADroneIs(t *testing.T) {
	w := newTown(0)
	snap := w.snapshot()
	snap.Flights = []domain.Flight{w.flying(1, domain.PriorityCritical, 14*time.Minute)}
	p := planner.New(planner.Config{Params: solver.Params{PickupService: time.Minute}}, time.Now)
	f := p.ProblemOf(snap, w.now.Add(10*time.Second)).Flights[0]
	at, charge := domain.Position(f.Drone.At), f.Drone.BatteryPercent
	if d := at.DistanceMetres(north(1.139, 0)); d > 2 || charge < 89.65 || charge > 89.66 || f.Committed != 0 || f.StopsBehind != 2 {
		t.Errorf("%.1f m off, %v %%, %+v", d, charge, f)
	}
	// At a stop it reached 20 s ago and serves for a minute: it leaves in 40 s, and what
	// it counts as having arrived early.
	snap.Flights[0].Drone.Position, snap.Flights[0].ReachedAt = north(0.5, 0), w.now.Add(-20*time.Second)
	f = p.ProblemOf(snap, w.now.Add(10*time.Second)).Flights[0]
	if leaves := f.Ready.Sub(w.now); leaves < 40*time.Second || leaves > 46*time.Second || domain.Position(f.Drone.At).DistanceMetres(north(0.5, 0)) > 1 {
		t.Errorf("leaves in %s from %v", leaves, f.Drone.At)
	}
	// Its mission ends in 4 s: an amendment would come too late.
	snap.Flights[0].Drone.Position = north(7.944, 0)
	if flights := p.ProblemOf(snap, w.now).Flights; len(flights) > 0 {
		t.Errorf("%+v", flights)
	}
}

// The checker refuses amendments that break what the drone in flight must keep.
func TestCheck_RefusesBrokenAmendments(t *testing.T) {
	w := newTown(0)
	w.order("URGENT", domain.PriorityCritical, north(8, 1), 0)
	result, _ := w.planFlights(t, w.flying(1, domain.PriorityCritical, 505*time.Second))
	if err := check.Plan(result.Problem, result.Plan); err != nil || len(result.Plan.Amendments) != 1 {
		t.Fatalf("%v, %+v", err, result.Plan)
	}
	without := func(stops []solver.Stop, order string) []solver.Stop {
		return slices.DeleteFunc(slices.Clone(stops), func(s solver.Stop) bool { return s.OrderID == order })
	}
	for rule, breakIt := range map[string]func(p *solver.Problem, a *solver.Amendment){
		"dropped":   func(_ *solver.Problem, a *solver.Amendment) { a.Stops = without(a.Stops, "ABOARD") },
		"critical":  func(p *solver.Problem, _ *solver.Amendment) { p.Params.PickupService = time.Minute },
		"committed": func(p *solver.Problem, _ *solver.Amendment) { p.Flights[0].Committed = 1 },
		"revision":  func(_ *solver.Problem, a *solver.Amendment) { a.Revision = 2 },
		"flight":    func(_ *solver.Problem, a *solver.Amendment) { a.DroneID = "OTHER" },
		"added":     func(_ *solver.Problem, a *solver.Amendment) { a.AddedIDs = nil },
		"pairing": func(_ *solver.Problem, a *solver.Amendment) {
			a.Stops = a.Stops[:1]
			a.Stops = append(a.Stops, solver.Stop{Kind: solver.DepotReturn, At: solver.Location(depot.Position)})
		},
		"reserve": func(p *solver.Problem, _ *solver.Amendment) { p.Flights[0].Drone.BatteryPercent = 50 },
		"capacity": func(p *solver.Problem, _ *solver.Amendment) {
			p.Flights[0].Drone.CapacityKg, p.Orders[0].WeightKg = 1, 2
		},
		"flight time": func(p *solver.Problem, _ *solver.Amendment) { p.Flights[0].Drone.MaxFlight = 10 * time.Minute },
		"totals":      func(_ *solver.Problem, a *solver.Amendment) { a.DetourKm = 0 },
		"ends":        func(_ *solver.Problem, a *solver.Amendment) { a.Stops = a.Stops[:len(a.Stops)-1] },
	} {
		t.Run(rule, func(t *testing.T) {
			p, plan := result.Problem, result.Plan
			p.Flights, p.Orders, plan.Amendments = slices.Clone(p.Flights), slices.Clone(p.Orders), slices.Clone(plan.Amendments)
			plan.Amendments[0].Stops = slices.Clone(plan.Amendments[0].Stops)
			breakIt(&p, &plan.Amendments[0])
			var violations check.Violations
			want := map[string]string{"flight time": "flight"}[rule]
			if want == "" {
				want = rule
			}
			if err := check.Plan(p, plan); !errors.As(err, &violations) || !slices.ContainsFunc(violations, func(f check.Violation) bool { return f.Rule == want }) {
				t.Errorf("came to %v", err)
			}
		})
	}
}
