package explore

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// action is one step: a verb and its operands.
type action struct {
	Do      verb
	A, B, C uint8
}

type verb uint8

const (
	doTick     verb = iota + 1
	doReport        // A drone, B manner
	doDeliver       // A index on the bus, B fate
	doCommit        // A manager
	doPlan          // A drone, B orders, C its fence: see fenceBy
	doAmend         // A drone, B orders of its mission from now on
	doStandby       // A drone
	doHandOver      // A order, B depot, C its fence: see fenceBy
	doTake          // A member, B depot: it takes the lock of the depot's area
	doForge         // A forgery, B drone, C order
	doPass          // A forgery, B order, C depot
	doRequest       // the next of the script
	doPublish       // A mission
	doSweep         // A drone
	doAdopt         // A order: the sweeper finds its depot
	doHold          // A order
	doRelease       // A order
	doDelete        // A depot
	doAdd           // A depot
	doMove          // the warehouse
	doClear         // A drone
	doGround        // A drone
	doUnground      // A drone
	doRegister      // A drone
	doRetire        // A drone
	doRecall        // A mission
	doPin           // A order, B drone, C 1 to forbid it
	doFail          // A drone, B the flag that it gets
	doCorrect       // A drone: its clock
	doForget        // A mission: that its decision was rejected; only in a fair end, to plan on
)

// manner is how a drone reports.
type manner uint8

const (
	fly         manner = iota // to its next stop, and reports from there
	goOn                      // flies and is nowhere near a stop
	idle                      // waits on its pad
	land                      // has served its last stop and is home
	abandon                   // gives its mission up
	hover                     // says IDLE on its mission
	pass                      // flies by the hospital before the pickup
	leap                      // waits on its pad, with a clock far ahead
	low                       // waits on its pad with 15 % battery
	charge                    // charges
	problem                   // says PROBLEM
	emergency                 // says EMERGENCY
	maintenance               // says MAINTENANCE
	roam                      // flies about without a mission
	await                     // waits where its mission says, for the time to come
	overcount                 // claims more stops than its route has
	boast                     // claims every stop of its route, from where it is
	stray                     // the same, from where it is not
)

// fate is the outcome of a delivery.
type fate uint8

const (
	settled  fate = iota // handled and acked
	again                // handled, but the manager died before the ack, or it was a duplicate
	half                 // as again, but its proof about a past mission is not processed yet
	unsent               // handled and acked, but the manager died before it published the command
	lost                 // on the way
	begun                // its transaction has read, and others go on
	begunTwo             // as begun, and the message is delivered elsewhere, too
	outdated             // handled and acked by a manager that still knows a depot which is gone
)

type forgery uint8

const (
	honest         forgery = iota
	blind                  // a drone and an order, whatever they do
	ghostOrder             // an order that does not exist
	ghostDrone             // a drone that does not exist
	wrongRoute             // a delivery before its pickup
	heavy                  // two parcels where one fits
	farAway                // lands on an empty battery
	conflict               // another decision under the id of the first
	fromFuture             // its snapshot is dated ahead, and is old
	unknownFence           // one that the lock never handed out
	plannedEarlier         // published with an old snapshot
	unfenced               // made outside any cycle
	stranger               // an order that another area plans
	usurper                // the same, in the name of a depot that does not plan it
	elsewhere              // delivers where nobody ordered
	oldPickup              // picks up where the parcel is not
)

const (
	payloadKg = 5
	usualCost = 30 // percent of a charge
	product   = "BLOOD"

	forgedFence = 200 // far above what the lock hands out
)

