package explore

import (
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// check checks the invariants that a single state can violate.
func (m *model) check(s *state) *Violation {
	if v := m.exclusive(s); v != nil {
		return v
	}
	for a := range depots {
		if s.Top[a] != s.Fence[a] && s.Fence[a] <= s.Issued[a] { // fences that the lock never issued do not count
			return violated("I5", "fence %d was applied, the control document of %s holds %d", s.Top[a], depots[a].ID, s.Fence[a])
		}
	}
	if m.several() {
		if v := m.plannedOnce(s); v != nil {
			return v
		}
	}
	if v := m.blamed(s); v != nil {
		return v
	}
	for o := range s.Order {
		if s.Order[o] == 0 {
			continue
		}
		if v := m.checkOrder(s, o); v != nil {
			return v
		}
	}
	if v := m.visits(s); v != nil {
		return v
	}
	if v := m.onBoard(s); v != nil {
		return v
	}
	return m.inTheAir(s)
}

// exclusive checks I1, and the part of I3 that missions, drones and orders agree.
func (m *model) exclusive(s *state) *Violation {
	var flying uint8 // drones in ACTIVE missions
	var carried uint8
	for k, n := range s.Mission {
		if n == 0 {
			continue
		}
		x := m.missions.get(n)
		switch x.Status {
		case domain.MissionActive:
			d := number(x.DroneID)
			if flying&(1<<d) != 0 {
				return violated("I1", "drone %s is in two ACTIVE missions, one is %s", x.DroneID, x.ID)
			}
			flying |= 1 << d
			if s.Drone[d] == 0 || m.drones.get(s.Drone[d]).CurrentMissionID != x.ID {
				return violated("I3", "%s is ACTIVE, and its drone %s is bound to %q", x.ID, x.DroneID, m.drones.get(s.Drone[d]).CurrentMissionID)
			}
			for _, id := range x.OrderIDs {
				o := number(id)
				if carried&(1<<o) != 0 {
					return violated("I1", "order %s is in two ACTIVE missions, one is %s", id, x.ID)
				}
				carried |= 1 << o
				if s.Order[o] == 0 || m.orders.get(s.Order[o]).AssignedMissionID != x.ID {
					return violated("I3", "%s is ACTIVE with order %s, which does not belong to it", x.ID, id)
				}
			}
		case domain.MissionCompleted:
			if v := m.waited(x); v != nil {
				return v
			}
			for _, id := range x.OrderIDs {
				if o := number(id); s.Order[o] == 0 || m.orders.get(s.Order[o]).Status != domain.OrderDelivered {
					return violated("I3", "%s is COMPLETED, and its order %s is not delivered", x.ID, id)
				}
			}
		case domain.MissionFailed:
		}
		if s.Ledger[k] == 0 || m.entries.get(s.Ledger[k]).Outcome != domain.OutcomeApplied {
			return violated("I6", "%s exists, and the ledger does not say that its decision was applied", x.ID)
		}
	}
	return nil
}

// checkOrder checks that an order is not lost (I3), that what the store says of its
// parcel is true (TRUE), and that it does not go out again once the store has been told
// that it was put down (I10).
func (m *model) checkOrder(s *state, o int) *Violation {
	order := m.orders.get(s.Order[o])
	k := number(order.AssignedMissionID)
	switch order.Status {
	case domain.OrderAssigned, domain.OrderInDelivery:
		if k < 0 || s.Mission[k] == 0 {
			return violated("I3", "order %s is %s in mission %q, which does not exist", order.ID, order.Status, order.AssignedMissionID)
		}
		x := m.missions.get(s.Mission[k])
		if x.Status != domain.MissionActive || !slices.Contains(x.OrderIDs, order.ID) {
			return violated("I3", "order %s is %s in %s, which is %s with orders %v", order.ID, order.Status, x.ID, x.Status, x.OrderIDs)
		}
		for _, stop := range x.Route {
			if stop.OrderID != order.ID {
				continue
			}
			if stop.Type == domain.WaypointHospitalDelivery && stop.Position != order.Delivery {
				return violated("I11", "%s flies order %s to %v, and it is wanted at %v", x.ID, order.ID, stop.Position, order.Delivery)
			}
			if stop.Type == domain.WaypointWarehousePickup && order.Pickup != nil && stop.Position != *order.Pickup {
				return violated("I11", "%s picks order %s up at %v, and it waits at %v", x.ID, order.ID, stop.Position, *order.Pickup)
			}
		}
		stops, invariant := m.completed(s, k)
		if c := m.course(s, k); order.Status == domain.OrderInDelivery && (c.serves&(1<<o) == 0 || stops <= c.pickup[o]) {
			return violated(invariant, "order %s is IN_DELIVERY, and %s has not picked it up", order.ID, x.ID)
		}
	case domain.OrderDelivered:
		if k < 0 || s.Mission[k] == 0 {
			return violated("TRUE", "order %s is DELIVERED by %q, which does not exist", order.ID, order.AssignedMissionID)
		}
		stops, invariant := m.completed(s, k)
		if c := m.course(s, k); c.serves&(1<<o) == 0 || stops <= c.deliver[o] {
			return violated(invariant, "order %s is DELIVERED by %q, which has not put it down", order.ID, order.AssignedMissionID)
		}
		return m.pickedUp(s, k, o)
	case domain.OrderCancelled:
		return nil
	case domain.OrderPending:
	case domain.OrderSolving:
		return violated("I3", "order %s is SOLVING, which nothing handles", order.ID)
	}
	return m.sentAgain(s, o, order, k)
}

// sentAgain checks I10 for an order that is open.
func (m *model) sentAgain(s *state, o int, order *domain.Order, holder int) *Violation {
	for k := range s.Mission {
		if s.Mission[k] == 0 || s.Proof[k] == 0 || !m.proven(s, k, o) {
			continue
		}
		// Picked up again before the proof arrived: a person must find out.
		again := order.Status == domain.OrderInDelivery && holder != k
		if !again && !(order.Status == domain.OrderPending && order.Held) {
			return violated("I10", "the store was told that %s put down order %s, which is %s and not held", missionID(k), order.ID, order.Status)
		}
	}
	if order.Held {
		return nil
	}
	return m.grace(s, o, order, holder)
}

// proven reports whether a mission's reports in the store, folded in the order of their
// timestamps, prove an order's delivery. Drones fly their stops in route order, so every
// stop up to it must be proven. This is F-TEL-11 without the policy's code.
func (m *model) proven(s *state, k, o int) bool {
	c := m.course(s, k)
	if c.serves&(1<<o) == 0 {
		return false
	}
	dropped := m.missions.get(s.Mission[k]).DroppedStops
	for i := uint8(1); i <= c.deliver[o]; i++ {
		if s.Proof[k]&(1<<i) == 0 && !slices.Contains(dropped, int(i)) {
			return false
		}
	}
	return true
}

// inTheAir checks what documents do not show: that no drone flies a mission that the
// store gave up because the drone did not know of it, or had left it (AIR).
func (m *model) inTheAir(s *state) *Violation {
	for d, f := range s.Flight {
		if f.Mission == 0 {
			continue
		}
		n := s.Mission[f.Mission-1]
		if n == 0 {
			return violated("AIR", "drone %s flies %s, which does not exist", droneID(d), missionID(int(f.Mission-1)))
		}
		x := m.missions.get(n)
		if x.FailureReason == domain.FailureRecalled || x.FailureReason == domain.FailureNotAcked || x.FailureReason == domain.FailureAbortedByDrone {
			return violated("AIR", "drone %s flies %s, which was given up as %s", droneID(d), x.ID, x.FailureReason)
		}
	}
	return nil
}

// applied checks the preconditions of an applied decision (READY, I5) in the states before
// and after it, independently of the policy.
func (m *model) applied(before, after *state, msg *message, at moment) *Violation {
	d, now := msg.Decision, at.time()
	fence, a := msg.fence(), depotNumber(d.DepotID)
	if fence < before.Top[a] {
		return violated("I5", "decision %s was applied with fence %d after %d", d.ID, fence, before.Top[a])
	}
	if fence == 0 || fence > before.Issued[a] { // F-DEC-07
		return violated("I5", "decision %s was applied with fence %d, and the lock has handed out %d", d.ID, fence, before.Issued[a])
	}
	after.Top[a] = fence
	if x := m.missions.get(after.Mission[msg.Mission]); !slices.Equal(x.OrderIDs, d.OrderIDs) {
		return violated("I7", "decision %s is about orders %v, its mission about %v", d.ID, d.OrderIDs, x.OrderIDs)
	}
	if age := now.Sub(earlier(d.SnapshotTime, msg.Published)); age > m.limits.Assignment.MaxAge {
		return violated("READY", "decision %s was applied with a snapshot %s old", d.ID, age)
	}
	i := number(d.DroneID)
	if i >= maxDrones || before.Drone[i] == 0 || before.Newest[i] == 0 {
		return violated("READY", "decision %s was applied to drone %s, of which nothing was heard", d.ID, d.DroneID)
	}
	if was, is := m.drones.get(before.Drone[i]).LastUpdate, m.drones.get(after.Drone[i]).LastUpdate; !is.Equal(was) {
		return violated("I4", "decision %s moved lastUpdate of %s from %s to %s", d.ID, d.DroneID, since(was), since(is))
	}
	for _, id := range d.OrderIDs {
		o := number(id)
		if order := m.order(before, o); msg.Forged == honest && (order == nil || !order.PendingSince.Equal(msg.Waiting[o])) {
			return violated("READY", "decision %s was applied to order %s, which changed since the snapshot", d.ID, id)
		}
		if order := m.order(before, o); order != nil && (order.PinnedDroneID != "" && order.PinnedDroneID != d.DroneID || slices.Contains(order.ForbiddenDroneIDs, d.DroneID)) {
			return violated("READY", "decision %s gives order %s to %s; it is pinned to %q, forbidden to %q", d.ID, id, d.DroneID, order.PinnedDroneID, order.ForbiddenDroneIDs)
		}
	}
	newest := m.messages.get(before.Newest[i]).Report
	switch {
	case !m.inService(before, i):
		return violated("I12", "%s was given to %s, which nobody has registered, or which is retired", d.ID, d.DroneID)
	case m.drones.get(before.Drone[i]).Grounded:
		return violated("READY", "%s was given to %s, which is grounded", d.ID, d.DroneID)
	case before.Emergency&(1<<i) != 0:
		return violated("READY", "%s was given to %s, which has an emergency", d.ID, d.DroneID)
	case now.Sub(newest.Timestamp) > m.limits.Drone.MaxSilence+m.limits.Drone.ClockError:
		return violated("READY", "%s was given to %s, which was last heard %s", d.ID, d.DroneID, since(newest.Timestamp))
	case newest.Status != domain.DroneIdle && newest.Status != "" && !m.homebound(before, i):
		return violated("READY", "%s was given to %s, which says %s", d.ID, d.DroneID, newest.Status)
	case newest.Battery <= m.limits.Drone.MinBattery || newest.Battery-d.EstimatedBatteryConsumption < m.limits.Drone.MinBattery:
		return violated("READY", "%s was given to %s, which would land with %.0f %%", d.ID, d.DroneID, newest.Battery-d.EstimatedBatteryConsumption)
	case !msg.FreeSince.IsZero() && !freeSince(m.drones.get(before.Drone[i])).Equal(msg.FreeSince):
		return violated("READY", "%s was given to %s, which has been away since the snapshot", d.ID, d.DroneID)
	}
	if k := number(newest.MissionID); k >= 0 && before.Mission[k] != 0 {
		if x := m.missions.get(before.Mission[k]); x.Status == domain.MissionFailed && newest.Timestamp.Sub(x.EndTime) <= m.limits.Drone.GhostGrace {
			return violated("READY", "%s was given to %s, which still names %s", d.ID, d.DroneID, x.ID)
		}
	}
	if problem := m.unflyable(before, d); problem != "" {
		return violated("READY", "%s: %s", d.ID, problem)
	}
	return nil
}

// homebound reports whether a drone, in truth, flies a mission of which nothing is left but
// the way home, or none.
func (m *model) homebound(s *state, d int) bool {
	f := s.Flight[d]
	return f.Mission == 0 || m.nextStop(s, uint8(d)) == 0
}

// unflyable says why a decision cannot be flown; "" if it can.
func (m *model) unflyable(s *state, d domain.Decision) string {
	var aboard, down uint8
	var load float64
	for _, stop := range d.Route {
		o := number(stop.OrderID)
		switch stop.Type {
		case domain.WaypointWarehousePickup:
			aboard |= 1 << o
			if order := m.order(s, o); order != nil {
				load += order.WeightKg
			}
			if load > payloadKg {
				return "it is too heavy"
			}
		case domain.WaypointHospitalDelivery:
			if aboard&(1<<o) == 0 {
				return "it delivers order " + string(stop.OrderID) + " before its pickup"
			}
			aboard &^= 1 << o
			down |= 1 << o
			if order := m.order(s, o); order != nil {
				load -= order.WeightKg
			}
		case domain.WaypointDepotStart, domain.WaypointDepotReturn, domain.WaypointCharge, domain.WaypointWait:
		}
	}
	for _, id := range d.OrderIDs {
		if down&(1<<number(id)) == 0 {
			return "it never delivers order " + string(id)
		}
	}
	return ""
}

// grace checks that a parked drone's order is not given to another while late reports are
// within the grace, if those under way will prove that its parcel was put down (F-TEL-11).
func (m *model) grace(s *state, o int, order *domain.Order, holder int) *Violation {
	for k, n := range s.Mission {
		if n == 0 || k == holder {
			continue
		}
		x := m.missions.get(n)
		c := m.course(s, k)
		if x.FailureReason != domain.FailureAbortedByDrone && x.FailureReason != domain.FailureRecalled || c.serves&(1<<o) == 0 || s.Passed[k] <= c.deliver[o] {
			continue
		}
		served := start.Add(time.Duration(s.PassedAt[k]) * tick)
		if x.EndTime.Sub(served) >= m.limits.Drone.LateGrace {
			continue
		}
		told := *s
		for _, n := range s.Bus {
			if msg := m.messages.get(n); n != 0 && msg.Kind == kindReport && number(msg.Report.MissionID) == k {
				told.Proof[k] |= msg.Proves
			}
		}
		if m.proven(&told, k, o) {
			return violated("I10", "order %s is %s, and reports that %s has put it down are under way", order.ID, order.Status, x.ID)
		}
	}
	return nil
}

// heard records what a report told the store, and checks that the store holds it (I9).
func (m *model) heard(s *state, n id, refused bool) *Violation {
	msg := m.messages.get(n)
	t := msg.Report
	if refused { // in the dead-letter topic, with its reason
		return nil
	}
	if s.Drone[msg.Drone] == 0 || m.drones.get(s.Drone[msg.Drone]).LastUpdate.Before(t.Timestamp) {
		return violated("I9", "the %s was acked without an effect", msg)
	}
	if k := number(t.MissionID); k >= 0 {
		s.Proof[k] |= msg.Proves
	}
	if newest := s.Newest[msg.Drone]; newest == 0 || m.messages.get(newest).Report.Timestamp.Before(t.Timestamp) {
		s.Newest[msg.Drone] = n
		if t.Status == domain.DroneEmergency {
			s.Emergency |= 1 << msg.Drone
		}
	}
	return nil
}

// asked checks that an acked request has its effect or a reason on record (I9).
func (m *model) asked(s *state, n id, a *answer) *Violation {
	msg := m.messages.get(n)
	o := number(msg.Request.ID)
	if s.Order[o] == 0 {
		return violated("I9", "the %s was acked, and there is no such order", msg)
	}
	order := m.orders.get(s.Order[o])
	if msg.Request.Cancel && order.Status != domain.OrderCancelled && !a.noted {
		return violated("I9", "the %s was acked, the order is %s, and no refusal is on record", msg, order.Status)
	}
	if newest := s.Asked[o]; !msg.Request.Cancel && (newest == 0 || m.messages.get(newest).Published.Before(msg.Published)) {
		s.Asked[o] = n
	}
	if newest := s.Asked[o]; newest != 0 && order.Status == domain.OrderPending && order.ContentPublishedAt.Before(m.messages.get(newest).Published) {
		return violated("I9", "the %s was acked, and %s has the content of an older one", m.messages.get(newest), order.ID)
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// fence is the number of a decision's fence; 0 for none.
func (m message) fence() uint8 { return fenceOf(m.Decision.Fence) }

func fenceOf(fence string) uint8 {
	if strings.TrimLeft(fence, "0") == "" {
		return 0
	}
	return fenceNumber(fence)
}
