package planner_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/check"
)

// withAdvance is a planner that sends drones to advance positions.
func withAdvance(t interface{ Error(...any) }) *planner.Planner {
	return planner.New(planner.Config{
		Options: solver.Options{Iterations: 50, Workers: 1}, Advance: true,
		Refused: func(_ solver.Problem, broken error) { t.Error(broken) },
	}, time.Now)
}

// busyTown is a town that has just seen CRITICAL orders, its drones, and a planner that
// remembers the orders.
func busyTown(t *testing.T, drones int) (*town, *planner.Planner) {
	t.Helper()
	w, p := newTown(drones), withAdvance(t)
	for i := range w.drones {
		w.drones[i].SupportsAmendments, w.drones[i].SupportsStandby, w.drones[i].Battery = true, true, 100
	}
	all := w.drones
	for i := range 10 {
		w.order(fmt.Sprint("PAST", i), domain.PriorityCritical, north(5+float64(i%3), 0), 0)
	}
	w.drones = w.drones[:1]
	w.plan(t, p)
	w.drones, w.orders = all, nil
	return w, p
}

// next plans one cycle of the town, with flights, and lists the decisions.
func (w *town) next(t *testing.T, p *planner.Planner, flights ...domain.Flight) (planner.Result, []domain.Decision) {
	t.Helper()
	snap := w.snapshot()
	snap.CycleID, snap.Flights = "C", flights
	result, err := p.PlanSnapshot(t.Context(), snap, w.now)
	if err != nil {
		t.Fatal(err)
	}
	return result, planner.DecisionsOf(result.Plan, snap)
}

// onStandby is the flight of a drone on the mission that a decision without orders began.
func (w *town) onStandby(d domain.Decision, at domain.Position, battery float64) domain.Flight {
	return domain.Flight{
		Drone: domain.Drone{
			ID: d.DroneID, HomeDepotID: depot.ID, Position: at, Battery: battery, SeenAt: w.now, SupportsAmendments: true, SupportsStandby: true,
			CurrentMissionID: "STANDBY", MissionAcked: true, NamedRevision: 1, Status: domain.DroneIdle,
		},
		Mission: domain.Mission{ID: "STANDBY", DroneID: d.DroneID, Status: domain.MissionActive, StartTime: w.now, RouteRevision: 1, ReachedStops: 1, Route: d.Route},
	}
}

// F-AMD-06: drones that nobody needs wait where CRITICAL orders are expected, no more than a
// quarter of them, and no more in one cycle than the next can correct.
func TestPlanner_SendsDronesToAdvancePositions(t *testing.T) {
	w, p := busyTown(t, 12)
	result, decisions := w.next(t, p)
	if n := len(decisions); n != 3 || len(result.Plan.Standby) != n {
		t.Fatalf("of 12 drones %d are sent, want a quarter: %+v", n, decisions)
	}
	for _, d := range decisions {
		want := []string{"DEPOT_START ", "WAIT ", "DEPOT_RETURN "}
		if !slices.Equal(stops(d.Route), want) || len(d.OrderIDs) != 0 || d.Amends() || d.Route[1].Position != w.warehouse {
			t.Errorf("decision %+v", d)
		}
		if wait := d.Route[1].WaitUntil.Sub(w.now); wait < 10*time.Minute || wait > 20*time.Minute {
			t.Errorf("it waits for %s", wait)
		}
		if d.EstimatedBatteryConsumption < 14 || d.EstimatedBatteryConsumption > 16 { // 6 km
			t.Errorf("it is to use %.1f %%", d.EstimatedBatteryConsumption)
		}
	}
}

// F-AMD-06: only drones that support it get missions without orders, and only if there was demand
// and --position is set.
func TestPlanner_SendsNobodyToAdvancePositionsWithoutReason(t *testing.T) {
	w, p := busyTown(t, 12)
	for i := range w.drones {
		w.drones[i].SupportsStandby = false
	}
	if _, decisions := w.next(t, p); len(decisions) != 0 {
		t.Errorf("drones without support: %+v", decisions)
	}
	fresh := newTown(12)
	for i := range fresh.drones {
		fresh.drones[i].SupportsStandby = true
	}
	if _, decisions := fresh.next(t, withAdvance(t)); len(decisions) != 0 {
		t.Errorf("without any order yet: %+v", decisions)
	}
	w.order("C", domain.PriorityCritical, north(6, 0), 0)
	if result, _ := w.next(t, newPlanner(t)); len(result.Plan.Standby) != 0 {
		t.Errorf("not configured: %+v", result.Plan.Standby)
	}
}

