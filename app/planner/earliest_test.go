package planner_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// fleetOf is the whole of a moment.
func fleetOf(m planner.Moment) planner.Fleet {
	f := planner.Fleet{
		Now: m.Snapshot.ReadTime, Drones: m.Drones, Missions: m.Missions, Orders: slices.Clone(m.Snapshot.Orders),
		Depots: m.Snapshot.Depots(), Warehouses: m.Snapshot.Warehouses,
	}
	for _, flight := range m.Snapshot.Flights {
		f.Orders = append(f.Orders, flight.Orders...)
	}
	return f
}

func arrivals(f planner.Fleet) *planner.Arrivals {
	return planner.NewArrivals(planner.Config{}, policy.DefaultDronePolicy(), f)
}

// F-LIVE-05: each drone begins when and where it can. The order is 8 km away: the flight takes 9.6 min,
// and 60 % of the charge to land with 20 %.
func TestArrivals_CountEachDroneFromWhenItCanBegin(t *testing.T) {
	far := ordered("FAR", domain.PriorityCritical, 8, 1)
	for _, tt := range []struct {
		name   string
		drone  int // of moment: FLIES, CHARGES, IDLE
		change func(d *domain.Drone, o *domain.Order)
		want   float64 // minutes; negative for never
	}{
		{"idle", 2, func(d *domain.Drone, _ *domain.Order) { d.Battery = 61 }, 9.6},
		{"idle, charges first", 2, func(*domain.Drone, *domain.Order) {}, 5 + 9.6},
		{"idle at the delivery point", 2, func(d *domain.Drone, _ *domain.Order) { d.Position, d.Battery = northOf(8), 81 }, 9.6 + 9.6},
		{"idle away from home, charges there", 2, func(d *domain.Drone, _ *domain.Order) { d.Position = northOf(4) }, 4.8 + 6 + 9.6},
		{"flies, lands, charges", 0, func(*domain.Drone, *domain.Order) {}, 18 + 4.75 + 9.6},
		{"flies home, has served its orders", 0, func(d *domain.Drone, _ *domain.Order) {
			d.CurrentMissionID, d.Homebound, d.SupportsAmendments, d.MissionAcked = "M-0", true, true, true
		}, 6 + 9.6},
		{"flies home without amendments", 0, func(d *domain.Drone, _ *domain.Order) { d.CurrentMissionID, d.Homebound = "M-0", true }, 6 + 9.6},
		{"charges", 1, func(*domain.Drone, *domain.Order) {}, 7 + 9.6},
		{"charges slowly", 1, func(d *domain.Drone, _ *domain.Order) { d.ChargeRate = 1 }, 70 + 9.6},
		{"grounded", 2, func(d *domain.Drone, _ *domain.Order) { d.Grounded = true }, -1},
		{"retired", 2, func(d *domain.Drone, _ *domain.Order) { d.RetiredAt = noon }, -1},
		{"not registered", 2, func(d *domain.Drone, _ *domain.Order) { d.Unregistered = true }, -1},
		{"silent", 2, func(d *domain.Drone, _ *domain.Order) { d.Status = domain.DroneUnknown }, -1},
		{"in maintenance", 2, func(d *domain.Drone, _ *domain.Order) { d.Status = domain.DroneMaintenance }, -1},
		{"too weak", 2, func(_ *domain.Drone, o *domain.Order) { o.WeightKg = 2.1 }, -1},
		{"without a cold box", 2, func(d *domain.Drone, o *domain.Order) { d.RegisteredAt, o.ColdChain = noon, true }, -1},
		{"beyond its range when full", 2, func(_ *domain.Drone, o *domain.Order) { o.Delivery = northOf(17) }, -1},
		{"forbidden", 2, func(_ *domain.Drone, o *domain.Order) { o.ForbiddenDroneIDs = []domain.DroneID{"IDLE"} }, -1},
		{"product of no warehouse", 2, func(_ *domain.Drone, o *domain.Order) { o.ProductType = "PLASMA" }, -1},
		{"with a spoiled charge", 2, func(d *domain.Drone, _ *domain.Order) { d.Battery = math.NaN() }, -1},
		{"with a spoiled rate", 2, func(d *domain.Drone, _ *domain.Order) { d.ChargeRate = 1e-300 }, 24*60 + 9.6},
		{"with its own pickup", 2, func(d *domain.Drone, o *domain.Order) {
			at := northOf(-1)
			o.Pickup, o.ProductType, d.Battery = &at, "", 90
		}, 10 * 1.2},
	} {
		m := moment(far)
		d, o := m.Drones[tt.drone], far
		tt.change(&d, &o)
		m.Drones = []domain.Drone{d}
		got := arrivals(fleetOf(m)).Earliest(o)
		switch took := got.At.Sub(noon).Minutes(); {
		case tt.want < 0 && got != planner.Arrival{}:
			t.Errorf("%s: %+v", tt.name, got)
		case tt.want >= 0 && (got.DroneID != d.ID || math.Abs(took-tt.want) > 0.03):
			t.Errorf("%s: %s after %.2f min, want %.2f", tt.name, got.DroneID, took, tt.want)
		}
	}
	if got := arrivals(planner.Fleet{Now: noon}).Earliest(far); got != (planner.Arrival{}) {
		t.Errorf("an empty fleet: %+v", got)
	}
}