// enabled appends the steps that are possible in a state.
func (m *model) enabled(s *state, list []action) []action {
	for i, n := range s.Bus {
		if n == 0 {
			break
		}
		if i > 0 && s.Bus[i-1] == n {
			continue // its twin
		}
		list = m.fates(s, uint8(i), n, list)
	}
	for i, t := range s.Open {
		if t.Message != 0 {
			list = append(list, action{Do: doCommit, A: uint8(i)})
		}
	}
	for d := range s.Flight {
		list = m.drone(s, uint8(d), list)
	}
	list = m.planning(s, list)
	if int(s.Script) < len(m.world.Script) && !m.full(s) {
		list = append(list, action{Do: doRequest})
	}
	for k, n := range s.Mission {
		if n != 0 && m.missions.get(n).Owing() && !m.full(s) {
			list = append(list, action{Do: doPublish, A: uint8(k)})
		}
	}
	for d := range s.Drone {
		if s.Drone[d] != 0 && m.sweepable(s, d, s.Now) != nil {
			list = append(list, action{Do: doSweep, A: uint8(d)})
		}
	}
	list = m.ofAreas(s, list)
	if s.Left.Release > 0 {
		for o, n := range s.Order {
			if n != 0 && m.orders.get(n).Status == domain.OrderPending && m.orders.get(n).Held {
				list = append(list, action{Do: doRelease, A: uint8(o)})
			}
		}
	}
	if s.Left.Recall > 0 {
		for k, n := range s.Mission {
			if n != 0 && m.missions.get(n).Status == domain.MissionActive {
				list = append(list, action{Do: doRecall, A: uint8(k)})
			}
		}
	}
	if s.Left.Move > 0 && !m.full(s) {
		list = append(list, action{Do: doMove})
	}
	if s.Left.Pin > 0 {
		for o, n := range s.Order {
			for d := range s.Drone {
				if n != 0 && s.Drone[d] != 0 {
					list = append(list, action{Do: doPin, A: uint8(o), B: uint8(d)}, action{Do: doPin, A: uint8(o), B: uint8(d), C: 1})
				}
			}
		}
	}
	for d, n := range s.Drone {
		switch {
		case n == 0:
		case m.drones.get(n).Grounded:
			list = append(list, action{Do: doUnground, A: uint8(d)})
		case s.Left.Ground > 0:
			list = append(list, action{Do: doGround, A: uint8(d)})
		}
	}
	for d, n := range s.Drone {
		if s.Left.Register > 0 && !m.inService(s, d) {
			list = append(list, action{Do: doRegister, A: uint8(d)})
		}
		if s.Left.Retire > 0 && n != 0 && !m.drones.get(n).Retired() {
			list = append(list, action{Do: doRetire, A: uint8(d)})
		}
	}
	if s.ticks() < m.world.Ticks {
		list = append(list, action{Do: doTick})
	}
	return list
}

func (m *model) fates(s *state, at uint8, n id, list []action) []action {
	add := func(f fate) { list = append(list, action{Do: doDeliver, A: at, B: uint8(f)}) }
	add(settled)
	msg := m.messages.get(n)
	if s.Left.Again > 0 {
		add(again)
		if msg.Kind == kindReport && msg.Report.MissionID != "" {
			add(half)
		}
	}
	if m.several() && msg.Kind == kindRequest && s.Depots != m.world.depots() {
		add(outdated)
	}
	if s.Left.Lose > 0 && (msg.Kind == kindReport || msg.Kind == kindCommand) {
		add(lost)
	}
	if msg.Kind == kindCommand {
		return list
	}
	if s.Left.Unsent > 0 && msg.Kind == kindDecision {
		add(unsent)
	}
	if s.Left.Slow > 0 && s.Open[maxManagers-1].Message == 0 {
		add(begun)
		if s.Left.Again > 0 && !m.full(s) {
			add(begunTwo)
		}
	}
	return list
}

// drone lists what a drone can do.
func (m *model) drone(s *state, d uint8, list []action) []action {
	f := s.Flight[d]
	if f.Flags&dead != 0 || s.Drone[d] == 0 && !m.world.Strangers {
		return list
	}
	if f.Flags&ahead != 0 {
		list = append(list, action{Do: doCorrect, A: d})
	}
	if s.Left.Fault > 0 && m.world.Breaks {
		list = append(list, action{Do: doFail, A: d, B: dead})
		if f.Mission != 0 && f.Flags&circling == 0 {
			list = append(list, action{Do: doFail, A: d, B: circling})
		}
	}
	if f.Flags&reported != 0 || m.full(s) || m.world.Quiet {
		return list
	}
	for _, how := range m.manners(s, d) {
		list = append(list, action{Do: doReport, A: d, B: uint8(how)})
	}
	return list
}

