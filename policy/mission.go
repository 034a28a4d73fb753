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

// failMission ends the bound, active mission: its orders go back to the pool
// or to an operator, and the drone is owed a revocation. The drone stays bound;
// see unbind. failed is why the mission failed; empty if it was over before.
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
		o.Status, o.PendingSince = domain.OrderPending, r.now
		o.AssignedDroneID, o.AssignedMissionID, o.Releasing = "", "", false
		r.order(before, &o, string(reason))
		b.Orders[id] = o
	}
	before := *m
	m.Status, m.FailureReason, m.EndTime = domain.MissionFailed, reason, r.now
	m.CommandPending, m.RevokePending = false, true
	r.mission(before, m, string(reason))
	return string(reason)
}

// unbind frees the drone of its mission and remembers a failure, by which its
// ghost is told later.
func unbind(b *Binding, now time.Time) {
	d := &b.Drone
	if b.Mission != nil && b.Mission.Status == domain.MissionFailed {
		rememberFailure(d, d.CurrentMissionID, now)
	}
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

// withdrawOrder takes a cancelled order out of the bound mission. The order
// itself is already recorded as cancelled.
func (r *recorder) withdrawOrder(b *Binding, id domain.OrderID, commandLifetime, clockError time.Duration) {
	m := b.Mission
	if m == nil || m.Status != domain.MissionActive || !slices.Contains(m.OrderIDs, id) {
		return
	}
	before := *m
	m.OrderIDs = slices.DeleteFunc(slices.Clone(m.OrderIDs), func(x domain.OrderID) bool { return x == id })
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
	// The drone is owed the shorter route, if only to fly home.
	if !m.Revoked() {
		oweCommand(m, r.now.Add(commandLifetime))
	}
	if r.settle(b); m.Status == domain.MissionActive && !b.Drone.MissionAcked {
		b.Drone.FreeAfter = m.CommandExpiresAt.Add(clockError)
	}
	r.mission(before, m, string(domain.FailureWithdrawn))
}

// oweCommand makes the mission owe its drone a command that expires at the given
// time, or just after the one before it: by that a drone tells them apart when
// they come out of order, though the clocks they are dated by differ.
func oweCommand(m *domain.Mission, expires time.Time) {
	if next := m.CommandExpiresAt.Add(time.Microsecond); next.After(expires) {
		expires = next
	}
	m.CommandPending, m.CommandPublishedAt, m.CommandExpiresAt = true, time.Time{}, expires
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
