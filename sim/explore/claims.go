package explore

import (
	"github.com/dronefleet/dronefleet/domain"
)

// Drones of a world with a top speed may claim what they have not done (F-SND-03). What they
// can have done follows from where they said that they were, without the policy's code: so
// much of the route as fits in the distance that they can have flown between two reports.

// Where the order of such a world goes, as far from the depot as its pickup, and a place that
// no drone reaches while a history lasts.
var (
	nearbyAt = domain.Position{Lat: 48.85, Lon: 2.43}
	farAt    = domain.Position{Lat: 49.80, Lon: 2.30}
)

// limitsOf returns the contract's limits with a world's top speed.
func limitsOf(w World) Limits {
	l := DefaultLimits()
	if w.TopSpeedKmh > 0 {
		l.Drone.TopSpeedKmh, l.Order.TopSpeedKmh, l.Assignment.TopSpeedKmh = w.TopSpeedKmh, w.TopSpeedKmh, w.TopSpeedKmh
	}
	return l
}

// liar reports whether the store has been told something of a drone that is not true.
func (s *state) liar(d int) bool { return s.Flight[d].Flags&lied != 0 }

// listen follows what a report says of its drone, before the store applies it.
func (m *model) listen(s *state, n id) {
	if m.world.TopSpeedKmh == 0 {
		return
	}
	msg := m.messages.get(n)
	d, t := msg.Drone, msg.Report
	if msg.Lie {
		s.Flight[d].Flags |= lied
	}
	drone := m.drones.get(s.Drone[d])
	moves := t.Timestamp.After(drone.LastUpdate) && !m.jumps(s.Anchor[d], t)
	for k, x := range s.Mission {
		bound := missionID(k) == drone.CurrentMissionID
		if x == 0 || !bound && missionID(k) != t.MissionID {
			continue
		}
		stops := m.possible(s, d, k, t)
		s.Possible[k] = max(s.Possible[k], stops)
		if bound && moves {
			s.Before[k] = stops
		}
	}
	if moves {
		s.Anchor[d] = n
	}
}

// possible is how many stops a mission's drone can have completed, now that a report of it
// is known. A mission that has ended is judged by where its drone was then.
func (m *model) possible(s *state, d, k int, t domain.Telemetry) uint8 {
	from, done := s.Anchor[d], max(1, s.Before[k])
	if s.Closed[k] != 0 {
		from = s.Closed[k]
	}
	at, left, jumps := m.messages.get(from).Report.Position, m.flyable(from, t), m.jumps(from, t)
	for _, stop := range m.flown(s, k).Route[done:] {
		left -= at.DistanceMetres(stop.Position)
		at = stop.Position
		if left < 0 || !jumps && left < at.DistanceMetres(t.Position) {
			break
		}
		done++
	}
	return done
}

// jumps reports whether a drone cannot have flown from one report to another.
func (m *model) jumps(from id, t domain.Telemetry) bool {
	return m.messages.get(from).Report.Position.DistanceMetres(t.Position) > m.flyable(from, t)
}

// flyable is how many metres a drone can have flown from one report to another: at twice its
// top speed, with a tick of error in each time, and some hundred metres beside each stop.
func (m *model) flyable(from id, t domain.Telemetry) float64 {
	flown := t.Timestamp.Sub(m.messages.get(from).Report.Timestamp) + 2*tick
	return m.world.TopSpeedKmh/3.6*2*flown.Seconds() + 300
}

// closeMission keeps where the drone of a mission that has ended was then.
func (m *model) closeMission(s *state, k int) {
	if x := m.missions.get(s.Mission[k]); x.Status != domain.MissionActive && s.Closed[k] == 0 {
		s.Closed[k] = s.Anchor[number(x.DroneID)]
	}
}

// completed is how many stops of a mission the store may believe, and the invariant that says
// so: those that were completed or, of a drone that lied, those that could have been.
func (m *model) completed(s *state, k int) (stops uint8, invariant string) {
	if d := number(m.missions.get(s.Mission[k]).DroneID); s.liar(d) {
		return max(s.Passed[k], s.Possible[k]), "CLAIM"
	}
	return s.Passed[k], "TRUE"
}

// blamed checks that no honest drone is recorded as implausible (CLAIM).
func (m *model) blamed(s *state) *Violation {
	for d, n := range s.Drone {
		if n != 0 && !s.liar(d) && m.drones.get(n).Implausible != "" {
			return violated("CLAIM", "drone %s has told no lie, and is recorded as implausible: it %s", droneID(d), m.drones.get(n).Implausible)
		}
	}
	return nil
}
