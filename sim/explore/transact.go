package explore

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// model runs the policies on states. It caches each answer: policies are pure, so the
// same documents, message and time have the same answer.
type model struct {
	world  World
	rules  Rules
	limits Limits
	areas  [1 << maxDepots][]domain.Area // by the set of depots that exist

	drones   *pool[domain.Drone]
	orders   *pool[domain.Order]
	missions *pool[domain.Mission]
	entries  *pool[domain.LedgerEntry]
	messages *pool[message]
	courses  []course // by message

	answers map[call]*answer
	owed    map[[2]id]owed  // by mission and plan
	ended   map[uint64]bool // states whose fair end was found good
}

func newModel(w World, r Rules) *model {
	m := &model{
		world: w, rules: r, limits: limitsOf(w),
		drones: newPool[domain.Drone](), orders: newPool[domain.Order](), missions: newPool[domain.Mission](),
		entries: newPool[domain.LedgerEntry](), messages: newPool[message](), courses: make([]course, 1),
		answers: map[call]*answer{}, owed: map[[2]id]owed{}, ended: map[uint64]bool{},
	}
	for set := range m.areas {
		m.areas[set] = r.Areas(existing(uint8(set)), w.Radius)
	}
	return m
}

// Violation is a violated invariant and what violates it.
type Violation struct {
	Invariant, Detail string
}

func (v *Violation) String() string { return v.Invariant + ": " + v.Detail }

func violated(invariant, format string, args ...any) *Violation {
	return &Violation{invariant, fmt.Sprintf(format, args...)}
}

// call is everything that a policy's answer depends on.
type call struct {
	what    operation
	message id
	subject int8 // drone or order, where there is no message
	at      moment
	drone   id
	mission id
	orders  [maxOrders]id
	written [maxOrders]moment
	other   [2]id // drone and mission that took an order over
	entry   id
	fence   uint8
	issued  uint8
	depots  uint8 // those known
	site    uint8
	marked  moment
	active  [maxMissions]id
}

type operation uint8

const (
	opTelemetry operation = iota + 1
	opProve
	opOrder
	opDecision
	opSweep
	opSweepIdle
	opSweepOrder
	opRelease
	opClear
	opGround
	opUnground
	opRegister
	opRetire
	opRecall
	opPin
	opForbid
	opHandOver
	opAdopt
	opHold
	opMove
)

// answer is what a transaction writes: the new documents, 0 for those that stay.
type answer struct {
	drone    [maxDrones]id
	order    [maxOrders]id
	mission  [maxMissions]id
	entry    id
	area     uint8 // that the fence is of
	fence    uint8
	applied  bool // a decision or a hand-over
	admitted bool // the fence of a hand-over
	moves    bool // the warehouse
	began    moment
	noted    bool // a refusal is on record
	replayed bool
	refused  policy.Reason
	broken   *Violation
}

func (a *answer) empty() bool {
	return a.drone == [maxDrones]id{} && a.order == [maxOrders]id{} && a.mission == [maxMissions]id{} && a.entry == 0 && a.fence == 0 && !a.moves && !a.noted
}

// binding reads a drone with its mission and that mission's orders.
func (m *model) binding(s *state, d int) policy.Binding {
	var b policy.Binding
	if s.Drone[d] == 0 {
		return b
	}
	b.Drone, b.Orders = *m.drones.get(s.Drone[d]), map[domain.OrderID]domain.Order{}
	k := number(b.Drone.CurrentMissionID)
	if k < 0 || s.Mission[k] == 0 {
		return b
	}
	mission := *m.missions.get(s.Mission[k])
	b.Mission = &mission
	for _, o := range mission.OrderIDs {
		if n := number(o); s.Order[n] != 0 {
			b.Orders[o] = *m.orders.get(s.Order[n])
		}
	}
	return b
}

