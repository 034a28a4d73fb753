package planner

import (
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

// DecisionsOf returns the decisions that turn a plan's routes into missions and change
// missions under way. The plan is for a problem made from the snapshot.
func DecisionsOf(plan solver.Plan, s domain.Snapshot) []domain.Decision {
	var decisions []domain.Decision
	flights := map[string]*domain.Flight{}
	for i := range s.Flights {
		flights[string(s.Flights[i].Drone.ID)] = &s.Flights[i]
	}
	for _, r := range plan.Routes {
		d := decisionOf(r, s)
		d.OrderIDs = OrderIDs(r.OrderIDs())
		if f := flights[r.DroneID]; f != nil && onStandby(*f) { // the amended mission begins where the drone is
			d.AmendsMissionID, d.AmendsRevision, d.Route = f.Mission.ID, f.Mission.RouteRevision, d.Route[1:]
		}
		if len(d.OrderIDs) > 0 {
			decisions = append(decisions, d)
		}
	}
	for _, a := range plan.Amendments {
		if f := flights[a.DroneID]; f != nil {
			decisions = append(decisions, amendmentOf(a, *f, s))
		}
	}
	for _, b := range plan.Standby {
		d := decisionOf(b.Route, s)
		d.AmendsMissionID, d.AmendsRevision = domain.MissionID(b.MissionID), b.Revision
		decisions = append(decisions, d)
	}
	return decisions
}

// decisionOf is the part of a decision that every route has.
func decisionOf(r solver.Route, s domain.Snapshot) domain.Decision {
	drone := domain.DroneID(r.DroneID)
	return domain.Decision{
		ID:      domain.DecisionIDFor(s.CycleID, drone),
		CycleID: s.CycleID, Fence: s.Fence, DepotID: s.Depot.ID, SnapshotTime: s.ReadTime, DroneID: drone, Route: waypointsOf(r.Stops),
		EstimatedBatteryConsumption: r.BatteryUsePercent, EstimatedDurationMinutes: r.Duration.Minutes(),
	}
}

// amendmentOf is the decision that changes a mission under way, with its whole route and all of
// its orders. A homebound drone gets its next mission instead.
func amendmentOf(a solver.Amendment, f domain.Flight, s domain.Snapshot) domain.Decision {
	d := decisionOf(a.Route, s)
	if !homebound(f) {
		d.AmendsMissionID, d.AmendsRevision = domain.MissionID(a.MissionID), a.Revision
		d.OrderIDs = slices.DeleteFunc(slices.Clone(f.Mission.OrderIDs), func(id domain.OrderID) bool {
			return slices.Contains(a.ReleasedIDs, string(id))
		})
		// An order has two stops, and none of an order that is released or added is reached.
		remaining := len(a.Stops) - 2*len(a.AddedIDs) + 2*len(a.ReleasedIDs)
		reached := f.Mission.Route[:len(f.Mission.Route)-remaining]
		d.Route = slices.Concat(reached, d.Route)
	}
	d.OrderIDs = append(d.OrderIDs, OrderIDs(a.AddedIDs)...)
	return d
}

// OrderIDs turns the solver's ids of orders into the fleet's.
func OrderIDs(ids []string) (list []domain.OrderID) {
	for _, id := range ids {
		list = append(list, domain.OrderID(id))
	}
	return list
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
