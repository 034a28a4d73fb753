package pubsubemu

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
	k := e.key
	b.leaveKey(e)
	b.letGo(e)
	b.settleHead(k)
}

// settleHead lets the acked entries go that wait for no earlier one of their key.
func (b *backlog) settleHead(k *keyQueue) {
	for k != nil && k.entries.head != nil && k.entries.head.state == stateAcked {
		e := k.entries.head
		b.leaveKey(e)
		b.letGo(e)
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
		if len(b.keys) == 0 && b.lastArrival-b.keysMade > roomyMap {
			b.keys, b.keysMade = map[string]*keyQueue{}, b.lastArrival
		}
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