func (m *model) manners(s *state, d uint8) (list []manner) {
	f := s.Flight[d]
	flies := f.Mission != 0
	switch {
	case flies && f.Flags&circling != 0:
		list = append(list, goOn)
	case flies && m.waits(s, d):
		list = append(list, await)
	case flies && m.nextStop(s, d) > 0:
		list = append(list, fly)
	case flies:
		list = append(list, land)
	case !m.chatters(s, d):
		list = append(list, idle)
	}
	if flies && m.world.Linger && f.Flags&circling == 0 {
		list = append(list, goOn)
	}
	if flies && s.Left.Abort > 0 {
		list = append(list, abandon)
	}
	if s.Left.Odd > 0 {
		for _, how := range m.world.Odd {
			switch {
			case flies && (how == hover || how == overcount || how == boast || how == stray), !flies && (how == leap || how == low || how == charge || how == roam):
				list = append(list, how)
			case flies && how == pass && s.Passed[f.Mission-1] == 1:
				list = append(list, how)
			}
		}
	}
	if s.Left.Fault > 0 {
		list = append(list, m.world.Faults...)
	}
	return list
}

// chatters reports whether a report of a waiting drone is under way: one at a time is
// enough.
func (m *model) chatters(s *state, d uint8) bool {
	for _, n := range s.Bus {
		if n == 0 {
			break
		}
		if msg := m.messages.get(n); msg.Kind == kindReport && msg.Drone == int(d) && msg.Report.Status == domain.DroneIdle && msg.Report.MissionID == "" {
			return true
		}
	}
	return false
}

// full reports whether the maximum number of messages is under way.
func (m *model) full(s *state) bool { return s.Bus[m.world.Messages-1] != 0 }

// expire removes the commands that every drone would ignore, whatever its clock.
func (m *model) expire(s *state) {
	for i := 0; i < maxMessages && s.Bus[i] != 0; {
		msg := m.messages.get(s.Bus[i])
		if msg.Kind == kindCommand && !msg.Revoke && s.Now.time().After(msg.Expires) {
			s.remove(i)
			continue
		}
		i++
	}
}

// nextStop is the index of the next order stop of a drone's route or, without orders, of the
// next stop at which it waits; 0 if none is left.
func (m *model) nextStop(s *state, d uint8) uint8 {
	f := s.Flight[d]
	c := m.course(s, int(f.Mission-1))
	for i := s.Passed[f.Mission-1]; int(i) < c.stops; i++ {
		if o := c.order[i]; o >= 0 && f.Dropped&(1<<o) == 0 || c.serves|f.Dropped == 0 && c.duty&(1<<i) != 0 {
			return i
		}
	}
	return 0
}

// planning lists the decisions that optimizers can make from a snapshot taken now.
func (m *model) planning(s *state, list []action) []action {
	if m.full(s) {
		return list
	}
	if s.Left.HandOver > 0 {
		list = m.handOvers(s, list)
	}
	if s.Left.Forge > 0 {
		list = m.forgedHandOvers(s, list)
	}
	if s.nextPlan() < 0 {
		return list
	}
	if s.Left.Cycle > 0 {
		for d := range s.Drone {
			if !m.offered(s, d) {
				continue
			}
			waiting := m.waiting(s, d)
			for set := waiting; set != 0; set = (set - 1) & waiting {
				if bits.OnesCount8(set) > m.world.Parcels {
					continue
				}
				for _, by := range m.cyclesOf(s, m.areaOf(s, d)) {
					list = append(list, action{Do: doPlan, A: uint8(d), B: set, C: by})
				}
			}
		}
	}
	if s.Left.Amend > 0 {
		for d := range s.Drone {
			list = m.amendments(s, d, list)
		}
	}
	if s.Left.Standby > 0 {
		for d := range s.Drone {
			if m.offered(s, d) {
				list = append(list, action{Do: doStandby, A: uint8(d)})
			}
		}
	}
	if s.Left.Forge == 0 {
		return list
	}
	for _, f := range m.world.Forge {
		for d := range s.Drone {
			for o := range s.Order {
				if s.Drone[d] == 0 || s.Order[o] == 0 || f == conflict && s.Plan[0] == 0 {
					continue
				}
				if f == unknownFence && s.Fence[0] == forgedFence {
					continue // see "What is not checked" in doc.go
				}
				list = append(list, action{Do: doForge, A: uint8(f), B: uint8(d), C: uint8(o)})
			}
		}
	}
	return list
}

