package policy

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// Foretelling says when a report that only moves its drone is written (F-POS-01). Zero writes every
// report.
type Foretelling struct {
	// ErrorMetres is how far the drone may be from where readers foretell it.
	ErrorMetres float64
	// Heartbeat is how old a document becomes before a report is written that says nothing new.
	Heartbeat time.Duration
}

// DefaultForetelling holds the contract's values.
func DefaultForetelling() Foretelling {
	return Foretelling{ErrorMetres: 25, Heartbeat: 8 * time.Second}
}

// Off reports whether every report is written.
func (p Foretelling) Off() bool { return p.ErrorMetres == 0 }

const (
	// nearStop is the distance, in metres, from a stop ahead within which every report is written.
	nearStop = 500
	// slowCommit is longer than all but one in a thousand commits take.
	slowCommit = 2 * time.Second
	// steady is the time over which a velocity is averaged: a position may be off by metres.
	steady = 3 * time.Second
	// A velocity that differs by more than turn, and by more than blur allows for the errors of
	// two positions, is that of a drone that has turned. Both are in metres.
	turn, blur = 10.0, 6.0
	// leap is faster than drones fly, in metres a second.
	leap = 150.0
)

// Longest is the longest time between two writes of a drone that reports. One whose next report
// would come later than that is written at every report.
func (p Foretelling) Longest() time.Duration { return p.Heartbeat * 4 / 3 }

// Unwritten is how much newer a report can be than the drone's document and not be written. It goes by
// the drone's clock, the heartbeat by the server's.
func (p Foretelling) Unwritten(l Limits) time.Duration {
	if p.Off() {
		return 0
	}
	return p.Heartbeat + l.WithDefaults().ClockError
}

// Check refuses a heartbeat with which a drone that reports could look silent (F-POS-03).
func (p Foretelling) Check(l Limits) error {
	if p.Off() {
		return nil
	}
	l = l.WithDefaults()
	limit := min(l.MaxSilence, l.IdleSilence, l.BoundSilence)
	if most := (limit - slowCommit) * 3 / 4; p.Heartbeat <= 0 || p.Heartbeat > most {
		return fmt.Errorf("a heartbeat of %s does not keep a drone that reports from looking silent, which it does after %s; give more than 0s and at most %s", p.Heartbeat, limit, most.Truncate(100*time.Millisecond))
	}
	return nil
}

// motion is the drone's motion after a report. Velocities between two reports are averaged, because
// a position may be off by metres; a turn counts at once.
func (p Foretelling) motion(before *domain.Drone, t domain.Telemetry, claim domain.DroneStatus) domain.Motion {
	if p.Off() {
		return domain.Motion{}
	}
	m := domain.Motion{At: t.Timestamp, ErrorMetres: p.ErrorMetres, Lasts: p.Longest()}
	passed := t.Timestamp.Sub(before.LastUpdate).Seconds()
	if isParked(claim) || before.LastUpdate.IsZero() || passed <= 0 || passed > p.Longest().Seconds() {
		return m
	}
	north, east := before.Position.Offset(t.Position)
	if math.Hypot(north, east) > leap*passed {
		return m // its position jumped
	}
	m.North, m.East = north/passed, east/passed
	if !before.Foretells() || isParked(before.ReportedStatus) {
		return m
	}
	was := before.Motion
	if math.Hypot(m.North-was.North, m.East-was.East) > turn+blur/passed {
		return m
	}
	share := -math.Expm1(-passed / steady.Seconds())
	m.North, m.East = was.North+share*(m.North-was.North), was.East+share*(m.East-was.East)
	return m
}

// PositionDue reports whether a report must be written that moved its drone from before to after.
// written is the drone as its document has it, m its mission, which may have ended, or nil.
func (p DronePolicy) PositionDue(written, before, after *domain.Drone, m *domain.Mission, now time.Time) bool {
	switch {
	case p.Foretelling.Off() || !written.Foretells():
		return true
	case !sameButWhereabouts(written, after) || batteryClass(written.Battery) != batteryClass(after.Battery):
		return true
	case m != nil && after.Bound() && Approaches(m, after.Position): // an ended mission has nothing ahead
		return true
	case p.heartbeatDue(written, before, after, now):
		return true
	}
	foretold := written.Motion.From(written.Position, after.LastUpdate.Sub(written.LastUpdate))
	return !(foretold.DistanceMetres(after.Position) <= p.Foretelling.ErrorMetres) // or NaN
}

// heartbeatDue reports whether the document is too old. It takes the report that is nearest to the
// heartbeat. After a backlog, whose reports are old themselves, it takes some more.
func (p DronePolicy) heartbeatDue(written, before, after *domain.Drone, now time.Time) bool {
	beat := p.Foretelling.Heartbeat
	newer, interval := after.SeenAt.Sub(written.SeenAt), after.LastUpdate.Sub(before.LastUpdate)
	return newer >= beat-interval/2 || now.Sub(written.SeenAt) >= p.Foretelling.Longest() && newer >= beat/4
}

// Approaches reports whether a drone is within 500 m of a stop that its mission has ahead. A stop that it
// has reached can prove nothing more. At one where it charges or waits it stays.
func Approaches(m *domain.Mission, at domain.Position) bool {
	ahead := func(route []domain.Waypoint) bool {
		for i := min(m.ReachedStops, len(route)); i < len(route); i++ {
			if !route[i].Duty() && route[i].Position.DistanceMetres(at) <= nearStop {
				return true
			}
		}
		return false
	}
	return ahead(m.Route) || m.Amendment != nil && ahead(m.Amendment.Route)
}

// batteryClass groups charges: 5 % steps, and whole percents below 30 %.
func batteryClass(percent float64) float64 {
	if percent < 30 {
		return math.Floor(percent)
	}
	return 5 * math.Floor(percent/5)
}

// sameButWhereabouts reports whether two states of a drone differ only in what a later report will
// say as well.
func sameButWhereabouts(a, b *domain.Drone) bool {
	x := WithWhereaboutsOf(*b, a)
	x.DueAt = a.DueAt // follows from the others
	return reflect.DeepEqual(*a, x)
}

// WithWhereaboutsOf is a drone as its document has it, with what reports that were not written say:
// where it is, its charge and how long it has flown.
func WithWhereaboutsOf(d domain.Drone, known *domain.Drone) domain.Drone {
	d.Position, d.Battery, d.SpeedKmh, d.Motion = known.Position, known.Battery, known.SpeedKmh, known.Motion
	d.LastUpdate, d.SeenAt, d.FlightSeconds = known.LastUpdate, known.SeenAt, known.FlightSeconds
	if was, is := d.Track, known.Track; was != nil && is != nil && was.MissionID == is.MissionID && was.Stops == is.Stops {
		d.Track = is
	}
	return d
}
