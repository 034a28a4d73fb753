package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// MaxAttempts is how many missions may fail before an order waits for an
// operator.
const MaxAttempts = 3

// assign creates the mission, binds the drone and assigns the orders. It does not
// touch the drone's LastUpdate: a report measured before the drone learns of the
// mission still counts.
func (p MissionAssignmentPolicy) assign(s DecisionState, d domain.Decision, now time.Time) Change {
	r := &recorder{now: now, cause: domain.CauseDecision, decision: d.ID, cycle: d.CycleID}
	m := domain.Mission{
		ID: domain.MissionIDFor(d.ID), DroneID: d.DroneID, OrderIDs: d.OrderIDs, Route: d.Route,
		Status: domain.MissionActive, StartTime: now,
		EstimatedBatteryConsumption: d.EstimatedBatteryConsumption,
		EstimatedDurationMinutes:    d.EstimatedDurationMinutes,
		DecisionID:                  d.ID, CycleID: d.CycleID, Fence: d.Fence,
		RouteRevision:  1,
		CommandPending: true, CommandExpiresAt: now.Add(p.CommandLifetime),
	}

	before := *s.Drone
	drone := before
	forget(&drone)
	startTrack(&drone, &m)
	r.mission(domain.Mission{}, &m, "")
	drone.Status, drone.CurrentMissionID = domain.DroneMoving, m.ID
	drone.FreeAfter = m.CommandExpiresAt.Add(p.ClockError)
	r.drone(&before, &drone, m.ID, "")

	r.assignOrders(s, d.OrderIDs, m)
	return r.change
}

func (r *recorder) assignOrders(s DecisionState, ids []domain.OrderID, m domain.Mission) {
	for _, id := range ids {
		o := s.Orders[id]
		o.Status, o.AssignedDroneID, o.AssignedMissionID = domain.OrderAssigned, m.DroneID, m.ID
		r.order(s.Orders[id], &o, "")
	}
}

// putBack makes an order wait again.
func (r *recorder) putBack(o *domain.Order) {
	o.Status, o.PendingSince = domain.OrderPending, r.now
	o.AssignedDroneID, o.AssignedMissionID, o.Releasing = "", "", false
}

// prove applies what a report proves about the bound mission: its reached stops, their effect on
// the orders, and its completion after the last order stop. It proves at most the possible stops.
func (r *recorder) prove(b *Binding, t domain.Telemetry, named bool, possible int) {
	m := b.Mission
	if m == nil || m.Status == domain.MissionFailed {
		return
	}
	proved, beyond := r.addEvidence(m, t, named, possible)
	if beyond != "" {
		r.implausible(&b.Drone, beyond)
	}
	if !proved {
		return
	}
	times := ReachTimes(*m)
	for m.Status == domain.MissionActive && m.ReachedStops < len(times) {
		i := m.ReachedStops
		before := *m
		m.ReachedStops++
		r.mission(before, m, "")
		r.serveStop(b, m.Route[i], times[i])
	}
	r.correctTimes(*m, b.Orders, times)
	before := *m
	if r.complete(b); m.Status != before.Status {
		r.mission(before, m, "")
	}
	r.keepMission(*m)
}

// serveStop applies what reaching a stop means for its order.
func (r *recorder) serveStop(b *Binding, stop domain.Waypoint, measured time.Time) {
	o := b.Orders[stop.OrderID]
	if o.AssignedMissionID != b.Mission.ID {
		return
	}
	before := o
	switch {
	case stop.Type == domain.WaypointWarehousePickup && o.Status == domain.OrderAssigned:
		o.Status, o.Releasing = domain.OrderInDelivery, false
	case stop.Type == domain.WaypointHospitalDelivery && o.Status == domain.OrderInDelivery:
		deliver(&o, measured, r.now)
	default:
		return
	}
	r.order(before, &o, "")
	b.Orders[o.ID] = o
}

// correctTimes moves deliveries back to the earlier times that new evidence proves.
func (r *recorder) correctTimes(m domain.Mission, orders map[domain.OrderID]domain.Order, times []time.Time) {
	for i, at := range times {
		stop := m.Route[i]
		o := orders[stop.OrderID]
		if stop.Type != domain.WaypointHospitalDelivery || o.Status != domain.OrderDelivered || o.AssignedMissionID != m.ID || !at.Before(o.DeliveredAt) {
			continue
		}
		before := o
		deliver(&o, at, r.now)
		r.order(before, &o, "delivered earlier, by a late report")
		orders[o.ID] = o
	}
}