// readBinding records in a call what binding reads.
func (m *model) readBinding(s *state, d int, c *call) {
	c.drone = s.Drone[d]
	if c.drone == 0 {
		return
	}
	k := number(m.drones.get(c.drone).CurrentMissionID)
	if k < 0 || s.Mission[k] == 0 {
		return
	}
	c.mission = s.Mission[k]
	for _, o := range m.missions.get(c.mission).OrderIDs {
		c.orders[number(o)] = s.Order[number(o)]
	}
}

// reads is the call that a message makes, without its time: what its transaction reads.
func (m *model) reads(s *state, n id) (c call) {
	msg := m.messages.get(n)
	c.message = n
	switch msg.Kind {
	case kindReport:
		c.what = opTelemetry
		m.readBinding(s, msg.Drone, &c)
	case kindRequest:
		c.what = opOrder
		o := number(msg.Request.ID)
		c.orders[o] = s.Order[o]
		if order := m.order(s, o); m.limits.Order.NeedsBinding(order, msg.Request) {
			m.readBinding(s, number(order.AssignedDroneID), &c)
			c.orders[o] = s.Order[o]
		}
	case kindDecision:
		c.what = opDecision
		c.entry, c.fence = s.Ledger[msg.Mission], s.Fence[depotNumber(msg.Decision.DepotID)]
		m.readWarehouse(s, msg.Decision, &c)
		if k := number(msg.Decision.AmendsMissionID); k >= 0 && s.Mission[k] != 0 {
			c.mission = s.Mission[k]
			for _, o := range m.missions.get(c.mission).OrderIDs {
				c.orders[number(o)] = s.Order[number(o)]
			}
		}
		if d := number(msg.Decision.DroneID); d < maxDrones {
			c.drone = s.Drone[d]
		}
		for _, o := range msg.Decision.OrderIDs {
			c.orders[number(o)], c.written[number(o)] = s.Order[number(o)], s.Written[number(o)]
		}
	case kindHandOver:
		one := msg.HandOver.List[0]
		o := number(one.OrderID)
		c.what, c.orders[o], c.fence = opHandOver, s.Order[o], s.Fence[depotNumber(msg.HandOver.DepotID)]
		c.depots = s.Depots
	case kindMove:
		m.readMove(s, &c)
	case kindCommand:
	}
	return c
}

func (m *model) order(s *state, n int) *domain.Order {
	if s.Order[n] == 0 {
		return nil
	}
	o := *m.orders.get(s.Order[n])
	return &o
}

// answerTo returns the cached answer to a call, or computes it.
func (m *model) answerTo(s *state, c call, decide func(now time.Time) *answer) *answer {
	if known, ok := m.answers[c]; ok {
		return known
	}
	a := decide(c.at.time())
	m.answers[c] = a
	return a
}

func (m *model) telemetry(s *state, n id, at moment) *answer {
	c := m.reads(s, n)
	c.at = at
	return m.answerTo(s, c, func(now time.Time) *answer {
		msg := m.messages.get(n)
		b := m.binding(s, msg.Drone)
		after, change, err := m.rules.Telemetry(b, msg.Report, now)
		a := m.record(s, change, err)
		if err == nil && a.broken == nil {
			// F-TEL-02: a redelivered report changes nothing.
			if _, again, err := m.rules.Telemetry(after, msg.Report, now); err == nil && !again.Empty() {
				a.broken = violated("I9", "the %s counts again when it is delivered again", msg)
			}
		}
		if was, is := b.Drone.LastUpdate, after.Drone.LastUpdate; a.broken == nil && !is.Equal(was) && (is.Before(was) || !is.Equal(msg.Report.Timestamp)) {
			a.broken = violated("I4", "lastUpdate of %s goes from %s to %s by the %s", msg.Report.DroneID, since(was), since(is), msg)
		}
		return a
	})
}

