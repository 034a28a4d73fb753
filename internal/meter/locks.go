package meter

import (
	"maps"
	"sync"
	"time"
)

// Names of the locks.
const (
	LockCycle   = "cycle"   // keeps the cycles of a depot apart
	LockSweeper = "sweeper" // keeps sweeps apart
)

// Lock is one lock, or the locks of one purpose, as seen from this process.
type Lock struct {
	// Wait is the time spent in trying to acquire, granted or not.
	Wait Histogram

	mu    sync.Mutex
	held  int
	tried time.Time
}

// Lock is the lock of that name.
func (m *Meter) Lock(name string) *Lock { return entry(m, m.locks, name) }

// Tried notes an attempt that began at began and ended just now with a word of
// the backend: granted, or held by somebody else. An attempt that failed is
// none.
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

// Gave notes that a lock that was granted is given up, or lost.
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

// LastTried is when an attempt last got an answer; the zero time if none did.
func (l *Lock) LastTried() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tried
}

// Locks are all locks this process has asked for by name.
func (m *Meter) Locks() map[string]*Lock {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.locks)
}
