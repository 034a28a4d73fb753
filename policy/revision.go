package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// A mission can be changed under way (F-AMD-01 to 05). Until the drone names the new revision it
// may fly either route, so the mission owns the orders of both. Added orders belong to it at once,
// released ones until the drone confirms. A drone that names another revision after the command has
// expired will never fly the new one.

// Reasons for orders to wait again: the amendment that added them became void, or an amendment took
// them away.
const (
	ReasonAmendmentVoid Reason = "AMENDMENT_VOID"
	ReasonReleased      Reason = "RELEASED"
)

// amend writes a decided amendment. It binds the added orders and marks the released ones. The
// drone's document changes with its mission.
func (p MissionAssignmentPolicy) amend(c decisionCase, entry *domain.LedgerEntry) Change {
	r := &recorder{now: c.now, cause: domain.CauseDecision, decision: c.decision.ID, cycle: c.decision.CycleID}
	before, d := *c.Mission, c.decision
	m := before
	a := domain.Amendment{
		Revision: m.LatestRevision() + 1, Route: d.Route, AddedIDs: c.added(), ReleasedIDs: c.released(),
		EstimatedBatteryConsumption: d.EstimatedBatteryConsumption, EstimatedDurationMinutes: d.EstimatedDurationMinutes,
		DecisionID: d.ID, DecidedAt: c.now,
	}
	entry.Revision, entry.AddedIDs, entry.ReleasedIDs = a.Revision, a.AddedIDs, a.ReleasedIDs
	m.Amendment = &a
	m.OrderIDs = append(slices.Clone(m.OrderIDs), a.AddedIDs...)
	oweCommand(&m, c.now.Add(p.CommandLifetime))
	r.mission(before, &m, "")
	drone := *c.Drone
	r.drone(&drone, &drone, m.ID, "")
	r.assignOrders(c.DecisionState, a.AddedIDs, m)
	for _, id := range a.ReleasedIDs {
		before := c.Orders[id]
		if before.Status != domain.OrderAssigned || before.AssignedMissionID != m.ID {
			continue
		}
		o := before
		o.Releasing = true
		r.order(before, &o, "")
	}
	return r.change
}

// checkRoute refuses a report that names a revision which its mission never had, or did not have
// yet when the drone measured. It also refuses one that counts more stops than the revision has.
func (p DronePolicy) checkRoute(m domain.Mission, t domain.Telemetry) error {
	a := m.Amendment
	switch {
	case t.MissionRevision > max(m.LatestRevision(), 1):
		return reject(ReasonUnknownRevision, string(t.DroneID), "mission_revision is %d; mission %s has had %d", t.MissionRevision, m.ID, m.LatestRevision())
	case a != nil && t.MissionRevision == a.Revision && t.Timestamp.Before(a.DecidedAt.Add(-2*p.ClockError)): // the drone's clock and the decider's
		return reject(ReasonUnknownRevision, string(t.DroneID), "mission_revision is %d, which was decided %s after the report was measured; check the drone's clock",
			t.MissionRevision, a.DecidedAt.Sub(t.Timestamp).Round(time.Millisecond))
	}
	if n, known := routeStops(m, t.MissionRevision); known && t.CompletedStops != nil && *t.CompletedStops > n {
		return reject(ReasonTooManyStops, string(t.DroneID), "completed_stops is %d; the route of mission %s has %d stops", *t.CompletedStops, m.ID, n)
	}
	return nil
}

// heedRevision applies the revision that a report of the bound drone names. The amendment's own
// puts it in force; another one, after the command has expired, makes it void.
func (r *recorder) heedRevision(b *Binding, t domain.Telemetry) {
	m := b.Mission
	if m == nil || m.Status != domain.MissionActive || m.Amendment == nil {
		return
	}
	switch {
	case t.MissionRevision == m.Amendment.Revision:
		r.confirmAmendment(b)
	case t.Timestamp.After(m.CommandExpiresAt.Add(r.ClockError)):
		r.voidAmendment(b)
	}
}

// confirmAmendment puts the amendment in force. Released orders wait from now on. One that was
// picked up meanwhile waits for an operator, because the drone says that it flies without it.
func (r *recorder) confirmAmendment(b *Binding) {
	m := b.Mission
	before, a := *m, *m.Amendment
	same := sharedStops(m.Route, a.Route)
	adopt(m)
	if k := b.Drone.Track; k != nil {
		k.Stops = min(k.Stops, same) // it flew the other route before this report
	}
	for _, id := range a.ReleasedIDs {
		o := b.Orders[id]
		if o.AssignedMissionID != m.ID || o.Status != domain.OrderAssigned && o.Status != domain.OrderInDelivery {
			continue
		}
		before := o
		if o.Status == domain.OrderInDelivery {
			o.Held, o.HeldReason = true, fmt.Sprintf("the parcel may be aboard drone %s, which flies revision %d without it", m.DroneID, a.Revision)
		}
		r.unassign(b, before, o, ReasonReleased)
	}
	r.complete(b)
	r.mission(before, m, "")
}

// voidAmendment leaves the old revision in force. The drone is told it again, because it may have
// missed a command that the amendment's replaced.
func (r *recorder) voidAmendment(b *Binding) {
	m := b.Mission
	before, a := *m, *m.Amendment
	m.EarlierRoutes = withEarlier(m.EarlierRoutes, a.Revision, sharedIndexes(*m))
	m.Amendment = nil
	r.unassignAdded(b, a)
	for _, id := range a.ReleasedIDs {
		if o := b.Orders[id]; o.Releasing {
			before := o
			o.Releasing = false
			r.order(before, &o, string(ReasonAmendmentVoid))
			b.Orders[id] = o
		}
	}
	if !m.Revoked() {
		oweCommand(m, r.now.Add(r.CommandLifetime))
	}
	r.complete(b)
	r.mission(before, m, string(ReasonAmendmentVoid))
}

// adopt puts the amendment's route in force. Sightings of the stops that both routes begin with
// stay.
func adopt(m *domain.Mission) {
	a := *m.Amendment
	from, to := commandedIndexes(m.Route, m.DroppedStops), commandedIndexes(a.Route, a.DroppedStops)
	same := sharedStops(m.Route, a.Route)
	var sightings []domain.Sighting
	for _, s := range m.Sightings {
		if i := slices.Index(from, s.Stop); i >= 0 && i < same {
			s.Stop = to[i]
			sightings = append(sightings, s)
		}
	}
	m.EarlierRoutes = withEarlier(m.EarlierRoutes, m.RouteRevision, sharedIndexes(*m))
	m.RouteRevision, m.Route, m.DroppedStops = a.Revision, a.Route, a.DroppedStops
	m.Sightings, m.ReachedStops = sightings, min(m.ReachedStops, same)
	m.EstimatedBatteryConsumption, m.EstimatedDurationMinutes = a.EstimatedBatteryConsumption, a.EstimatedDurationMinutes
	m.Amendment, m.AmendedAt = nil, a.DecidedAt
}
