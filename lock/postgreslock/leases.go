package postgreslock

import (
	"sync"
	"time"
)

// leases remembers until when the leases last that this backend was granted, by lock id.
type leases struct {
	mu        sync.Mutex
	deadlines map[string]time.Time
	pruneAt   int // size at which those that are over are looked for
}

const firstPrune = 1024

func (l *leases) put(lockID string, deadline time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.deadlines == nil {
		l.deadlines, l.pruneAt = make(map[string]time.Time), firstPrune
	}
	l.deadlines[lockID] = deadline
	if len(l.deadlines) < l.pruneAt {
		return
	}
	for id, deadline := range l.deadlines {
		if time.Now().After(deadline) {
			delete(l.deadlines, id)
		}
	}
	l.pruneAt = max(firstPrune, 2*len(l.deadlines))
}

// lasts tells whether a lease is known that is not over yet.
func (l *leases) lasts(lockID string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.deadlines[lockID])
}

func (l *leases) forget(lockID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.deadlines, lockID)
}
