package policy

import (
	"fmt"
	"math"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// SweepBinding handles what no message reports: a bound drone that fell silent or did not recover
// from a fault, one that parked with stops missing for good, and a mission far over its estimate.
// It also repairs the outbox: a command to a drone in flight that expired unsent gets a new expiry,
// and a mission without the commandPending field, from an earlier version, gets its command.
func (p DronePolicy) SweepBinding(b Binding, now time.Time) Change {
	b = b.clone()
	d, m := &b.Drone, b.Mission
	if !d.Bound() || m == nil {
		return Change{}
	}
	before := *d
	r := &recorder{DronePolicy: p, now: now, cause: domain.CauseSweeper}
	var reason domain.FailureReason
	end := r.failMission
	active := m.Status == domain.MissionActive
	switch {
	// A drone assigned just before it fell silent gets the whole interval.
	case now.Sub(later(d.SeenAt, m.StartTime)) >= p.BoundSilence:
		reason, d.Status = domain.FailureContactLost, domain.DroneUnknown
	case active && !d.FaultSince.IsZero() && now.Sub(d.FaultSince) >= p.FaultGrace+p.ClockError:
		reason = domain.FailureDroneFault
	case active && !d.ParkedSince.IsZero() && now.Sub(d.ParkedSince) >= p.LateGrace+p.ClockError:
		reason, d.Status, end = failureOf(m, domain.FailureAbortedByDrone), domain.DroneUnknown, r.leave
		if d.ReportedStatus == domain.DroneCharging {
			d.Status = domain.DroneCharging
		}
	case active && now.Sub(later(m.StartTime, m.AmendedAt)) > p.stallLimit(*d, *m) && !waits(*m, now.Add(-p.BoundSilence)):
		reason = domain.FailureStalled
	case active && !m.Revoked() && !m.CommandPending && m.CommandPublishedAt.IsZero():
		m.CommandPending = true
		return Change{Missions: []domain.Mission{*m}}
	case d.MissionAcked && m.CommandPending && m.Amendment == nil && now.After(m.CommandExpiresAt):
		oweCommand(m, now.Add(p.CommandLifetime))
		return Change{Missions: []domain.Mission{*m}}
	default:
		return Change{}
	}
	why := end(&b, reason)
	if why == "" { // on the way home only silence ends a binding
		why = silence(before)
	}
	unbind(&b, now)
	if d.EmergencyLatched {
		d.Status = domain.DroneEmergency
	}
	r.drone(&before, d, m.ID, why)
	return r.change
}

// SweepUnflown fails an ACTIVE mission that does not hold its drone, because somebody changed or
// deleted the drone's document. Nothing else would free its orders. drone is nil if there is none.
func SweepUnflown(m domain.Mission, orders map[domain.OrderID]domain.Order, drone *domain.Drone, now time.Time) Change {
	if m.Status != domain.MissionActive || drone != nil && drone.CurrentMissionID == m.ID {
		return Change{}
	}
	b := Binding{Mission: &m, Orders: orders}.clone()
	r := &recorder{now: now, cause: domain.CauseSweeper}
	r.failMission(&b, domain.FailureAbortedByDrone)
	if drone != nil { // it may be a ghost from now on
		after := *drone
		rememberFailure(&after, m.ID, now)
		r.drone(drone, &after, m.ID, "")
	}
	return r.change
}

// stallLimit is how long the mission may take in all. It is at least BoundSilence, because the
// command of a short mission may still be on its way. A drone at its charging stop gets more time,
// because others may occupy the slots. An estimate that does not fit a time.Duration means no
// limit.
func (p DronePolicy) stallLimit(d domain.Drone, m domain.Mission) time.Duration {
	queue := time.Duration(0)
	if p.queues(d, m) {
		queue = p.QueueLimit
	}
	if !(m.EstimatedDurationMinutes > 0) { // or NaN
		return p.StallFloor + queue
	}
	limit := p.StallFactor * m.EstimatedDurationMinutes * float64(time.Minute)
	if limit >= math.MaxInt64-float64(queue) {
		return math.MaxInt64
	}
	return max(time.Duration(limit), p.BoundSilence) + queue
}

// SweepIdle makes a silent idle drone UNKNOWN, so that no cycle plans with it.
func (p DronePolicy) SweepIdle(d domain.Drone, now time.Time) Change {
	if d.Bound() || d.Status != domain.DroneIdle || now.Sub(d.SeenAt) < p.IdleSilence {
		return Change{}
	}
	before := d
	r := &recorder{DronePolicy: p, now: now, cause: domain.CauseSweeper}
	d.Status = domain.DroneUnknown
	r.drone(&before, &d, "", silence(before))
	return r.change
}

// silence is the reason of a drone's event when no mission failed with it.
func silence(d domain.Drone) string {
	return fmt.Sprintf("silent since %s", d.SeenAt.UTC().Format(time.RFC3339))
}

// SweepOrder marks an order that is still open past its deadline.
func SweepOrder(o domain.Order, now time.Time) Change {
	if o.Late || o.Status.Final() || o.Deadline.IsZero() || !now.After(o.Deadline) {
		return Change{}
	}
	before := o
	r := &recorder{now: now, cause: domain.CauseSweeper}
	o.Late = true
	r.order(before, &o, "past its deadline")
	return r.change
}