// prove applies what a report proves about a mission that has ended. done is true if there
// is nothing to prove.
func (m *model) prove(s *state, n id, at moment) (a *answer, done bool) {
	msg := m.messages.get(n)
	k := number(msg.Report.MissionID)
	if k < 0 || s.Mission[k] == 0 || m.missions.get(s.Mission[k]).Status == domain.MissionActive {
		return nil, true
	}
	c := call{what: opProve, message: n, at: at, mission: s.Mission[k]}
	e := policy.Ended{Mission: *m.missions.get(s.Mission[k]), Orders: map[domain.OrderID]domain.Order{}}
	for _, id := range e.Mission.EveryOrder() {
		o := number(id)
		c.orders[o] = s.Order[o]
		if order := m.order(s, o); order != nil {
			e.Orders[id] = *order
		}
	}
	if taker, taken := e.TakenOver(msg.Report); taken {
		other := m.binding(s, number(taker))
		e.Other = &other
		c.other[0] = s.Drone[number(taker)]
		if other.Mission != nil {
			c.other[1] = s.Mission[number(other.Mission.ID)]
			for o := range other.Orders { // they are read, too
				c.orders[number(o)] = s.Order[number(o)]
			}
		}
	}
	a = m.answerTo(s, c, func(now time.Time) *answer {
		change, err := m.rules.ProveLate(e, msg.Report, now)
		return m.record(s, change, err)
	})
	return a, a.refused != ""
}

// request applies a request in a State Manager that knows these depots.
func (m *model) request(s *state, n id, at moment, known uint8) *answer {
	c := m.reads(s, n)
	c.at, c.depots = at, known
	return m.answerTo(s, c, func(now time.Time) *answer {
		msg := m.messages.get(n)
		order := m.order(s, number(msg.Request.ID))
		var binding *policy.Binding
		if m.limits.Order.NeedsBinding(order, msg.Request) {
			b := m.binding(s, number(order.AssignedDroneID))
			binding = &b
		}
		change, err := m.rules.Ingest(m.planners(known), order, binding, msg.Request, msg.Published, now)
		a := m.record(s, change, err)
		if err == nil && a.broken == nil && len(change.Orders) == 1 {
			// F-ORD-02: a redelivery writes nothing.
			ordered := change.Orders[0]
			if again, err := m.rules.Ingest(m.planners(known), &ordered, nil, msg.Request, msg.Published, now); err == nil && len(again.Orders) > 0 {
				a.broken = violated("I9", "the %s counts again when it is delivered again", msg)
			}
		}
		return a
	})
}

func (m *model) decision(s *state, n id, at moment) *answer {
	c := m.reads(s, n)
	area := depotNumber(m.messages.get(n).Decision.DepotID)
	c.at, c.issued = at, s.Issued[area]
	return m.answerTo(s, c, func(now time.Time) *answer {
		msg := m.messages.get(n)
		d := msg.Decision
		in := policy.DecisionState{
			Depots: existing(m.world.everyDepot()),
			Fences: policy.Fences{}, Orders: map[domain.OrderID]domain.Order{}, OrdersWritten: map[domain.OrderID]time.Time{},
		}
		m.warehouses(c, &in)
		if s.Fence[area] > 0 {
			in.Fences[d.DepotID] = fenceText(s.Fence[area])
		}
		if c.entry != 0 {
			entry := *m.entries.get(c.entry)
			in.Ledger = &entry
		}
		if c.drone != 0 {
			drone := *m.drones.get(c.drone)
			in.Drone = &drone
		}
		orders := d.OrderIDs
		if c.mission != 0 {
			amended := *m.missions.get(c.mission)
			in.Mission, orders = &amended, append(slices.Clone(orders), amended.OrderIDs...)
		}
		for _, o := range orders {
			if order := m.order(s, number(o)); order != nil {
				in.Orders[o] = *order
				in.OrdersWritten[o] = c.written[number(o)].time()
			}
		}
		if in.NeedsIssued(d) {
			in.Issued = policy.Fences{d.DepotID: ""}
			if s.Issued[area] > 0 {
				in.Issued[d.DepotID] = fenceText(s.Issued[area])
			}
		}
		v, err := m.rules.Assign(in, d, policy.Delivery{MessageID: "message of " + string(d.ID), PublishedAt: msg.Published, ReceivedAt: now}, now)
		if err != nil || v.Replay {
			a := m.record(s, policy.Change{}, err)
			a.replayed = err == nil
			return a
		}
		if c.entry != 0 {
			return &answer{broken: violated("I6", "decision %s is %s %s, and was %s before", d.ID, v.Entry.Outcome, v.Entry.Reason, m.entries.get(c.entry).Outcome)}
		}
		a := m.recordDecision(s, v)
		if v.Fence != "" {
			a.area, a.fence = uint8(area), fenceNumber(v.Fence)
		}
		return a
	})
}

