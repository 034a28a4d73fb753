package lockspec

// kind is what is asked of the store.
type kind int8

const (
	nothing kind = iota
	acquire
	extend
	release
)

func (k kind) String() string {
	return [...]string{"nothing", "acquire", "extension", "release"}[k]
}

// stage is how far a call has come.
type stage int8

const (
	asked    stage = iota // the request is on its way
	decided               // the caller has read the lock and its clock; the write is on its way
	answered              // the reply is on its way
)

// call is a request and what became of it. Fields that can no longer matter are zero, so
// that equal states are equal values.
type call struct {
	Kind   kind
	Stage  stage
	ID     int8
	TTL    int8
	Fence  int8 // of the lease, as its holder knows it
	SentAt int8

	Stale         bool // the store has changed since the read
	Local, Server int8 // what the clocks showed at the read
	DecidedAt     int8

	OK       bool
	Deadline int8
}

// phase is what a client is doing.
type phase int8

const (
	idle phase = iota
	acquiring
	unsure // the outcome of an acquisition is unknown
	holding
	releasing
)

// slot is one of a client's calls.
type slot int8

const (
	current slot = iota // the client awaits its answer
	late                // the client has given up on it, and the store may still get it
	cleanup             // a release in the background
	slots
)

// client is one process that wants the lock.
type client struct {
	Offset   int8 // of its wall clock; its monotonic clock shows true intervals
	Phase    phase
	ID       int8
	Fence    int8
	Deadline int8 // when the holder stops; true time
	Short    int8 // length of an extension whose outcome is unknown; 0: none
	Calls    [slots]call
	Writing  int8 // fence of a write to the resource before which the client is paused; 0: none
}

// budget is how often things may still happen.
type budget struct {
	Acquires, Extends, Crashes, Breaks, Failures, Jumps, Writes int8

	Slow int8 // calls that take time; any other is one step
}

const clients = 2

// state is everything at one moment.
type state struct {
	Now     int8
	Ahead   int8 // how far the server's clock was set ahead
	Store   Lock
	Replica Lock
	Clients [clients]client
	Highest int8 // fence that the resource has seen

	Granted  int8   // the highest fence granted so far
	Released uint16 // fences of leases whose release was OK
	Broken   uint16 // fences of leases that an operator broke
	Left     budget
}

// verb is a kind of step.
type verb int8

const (
	tick verb = iota
	ask
	again // the same acquisition, with its id
	abandon
	decide
	apply
	reply
	loseCall
	delayCall
	beginWrite
	endWrite
	crash
	breakLock
	replicate
	failOver
	restart
	jumpServer
	jumpClient
)

// action is a step.
type action struct {
	Do     verb
	Client int8
	Slot   slot
	Kind   kind
	TTL    int8
	Slow   bool
	By     int8 // of a clock
}

// model is a world and its rules.
type model struct {
	World
	rules Rules
	sound Rules
}

func newModel(w World) *model {
	r := Rules{Time: w.Time, Tolerance: int64(w.Tolerance), Broken: w.Broken}
	sound := r
	sound.Broken = None
	return &model{World: w, rules: r, sound: sound}
}

func (m *model) initial() state {
	s := state{Left: m.Budget}
	for i := range s.Clients {
		s.Clients[i].Offset = m.Offsets[i]
	}
	return s
}

// believes tells whether a client would start work: it holds a lease that is not over by
// its clock. A paused client does not look at its clock; see beginWrite.
func (m *model) believes(s *state, c *client) bool {
	if c.Phase != holding && !(c.Phase == releasing && m.Broken == WorksWhileReleasing) {
		return false
	}
	if m.Broken == WallClockDeadline {
		return s.Now+c.Offset < c.Deadline
	}
	return s.Now < c.Deadline
}

// enabled lists the steps that are possible.
func (m *model) enabled(s *state, list []action) []action {
	if s.Now < m.Until {
		list = append(list, action{Do: tick})
	}
	for i := range s.Clients {
		list = m.enabledFor(s, int8(i), list)
	}
	if s.Left.Breaks > 0 && s.Store.Holder != 0 {
		list = append(list, action{Do: breakLock})
	}
	if m.Broken == ReplicaLags && s.Left.Failures > 0 {
		if s.Replica != s.Store {
			list = append(list, action{Do: replicate}, action{Do: failOver})
		}
	}
	if m.Broken == RestartsEmpty && s.Left.Failures > 0 {
		list = append(list, action{Do: restart})
	}
	if m.Broken == ServerClockJumps && s.Left.Jumps > 0 {
		list = append(list, action{Do: jumpServer, By: m.Jump})
	}
	return list
}

