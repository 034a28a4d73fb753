package explore

import (
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// warehouse is where the orders of World.Stocked are picked up.
const warehouse domain.WarehouseID = "W"

// sites are where it stands before and after its move.
var sites = [2]domain.Position{{Lat: 48.90, Lon: 2.10}, {Lat: 48.90, Lon: 2.00}}

func atWarehouse(stop domain.Waypoint) bool { return stop.WarehouseID == warehouse }

// pickupOf is where an order says that it waits; nil for the warehouse, which it does not name.
func (w World) pickupOf(order int) *domain.Position {
	if w.Stocked&(1<<order) != 0 {
		return nil
	}
	return waitsAt(order)
}

// pickupStop is the stop at which an honest optimizer has an order picked up.
func (s *state) pickupStop(o *domain.Order) domain.Waypoint {
	stop := domain.Waypoint{Type: domain.WaypointWarehousePickup, OrderID: o.ID}
	if o.Pickup != nil {
		stop.Position = *o.Pickup
	} else {
		stop.WarehouseID, stop.Position = warehouse, sites[s.Site]
	}
	return stop
}

// visitors names the ACTIVE missions that have yet to visit a warehouse. It restates the query
// by which the store reads them.
func visitors(active []domain.Mission, w domain.WarehouseID) (names []string) {
	for _, x := range active {
		if slices.ContainsFunc(x.StopsAhead(), func(stop domain.Waypoint) bool { return stop.WarehouseID == w }) {
			names = append(names, "mission "+string(x.ID))
		}
	}
	return names
}

// markedAtCommit dates the mark of a move as the store does: when the move commits.
func markedAtCommit(_, commits moment) moment { return commits }

// readMove records in a call what an operator's transaction that moves the warehouse reads. It
// marks the control document, which holds the fence, too.
func (m *model) readMove(s *state, c *call) {
	c.what, c.site, c.marked, c.fence = opMove, s.Site, s.Marked, s.Fence[0]
	for k, n := range s.Mission {
		if n != 0 && m.missions.get(n).Status == domain.MissionActive {
			c.active[k] = n
		}
	}
}

// readWarehouse records in a call what a decision's transaction reads of the warehouse.
func (m *model) readWarehouse(s *state, d domain.Decision, c *call) {
	c.marked = s.Marked
	if slices.ContainsFunc(d.Route, atWarehouse) {
		c.site = s.Site
	}
}

// warehouses puts what a decision's transaction reads of the warehouse into the policy's input.
func (m *model) warehouses(c call, in *policy.DecisionState) {
	if m.world.Stocked == 0 {
		return
	}
	in.Warehouses = map[domain.WarehouseID]domain.Warehouse{warehouse: {ID: warehouse, Position: sites[c.site], ProductTypes: []string{product}}}
	if c.marked != 0 {
		in.WarehousesChanged = map[domain.WarehouseID]time.Time{warehouse: c.marked.time()}
	}
}

// move is an operator's transaction that moves the warehouse. A repeat writes nothing.
func (m *model) move(s *state, n id, at moment) *answer {
	c := m.reads(s, n)
	c.at = at
	return m.answerTo(s, c, func(time.Time) *answer {
		if c.site != 0 {
			return &answer{}
		}
		var active []domain.Mission
		for _, n := range c.active {
			if n != 0 {
				active = append(active, *m.missions.get(n))
			}
		}
		err := policy.CheckUnused(domain.PlaceWarehouse, string(warehouse), m.rules.Visitors(active, warehouse))
		a := m.record(s, policy.Change{}, err)
		a.moves, a.began = err == nil, at
		return a
	})
}

// stood records where the warehouse stands when a decision that gives orders to a mission
// commits.
func (m *model) stood(before, after *state, d domain.Decision, k int) {
	if d.Amends() {
		k = number(d.AmendsMissionID)
	}
	for _, id := range d.OrderIDs {
		o := number(id)
		if was := m.order(before, o); was != nil && was.AssignedMissionID != missionID(k) {
			after.Stood[k] = after.Stood[k]&^(1<<o) | after.Site<<o
		}
	}
}

// visits checks that ACTIVE missions, and amendments that their drones may not know of, lead to
// where the warehouse is (I11, F-STP-05).
func (m *model) visits(s *state) *Violation {
	for _, n := range s.Mission {
		if n == 0 || m.missions.get(n).Status != domain.MissionActive {
			continue
		}
		x := m.missions.get(n)
		ahead := [...][]domain.Waypoint{x.Route[x.ReachedStops:], nil}
		if x.Amendment != nil {
			ahead[1] = x.Amendment.Route
		}
		for _, stops := range ahead {
			for _, stop := range stops {
				if atWarehouse(stop) && stop.Position != sites[s.Site] && !slices.Contains(x.Route[:x.ReachedStops], stop) {
					return violated("I11", "%s is to pick order %s up at %v, and the warehouse is at %v", x.ID, stop.OrderID, stop.Position, sites[s.Site])
				}
			}
		}
	}
	return nil
}

// pickedUp checks that an order which a mission delivered was picked up where the warehouse
// was when the order was given to the mission (I11).
func (m *model) pickedUp(s *state, k, o int) *Violation {
	stop := m.flown(s, k).Route[m.course(s, k).pickup[o]]
	if stood := sites[s.Stood[k]>>o&1]; atWarehouse(stop) && stop.Position != stood {
		return violated("I11", "order %s is DELIVERED from %v, and its decision was applied when the warehouse was at %v", orderID(o), stop.Position, stood)
	}
	return nil
}
