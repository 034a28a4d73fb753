package firestorelock

import (
	"context"
	"sync"

	"github.com/dronefleet/dronefleet/lock"
)

// turns serializes the calls about one lock id.
type turns struct {
	mu    sync.Mutex
	taken map[string]chan struct{} // closed when the turn ends
}

// take waits for the turn of a lock id, at most until ctx ends; done ends the turn.
func (t *turns) take(ctx context.Context, lockID string) (done func(), err error) {
	for {
		t.mu.Lock()
		other := t.taken[lockID]
		if other == nil {
			mine := make(chan struct{})
			if t.taken == nil {
				t.taken = make(map[string]chan struct{})
			}
			t.taken[lockID] = mine
			t.mu.Unlock()
			return func() { t.giveBack(lockID, mine) }, nil
		}
		t.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, lock.AbortedBy(ctx)
		}
	}
}

func (t *turns) giveBack(lockID string, mine chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.taken, lockID)
	close(mine)
}