// F-AMD-06: a drone that would arrive when its wait may be over stays where it is. The checker
// must not refuse the whole plan for it.
func TestPlanner_SendsNobodyWhoWouldArriveTooLate(t *testing.T) {
	w, p := busyTown(t, 12)
	for i := range w.drones {
		w.drones[i].SupportsStandby = i == 0 || i == 1
	}
	w.drones[0].Position, w.drones[0].ConsumptionPerKm = north(-28, 0), 0.5 // 31 km from the warehouse
	if _, decisions := w.next(t, p); len(decisions) != 1 || decisions[0].DroneID != w.drones[1].ID {
		t.Errorf("%+v", decisions)
	}
	w.drones[1].SupportsStandby = false
	if _, decisions := w.next(t, p); len(decisions) != 0 {
		t.Errorf("the far drone is sent: %+v", decisions)
	}
}

// F-LRN-04 F-AMD-06: a planner that has seen no order yet sends drones to the warehouse near which
// CRITICAL orders are expected at this hour, however many other orders come elsewhere.
func TestPlanner_SendsDronesWhereThePastExpectsThem(t *testing.T) {
	w := newTown(12)
	for i := range w.drones {
		w.drones[i].SupportsAmendments, w.drones[i].SupportsStandby, w.drones[i].Battery = true, true, 100
	}
	south := north(-3, 0)
	sent := func(learned domain.Demand) (at []domain.Position) {
		p := withAdvance(t)
		p.Learn(learning.Estimates{Demand: learning.EstimateDemand(learned)})
		snap := w.snapshot()
		snap.CycleID = "C"
		other := snap.Warehouses[0]
		other.ID, other.Position = "SOUTH", south
		snap.Warehouses = append(snap.Warehouses, other)
		result, err := p.PlanSnapshot(t.Context(), snap, w.now)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range planner.DecisionsOf(result.Plan, snap) {
			at = append(at, d.Route[1].Position)
		}
		return at
	}
	d := domain.Demand{Hours: make([]domain.HourDemand, 24)}
	for h := range d.Hours {
		d.Hours[h] = domain.HourDemand{Hours: 100, Orders: [3]float64{0, 0, 3000}}
	}
	point := func(km float64, standard, critical float64) domain.PointDemand {
		return domain.PointDemand{Position: north(km, 0), Orders: [3]float64{standard, 0, critical}, ProductType: "BLOOD"}
	}
	d.Points = []domain.PointDemand{point(6, 500, 0), point(7, 400, 0), point(-6, 0, 300)}
	if at := sent(d); len(at) == 0 || slices.ContainsFunc(at, func(p domain.Position) bool { return p != south }) {
		t.Errorf("CRITICAL orders come in the south: sent to %v", at)
	}
	d.Points = []domain.PointDemand{point(6, 0, 300), point(-6, 500, 1)}
	if at := sent(d); len(at) == 0 || slices.Contains(at, south) {
		t.Errorf("CRITICAL orders come in the north: sent to %v", at)
	}
}

// F-AMD-06: an order goes to the drone that waits, which it takes from its mission at once.
func TestPlanner_GivesADroneOnStandbyTheOrder(t *testing.T) {
	w, p := busyTown(t, 12)
	_, sent := w.next(t, p)
	flight := w.onStandby(sent[0], w.warehouse, 80)
	w.drones = w.drones[3:]
	// From the depot it could not be in time.
	w.order("URGENT", domain.PriorityCritical, north(12, 0), 2*time.Minute)
	_, decisions := w.next(t, p, flight)
	i := slices.IndexFunc(decisions, func(d domain.Decision) bool { return len(d.OrderIDs) > 0 })
	if i < 0 {
		t.Fatalf("nobody has the order: %+v", decisions)
	}
	d := decisions[i]
	want := []string{"WAREHOUSE_PICKUP URGENT", "HOSPITAL_DELIVERY URGENT", "DEPOT_RETURN "}
	if d.DroneID != flight.Drone.ID || d.AmendsMissionID != "STANDBY" || d.AmendsRevision != 1 || !slices.Equal(stops(d.Route), want) {
		t.Errorf("decision %+v", d)
	}
}

// F-AMD-06: a drone that waits where it is needed stays, is told to wait on before its wait
// is over, and comes home to charge when it could serve few of the orders to come.
func TestPlanner_LeavesDronesOnStandby(t *testing.T) {
	w, p := busyTown(t, 12)
	_, sent := w.next(t, p)
	w.drones = w.drones[3:]
	var flights []domain.Flight
	for _, d := range sent {
		flights = append(flights, w.onStandby(d, w.warehouse, 80))
	}
	if _, decisions := w.next(t, p, flights...); len(decisions) != 0 {
		t.Errorf("in the next cycle: %+v", decisions)
	}
	flights[0].Drone.Battery = 30 // enough to fly home, not to serve an order
	_, decisions := w.next(t, p, flights...)
	home := decisions[slices.IndexFunc(decisions, func(d domain.Decision) bool { return d.Amends() })]
	if home.DroneID != flights[0].Drone.ID || !slices.Equal(stops(home.Route), []string{"CHARGE ", "DEPOT_RETURN "}) || home.Route[0].ChargeToPercent < 90 {
		t.Errorf("to charge: %+v", home)
	}
	flights = flights[1:]
	w.now = w.now.Add(13 * time.Minute)
	for i := range flights {
		flights[i].Drone.SeenAt = w.now
	}
	_, decisions = w.next(t, p, flights...)
	for _, d := range decisions {
		if d.Amends() && (!slices.Equal(stops(d.Route), []string{"WAIT ", "DEPOT_RETURN "}) || d.Route[0].WaitUntil.Sub(w.now) != 15*time.Minute) {
			t.Errorf("to wait on: %+v", d)
		}
	}
	if n := len(decisions); n < 2 {
		t.Errorf("%d decisions, want the waits renewed: %+v", n, decisions)
	}
}

