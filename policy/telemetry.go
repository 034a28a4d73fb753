package policy

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// DronePolicy decides what a drone's report or silence means, and whether the drone can accept a
// mission.
type DronePolicy struct {
	Limits
	// PlanUnregistered gives missions to drones that nobody registered.
	PlanUnregistered bool
	// Foretelling says which reports that only move a drone are written. Only State Managers need it.
	Foretelling Foretelling
}

// DefaultDronePolicy holds the contract's values.
func DefaultDronePolicy() DronePolicy { return DronePolicy{Limits: DefaultLimits()} }

// CheckTime refuses a report that was measured too far ahead of the server's time. If it were
// applied, all reports until then would be stale. The error, if any, is a Rejection.
func (p DronePolicy) CheckTime(t domain.Telemetry, server time.Time) error {
	if t.Timestamp.After(server.Add(p.MaxFuture)) {
		return reject(ReasonFutureTimestamp, string(t.DroneID),
			"measured %s ahead of the server; check the drone's clock", t.Timestamp.Sub(server).Round(time.Millisecond))
	}
	return nil
}

// maxFlightBetween bounds the flight that two reports prove, in seconds. A drone that was silent
// for longer may have landed.
const maxFlightBetween = 120

// count takes over what a report says of its drone, and counts its flight and landings. Whole
// seconds add up without loss.
func count(d, before *domain.Drone, t domain.Telemetry) {
	if t.BatteryHealth != nil {
		d.BatteryHealth = t.BatteryHealth
	}
	if t.SerialNumber != "" {
		d.ReportedSerial = t.SerialNumber
	}
	if t.MissionID != "" { // else there is nothing to count
		d.CountsStops = t.CompletedStops != nil
	}
	flew := isFlying(before.ReportedStatus)
	switch {
	case t.FlightSeconds != nil && *t.FlightSeconds >= d.FlightSeconds:
		d.FlightSeconds = *t.FlightSeconds
	case flew && isFlying(d.ReportedStatus):
		d.FlightSeconds += min(t.Timestamp.Unix()-before.LastUpdate.Unix(), maxFlightBetween)
	}
	if flew && isParked(d.ReportedStatus) {
		d.Landings++
	}
}

// ApplyTelemetry folds one report into the drone's binding. An unknown drone has an empty ID and
// becomes an unregistered one. If the error is not nil, it is a Rejection and the binding is
// unchanged.
//
// Only decisions bind a drone. A report frees it only when it proves that the drone knows of the
// mission's end, or that the command expired unseen. A report older than the last one moves nothing
// back, but still proves what the drone has done for the mission that it names.
func (p DronePolicy) ApplyTelemetry(b Binding, t domain.Telemetry, now time.Time) (Binding, Change, error) {
	if err := p.CheckTime(t, now); err != nil {
		return b, Change{}, err
	}
	if b.Mission != nil && t.MissionID == b.Mission.ID {
		if err := p.checkRoute(*b.Mission, t); err != nil {
			return b, Change{}, err
		}
	}
	if b.Drone.ID != "" && !t.Timestamp.After(b.Drone.LastUpdate) {
		if late, change, proves := p.applyLate(b, t, now); proves {
			return late, change, nil
		}
		return b, Change{}, reject(ReasonStaleTelemetry, string(t.DroneID),
			"measured %s, not later than the last applied report of %s", t.Timestamp.UTC().Format(time.RFC3339Nano), b.Drone.LastUpdate.UTC().Format(time.RFC3339Nano))
	}

	b = b.clone()
	r := recorder{DronePolicy: p, now: now, cause: domain.CauseTelemetry}
	d := &b.Drone
	if d.ID == "" {
		d.ID, d.Status, d.Unregistered = t.DroneID, domain.DroneUnknown, true
		r.drone(&domain.Drone{}, d, "", "its first report; nobody has registered it")
	}
	before := *d
	from, tracked := trackOf(&before)
	claim := p.claim(t)
	d.Motion = p.Foretelling.motion(&before, t, claim)
	d.Position, d.Battery, d.SpeedKmh = t.Position, t.Battery, t.SpeedKmh
	d.LastUpdate = t.Timestamp
	// A report that was delayed by an outage is not a sign of life now.
	d.SeenAt = earlier(now, t.Timestamp.Add(p.ClockError))
	if t.Status != "" {
		d.ReportedStatus = t.Status
	}
	if t.Status == domain.DroneEmergency {
		d.EmergencyLatched = true
	}
	d.SupportsAmendments, d.SupportsStandby = t.SupportsAmendments, t.SupportsStandby
	count(d, &before, t)

	mission := d.CurrentMissionID
	var reason string
	if !tracked {
		from = domain.Track{Position: t.Position, At: t.Timestamp}
	}
	if d.Bound() {
		r, b, reason = r.applyBound(b, t, claim, from)
	} else {
		r.track(&b, from, t)
		d.Status = p.unboundStatus(d, t, claim, now)
	}
	r.watchGhost(&before, d, t, claim)
	if d.EmergencyLatched {
		d.Status = domain.DroneEmergency
	}
	if d.Status == domain.DroneIdle && before.Status != domain.DroneIdle {
		d.IdleSince = now
	}
	r.drone(&before, d, mission, reason)
	return b, r.change, nil
}
