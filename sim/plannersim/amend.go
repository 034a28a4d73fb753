package plannersim

import (
	"fmt"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// Amendments counts what came of the missions that were changed under way.
type Amendments struct {
	Applied int
	Refused map[policy.Reason]int
	Void    int // the drone did not take the new route
	Orders  int // that were added
	// Exchanged is how many orders drones let go for others; Reordered is how many amendments
	// only change the order of stops.
	Exchanged, Reordered int
}

// known is the drone as the State Manager knows it.
func (t *trackedDrone) known(now time.Time) domain.Drone {
	d := t.static
	d.Status, d.Position, d.Battery, d.SpeedKmh = t.report.Status, t.report.Position, t.report.Battery, t.report.SpeedKmh
	d.LastUpdate, d.SeenAt = t.report.Timestamp, now
	d.SupportsAmendments = t.report.SupportsAmendments
	if t.mission != nil {
		d.CurrentMissionID, d.MissionAcked, d.NamedRevision = t.mission.ID, t.acked, t.report.MissionRevision
	}
	return d
}

// homebound reports whether a drone can be given its next mission before it has landed.
func (t *trackedDrone) homebound() bool {
	return t.mission != nil && t.acked && t.mission.LastOrderStopReached() && t.report.SupportsAmendments && t.report.Battery > 20 &&
		t.report.Status == domain.DroneMoving && t.report.MissionID == t.mission.ID
}

// inFlight are the drones of an area whose missions can be amended now.
func (r *replay) inFlight(area domain.Area) (flights []domain.Flight) {
	drones := policy.DefaultDronePolicy()
	for i := range r.drones {
		t := &r.drones[i]
		if t.mission == nil || !area.Has(t.static.HomeDepotID) {
			continue
		}
		d := t.known(r.now)
		if t.stands() {
			if t.command == nil {
				flights = append(flights, domain.Flight{Drone: d, Mission: *t.mission})
			}
			continue
		}
		if t.homebound() {
			m := *t.mission
			m.Status = domain.MissionCompleted
			flights = append(flights, domain.Flight{Drone: d, Mission: m, ReachedAt: t.reached})
			continue
		}
		if !drones.Amendable(d, *t.mission, r.now) {
			continue
		}
		f := domain.Flight{Drone: d, Mission: *t.mission, ReachedAt: t.reached}
		for _, id := range t.mission.OrderIDs {
			if o := r.orders[id]; o.Status != domain.OrderDelivered {
				f.Orders = append(f.Orders, *o)
			}
		}
		flights = append(flights, f)
	}
	return flights
}

// amend judges a decision that changes a mission by the rules of production.
func (r *replay) amend(t *trackedDrone, d domain.Decision, latency time.Duration) error {
	for _, id := range d.OrderIDs {
		if o := r.orders[id]; o == nil {
			return fmt.Errorf("no order %s", id)
		}
	}
	state := policy.DecisionState{Orders: map[domain.OrderID]domain.Order{}}
	drone := t.known(r.now)
	state.Drone = &drone
	for _, id := range d.OrderIDs {
		state.Orders[id] = *r.orders[id]
	}
	if t.mission != nil && t.mission.ID == d.AmendsMissionID {
		m := *t.mission
		if m.LastOrderStopReached() {
			m.Status = domain.MissionCompleted
		}
		state.Mission = &m
		for _, id := range m.OrderIDs {
			state.Orders[id] = *r.orders[id]
		}
	}
	rules := policy.DefaultMissionAssignmentPolicy()
	rules.AllowUnfenced = true
	verdict, err := rules.AssignMission(state, d, policy.Delivery{}, r.now)
	if err != nil {
		return err
	}
	if reason := policy.Reason(verdict.Entry.Reason); reason != "" {
		if r.amends.Refused == nil {
			r.amends.Refused = make(map[policy.Reason]int)
		}
		r.amends.Refused[reason]++
		return nil
	}
	m := t.mission
	r.flownKm -= m.PlannedKm()
	released := verdict.Entry.ReleasedIDs
	m.Amendment = &domain.Amendment{Revision: verdict.Entry.Revision, Route: d.Route, AddedIDs: verdict.Entry.AddedIDs, ReleasedIDs: released, DecidedAt: r.now}
	m.OrderIDs = append(slices.Clone(m.OrderIDs), verdict.Entry.AddedIDs...)
	for _, id := range released {
		r.orders[id].Releasing = true
	}
	for _, id := range verdict.Entry.AddedIDs {
		o := r.orders[id]
		o.Status, o.AssignedDroneID, o.AssignedMissionID = domain.OrderAssigned, d.DroneID, m.ID
	}
	command := domain.Command{Mission: *m, ExpiresAt: r.now.Add(time.Hour)}
	command.Mission.Route, command.Mission.RouteRevision = d.Route, verdict.Entry.Revision
	t.command, t.due = &command, r.now.Add(latency)
	r.flownKm += command.Mission.PlannedKm()
	r.amends.Applied++
	r.amends.Orders += len(verdict.Entry.AddedIDs)
	if len(verdict.Entry.AddedIDs)+len(released) == 0 {
		r.amends.Reordered++
	}
	return nil
}

// confirm puts an amendment in force that the drone names, or ends one that the drone has
// not taken although it was told.
func (r *replay) confirm(t *trackedDrone) {
	a := t.mission.Amendment
	switch {
	case a == nil:
	case t.report.MissionRevision == a.Revision:
		t.mission.Route, t.mission.RouteRevision, t.mission.Amendment = a.Route, a.Revision, nil
		r.letGo(t.mission, a.ReleasedIDs)
	case t.command == nil:
		r.void(t)
	}
}

// letGo makes the orders wait that a drone no longer flies to (F-AMD-04). The parcel of one
// that it has fetched meanwhile may be aboard: that waits for an operator.
func (r *replay) letGo(m *domain.Mission, released []domain.OrderID) {
	for _, id := range released {
		o := r.orders[id]
		o.Held = o.Status == domain.OrderInDelivery
		o.Releasing = false
		o.Status, o.AssignedDroneID, o.AssignedMissionID, o.PendingSince = domain.OrderPending, "", "", r.now
		r.pending = append(r.pending, o)
		r.amends.Exchanged++
	}
	m.OrderIDs = slices.DeleteFunc(slices.Clone(m.OrderIDs), func(id domain.OrderID) bool { return slices.Contains(released, id) })
}

// void ends an amendment that its drone does not fly: the added orders wait again.
func (r *replay) void(t *trackedDrone) {
	a := t.mission.Amendment
	if a == nil {
		return
	}
	r.amends.Void++
	for _, id := range a.AddedIDs {
		if o := r.orders[id]; o.Status == domain.OrderAssigned {
			o.Status, o.AssignedDroneID, o.AssignedMissionID = domain.OrderPending, "", ""
			r.pending = append(r.pending, o)
		}
	}
	for _, id := range a.ReleasedIDs {
		r.orders[id].Releasing = false
	}
	t.mission.OrderIDs = slices.DeleteFunc(slices.Clone(t.mission.OrderIDs), func(id domain.OrderID) bool { return slices.Contains(a.AddedIDs, id) })
	t.mission.EarlierRoutes = append(t.mission.EarlierRoutes, domain.EarlierRoute{Revision: a.Revision})
	t.mission.Amendment = nil
}