// waiting returns the orders that a snapshot of a drone's area shows and that are allowed on
// it.
func (m *model) waiting(s *state, d int) (set uint8) {
	area := m.areaOf(s, d)
	if area < 0 {
		return 0
	}
	for o, n := range s.Order {
		if n != 0 {
			if order := m.orders.get(n); order.Waits() && order.Allows(droneID(d)) && m.reader(s, area, order) {
				set |= 1 << o
			}
		}
	}
	return set
}

// freeSince is when a drone became idle or turned home, whichever came last.
func freeSince(d *domain.Drone) time.Time {
	if d.HomeboundSince.After(d.IdleSince) {
		return d.HomeboundSince
	}
	return d.IdleSince
}

// offered reports whether a snapshot shows a drone (F-OPT-02): an idle one, or one that has
// served its mission and flies home.
func (m *model) offered(s *state, d int) bool {
	if !m.inService(s, d) || m.areaOf(s, d) < 0 {
		return false
	}
	drone := m.drones.get(s.Drone[d])
	idle := drone.Status == domain.DroneIdle && !drone.Bound()
	homebound := drone.Homebound && drone.SupportsAmendments
	return (idle || homebound) && !drone.Grounded && drone.Battery > m.limits.Drone.MinBattery &&
		s.Now.time().Sub(drone.SeenAt) <= m.limits.Drone.MaxSilence
}

// inService reports whether somebody registered a drone and nobody has retired it.
func (m *model) inService(s *state, d int) bool {
	if s.Drone[d] == 0 {
		return false
	}
	drone := m.drones.get(s.Drone[d])
	return !drone.Unregistered && drone.RetiredAt.IsZero()
}

// sweepable returns what the sweeper would change about a drone; nil for nothing.
func (m *model) sweepable(s *state, d int, at moment) *answer {
	if a := m.sweep(s, d, at); !a.empty() || a.broken != nil {
		return a
	}
	if a := m.sweepIdle(s, d, at); !a.empty() || a.broken != nil {
		return a
	}
	return nil
}

