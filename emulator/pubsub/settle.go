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

// settle removes an acked entry, and the acked entries of its key that only waited
// for it.
func (b *backlog) settle(e *entry) {
	k := e.key
	b.leaveKey(e)
	b.letGo(e)
	b.settleHead(k)
}

// settleHead removes the acked entries at the head of a key.
func (b *backlog) settleHead(k *keyQueue) {
	for k != nil && k.entries.head != nil && k.entries.head.state == stateAcked {
		e := k.entries.head
		b.leaveKey(e)
		b.letGo(e)
	}
}

// letGo removes an acked entry, unless acked messages are retained for seeks.
func (b *backlog) letGo(e *entry) {
	if !b.rules.retainAcked {
		b.drop(e)
	} else if b.tracked {
		b.changes.acked = append(b.changes.acked, e.msg.id)
	}
}

// drop removes an entry.
func (b *backlog) drop(e *entry) {
	b.all.remove(e)
	e.state = stateGone
	if b.tracked {
		b.changes.dropped = append(b.changes.dropped, e.msg.id)
	}
}

// leaveKey removes an entry from its key, and the key once it is empty.
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

// extend moves the end of a lease to until. Only exactly-once delivery reports the
// outcome.
func (b *backlog) extend(lease uint64, until int64) ackOutcome {
	e := b.leases[lease]
	if e == nil {
		return ackInvalid
	}
	b.timers.set(e, until)
	return ackApplied
}

// nack ends the lease with this number without an ack.
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