// F-LIVE-05, F-ORD-06: the earliest arrival is what an explanation and a plan say of the same fleet.
func TestArrivals_AgreeWithExplanations(t *testing.T) {
	planned, listed := 0, 0
	for seed := range uint64(40) {
		d := seededDraw(seed)
		o := ordered("O", domain.PriorityCritical, 0, 1)
		o.Delivery = domain.Position{Lat: d.float("lat", -0.07, 0.07), Lon: d.float("lon", -0.07, 0.07)}
		m := moment(o)
		model := m.Drones[2]
		m.Drones, m.Snapshot.Drones = nil, nil
		for i := range 12 {
			one := model
			one.ID, one.Battery = domain.DroneID(fmt.Sprint("D", i)), d.float("battery", 25, 100)
			one.PayloadCapacityKg = []float64{0, 0.5, 2}[d.int("capacity", 0, 2)]
			if d.int("away", 1, 3) == 1 {
				one.Position = domain.Position{Lat: d.float("lat", -0.05, 0.05), Lon: d.float("lon", -0.05, 0.05)}
			}
			m.Drones = append(m.Drones, one)
		}
		m.Snapshot.Drones = m.Drones
		got := arrivals(fleetOf(m)).Earliest(o)
		e := explained(t, m, "O", planner.WhatIf{})
		if a := e.Plan.Arrival; a != nil {
			planned++
			if late := got.At.Sub(*a); late > time.Second {
				t.Errorf("seed %d: earliest %+v, and the plan has %s at %s", seed, got, e.Plan.DroneID, a)
			}
		}
		able := slices.IndexFunc(e.Nearest, func(c planner.Candidate) bool {
			return len(c.Lacks) == 0 || len(c.Lacks) == 1 && strings.HasSuffix(c.Lacks[0], "it would be late")
		})
		if able < 0 {
			continue
		}
		listed++
		if c := e.Nearest[able]; got.At.Sub(c.Arrival).Abs() > 3*time.Second {
			t.Errorf("seed %d: earliest %+v, and the explanation lists %s at %s", seed, got, c.DroneID, c.Arrival)
		}
	}
	if planned < 20 || listed < 20 {
		t.Errorf("compared with %d plans and %d explanations", planned, listed)
	}
}

// F-LIVE-05: an order that can join a mission under way arrives with it. A cycle plans the cheapest way
// that is in time, which may be later than the soonest.
func TestArrivals_CountMissionsUnderWay(t *testing.T) {
	w := newTown(0)
	w.order("URGENT", domain.PriorityCritical, north(8, 1), 0)
	w.orders[0].Status = domain.OrderPending
	m := planner.Moment{Snapshot: w.snapshot()}
	f := w.flying(1, domain.PriorityCritical, 14*time.Minute)
	m.Snapshot.Flights, m.Drones, m.Missions = []domain.Flight{f}, []domain.Drone{f.Drone}, []domain.Mission{f.Mission}
	plan := explained(t, m, "URGENT", planner.WhatIf{}).Plan
	got := arrivals(fleetOf(m)).Earliest(w.orders[0])
	if plan.Arrival == nil || got.DroneID != plan.DroneID || got.At.After(*plan.Arrival) {
		t.Errorf("earliest %+v, plan %+v", got, plan)
	}
	// If only the soonest way is in time, a cycle takes that one.
	m.Snapshot.Orders[0].Deadline = got.At.Add(time.Second)
	if plan = explained(t, m, "URGENT", planner.WhatIf{}).Plan; plan.Arrival == nil || plan.Arrival.Sub(got.At).Abs() > 2*time.Second {
		t.Errorf("earliest %+v, plan in a hurry %+v", got, plan)
	}
	m.Missions[0].RecalledAt = w.now
	if recalled := arrivals(fleetOf(m)).Earliest(w.orders[0]); recalled.DroneID != "FLYING" || !recalled.At.After(got.At.Add(5*time.Minute)) {
		t.Errorf("a recalled mission takes the order: %+v", recalled)
	}
}

