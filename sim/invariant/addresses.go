package invariant

import "github.com/dronefleet/dronefleet/domain"

// stopTolerance is how far, in metres, a stop may be from its address: the default of
// policy.MissionAssignmentPolicy, and a millimetre for what is stored and read back.
const stopTolerance = 10.001

// addresses checks I11: every DELIVERED order was picked up where its parcel waited, or at
// a warehouse that stocked it, and put down at its place of delivery. Missions whose
// decision was applied with a warning are not judged.
func (c *checker) addresses() {
	warned := map[domain.MissionID]bool{}
	for _, row := range c.Ledger {
		warned[row.MissionID] = warned[row.MissionID] || row.Warning != ""
	}
	for _, o := range c.Orders {
		m, known := c.missionByID[o.AssignedMissionID]
		if o.Status != domain.OrderDelivered || !known || warned[m.ID] {
			continue
		}
		for _, stop := range m.Route {
			if stop.OrderID != o.ID {
				continue
			}
			switch {
			case stop.Type == domain.WaypointHospitalDelivery:
				metres := stop.Position.DistanceMetres(o.Delivery)
				c.expect(metres <= stopTolerance, "I11", order(o.ID), "mission %s put it down %.0f m from its place of delivery", m.ID, metres)
			case stop.Type == domain.WaypointWarehousePickup && o.Pickup != nil:
				metres := stop.Position.DistanceMetres(*o.Pickup)
				c.expect(metres <= stopTolerance, "I11", order(o.ID), "mission %s picked it up %.0f m from where it waited", m.ID, metres)
			case stop.Type == domain.WaypointWarehousePickup && c.Warehouses != nil:
				c.expect(c.stocked(stop, o), "I11", order(o.ID), "mission %s picked it up at warehouse %q, which did not stock it there", m.ID, stop.WarehouseID)
			}
		}
	}
}

// stocked reports whether the stop's warehouse was ever where the stop is, with what the
// order requests.
func (c *checker) stocked(stop domain.Waypoint, o domain.Order) bool {
	for _, w := range c.Warehouses {
		if w.ID == stop.WarehouseID && stop.Position.DistanceMetres(w.Position) <= stopTolerance && w.Stocks(o.ProductType) && (w.ColdStorage || !o.ColdChain) {
			return true
		}
	}
	return false
}
