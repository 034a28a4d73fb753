package policy

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// F-SWP-01: the sweeper has something to do about a drone or an order exactly from the time at which
// it is due, whatever its documents say.
func TestDue_IsWhenTheSweeperActs(t *testing.T) {
	p := DefaultDronePolicy()
	acted := map[bool]int{}
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 7))
		b, o := randomBinding(r), randomOrder(r)
		now := timeIn(r, 20*time.Minute)
		acts := !p.SweepBinding(b, now).Empty() || !p.SweepIdle(b.Drone, now).Empty()
		if due := p.DroneDue(b.Drone, b.Mission); acts && (due.IsZero() || due.After(now)) {
			t.Fatalf("seed %d: due at %s, and the sweeper acts at %s: %+v %+v", seed, due, now, b.Drone, b.Mission)
		} else if stored := p.Dated(b.Drone, b.Mission).DueAt; stored.After(due) || !due.IsZero() && stored.IsZero() {
			t.Fatalf("seed %d: due at %s, stored is %s: %+v %+v", seed, due, stored, b.Drone, b.Mission)
		} else if unknown := p.Dated(b.Drone, nil).DueAt; acts && !b.Drone.DueAt.After(due) && unknown.After(now) {
			t.Fatalf("seed %d: due at %s, without the mission stored is %s", seed, due, unknown)
		} else if early := !due.IsZero() && now.After(due.Add(time.Second)); early && !acts && b.Mission != nil {
			t.Fatalf("seed %d: due at %s, and the sweeper does not act at %s: %+v %+v", seed, due, now, b.Drone, b.Mission)
		}
		acted[acts]++
		lates := !SweepOrder(o, now).Empty()
		if due := OrderDue(o); lates && (due.IsZero() || due.After(now)) {
			t.Fatalf("seed %d: due at %s, and late at %s: %+v", seed, due, now, o)
		}
	}
	if acted[true] < 1000 || acted[false] < 1000 {
		t.Errorf("the sweeper acts %d times and does not %d times", acted[true], acted[false])
	}
}

// timeIn is a random time of a period.
func timeIn(r *rand.Rand, within time.Duration) time.Time {
	return time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC).Add(time.Duration(r.Int64N(int64(within))).Truncate(time.Second))
}

// maybeIn is a random time, or none.
func maybeIn(r *rand.Rand, within time.Duration) time.Time {
	if r.IntN(2) == 0 {
		return time.Time{}
	}
	return timeIn(r, within)
}

func randomBinding(r *rand.Rand) (b Binding) {
	statuses := []domain.DroneStatus{domain.DroneIdle, domain.DroneUnknown, domain.DroneMoving}
	b.Drone = domain.Drone{ID: "D1", Status: statuses[r.IntN(3)], SeenAt: timeIn(r, 20*time.Minute), DueAt: maybeIn(r, 20*time.Minute), Position: domain.Position{Lat: 48}}
	if r.IntN(4) == 0 {
		return b
	}
	b.Drone.CurrentMissionID, b.Drone.Status, b.Drone.MissionAcked = "M1", domain.DroneMoving, r.IntN(2) == 0
	b.Drone.FaultSince, b.Drone.ParkedSince = maybeIn(r, 20*time.Minute), maybeIn(r, 20*time.Minute)
	m := domain.Mission{
		ID: "M1", DroneID: "D1", Status: domain.MissionStatuses[r.IntN(2)], StartTime: timeIn(r, 20*time.Minute), AmendedAt: maybeIn(r, 20*time.Minute),
		EstimatedDurationMinutes: []float64{0, 1, 4, 1e300}[r.IntN(4)], CommandPending: r.IntN(2) == 0,
		CommandExpiresAt: timeIn(r, 20*time.Minute), CommandPublishedAt: maybeIn(r, 20*time.Minute),
		RevokePublishedAt: maybeIn(r, 20*time.Minute), ReachedStops: r.IntN(3),
	}
	m.Route = []domain.Waypoint{
		{Type: domain.WaypointDepotStart, Position: b.Drone.Position},
		{Type: []domain.WaypointType{domain.WaypointCharge, domain.WaypointHospitalDelivery}[r.IntN(2)], Position: b.Drone.Position},
		{Type: domain.WaypointWait, WaitUntil: timeIn(r, 20*time.Minute)},
	}[:1+r.IntN(3)]
	if r.IntN(2) == 0 {
		m.Amendment = &domain.Amendment{}
	}
	b.Mission = &m
	return b
}

func randomOrder(r *rand.Rand) domain.Order {
	return domain.Order{
		ID: "O1", Status: domain.OrderStatuses[r.IntN(len(domain.OrderStatuses))], Late: r.IntN(3) == 0, Deadline: maybeIn(r, 20*time.Minute),
		PlanningDepotID: []domain.DepotID{"", "DEPOT"}[r.IntN(2)],
	}
}

// F-SWP-01: reports of a drone do not move its dueAt until it is far too early,
// because each move writes an index whose values rise.
func TestDated_MovesSeldom(t *testing.T) {
	p := DefaultDronePolicy()
	start := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	mission := &domain.Mission{ID: "M1", Status: domain.MissionActive, StartTime: start, CommandPublishedAt: start, EstimatedDurationMinutes: 60}
	for _, c := range []struct {
		drone domain.Drone
		m     *domain.Mission
		moves int
	}{
		{domain.Drone{Status: domain.DroneIdle}, nil, 50},
		{domain.Drone{Status: domain.DroneMoving, CurrentMissionID: "M1"}, mission, 4},
		{domain.Drone{Status: domain.DroneUnknown}, nil, 0},
	} {
		moves := 0
		for second := range 300 {
			before := c.drone.DueAt
			c.drone.SeenAt = start.Add(time.Duration(second) * time.Second)
			c.drone = p.Dated(c.drone, c.m)
			if !c.drone.DueAt.Equal(before) {
				moves++
			}
			if due := c.drone.DueAt; !due.IsZero() && due.Sub(c.drone.SeenAt) < p.IdleSilence*2/3 {
				t.Fatalf("it is due %s after a report", due.Sub(c.drone.SeenAt))
			}
		}
		if moves > c.moves || moves < c.moves*9/10 {
			t.Errorf("%s: %d moves in 300 reports, want about %d", c.drone.Status, moves, c.moves)
		}
	}
}

// F-SWP-01: an idle drone whose heartbeats are written moves its dueAt at every other one, is not due before
// the next, and is found at most two seconds after its silence.
func TestDated_LastsTwoHeartbeats(t *testing.T) {
	p := DefaultDronePolicy()
	p.Foretelling = DefaultForetelling()
	r := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	d := domain.Drone{Status: domain.DroneIdle, SeenAt: start}
	moves := 0
	for beat := range 100 {
		before := d.DueAt
		d.SeenAt = start.Add(time.Duration(beat)*p.Foretelling.Heartbeat + time.Duration(r.IntN(200))*time.Millisecond)
		if beat > 0 && !before.After(d.SeenAt) {
			t.Fatalf("beat %d: it was due %s before", beat, d.SeenAt.Sub(before))
		}
		if d = p.Dated(d, nil); !d.DueAt.Equal(before) {
			moves++
		}
		if silence := d.DueAt.Sub(d.SeenAt); silence > p.IdleSilence+2*time.Second {
			t.Fatalf("it would be found after %s of silence", silence)
		}
	}
	if moves != 50 {
		t.Errorf("%d moves in 100 heartbeats, want 50", moves)
	}
}
