package pubsubemu

import (
	"cmp"
	"slices"
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
// pass the time in Clock nanoseconds. Every operation costs the same whatever
// the number of waiting messages, except seeks and closing a stream.
type backlog struct {
	rules rules

	all   list // every entry by arrival, for retention and seeks
	again list // unordered entries to redeliver
	fresh list // unordered entries never delivered
	keys  map[string]*keyQueue
	free  keyList // deliverable keys bound to no consumer

	timers     timerHeap
	leases     map[uint64]*entry
	lastLease  uint64
	leasesMade uint64 // lastLease when the leases map was made
	settled    settledIDs

	consumers map[*consumer]struct{}
	idle      []*consumer // consumers that found nothing, longest waiting first
	promises  int         // idle consumers woken for something they have not come for yet
	turn      int         // which source the last take ended with

	unacked  int
	forwards []*entry // exhausted entries for the caller to dead-letter once unlocked
	tracked  bool     // a journal wants changes
	changes  holdChanges
	counts   deliveryCounts
}

// holdChanges are the ids of messages whose hold changed since the journal
// was last told: unacked again, acked but kept, and no longer held.
type holdChanges struct{ revived, acked, dropped []uint64 }

// roomyMap is how many leases a map may have served before it is replaced when
// empty, so that a peak does not pin its memory for good.
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
	b.all.pushBack(e)
	b.unacked++
	b.enqueue(e, &b.fresh)
}

