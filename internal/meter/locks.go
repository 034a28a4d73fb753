package meter

import (
	"maps"
	"sync"
	"time"
)

// Names of the locks.
const (
	LockCycle    = "cycle"    // one solve cycle at a time per depot
	LockSweeper  = "sweeper"  // one sweep at a time
	LockWebhooks = "webhooks" // one process at a time sends to webhooks
	LockHistory  = "history"  // one process at a time publishes the history
)

// Lock is one lock, or the locks of one purpose, as seen from this process.
type Lock struct {
	// Wait is how long attempts to acquire took, granted or not.
	Wait Histogram

	mu    sync.Mutex
	held  int
	tried time.Time
}

// Lock returns the lock of that name.
func (m *Meter) Lock(name string) *Lock { return entry(m, m.locks, name) }

// Tried records an attempt that started at began and has just been answered: granted, or
// held by another holder. Do not call it for an attempt that failed.
func (l *Lock) Tried(began time.Time, granted bool) {
	now := time.Now()
	l.Wait.Record(now.Sub(began))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried = now
	if granted {
		l.held++
	}
}

// Gave records that a granted lock was released or lost.
func (l *Lock) Gave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held--
}

// Held reports whether this process holds it.
func (l *Lock) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held > 0
}

// LastTried returns when an attempt was last answered; the zero time if none was.
func (l *Lock) LastTried() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tried
}

// Locks returns all locks that this process has asked for, by name.
func (m *Meter) Locks() map[string]*Lock {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.locks)
}

// LockEvent identifies a kind of finished call of a lock's backend.
type LockEvent struct {
	Type   string // acquire, release, extend, isLocked, lookup
	Result string // ok, fail
	Reason string // locked, expired, not-found, or the code of an error; empty if there is none
}

// LockEvents is the count of one kind of finished call.
func (m *Meter) LockEvents(e LockEvent) *Counter { return entry(m, m.lockEvents, e) }

// AwaitLockEvents makes the counts that people look at start at 0: a rate cannot
// see the first event of a series that begins with it.
func (m *Meter) AwaitLockEvents() {
	for _, e := range []LockEvent{
		{"acquire", "ok", ""}, {"acquire", "fail", "locked"},
		{"extend", "ok", ""}, {"extend", "fail", "expired"}, {"extend", "fail", "not-found"},
		{"release", "ok", ""}, {"release", "fail", "expired"}, {"release", "fail", "not-found"},
	} {
		m.LockEvents(e)
	}
}
