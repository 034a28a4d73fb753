package planner_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/check"
)

// yetToFetch adds an order to a flight that it fetches and delivers after what it has.
func yetToFetch(f domain.Flight, o domain.Order, pickup domain.Position) domain.Flight {
	o.Status, o.Pickup = domain.OrderAssigned, &pickup
	f.Orders = append(slices.Clone(f.Orders), o)
	f.Mission.OrderIDs = append(slices.Clone(f.Mission.OrderIDs), o.ID)
	f.Mission.Route = slices.Insert(slices.Clone(f.Mission.Route), len(f.Mission.Route)-1,
		domain.Waypoint{Type: domain.WaypointWarehousePickup, Position: pickup, OrderID: o.ID},
		domain.Waypoint{Type: domain.WaypointHospitalDelivery, Position: o.Delivery, OrderID: o.ID})
	return f
}

// later is an order that a flight has yet to fetch.
func (w *town) later(p domain.Priority, to domain.Position) domain.Order {
	return domain.Order{
		ID: "LATER", CreatedAt: w.now.Add(-time.Minute), Deadline: w.now.Add(time.Hour),
		OrderContent: domain.OrderContent{Priority: p, ProductType: "BLOOD", Delivery: to, WeightKg: 1},
	}
}

// crowded is a flight with room for two parcels that carries one and fetches LATER next. A
// CRITICAL order waits that fits only without LATER.
func (w *town) crowded(p domain.Priority) domain.Flight {
	w.order("URGENT", domain.PriorityCritical, north(8, 1), 0)
	w.orders[0].Deadline, w.orders[0].WeightKg = w.now.Add(10*time.Minute), 1
	f := yetToFetch(w.flying(1, domain.PriorityStandard, time.Hour), w.later(p, north(8, 3)), w.warehouse)
	f.Orders[0].WeightKg, f.Drone.PayloadCapacityKg, f.Drone.Battery = 1, 2, 78
	// It fetches LATER on the way to its first delivery.
	route := f.Mission.Route
	route[2], route[3] = route[3], route[2]
	return f
}

// F-AMD-04: to bring a CRITICAL order in time, an order that is not fetched is taken away.
func TestPlanner_TakesAnOrderAwayForACriticalOne(t *testing.T) {
	w := newTown(0)
	result, decisions := w.planFlights(t, w.crowded(domain.PriorityStandard))
	if len(decisions) != 1 || len(result.Plan.Unserved) != 0 {
		t.Fatalf("plan %+v", result.Plan)
	}
	want := []string{
		"DEPOT_START ", "WAREHOUSE_PICKUP ABOARD", "WAREHOUSE_PICKUP URGENT", "HOSPITAL_DELIVERY ABOARD", "HOSPITAL_DELIVERY URGENT", "DEPOT_RETURN ",
	}
	if d := decisions[0]; !slices.Equal(stops(d.Route), want) || !slices.Equal(d.OrderIDs, []domain.OrderID{"ABOARD", "URGENT"}) {
		t.Errorf("decision %+v", d)
	}
	if a := result.Plan.Amendments[0]; !slices.Equal(a.ReleasedIDs, []string{"LATER"}) || !slices.Equal(a.AddedIDs, []string{"URGENT"}) {
		t.Errorf("amendment %+v", a)
	}
}

// F-AMD-04: no drone is reserved for an order that is taken away, so a CRITICAL one that its drone
// delivers in time stays.
func TestPlanner_NeverTakesACriticalOrderInTimeAway(t *testing.T) {
	w := newTown(1)
	w.drones[0].Battery = 30 // enough for neither
	f := w.crowded(domain.PriorityCritical)
	f.Orders[1].Deadline = w.now.Add(14 * time.Minute)
	result, _ := w.planFlights(t, f)
	for _, a := range result.Plan.Amendments {
		if len(a.ReleasedIDs) > 0 {
			t.Errorf("amendment %+v", a)
		}
	}
}

// passing is a flight that crosses the way of FLYING: 5 km north, on its way 6 km east.
func (w *town) passing() domain.Flight {
	f := w.flying(5, domain.PriorityStandard, time.Hour)
	f.Drone.ID, f.Drone.CurrentMissionID, f.Mission.ID, f.Mission.DroneID = "PASSING", "P", "P", "PASSING"
	f.Orders[0].ID, f.Orders[0].Delivery = "EASTWARD", north(5, 6)
	f.Mission.OrderIDs = []domain.OrderID{"EASTWARD"}
	f.Mission.Route = slices.Clone(f.Mission.Route)
	for i := range f.Mission.Route[1:3] {
		f.Mission.Route[i+1].OrderID = "EASTWARD"
	}
	f.Mission.Route[2].Position = north(5, 6)
	return f
}