// enqueue makes a new or revived entry deliverable, at the end of its line.
func (b *backlog) enqueue(e *entry, line *list) {
	e.state = stateReady
	if !b.rules.ordered || e.msg.key == "" {
		line.pushBack(e)
		e.queue = line
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

// place lists a key where its next message may be taken from, if anywhere.
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

// batchLimits bounds one hand-over, so that one response stays small enough
// for any client and a long backlog is shared between consumers.
type batchLimits struct {
	messages int
	bytes    int64
}

// take leases messages to c, as many as its flow control, the limits and its
// fair share of what waits allow, and appends them to out.
func (b *backlog) take(c *consumer, out []*entry, limits batchLimits, now int64) []*entry {
	b.keepPromise(c)
	share := b.fairShare(c)
	var bytes int64
	for n := 0; n < limits.messages; n++ {
		e, shared := b.nextFor(c, share > 0)
		if e == nil || (n > 0 && bytes+e.msg.size > limits.bytes) {
			break
		}
		if shared {
			share--
		}
		bytes += e.msg.size
		b.lease(e, c, now)
		out = append(out, e)
	}
	b.wakeIdle() // for what the share left
	return out
}

// unpromised is how many messages and keys wait that no woken consumer is on
// its way to.
func (b *backlog) unpromised() int {
	return max(b.again.n+b.fresh.n+b.free.n-b.promises, 0)
}

// fairShare is what c may take now of the messages any consumer could take.
func (b *backlog) fairShare(c *consumer) int {
	waiting := b.unpromised()
	if len(b.consumers) < 2 || waiting < 2 {
		return waiting
	}
	able := 0
	for other := range b.consumers {
		if other == c || other.hasRoom() {
			able++
		}
	}
	return (waiting + able - 1) / max(able, 1)
}

// Sources of messages, in the order a consumer turns them over.
const (
	ownKeys = iota
	freeKeys
	redeliveries
	firstDeliveries
	sources
)

// head is the entry to deliver next from a source, or nil.
func (b *backlog) head(source int, c *consumer) *entry {
	switch source {
	case ownKeys:
		return c.keys.first()
	case freeKeys:
		return b.free.first()
	case redeliveries:
		return b.again.head
	default:
		return b.fresh.head
	}
}

// nextFor picks the entry c gets next, turning over the sources so that
// neither redeliveries nor one busy key starve the rest. shared says that
// another consumer could have had it.
func (b *backlog) nextFor(c *consumer, mayShare bool) (e *entry, shared bool) {
	for range sources {
		b.turn = (b.turn + 1) % sources
		if b.turn != ownKeys && !mayShare {
			continue
		}
		if e := b.head(b.turn, c); e != nil && c.fits(e.msg.size) {
			return e, b.turn != ownKeys
		}
	}
	return nil, false
}

// keepPromise ends the reservation that waking c made.
func (b *backlog) keepPromise(c *consumer) {
	if c.promised {
		c.promised = false
		b.promises--
	}
}

// lease hands e to c.
func (b *backlog) lease(e *entry, c *consumer, now int64) {
	if e.queue != nil {
		e.queue.remove(e)
		e.queue = nil
	}
	b.lastLease++
	e.lease = b.lastLease
	b.leases[e.lease] = e
	e.state, e.holder = stateLeased, c
	e.attempts++
	c.messages++
	c.bytes += e.msg.size
	duration := c.lease
	if duration == 0 {
		duration = b.rules.ackDeadline
	}
	b.timers.set(e, now+int64(duration))
	if k := e.key; k != nil {
		k.next = k.afterDelivered(e)
		k.inFlight++
		k.owner = c
		k.unlist() // then to the end of the owner's line
		b.place(k)
	}
	b.counts.delivered++
}

// endLease takes e back from its holder without saying what becomes of it.
func (b *backlog) endLease(e *entry) {
	delete(b.leases, e.lease)
	if len(b.leases) == 0 && b.lastLease-b.leasesMade > roomyMap {
		b.leases, b.leasesMade = map[uint64]*entry{}, b.lastLease // a drained map keeps its buckets
	}
	e.lease = 0
	b.timers.drop(e)
	if c := e.holder; c != nil {
		c.messages--
		c.bytes -= e.msg.size
		e.holder = nil
	}
	if k := e.key; k != nil {
		k.inFlight--
		if k.inFlight == 0 {
			k.owner, k.orphaned = nil, false
		}
		b.place(k)
	}
}

// acknowledge settles the delivery with this lease number.
func (b *backlog) acknowledge(lease uint64, now int64) ackOutcome {
	e := b.leases[lease]
	if e == nil {
		return b.settled.outcome(lease, settledAck, now)
	}
	k := e.key
	behind := k != nil && k.entries.head != e
	if behind && b.rules.exactlyOnce {
		return ackUnordered
	}
	if b.rules.exactlyOnce {
		b.settled.remember(lease, settledAck, now)
	}
	b.endLease(e)
	b.counts.acked++
	b.unacked--
	e.state = stateAcked
	if !behind {
		b.settle(e)
	}
	return ackApplied
}

// settle lets an acked entry go, and those of its key that only waited for it.
func (b *backlog) settle(e *entry) {
	for k := e.key; e != nil; {
		b.leaveKey(e)
		b.letGo(e)
		if k == nil || k.entries.head == nil || k.entries.head.state != stateAcked {
			return
		}
		e = k.entries.head
	}
}

// letGo forgets an acked entry, unless acked messages are retained for seeks.
func (b *backlog) letGo(e *entry) {
	if !b.rules.retainAcked {
		b.drop(e)
	} else if b.tracked {
		b.changes.acked = append(b.changes.acked, e.msg.id)
	}
}

// drop forgets an entry for good.
func (b *backlog) drop(e *entry) {
	b.all.remove(e)
	e.state = stateGone
	if b.tracked {
		b.changes.dropped = append(b.changes.dropped, e.msg.id)
	}
}

// leaveKey takes an entry out of its key and forgets an empty key.
func (b *backlog) leaveKey(e *entry) {
	k := e.key
	if k == nil {
		return
	}
	if k.next == e {
		k.next = k.afterDelivered(e)
	}
	k.entries.remove(e)
	e.key = nil
	if k.entries.n == 0 {
		k.unlist()
		delete(b.keys, k.name)
		return
	}
	b.place(k)
}

// extend moves the end of a lease to until; a lease that ended is told apart
// only for exactly-once delivery.
func (b *backlog) extend(lease uint64, until int64) ackOutcome {
	e := b.leases[lease]
	if e == nil {
		return ackInvalid
	}
	b.timers.set(e, until)
	return ackApplied
}

// nack gives the delivery with this lease number back.
func (b *backlog) nack(lease uint64, now int64) ackOutcome {
	e := b.leases[lease]
	if e == nil {
		return b.settled.outcome(lease, settledNack, now)
	}
	if b.rules.exactlyOnce {
		b.settled.remember(lease, settledNack, now)
	}
	b.counts.nacked++
	b.giveBack(e, now, true)
	return ackApplied
}

// giveBack ends a lease without an ack: the entry is redelivered, after a
// backoff when asked and configured, or it has had its deliveries and goes to
// the dead-letter topic.
func (b *backlog) giveBack(e *entry, now int64, backOff bool) {
	if e.key != nil {
		b.rewind(e)
	} else {
		b.endLease(e)
	}
	if b.rules.maxAttempts > 0 && e.attempts >= b.rules.maxAttempts {
		b.forward(e)
		return
	}
	var delay time.Duration
	if backOff && b.rules.retry {
		delay = backoff(b.rules.minBackoff, b.rules.maxBackoff, e.attempts)
	}
	if delay > 0 {
		b.delay(e, now+int64(delay))
		return
	}
	b.requeue(e)
}

// forward sets e aside for the dead-letter topic. In its key it still stands
// before the later ones, which wait until its fate is known.
func (b *backlog) forward(e *entry) {
	e.state = stateForwarding
	if k := e.key; k != nil {
		if k.next == e {
			k.next = k.afterDelivered(e)
		}
		k.forwarding++
		b.place(k)
	}
	b.forwards = append(b.forwards, e)
}

// forwarded ends what forward began. A message that could not be forwarded
// goes on being delivered, as it does in production.
func (b *backlog) forwarded(e *entry, ok bool) {
	if e.state != stateForwarding {
		return // purged meanwhile
	}
	k := e.key
	if k != nil {
		k.forwarding--
	}
	if ok {
		b.counts.deadLettered++
		b.unacked--
		e.state = stateAcked
		b.settle(e) // wherever it stands in its key: it never comes back
	} else {
		if k != nil && (k.next == nil || e.msg.id < k.next.msg.id) {
			b.rewind(e)
		}
		b.requeue(e)
	}
	b.wakeIdle()
}

// delay keeps e from delivery until due, and its key with it.
func (b *backlog) delay(e *entry, due int64) {
	e.state = stateDelayed
	b.timers.set(e, due)
	if e.key != nil {
		b.place(e.key)
	}
}

// requeue makes an entry that was delivered before deliverable again.
func (b *backlog) requeue(e *entry) {
	e.state = stateReady
	if k := e.key; k != nil {
		b.place(k)
		return
	}
	b.again.pushBack(e)
	e.queue = &b.again
}

// rewind takes e and every later delivery of its key back, so that they are
// delivered again in order, acked ones included.
func (b *backlog) rewind(e *entry) {
	k := e.key
	for later := e; later != nil; later = k.entries.after(later) {
		switch later.state {
		case stateLeased:
			b.endLease(later)
		case stateDelayed:
			b.timers.drop(later)
		case stateAcked:
			b.unacked++
		case stateForwarding: // keeps its place; delivery resumes when its fate is known
			continue
		}
		later.state = stateReady
		if later == k.next {
			break // nothing beyond was delivered
		}
	}
	k.next = e
	b.place(k)
}

// discard removes an entry whatever its state.
func (b *backlog) discard(e *entry) {
	if e.state != stateAcked {
		b.unacked--
	}
	b.withdraw(e)
	b.leaveKey(e)
	b.drop(e)
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
// outlive their retention. Takes and acks call it too, so that what a call sees
// depends on the clock alone and not on when the timer loop got to run.
func (b *backlog) advance(now int64) {
	for e := b.timers.first(); e != nil && e.due <= now; e = b.timers.first() {
		if e.state == stateLeased {
			b.counts.expired++
			b.giveBack(e, e.due, true) // a backoff counts from the expiry, however late it is noticed
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

// open admits a consumer to the fair division.
func (b *backlog) open(c *consumer) { b.consumers[c] = struct{}{} }

// wait puts a consumer that found nothing at the end of the line.
func (b *backlog) wait(c *consumer) {
	if !c.waiting {
		c.waiting = true
		b.idle = append(b.idle, c)
	}
}

// leave ends a Pull: its leases run on. Others are woken in case it was woken
// for something it did not take.
func (b *backlog) leave(c *consumer) {
	delete(b.consumers, c)
	b.keepPromise(c)
	if i := slices.Index(b.idle, c); i >= 0 {
		b.idle = slices.Delete(b.idle, i, i+1)
	}
	b.wakeIdle()
}

// close ends a stream: its unacked messages are redelivered at once, oldest
// first. Exactly-once leases live on, for their acks may come by another way.
func (b *backlog) close(c *consumer, now int64) {
	b.leave(c)
	var held []*entry
	for _, e := range b.leases {
		if e.holder == c {
			held = append(held, e)
		}
	}
	slices.SortFunc(held, func(a, b *entry) int { return cmp.Compare(a.lease, b.lease) })
	for _, e := range held {
		if e.state != stateLeased {
			continue // taken back with an earlier one of its key
		}
		if !b.rules.exactlyOnce {
			b.giveBack(e, now, false)
			continue
		}
		e.holder = nil
		if k := e.key; k != nil {
			k.owner, k.orphaned = nil, true
			b.place(k)
		}
	}
	b.wakeIdle()
}

// wakeIdle wakes as many idle consumers as there is work for, the one idle
// longest first. What a consumer is woken for is promised to it, else a busy
// one that happens to look earlier would win every time.
func (b *backlog) wakeIdle() {
	if len(b.idle) == 0 {
		return
	}
	kept := b.idle[:0]
	for _, c := range b.idle {
		own, shared := b.hasWork(c)
		if !own && !shared {
			kept = append(kept, c)
			continue
		}
		if !own {
			c.promised = true
			b.promises++
		}
		c.waiting = false
		c.nudge()
	}
	clear(b.idle[len(kept):])
	b.idle = kept
}

// hasWork says whether c could take something from its own keys, or from what
// is promised to nobody.
func (b *backlog) hasWork(c *consumer) (own, shared bool) {
	fits := func(e *entry) bool { return e != nil && c.fits(e.msg.size) }
	own = fits(b.head(ownKeys, c))
	shared = b.unpromised() > 0 &&
		(fits(b.head(freeKeys, c)) || fits(b.head(redeliveries, c)) || fits(b.head(firstDeliveries, c)))
	return own, shared
}

// oldest is the message waiting longest for its ack, or nil.
func (b *backlog) oldest() *message {
	for e := b.all.head; e != nil; e = b.all.after(e) {
		if e.state != stateAcked {
			return e.msg
		}
	}
	return nil
}
