package planner

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/model"
)

// maxFlightMinutes is longer than any drone can fly and fits a Duration.
const maxFlightMinutes = 1e6

// ProblemOf turns a snapshot into a problem for the solver. The drones keep the
// solver's default cruise speed: the reported speed is the present one.
func ProblemOf(s domain.Snapshot, now time.Time, params solver.Params) solver.Problem {
	p := solver.Problem{Now: now, Params: params, Drones: dronesOf(s.Drones)}
	for _, d := range s.Depots() {
		p.Depots = append(p.Depots, solver.Depot{ID: string(d.ID), At: location(d.Position)})
	}
	for _, w := range s.Warehouses {
		p.Warehouses = append(p.Warehouses, solver.Warehouse{
			ID: string(w.ID), At: location(w.Position), ProductTypes: w.ProductTypes, ColdStorage: w.ColdStorage,
		})
	}
	for _, o := range s.Orders {
		order := solver.Order{
			ID: string(o.ID), Delivery: location(o.Delivery), ProductType: o.ProductType,
			WeightKg: o.WeightKg, ColdChain: o.ColdChain, Priority: model.PriorityOf(o.Priority),
			CreatedAt: o.CreatedAt, Deadline: o.Deadline, PinnedDroneID: string(o.PinnedDroneID),
		}
		for _, id := range o.ForbiddenDroneIDs {
			order.ForbiddenDroneIDs = append(order.ForbiddenDroneIDs, string(id))
		}
		if o.Pickup != nil {
			at := location(*o.Pickup)
			order.Pickup = &at
		}
		p.Orders = append(p.Orders, order)
	}
	return p
}

func dronesOf(drones []domain.Drone) []solver.Drone {
	var list []solver.Drone
	for _, d := range drones {
		list = append(list, solver.Drone{
			ID: string(d.ID), At: location(d.Position), HomeDepotID: string(d.HomeDepotID),
			BatteryPercent: d.Battery, ConsumptionPercentPerKm: d.ConsumptionPerKm, CapacityKg: d.PayloadCapacityKg,
			MaxFlight: time.Duration(min(d.MaxFlightTimeMinutes, maxFlightMinutes)) * time.Minute,
		})
	}
	return list
}

func location(p domain.Position) solver.Location { return solver.Location{Lat: p.Lat, Lon: p.Lon} }

// DecisionsOf returns the decisions that turn a plan's routes into missions. The
// plan is for a problem made from the snapshot.
func DecisionsOf(plan solver.Plan, s domain.Snapshot) []domain.Decision {
	var decisions []domain.Decision
	for _, r := range plan.Routes {
		d := domain.Decision{
			ID:      domain.DecisionIDFor(s.CycleID, domain.DroneID(r.DroneID)),
			CycleID: s.CycleID, Fence: s.Fence, DepotID: s.Depot.ID, SnapshotTime: s.ReadTime,
			DroneID:                     domain.DroneID(r.DroneID),
			EstimatedBatteryConsumption: r.BatteryUsePercent,
			EstimatedDurationMinutes:    r.Duration.Minutes(),
		}
		for _, id := range r.OrderIDs() {
			d.OrderIDs = append(d.OrderIDs, domain.OrderID(id))
		}
		for _, stop := range r.Stops {
			d.Route = append(d.Route, domain.Waypoint{
				Type:     domain.WaypointType(stop.Kind.String()),
				Position: domain.Position{Lat: stop.At.Lat, Lon: stop.At.Lon},
				OrderID:  domain.OrderID(stop.OrderID), WarehouseID: domain.WarehouseID(stop.WarehouseID),
				ETA: stop.ETA.Truncate(time.Microsecond),
			})
		}
		if len(d.OrderIDs) > 0 {
			decisions = append(decisions, d)
		}
	}
	return decisions
}