// do takes a step.
func (m *model) do(s state, a action) (state, *Violation) {
	var v *Violation
	switch a.Do {
	case doTick:
		s.Now = (s.Now>>3 + 1) << 3
		for d := range s.Flight {
			s.Flight[d].Flags &^= reported
		}
		m.expire(&s)
	case doReport:
		m.report(&s, a.A, manner(a.B))
	case doDeliver:
		v = m.deliver(&s, int(a.A), fate(a.B))
	case doCommit:
		t := s.Open[a.A]
		s.Open[a.A] = transaction{}
		s.sortOpen()
		v = m.handle(&s, t.Message, t.At, settled)
	case doPlan:
		m.plan(&s, int(a.A), a.B, a.C)
	case doAmend:
		m.amend(&s, int(a.A), a.B)
	case doStandby:
		m.standBy(&s, int(a.A))
	case doHandOver:
		m.passOn(&s, int(a.A), int(a.B), a.C)
	case doTake:
		s.Left.Take--
		s.Issued[a.B]++
		s.Owner[a.A][a.B] = s.Issued[a.B]
	case doForge:
		m.forge(&s, forgery(a.A), int(a.B), int(a.C))
	case doPass:
		m.forgeHandOver(&s, forgery(a.A), int(a.B), int(a.C))
	case doRequest:
		m.ask(&s)
	case doPublish:
		m.publish(&s, int(a.A))
	case doSweep:
		v = m.commit(&s, m.sweepable(&s, int(a.A), s.Now), true)
	case doAdopt:
		before := s
		if v = m.commit(&s, m.adopt(&s, int(a.A), s.Now), true); v == nil {
			v = m.adopted(&before, &s, int(a.A))
		}
	case doHold:
		s.Left.Hold--
		v = m.commit(&s, m.hold(&s, int(a.A), false, s.Now), true)
	case doDelete:
		s.Left.Delete--
		s.Depots &^= 1 << a.A
	case doAdd:
		s.Left.Add--
		s.Depots |= 1 << a.A
	case doMove:
		s.Left.Move--
		s.insert(m.internMessage(message{Kind: kindMove}))
	case doRelease:
		s.Left.Release--
		v = m.commit(&s, m.hold(&s, int(a.A), true, s.Now), true)
	case doClear:
		s.Emergency &^= 1 << a.A
		v = m.commit(&s, m.clear(&s, int(a.A), s.Now), true)
	case doRecall:
		s.Left.Recall--
		v = m.commit(&s, m.recall(&s, int(a.A), s.Now), true)
	case doPin:
		s.Left.Pin--
		v = m.commit(&s, m.pin(&s, int(a.A), int(a.B), a.C == 1, s.Now), true)
	case doGround:
		s.Left.Ground--
		v = m.commit(&s, m.ground(&s, int(a.A), s.Now), true)
	case doRegister:
		s.Left.Register--
		v = m.commit(&s, m.register(&s, int(a.A), s.Now), true)
	case doRetire:
		s.Left.Retire--
		v = m.commit(&s, m.retire(&s, int(a.A), s.Now), true)
	case doUnground:
		v = m.commit(&s, m.unground(&s, int(a.A), s.Now), true)
	case doFail:
		s.Left.Fault--
		s.Flight[a.A].Flags |= a.B
	case doForget:
		s.Plan[a.A], s.Ledger[a.A] = 0, 0
	case doCorrect:
		s.Flight[a.A].Flags &^= ahead
	}
	if v == nil {
		v = m.check(&s)
	}
	return s, v
}

// sortOpen sorts open transactions, because State Managers are interchangeable.
func (s *state) sortOpen() {
	slices.SortFunc(s.Open[:], func(a, b transaction) int {
		switch {
		case a.Message == 0 || b.Message == 0:
			return int(b.Message) - int(a.Message)
		case a.Message != b.Message:
			return int(a.Message) - int(b.Message)
		}
		return int(a.At) - int(b.At)
	})
}

