package pubsubemu

import "time"

// message is one published message. It is immutable once published and shared
// by every subscription that holds it, so a backlog on ten subscriptions keeps
// the payload once.
type message struct {
	id        uint64    // server-wide, rising
	wire      []byte    // encoded google.pubsub.v1.PubsubMessage, id and publish time included
	size      int64     // payload and attribute bytes: what flow control counts
	published time.Time // publish_time as subscribers see it: what a seek compares
	stored    int64     // Clock nanoseconds at publish: what retention counts from
	key       string    // ordering key, "" for none
}

// entryState says where an entry stands between arrival and removal.
type entryState uint8

const (
	stateReady      entryState = iota // waits for a consumer
	stateLeased                       // handed out, the lease runs
	stateDelayed                      // backs off until due, then ready
	stateForwarding                   // being forwarded to the dead-letter topic
	stateAcked                        // acked, kept for a seek or behind an unacked message of its key
	stateGone                         // removed; code that still has the pointer must ignore it
)

// entry is one message in one subscription.
type entry struct {
	msg      *message
	holder   *consumer // while leased; nil once the holder's stream is gone
	key      *keyQueue // nil when delivered unordered
	queue    *list     // the ready list that links it, nil when none
	links    [2]link   // by linkKind
	due      int64     // Clock nanoseconds: end of the lease or of the delay
	arrival  uint64    // rises along the backlog; ids may not, because publishers draw them before they lock
	lease    uint64    // current lease number, 0 for none
	timer    int32     // position in the timer heap, -1 when absent
	failures int32     // its own nacks, expiries and broken streams so far
	state    entryState
}

type link struct{ prev, next *entry }

// linkKind picks the links a list runs through: every entry is in the list of
// arrivals and in at most one delivery queue at the same time.
type linkKind uint8

const (
	byArrival linkKind = iota
	byQueue
)

// list is an intrusive doubly linked list: constant-time removal from the
// middle and no allocation.
type list struct {
	by         linkKind
	head, tail *entry
	n          int
}

func (l *list) pushBack(e *entry) {
	e.links[l.by] = link{prev: l.tail}
	if l.tail == nil {
		l.head = e
	} else {
		l.tail.links[l.by].next = e
	}
	l.tail = e
	l.n++
}

func (l *list) remove(e *entry) {
	at := e.links[l.by]
	if at.prev == nil {
		l.head = at.next
	} else {
		at.prev.links[l.by].next = at.next
	}
	if at.next == nil {
		l.tail = at.prev
	} else {
		at.next.links[l.by].prev = at.prev
	}
	e.links[l.by] = link{}
	l.n--
}

func (l *list) after(e *entry) *entry { return e.links[l.by].next }
