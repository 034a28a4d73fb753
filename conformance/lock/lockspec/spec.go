package lockspec

import "fmt"

// Authority says by whose clock a store decides that a lease is over.
type Authority int8

// The authorities.
const (
	// ServerTime is the store's own clock: Redis, Postgres.
	ServerTime Authority = iota
	// ClientTime is the clock of whoever asks: SyncGuard on Firestore, memory, and
	// Firestore without the server-time guard.
	ClientTime
	// GuardedTime is both: Firestore with the server-time guard. A lease is over if it
	// is over by both clocks, or if its length has passed by the server's (L-END-01).
	GuardedTime
)

func (a Authority) String() string {
	return [...]string{"server time", "client time", "guarded time"}[a]
}

// Lock is what a store holds of one key. Times are in any one unit: ticks in the
// model, milliseconds in traces.
type Lock struct {
	Holder     int64 // number of the lock id; 0: nobody has the lock
	Ends       int64 // when the lease ends, by the clock that wrote it
	ServerEnds int64 // when it is over by the server's clock, whatever Ends says; 0: unknown
	Fence      int64 // of the lease
	Counter    int64 // the highest fence ever granted; outlives every lease
}

func (l Lock) String() string {
	if l.Holder == 0 {
		return fmt.Sprintf("free, counter %d", l.Counter)
	}
	return fmt.Sprintf("held by id %d until %d with fence %d, counter %d", l.Holder, l.Ends, l.Fence, l.Counter)
}

// Clocks is what the clocks show to one call.
type Clocks struct {
	Local  int64 // the caller's, after its read
	Server int64 // the store's, at that read
	Commit int64 // the store's, when the write is applied
}

// Answer is what a call returns.
type Answer struct {
	OK    bool
	Found bool // an acquisition found its own lease and wrote nothing
	Fence int64
	Ends  int64
}

// Rules are the rules of a store.
type Rules struct {
	Time      Authority
	Tolerance int64
	Broken    Defect
}

// judge is the time at which a lease is judged.
func (r Rules) judge(c Clocks) int64 {
	switch {
	case r.Time == ServerTime:
		return c.Server
	case r.Time == GuardedTime && r.Broken != JudgesByOneClock:
		return min(c.Local, c.Server)
	}
	return c.Local
}

// write is the time from which a lease is counted.
func (r Rules) write(c Clocks) int64 {
	switch r.Time {
	case ServerTime:
		return c.Server
	case GuardedTime:
		return max(c.Local, c.Server)
	case ClientTime:
	}
	return c.Local
}

// Live is L-TIME-01, with the server's end of L-END-01.
func (r Rules) Live(l Lock, c Clocks) bool {
	switch {
	case l.Holder == 0:
		return false
	case r.Broken == NeverExpires:
		return true
	case r.Broken == NoTolerance:
		return l.Ends > r.judge(c)
	case r.Time == GuardedTime && l.ServerEnds != 0 && c.Server > l.ServerEnds:
		return false
	}
	return l.Ends > r.judge(c)-r.Tolerance
}

// lease writes a lease's end.
func (r Rules) lease(l Lock, ttl int64, c Clocks) Lock {
	l.Ends, l.ServerEnds = r.write(c)+ttl, 0
	if r.Time == GuardedTime && r.Broken != NoServerEnd {
		l.ServerEnds = c.Commit + ttl + r.Tolerance
	}
	return l
}

// Acquire is one attempt: L-ACQ-01, L-ACQ-05, L-FENCE-01, L-FENCE-02.
func (r Rules) Acquire(l Lock, id, ttl int64, c Clocks) (Lock, Answer) {
	if r.Live(l, c) && r.Broken != GrantsWhileHeld {
		switch {
		case l.Holder != id && r.Broken == BurnsFences:
			l.Counter++
			return l, Answer{}
		case l.Holder != id:
			return l, Answer{}
		case r.Broken == RefusesRetries:
			return l, Answer{}
		case r.Broken != RetriesTakeAnew:
			return l, Answer{OK: true, Found: true, Fence: l.Fence, Ends: l.Ends}
		}
	}
	l = r.lease(l, ttl, c)
	l.Holder, l.Fence = id, l.Counter+1
	switch r.Broken {
	case SameFence:
		l.Fence = max(l.Counter, 1)
	case FenceFromClock:
		l.Fence = max(r.write(c), 1)
	default:
	}
	l.Counter = l.Fence
	return l, Answer{OK: true, Fence: l.Fence, Ends: l.Ends}
}

