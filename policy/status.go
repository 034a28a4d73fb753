package policy

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// claim is the status that a report stands for. An almost empty battery counts as EMERGENCY, unless
// the drone is in maintenance. Empty means no claim.
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

// unboundStatus is the status of an unbound drone after a report. IDLE offers the drone to the
// optimizer, so it must be fresh, and the drone must know that its last mission has ended.
func (p DronePolicy) unboundStatus(d *domain.Drone, t domain.Telemetry, claim domain.DroneStatus, now time.Time) domain.DroneStatus {
	unaware := p.unaware(d, t)
	switch {
	case unaware && d.Status == domain.DroneIdle && (claim == domain.DroneIdle || claim == ""):
		return domain.DroneUnknown
	case claim == "", claim == domain.DroneIdle && (unaware || now.Sub(t.Timestamp) > p.IdleSilence):
		return d.Status
	case claim != domain.DroneIdle && !isFault(claim) && d.IdleSince.IsZero():
		return domain.DroneUnknown // introduced, and never yet ready to fly
	default:
		return claim
	}
}

// unaware reports whether the drone names a mission of its own that failed so recently that it may
// not know yet.
func (p DronePolicy) unaware(d *domain.Drone, t domain.Telemetry) bool {
	failedAt, failed := d.FailedAt(t.MissionID)
	return failed && !t.Timestamp.After(failedAt.Add(p.GhostGrace))
}

// watchGhost flags a drone that still flies a mission of its own that had failed before this
// report, even if another mission holds it by now. The mission is revoked again.
func (r *recorder) watchGhost(before, d *domain.Drone, t domain.Telemetry, claim domain.DroneStatus) {
	_, failed := before.FailedAt(t.MissionID)
	landed := isParked(claim) || claim == domain.DroneMaintenance
	flies := isFlying(claim) || before.GhostMissionID == t.MissionID && !landed
	if !failed || !flies && !r.unaware(before, t) {
		d.GhostMissionID, d.GhostRevokedAt = "", time.Time{}
		return
	}
	if d.GhostMissionID != t.MissionID || r.now.Sub(d.GhostRevokedAt) >= r.GhostRevokeEvery {
		d.GhostMissionID, d.GhostRevokedAt = t.MissionID, r.now
		r.change.Revoke = append(r.change.Revoke, t.MissionID)
	}
}