// deliver marks an order as delivered at a time of the drone's clock.
func deliver(o *domain.Order, measured, now time.Time) {
	o.Status, o.DeliveredAt = domain.OrderDelivered, earlier(measured, now)
	o.Late = !o.Deadline.IsZero() && o.DeliveredAt.After(o.Deadline)
}

// complete ends a mission that has nothing left to pick up or deliver. The drone then flies home.
// The mission goes on while the drone may fly to orders that an amendment adds.
func (r *recorder) complete(b *Binding) {
	m := b.Mission
	if m.Status != domain.MissionActive || !m.LastOrderStopReached() || m.AwaitsAdded() {
		return
	}
	if m.Amendment != nil { // it only takes away, and nothing is left to take
		m.EarlierRoutes = withEarlier(m.EarlierRoutes, m.Amendment.Revision, sharedIndexes(*m))
		m.Amendment = nil
	}
	m.Status, m.EndTime = domain.MissionCompleted, r.now
	endTrack(b)
	b.Drone.Homebound, b.Drone.HomeboundSince = true, r.now
}

// failMission fails the bound, active mission and queues a revocation. Its orders go back to the
// pool or to an operator. The drone stays bound until unbind. failed is why the mission failed; it
// is empty if the mission had ended before.
func (r *recorder) failMission(b *Binding, reason domain.FailureReason) (failed string) {
	m := b.Mission
	if m == nil || m.Status != domain.MissionActive {
		return ""
	}
	for _, id := range m.OrderIDs {
		o := b.Orders[id]
		if o.AssignedMissionID != m.ID {
			continue
		}
		before := o
		switch o.Status {
		case domain.OrderAssigned:
			if reason == domain.FailureRecalled {
				break // a recall does not count as a failed attempt
			}
			o.Attempts++
			if o.Attempts >= MaxAttempts {
				o.Held, o.HeldReason = true, fmt.Sprintf("%d missions failed before picking it up, the last with %s", o.Attempts, reason)
			}
		case domain.OrderInDelivery:
			o.Held, o.HeldReason = true, fmt.Sprintf("the parcel is aboard drone %s, whose mission failed with %s", m.DroneID, reason)
		case domain.OrderPending, domain.OrderSolving, domain.OrderDelivered, domain.OrderCancelled:
			continue
		}
		r.putBack(&o)
		r.order(before, &o, string(reason))
		b.Orders[id] = o
	}
	before := *m
	m.Status, m.FailureReason, m.EndTime = domain.MissionFailed, reason, r.now
	endTrack(b)
	revoke(m)
	r.mission(before, m, string(reason))
	return string(reason)
}

// left reports whether a report that does not name the bound mission shows that the drone has left
// it. A drone in flight has left only a revoked mission.
func left(b Binding, claim domain.DroneStatus) bool {
	m := b.Mission
	return isParked(claim) || isFlying(claim) && b.Drone.MissionAcked && m != nil && m.Status == domain.MissionActive && m.Revoked()
}

// failureOf is why a mission that its drone left has failed.
func failureOf(m *domain.Mission, reason domain.FailureReason) domain.FailureReason {
	if m != nil && m.Status == domain.MissionActive && m.Revoked() {
		return domain.FailureRecalled
	}
	return reason
}

// leave ends the mission of a drone that has left it with stops missing. If an amendment added all
// of these, the mission is COMPLETED without them. It keeps the amendment, because late reports may
// show that they were served.
func (r *recorder) leave(b *Binding, reason domain.FailureReason) (failed string) {
	m := b.Mission
	if m == nil || m.Status != domain.MissionActive || !m.LastOrderStopReached() || !m.AwaitsAdded() {
		return r.failMission(b, reason)
	}
	before := *m
	r.unassignAdded(b, *m.Amendment)
	m.Status, m.EndTime = domain.MissionCompleted, r.now
	endTrack(b)
	m.CommandPending = false
	r.mission(before, m, string(ReasonAmendmentVoid))
	return ""
}

// unassignAdded takes back the orders that an amendment added and that the drone has not picked up.
func (r *recorder) unassignAdded(b *Binding, a domain.Amendment) {
	for _, id := range a.AddedIDs {
		if o := b.Orders[id]; o.AssignedMissionID == b.Mission.ID && o.Status == domain.OrderAssigned {
			r.unassign(b, o, o, ReasonAmendmentVoid)
		}
	}
}

