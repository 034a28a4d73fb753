package planner_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver/check"
)

// spoiler draws snapshots, some of whose values nobody can mean.
type spoiler struct {
	*rapid.T
	now    time.Time
	spoils int  // one value in this many makes no sense; 0 for none
	stored bool // places are those that the store can hold
}

// oneIn is true once in n draws.
func (s spoiler) oneIn(n int, label string) bool { return rapid.IntRange(1, n).Draw(s.T, label) == n }

func (s spoiler) spoil(label string) bool { return s.spoils > 0 && s.oneIn(s.spoils, "spoil "+label) }

func (s spoiler) number(least, most float64, label string) float64 {
	if s.spoil(label) {
		return rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1e18, math.MaxFloat64}).Draw(s.T, label)
	}
	return rapid.Float64Range(least, most).Draw(s.T, label)
}

// point is within some kilometres of the depot.
func (s spoiler) point(label string) domain.Position {
	switch {
	case !s.stored:
	case s.spoil(label):
		return rapid.SampledFrom([]domain.Position{{}, {Lat: 90}, {Lat: -90, Lon: 180}, {Lat: 48, Lon: -180}, {Lat: -48.8566, Lon: -177.6478}}).Draw(s.T, label)
	default:
		s.spoils = 0
	}
	return north(s.number(-5, 5, label+" north"), s.number(-5, 5, label+" east"))
}

// time is between two times by their seconds from now.
func (s spoiler) time(from, to int, label string) time.Time {
	if s.spoil(label) {
		return rapid.SampledFrom([]time.Time{{}, time.Unix(0, 0), s.now.AddDate(400, 0, 0), s.now.AddDate(-400, 0, 0)}).Draw(s.T, label)
	}
	return s.now.Add(time.Duration(rapid.IntRange(from, to).Draw(s.T, label)) * time.Second)
}

func (s spoiler) order(id domain.OrderID, statuses ...domain.OrderStatus) domain.Order {
	if s.spoil("order id") {
		id = rapid.SampledFrom([]domain.OrderID{"", "O0", "F0-0"}).Draw(s.T, "order id")
	}
	o := domain.Order{
		ID: id, Status: rapid.SampledFrom(statuses).Draw(s.T, "order status"),
		CreatedAt: s.time(-3600, 0, "created"), Deadline: s.time(-600, 3600, "deadline"),
		OrderContent: domain.OrderContent{
			Priority: rapid.SampledFrom(domain.Priorities[:]).Draw(s.T, "priority"), ProductType: "BLOOD",
			Delivery: s.point("delivery"), WeightKg: s.number(0, 2, "weight"),
		},
	}
	if s.oneIn(4, "pickup") {
		at := s.point("pickup")
		o.Pickup = &at
	}
	return o
}

func (s spoiler) drone(id domain.DroneID) domain.Drone {
	d := domain.Drone{
		ID: id, HomeDepotID: depot.ID, Status: domain.DroneMoving, Position: s.point("drone"), Battery: s.number(30, 100, "battery"),
		SpeedKmh: s.number(0, 80, "speed"), PayloadCapacityKg: s.number(3, 6, "capacity"), ConsumptionPerKm: s.number(0.5, 2, "consumption"),
		ConsumptionPerKmKg: s.number(0, 0.3, "consumption of a kg"), ChargeRate: s.number(0, 20, "charge rate"),
		SeenAt: s.time(-20, 5, "seen"), LastUpdate: s.time(-20, 5, "updated"), SupportsAmendments: true, SupportsStandby: true,
		MissionAcked: true, NamedRevision: 1,
	}
	if s.spoil("home") {
		d.HomeDepotID = rapid.SampledFrom([]domain.DepotID{"GONE", ""}).Draw(s.T, "home")
	}
	if s.spoil("flight time") {
		d.MaxFlightTimeMinutes = rapid.SampledFrom([]int{38, -1, math.MaxInt}).Draw(s.T, "flight time")
	}
	return d
}

