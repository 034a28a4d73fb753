package policy

import (
	"fmt"
	"slices"

	"github.com/dronefleet/dronefleet/domain"
)

// Reasons to refuse the positions of a route's stops.
const (
	ReasonWarehouseUnknown Reason = "WAREHOUSE_UNKNOWN"
	ReasonStopMisplaced    Reason = "STOP_MISPLACED"
	ReasonWarehouseUnfit   Reason = "WAREHOUSE_UNFIT"
)

// isStopReason reports whether RecordStops lets a reason pass.
func isStopReason(r Reason) bool {
	return r == ReasonWarehouseUnknown || r == ReasonStopMisplaced || r == ReasonWarehouseUnfit
}

// stopSites are the places that the stops of a route are compared with.
type stopSites struct {
	tolerance  float64 // metres
	orders     map[domain.OrderID]domain.Order
	warehouses map[domain.WarehouseID]domain.Warehouse
	depots     []domain.Depot // none: landings are not judged
}

func (c decisionCase) sites() stopSites {
	return stopSites{c.StopToleranceMetres, c.Orders, c.Warehouses, c.Depots}
}

// anyStopAhead applies a check to all stops that are neither reached nor committed. Earlier stops
// equal the mission's, or the decision is STOP_COMMITTED.
func anyStopAhead(against func(stopSites, domain.Waypoint) string) func(decisionCase) string {
	return func(c decisionCase) string {
		from := 0
		if c.decision.Amends() {
			from = c.committed()
		}
		return c.sites().firstMisplaced(c.decision.Route, from, against)
	}
}

// firstMisplaced describes the first stop with a flaw, from an index on.
func (s stopSites) firstMisplaced(route []domain.Waypoint, from int, against func(stopSites, domain.Waypoint) string) string {
	for i := from; i < len(route); i++ {
		if _, known := s.orders[route[i].OrderID]; route[i].ForOrder() && !known {
			continue // the mission's order was deleted; a decision would be ORDER_UNKNOWN
		}
		if flaw := against(s, route[i]); flaw != "" {
			return fmt.Sprintf("stop %d: %s", i, flaw)
		}
	}
	return ""
}

// atWarehouse reports whether the stop picks a parcel up at a warehouse, not at its
// order's own pickup position.
func (s stopSites) atWarehouse(stop domain.Waypoint) bool {
	return stop.Type == domain.WaypointWarehousePickup && s.orders[stop.OrderID].Pickup == nil
}

func (s stopSites) warehouseUnknown(stop domain.Waypoint) string {
	if !s.atWarehouse(stop) {
		return ""
	}
	switch _, known := s.warehouses[stop.WarehouseID]; {
	case stop.WarehouseID == "":
		return fmt.Sprintf("it names no warehouse for order %s, which has no pickup position", stop.OrderID)
	case !known:
		return fmt.Sprintf("no warehouse %s, or its document is malformed", stop.WarehouseID)
	}
	return ""
}

func (s stopSites) misplaced(stop domain.Waypoint) string {
	o := s.orders[stop.OrderID]
	switch stop.Type {
	case domain.WaypointHospitalDelivery:
		return s.away(stop, "the delivery position of order "+string(o.ID), o.Delivery)
	case domain.WaypointWarehousePickup:
		if o.Pickup != nil {
			return s.away(stop, "the pickup position of order "+string(o.ID), *o.Pickup)
		}
		return s.away(stop, "warehouse "+string(stop.WarehouseID), s.warehouses[stop.WarehouseID].Position)
	case domain.WaypointDepotReturn, domain.WaypointCharge:
		return s.awayFromDepots(stop)
	case domain.WaypointDepotStart, domain.WaypointWait:
	}
	return ""
}

func (s stopSites) away(stop domain.Waypoint, from string, right domain.Position) string {
	metres := stop.Position.DistanceMetres(right)
	if metres <= s.tolerance+rounding {
		return ""
	}
	return fmt.Sprintf("%s is at %s, %.0f m from %s at %s; at most %g m are allowed",
		stop.Type, degrees(stop.Position), metres, from, degrees(right), s.tolerance)
}

// degrees is a position for people, to a decimetre.
func degrees(p domain.Position) string { return fmt.Sprintf("%.6f,%.6f", p.Lat, p.Lon) }

func (s stopSites) awayFromDepots(stop domain.Waypoint) string {
	if len(s.depots) == 0 {
		return ""
	}
	nearest, least := s.depots[0], stop.Position.DistanceMetres(s.depots[0].Position)
	for _, d := range s.depots[1:] {
		if metres := stop.Position.DistanceMetres(d.Position); metres < least {
			nearest, least = d, metres
		}
	}
	return s.away(stop, "the nearest depot, "+string(nearest.ID), nearest.Position)
}

func (s stopSites) warehouseUnfit(stop domain.Waypoint) string {
	if !s.atWarehouse(stop) {
		return ""
	}
	o, w := s.orders[stop.OrderID], s.warehouses[stop.WarehouseID]
	switch {
	case !w.Stocks(o.ProductType):
		return fmt.Sprintf("warehouse %s does not stock %q, which order %s requests", w.ID, o.ProductType, o.ID)
	case o.ColdChain && !w.ColdStorage:
		return fmt.Sprintf("warehouse %s has no cold storage, which order %s requires", w.ID, o.ID)
	}
	return ""
}

// NeedsDepots reports whether a decision can only be judged with depots that its own transaction
// reads: it has no orders, or lands at none of the known depots.
func (p MissionAssignmentPolicy) NeedsDepots(s DecisionState, d domain.Decision, known []domain.Depot) bool {
	if s.Ledger != nil {
		return false
	}
	depots := stopSites{tolerance: p.StopToleranceMetres, depots: known}
	for _, stop := range d.Route {
		if lands(stop) && (len(known) == 0 || depots.misplaced(stop) != "") {
			return true
		}
	}
	return d.Standby()
}

// Lands reports whether a route has a stop that is at a depot.
func Lands(route []domain.Waypoint) bool { return slices.ContainsFunc(route, lands) }

func lands(stop domain.Waypoint) bool {
	return stop.Type == domain.WaypointDepotReturn || stop.Type == domain.WaypointCharge
}

// MisplacedStop describes the stop ahead of an ACTIVE mission that would be refused today, "" if
// there is none. An earlier version did not compare stops with addresses.
func (p MissionAssignmentPolicy) MisplacedStop(m domain.Mission, orders map[domain.OrderID]domain.Order, warehouses map[domain.WarehouseID]domain.Warehouse) string {
	s := stopSites{tolerance: p.StopToleranceMetres, orders: orders, warehouses: warehouses}
	for _, against := range []func(stopSites, domain.Waypoint) string{stopSites.warehouseUnknown, stopSites.misplaced, stopSites.warehouseUnfit} {
		if flaw := s.firstMisplaced(m.Route, m.ReachedStops, against); flaw != "" {
			return flaw
		}
	}
	return ""
}
