package domain

import (
	"math"
	"time"
)

// Motion is how a drone moved when it measured its position. Readers foretell with it where the
// drone is, because a report that says what they foretell is not written. It is zero in a document
// that is written at every report.
type Motion struct {
	// At is the time of the report, as Drone.LastUpdate. Where the two differ, an earlier version
	// moved the drone and left its motion as it was.
	At          time.Time
	North, East float64 // metres a second
	// ErrorMetres is how far from the foretold position a report must be to be written.
	ErrorMetres float64
	// Lasts is the longest time between two writes of a drone that reports.
	Lasts time.Duration
}

// Whereabouts is where a drone is at a time, as far as its document tells.
type Whereabouts struct {
	Position
	// Age is how long ago the drone was seen, by the server's clock.
	Age time.Duration
	// ErrorMetres bounds how far the drone's latest report is from the position.
	ErrorMetres float64
}

// WhereaboutsAt foretells where a drone is. Nothing else derives a position of now from a document.
// The age goes by the server's clock, because the drone's may be off by seconds.
func (d *Drone) WhereaboutsAt(now time.Time) Whereabouts {
	w := Whereabouts{Position: d.Position, Age: max(0, now.Sub(d.SeenAt))}
	if d.SeenAt.IsZero() {
		w.Age = 0
	}
	silent := w.Age
	if m := d.Motion; d.Foretells() {
		w.Position = m.From(d.Position, min(w.Age, m.Lasts))
		w.ErrorMetres, silent = m.ErrorMetres, max(0, w.Age-m.Lasts)
	}
	w.ErrorMetres += d.SpeedKmh / 3.6 * silent.Seconds() // it may have flown on, or turned
	return w
}

// Foretells reports whether the drone's motion belongs to its position.
func (d *Drone) Foretells() bool {
	m := d.Motion
	fit := math.Hypot(m.North, m.East) < fastest && m.ErrorMetres >= 0 // not NaN: somebody may have edited it
	return !m.At.IsZero() && m.At.Equal(d.LastUpdate) && fit
}

// fastest is faster than any drone, in metres a second.
const fastest = 1000

// From is where a drone that was at p is after a while.
func (m Motion) From(p Position, after time.Duration) Position {
	return p.Moved(m.North*after.Seconds(), m.East*after.Seconds())
}

// metresPerDegree is the length of a degree of latitude.
const metresPerDegree = earthRadiusMetres * math.Pi / 180

// Moved is the point so many metres north and east of p. It is exact enough for a few kilometres.
func (p Position) Moved(north, east float64) Position {
	if north == 0 && east == 0 {
		return p
	}
	lat := min(90, max(-90, p.Lat+north/metresPerDegree))
	lon := p.Lon + east/(metresPerDegree*max(1e-6, math.Cos(p.Lat*math.Pi/180)))
	return Position{Lat: lat, Lon: math.Remainder(lon, 360)}
}

// Offset is how many metres north and east of p the point q is, across the antimeridian if that is
// shorter.
func (p Position) Offset(q Position) (north, east float64) {
	return (q.Lat - p.Lat) * metresPerDegree, math.Remainder(q.Lon-p.Lon, 360) * metresPerDegree * math.Cos(p.Lat*math.Pi/180)
}
