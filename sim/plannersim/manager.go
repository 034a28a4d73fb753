package plannersim

import (
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// The State Manager of a replay: the policies of production over maps. No message is lost.

// counts says what came of the decisions.
type counts struct {
	missions, standby, refused int
	rejected                   map[policy.Reason]int
	amends                     Amendments
}

// Amendments counts what came of the missions with orders that were changed under way.
type Amendments struct {
	Applied int
	Refused map[policy.Reason]int
	Void    int // the drone did not take the new route
	Orders  int // that were added
	// Exchanged is how many orders drones let go for others; Reordered is how many amendments
	// only change the order of stops.
	Exchanged, Reordered int
}

// report has a drone report, and applies that.
func (r *replay) report(t *trackedDrone) error {
	from := t.known.Position
	drone, report := t.drone.Report(r.now)
	r.reported++
	t.drone = drone
	r.lowest = min(r.lowest, report.Battery)
	r.flownKm += from.DistanceMetres(report.Position) / 1000
	if report.Status != domain.DroneIdle {
		r.busy += time.Second
	}
	after, change, err := r.reports().ApplyTelemetry(r.binding(t.known), report, r.now)
	if err != nil {
		return fmt.Errorf("report of drone %s: %w", report.DroneID, err)
	}
	moves := change.OnlyWhereabouts() && change.WithinDrone()
	if moves && !r.reports().PositionDue(&t.document, &t.known, &after.Drone, after.Mission, r.now) {
		t.known = after.Drone
		return nil
	}
	r.written++
	t.known = after.Drone
	r.commit(t, change)
	return nil
}

// sweep does what no report does.
func (r *replay) sweep() {
	for i := range r.drones {
		t := &r.drones[i]
		r.commit(t, r.reports().SweepBinding(r.binding(t.document), r.now))
	}
}

func (r *replay) binding(d domain.Drone) policy.Binding {
	b := policy.Binding{Drone: d}
	if m, bound := r.missions[d.CurrentMissionID]; bound {
		b.Mission, b.Orders = &m, r.ordersOf(m.OrderIDs)
	}
	return b
}

func (r *replay) ordersOf(ids []domain.OrderID) map[domain.OrderID]domain.Order {
	orders := make(map[domain.OrderID]domain.Order, len(ids))
	for _, id := range ids {
		orders[id] = *r.orders[id]
	}
	return orders
}

// commit stores a change that concerns a drone, and sends it what it is owed.
func (r *replay) commit(t *trackedDrone, c policy.Change) {
	if c.Drone != nil {
		t.document = *c.Drone
		t.known = policy.WithWhereaboutsOf(*c.Drone, &t.known)
	}
	for i := range c.Orders {
		o := r.orders[c.Orders[i].ID]
		if o.Status != domain.OrderPending && c.Orders[i].Status == domain.OrderPending {
			r.pending = append(r.pending, o)
		}
		*o = c.Orders[i]
	}
	for _, m := range c.Missions {
		if a := r.missions[m.ID].Amendment; a != nil {
			switch {
			case m.RouteRevision == a.Revision:
				r.counts.amends.Exchanged += len(a.ReleasedIDs)
			case m.Amendment == nil && m.Status == domain.MissionActive:
				r.counts.amends.Void++
			}
		}
		if m.Owing() {
			t.commands = append(t.commands, sentCommand{m.Command(), r.now.Add(r.latency)})
			if m.RevokePending {
				m.RevokePublishedAt = r.now
			}
			m.CommandPending, m.RevokePending, m.CommandPublishedAt = false, false, r.now
		}
		r.missions[m.ID] = m
	}
}

// decide judges a decision. It fails if the decision names a drone or an order that does not
// exist.
func (r *replay) decide(d domain.Decision) error {
	t := r.tracked(d.DroneID)
	if t == nil {
		return fmt.Errorf("no drone %s", d.DroneID)
	}
	drone, ids := t.document, d.OrderIDs
	state := policy.DecisionState{Drone: &drone, Depots: r.world.Depots, Warehouses: stocked(r.world.Warehouses)}
	m, amends := r.missions[d.AmendsMissionID]
	if amends {
		state.Mission, ids = &m, append(ids[:len(ids):len(ids)], m.OrderIDs...)
	}
	for _, id := range ids {
		if r.orders[id] == nil {
			return fmt.Errorf("no order %s", id)
		}
	}
	state.Orders = r.ordersOf(ids)
	verdict, err := r.rules.AssignMission(state, d, policy.Delivery{}, r.now)
	if err != nil {
		return err
	}
	r.counts.add(d, amends && !m.Standby(), verdict.Entry)
	r.commit(t, verdict.Change)
	return nil
}

// stocked are warehouses by their ids.
func stocked(list []domain.Warehouse) map[domain.WarehouseID]domain.Warehouse {
	warehouses := make(map[domain.WarehouseID]domain.Warehouse, len(list))
	for _, w := range list {
		warehouses[w.ID] = w
	}
	return warehouses
}

func (r *replay) tracked(id domain.DroneID) *trackedDrone {
	for i := range r.drones {
		if t := &r.drones[i]; t.document.ID == id {
			return t
		}
	}
	return nil
}

// add counts a decision that was judged. amends says that it is about a mission with orders.
func (c *counts) add(d domain.Decision, amends bool, e domain.LedgerEntry) {
	reason := policy.Reason(e.Reason)
	count := func(reasons *map[policy.Reason]int) {
		if *reasons == nil {
			*reasons = make(map[policy.Reason]int)
		}
		(*reasons)[reason]++
	}
	switch {
	case amends && reason != "":
		count(&c.amends.Refused)
	case reason == policy.ReasonOrderNotPending:
		c.refused++
	case reason != "":
		count(&c.rejected)
	case amends:
		c.amends.Applied++
		c.amends.Orders += len(e.AddedIDs)
		if len(e.AddedIDs)+len(e.ReleasedIDs) == 0 {
			c.amends.Reordered++
		}
	case d.Standby():
		c.standby++
	default:
		c.missions++
	}
}