// report has a drone report.
func (m *model) report(s *state, d uint8, how manner) {
	f := &s.Flight[d]
	f.Flags |= reported
	t := domain.Telemetry{DroneID: droneID(int(d)), Timestamp: start.Add(time.Duration(s.ticks()) * tick), Position: depotAt, Battery: 90, Status: domain.DroneMoving}
	if f.Flags&ahead != 0 {
		t.Timestamp = t.Timestamp.Add(tick)
	}
	var proves uint8
	mission, lie := f.Mission, how == boast || how == stray
	switch how {
	case fly:
		i := m.nextStop(s, d)
		c := m.course(s, int(mission-1))
		s.Passed[mission-1], s.PassedAt[mission-1] = i+1, s.ticks()
		stop := m.flown(s, int(mission-1)).Route[i]
		t.Position = stop.Position
		if o := c.order[i]; o >= 0 && c.deliver[o] == i {
			t.Status = domain.DroneDelivering
		}
		proves = 1 << i
	case goOn, roam:
		t.Position = awayAt
	case await:
		t.Status, t.Position = domain.DroneIdle, waitAt
	case idle:
		t.Status = domain.DroneIdle
	case land, abandon:
		f.Ended |= 1 << (mission - 1)
		f.Mission, f.Dropped, f.Route, mission = 0, 0, 0, 0
		t.Status = domain.DroneIdle
		if how == abandon {
			s.Left.Abort--
		}
	case hover:
		t.Status, t.Position = domain.DroneIdle, awayAt
	case pass:
		c := m.course(s, int(mission-1))
		o := bits.TrailingZeros8(c.serves)
		t.Position = m.flown(s, int(mission-1)).Route[c.deliver[o]].Position
	case leap:
		t.Status, t.Timestamp = domain.DroneIdle, t.Timestamp.Add(50*tick)
	case low:
		t.Status, t.Battery = domain.DroneIdle, 15
	case charge:
		t.Status = domain.DroneCharging
	case problem:
		t.Status, t.Position = domain.DroneProblem, awayAt
	case emergency:
		t.Status, t.Position = domain.DroneEmergency, awayAt
	case maintenance:
		t.Status, t.Position = domain.DroneMaintenance, awayAt
	case overcount:
		t.Position = awayAt
	case boast:
		t.Position = m.flown(s, int(mission-1)).Route[s.Passed[mission-1]-1].Position
	case stray:
		t.Position = farAt
	}
	switch how {
	case hover, pass, leap, low, charge, roam, overcount, boast, stray:
		s.Left.Odd--
	case problem, emergency, maintenance:
		s.Left.Fault--
	case fly, goOn, idle, land, abandon, await:
	}
	if mission != 0 {
		t.MissionID = missionID(int(mission - 1))
		if m.world.Counts {
			count := 0
			c := m.course(s, int(mission-1))
			for i := range s.Passed[mission-1] {
				if o := c.order[i]; o < 0 || f.Dropped&(1<<o) == 0 {
					count++
				}
			}
			proves |= 1<<s.Passed[mission-1] - 1
			switch {
			case how == overcount:
				count, proves = c.stops+1, 0
			case lie:
				count, proves = c.stops, 0
			}
			t.CompletedStops = &count
		}
		if m.world.Amends {
			t.MissionRevision, t.SupportsAmendments = int(f.Route), true
		}
	}
	if m.world.Standby {
		t.SupportsAmendments, t.SupportsStandby = true, true
	}
	s.insert(m.internMessage(message{Kind: kindReport, Drone: int(d), Report: t, Proves: proves, Lie: lie}))
}

func (m *model) deliver(s *state, at int, f fate) *Violation {
	msg := m.messages.get(s.Bus[at])
	switch f {
	case lost:
		s.Left.Lose--
		s.remove(at)
		return nil
	case begun, begunTwo:
		s.Left.Slow--
		n := s.Bus[at]
		if f == begunTwo {
			s.Left.Again--
		} else {
			s.remove(at)
		}
		s.Open[maxManagers-1] = transaction{n, s.Now}
		s.sortOpen()
		return nil
	case settled, again, half, unsent, outdated:
	}
	n := s.Bus[at]
	switch f {
	case again, half:
		s.Left.Again--
	case unsent:
		s.Left.Unsent--
		s.remove(at)
	case settled, outdated:
		s.remove(at)
	case lost, begun, begunTwo:
	}
	if msg.Kind == kindCommand {
		m.obey(s, msg)
		return nil
	}
	return m.handle(s, n, s.Now, f)
}

// handle is a State Manager's work on a message, by a transaction dated at the given
// time.
func (m *model) handle(s *state, n id, at moment, f fate) *Violation {
	msg := m.messages.get(n)
	switch msg.Kind {
	case kindReport:
		return m.handleReport(s, n, at, f)
	case kindRequest:
		known, before, o := s.Depots, *s, number(msg.Request.ID)
		if f == outdated {
			known = m.world.depots()
		}
		a := m.request(s, n, at, known)
		if v := m.commit(s, a, true); v != nil {
			return v
		}
		if v := m.ingested(&before, s, o, known); v != nil {
			return v
		}
		return m.asked(s, n, a)
	case kindDecision:
		return m.handleDecision(s, n, at, f)
	case kindHandOver:
		return m.handleHandOver(s, n, at)
	case kindMove:
		return m.commit(s, m.move(s, n, at), true)
	case kindCommand:
	}
	return nil
}

