package pubsubemu

import (
	"time"
)

// rules are the delivery settings of a subscription, ready for use.
type rules struct {
	ackDeadline time.Duration
	retention   time.Duration
	retainAcked bool
	ordered     bool
	exactlyOnce bool
	retry       bool          // a retry policy is set: back off between deliveries
	minBackoff  time.Duration // with retry
	maxBackoff  time.Duration // with retry
	maxAttempts int32         // deliveries before dead-lettering, 0 without a policy
}

// backlog is the state of one subscription's messages: a plain data structure
// with no lock, no clock and no I/O. Callers hold the subscription's lock and
// pass the time in Clock nanoseconds. No operation but seeking and closing a stream
// takes longer when more messages wait, apart from the logarithm in timerHeap.
type backlog struct {
	rules rules

	all   list // every entry by arrival, for retention and seeks
	again list // unordered entries to redeliver
	fresh list // unordered entries never delivered
	keys  map[string]*keyQueue
	free  keyList // deliverable keys bound to no consumer

	lastArrival uint64 // number of the newest entry
	keysMade    uint64 // lastArrival when the keys map was made

	timers     timerHeap
	leases     map[uint64]*entry
	lastLease  uint64
	leasesMade uint64 // lastLease when the leases map was made
	settled    settledIDs

	consumers map[*consumer]struct{}
	idle      []*consumer // consumers that found nothing, longest waiting first
	promises  int         // consumers that were woken and have not taken yet
	turn      int         // which source the last take ended with

	unacked  int
	forwards []*entry // exhausted entries for the caller to dead-letter once unlocked
	tracked  bool     // there is a journal, which needs changes
	changes  holdChanges
	counts   deliveryCounts
}

// holdChanges are the ids of messages whose hold changed since the last time the
// journal was told: unacked again, acked but kept, and no longer held.
type holdChanges struct{ revived, acked, dropped []uint64 }

// roomyMap is how many leases or messages a map may have held over time before it
// is replaced when empty, so that a peak does not keep its memory forever.
const roomyMap = 1 << 16

type deliveryCounts struct{ published, delivered, acked, nacked, expired, deadLettered uint64 }

func newBacklog(r rules) *backlog {
	return &backlog{
		rules:     r,
		all:       list{by: byArrival},
		again:     list{by: byQueue},
		fresh:     list{by: byQueue},
		keys:      map[string]*keyQueue{},
		leases:    map[uint64]*entry{},
		consumers: map[*consumer]struct{}{},
	}
}

// add appends published messages. The caller wakes consumers for them.
func (b *backlog) add(msgs []*message) {
	for _, m := range msgs {
		b.append(m)
	}
	b.counts.published += uint64(len(msgs))
}

func (b *backlog) append(m *message) {
	e := &entry{msg: m, timer: -1}
	b.arrived(e)
	b.unacked++
	b.enqueue(e, &b.fresh)
}

// arrived appends e to all entries.
func (b *backlog) arrived(e *entry) {
	b.lastArrival++
	e.arrival = b.lastArrival
	b.all.pushBack(e)
}

// enqueue makes a new or revived entry deliverable, at the end of its queue.
func (b *backlog) enqueue(e *entry, queue *list) {
	e.state = stateReady
	if !b.rules.ordered || e.msg.key == "" {
		queue.pushBack(e)
		e.queue = queue
		return
	}
	k := b.keys[e.msg.key]
	if k == nil {
		k = &keyQueue{name: e.msg.key, entries: list{by: byQueue}}
		b.keys[k.name] = k
	}
	e.key = k
	k.entries.pushBack(e)
	if k.next == nil {
		k.next = e
	}
	b.place(k)
}

// place moves a key to the list from which its next message may be taken, if any.
func (b *backlog) place(k *keyQueue) {
	var target *keyList
	if k.deliverable() {
		target = &b.free
		if k.owner != nil {
			target = &k.owner.keys
		}
	}
	if k.in == target {
		return
	}
	k.unlist()
	if target != nil {
		target.pushBack(k)
	}
}

// discard removes an entry in any state.
func (b *backlog) discard(e *entry) {
	if e.state != stateAcked {
		b.unacked--
	}
	k := e.key
	b.withdraw(e)
	b.leaveKey(e)
	b.drop(e)
	b.settleHead(k)
}

// withdraw ends whatever delivery e is in or waits for.
func (b *backlog) withdraw(e *entry) {
	if e.state == stateLeased {
		b.endLease(e)
	}
	b.timers.drop(e)
	if e.queue != nil {
		e.queue.remove(e)
		e.queue = nil
	}
	if e.key != nil && e.state == stateForwarding {
		e.key.forwarding--
	}
}

// advance does everything that is due: leases expire, delays end, messages
// outlive their retention. Takes and acks call it too, so that their results depend
// only on the clock and not on when the timer loop runs.
func (b *backlog) advance(now int64) {
	for e := b.timers.first(); e != nil && e.due <= now; e = b.timers.first() {
		if e.state == stateLeased {
			b.counts.expired++
			b.giveBack(e, e.due, true) // a backoff counts from the expiry, however late it is processed
			continue
		}
		b.timers.drop(e)
		b.requeue(e)
	}
	for e := b.all.head; e != nil && e.msg.stored+int64(b.rules.retention) <= now; e = b.all.head {
		b.discard(e)
	}
	b.wakeIdle()
}

// nextDue is when advance has something to do next; ok is false for never.
func (b *backlog) nextDue() (due int64, ok bool) {
	if e := b.timers.first(); e != nil {
		due, ok = e.due, true
	}
	if e := b.all.head; e != nil {
		if end := e.msg.stored + int64(b.rules.retention); !ok || end < due {
			due, ok = end, true
		}
	}
	return due, ok
}

// oldest is the message that has waited longest for its ack, or nil.
func (b *backlog) oldest() *message {
	for e := b.all.head; e != nil; e = b.all.after(e) {
		if e.state != stateAcked {
			return e.msg
		}
	}
	return nil
}
