package pubsubemu

import (
	"time"
)

// giveBack ends a lease without an ack. The entry is redelivered, after a backoff
// if backOff is set and there is a retry policy; after its last attempt it goes to
// the dead-letter topic.
func (b *backlog) giveBack(e *entry, now int64, backOff bool) {
	if e.key != nil {
		b.rewind(e)
	} else {
		b.endLease(e)
	}
	e.failures++
	if b.rules.maxAttempts > 0 && e.failures >= b.rules.maxAttempts {
		b.forward(e)
		return
	}
	if !backOff {
		b.requeue(e)
		return
	}
	b.retry(e, now)
}

// retry makes an entry deliverable again, after a backoff when one is configured.
func (b *backlog) retry(e *entry, now int64) {
	var pause time.Duration
	if b.rules.retry {
		pause = backoff(b.rules.minBackoff, b.rules.maxBackoff, e.failures)
	}
	if pause > 0 {
		b.delay(e, now+int64(pause))
		return
	}
	b.requeue(e)
}

// forward sets e aside for the dead-letter topic. It stays in its key, where later
// messages wait for the outcome.
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

// forwarded finishes what forward began. A message that could not be forwarded is
// delivered again after a backoff, as in production.
func (b *backlog) forwarded(e *entry, ok bool, now int64) {
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
		b.settle(e) // anywhere in its key: it is not delivered again
	} else {
		if k != nil && (k.next == nil || e.arrival < k.next.arrival) {
			b.rewind(e)
		}
		b.retry(e, now)
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

// rewind withdraws e and every later delivery of its key, acked ones included, so
// that they are delivered again in order. It does not count as an attempt of the
// later ones.
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
		case stateForwarding: // keeps its place; delivery resumes once the outcome is known
			continue
		}
		later.state = stateReady
		if later == k.next {
			break // nothing after it was delivered
		}
	}
	k.next = e
	b.place(k)
}
