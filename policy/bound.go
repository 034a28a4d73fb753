package policy

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// boundReport is a bound drone's report after its evidence was applied.
type boundReport struct {
	*Binding
	domain.Telemetry
	claim   domain.DroneStatus
	named   bool // it names the mission
	left    bool // the drone knew the mission and has left it
	unheard bool // the drone is on the ground and will never hear of the mission
	done    bool // nothing is left to do
	timeUp  bool // late reports can no longer prove stops of a drone that left, or never heard
}

// boundSituations lists what a report can mean for the mission that holds its drone. The first one
// that is true decides. then returns why the mission failed, "" if it did not.
var boundSituations = []struct {
	situation string // for people
	is        func(boundReport) bool
	then      func(*recorder, boundReport) (failed string)
}{
	{"it reports a fault", func(s boundReport) bool { return isFault(s.claim) }, (*recorder).fault},
	{"it has left the mission with nothing missing", func(s boundReport) bool { return s.left && s.done }, (*recorder).park},
	{"it has left the mission with stops missing for good", func(s boundReport) bool { return s.left && s.timeUp }, (*recorder).abort},
	{"it has left the mission, and late reports may prove stops", func(s boundReport) bool { return s.left }, (*recorder).awaitLate},
	{"it never heard of a recalled mission, and late reports may prove stops", func(s boundReport) bool { return s.unheard && s.recalled() && !s.done && !s.timeUp }, (*recorder).awaitLate},
	{"it never heard of the mission", func(s boundReport) bool { return s.unheard }, (*recorder).dismiss},
	{"it is home with nothing missing", func(s boundReport) bool {
		return s.named && s.done && s.Drone.MissionMoved && s.claim == domain.DroneIdle
	}, (*recorder).park},
	{"it is on its way", func(boundReport) bool { return true }, (*recorder).goOn},
}

// applyBound handles a report of a bound drone whose track was from. It returns why the mission
// failed, "" if it did not. It takes values, so that reports of other drones keep theirs on the stack.
func (r recorder) applyBound(b Binding, t domain.Telemetry, claim domain.DroneStatus, from domain.Track) (_ recorder, _ Binding, failed string) {
	report := r.hear(&b, t, claim, from)
	for _, s := range boundSituations {
		if s.is(report) {
			failed = s.then(&r, report)
			break
		}
	}
	return r, b, failed
}

// hear applies what a report proves about the mission and what the drone knows of it. It returns
// the facts that decide the situation.
func (r *recorder) hear(b *Binding, t domain.Telemetry, claim domain.DroneStatus, from domain.Track) boundReport {
	d := &b.Drone
	s := boundReport{Binding: b, Telemetry: t, claim: claim, named: t.MissionID == d.CurrentMissionID}
	if s.named {
		d.MissionAcked, d.FreeAfter = true, time.Time{}
		d.MissionMoved = d.MissionMoved || isFlying(claim)
		d.NamedRevision = t.MissionRevision
		r.heedRevision(b, t)
	}
	if d.Track != nil {
		from.Stops = d.Track.Stops
	}
	r.track(b, from, t)
	parked := isParked(claim) && !s.named
	s.left = d.MissionAcked && !s.named && left(*b, claim)
	// The drone measured this after the command expired and does not know it, so it never will.
	s.unheard = !d.MissionAcked && parked && t.Timestamp.After(d.FreeAfter)
	if s.named || isFlying(claim) && !s.left {
		d.ParkedSince = time.Time{}
	}
	if isFlying(claim) || isParked(claim) {
		d.FaultSince = time.Time{} // recovered
	}
	// The report that ends a mission may be the one that reaches its last stop.
	if d.MissionAcked && (s.named || parked) {
		r.prove(b, t, s.named, possibleStops(*b))
	}
	if s.named {
		r.remindRecalled(b)
	}
	s.done = b.Mission == nil || b.Mission.LastOrderStopReached() && !(b.Mission.Status == domain.MissionActive && b.Mission.AwaitsAdded())
	since := d.ParkedSince
	if since.IsZero() {
		since = r.now
	}
	s.timeUp = r.now.Sub(since) >= r.LateGrace
	return s
}

// fault gives the drone time to recover, if it knows its mission and can still fly.
func (r *recorder) fault(s boundReport) (failed string) {
	d := &s.Drone
	if d.FaultSince.IsZero() {
		d.FaultSince = s.Timestamp
	}
	if s.claim == domain.DroneMaintenance || !d.MissionAcked || s.Timestamp.Sub(d.FaultSince) >= r.FaultGrace {
		failed = r.failMission(s.Binding, domain.FailureDroneFault)
		unbind(s.Binding, r.now)
	}
	d.Status = s.claim
	return failed
}

// awaitLate leaves late reports the time to prove the stops that are missing.
func (r *recorder) awaitLate(s boundReport) string {
	if s.Drone.ParkedSince.IsZero() {
		s.Drone.ParkedSince = r.now
	}
	return r.goOn(s)
}

// abort ends the mission of a drone that has left it.
func (r *recorder) abort(s boundReport) (failed string) {
	failed = r.leave(s.Binding, failureOf(s.Mission, domain.FailureAbortedByDrone))
	r.park(s)
	return failed
}

// dismiss ends a mission of which the drone never heard.
func (r *recorder) dismiss(s boundReport) (failed string) {
	failed = r.failMission(s.Binding, failureOf(s.Mission, domain.FailureNotAcked))
	r.park(s)
	return failed
}

// park frees the drone and takes over the status that it reports.
func (r *recorder) park(s boundReport) string {
	unbind(s.Binding, r.now)
	s.Drone.Status = s.claim
	if s.claim == domain.DroneIdle {
		s.Drone.Status = domain.DroneUnknown // unless its report counts
		s.Drone.Status = r.unboundStatus(&s.Drone, s.Telemetry, s.claim, r.now)
	}
	return ""
}

// goOn leaves the mission with its drone.
func (r *recorder) goOn(s boundReport) string {
	switch d := &s.Drone; {
	case d.MissionAcked && isFlying(s.claim):
		d.Status = s.claim
	case isFault(d.Status) && d.FaultSince.IsZero():
		d.Status = domain.DroneMoving // recovered, without saying what it does
	}
	return ""
}