const depot domain.DepotID = "DEPOT"

func fenceText(n uint8) string { return fmt.Sprintf("%015d", n) }

func fenceNumber(fence string) uint8 {
	n, err := strconv.ParseUint(fence, 10, 8)
	if err != nil {
		panic(err) // the model's own fences are small
	}
	return uint8(n)
}

// sweep is the sweeper's transaction about one drone.
func (m *model) sweep(s *state, d int, at moment) *answer {
	c := call{what: opSweep, subject: int8(d), at: at}
	m.readBinding(s, d, &c)
	return m.answerTo(s, c, func(now time.Time) *answer {
		b := m.binding(s, d)
		return m.found(s, string(b.Drone.ID), m.rules.SweepBinding(b, now), m.rules.DroneDue(b.Drone, b.Mission), now)
	})
}

func (m *model) sweepIdle(s *state, d int, at moment) *answer {
	return m.answerTo(s, call{what: opSweepIdle, subject: int8(d), at: at, drone: s.Drone[d]}, func(now time.Time) *answer {
		drone := *m.drones.get(s.Drone[d])
		return m.found(s, string(drone.ID), m.rules.SweepIdle(drone, now), m.rules.DroneDue(drone, nil), now)
	})
}

func (m *model) sweepOrder(s *state, o int, at moment) *answer {
	c := call{what: opSweepOrder, subject: int8(o), at: at}
	c.orders[o] = s.Order[o]
	return m.answerTo(s, c, func(now time.Time) *answer {
		order := *m.order(s, o)
		return m.found(s, string(order.ID), m.rules.SweepOrder(order, now), m.rules.OrderDue(order), now)
	})
}

// found is what the sweeper does about a document that it finds because it is due.
func (m *model) found(s *state, id string, change policy.Change, due, now time.Time) *answer {
	if !change.Empty() && (due.IsZero() || due.After(now)) {
		return &answer{broken: violated("DUE", "the sweeper has something to do about %s, and finds it at %s", id, due)}
	}
	return m.record(s, change, nil)
}

// hold is an operator's transaction that holds an order, or releases it.
func (m *model) hold(s *state, o int, release bool, at moment) *answer {
	c, decide := call{what: opHold, subject: int8(o), at: at}, m.rules.Hold
	if release {
		c.what, decide = opRelease, m.rules.Release
	}
	c.orders[o] = s.Order[o]
	return m.answerTo(s, c, func(now time.Time) *answer {
		change, err := decide(m.order(s, o), orderID(o), "asked for", now)
		return m.record(s, change, err)
	})
}

// pin is an operator's transaction that pins an order to a drone, or forbids the drone.
func (m *model) pin(s *state, o, d int, forbid bool, at moment) *answer {
	c, decide := call{what: opPin, subject: int8(o), at: at, drone: s.Drone[d]}, m.rules.Pin
	if forbid {
		c.what, decide = opForbid, m.rules.Forbid
	}
	c.orders[o] = s.Order[o]
	return m.answerTo(s, c, func(now time.Time) *answer {
		change, err := decide(m.order(s, o), true, policy.Pin{Order: orderID(o), Drone: droneID(d), Why: "asked for"}, now)
		return m.record(s, change, err)
	})
}

func (m *model) recall(s *state, k int, at moment) *answer {
	mission := *m.missions.get(s.Mission[k])
	d := number(mission.DroneID)
	c := call{what: opRecall, subject: int8(k), at: at}
	m.readBinding(s, d, &c)
	return m.answerTo(s, c, func(now time.Time) *answer {
		change, err := m.rules.Recall(m.binding(s, d), &mission, mission.ID, "recalled", now)
		return m.record(s, change, err)
	})
}

