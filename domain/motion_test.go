package domain_test

import (
	"math"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// F-POS-02: a position is foretold by the motion that was written with it, as long as the drone
// cannot be silent, and its bound grows from then on. The motion of another report does not count:
// an earlier version moves a drone without it.
func TestDrone_WhereaboutsAt(t *testing.T) {
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	flying := domain.Drone{
		Position: domain.Position{Lat: 48.8, Lon: 2.3}, SpeedKmh: 36, LastUpdate: at.Add(-2 * time.Second), SeenAt: at,
		Motion: domain.Motion{At: at.Add(-2 * time.Second), North: 8, East: -6, ErrorMetres: 25, Lasts: 10 * time.Second},
	}
	older, spoiled, unheard := flying, flying, domain.Drone{}
	older.Motion.At = at.Add(-5 * time.Second)
	spoiled.Motion.North = math.NaN()
	for _, c := range []struct {
		what              string
		drone             domain.Drone
		after             time.Duration
		metres, mostWrong float64
		age               time.Duration
	}{
		{"at once", flying, 0, 0, 25, 0},
		{"by a clock that is behind", flying, -time.Second, 0, 25, 0},
		{"between two writes", flying, 4 * time.Second, 40, 25, 4 * time.Second},
		{"when it is silent", flying, 15 * time.Second, 100, 25 + 50, 15 * time.Second},
		{"moved by an earlier version", older, 4 * time.Second, 0, 40, 4 * time.Second},
		{"with a motion that is no number", spoiled, 4 * time.Second, 0, 40, 4 * time.Second},
		{"never heard of", unheard, 4 * time.Second, 0, 0, 0},
	} {
		w := c.drone.WhereaboutsAt(at.Add(c.after))
		if got := c.drone.Position.DistanceMetres(w.Position); math.Abs(got-c.metres) > 0.1 || w.Age != c.age || math.Abs(w.ErrorMetres-c.mostWrong) > 1e-9 {
			t.Errorf("%s: %.2f m on, bound %.2f m, age %s; want %.0f m, %.0f m, %s", c.what, got, w.ErrorMetres, w.Age, c.metres, c.mostWrong, c.age)
		}
	}
}

func TestPosition_OffsetUndoesMoved(t *testing.T) {
	for _, p := range []domain.Position{{Lat: 48.8, Lon: 2.3}, {Lat: -17, Lon: 179.9999}, {Lat: 0, Lon: -180}} {
		q := p.Moved(300, 400)
		if north, east := p.Offset(q); math.Abs(north-300) > 0.1 || math.Abs(east-400) > 0.1 || math.Abs(p.DistanceMetres(q)-500) > 0.5 || math.Abs(q.Lon) > 180 {
			t.Errorf("%v moved to %v, which is %.2f m north and %.2f m east, %.2f m away", p, q, north, east, p.DistanceMetres(q))
		}
	}
}
