package explore

import (
	"hash/maphash"

	"github.com/dronefleet/dronefleet/domain"
)

var seed = maphash.MakeSeed()

func (s *state) fingerprint() uint64 { return maphash.Comparable(seed, *s) }

// atRest reports whether nothing is under way, so that a history may end here.
func (s *state) atRest() bool { return s.Bus[0] == 0 && s.Open[0].Message == 0 }

// fairBudgets allow plans and hand-overs in a fair end, and nothing that goes wrong.
var fairBudgets = budgets{Cycle: 200, HandOver: 200}

// lastTick is the tick at which a fair end is judged.
const lastTick = 26

// fairEnd lets nothing more go wrong until every limit has passed, and checks that each
// order is then delivered, cancelled or visibly waiting (LIVE). It returns the steps
// taken if something is violated.
func (m *model) fairEnd(s state) (steps []action, _ *Violation) {
	s.Left = fairBudgets
	s.Script = uint8(len(m.world.Script))
	e := fairEnding{model: m, state: s}
	var passed []uint64
	for e.broken == nil && e.ticks() < lastTick {
		f := e.fingerprint()
		if m.ended[f] {
			break
		}
		passed = append(passed, f)
		e.round()
	}
	if e.broken == nil && e.ticks() == lastTick {
		e.broken = m.judge(&e.state)
	}
	if e.broken != nil {
		return e.steps, e.broken
	}
	for _, f := range passed {
		m.ended[f] = true
	}
	return nil, nil
}

type fairEnding struct {
	*model
	state
	steps  []action
	broken *Violation
}

func (e *fairEnding) take(a action) {
	if e.broken == nil {
		e.steps = append(e.steps, a)
		e.state, e.broken = e.do(e.state, a)
	}
}

// drain delivers whatever is under way.
func (e *fairEnding) drain() {
	for e.broken == nil && e.Bus[0] != 0 {
		e.take(action{Do: doDeliver})
	}
}

// round is one tick in which everybody does what they should.
func (e *fairEnding) round() {
	e.drain()
	for k, n := range e.Mission {
		if n != 0 && e.missions.get(n).Owing() {
			e.take(action{Do: doPublish, A: uint8(k)})
		}
	}
	e.drain()
	for d := range e.Flight {
		f := e.Flight[d]
		if f.Flags&ahead != 0 {
			e.take(action{Do: doCorrect, A: uint8(d)})
		}
		if e.Drone[d] != 0 && e.drones.get(e.Drone[d]).EmergencyLatched {
			e.take(action{Do: doClear, A: uint8(d)})
		}
		if e.Drone[d] != 0 && e.drones.get(e.Drone[d]).Grounded {
			e.take(action{Do: doUnground, A: uint8(d)})
		}
		if f.Flags&(dead|reported) == 0 && (e.Drone[d] != 0 || e.world.Strangers) {
			e.take(action{Do: doReport, A: uint8(d), B: uint8(e.manners(&e.state, uint8(d))[0])})
		}
		e.drain()
	}
	for d, n := range e.Drone {
		if n != 0 && e.broken == nil && e.sweepable(&e.state, d, e.Now) != nil {
			e.take(action{Do: doSweep, A: uint8(d)})
		}
	}
	for o, n := range e.Order {
		if n != 0 && e.broken == nil {
			e.broken = e.commit(&e.state, e.sweepOrder(&e.state, o, e.Now), true)
		}
	}
	for o := range e.Order {
		if e.broken == nil && e.adoptable(&e.state, o) {
			e.take(action{Do: doAdopt, A: uint8(o)})
		}
	}
	for k, n := range e.Ledger {
		if n != 0 && e.entries.get(n).Outcome == domain.OutcomeRejected {
			e.take(action{Do: doForget, A: uint8(k)})
		}
	}
	e.passOnAll()
	for d := range e.Drone {
		set := e.waiting(&e.state, d)
		if e.broken == nil && set != 0 && e.offered(&e.state, d) && e.nextPlan() >= 0 {
			e.take(action{Do: doPlan, A: uint8(d), B: set & -set})
			e.drain()
		}
	}
	e.take(action{Do: doTick})
}

// judge checks a state in which every limit has passed.
func (m *model) judge(s *state) *Violation {
	var healthy []int
	for d, n := range s.Drone {
		f := s.Flight[d]
		if n == 0 {
			continue
		}
		if f.Flags&(dead|circling) == 0 && m.inService(s, d) {
			healthy = append(healthy, d)
		}
		if m.drones.get(n).Status == domain.DroneIdle && f.Flags&dead != 0 {
			return violated("LIVE", "drone %s is silent for good and still offered", droneID(d))
		}
		if f.Mission != 0 && f.Flags&dead == 0 && m.missions.get(s.Mission[f.Mission-1]).Status == domain.MissionFailed {
			return violated("LIVE", "drone %s flies %s for ever, which failed", droneID(d), missionID(int(f.Mission-1)))
		}
	}
	for _, n := range s.Order {
		if n == 0 {
			continue
		}
		o := m.orders.get(n)
		open := o.Status != domain.OrderDelivered && o.Status != domain.OrderCancelled
		if open && !o.Late && s.Now.time().After(o.Deadline) {
			return violated("LIVE", "order %s is past its deadline and not late", o.ID)
		}
		switch {
		case !open, o.Status == domain.OrderPending && o.Held:
		case o.Status == domain.OrderPending && (!m.servable(s, o, healthy) || s.nextPlan() < 0):
		default:
			return violated("LIVE", "order %s is %s for ever, held %t", o.ID, o.Status, o.Held)
		}
	}
	return nil
}