// busyFleet is a fleet of which three in four drones fly, with orders that wait.
func busyFleet(drones, orders int) (planner.Fleet, []domain.Order) {
	d := seededDraw(1)
	at := func() domain.Position {
		return domain.Position{Lat: d.float("lat", -0.1, 0.1), Lon: d.float("lon", -0.1, 0.1)}
	}
	f := planner.Fleet{Now: noon}
	for i := range 5 {
		f.Depots = append(f.Depots, domain.Depot{ID: domain.DepotID(fmt.Sprint("D", i)), Position: at()})
		f.Warehouses = append(f.Warehouses, domain.Warehouse{ID: domain.WarehouseID(fmt.Sprint("W", i)), Position: at(), ProductTypes: []string{"BLOOD"}})
	}
	for i := range drones {
		depot := f.Depots[i%len(f.Depots)]
		one := domain.Drone{
			ID: domain.DroneID(fmt.Sprint("D", i)), Status: domain.DroneIdle, Battery: d.float("battery", 40, 100), Position: depot.Position, HomeDepotID: depot.ID,
			SeenAt: noon, ConsumptionPerKm: 2.5, PayloadCapacityKg: 5, MaxFlightTimeMinutes: 60, SupportsAmendments: true,
		}
		if i%4 > 0 {
			o, id := ordered(domain.OrderID(fmt.Sprint("F", i)), domain.PriorityHigh, 0, 1), domain.MissionID(fmt.Sprint("M", i))
			o.Status, o.Delivery, o.AssignedMissionID = domain.OrderAssigned, at(), id
			pickup := f.Warehouses[i%len(f.Warehouses)].Position
			f.Orders = append(f.Orders, o)
			f.Missions = append(f.Missions, domain.Mission{
				ID: id, DroneID: one.ID, Status: domain.MissionActive, StartTime: noon.Add(-time.Minute), RouteRevision: 1, ReachedStops: 1, OrderIDs: []domain.OrderID{o.ID},
				Route: []domain.Waypoint{
					{Type: domain.WaypointDepotStart, Position: depot.Position}, {Type: domain.WaypointWarehousePickup, Position: pickup, OrderID: o.ID},
					{Type: domain.WaypointHospitalDelivery, Position: o.Delivery, OrderID: o.ID}, {Type: domain.WaypointDepotReturn, Position: depot.Position},
				},
			})
			one.Status, one.CurrentMissionID, one.MissionAcked, one.NamedRevision, one.Position = domain.DroneMoving, id, true, 1, at()
		}
		f.Drones = append(f.Drones, one)
	}
	var waiting []domain.Order
	for i := range orders {
		o := ordered(domain.OrderID(fmt.Sprint("O", i)), domain.PriorityCritical, 0, 1)
		if o.Delivery = at(); i%5 == 0 {
			pickup := at()
			o.Pickup = &pickup
		}
		waiting = append(waiting, o)
	}
	f.Orders = append(f.Orders, waiting...)
	return f, waiting
}

// BenchmarkArrivals is one estimate of the live feed, which may take 50 ms.
func BenchmarkArrivals(b *testing.B) {
	f, waiting := busyFleet(2000, 500)
	for b.Loop() {
		a := arrivals(f)
		for _, o := range waiting {
			a.Earliest(o)
		}
	}
}

// F-LIVE-05: what is left out because it cannot be sooner is not sooner.
func TestArrivals_LeaveOutNothingThatIsSooner(t *testing.T) {
	f, waiting := busyFleet(200, 40)
	all := arrivals(f)
	for _, o := range waiting {
		soonest := planner.Arrival{}
		for _, d := range f.Drones {
			one := f
			one.Drones = []domain.Drone{d}
			if got := arrivals(one).Earliest(o); got.DroneID != "" && (soonest.DroneID == "" || got.At.Before(soonest.At)) {
				soonest = got
			}
		}
		if got := all.Earliest(o); got.At.Sub(soonest.At) > time.Second {
			t.Errorf("order %s: %+v, and alone %+v", o.ID, got, soonest)
		}
	}
}