// Extend is L-EXT-01 to L-EXT-03.
func (r Rules) Extend(l Lock, id, ttl, fence int64, c Clocks) (Lock, Answer) {
	owns := l.Holder == id || l.Holder != 0 && r.Broken == ExtendsForeign
	revives := r.Broken == ExtendRevives && (l.Holder == 0 || l.Holder == id)
	if (!owns || !r.Live(l, c)) && !revives {
		return l, Answer{}
	}
	l = r.lease(l, ttl, c)
	switch r.Broken {
	case ExtendRevives:
		l.Holder, l.Fence = id, fence
	case ExtendTakesFence:
		l.Fence, l.Counter = l.Counter+1, l.Counter+1
	default:
	}
	return l, Answer{OK: true, Fence: l.Fence, Ends: l.Ends}
}

// Release is L-REL-01, L-REL-02 and L-REL-05.
func (r Rules) Release(l Lock, id int64, c Clocks) (Lock, Answer) {
	switch {
	case l.Holder == 0 || !r.Live(l, c):
		return l, Answer{OK: r.Broken == ReleaseAlwaysOK}
	case l.Holder != id && r.Broken != ReleasesForeign:
		return l, Answer{OK: r.Broken == ReleaseAlwaysOK}
	case r.Broken == ReleaseKeepsLock:
		return l, Answer{OK: true, Fence: l.Fence}
	}
	ans := Answer{OK: true, Fence: l.Fence}
	l = Lock{Counter: l.Counter}
	if r.Broken == ReleaseDropsCounter {
		l.Counter = 0
	}
	return l, ans
}

// Break is L-END-03: the lock goes, the counter stays.
func (r Rules) Break(l Lock) Lock {
	if r.Broken == BreakDropsCounter {
		return Lock{}
	}
	return Lock{Counter: l.Counter}
}

// Defect is one thing wrong, with a store, a client or the world around them.
type Defect int8

// The defects of stores.
const (
	None Defect = iota
	NoTolerance
	NeverExpires
	GrantsWhileHeld
	SameFence
	FenceFromClock
	BurnsFences
	RefusesRetries
	RetriesTakeAnew
	ExtendsForeign
	ExtendRevives
	ExtendTakesFence
	ReleasesForeign
	ReleaseAlwaysOK
	ReleaseKeepsLock
	ReleaseDropsCounter
	BreakDropsCounter
	JudgesByOneClock
	NoServerEnd
	WritesUnchecked // what was read may have changed before the write

	// Of clients.
	CountsFromReply     // the deadline is counted from the reply
	TrustsRetryInFull   // a lease found by a retry is trusted for a whole TTL
	CountsTolerance     // the holder relies on the tolerance too
	WallClockDeadline   // the deadline is on the wall clock
	ReusesID            // the next acquisition has the id of one whose outcome is unknown
	WorksWhileReleasing // work goes on until the release is answered
	IgnoresShortening   // a shorter extension counts only once it is answered
	ExtendsAfterUnknown // a longer extension follows a shorter one whose outcome is unknown

	// Of the resource, which stores what it is sent.
	NoFenceCheck

	// Of what the protocol relies on.
	ReplicaLags       // a fail-over goes to a replica that lacks the last writes
	RestartsEmpty     // the store forgets everything
	ServerClockJumps  // the server's clock is set ahead
	ClientClockJumps  // a client's clock is set ahead beyond the bound
	ClocksBeyondBound // clocks differ by more than the tolerance
)
