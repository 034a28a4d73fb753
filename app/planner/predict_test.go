package planner_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/model"
)

// journey is a drone somewhere on a random route, and what it uses on the way.
type journey struct {
	flight   domain.Flight
	capacity float64
	weights  map[domain.OrderID]float64
	at       domain.Position
	aboard   map[domain.OrderID]bool
	charge   float64
}

// drawJourney draws a drone with up to five orders, one of whose stops it has just reached or
// left.
func drawJourney(rt *rapid.T, w *town) *journey {
	km := func(name string) float64 { return rapid.Float64Range(-4, 4).Draw(rt, name) }
	j := &journey{weights: map[domain.OrderID]float64{}, aboard: map[domain.OrderID]bool{}}
	m := domain.Mission{
		ID: "M", DroneID: "FLYING", Status: domain.MissionActive, RouteRevision: 1, StartTime: w.now.Add(-time.Minute),
		Route: []domain.Waypoint{{Type: domain.WaypointDepotStart, Position: depot.Position}},
	}
	for i := range rapid.IntRange(1, 5).Draw(rt, "orders") {
		o := domain.Order{ID: domain.OrderID(fmt.Sprint("O", i)), CreatedAt: w.now, Deadline: w.now.Add(time.Hour), AssignedMissionID: "M"}
		o.Priority, o.ProductType, o.Delivery = domain.PriorityStandard, "BLOOD", north(km("north"), km("east"))
		o.WeightKg = rapid.Float64Range(0, 3).Draw(rt, "kg")
		j.weights[o.ID] = o.WeightKg
		j.capacity += o.WeightKg
		m.OrderIDs = append(m.OrderIDs, o.ID)
		first := rapid.IntRange(1, len(m.Route)).Draw(rt, "pickup")
		m.Route = slices.Insert(m.Route, first, domain.Waypoint{Type: domain.WaypointWarehousePickup, Position: north(km("from north"), km("from east")), OrderID: o.ID})
		then := rapid.IntRange(first+1, len(m.Route)).Draw(rt, "delivery")
		m.Route = slices.Insert(m.Route, then, domain.Waypoint{Type: domain.WaypointHospitalDelivery, Position: o.Delivery, OrderID: o.ID})
		j.flight.Orders = append(j.flight.Orders, o)
	}
	m.Route = append(m.Route, domain.Waypoint{Type: domain.WaypointDepotReturn, Position: depot.Position})
	m.ReachedStops = rapid.IntRange(1, len(m.Route)-1).Draw(rt, "reached")
	j.at = m.Route[m.ReachedStops-1].Position
	for _, stop := range m.Route[:m.ReachedStops] {
		j.serve(stop)
	}
	j.flight.Orders = slices.DeleteFunc(j.flight.Orders, func(o domain.Order) bool {
		return slices.ContainsFunc(m.Route[:m.ReachedStops], func(s domain.Waypoint) bool {
			return s.Type == domain.WaypointHospitalDelivery && s.OrderID == o.ID
		})
	})
	if ahead := m.Route[m.ReachedStops].Position; rapid.Bool().Draw(rt, "has left") {
		j.at = j.at.Towards(ahead, rapid.Float64Range(0, 1).Draw(rt, "of the leg")*j.at.DistanceMetres(ahead))
	}
	j.charge = rapid.Float64Range(20, 100).Draw(rt, "charge")
	j.capacity += rapid.Float64Range(0, 3).Draw(rt, "more capacity")
	j.flight.Mission, j.flight.ReachedAt = m, w.now
	j.flight.Drone = domain.Drone{
		ID: "FLYING", HomeDepotID: depot.ID, Position: j.at, Battery: j.charge, SeenAt: w.now, SupportsAmendments: true,
		CurrentMissionID: "M", MissionAcked: true, NamedRevision: 1, Status: domain.DroneMoving,
		PayloadCapacityKg: j.capacity, ConsumptionPerKmKg: rapid.Float64Range(0, 0.5).Draw(rt, "percent per km and kg"),
	}
	return j
}

