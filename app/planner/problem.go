package planner

import (
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/model"
)

// maxFlightMinutes is longer than any drone can fly and fits a Duration.
const maxFlightMinutes = 1e6

// ProblemOf turns a snapshot into a problem for the solver. The drones keep the
// solver's default cruise speed: the reported speed is the present one. Planner.ProblemOf
// has what was learned of them.
func ProblemOf(s domain.Snapshot, now time.Time, params solver.Params) solver.Problem {
	return problemOf(s, now, params, learning.Estimates{})
}

func problemOf(s domain.Snapshot, now time.Time, params solver.Params, learned learning.Estimates) solver.Problem {
	p := solver.Problem{Now: now, Params: params, Drones: dronesOf(s.Drones)}
	for i := range p.Drones {
		p.Drones[i].SpeedKmh = learned.SpeedOf(s.Drones[i].ID)
	}
	for _, d := range s.Depots() {
		p.Depots = append(p.Depots, solver.Depot{ID: string(d.ID), At: location(d.Position), ChargingSlots: max(0, d.ChargingSlots)})
	}
	for _, w := range s.Warehouses {
		p.Warehouses = append(p.Warehouses, solver.Warehouse{
			ID: string(w.ID), At: location(w.Position), ProductTypes: w.ProductTypes, ColdStorage: w.ColdStorage,
		})
	}
	for _, o := range s.Orders {
		p.Orders = append(p.Orders, orderOf(o))
	}
	return p
}

func orderOf(o domain.Order) solver.Order {
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
	return order
}

func dronesOf(drones []domain.Drone) []solver.Drone {
	var list []solver.Drone
	for _, d := range drones {
		list = append(list, solver.Drone{
			ID: string(d.ID), At: location(d.Position), HomeDepotID: string(d.HomeDepotID),
			BatteryPercent: d.Battery, ConsumptionPercentPerKm: d.ConsumptionPerKm, ConsumptionPercentPerKmKg: d.ConsumptionPerKmKg,
			CapacityKg:      d.PayloadCapacityKg,
			MaxFlight:       time.Duration(min(d.MaxFlightTimeMinutes, maxFlightMinutes)) * time.Minute,
			SupportsStandby: d.SupportsStandby, ChargePercentPerMinute: d.ChargeRate,
		})
	}
	return list
}

func location(p domain.Position) solver.Location { return solver.Location{Lat: p.Lat, Lon: p.Lon} }

// DecisionsOf returns the decisions that turn a plan's routes into missions and change
// missions under way. The plan is for a problem made from the snapshot.
func DecisionsOf(plan solver.Plan, s domain.Snapshot) []domain.Decision {
	var decisions []domain.Decision
	standing := standbyMissions(s)
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
		d.Route = waypointsOf(r.Stops)
		if m, ok := standing[d.DroneID]; ok {
			d.AmendsMissionID, d.AmendsRevision, d.Route = m.ID, m.RouteRevision, d.Route[1:]
		}
		if len(d.OrderIDs) > 0 {
			decisions = append(decisions, d)
		}
	}
	decisions = append(decisions, amendmentsOf(plan, s)...)
	for _, b := range plan.Standby {
		decisions = append(decisions, domain.Decision{
			ID:      domain.DecisionIDFor(s.CycleID, domain.DroneID(b.DroneID)),
			CycleID: s.CycleID, Fence: s.Fence, DepotID: s.Depot.ID, SnapshotTime: s.ReadTime,
			DroneID: domain.DroneID(b.DroneID), AmendsMissionID: domain.MissionID(b.MissionID), AmendsRevision: b.Revision,
			Route: waypointsOf(b.Stops), EstimatedBatteryConsumption: b.BatteryUsePercent, EstimatedDurationMinutes: b.Duration.Minutes(),
		})
	}
	return decisions
}

// standbyMissions are the missions without orders that a snapshot's drones fly. An order
// changes the mission: it begins where the drone is.
func standbyMissions(s domain.Snapshot) map[domain.DroneID]domain.Mission {
	missions := map[domain.DroneID]domain.Mission{}
	for _, f := range s.Flights {
		if f.Mission.Standby() && f.Mission.Status == domain.MissionActive {
			missions[f.Drone.ID] = f.Mission
		}
	}
	return missions
}

// amendmentsOf returns the decisions that change missions under way, each with the whole
// route and all orders of the mission, and those that give drones on their way home the next
// one.
func amendmentsOf(plan solver.Plan, s domain.Snapshot) []domain.Decision {
	flights := map[domain.DroneID]*domain.Flight{}
	for i := range s.Flights {
		flights[s.Flights[i].Drone.ID] = &s.Flights[i]
	}
	var decisions []domain.Decision
	for _, a := range plan.Amendments {
		drone := domain.DroneID(a.DroneID)
		f := flights[drone]
		if f == nil {
			continue
		}
		ahead := waypointsOf(a.Stops)
		d := domain.Decision{
			ID:      domain.DecisionIDFor(s.CycleID, drone),
			CycleID: s.CycleID, Fence: s.Fence, DepotID: s.Depot.ID, SnapshotTime: s.ReadTime, DroneID: drone,
			Route:                       ahead,
			EstimatedBatteryConsumption: a.BatteryUsePercent, EstimatedDurationMinutes: a.Duration.Minutes(),
		}
		if !homebound(*f) {
			d.AmendsMissionID, d.AmendsRevision = domain.MissionID(a.MissionID), a.Revision
			d.OrderIDs = slices.DeleteFunc(slices.Clone(f.Mission.OrderIDs), func(id domain.OrderID) bool {
				return slices.Contains(a.ReleasedIDs, string(id))
			})
			d.Route = append(slices.Clone(behind(f.Mission.Route, a, ahead)), ahead...)
		}
		for _, id := range a.AddedIDs {
			d.OrderIDs = append(d.OrderIDs, domain.OrderID(id))
		}
		decisions = append(decisions, d)
	}
	return decisions
}

// behind are the stops of a mission that an amended rest does not list.
func behind(route []domain.Waypoint, a solver.Amendment, ahead []domain.Waypoint) []domain.Waypoint {
	return route[:len(route)-(len(ahead)-2*len(a.AddedIDs)+2*len(a.ReleasedIDs))]
}

func waypointsOf(stops []solver.Stop) (route []domain.Waypoint) {
	for _, stop := range stops {
		route = append(route, domain.Waypoint{
			Type:     domain.WaypointType(stop.Kind.String()),
			Position: domain.Position{Lat: stop.At.Lat, Lon: stop.At.Lon},
			OrderID:  domain.OrderID(stop.OrderID), WarehouseID: domain.WarehouseID(stop.WarehouseID),
			ETA:             stop.ETA.Truncate(time.Microsecond),
			ChargeToPercent: stop.ChargeToPercent, WaitUntil: stop.Until.Truncate(time.Microsecond),
		})
	}
	return route
}
