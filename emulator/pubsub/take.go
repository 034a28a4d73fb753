package pubsubemu

// batchLimits bounds one batch of deliveries, so that a response stays small enough
// for any client and a long backlog is shared between consumers.
type batchLimits struct {
	messages int
	bytes    int64
}

// take leases to c as many messages as its flow control, the limits and its fair
// share allow, and appends them to out.
func (b *backlog) take(c *consumer, out []*entry, limits batchLimits, now int64) []*entry {
	b.arrive(c)
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
	b.wakeIdle() // for the messages beyond the share
	return out
}

// unpromised is the number of waiting messages and keys that are not promised to a
// woken consumer.
func (b *backlog) unpromised() int {
	return max(b.again.n+b.fresh.n+b.free.n-b.promises, 0)
}

// fairShare is how many of the messages that any consumer could take c may take
// now: as many as bring its outstanding messages level with those of the other
// consumers that have room. A burst is split evenly, and consumers that ack fast get
// more. What brings woken consumers level is kept for them, however late they come.
// But a consumer below that level gets at least one while more messages wait than
// consumers are woken: otherwise several consumers could keep the same few messages
// for one another forever.
func (b *backlog) fairShare(c *consumer) int {
	waiting := b.again.n + b.fresh.n + b.free.n
	if len(b.consumers) < 2 || waiting == 0 {
		return waiting
	}
	able, total := int64(0), int64(waiting)
	for other := range b.consumers {
		if other == c || other.hasRoom() {
			able++
			total += other.messages
		}
	}
	level := (total + able - 1) / able
	kept := int64(0)
	for other := range b.consumers {
		if other.promised {
			kept += max(level-other.messages, 1)
		}
	}
	share := min(max(level-c.messages, 1), int64(waiting)-kept)
	if c.messages < level {
		share = max(share, min(1, int64(waiting-b.promises)))
	}
	return int(share)
}

// Sources of messages, in the order in which a consumer takes from them.
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

// nextFor picks the next entry for c. It takes from the sources in turn, so that
// neither redeliveries nor one busy key starve the rest. shared says that another
// consumer could have taken the entry.
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

// lease delivers e to c.
func (b *backlog) lease(e *entry, c *consumer, now int64) {
	if e.queue != nil {
		e.queue.remove(e)
		e.queue = nil
	}
	b.lastLease++
	e.lease = b.lastLease
	b.leases[e.lease] = e
	e.state, e.holder = stateLeased, c
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
		k.unlist() // place appends it to the owner's list
		b.place(k)
	}
	b.counts.delivered++
}

// endLease ends the lease of e. The caller sets its next state.
func (b *backlog) endLease(e *entry) {
	delete(b.leases, e.lease)
	if len(b.leases) == 0 && b.lastLease-b.leasesMade > roomyMap {
		b.leases, b.leasesMade = map[uint64]*entry{}, b.lastLease // an empty map keeps its memory
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
