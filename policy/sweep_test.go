package policy

import (
	"math"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// F-TEL-09: a mission is stalled after twice its estimate, and however long or
// strange that is, not before.
func TestSweepBinding_StallsByTheEstimate(t *testing.T) {
	p := DefaultDronePolicy()
	for _, c := range []struct {
		minutes float64
		after   time.Duration // when it is not stalled yet
		stalls  bool          // a second later
	}{
		{10, 20 * time.Minute, true},
		{0, 10 * time.Minute, true}, // no estimate
		{-1, 10 * time.Minute, true},
		{math.NaN(), 10 * time.Minute, true},
		{1e6, 2e6 * time.Minute, true},
		{1e9, 100 * 365 * 24 * time.Hour, false}, // twice it is no duration
		{math.MaxFloat64, 100 * 365 * 24 * time.Hour, false},
		{math.Inf(1), 0, false},
	} {
		m := domain.Mission{ID: "M", DroneID: "D1", Status: domain.MissionActive, StartTime: start, CommandPublishedAt: start, EstimatedDurationMinutes: c.minutes}
		sweep := func(now time.Time) bool {
			d := readyDrone("D1")
			d.Status, d.CurrentMissionID, d.MissionAcked, d.SeenAt = domain.DroneMoving, m.ID, true, now
			return !p.SweepBinding(Binding{Drone: d, Mission: &m}, now).Empty()
		}
		if sweep(start.Add(c.after)) {
			t.Errorf("an estimate of %g min: stalled within %s", c.minutes, c.after)
		}
		if got := sweep(start.Add(c.after + time.Second)); got != c.stalls {
			t.Errorf("an estimate of %g min: stalled %t a second after %s, want %t", c.minutes, got, c.after, c.stalls)
		}
	}
}