func (m *model) clear(s *state, d int, at moment) *answer {
	return m.tellDrone(s, opClear, d, at, m.rules.Clear)
}

func (m *model) ground(s *state, d int, at moment) *answer {
	return m.tellDrone(s, opGround, d, at, m.rules.Ground)
}

func (m *model) unground(s *state, d int, at moment) *answer {
	return m.tellDrone(s, opUnground, d, at, m.rules.Unground)
}

func (m *model) register(s *state, d int, at moment) *answer {
	return m.answerTo(s, call{what: opRegister, subject: int8(d), at: at, drone: s.Drone[d]}, func(now time.Time) *answer {
		var known *domain.Drone
		if s.Drone[d] != 0 {
			drone := *m.drones.get(s.Drone[d])
			known = &drone
		}
		change, err := m.rules.Register(known, domain.DroneRegistration{
			ID: droneID(d), HomeDepotID: depots[m.world.Homes[d]].ID,
			Own: domain.DroneProperties{PayloadCapacityKg: payloadKg, ConsumptionPerKm: 1, MaxFlightTimeMinutes: 60},
		}, nil, "ann", "registered", now)
		return m.record(s, change, err)
	})
}

func (m *model) retire(s *state, d int, at moment) *answer {
	return m.tellDrone(s, opRetire, d, at, func(drone *domain.Drone, id domain.DroneID, why string, now time.Time) (policy.Change, error) {
		return m.rules.Retire(drone, id, nil, why, now)
	})
}

// tellDrone is an operator's transaction about one drone.
func (m *model) tellDrone(s *state, what operation, d int, at moment,
	decide func(*domain.Drone, domain.DroneID, string, time.Time) (policy.Change, error)) *answer {
	return m.answerTo(s, call{what: what, subject: int8(d), at: at, drone: s.Drone[d]}, func(now time.Time) *answer {
		drone := *m.drones.get(s.Drone[d])
		change, err := decide(&drone, drone.ID, "inspected", now)
		return m.record(s, change, err)
	})
}

// revision is the revision of every document in the model. A policy only adds one to it,
// so states need not distinguish revisions.
const revision = 2

// record turns a policy's answer into numbers, after checking that its events are legal
// (I2) and tell all of it (I8).
func (m *model) record(s *state, c policy.Change, err error) *answer {
	a := &answer{}
	if err != nil {
		var rejection *policy.Rejection
		if !errors.As(err, &rejection) {
			a.broken = violated("I9", "a policy failed: %v", err)
			return a
		}
		a.refused = rejection.Reason
	}
	if c.Empty() {
		return a
	}
	if a.broken = m.strangers(c); a.broken != nil {
		return a
	}
	h := m.history(s, c)
	if a.broken = firstOf(h, "I2"); a.broken == nil {
		a.broken = m.folds(s, c)
	}
	m.intern(c, a)
	return a
}

// recordDecision is record for a verdict: a decision has all of its effects or none (I7).
func (m *model) recordDecision(s *state, v policy.Verdict) *answer {
	if stranger := m.strangers(v.Change); stranger != nil {
		return &answer{broken: stranger}
	}
	h := m.history(s, v.Change)
	h.Ledger = []domain.LedgerEntry{v.Entry}
	a := &answer{applied: v.Entry.Outcome == domain.OutcomeApplied}
	rules := []string{"I2", "I6", "I7"}
	if v.Entry.AmendsMissionID != "" {
		rules = []string{"I2", "I7"} // the decision that made the mission is not in this history
	}
	if a.broken = firstOf(h, rules...); a.broken == nil {
		a.broken = m.folds(s, v.Change)
	}
	m.intern(v.Change, a)
	// The policy only copies these times.
	v.Entry.AppliedAt, v.Entry.ReceivedAt, v.Entry.PublishedAt = time.Time{}, time.Time{}, time.Time{}
	v.Entry.Detail = ""
	a.entry = m.entries.intern(v.Entry)
	return a
}

