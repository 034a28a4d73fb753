package pubsubemu

import (
	"cmp"
	"slices"
)

// open registers a consumer.
func (b *backlog) open(c *consumer) { b.consumers[c] = struct{}{} }

// wait queues a consumer that found nothing, to be woken.
func (b *backlog) wait(c *consumer) {
	if !c.waiting {
		c.waiting = true
		b.idle = append(b.idle, c)
	}
}

// leave unregisters a consumer; its leases continue. Others are woken in case it was
// woken for something that it did not take.
func (b *backlog) leave(c *consumer) {
	delete(b.consumers, c)
	b.arrive(c)
	b.wakeIdle()
}

// arrive removes c from the idle consumers and ends the promise to it, because it is
// taking now.
func (b *backlog) arrive(c *consumer) {
	if c.waiting {
		c.waiting = false
		at := slices.Index(b.idle, c)
		b.idle = slices.Delete(b.idle, at, at+1)
	}
	if c.promised {
		c.promised = false
		b.promises--
	}
}

// disband unregisters all consumers of a backlog that is discarded.
func (b *backlog) disband() {
	for c := range b.consumers {
		c.waiting, c.promised = false, false
	}
	clear(b.consumers)
	b.idle, b.promises = nil, 0
}

// close ends a stream. If it broke, its unacked messages are redelivered at once,
// oldest first. The leases of one that its client half-closed continue, as do those of
// exactly-once delivery: their acks may come in another call.
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
			continue // withdrawn with an earlier one of its key
		}
		if !c.halfClosed && !b.rules.exactlyOnce {
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
// longest first. What a consumer is woken for is promised to it: otherwise a busy
// consumer that looks earlier would always get it.
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

// hasWork says whether c could take something from its own keys, or from the
// messages that are not promised.
func (b *backlog) hasWork(c *consumer) (own, shared bool) {
	fits := func(e *entry) bool { return e != nil && c.fits(e.msg.size) }
	own = fits(b.head(ownKeys, c))
	shared = b.unpromised() > 0 &&
		(fits(b.head(freeKeys, c)) || fits(b.head(redeliveries, c)) || fits(b.head(firstDeliveries, c)))
	return own, shared
}