// planWith plans the town with drones in flight, by a planner that remembers.
func (w *town) planWith(t *testing.T, p *planner.Planner, flights ...domain.Flight) (solver.Plan, []domain.Decision) {
	t.Helper()
	snap := w.snapshot()
	snap.CycleID, snap.Flights = "C1", flights
	result, err := p.PlanSnapshot(t.Context(), snap, w.now)
	if err != nil {
		t.Fatal(err)
	}
	return result.Plan, planner.DecisionsOf(result.Plan, snap)
}

// F-AMD-04: an order that another drone serves with much less of its time moves there in two
// steps: first it is taken away, and once it waits it is added. It does not move again.
func TestPlanner_MovesAnOrderBetweenFlightsInTwoSteps(t *testing.T) {
	w, p := newTown(0), newPlanner(t)
	later := w.later(domain.PriorityStandard, north(5, 5))
	giver := yetToFetch(w.flying(1, domain.PriorityStandard, time.Hour), later, north(5, 4))
	plan, decisions := w.planWith(t, p, giver, w.passing())
	if len(decisions) != 1 || decisions[0].DroneID != "FLYING" || !slices.Equal(decisions[0].OrderIDs, []domain.OrderID{"ABOARD"}) ||
		!slices.Equal(stops(decisions[0].Route), []string{"DEPOT_START ", "WAREHOUSE_PICKUP ABOARD", "HOSPITAL_DELIVERY ABOARD", "DEPOT_RETURN "}) {
		t.Fatalf("first step: %+v", plan)
	}
	if a := plan.Amendments[0]; !slices.Equal(a.ReleasedIDs, []string{"LATER"}) || a.Detour > -5*time.Minute {
		t.Errorf("first step: %+v", a)
	}

	pickup := north(5, 4)
	later.Status, later.Pickup = domain.OrderPending, &pickup
	w.orders = []domain.Order{later}
	plan, decisions = w.planWith(t, p, w.flying(1, domain.PriorityStandard, time.Hour), w.passing())
	if len(decisions) != 1 || decisions[0].DroneID != "PASSING" || !slices.Equal(decisions[0].OrderIDs, []domain.OrderID{"EASTWARD", "LATER"}) {
		t.Fatalf("second step: %+v", plan)
	}

	w.orders = nil // FLYING has it again, whatever happened
	if plan, _ = w.planWith(t, p, giver, w.passing()); len(plan.Amendments) > 0 {
		t.Errorf("third step: %+v", plan)
	}
}

// F-AMD-04: an order whose pickup is less than half a minute away stays, and so does one for
// which no other drone is much better.
func TestPlanner_LeavesOrdersThatItCannotOrNeedNotMove(t *testing.T) {
	for name, pickup := range map[string]domain.Position{
		"committed":  north(1.3, 0),
		"on the way": north(7, 0),
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(0)
			f := yetToFetch(w.flying(1, domain.PriorityStandard, time.Hour), w.later(domain.PriorityStandard, north(5, 5)), pickup)
			route := f.Mission.Route
			route[2], route[3] = route[3], route[2]
			if name == "on the way" {
				f.Orders[1].Delivery, route[4].Position = north(8.2, 0), north(8.2, 0)
			}
			if result, _ := w.planFlights(t, f, w.passing()); len(result.Plan.Amendments) > 0 {
				t.Errorf("plan %+v", result.Plan.Amendments)
			}
		})
	}
}

