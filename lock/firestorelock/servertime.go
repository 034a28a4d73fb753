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

	// late is by how much the server's clock may be past server, when that is an estimate.
	late time.Duration
}

func (b *Backend) instantOf(asked, readTime time.Time) instant {
	now := instant{asked: asked, local: b.clock.Now()}
	if b.guarded {
		now.server = readTime
		b.server.learn(readTime, asked, now.local)
	}
	return now
}

// instantSeen is an instant that the server reported by itself, perhaps late, so it teaches
// nothing about the server's clock.
func (b *Backend) instantSeen(readTime time.Time) instant {
	now := b.clock.Now()
	i := instant{asked: now, local: now}
	if b.guarded {
		i.server = readTime
	}
	return i
}

// instantWithoutRead takes the server's clock from its last answer. There was
// one wherever a lease is known: it was read or written.
func (b *Backend) instantWithoutRead() instant {
	now := b.clock.Now()
	i := instant{asked: now, local: now}
	if b.guarded {
		i.server, i.late = b.server.at(now)
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
func (i instant) deadlineRead(s storedLock, ttl time.Duration) time.Time {
	end := time.UnixMilli(s.expiresAtMs)
	deadline := i.local.Add(min(ttl, end.Sub(i.local)))
	if i.server.IsZero() {
		return deadline
	}
	deadline = sooner(deadline, i.asked.Add(end.Sub(i.server)))
	if over := s.serverEnd(); !over.IsZero() {
		deadline = sooner(deadline, i.asked.Add(over.Add(-lock.Tolerance).Sub(i.server)))
	}
	return deadline
}

func sooner(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// serverEndOf is when, by the server's clock, a lease written at updateTime to last ttl is over
// for everybody (L-END-01). Its holder stops the tolerance sooner, counted by its own clock
// from before the write was sent.
func serverEndOf(updateTime time.Time, ttl time.Duration) time.Time {
	return updateTime.Add(ttl).Add(lock.Tolerance) // in two steps: the sum may be no Duration
}

// isPast tells whether the server's clock has passed an end; the zero end is never.
func (i instant) isPast(end time.Time) bool {
	return !end.IsZero() && i.server.After(end)
}

// serverClock estimates the server's clock between its answers, from the time in one and the
// local moment it arrived. The estimate is late by the way of the reply, and never early unless
// the server's clock is set back.
type serverClock struct {
	mu     sync.Mutex
	server time.Time
	asked  time.Time // local, before the request was sent
	local  time.Time // when the reply arrived
}

func (c *serverClock) learn(server, asked, local time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if server.After(c.server) {
		c.server, c.asked, c.local = server, asked, local
	}
}

// at is the estimate for a local moment, and by how much it may be late; zero
// before the first answer.
func (c *serverClock) at(local time.Time) (server time.Time, late time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server.IsZero() {
		return time.Time{}, 0
	}
	return c.server.Add(local.Sub(c.local)), c.local.Sub(c.asked)
}

// checkSkew refuses with a *lock.ClockSkewError if the server's last answer, and the monotonic
// clock since, prove that the local clock is wrong. It needs no request to notice a clock that
// was set.
func (b *Backend) checkSkew() error {
	if !b.guarded || b.maxSkew < 0 {
		return nil
	}
	local := b.clock.Now()
	server, late := b.server.at(local)
	if server.IsZero() {
		return nil
	}
	uncertainty := late / 2
	offset := server.Add(uncertainty).Sub(local.Round(0))
	if offset.Abs()-uncertainty < b.maxSkew {
		return nil
	}
	return &lock.Error{Code: lock.CodeInternal, Err: &lock.ClockSkewError{Offset: offset, Uncertainty: uncertainty, Limit: b.maxSkew}}
}

// cleanupAge is how long a lock must be over before anybody may delete it in passing: twice the
// tolerance.
const cleanupAge = 2 * lock.Tolerance