func (m *model) enabledFor(s *state, i int8, list []action) []action {
	c := &s.Clients[i]
	add := func(a action) { a.Client = i; list = append(list, a) }
	call := func(a action) {
		add(a)
		if s.Left.Slow > 0 {
			a.Slow = true
			add(a)
		}
	}
	for at := range slots {
		switch k := c.Calls[at]; {
		case k.Kind == nothing, k.Stage == answered:
		case k.Stage == asked && m.Time != ServerTime:
			add(action{Do: decide, Slot: at, Kind: k.Kind})
		default:
			add(action{Do: apply, Slot: at, Kind: k.Kind})
		}
	}
	if c.Writing != 0 { // paused
		add(action{Do: endWrite})
		return list
	}
	if k := c.Calls[current]; k.Kind != nothing {
		if k.Stage == answered {
			add(action{Do: reply, Kind: k.Kind})
		}
		add(action{Do: loseCall, Kind: k.Kind})
		if m.writes(k) && c.Calls[late].Kind == nothing {
			add(action{Do: delayCall, Kind: k.Kind})
		}
	} else {
		switch c.Phase {
		case idle:
			if s.Left.Acquires > 0 {
				call(action{Do: ask, Kind: acquire, TTL: m.TTL})
			}
		case unsure:
			call(action{Do: again, Kind: acquire, TTL: m.TTL})
			if c.Calls[cleanup].Kind == nothing {
				add(action{Do: abandon})
			}
		case holding:
			if s.Left.Extends > 0 && m.believes(s, c) {
				for _, ttl := range m.Extensions {
					if c.Short == 0 || ttl <= c.Short || m.Broken == ExtendsAfterUnknown {
						call(action{Do: ask, Kind: extend, TTL: ttl})
					}
				}
			}
			call(action{Do: ask, Kind: release})
		case releasing:
			call(action{Do: ask, Kind: release})
		case acquiring:
		}
	}
	if s.Left.Writes > 0 && m.believes(s, c) {
		add(action{Do: beginWrite})
	}
	if s.Left.Crashes > 0 && c.Phase != idle {
		add(action{Do: crash})
	}
	if s.Left.Jumps > 0 && m.Broken != ServerClockJumps {
		add(action{Do: jumpClient, By: m.Jump})
		add(action{Do: jumpClient, By: -m.Jump})
	}
	return list
}

// do makes a step.
func (m *model) do(s state, a action) (state, *Violation) {
	c := &s.Clients[a.Client]
	switch a.Do {
	case tick:
		s.Now++
	case ask, again:
		m.ask(&s, c, a)
		if !a.Slow {
			return m.complete(s, a)
		}
		s.Left.Slow--
	case abandon:
		c.Calls[cleanup] = call{Kind: release, ID: c.ID, SentAt: s.Now}
		c.Phase = idle
		if m.Broken != ReusesID {
			c.ID = 0
		}
	case decide:
		m.decide(&s, c, &c.Calls[a.Slot])
	case apply:
		return m.apply(s, a)
	case reply:
		m.reply(&s, c)
	case loseCall, delayCall:
		k := c.Calls[current]
		if a.Do == delayCall {
			c.Calls[late] = k
		}
		c.Calls[current] = call{}
		m.unanswered(c, k)
	case beginWrite:
		s.Left.Writes--
		c.Writing = c.Fence
	case endWrite:
		fence := c.Writing
		c.Writing = 0
		if fence < s.Highest {
			if m.Broken == NoFenceCheck {
				return s, &Violation{Resource, "the resource accepted a write with a lower fence than one before it"}
			}
			return s, nil
		}
		s.Highest = fence
	case crash:
		s.Left.Crashes--
		k := c.Calls[current]
		c.Calls[current] = call{}
		if c.Calls[late].Kind == nothing && m.writes(k) {
			c.Calls[late] = k
		}
		*c = client{Offset: c.Offset, Calls: c.Calls, Writing: c.Writing}
	case breakLock:
		s.Left.Breaks--
		s.Broken |= 1 << s.Store.Fence
		m.store(&s, m.rules.Break(s.Store))
	case replicate:
		s.Replica = s.Store
	case failOver:
		s.Left.Failures--
		m.store(&s, s.Replica)
	case restart:
		s.Left.Failures--
		m.store(&s, Lock{})
	case jumpServer:
		s.Left.Jumps--
		s.Ahead += a.By
	case jumpClient:
		s.Left.Jumps--
		c.Offset += a.By
	}
	return m.settled(s)
}

