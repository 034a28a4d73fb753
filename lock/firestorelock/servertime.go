package firestorelock

import (
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

// instant is one reading of the clocks, taken after the reads of an attempt.
type instant struct {
	asked  time.Time // local, before the read was sent
	local  time.Time // now, with monotonic reading
	server time.Time // the server's clock at the read; zero without the guard
}

func (b *Backend) instantOf(asked, readTime time.Time) instant {
	now := instant{asked: asked, local: b.clock.Now()}
	if b.guarded {
		now.server = readTime
		b.server.learn(readTime, now.local)
	}
	return now
}

// instantWithoutRead takes the server's clock from its last answer. There was
// one wherever a lease is known: it was read or written.
func (b *Backend) instantWithoutRead() instant {
	now := b.clock.Now()
	i := instant{asked: now, local: now}
	if b.guarded {
		i.server = b.server.at(now)
	}
	return i
}

// judgeMs is the time at which a lease is judged: the earlier of both clocks,
// so that it is over only if it is over by both.
func (i instant) judgeMs() int64 {
	if i.server.IsZero() {
		return i.local.UnixMilli()
	}
	return min(i.local.UnixMilli(), i.server.UnixMilli())
}

// writeMs is the time from which a new lease is counted: the later of both.
func (i instant) writeMs() int64 {
	if i.server.IsZero() {
		return i.local.UnixMilli()
	}
	return max(i.local.UnixMilli(), i.server.UnixMilli())
}

// deadlineOf is when the holder of a lease written at this instant must stop.
// commitTime is the server's clock after the commit was sent.
func (i instant) deadlineOf(expiresAtMs int64, ttl time.Duration, commitTime time.Time) time.Time {
	end := time.UnixMilli(expiresAtMs)
	deadline := i.local.Add(min(ttl, end.Sub(i.local)))
	if i.server.IsZero() || commitTime.IsZero() {
		return deadline
	}
	if byServer := i.local.Add(end.Sub(commitTime)); byServer.Before(deadline) {
		return byServer
	}
	return deadline
}

// deadlineRead is when the holder must stop of a lease found in the store. The
// server read it no earlier than it was asked to.
func (i instant) deadlineRead(expiresAtMs int64, ttl time.Duration) time.Time {
	end := time.UnixMilli(expiresAtMs)
	deadline := i.local.Add(min(ttl, end.Sub(i.local)))
	if i.server.IsZero() {
		return deadline
	}
	if byServer := i.asked.Add(end.Sub(i.server)); byServer.Before(deadline) {
		return byServer
	}
	return deadline
}

// serverClock estimates the server's clock between its answers, from the time
// of a read or commit and the local moment its reply arrived. It is late by the way of
// the reply, never early unless the server's clock is set back.
type serverClock struct {
	mu     sync.Mutex
	server time.Time
	local  time.Time
}

func (c *serverClock) learn(server, local time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if server.After(c.server) {
		c.server, c.local = server, local
	}
}

// at is the estimate for a local moment; zero before the first answer.
func (c *serverClock) at(local time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server.IsZero() {
		return time.Time{}
	}
	return c.server.Add(local.Sub(c.local))
}

// cleanupAge is how long a lock must be over before anybody may delete it in
// passing: the tolerance, and as much again.
const cleanupAge = 2 * lock.Tolerance
