package explore

import (
	"math/bits"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// depots are those of the model, by id, on one meridian.
var depots = [maxDepots]domain.Depot{
	{ID: depot, Position: depotAt},
	{ID: "EAST", Position: domain.Position{Lat: 49.50, Lon: 2.30}},
	{ID: "NORTH", Position: domain.Position{Lat: 49.25, Lon: 2.30}},
}

// formerDepots handed an order over before the histories begin, and are gone.
var formerDepots = []domain.DepotID{"FORMER-1", "FORMER-2", "FORMER-3", "FORMER-4"}

func depotNumber(name domain.DepotID) int {
	return slices.IndexFunc(depots[:], func(d domain.Depot) bool { return d.ID == name })
}

func (m *model) several() bool { return m.world.Depots > 1 }

// sets are the sets of depots; a bit of the index stands for each.
var sets = func() (all [1 << maxDepots][]domain.Depot) {
	for set := range all {
		for i, d := range depots {
			if set&(1<<i) != 0 {
				all[set] = append(all[set], d)
			}
		}
	}
	return all
}()

// existing are the depots of a set.
func existing(set uint8) []domain.Depot { return sets[set] }

// An area's number is that of the depot that names it. areaWith is the number of a depot's
// area, -1 for none.
func (m *model) areaWith(s *state, depot domain.DepotID) int {
	for _, area := range m.areas[s.Depots] {
		if area.Has(depot) {
			return depotNumber(area.ID())
		}
	}
	return -1
}

// areaOf is the number of the area that plans for a drone, -1 for none. An area with every
// depot has all drones.
func (m *model) areaOf(s *state, d int) int {
	if !m.several() {
		return 0
	}
	if s.Drone[d] == 0 {
		return -1
	}
	if areas := m.areas[s.Depots]; len(areas) == 1 {
		return depotNumber(areas[0].ID())
	}
	return m.areaWith(s, m.drones.get(s.Drone[d]).HomeDepotID)
}

// joined are the depots of a set that are in one area with a depot of it, restated for the
// checks: those at most the radius from another one of the area.
func (m *model) joined(set uint8, depot int) (area uint8) {
	const kmPerDegree = 111.2
	area = 1 << depot
	for range depots {
		for i, d := range depots {
			for j, other := range depots {
				apart := kmPerDegree * max(d.Position.Lat-other.Position.Lat, other.Position.Lat-d.Position.Lat)
				if set&(1<<i) != 0 && area&(1<<j) != 0 && apart <= m.world.Radius {
					area |= 1 << i
				}
			}
		}
	}
	return area
}

// nextFence is the one that the lock of a drone's area hands out next.
func (m *model) nextFence(s *state, d int) uint8 {
	a := m.areaOf(s, d)
	s.Issued[a]++
	return s.Issued[a]
}

// Whose cycle it is, and so which fence it has. From ofMembers on there is one for each member.
const (
	ofNewLease  uint8 = iota // the next fence
	ofLostLease              // the previous one
	ofMembers                // that of the member's ownership, however long ago another took the area
)

// cyclesOf lists whose cycles an area can have.
func (m *model) cyclesOf(s *state, area int) (list []uint8) {
	if m.world.Members > 0 {
		for member := range m.world.Members {
			if s.Owner[member][area] > 0 {
				list = append(list, ofMembers+uint8(member))
			}
		}
		return list
	}
	list = append(list, ofNewLease)
	if s.Left.Old > 0 && s.Issued[area] > 0 {
		list = append(list, ofLostLease)
	}
	return list
}

// fenceBy is the fence of a cycle that begins now.
func (s *state) fenceBy(area int, by uint8) uint8 {
	switch by {
	case ofNewLease:
		s.Issued[area]++
	case ofLostLease:
		s.Left.Old--
	default:
		return s.Owner[by-ofMembers][area]
	}
	return s.Issued[area]
}

// takings lists the areas that members can take. Leases are not modelled: a lock is free whenever
// its lease has ended, and the member that had it may be frozen or have a wrong clock.
func (m *model) takings(s *state, list []action) []action {
	if s.Left.Take == 0 {
		return list
	}
	for member := range m.world.Members {
		if member > 0 && s.Owner[member-1] == [maxDepots]uint8{} {
			break // members are interchangeable
		}
		for _, area := range m.areas[s.Depots] {
			list = append(list, action{Do: doTake, A: uint8(member), B: uint8(depotNumber(area.ID()))})
		}
	}
	return list
}

// readByArea is what a snapshot of an area shows of the orders that wait: those that its
// depots plan and, in the first area, those that no depot plans.
func readByArea(areas []domain.Area, area domain.DepotID, o domain.Order) bool {
	for _, a := range areas {
		if a.Has(o.PlanningDepotID) {
			return a.ID() == area
		}
	}
	return area == areas[0].ID()
}

// reader reports whether an area's snapshot shows an order, if that waits.
func (m *model) reader(s *state, area int, o *domain.Order) bool {
	return !m.several() || m.rules.Reads(m.areas[s.Depots], depots[area].ID, *o)
}

// plannedOnce checks that no order which waits falls between the areas, or is planned by two
// (AREA).
func (m *model) plannedOnce(s *state) *Violation {
	for _, n := range s.Order {
		if n == 0 || s.Depots == 0 || !m.orders.get(n).Waits() {
			continue
		}
		var by []domain.DepotID
		for _, area := range m.areas[s.Depots] {
			if m.reader(s, depotNumber(area.ID()), m.orders.get(n)) {
				by = append(by, area.ID())
			}
		}
		if len(by) != 1 {
			return violated("AREA", "order %s waits and is planned by areas %q; its planning depot is %q", m.orders.get(n).ID, by, m.orders.get(n).PlanningDepotID)
		}
	}
	return nil
}

// handOvers lists what cycles of all areas can hand over from a snapshot taken now. The
// planner chooses less: any depot of another area may get an order here, one that had it
// before, too.
func (m *model) handOvers(s *state, list []action) []action {
	for o, n := range s.Order {
		if n == 0 || !m.orders.get(n).Waits() {
			continue
		}
		from := m.areaWith(s, m.orders.get(n).PlanningDepotID)
		if from < 0 {
			continue // the first area plans it, until the sweeper finds it a depot
		}
		for to, d := range depots {
			if other := m.areaWith(s, d.ID); other < 0 || other == from {
				continue
			}
			for _, by := range m.cyclesOf(s, from) {
				list = append(list, action{Do: doHandOver, A: uint8(o), B: uint8(to), C: by})
			}
		}
	}
	return list
}

// passOn takes a snapshot of an order's area and begins to hand the order over.
func (m *model) passOn(s *state, o, to int, by uint8) {
	s.Left.HandOver--
	order := m.orders.get(s.Order[o])
	area := m.areaWith(s, order.PlanningDepotID)
	s.insert(m.internMessage(message{Kind: kindHandOver, HandOver: domain.HandOvers{
		CycleID: "C", DepotID: depots[area].ID, Fence: fenceText(s.fenceBy(area, by)), AreaRadius: m.world.Radius,
		List: []domain.HandOver{{OrderID: order.ID, From: order.PlanningDepotID, To: depots[to].ID, Reason: "no drone is free"}},
	}}))
	s.pastSnapshot()
}

// forgedHandOvers lists the hand-overs of a world that no honest cycle makes, of any order
// to any depot.
func (m *model) forgedHandOvers(s *state, list []action) []action {
	for _, f := range m.world.Passes {
		for o, n := range s.Order {
			for _, to := range existing(s.Depots) {
				if n == 0 || m.areaWith(s, m.orders.get(n).PlanningDepotID) < 0 {
					continue
				}
				list = append(list, action{Do: doPass, A: uint8(f), B: uint8(o), C: uint8(depotNumber(to.ID))})
			}
		}
	}
	return list
}

// forgeHandOver begins a hand-over that is wrong in one way.
func (m *model) forgeHandOver(s *state, f forgery, o, to int) {
	s.Left.Forge--
	order := m.orders.get(s.Order[o])
	one := domain.HandOver{OrderID: order.ID, From: order.PlanningDepotID, To: depots[to].ID, Reason: "forged"}
	area := m.areaWith(s, one.From)
	switch f {
	case ghostOrder:
		one.OrderID = orderID(maxOrders - 1)
	case stranger: // the area that is to have the order takes it
		area = m.areaWith(s, one.To)
	case usurper:
		area = m.areaWith(s, one.To)
		one.From, one.To = one.To, one.From
	case honest, blind, ghostDrone, wrongRoute, heavy, farAway, conflict, fromFuture, unknownFence, plannedEarlier, unfenced:
	}
	s.Issued[area]++
	h := domain.HandOvers{CycleID: "C", DepotID: depots[area].ID, Fence: fenceText(s.Issued[area]), AreaRadius: m.world.Radius, List: []domain.HandOver{one}}
	switch f {
	case unknownFence:
		h.Fence = fenceText(forgedFence)
	case unfenced:
		h.Fence = ""
	case honest, blind, ghostOrder, ghostDrone, wrongRoute, heavy, farAway, conflict, fromFuture, plannedEarlier, stranger, usurper:
	}
	s.insert(m.internMessage(message{Kind: kindHandOver, HandOver: h, Forged: f}))
	s.pastSnapshot()
}

// handOver is a cycle's transaction that hands an order over.
func (m *model) handOver(s *state, n id, at moment) *answer {
	c := m.reads(s, n)
	msg := m.messages.get(n)
	h := msg.HandOver
	a := depotNumber(h.DepotID)
	c.at, c.issued = at, s.Issued[a]
	return m.answerTo(s, c, func(now time.Time) *answer {
		in := policy.DecisionState{Fences: policy.Fences{}, Issued: policy.Fences{h.DepotID: fenceText(s.Issued[a])}}
		if s.Fence[a] > 0 {
			in.Fences[h.DepotID] = fenceText(s.Fence[a])
		}
		verdict, err := m.rules.AdmitHandOvers(in, h)
		if err != nil {
			return m.record(s, policy.Change{}, err)
		}
		one := h.List[0]
		change, err := m.rules.HandOver(m.order(s, number(one.OrderID)), m.areas[c.depots], h, one, now)
		answer := m.record(s, change, err)
		answer.admitted, answer.applied = true, err == nil
		if verdict.Fence != "" {
			answer.area, answer.fence = uint8(a), fenceNumber(verdict.Fence)
		}
		return answer
	})
}

func (m *model) handleHandOver(s *state, n id, at moment) *Violation {
	before := *s
	a := m.handOver(s, n, at)
	if v := m.commit(s, a, true); v != nil || !a.admitted {
		return v
	}
	return m.handedOver(&before, s, m.messages.get(n), a.applied)
}

// handedOver checks what a cycle whose fence was accepted handed over, independently of the
// policy (F-ARE-05).
func (m *model) handedOver(before, after *state, msg *message, applied bool) *Violation {
	h, one := msg.HandOver, msg.HandOver.List[0]
	a, fence := depotNumber(h.DepotID), fenceOf(h.Fence)
	if fence < before.Top[a] || fence == 0 || fence > before.Issued[a] {
		return violated("I5", "the %s was accepted after fence %d of %d", msg, before.Top[a], before.Issued[a])
	}
	after.Top[a] = fence
	if !applied {
		if after.Order != before.Order {
			return violated("AREA", "the %s was refused and has an effect", msg)
		}
		return nil
	}
	o, from, to := number(one.OrderID), depotNumber(one.From), depotNumber(one.To)
	was, is := m.order(before, o), m.orders.get(after.Order[o])
	after.Had[o] |= 1 << from
	switch {
	case was == nil:
		return violated("AREA", "the %s is of an order that does not exist", msg)
	case !was.Waits():
		return violated("AREA", "order %s, which is %s, held %t, was handed over", was.ID, was.Status, was.Held)
	case was.PlanningDepotID != one.From || is.PlanningDepotID != one.To:
		return violated("AREA", "the %s moved it from %q to %q", msg, was.PlanningDepotID, is.PlanningDepotID)
	case before.Depots&(1<<from) == 0 || bits.TrailingZeros8(m.joined(before.Depots, from)) != a:
		return violated("AREA", "the %s is made by a cycle of %s, whose area does not plan it", msg, h.DepotID)
	case before.Depots&(1<<to) == 0:
		return violated("AREA", "the %s gives it to a depot that is gone", msg)
	case after.Had[o]&(1<<to) != 0:
		return violated("AREA", "the %s gives it back", msg)
	case bits.OnesCount8(after.Had[o]) > domain.MaxHandOvers:
		return violated("AREA", "the %s is number %d", msg, bits.OnesCount8(after.Had[o]))
	}
	return nil
}

// adopt is the sweeper's transaction that finds a depot for an order which no depot plans.
func (m *model) adopt(s *state, o int, at moment) *answer {
	c := call{what: opAdopt, subject: int8(o), at: at, depots: s.Depots}
	c.orders[o] = s.Order[o]
	return m.answerTo(s, c, func(now time.Time) *answer {
		return m.record(s, m.rules.SweepPlanningDepot(*m.order(s, o), existing(s.Depots), now), nil)
	})
}

// adoptable reports whether the sweeper would find a depot for an order.
func (m *model) adoptable(s *state, o int) bool {
	if !m.several() || s.Order[o] == 0 {
		return false
	}
	a := m.adopt(s, o, s.Now)
	return !a.empty() || a.broken != nil
}

// adopted checks that the sweeper gave an order to the nearest depot (F-ARE-04).
func (m *model) adopted(before, after *state, o int) *Violation {
	if was := depotNumber(m.orders.get(before.Order[o]).PlanningDepotID); was >= 0 && before.Depots&(1<<was) != 0 {
		return violated("AREA", "the sweeper takes order %s from %s, which exists", orderID(o), depots[was].ID)
	}
	return m.foundAnew(after, o, after.Depots)
}

// ingested checks which depot plans an order after a request that a State Manager which
// knows some depots has handled: with another place of delivery the nearest of them,
// otherwise the same as before (F-ARE-04).
func (m *model) ingested(before, after *state, o int, known uint8) *Violation {
	if !m.several() || after.Order[o] == before.Order[o] || m.orders.get(after.Order[o]).Status != domain.OrderPending {
		return nil
	}
	was, is := m.order(before, o), m.orders.get(after.Order[o])
	if was == nil || was.Delivery != is.Delivery || was.PlanningDepotID == "" {
		return m.foundAnew(after, o, known)
	}
	if is.PlanningDepotID != was.PlanningDepotID || !slices.Equal(is.HandedOverBy, was.HandedOverBy) {
		return violated("AREA", "order %s moves from %q to %q, and is wanted where it was", is.ID, was.PlanningDepotID, is.PlanningDepotID)
	}
	return nil
}

// foundAnew checks that the nearest of some depots plans an order, as if none had before.
func (m *model) foundAnew(after *state, o int, known uint8) *Violation {
	after.Had[o] = 0
	order := m.orders.get(after.Order[o])
	apart := func(d domain.Depot) float64 { // on one meridian
		return max(d.Position.Lat-order.Delivery.Lat, order.Delivery.Lat-d.Position.Lat)
	}
	for _, d := range existing(known) {
		mine := depotNumber(order.PlanningDepotID)
		if mine < 0 || apart(d) < apart(depots[mine]) || len(order.HandedOverBy) > 0 {
			return violated("AREA", "order %s is planned by %q, handed over by %v, and %s is nearer", order.ID, order.PlanningDepotID, order.HandedOverBy, d.ID)
		}
	}
	return nil
}

// servable reports whether one of the drones can still be given an order: its area plans
// the order, or may get it.
func (m *model) servable(s *state, o *domain.Order, drones []int) bool {
	return slices.ContainsFunc(drones, func(d int) bool {
		a := m.areaOf(s, d)
		switch {
		case a < 0 || !o.Allows(droneID(d)):
			return false
		case m.reader(s, a, o):
			return true
		}
		return mayGoTo(o, m.drones.get(s.Drone[d]).HomeDepotID)
	})
}

// mayGoTo reports whether an order may be handed over to a depot.
func mayGoTo(o *domain.Order, depot domain.DepotID) bool {
	return len(o.HandedOverBy) < domain.MaxHandOvers && !slices.Contains(o.HandedOverBy, depot)
}

// offeredTo are the drones that are offered and that an order allows.
func (m *model) offeredTo(s *state, o *domain.Order) (drones []int) {
	for d := range s.Drone {
		if m.offered(s, d) && o.Allows(droneID(d)) {
			drones = append(drones, d)
		}
	}
	return drones
}

// passOnAll hands each order over that no drone of its area can be given now, and one of
// another can.
func (e *fairEnding) passOnAll() {
	for o := range e.Order {
		if e.broken != nil || !e.several() || e.Order[o] == 0 {
			continue
		}
		order := e.orders.get(e.Order[o])
		drones := e.offeredTo(&e.state, order)
		if !order.Waits() || e.areaWith(&e.state, order.PlanningDepotID) < 0 || slices.ContainsFunc(drones, func(d int) bool { return e.reader(&e.state, e.areaOf(&e.state, d), order) }) {
			continue
		}
		for _, d := range drones {
			if home := e.drones.get(e.Drone[d]).HomeDepotID; mayGoTo(order, home) {
				e.take(action{Do: doHandOver, A: uint8(o), B: uint8(depotNumber(home))})
				e.drain()
				break
			}
		}
	}
}

// planners are the depots to which a State Manager that knows some gives orders. In a world
// with one area it does not matter.
func (m *model) planners(known uint8) []domain.Depot {
	if !m.several() {
		return nil
	}
	return existing(known)
}

// ofAreas lists what can happen to depots, and to orders that wait.
func (m *model) ofAreas(s *state, list []action) []action {
	list = m.takings(s, list)
	for o, n := range s.Order {
		if m.adoptable(s, o) {
			list = append(list, action{Do: doAdopt, A: uint8(o)})
		}
		if n != 0 && s.Left.Hold > 0 && m.orders.get(n).Waits() {
			list = append(list, action{Do: doHold, A: uint8(o)})
		}
	}
	if s.Left.Delete > 0 && bits.OnesCount8(s.Depots) > 1 {
		for _, d := range existing(s.Depots) {
			list = append(list, action{Do: doDelete, A: uint8(depotNumber(d.ID))})
		}
	}
	if s.Left.Add > 0 {
		for _, d := range existing(m.world.everyDepot() &^ s.Depots) {
			list = append(list, action{Do: doAdd, A: uint8(depotNumber(d.ID))})
		}
	}
	return list
}