// strangers finds a drone that does not exist in the model.
func (m *model) strangers(c policy.Change) *Violation {
	if c.Drone != nil && number(c.Drone.ID) >= maxDrones {
		return violated("I2", "drone %s exists, of which nothing was heard", c.Drone.ID)
	}
	return nil
}

func (m *model) intern(c policy.Change, a *answer) {
	if c.Drone != nil {
		d := *c.Drone
		d.Revision = revision
		a.drone[number(d.ID)] = m.internDrone(d)
	}
	for _, o := range c.Orders {
		o.Revision = revision
		a.order[number(o.ID)] = m.orders.intern(o)
	}
	for _, x := range c.Missions {
		x.Revision = revision
		a.mission[number(x.ID)] = m.missions.intern(x)
	}
	for _, e := range c.Events {
		a.noted = a.noted || e.Revision == 0
	}
	for _, x := range c.Revoke { // the store adds this to the mission's document
		k := number(x)
		a.noted = true
		if a.mission[k] == 0 {
			a.mission[k] = revokeAgain
		}
	}
}

// revokeAgain represents the unchanged document with a revocation owed.
const revokeAgain = ^id(0)

// history converts a change to the invariant checker's input: each entity's state before,
// as an event, and the events of the change.
func (m *model) history(s *state, c policy.Change) invariant.History {
	h := invariant.History{Events: slices.Clone(c.Events), Orders: c.Orders, Missions: c.Missions}
	seen := map[string]bool{}
	for _, e := range c.Events {
		if key := string(e.Entity) + e.ID; !seen[key] {
			seen[key] = true
			if before, ok := m.before(s, e.Entity, e.ID); ok {
				h.Events = append(h.Events, before)
			}
		}
	}
	if c.Drone != nil {
		h.Drones = []domain.Drone{*c.Drone}
	}
	return h
}

// before is the event that would fold to an entity's document.
func (m *model) before(s *state, kind domain.EntityKind, name string) (domain.Event, bool) {
	e := domain.Event{Entity: kind, ID: name, Revision: revision}
	switch n := number(name); kind {
	case domain.EntityDrone:
		if s.Drone[n] == 0 {
			return e, false
		}
		d := m.drones.get(s.Drone[n])
		e.To, e.State = string(d.Status), domain.DroneState(*d)
	case domain.EntityOrder:
		if s.Order[n] == 0 {
			return e, false
		}
		o := m.orders.get(s.Order[n])
		e.To, e.State = string(o.Status), domain.OrderState(*o)
	case domain.EntityMission:
		if s.Mission[n] == 0 {
			return e, false
		}
		x := m.missions.get(s.Mission[n])
		e.To, e.State = string(x.Status), domain.MissionState(*x)
	}
	e.From = e.To
	return e, true
}

// firstOf is the first violation of one of the invariants in a history.
func firstOf(h invariant.History, invariants ...string) *Violation {
	for _, v := range invariant.Check(h).Violations {
		if slices.Contains(invariants, v.Invariant) {
			return violated(v.Invariant, "%s %s", v.Subject, v.Detail)
		}
	}
	return nil
}

// folds checks I8 for one change: the events of each entity begin at its document, have
// no gap, and end at its new document.
func (m *model) folds(s *state, c policy.Change) *Violation {
	last := map[string]domain.Event{}
	for _, e := range c.Events {
		if e.Revision == 0 {
			continue // a note
		}
		key := string(e.Entity) + e.ID
		was, ok := last[key]
		if !ok {
			was, _ = m.before(s, e.Entity, e.ID)
			if was.To == "" && was.State == nil {
				was.Revision = 0 // there is no document
			}
		}
		if e.From != was.To || e.Revision != was.Revision+1 {
			return violated("I8", "an event of %s %s leads from %q at revision %d, which is %q at %d", e.Entity, e.ID, e.From, e.Revision-1, was.To, was.Revision)
		}
		last[key] = e
	}
	agree := func(kind domain.EntityKind, name, status string, fields map[string]any) *Violation {
		e, ok := last[string(kind)+name]
		if !ok {
			e, _ = m.before(s, kind, name)
		}
		for key, value := range fields {
			if e.State[key] != value {
				return violated("I8", "%s %s has %s %v, its events tell %v", kind, name, key, value, e.State[key])
			}
		}
		if e.To != status {
			return violated("I8", "%s %s is %s, its events tell %s", kind, name, status, e.To)
		}
		return nil
	}
	if d := c.Drone; d != nil {
		if v := agree(domain.EntityDrone, string(d.ID), string(d.Status), domain.DroneState(*d)); v != nil {
			return v
		}
	}
	for _, o := range c.Orders {
		if v := agree(domain.EntityOrder, string(o.ID), string(o.Status), domain.OrderState(o)); v != nil {
			return v
		}
	}
	for _, x := range c.Missions {
		if v := agree(domain.EntityMission, string(x.ID), string(x.Status), domain.MissionState(x)); v != nil {
			return v
		}
	}
	return nil
}

