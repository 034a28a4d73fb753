package policy

import (
	"fmt"
	"math"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// SweepBinding handles what no message will: a bound drone that fell silent or
// did not recover from a fault, a mission far over its estimate. A drone that
// falls silent on its way home is lost too, though its mission is done. A
// command that a drone in flight is owed, and that expired before anybody sent
// it, is dated anew: this one has its mission, and no timer waits for the
// command to expire. A mission whose command was neither sent nor noted as
// pending comes from a version that does not know the note; it owes the command.
func (p DronePolicy) SweepBinding(b Binding, now time.Time) Change {
	b = b.clone()
	d, m := &b.Drone, b.Mission
	if !d.Bound() || m == nil {
		return Change{}
	}
	before := *d
	r := &recorder{now: now, cause: domain.CauseSweeper}
	var reason domain.FailureReason
	active := m.Status == domain.MissionActive
	switch {
	case now.Sub(lastSign(*d, *m)) >= p.BoundSilence:
		reason, d.Status = domain.FailureContactLost, domain.DroneUnknown
	case active && !d.FaultSince.IsZero() && now.Sub(d.FaultSince) >= p.FaultGrace+p.ClockError:
		reason = domain.FailureDroneFault
	case active && now.Sub(m.StartTime) > p.stallLimit(*m):
		reason = domain.FailureStalled
	case active && !m.CommandPending && m.CommandPublishedAt.IsZero():
		m.CommandPending = true
		return Change{Missions: []domain.Mission{*m}}
	case d.MissionAcked && m.CommandPending && now.After(m.CommandExpiresAt):
		oweCommand(m, now.Add(p.CommandLifetime))
		return Change{Missions: []domain.Mission{*m}}
	default:
		return Change{}
	}
	why := r.failMission(&b, reason)
	if why == "" { // on its way home nothing but silence ends a binding
		why = silence(before)
	}
	unbind(&b, now)
	if d.EmergencyLatched {
		d.Status = domain.DroneEmergency
	}
	r.drone(before, d, m.ID, why)
	return r.change
}

// lastSign is the drone's last sign of life that counts against its mission: a
// drone assigned just before it fell silent gets the whole interval.
func lastSign(d domain.Drone, m domain.Mission) time.Time {
	if d.SeenAt.Before(m.StartTime) {
		return m.StartTime
	}
	return d.SeenAt
}

// stallLimit is how long the mission may take in all: a drone that reports does not
// lose one of a few seconds, whose command may still be on its way, sooner than one
// that is silent. An estimate too long for a duration, 146 years and more, is no
// limit.
func (p DronePolicy) stallLimit(m domain.Mission) time.Duration {
	if !(m.EstimatedDurationMinutes > 0) { // or is no number
		return p.StallFloor
	}
	limit := p.StallFactor * m.EstimatedDurationMinutes * float64(time.Minute)
	if limit >= math.MaxInt64 {
		return math.MaxInt64
	}
	return max(time.Duration(limit), p.BoundSilence)
}

// SweepIdle makes an unbound, silent drone UNKNOWN, so that it is offered to
// nobody.
func (p DronePolicy) SweepIdle(d domain.Drone, now time.Time) Change {
	if d.Bound() || d.Status != domain.DroneIdle || now.Sub(d.SeenAt) < p.IdleSilence {
		return Change{}
	}
	before := d
	r := &recorder{now: now, cause: domain.CauseSweeper}
	d.Status = domain.DroneUnknown
	r.drone(before, &d, "", silence(before))
	return r.change
}

// silence says why a drone is UNKNOWN that fails no mission by that.
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

// SetupDrone introduces a drone with what its own reports will never say: its
// home, capacity and consumption. It is UNKNOWN until its first fresh IDLE. A
// drone that exists keeps its state.
func SetupDrone(existing *domain.Drone, d domain.Drone, now time.Time) Change {
	r := &recorder{now: now, cause: domain.CauseSetup}
	if existing == nil {
		d.Status = domain.DroneUnknown
		r.drone(domain.Drone{}, &d, "", "introduced")
		return r.change
	}
	known := *existing
	known.HomeDepotID, known.ShortName = d.HomeDepotID, d.ShortName
	known.BatteryCapacityMah, known.ConsumptionPerKm = d.BatteryCapacityMah, d.ConsumptionPerKm
	known.MaxFlightTimeMinutes, known.PayloadCapacityKg = d.MaxFlightTimeMinutes, d.PayloadCapacityKg
	r.drone(*existing, &known, "", "")
	return r.change
}