// writes tells whether a call may be executed although its caller has given up: a caller
// that reads first decides nothing then.
func (m *model) writes(k call) bool {
	return k.Kind != nothing && (k.Stage == decided || k.Stage == asked && m.Time == ServerTime)
}

// settled checks a state and drops what no longer matters, so that more histories meet in one
// state.
func (m *model) settled(s state) (state, *Violation) {
	if v := m.checkState(&s); v != nil {
		return s, v
	}
	if m.Time == ServerTime && m.Broken == None && s.Store.Ends <= int64(s.Now-m.Tolerance) {
		s.Store = Lock{Counter: s.Store.Counter} // over by every clock
	}
	for i := range s.Clients {
		c := &s.Clients[i]
		if m.Broken != WallClockDeadline && c.Deadline <= s.Now {
			c.Deadline = 0
		}
		for at := range c.Calls {
			if k := &c.Calls[at]; k.Kind != nothing && k.Stage != answered {
				k.SentAt = max(k.SentAt, s.Now-k.TTL) // a lease from before is over
			}
		}
	}
	return s, nil
}

// complete executes a call that nothing disturbs.
func (m *model) complete(s state, a action) (state, *Violation) {
	c := &s.Clients[a.Client]
	if m.Time != ServerTime {
		m.decide(&s, c, &c.Calls[current])
	}
	s, v := m.apply(s, action{Client: a.Client, Slot: current})
	if v != nil {
		return s, v
	}
	m.reply(&s, &s.Clients[a.Client])
	return m.settled(s)
}

// ask sends a request.
func (m *model) ask(s *state, c *client, a action) {
	k := call{Kind: a.Kind, TTL: a.TTL, SentAt: s.Now}
	switch a.Kind {
	case acquire:
		if a.Do == ask {
			if m.Broken != ReusesID || c.ID == 0 {
				c.ID = m.Budget.Acquires - s.Left.Acquires + 1
			}
			s.Left.Acquires--
		}
		c.Phase, c.Fence, c.Deadline, c.Short = acquiring, 0, 0, 0
	case extend:
		s.Left.Extends--
		// From now on the store may hold the new end, whether or not anybody learns of it.
		if m.Broken != IgnoresShortening {
			c.Deadline = min(c.Deadline, m.deadline(c, s.Now+a.TTL))
		}
	case release:
		c.Phase = releasing
		if m.Broken != WorksWhileReleasing {
			c.Deadline = 0
		}
	case nothing:
	}
	k.ID, k.Fence = c.ID, c.Fence
	c.Calls[current] = k
}

// deadline is a true time as the client keeps it.
func (m *model) deadline(c *client, t int8) int8 {
	if m.Broken == WallClockDeadline {
		return t + c.Offset
	}
	return t
}

// decide is the read of a caller that decides by itself, and of its clock.
func (m *model) decide(s *state, c *client, k *call) {
	k.Stage, k.Stale = decided, false
	k.Local, k.DecidedAt = s.Now+c.Offset, s.Now
	if m.Time == GuardedTime {
		k.Server = s.Now + s.Ahead
	}
}