// commit writes an answer. Transactions that have read what it changes end: they can only
// fail, and their messages are redelivered.
func (m *model) commit(s *state, a *answer, publish bool) *Violation {
	if a.broken != nil {
		return a.broken
	}
	if a.empty() {
		return nil
	}
	before := *s
	for i, n := range a.drone {
		if n != 0 {
			s.Drone[i] = n
		}
	}
	for i, n := range a.order {
		if n != 0 {
			s.Order[i], s.Written[i] = n, s.Now
		}
	}
	for i, n := range a.mission {
		switch {
		case n == revokeAgain:
			if s.Mission[i] != 0 {
				x := *m.missions.get(s.Mission[i])
				x.RevokePending = true
				s.Mission[i] = m.missions.intern(x)
			}
		case n != 0:
			s.Mission[i] = n
			m.closeMission(s, i)
		}
	}
	if a.fence != 0 {
		s.Fence[a.area] = a.fence
	}
	if a.moves {
		s.Site, s.Marked = 1, m.rules.Mark(a.began, s.Now)
	}
	if publish {
		for k := range s.Mission {
			if s.Mission[k] != before.Mission[k] {
				m.publish(s, k)
			}
		}
	}
	for i, t := range s.Open {
		if t.Message != 0 && m.reads(&before, t.Message) != m.reads(s, t.Message) {
			s.Open[i] = transaction{}
			s.insert(t.Message)
		}
	}
	return nil
}

// owed is the effect of publishing a command: the message, and the updated document.
type owed struct{ message, mission id }

// publish sends the command that a mission owes its drone, if the bus has room.
func (m *model) publish(s *state, k int) {
	n := s.Mission[k]
	if n == 0 || !m.missions.get(n).Owing() || m.full(s) {
		return
	}
	c := m.missions.get(n).Command()
	plan := m.commandedCourse(s, k, c.Mission.RouteRevision)
	key := [2]id{n, s.Plan[plan]}
	o, known := m.owed[key]
	if !known {
		x := *m.missions.get(n)
		msg := message{
			Kind: kindCommand, Drone: number(x.DroneID), Mission: k, Revoke: c.Revoke, Expires: c.ExpiresAt,
			Active: x.Status == domain.MissionActive, Route: c.Mission.RouteRevision, Course: plan,
		}
		course := m.courses[s.Plan[plan]]
		for _, i := range c.Mission.DroppedStops {
			if o := course.order[i]; o >= 0 {
				msg.Dropped |= 1 << o
			}
		}
		if c.Revoke {
			x.RevokePending, x.RevokePublishedAt = false, start
		} else {
			x.CommandPublishedAt = start
		}
		x.CommandPending = false
		o = owed{m.internMessage(msg), m.missions.intern(x)}
		m.owed[key] = o
	}
	s.Mission[k] = o.mission
	s.insert(o.message)
}

func (m *model) internMessage(msg message) id {
	n := m.messages.intern(msg)
	for len(m.courses) <= int(n) {
		m.courses = append(m.courses, course{})
	}
	if msg.Kind == kindDecision {
		m.courses[n] = courseOf(msg.Decision.Route)
	}
	return n
}
