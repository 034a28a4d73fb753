package pubsubemu

import (
	"cmp"
	"slices"
)

// seek rewrites what is acked: an entry stays or becomes unacked exactly when
// want says so. Messages in extra that the backlog no longer holds come back
// first. It costs time in proportion to the
// backlog. What was out with a consumer and stays unacked is delivered again:
// a replay starts over. Only exactly-once leases of unordered messages live on.
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

// restore puts messages back that had left, as acked entries. All are put in order
// of their ids, as a restart of the server does: publishes under way at once may
// have arrived in another order, but of messages published one after the other
// the first has the lower id.
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
		return // rebuildKeys puts it in line
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

// rebuildKeys lines up every unacked keyed message anew, in order of arrival.
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