// flight serves up to three orders, or charges or waits.
func (s spoiler) flight(id domain.DroneID) domain.Flight {
	f := domain.Flight{Drone: s.drone(id)}
	m := domain.Mission{
		ID: domain.MissionID("M-" + id), DroneID: id, RouteRevision: 1, Status: domain.MissionActive, StartTime: s.time(-900, 0, "start"),
		Route: []domain.Waypoint{{Type: domain.WaypointDepotStart, Position: depot.Position}},
	}
	if s.oneIn(4, "standby") {
		m.Route = append(m.Route, domain.Waypoint{
			Type:     rapid.SampledFrom([]domain.WaypointType{domain.WaypointCharge, domain.WaypointWait}).Draw(s.T, "standby"),
			Position: s.point("standby"), ChargeToPercent: s.number(30, 100, "charge to"), WaitUntil: s.time(-600, 3600, "wait"),
		})
	} else {
		for i := range rapid.IntRange(1, 3).Draw(s.T, "orders of a flight") {
			o := s.order(domain.OrderID(fmt.Sprint(id, "-", i)), domain.OrderAssigned, domain.OrderInDelivery)
			m.OrderIDs, f.Orders = append(m.OrderIDs, o.ID), append(f.Orders, o)
			m.Route = append(m.Route,
				domain.Waypoint{Type: domain.WaypointWarehousePickup, OrderID: o.ID, Position: s.point("pickup"), ETA: s.time(-600, 600, "eta")},
				domain.Waypoint{Type: domain.WaypointHospitalDelivery, OrderID: o.ID, Position: o.Delivery, ETA: s.time(-600, 600, "eta")})
		}
		m.Route = append(m.Route, domain.Waypoint{Type: domain.WaypointDepotReturn, Position: depot.Position})
	}
	m.ReachedStops = rapid.IntRange(0, len(m.Route)).Draw(s.T, "reached stops")
	if s.oneIn(6, "homebound") {
		m.Status, m.EndTime, m.ReachedStops = domain.MissionCompleted, s.time(-600, 0, "end"), len(m.Route)-1
		f.Drone.Homebound, f.Orders = true, nil
	}
	if s.spoil("stop") {
		m.Route[rapid.IntRange(0, len(m.Route)-1).Draw(s.T, "stop")] = domain.Waypoint{
			Type: rapid.SampledFrom(domain.WaypointTypes).Draw(s.T, "type"), Position: s.point("stop"),
			OrderID: rapid.SampledFrom([]domain.OrderID{"", "O0", "F0-0", "F1-0", "GONE"}).Draw(s.T, "order"),
		}
	}
	if s.spoil("lost stop") {
		i := rapid.IntRange(0, len(m.Route)-1).Draw(s.T, "lost stop")
		m.Route = slices.Delete(m.Route, i, i+1)
	}
	if s.spoil("lost order") && len(f.Orders) > 0 {
		f.Orders = f.Orders[1:]
	}
	f.Drone.CurrentMissionID, f.Mission, f.ReachedAt = m.ID, m, s.time(-300, 0, "reached")
	return f
}

// F-OPT-04, F-AMD-01, F-AMD-06: whatever a snapshot says of drones in flight, planning does
// not fail, and the plan passes the checker at once.
func TestPlanner_PlansAnyFlights(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p, s := withAdvance(rt), spoiler{rt, newTown(0).now, rapid.SampledFrom([]int{0, 10, 50, 200}).Draw(rt, "spoils"), false}
		snap := newTown(rapid.IntRange(0, 3).Draw(rt, "sound drones")).snapshot()
		snap.CycleID, snap.Depot.ChargingSlots = "C", rapid.SampledFrom([]int{0, 1, 3, -1}).Draw(rt, "slots")
		for i := range rapid.IntRange(0, 2).Draw(rt, "drones") {
			snap.Drones = append(snap.Drones, s.drone(domain.DroneID(fmt.Sprint("I", i))))
		}
		for i := range rapid.IntRange(1, 4).Draw(rt, "flights") {
			snap.Flights = append(snap.Flights, s.flight(domain.DroneID(fmt.Sprint("F", i))))
		}
		for i := range rapid.IntRange(0, 2).Draw(rt, "charging") {
			snap.Charging = append(snap.Charging, s.drone(domain.DroneID(fmt.Sprint("C", i))))
		}
		for i := range rapid.IntRange(0, 5).Draw(rt, "orders") {
			snap.Orders = append(snap.Orders, s.order(domain.OrderID(fmt.Sprint("O", i)), domain.OrderPending))
		}
		for range 2 {
			result, err := p.PlanSnapshot(rt.Context(), snap, s.now)
			if err != nil {
				rt.Fatal(err)
			}
			if broken := check.Plan(result.Problem, result.Plan); broken != nil {
				rt.Fatal(broken)
			}
			planner.DecisionsOf(result.Plan, snap)
			s.now = s.now.Add(10 * time.Second)
		}
	})
}