func (j *journey) serve(stop domain.Waypoint) {
	switch stop.Type {
	case domain.WaypointWarehousePickup:
		j.aboard[stop.OrderID] = true
	case domain.WaypointHospitalDelivery:
		delete(j.aboard, stop.OrderID)
	case domain.WaypointDepotStart, domain.WaypointDepotReturn, domain.WaypointCharge, domain.WaypointWait:
	}
}

// fly flies to a place with what is aboard.
func (j *journey) fly(to domain.Position) {
	perKm := model.DefaultConsumptionPercentPerKm
	for id := range j.aboard {
		perKm += j.weights[id] * j.flight.Drone.ConsumptionPerKmKg
	}
	j.charge -= j.at.DistanceMetres(to) / 1000 * perKm
	j.at = to
}

// flyUntil flies the mission until the predicted stops are done, and on to the predicted position.
func (j *journey) flyUntil(f solver.Flight) {
	for _, stop := range j.flight.Mission.Route[j.flight.Mission.ReachedStops:f.StopsBehind] {
		j.fly(stop.Position)
		j.serve(stop)
	}
	j.fly(domain.Position(f.Drone.At))
}

// F-CHG-02: a drone in flight is never predicted more charge than it will have, and no less on a
// straight line: what is aboard counts on each leg.
func TestPlanner_PredictsNoMoreChargeThanADroneWillHave(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newTown(0)
		j := drawJourney(rt, w)
		snap := w.snapshot()
		snap.Flights = []domain.Flight{j.flight}
		p := planner.New(planner.Config{Params: solver.Params{PickupService: 20 * time.Second, DeliveryService: 40 * time.Second}}, time.Now)
		flights := p.ProblemOf(snap, w.now.Add(time.Duration(rapid.IntRange(0, 1200).Draw(rt, "seconds"))*time.Second)).Flights
		if len(flights) == 0 {
			return // it has landed
		}
		j.flyUntil(flights[0])
		// Less than 75 m behind a stop it may be on the way to it.
		turnsBack := 2 * 0.075 * (model.DefaultConsumptionPercentPerKm + j.capacity*j.flight.Drone.ConsumptionPerKmKg)
		if predicted := flights[0].Drone.BatteryPercent; predicted > max(0, j.charge)+1e-9 || predicted < j.charge-turnsBack {
			rt.Errorf("it will have %.4f %%, predicted are %.4f %%", j.charge, predicted)
		}
	})
}

// F-CHG-02: orders added to a flight leave the drone its reserve, whatever it carries on each leg.
func TestPlanner_KeepsTheReserveOfLoadedFlights(t *testing.T) {
	amended := 0
	rapid.Check(t, func(rt *rapid.T) {
		w := newTown(0)
		j := drawJourney(rt, w)
		w.order("MORE", domain.PriorityCritical, north(rapid.Float64Range(-4, 4).Draw(rt, "more north"), 1), 0)
		w.orders[0].WeightKg = rapid.Float64Range(0, 3).Draw(rt, "more kg")
		j.weights["MORE"] = w.orders[0].WeightKg
		snap := w.snapshot()
		snap.Flights = []domain.Flight{j.flight}
		result, err := newPlanner(rt).PlanSnapshot(t.Context(), snap, w.now.Add(5*time.Second))
		if err != nil {
			rt.Fatal(err)
		}
		for _, a := range result.Plan.Amendments {
			j.flyUntil(result.Problem.Flights[0])
			before := j.charge
			for _, s := range a.Stops {
				j.fly(domain.Position(s.At))
				j.serve(domain.Waypoint{Type: domain.WaypointType(s.Kind.String()), OrderID: domain.OrderID(s.OrderID)})
			}
			amended++
			if j.charge < 20 || before-j.charge > a.BatteryUsePercent+1e-3 {
				rt.Errorf("it lands with %.3f %% and uses %.3f %%, planned is %.3f %%", j.charge, before-j.charge, a.BatteryUsePercent)
			}
		}
	})
	if amended == 0 {
		t.Error("no flight was amended")
	}
}