// apply lets the store execute a call: the whole call, or the write of a caller that has
// decided, on condition that nothing has changed since.
func (m *model) apply(s state, a action) (state, *Violation) {
	c := &s.Clients[a.Client]
	k := &c.Calls[a.Slot]
	if m.Time == ServerTime {
		k.Server, k.DecidedAt = s.Now+s.Ahead, s.Now
	} else if k.Stale && !m.unchecked(*k) {
		if a.Slot != current {
			*k = call{} // nobody retries it
		} else {
			m.decide(&s, c, k)
		}
		return s, nil
	}
	clocks := Clocks{Local: int64(k.Local), Server: int64(k.Server), Commit: int64(s.Now + s.Ahead)}
	before := s.Store
	if k.Stale {
		before.Holder = 0 // as it was read
	}
	var after Lock
	var ans Answer
	switch k.Kind {
	case acquire:
		after, ans = m.rules.Acquire(before, int64(k.ID), int64(k.TTL), clocks)
	case extend:
		after, ans = m.rules.Extend(before, int64(k.ID), int64(k.TTL), int64(k.Fence), clocks)
	case release, nothing:
		after, ans = m.rules.Release(before, int64(k.ID), clocks)
	}
	v := m.checkCall(&s, *k, clocks, s.Store, after, ans)
	done := call{Kind: k.Kind, Stage: answered, ID: k.ID, TTL: k.TTL, OK: ans.OK}
	if ans.OK && k.Kind != release {
		done.Fence = int8(ans.Fence)
		done.Deadline = m.end(c, k, clocks, after, ans)
	}
	if a.Slot != current {
		done = call{}
	}
	*k = done
	if ans.OK || m.Broken == BurnsFences {
		m.store(&s, after)
	}
	if v != nil {
		return s, v
	}
	return m.settled(s)
}

// unchecked tells whether a call is written although the lock has changed.
func (m *model) unchecked(k call) bool { return m.Broken == WritesUnchecked && k.Kind == acquire }

// store puts a lock into the store, so that what was read before is stale.
func (m *model) store(s *state, l Lock) {
	if s.Store == l {
		return
	}
	s.Store = l
	for i := range s.Clients {
		for at := range s.Clients[i].Calls {
			if k := &s.Clients[i].Calls[at]; k.Stage == decided {
				k.Stale = true
			}
		}
	}
}

// end is when the holder of a lease must stop, in true time: L-TIME-04, B-02.
func (m *model) end(c *client, k *call, clocks Clocks, l Lock, ans Answer) int8 {
	var end int64
	switch sent, at := int64(k.SentAt), int64(k.DecidedAt); {
	case ans.Found && m.Broken == TrustsRetryInFull:
		end = sent + int64(k.TTL)
	case m.Time == ServerTime: // what is left at the store, from before the request was sent
		end = sent + ans.Ends - clocks.Server
	case m.Time == ClientTime:
		end = at + ans.Ends - clocks.Local
	case ans.Found:
		end = min(at+int64(k.TTL), at+ans.Ends-clocks.Local, sent+ans.Ends-clocks.Server)
		if l.ServerEnds != 0 {
			end = min(end, sent+l.ServerEnds-m.rules.Tolerance-clocks.Server)
		}
	default:
		end = at + min(int64(k.TTL), ans.Ends-clocks.Local, ans.Ends-clocks.Commit)
	}
	if m.Broken == CountsTolerance {
		end += m.rules.Tolerance
	}
	return m.deadline(c, int8(end))
}

// reply lets a client learn its answer.
func (m *model) reply(s *state, c *client) {
	k := c.Calls[current]
	c.Calls[current] = call{}
	if m.Broken == CountsFromReply && k.OK && k.Kind != release {
		k.Deadline = s.Now + k.TTL
	}
	switch {
	case k.Kind == acquire && k.OK:
		c.Phase, c.Fence, c.Deadline = holding, k.Fence, k.Deadline
		if !m.believes(s, c) && c.Calls[cleanup].Kind == nothing { // L-ACQ-07
			c.Calls[cleanup] = call{Kind: release, ID: c.ID, SentAt: s.Now}
			*c = client{Offset: c.Offset, Calls: c.Calls, Writing: c.Writing}
		}
	case k.Kind == extend && k.OK:
		c.Deadline = k.Deadline
	default: // refused, lost or released
		*c = client{Offset: c.Offset, Calls: c.Calls, Writing: c.Writing}
	}
}

// unanswered is what a client knows of a call that it gives up on.
func (m *model) unanswered(c *client, k call) {
	switch k.Kind {
	case acquire:
		c.Phase = unsure
	case extend:
		if c.Short == 0 || k.TTL < c.Short {
			c.Short = k.TTL
		}
	case release, nothing: // repeated, see enabledFor
	}
}
