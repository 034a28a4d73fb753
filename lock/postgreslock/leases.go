package postgreslock

import (
	"context"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/lock"
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

// tasks is the work in the background.
type tasks struct {
	running sync.WaitGroup
	mu      sync.Mutex
	closed  bool
}

// run starts f; after close it does nothing.
func (t *tasks) run(f func()) (started bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.running.Go(f)
	}
	return !t.closed
}

// close refuses further work and waits for what runs.
func (t *tasks) close(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	done := make(chan struct{})
	go func() {
		t.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return lock.AbortedBy(ctx).At("close", "", "")
	}
}

// Close waits for background work, at most until ctx
// ends (ErrAborted). The pool stays open and locks stay held; calls still work, but nothing
// is done in the background any more.
func (b *Backend) Close(ctx context.Context) error {
	return b.tasks.close(ctx)
}
