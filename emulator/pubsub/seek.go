package pubsubemu

import (
	"cmp"
	"slices"
)

// seek makes exactly the messages that want selects unacked, after it has restored
// those of extra that the backlog no longer holds. Leased messages that stay
// unacked are delivered again; only exactly-once leases of unordered messages
// continue. It takes time in proportion to the backlog.
func (b *backlog) seek(want func(*message) bool, extra []*message) {
	b.restore(extra)
	for e := b.all.head; e != nil; {
		next := b.all.after(e)
		switch wanted := want(e.msg); {
		case wanted && e.state == stateAcked:
			b.revive(e)
		case !wanted && e.state != stateAcked:
			b.purge(e)
		case wanted && e.state == stateLeased && e.key == nil && !b.rules.exactlyOnce:
			b.endLease(e)
			b.requeue(e)
		}
		e = next
	}
	if b.rules.ordered {
		b.rebuildKeys()
	}
	b.wakeIdle()
}

// restore adds messages that had been removed, as acked entries, and puts all
// entries in the order of their ids, as a restart of the server does. Concurrent
// publishes may have arrived in another order, but of two messages published one
// after the other the first has the lower id.
func (b *backlog) restore(extra []*message) {
	held := make(map[uint64]bool, b.all.n)
	entries := make([]*entry, 0, b.all.n+len(extra))
	for e := b.all.head; e != nil; e = b.all.after(e) {
		held[e.msg.id] = true
		entries = append(entries, e)
	}
	for _, m := range extra {
		if !held[m.id] {
			entries = append(entries, &entry{msg: m, timer: -1, state: stateAcked})
		}
	}
	if len(entries) == b.all.n {
		return
	}
	slices.SortFunc(entries, func(a, b *entry) int { return cmp.Compare(a.msg.id, b.msg.id) })
	b.all, b.lastArrival = list{by: byArrival}, 0
	for _, e := range entries {
		b.arrived(e)
	}
}

// revive makes an acked entry unacked, as if never delivered.
func (b *backlog) revive(e *entry) {
	if b.tracked {
		b.changes.revived = append(b.changes.revived, e.msg.id)
	}
	e.failures = 0
	b.unacked++
	e.state = stateReady
	if b.rules.ordered && e.msg.key != "" {
		return // rebuildKeys queues it
	}
	b.again.pushBack(e)
	e.queue = &b.again
}

// purge acks an entry on behalf of a seek.
func (b *backlog) purge(e *entry) {
	b.withdraw(e)
	b.unacked--
	e.state = stateAcked
	b.leaveKey(e)
	b.letGo(e)
}

// rebuildKeys queues every unacked message with an ordering key again, in order of
// arrival.
func (b *backlog) rebuildKeys() {
	for _, k := range b.keys {
		k.unlist()
		for k.entries.head != nil {
			e := k.entries.head
			if e.state == stateLeased {
				b.endLease(e)
			}
			b.timers.drop(e)
			k.entries.remove(e)
			e.key = nil
			if e.state == stateAcked {
				b.letGo(e)
			}
		}
		k.next = nil
		k.unlist()
	}
	clear(b.keys)
	for e := b.all.head; e != nil; e = b.all.after(e) {
		if e.msg.key != "" && e.state != stateAcked {
			b.enqueue(e, &b.fresh)
		}
	}
}

// stopRetaining drops acked entries when the subscription no longer keeps them.
func (b *backlog) stopRetaining() {
	for e := b.all.head; e != nil; {
		next := b.all.after(e)
		if e.state == stateAcked && e.key == nil {
			b.drop(e)
		}
		e = next
	}
}