func (m *model) handleReport(s *state, n id, at moment, f fate) *Violation {
	msg := m.messages.get(n)
	past := msg.Report.MissionID != "" && (s.Drone[msg.Drone] == 0 || m.drones.get(s.Drone[msg.Drone]).CurrentMissionID != msg.Report.MissionID)
	a := m.telemetry(s, n, at)
	refused := a.refused != "" && a.refused != policy.ReasonStaleTelemetry
	if !refused {
		m.listen(s, n)
	}
	if v := m.commit(s, a, true); v != nil {
		return v
	}
	if refused {
		return m.heard(s, n, true)
	}
	for past && f != half {
		late, done := m.prove(s, n, at)
		if done {
			break
		}
		if v := m.commit(s, late, true); v != nil {
			return v
		}
	}
	if past && f == half {
		return nil
	}
	return m.heard(s, n, false)
}

func (m *model) handleDecision(s *state, n id, at moment, f fate) *Violation {
	msg := m.messages.get(n)
	a := m.decision(s, n, at)
	before := *s
	if v := m.commit(s, a, f != unsent); v != nil {
		return v
	}
	if a.entry != 0 {
		s.Ledger[msg.Mission] = a.entry
	}
	if s.Ledger[msg.Mission] == 0 {
		return violated("I9", "%s was acked and has no outcome", msg)
	}
	if a.replayed && m.entries.get(s.Ledger[msg.Mission]).PayloadHash != msg.Decision.PayloadHash {
		return violated("I6", "%s was given the outcome of another decision", msg)
	}
	if a.applied {
		s.Plan[msg.Mission] = n // of two with the same id, the first to commit
		m.stood(&before, s, msg.Decision, msg.Mission)
		if msg.Decision.Amends() {
			return m.amended(&before, s, msg, at)
		}
		return m.applied(&before, s, msg, at)
	}
	if msg.Decision.Amends() && !a.replayed {
		return m.gaveWay(&before, msg, at, m.entries.get(s.Ledger[msg.Mission]).Reason)
	}
	return nil
}

// obey has a drone do what a command says, as fleetsim's drones do.
func (m *model) obey(s *state, msg *message) {
	f := &s.Flight[msg.Drone]
	k := uint8(msg.Mission)
	clock := s.Now.time()
	if f.Flags&ahead != 0 {
		clock = clock.Add(tick)
	}
	switch {
	case f.Flags&dead != 0:
	case msg.Revoke:
		f.Ended |= 1 << k
		if f.Mission == k+1 {
			f.Mission, f.Dropped, f.Route = 0, 0, 0
			f.Flags &^= circling
		}
	case clock.After(msg.Expires) || f.Ended&(1<<k) != 0:
	case f.Mission == k+1 && msg.Route != int(f.Route):
		if msg.Route > int(f.Route) && m.canFly(s, k, msg.Course) {
			f.Route, f.Dropped = uint8(msg.Route), msg.Dropped
			m.turn(s, k, msg.Course)
		}
	case f.Mission == k+1:
		if msg.Dropped&f.Dropped == f.Dropped { // it is not older than the one obeyed last
			f.Dropped = msg.Dropped
		}
	case !msg.Active:
	case f.Mission != 0 && !m.startOf(s, k).After(m.startOf(s, f.Mission-1)):
	default:
		if f.Mission != 0 {
			f.Ended |= 1 << (f.Mission - 1)
		}
		f.Mission, f.Dropped, f.Route = k+1, msg.Dropped, uint8(msg.Route)
		s.Course[k] = uint8(msg.Course) + 1
		s.Passed[k] = 1 // it has left the depot
	}
}

func (m *model) startOf(s *state, k uint8) time.Time { return m.missions.get(s.Mission[k]).StartTime }

// plan takes a snapshot and publishes a decision.
func (m *model) plan(s *state, d int, set, by uint8) {
	s.Left.Cycle--
	fence := s.fenceBy(m.areaOf(s, d), by)
	m.decide(s, d, set, honest, func(msg *message) { msg.Decision.Fence = fenceText(fence) })
}

