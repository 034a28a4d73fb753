package policy

import (
	"math"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// F-TEL-09: a mission is stalled after twice its estimate, never before, however short, long or
// malformed the estimate is. A short mission gets at least the two minutes of a silent drone,
// because its command may take twenty seconds.
func TestSweepBinding_StallsByTheEstimate(t *testing.T) {
	p := DefaultDronePolicy()
	for _, c := range []struct {
		minutes float64
		after   time.Duration // when it is not stalled yet
		stalls  bool          // a second later
	}{
		{10, 20 * time.Minute, true},
		{1.5, 3 * time.Minute, true},
		{0.05, 2 * time.Minute, true},
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

// F-TEL-09: a mission that must end does so at once, even while its command cannot be sent
// and gets a new expiry again and again.
func TestSweepBinding_FailsAMissionWhoseCommandExpiredUnsent(t *testing.T) {
	p := DefaultDronePolicy()
	now := start.Add(time.Hour)
	for _, c := range []struct {
		name   string
		change func(*domain.Drone, *domain.Mission)
		reason domain.FailureReason // empty: the command gets a new expiry
	}{
		{"all is well", func(*domain.Drone, *domain.Mission) {}, ""},
		{"stalled", func(_ *domain.Drone, m *domain.Mission) { m.EstimatedDurationMinutes = 29 }, domain.FailureStalled},
		{"faulty", func(d *domain.Drone, _ *domain.Mission) { d.FaultSince = now.Add(-time.Minute) }, domain.FailureDroneFault},
		{"silent", func(d *domain.Drone, _ *domain.Mission) { d.SeenAt = now.Add(-2 * time.Minute) }, domain.FailureContactLost},
		{"over, faulty on the way home", func(d *domain.Drone, m *domain.Mission) {
			m.Status, d.FaultSince = domain.MissionCompleted, now.Add(-time.Minute)
		}, ""},
	} {
		m := domain.Mission{
			ID: "M", DroneID: "D1", Status: domain.MissionActive, StartTime: start, EstimatedDurationMinutes: 31,
			CommandPending: true, CommandExpiresAt: now.Add(-time.Second),
		}
		d := readyDrone("D1")
		d.Status, d.CurrentMissionID, d.MissionAcked, d.SeenAt = domain.DroneMoving, m.ID, true, now
		c.change(&d, &m)
		missions := p.SweepBinding(Binding{Drone: d, Mission: &m}, now).Missions
		if len(missions) != 1 || missions[0].FailureReason != c.reason || missions[0].CommandPending != (c.reason == "") {
			t.Errorf("%s: %+v, want failure %q", c.name, missions, c.reason)
		}
	}
}

// F-TEL-06, F-DEC-05: the command of an unacked mission gets no new expiry. Once it has
// expired, the drone is believed to be idle.
func TestSweepBinding_LeavesTheCommandOfAnUnackedMission(t *testing.T) {
	now := start.Add(time.Minute)
	m := domain.Mission{
		ID: "M", DroneID: "D1", Status: domain.MissionActive, StartTime: start, EstimatedDurationMinutes: 30,
		CommandPending: true, CommandExpiresAt: now.Add(-time.Second),
	}
	d := readyDrone("D1")
	d.Status, d.CurrentMissionID, d.SeenAt = domain.DroneMoving, m.ID, now
	if change := DefaultDronePolicy().SweepBinding(Binding{Drone: d, Mission: &m}, now); !change.Empty() {
		t.Errorf("%+v", change)
	}
}
