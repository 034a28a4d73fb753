package pubsubemu

// batchLimits bounds one hand-over, so that one response stays small enough
// for any client and a long backlog is shared between consumers.
type batchLimits struct {
	messages int
	bytes    int64
}

// take leases messages to c, as many as its flow control, the limits and its
// fair share of what waits allow, and appends them to out.
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
	b.wakeIdle() // for what the share left
	return out
}

// unpromised is how many messages and keys wait that no woken consumer is on
// its way to.
func (b *backlog) unpromised() int {
	return max(b.again.n+b.fresh.n+b.free.n-b.promises, 0)
}

// fairShare is what c may take now of the messages any consumer could take: as
// much as brings it level with the others that have room, in messages
// outstanding. So a burst is split evenly, and those that ack fast get more.
// What brings woken consumers level is kept for them, however late they come.
// But a consumer below the others gets at least one as long as more wait than
// consumers are woken: else several could keep the same few messages for one
// another for ever.
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