// F-AMD-06: a drone on its way home with the charge for it waits instead.
func TestPlanner_SendsDronesOnTheirWayHomeToAdvancePositions(t *testing.T) {
	w, p := busyTown(t, 12)
	w.next(t, p) // it learns how many drones there are
	w.drones = nil
	flight := w.homebound(4)
	flight.Drone.SupportsStandby, flight.Drone.Battery = true, 95
	_, decisions := w.next(t, p, flight)
	if len(decisions) != 1 || decisions[0].Amends() || !slices.Equal(stops(decisions[0].Route), []string{"WAIT ", "DEPOT_RETURN "}) {
		t.Errorf("decisions %+v", decisions)
	}
}

// F-CHG-01: no more drones are called home to charge than the depot has slots for.
func TestPlanner_NeverNeedsMoreSlotsThanThereAre(t *testing.T) {
	for slots, want := range map[int]int{0: 3, 1: 0, 2: 1, 3: 2} {
		w, p := busyTown(t, 12)
		_, sent := w.next(t, p)
		var flights []domain.Flight
		for _, d := range sent {
			flights = append(flights, w.onStandby(d, w.warehouse, 30))
		}
		w.drones = nil
		snap := w.snapshot()
		snap.CycleID, snap.Flights, snap.Depot.ChargingSlots = "C", flights, slots
		snap.Charging = []domain.Drone{{ID: "CHARGING", HomeDepotID: depot.ID}}
		result, err := p.PlanSnapshot(t.Context(), snap, w.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(result.Plan.Standby); got != want {
			t.Errorf("%d slots, of which one is taken: %d drones are called home, want %d", slots, got, want)
		}
	}
}

// F-AMD-06 F-CHG-01: the checker flies missions without orders again.
func TestCheck_RefusesBrokenStandby(t *testing.T) {
	w, p := busyTown(t, 12)
	_, sent := w.next(t, p)
	w.drones = w.drones[1:]
	result, _ := w.next(t, p, w.onStandby(sent[0], w.warehouse, 30))
	if err := check.Plan(result.Problem, result.Plan); err != nil || len(result.Plan.Standby) < 2 {
		t.Fatalf("%v, %+v", err, result.Plan.Standby)
	}
	charges := slices.IndexFunc(result.Plan.Standby, func(s solver.Standby) bool { return s.Stops[0].Kind == solver.Charge })
	waits := slices.IndexFunc(result.Plan.Standby, func(s solver.Standby) bool { return s.Stops[0].Kind == solver.DepotStart })
	for rule, spoil := range map[string]func(p *solver.Problem, list []solver.Standby){
		"reserve": func(p *solver.Problem, list []solver.Standby) { p.Params.ReservePercent = 90 },
		"slots": func(p *solver.Problem, list []solver.Standby) {
			p.Depots[0].ChargingSlots, p.Depots[0].SlotsTaken = 1, 1
		},
		"standby": func(p *solver.Problem, list []solver.Standby) {
			p.Drones[0].SupportsStandby = false
			list[waits].DroneID = p.Drones[0].ID
		},
		"revision": func(p *solver.Problem, list []solver.Standby) { list[charges].Revision++ },
		"wait":     func(p *solver.Problem, list []solver.Standby) { list[waits].Stops[1].Until = p.Now.Add(3 * time.Hour) },
		"charge":   func(p *solver.Problem, list []solver.Standby) { list[charges].Stops[0].ChargeToPercent = 101 },
		"eta":      func(p *solver.Problem, list []solver.Standby) { list[waits].Stops[1].ETA = p.Now },
		"ends":     func(p *solver.Problem, list []solver.Standby) { list[waits].Stops = list[waits].Stops[:2] },
		"drone":    func(p *solver.Problem, list []solver.Standby) { list[waits].DroneID = "X" },
	} {
		problem, plan := result.Problem, result.Plan
		problem.Depots, problem.Drones = slices.Clone(problem.Depots), slices.Clone(problem.Drones)
		plan.Standby = slices.Clone(plan.Standby)
		for i := range plan.Standby {
			plan.Standby[i].Stops = slices.Clone(plan.Standby[i].Stops)
		}
		spoil(&problem, plan.Standby)
		broken := check.Plan(problem, plan)
		if broken == nil || !slices.ContainsFunc(broken.(check.Violations), func(f check.Violation) bool { return f.Rule == rule }) {
			t.Errorf("%s: found %v", rule, broken)
		}
	}
}