// unassign takes an order from the bound mission. It does not count as a failed attempt.
func (r *recorder) unassign(b *Binding, before, o domain.Order, reason Reason) {
	r.putBack(&o)
	r.order(before, &o, string(reason))
	delete(b.Orders, o.ID)
	b.Mission.OrderIDs = minus(b.Mission.OrderIDs, []domain.OrderID{o.ID})
}

// withdrawOrder takes an order out of the bound mission and of the binding. The caller has already
// recorded what became of the order.
func (r *recorder) withdrawOrder(from Binding, id domain.OrderID) {
	b := from.clone()
	delete(b.Orders, id)
	r.shorten(&b, id)
	r.drone(&from.Drone, &b.Drone, from.Drone.CurrentMissionID, string(domain.FailureWithdrawn))
}

// shorten takes an order out of the bound mission's routes. A mission that has no other fails.
func (r *recorder) shorten(b *Binding, id domain.OrderID) {
	m := b.Mission
	if m == nil || m.Status != domain.MissionActive || !slices.Contains(m.OrderIDs, id) {
		return
	}
	before := *m
	m.OrderIDs = minus(m.OrderIDs, []domain.OrderID{id})
	if len(m.OrderIDs) == 0 {
		m.OrderIDs = before.OrderIDs // kept for the auditor
		r.failMission(b, domain.FailureWithdrawn)
		unbind(b, r.now)
		return
	}
	if m.Amendment != nil {
		a := *m.Amendment
		from := min(m.ReachedStops, sharedStops(m.Route, a.Route))
		a.Route, a.DroppedStops = withoutOrder(a.Route, a.DroppedStops, from, id)
		a.AddedIDs, a.ReleasedIDs = minus(a.AddedIDs, []domain.OrderID{id}), minus(a.ReleasedIDs, []domain.OrderID{id})
		m.Amendment = &a
	}
	m.Route, m.DroppedStops = withoutOrder(m.Route, m.DroppedStops, m.ReachedStops, id)
	// The drone needs the shorter route, even if only to fly home.
	if !m.Revoked() {
		oweCommand(m, r.now.Add(r.CommandLifetime))
	}
	if r.complete(b); m.Status == domain.MissionActive && !b.Drone.MissionAcked {
		b.Drone.FreeAfter = m.CommandExpiresAt.Add(r.ClockError)
	}
	r.mission(before, m, string(domain.FailureWithdrawn))
}

// unbind frees the drone of its mission. The drone's document remembers a failed one, in case the
// drone flies on as a ghost.
func unbind(b *Binding, now time.Time) {
	d := &b.Drone
	if b.Mission != nil && b.Mission.Status == domain.MissionFailed {
		rememberFailure(d, d.CurrentMissionID, now)
	}
	forget(d)
}

// forget clears what a drone's document says about a mission.
func forget(d *domain.Drone) {
	d.CurrentMissionID = ""
	d.MissionAcked, d.MissionMoved, d.NamedRevision = false, false, 0
	d.FreeAfter, d.FaultSince, d.ParkedSince = time.Time{}, time.Time{}, time.Time{}
	d.Homebound, d.HomeboundSince = false, time.Time{}
}

// rememberFailure notes the latest failed mission of a drone.
func rememberFailure(d *domain.Drone, id domain.MissionID, now time.Time) {
	d.FailedMissions = append(slices.Clip(d.FailedMissions), domain.FailedMission{ID: id, FailedAt: now})
	if n := len(d.FailedMissions) - domain.MaxFailedMissions; n > 0 {
		d.FailedMissions = slices.Clone(d.FailedMissions[n:])
	}
}

// oweCommand queues a command for the drone. It expires at the given time, but later than the one
// before, because drones order commands by their expiry.
func oweCommand(m *domain.Mission, expires time.Time) {
	if next := m.CommandExpiresAt.Add(time.Microsecond); next.After(expires) {
		expires = next
	}
	m.CommandPending, m.CommandPublishedAt, m.CommandExpiresAt = true, time.Time{}, expires
}

// revoke queues a revocation for the drone. It replaces a command that was not sent.
func revoke(m *domain.Mission) { m.CommandPending, m.RevokePending = false, true }
