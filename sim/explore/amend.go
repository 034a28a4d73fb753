package explore

import (
	"slices"

	"github.com/dronefleet/dronefleet/domain"
)

// course is the route that a mission's drone flies in truth. Reports prove stops of it:
// a drone takes another one only if that begins with the stops that it has completed.
func (m *model) course(s *state, k int) course { return m.courses[s.Plan[s.courseOf(k)]] }

// flown is the decision whose route that is.
func (m *model) flown(s *state, k int) domain.Decision {
	return m.messages.get(s.Plan[s.courseOf(k)]).Decision
}

// courseOf is the number of that decision.
func (s *state) courseOf(k int) int {
	if s.Course[k] == 0 {
		return k
	}
	return int(s.Course[k]) - 1
}

// commandedCourse is the number of the decision whose route a mission's drone is told to
// fly.
func (m *model) commandedCourse(s *state, k int, route int) int {
	if a := m.missions.get(s.Mission[k]).Amendment; a != nil && a.Revision == route {
		return number(a.DecisionID)
	}
	for j, n := range s.Ledger {
		if n == 0 {
			continue
		}
		if e := m.entries.get(n); e.Outcome == domain.OutcomeApplied && e.AmendsMissionID == missionID(k) && e.Revision == route {
			return j
		}
	}
	return k
}

// canFly reports whether the drone of mission k can turn to the route of a plan. That route
// must begin with the stops that the drone has completed, unless it flies a standby mission.
func (m *model) canFly(s *state, k uint8, plan int) bool {
	from, to := m.flown(s, int(k)).Route, m.messages.get(s.Plan[plan]).Decision.Route
	if domain.Standby(from) {
		return true
	}
	for i := range int(s.Passed[k]) {
		if i >= len(to) || from[i] != to[i] {
			return false
		}
	}
	return true
}

// amendments lists the changes of a drone's mission that an optimizer may decide: any
// orders of it and of those that wait, among them what is aboard.
func (m *model) amendments(s *state, d int, list []action) []action {
	if s.Drone[d] == 0 {
		return list
	}
	drone := m.drones.get(s.Drone[d])
	k := number(drone.CurrentMissionID)
	if k < 0 || s.Mission[k] == 0 || !drone.MissionAcked {
		return list
	}
	x := m.missions.get(s.Mission[k])
	if x.Status != domain.MissionActive {
		return list
	}
	var has, aboard uint8
	for _, id := range x.OrderIDs {
		has |= 1 << number(id)
	}
	for _, stop := range x.Route[:x.ReachedStops] {
		if stop.OrderID != "" {
			aboard |= 1 << number(stop.OrderID)
		}
	}
	may := has | m.waiting(s, d)
	for set := may; set != 0; set = (set - 1) & may {
		if set != has && set&aboard == aboard {
			list = append(list, action{Do: doAmend, A: uint8(d), B: set})
		}
	}
	return list
}

// amend publishes a decision that a drone serve these orders from now on.
func (m *model) amend(s *state, d int, set uint8) {
	s.Left.Amend--
	fence := m.nextFence(s, d)
	x := m.missions.get(s.Mission[number(m.drones.get(s.Drone[d]).CurrentMissionID)])
	m.decide(s, d, set, honest, func(msg *message) {
		msg.Decision.AmendsMissionID, msg.Decision.AmendsRevision = x.ID, x.RouteRevision
		msg.Decision.Fence = fenceText(fence)
		if !x.Standby() { // that is replaced whole
			msg.Decision.Route = amendedRoute(x.Route[:x.ReachedStops], msg.Decision.Route)
		}
	})
}

// amendedRoute is what has been reached, and then what is left of a new route.
func amendedRoute(reached, route []domain.Waypoint) []domain.Waypoint {
	whole := slices.Clone(reached)
	for _, stop := range route {
		if !slices.ContainsFunc(reached, func(r domain.Waypoint) bool { return r.Type == stop.Type && r.OrderID == stop.OrderID }) {
			whole = append(whole, stop)
		}
	}
	return whole
}

// amended checks the preconditions of an applied amendment in the states before and after
// it, independently of the policy (F-AMD-01, F-AMD-02).
func (m *model) amended(before, after *state, msg *message, at moment) *Violation {
	d, now, fence := msg.Decision, at.time(), msg.fence()
	a := depotNumber(d.DepotID)
	if fence < before.Top[a] || fence == 0 || fence > before.Issued[a] {
		return violated("I5", "decision %s was applied with fence %d after %d of %d", d.ID, fence, before.Top[a], before.Issued[a])
	}
	after.Top[a] = fence
	k, i := number(d.AmendsMissionID), number(d.DroneID)
	was, seen := m.missions.get(before.Mission[k]), m.drones.get(before.Drone[i]).LastUpdate
	switch {
	case now.Sub(earlier(d.SnapshotTime, msg.Published)) > m.limits.Assignment.MaxAge:
		return violated("READY", "decision %s was applied with an old snapshot", d.ID)
	case was.Status != domain.MissionActive || was.RouteRevision != d.AmendsRevision || was.Amendment != nil || !was.RecalledAt.IsZero():
		return violated("READY", "decision %s, planned on revision %d, amends %s, which is %s at %d", d.ID, d.AmendsRevision, was.ID, was.Status, was.RouteRevision)
	case now.Sub(seen) > m.limits.Drone.MaxSilence+m.limits.Drone.ClockError:
		return violated("READY", "decision %s amends the mission of %s, which was last heard %s", d.ID, d.DroneID, since(seen))
	}
	for _, id := range d.OrderIDs {
		o := number(id)
		if order := m.order(before, o); !slices.Contains(was.OrderIDs, id) && !order.PendingSince.Equal(msg.Waiting[o]) {
			return violated("READY", "decision %s adds order %s, which changed since the snapshot", d.ID, id)
		}
	}
	for _, id := range was.OrderIDs {
		if m.order(before, number(id)).Status == domain.OrderInDelivery && !slices.Contains(d.OrderIDs, id) {
			return violated("READY", "decision %s takes order %s away, which is aboard", d.ID, id)
		}
	}
	if problem := m.unflyable(before, d); problem != "" {
		return violated("READY", "%s: %s", d.ID, problem)
	}
	return nil
}

// onBoard checks what amendments add to I1: an order that a drone is about to serve on an
// ACTIVE mission belongs to that mission, so that nobody else can be given it. The drone
// may fly a route that the store does not know of yet.
func (m *model) onBoard(s *state) *Violation {
	for d, f := range s.Flight {
		if f.Mission == 0 {
			continue
		}
		k := int(f.Mission - 1)
		n := s.Mission[k]
		if n == 0 || m.missions.get(n).Status != domain.MissionActive {
			continue
		}
		c := m.course(s, k)
		for o := range s.Order {
			if s.Order[o] == 0 || c.serves&(1<<o) == 0 || f.Dropped&(1<<o) != 0 || s.Passed[k] > c.deliver[o] {
				continue
			}
			order := m.orders.get(s.Order[o])
			mine := order.AssignedMissionID == missionID(k)
			if !mine && !order.Status.Final() && !order.Held {
				return violated("I1", "drone %s flies %s revision %d with order %s, which is %s of %q", droneID(d), missionID(k), f.Route, order.ID, order.Status, order.AssignedMissionID)
			}
		}
	}
	return nil
}
