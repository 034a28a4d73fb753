package explore

import (
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// waitAt is where drones without orders wait, a kilometre from the depot.
var waitAt = domain.Position{Lat: 48.81, Lon: 2.30}

// standBy publishes a decision that a drone wait for two ticks.
func (m *model) standBy(s *state, d int) {
	s.Left.Standby--
	fence := m.nextFence(s, d)
	until := start.Add(time.Duration(s.ticks()+2) * tick)
	m.decide(s, d, 0, honest, func(msg *message) {
		msg.Decision.Fence = fenceText(fence)
		msg.Decision.Route = []domain.Waypoint{
			{Type: domain.WaypointDepotStart, Position: depotAt},
			{Type: domain.WaypointWait, Position: waitAt, WaitUntil: until},
			{Type: domain.WaypointDepotReturn, Position: depotAt},
		}
	})
}

// waits reports whether a drone is to wait at its next stop, and the time has not come.
func (m *model) waits(s *state, d uint8) bool {
	f := s.Flight[d]
	i := m.nextStop(s, d)
	if f.Mission == 0 || i == 0 {
		return false
	}
	stop := m.flown(s, int(f.Mission-1)).Route[i]
	return stop.Type == domain.WaypointWait && start.Add(time.Duration(s.ticks())*tick).Before(stop.WaitUntil)
}

// turn has a drone of a mission fly another plan's route. One without orders leaves what it
// has done behind, unless the new route begins with it, too.
func (m *model) turn(s *state, k uint8, plan int) {
	from := m.flown(s, int(k)).Route
	s.Course[k] = uint8(plan) + 1
	if !domain.Standby(from) {
		return
	}
	to := m.flown(s, int(k)).Route
	var same uint8
	for same < s.Passed[k] && int(same) < len(to) && from[same] == to[same] {
		same++
	}
	s.Passed[k] = same
}

// gaveWay checks that a mission without orders is amended by a decision against which
// nothing else stands (F-AMD-06), independently of the policy.
func (m *model) gaveWay(before *state, msg *message, at moment, reason string) *Violation {
	d, now := msg.Decision, at.time()
	k, i := number(d.AmendsMissionID), number(d.DroneID)
	if before.Mission[k] == 0 || before.Newest[i] == 0 || before.Ledger[msg.Mission] != 0 {
		return nil
	}
	was, drone, newest := m.missions.get(before.Mission[k]), m.drones.get(before.Drone[i]), m.messages.get(before.Newest[i]).Report
	fence, a := msg.fence(), depotNumber(d.DepotID)
	ready := was.Standby() && was.Status == domain.MissionActive && was.RouteRevision == d.AmendsRevision && was.Amendment == nil && was.RecalledAt.IsZero() &&
		drone.CurrentMissionID == was.ID && !drone.Grounded && drone.FaultSince.IsZero() &&
		newest.MissionID == was.ID && newest.MissionRevision == was.RouteRevision && now.Sub(newest.Timestamp) <= m.limits.Drone.MaxSilence &&
		now.Sub(earlier(d.SnapshotTime, msg.Published)) <= m.limits.Assignment.MaxAge && fence > 0 && fence >= before.Top[a] && fence <= before.Issued[a]
	changed := slices.ContainsFunc(d.OrderIDs, func(id domain.OrderID) bool {
		o := number(id)
		order := m.order(before, o)
		return order == nil || order.Status != domain.OrderPending || order.Held || !order.Allows(d.DroneID) ||
			!order.PendingSince.Equal(msg.Waiting[o]) || before.Written[o].time().After(d.SnapshotTime)
	})
	if !ready || changed {
		return nil
	}
	return violated("READY", "decision %s was rejected as %s, and %s has no orders", d.ID, reason, was.ID)
}

// waited checks that a mission without orders is not COMPLETED before its drone has waited,
// as far as clocks agree (F-AMD-06).
func (m *model) waited(x *domain.Mission) *Violation {
	for _, stop := range x.Route {
		if x.Standby() && stop.Type == domain.WaypointWait && x.EndTime.Before(stop.WaitUntil.Add(-m.limits.Drone.ClockError)) {
			return violated("TRUE", "%s is COMPLETED %s, and its drone waits until %s", x.ID, since(x.EndTime), since(stop.WaitUntil))
		}
	}
	return nil
}
