package policy

import (
	"fmt"
	"math"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// A report may claim only what its drone can have done (F-SND-03). The drone's track says where it
// was last and how many stops it can have completed by then. Each newer report moves the track, at
// no more than twice the top speed. A claim beyond that proves nothing and is recorded.

// implausibleEvery is how often a drone's implausible reports are recorded.
const implausibleEvery = time.Minute

// trackOf is where the drone was last; ok is false before its first report.
func trackOf(d *domain.Drone) (t domain.Track, ok bool) {
	if d.Track != nil {
		return *d.Track, true
	}
	return domain.Track{Position: d.Position, At: d.LastUpdate}, !d.LastUpdate.IsZero()
}

// follow moves a track to a report, along the mission that holds the drone; m is nil for none. jump
// is how many metres the report is beyond the drone's reach. If it is, the track stays as it was.
// The possible stops are counted from where the track begins, not from those proven since: else
// each claim would begin where the last one ended, in no time.
func (p DronePolicy) follow(from domain.Track, m *domain.Mission, t domain.Telemetry) (to domain.Track, jump float64) {
	jump = from.Position.DistanceMetres(t.Position) - p.StopRadiusMetres - p.reach(from, t)
	if jump > 0 {
		return from, jump
	}
	to = from
	to.Position, to.At = t.Position, t.Timestamp
	if m == nil || m.ID != from.MissionID {
		return to, 0
	}
	to.Stops = p.passed(from, *m, t)
	// Each report may be off by the error of the clock, but all since the command only once.
	if start, known := begun(*m); known && to.Stops > from.Stops {
		to.Stops = max(from.Stops, min(to.Stops, p.passed(start, *m, t)))
	}
	return to, 0
}

// reach is how many metres a drone can have flown since it was at from.
func (p DronePolicy) reach(from domain.Track, t domain.Telemetry) float64 {
	// The drone's clock may have been set meanwhile.
	return 2 * p.TopSpeedKmh / 3.6 * (t.Timestamp.Sub(from.At) + 2*p.ClockError).Seconds()
}

// passed is how many stops of the mission a drone can have completed that was at from. It passes
// each stop within the radius, in order, and ends at the report.
func (p DronePolicy) passed(from domain.Track, m domain.Mission, t domain.Telemetry) (stops int) {
	metres := p.reach(from, t)
	at, flown, slack := from.Position, 0.0, p.StopRadiusMetres
	for stops = from.Stops; stops < countedStops(m); stops++ {
		stop := m.Route[stops]
		if stop.Type == domain.WaypointDepotStart {
			continue // passed by naming the mission
		}
		flown += max(0, at.DistanceMetres(stop.Position)-slack)
		at, slack = stop.Position, 2*p.StopRadiusMetres
		if flown+at.DistanceMetres(t.Position)-p.StopRadiusMetres > metres {
			break
		}
	}
	return stops
}

// begun is where the drone was when the mission under way was made; known is false for a mission
// from an earlier version.
func begun(m domain.Mission) (start domain.Track, known bool) {
	if m.Status != domain.MissionActive || m.Track == nil {
		return domain.Track{}, false
	}
	start = *m.Track
	start.Stops = 0
	return start, true
}

// possibleStops is how many stops of the bound mission the drone can have completed. A
// mission that began under an earlier version has no bound.
func possibleStops(b Binding) int {
	if k := b.Drone.Track; k != nil && b.Mission != nil && k.MissionID == b.Mission.ID {
		return max(k.Stops, b.Mission.ReachedStops)
	}
	return math.MaxInt
}

// possibleLate is how many stops a drone can have completed when it measured a report that is not
// newer than its track or that came after the mission's end: no more than the drone can have passed
// by the time that the report names. Else a late claim dates a stop to before it was possible.
func (p DronePolicy) possibleLate(track *domain.Track, m *domain.Mission, t domain.Telemetry) int {
	if track == nil || m == nil || track.MissionID != m.ID {
		return math.MaxInt
	}
	to, _ := p.follow(*track, m, t)
	return min(max(to.Stops, m.ReachedStops), p.passed(beginning(*m), *m, t))
}

// recounted is the track of a drone that turns out to have flown the mission's route for some time.
// It counts the stops that the drone can have completed, as if it had begun the mission at the first.
func (p DronePolicy) recounted(k *domain.Track, m domain.Mission) *domain.Track {
	if k == nil || k.MissionID != m.ID {
		return nil
	}
	t := *k
	t.Stops = p.passed(beginning(m), m, domain.Telemetry{Timestamp: k.At, Position: k.Position})
	return &t
}

// beginning is where the drone was when the mission was made. Once that is no longer known, it is
// where the route begins.
func beginning(m domain.Mission) domain.Track {
	if start, known := begun(m); known {
		return start
	}
	return domain.Track{MissionID: m.ID, Position: m.Route[0].Position, At: m.StartTime}
}

// track moves the drone's track to a newer report and records a jump.
func (r *recorder) track(b *Binding, from domain.Track, t domain.Telemetry) {
	d := &b.Drone
	to, jump := r.follow(from, b.Mission, t)
	if jump > 0 {
		r.implausible(d, fmt.Sprintf("reported %.1f km from where it was %s before; at most %.1f km were possible",
			from.Position.DistanceMetres(t.Position)/1000, t.Timestamp.Sub(from.At).Round(time.Second), (from.Position.DistanceMetres(t.Position)-jump)/1000))
	}
	d.Track = nil
	if jump > 0 || d.Bound() && to.MissionID == d.CurrentMissionID {
		kept := to // most reports keep none
		d.Track = &kept
	}
}

// implausible records what a drone claimed and what was possible.
func (r *recorder) implausible(d *domain.Drone, what string) {
	if r.now.Sub(d.ImplausibleAt) >= implausibleEvery {
		d.Implausible, d.ImplausibleAt = what, r.now
	}
}

// startTrack begins the track of a drone's new mission, and keeps its beginning with the mission.
func startTrack(d *domain.Drone, m *domain.Mission) {
	if t, ok := trackOf(d); ok {
		t.MissionID, t.Stops = m.ID, 0
		start := t
		d.Track, m.Track = &t, &start
	}
}

// endTrack copies the drone's track to its ended mission.
func endTrack(b *Binding) {
	if k := b.Drone.Track; k != nil && k.MissionID == b.Mission.ID {
		t := *k
		b.Mission.Track = &t
	}
}