// Stops ahead are put in a better order if that saves two minutes or more. A revision is looked
// at once.
func TestPlanner_PutsStopsInABetterOrder(t *testing.T) {
	w, p := newTown(0), newPlanner(t)
	f := w.flying(1, domain.PriorityStandard, time.Hour)
	for id, at := range map[domain.OrderID]domain.Position{"B": north(3, 4), "C": north(8, 1)} {
		o := f.Orders[0]
		o.ID, o.Delivery = id, at
		f.Orders = append(f.Orders, o)
	}
	stop := func(kind domain.WaypointType, id domain.OrderID, at domain.Position) domain.Waypoint {
		return domain.Waypoint{Type: kind, OrderID: id, Position: at}
	}
	pickup, delivery := domain.WaypointWarehousePickup, domain.WaypointHospitalDelivery
	f.Mission.OrderIDs = []domain.OrderID{"ABOARD", "B", "C"}
	f.Mission.ReachedStops = 4
	f.Mission.Route = []domain.Waypoint{
		{Type: domain.WaypointDepotStart, Position: depot.Position},
		stop(pickup, "ABOARD", north(0.5, 0)), stop(pickup, "B", north(0.5, 0)), stop(pickup, "C", north(0.5, 0)),
		stop(delivery, "ABOARD", north(8, 0)), stop(delivery, "B", north(3, 4)), stop(delivery, "C", north(8, 1)),
		{Type: domain.WaypointDepotReturn, Position: depot.Position},
	}
	plan, decisions := w.planWith(t, p, f)
	if len(decisions) != 1 || len(plan.Amendments[0].AddedIDs)+len(plan.Amendments[0].ReleasedIDs) > 0 || plan.Amendments[0].Detour > -5*time.Minute {
		t.Fatalf("plan %+v", plan)
	}
	want := []string{"HOSPITAL_DELIVERY ABOARD", "HOSPITAL_DELIVERY C", "HOSPITAL_DELIVERY B", "DEPOT_RETURN "}
	if d := decisions[0]; !slices.Equal(stops(d.Route)[4:], want) || len(d.OrderIDs) != 3 {
		t.Errorf("decision %+v", d)
	}
	if plan, _ = w.planWith(t, p, f); len(plan.Amendments) > 0 {
		t.Errorf("again: %+v", plan)
	}
}

// F-AMD-04: the checker accepts a missing order only if the amendment lists it as taken away, and
// it may be.
func TestCheck_RefusesWhatMustNotBeTakenAway(t *testing.T) {
	w := newTown(0)
	result, _ := w.planFlights(t, w.crowded(domain.PriorityStandard))
	if err := check.Plan(result.Problem, result.Plan); err != nil || len(result.Plan.Amendments) != 1 {
		t.Fatalf("%v, %+v", err, result.Plan)
	}
	for name, row := range map[string]struct {
		rule    string
		breakIt func(f *solver.Flight, a *solver.Amendment)
	}{
		"without saying so":      {"dropped", func(_ *solver.Flight, a *solver.Amendment) { a.ReleasedIDs = nil }},
		"an order in the route":  {"released", func(_ *solver.Flight, a *solver.Amendment) { a.ReleasedIDs = append(a.ReleasedIDs, "URGENT") }},
		"a parcel aboard":        {"released", func(_ *solver.Flight, a *solver.Amendment) { a.ReleasedIDs = append(a.ReleasedIDs, "ABOARD") }},
		"twice":                  {"released", func(_ *solver.Flight, a *solver.Amendment) { a.ReleasedIDs = append(a.ReleasedIDs, "LATER") }},
		"a pickup that is near":  {"committed", func(f *solver.Flight, _ *solver.Amendment) { f.Committed = 1 }},
		"a parcel fetched since": {"released", func(f *solver.Flight, _ *solver.Amendment) { f.Stops = f.Stops[1:] }},
		"CRITICAL and in time":   {"critical", func(f *solver.Flight, _ *solver.Amendment) { f.Orders[1].Priority = solver.Critical }},
		"nothing, and no change": {"empty", func(f *solver.Flight, a *solver.Amendment) { a.Stops, a.AddedIDs, a.ReleasedIDs = f.Stops, nil, nil }},
		"what it still delivers": {"released", func(f *solver.Flight, a *solver.Amendment) {
			a.Stops = slices.Insert(a.Stops, 1, f.Stops[0])
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p, plan := result.Problem, result.Plan
			p.Flights, plan.Amendments = slices.Clone(p.Flights), slices.Clone(plan.Amendments)
			f, a := &p.Flights[0], &plan.Amendments[0]
			f.Orders, a.Stops, a.ReleasedIDs = slices.Clone(f.Orders), slices.Clone(a.Stops), slices.Clone(a.ReleasedIDs)
			row.breakIt(f, a)
			var violations check.Violations
			if err := check.Plan(p, plan); !errors.As(err, &violations) || !slices.ContainsFunc(violations, func(f check.Violation) bool { return f.Rule == row.rule }) {
				t.Errorf("came to %v", err)
			}
		})
	}
}
