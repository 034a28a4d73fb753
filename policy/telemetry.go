package policy

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// DronePolicy decides what a drone's report, or its silence, means, and whether it
// can accept a mission.
type DronePolicy struct{ Limits }

// DefaultDronePolicy holds the contract's values.
func DefaultDronePolicy() DronePolicy { return DronePolicy{DefaultLimits()} }

// CheckTime refuses a report that was measured too far ahead of the server, as
// server is its time: applied, it would make all that its drone reports until
// then stale. The error, if any, is a Rejection.
func (p DronePolicy) CheckTime(t domain.Telemetry, server time.Time) error {
	if t.Timestamp.After(server.Add(p.MaxFuture)) {
		return reject(ReasonFutureTimestamp, string(t.DroneID),
			"measured %s ahead of the server; check the drone's clock", t.Timestamp.Sub(server).Round(time.Millisecond))
	}
	return nil
}

// ApplyTelemetry folds one report into the drone's binding. A drone that is not
// known yet has an empty ID and is registered. The error, if any, is a
// Rejection and the binding is then unchanged.
//
// Binding belongs to decisions: a report never binds a drone, and frees it only
// when it proves that the drone knows of the mission's end or that the command
// expired unseen. A report that is older than the last one moves nothing back, but
// still proves what the drone has done for the mission that it names.
func (p DronePolicy) ApplyTelemetry(b Binding, t domain.Telemetry, now time.Time) (Binding, Change, error) {
	if err := p.CheckTime(t, now); err != nil {
		return b, Change{}, err
	}
	if b.Mission != nil && t.MissionID == b.Mission.ID {
		if err := p.checkRevision(*b.Mission, t); err != nil {
			return b, Change{}, err
		}
		if n, known := routeStops(*b.Mission, t.MissionRevision); known && t.CompletedStops != nil && *t.CompletedStops > n {
			return b, Change{}, reject(ReasonTooManyStops, string(t.DroneID),
				"completed_stops is %d; the route of mission %s has %d stops", *t.CompletedStops, t.MissionID, n)
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
	r := &recorder{now: now, cause: domain.CauseTelemetry}
	d := &b.Drone
	if d.ID == "" {
		d.ID, d.Status = t.DroneID, domain.DroneUnknown
		r.drone(domain.Drone{}, d, "", "registered by its first report")
	}
	before := *d
	d.Position, d.Battery, d.SpeedKmh = t.Position, t.Battery, t.SpeedKmh
	d.LastUpdate = t.Timestamp
	// A report that waited out an outage is no sign of life now.
	d.SeenAt = earlier(now, t.Timestamp.Add(p.ClockError))
	if t.Status != "" {
		d.ReportedStatus = t.Status
	}
	if t.Status == domain.DroneEmergency {
		d.EmergencyLatched = true
	}
	d.SupportsAmendments, d.SupportsStandby = t.SupportsAmendments, t.SupportsStandby

	claim := p.claim(t)
	mission := d.CurrentMissionID
	var reason string
	if d.Bound() {
		reason = r.applyBound(p, &b, t, claim)
	} else {
		d.Status = p.unboundStatus(*d, t, claim, now)
	}
	r.watchGhost(p, before, d, t, claim)
	if d.EmergencyLatched {
		d.Status = domain.DroneEmergency
	}
	if d.Status == domain.DroneIdle && before.Status != domain.DroneIdle {
		d.IdleSince = now
	}
	r.drone(before, d, mission, reason)
	return b, r.change, nil
}

// claim is the status a report stands for: its own, or EMERGENCY when the
// battery is almost empty, unless the drone is in maintenance, where that is no
// news. Empty means no claim.
func (p DronePolicy) claim(t domain.Telemetry) domain.DroneStatus {
	switch {
	case t.Status == domain.DroneMaintenance:
		return t.Status
	case t.Battery < p.EmergencyBattery:
		return domain.DroneEmergency
	case t.Status == domain.DroneReserved:
		return domain.DroneUnknown // a drone cannot reserve itself
	default:
		return t.Status
	}
}

// activity groups the statuses that a report can claim by what they mean for a
// mission.
type activity int

const (
	silent activity = iota // no claim, or one that says nothing
	parked                 // on the ground, ready or charging
	flying
	faulty
)

// activityOf is the only place that groups statuses.
func activityOf(s domain.DroneStatus) activity {
	switch s {
	case domain.DroneIdle, domain.DroneCharging:
		return parked
	case domain.DroneMoving, domain.DroneDelivering:
		return flying
	case domain.DroneProblem, domain.DroneEmergency, domain.DroneMaintenance:
		return faulty
	case domain.DroneReserved, domain.DroneUnknown:
		return silent
	}
	return silent // empty: no claim
}

func isFault(s domain.DroneStatus) bool  { return activityOf(s) == faulty }
func isParked(s domain.DroneStatus) bool { return activityOf(s) == parked }
func isFlying(s domain.DroneStatus) bool { return activityOf(s) == flying }

// applyBound handles a report of a drone that a mission holds, and returns why
// the mission failed if it did.
func (r *recorder) applyBound(p DronePolicy, b *Binding, t domain.Telemetry, claim domain.DroneStatus) (reason string) {
	d := &b.Drone
	named := t.MissionID == d.CurrentMissionID
	if named {
		d.MissionAcked, d.FreeAfter = true, time.Time{}
		d.MissionMoved = d.MissionMoved || isFlying(claim)
		d.NamedRevision = t.MissionRevision
		r.heedRevision(p, b, t)
	}
	gone := !named && left(*b, claim)
	if named || isFlying(claim) && !gone {
		d.ParkedSince = time.Time{}
	}
	parked := isParked(claim) && !named

	// The report that ends a mission may be the one that reaches its last stop.
	if d.MissionAcked && (named || parked) {
		r.prove(p, b, t, named)
	}
	if named {
		r.remindRecalled(p, b)
	}
	done := b.Mission == nil || b.Mission.LastOrderStopReached() && !(b.Mission.Status == domain.MissionActive && b.Mission.AwaitsAdded())

	if isFault(claim) {
		return r.applyFault(p, b, t, claim)
	}
	if isFlying(claim) || isParked(claim) {
		d.FaultSince = time.Time{} // recovered
	}

	// Measured after the command expired, by a drone that does not know of it: it never
	// will.
	unheard := !d.MissionAcked && parked && t.Timestamp.After(d.FreeAfter)
	waits := d.MissionAcked && gone || unheard && b.recalled()
	if waits && d.ParkedSince.IsZero() && !done {
		d.ParkedSince = r.now
	}
	// Late reports may still prove the stops that a parked drone is missing.
	mayBeDone := !done && r.now.Sub(d.ParkedSince) < p.LateGrace
	switch {
	case d.MissionAcked && gone && !mayBeDone:
		if !done {
			reason = r.endLeft(b, failureOf(b.Mission, domain.FailureAbortedByDrone))
		}
		r.park(p, b, t, claim)
	case unheard && !(waits && mayBeDone):
		reason = r.failMission(b, failureOf(b.Mission, domain.FailureNotAcked))
		r.park(p, b, t, claim)
	case claim == domain.DroneIdle && named && d.MissionMoved && done:
		r.park(p, b, t, claim)
	case d.MissionAcked && isFlying(claim):
		d.Status = claim
	case isFault(d.Status) && d.FaultSince.IsZero():
		d.Status = domain.DroneMoving // recovered, without saying what it does
	}
	return reason
}

// applyFault handles a report of a fault by a drone that a mission holds, and returns why the
// mission failed, "" if it did not.
func (r *recorder) applyFault(p DronePolicy, b *Binding, t domain.Telemetry, claim domain.DroneStatus) (reason string) {
	d := &b.Drone
	if d.FaultSince.IsZero() {
		d.FaultSince = t.Timestamp
	}
	graceOver := t.Timestamp.Sub(d.FaultSince) >= p.FaultGrace
	if claim == domain.DroneMaintenance || !d.MissionAcked || graceOver {
		reason = r.failMission(b, domain.FailureDroneFault)
		unbind(b, r.now)
	}
	d.Status = claim
	return reason
}

// park frees the drone and takes its word for what it does now.
func (r *recorder) park(p DronePolicy, b *Binding, t domain.Telemetry, claim domain.DroneStatus) {
	unbind(b, r.now)
	d := &b.Drone
	d.Status = claim
	if claim == domain.DroneIdle {
		d.Status = domain.DroneUnknown
		d.Status = p.unboundStatus(*d, t, claim, r.now)
	}
}

// unboundStatus is what a drone that nothing holds is after a report. IDLE
// offers it to the optimizer and is therefore believed only when it is fresh
// and the drone has understood that its last mission is over.
func (p DronePolicy) unboundStatus(d domain.Drone, t domain.Telemetry, claim domain.DroneStatus, now time.Time) domain.DroneStatus {
	unaware := p.unaware(d, t)
	switch {
	case unaware && d.Status == domain.DroneIdle && (claim == domain.DroneIdle || claim == ""):
		return domain.DroneUnknown
	case claim == "", claim == domain.DroneIdle && (unaware || !p.fresh(t, now)):
		return d.Status
	case claim != domain.DroneIdle && !isFault(claim) && d.IdleSince.IsZero():
		return domain.DroneUnknown // introduced, and never yet ready to fly
	default:
		return claim
	}
}

// unaware reports whether the drone names a mission of its own so soon after
// it failed that it may not have learned of that yet.
func (p DronePolicy) unaware(d domain.Drone, t domain.Telemetry) bool {
	failedAt, failed := d.FailedAt(t.MissionID)
	return failed && !t.Timestamp.After(failedAt.Add(p.GhostGrace))
}

// fresh reports whether the report is recent enough to offer the drone to the
// optimizer on its word.
func (p DronePolicy) fresh(t domain.Telemetry, now time.Time) bool {
	return now.Sub(t.Timestamp) <= p.IdleSilence
}

// watchGhost flags a drone that still flies a mission of its own that had
// failed before this report, whether or not another mission holds it by now,
// and has the drone told again.
func (r *recorder) watchGhost(p DronePolicy, before domain.Drone, d *domain.Drone, t domain.Telemetry, claim domain.DroneStatus) {
	_, failed := before.FailedAt(t.MissionID)
	landed := isParked(claim) || claim == domain.DroneMaintenance
	flies := isFlying(claim) || before.GhostMissionID == t.MissionID && !landed
	if !failed || !flies && !p.unaware(before, t) {
		d.GhostMissionID, d.GhostRevokedAt = "", time.Time{}
		return
	}
	if d.GhostMissionID != t.MissionID || r.now.Sub(d.GhostRevokedAt) >= p.GhostRevokeEvery {
		d.GhostMissionID, d.GhostRevokedAt = t.MissionID, r.now
		r.change.Revoke = append(r.change.Revoke, t.MissionID)
	}
}