// decide publishes a decision for a drone and orders from the store's current state, after
// applying change to it.
func (m *model) decide(s *state, d int, set uint8, f forgery, change func(*message)) {
	k, a := s.nextPlan(), m.areaOf(s, d)
	msg := message{Kind: kindDecision, Published: s.Now.time(), Mission: k, Forged: f}
	if s.Drone[d] != 0 {
		msg.FreeSince = freeSince(m.drones.get(s.Drone[d]))
	}
	var orders []*domain.Order
	var ids []domain.OrderID
	for o := range s.Order {
		if set&(1<<o) == 0 {
			continue
		}
		order := m.order(s, o)
		if order == nil {
			order = &domain.Order{ID: orderID(o)}
			order.Pickup, order.Delivery = m.world.pickupOf(o), hospitalAt(o, 0)
		}
		msg.Waiting[o] = order.PendingSince
		orders, ids = append(orders, order), append(ids, order.ID)
	}
	msg.Decision = domain.Decision{
		ID: decisionID(k), CycleID: "C", DepotID: depots[a].ID, Fence: fenceText(s.Issued[a]), SnapshotTime: s.Now.time(), DroneID: droneID(d), OrderIDs: ids,
		Route: s.routeFor(orders), EstimatedBatteryConsumption: usualCost, EstimatedDurationMinutes: (4 * tick).Minutes(),
		PayloadHash: fmt.Sprintf("%d %d", d, set),
	}
	change(&msg)
	n := m.internMessage(msg)
	if f != conflict {
		s.Plan[k] = n
	}
	s.insert(n)
	s.pastSnapshot()
}

func (m *model) forge(s *state, f forgery, d, o int) {
	s.Left.Forge--
	set := uint8(1 << o)
	switch f {
	case ghostOrder:
		set = 1 << (maxOrders - 1)
	case heavy:
		set = 3
	case honest, blind, ghostDrone, wrongRoute, farAway, conflict, fromFuture, unknownFence, plannedEarlier, unfenced, stranger, usurper, elsewhere, oldPickup:
	}
	m.decide(s, d, set, f, func(msg *message) {
		x := &msg.Decision
		switch f {
		case ghostDrone:
			x.DroneID = "D9"
		case wrongRoute:
			x.Route[1], x.Route[2] = x.Route[2], x.Route[1]
		case farAway:
			x.EstimatedBatteryConsumption = 75
		case conflict:
			msg.Mission, x.ID, x.PayloadHash = 0, decisionID(0), "another"
		case fromFuture, plannedEarlier:
			// What it shows is old; fromFuture hides that.
			x.SnapshotTime = x.SnapshotTime.Add(-10 * tick)
			if f == fromFuture {
				msg.Published, x.SnapshotTime = x.SnapshotTime, msg.Published.Add(10*tick)
			}
		case unknownFence:
			x.Fence = fenceText(forgedFence)
		case unfenced:
			x.Fence = ""
		case elsewhere:
			x.Route[2].Position = awayAt
		case oldPickup:
			x.Route[1].Position = awayAt
		case honest, blind, ghostOrder, heavy, stranger, usurper:
		}
	})
}

// ask publishes the next request of the script.
func (m *model) ask(s *state) {
	r := m.world.Script[s.Script]
	s.Script++
	req := domain.OrderRequest{ID: orderID(r.Order), Cancel: r.Cancel}
	if !r.Cancel {
		req.OrderContent = domain.OrderContent{Priority: domain.PriorityStandard, ProductType: product, WeightKg: m.parcelKg(), Pickup: m.world.pickupOf(r.Order), Delivery: hospitalAt(r.Order, r.Version)}
		req.Deadline = deadline
	}
	published := s.Now.time().Add(time.Duration(s.Script) * time.Microsecond)
	s.insert(m.internMessage(message{Kind: kindRequest, Request: req, Published: published}))
}

// deadline of every order: it passes while a history comes to its fair end.
var deadline = start.Add(12 * tick)
