package firestorelock

import (
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

// held is what the backend remembers of a lease it acquired.
type held struct {
	base        string
	version     time.Time // update time of the lock document
	expiresAtMs int64
	serverEnd   time.Time // when it is over by the server's clock; zero if unknown
	deadline    time.Time // when the holder must stop
	nested      bool
}

// leaseTable remembers the leases acquired through this backend, by lock id.
// It makes keyed calls cheap, and it is the only way to find a nested lock by
// its id. Losing an entry costs requests; calls about a nested lock without its
// key then find nothing, and it ends with its ttl. So an entry goes only with
// its lease.
type leaseTable struct {
	mu      sync.Mutex
	leases  map[string]held
	pruneAt int // size at which forgotten leases are looked for
}

const firstPrune = 1024

func (t *leaseTable) put(lockID string, h held, nowMs int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leases == nil {
		t.leases = make(map[string]held)
		t.pruneAt = firstPrune
	}
	t.leases[lockID] = h
	if len(t.leases) < t.pruneAt {
		return
	}
	for id, h := range t.leases {
		if !lock.IsLive(h.expiresAtMs, nowMs) {
			delete(t.leases, id)
		}
	}
	t.pruneAt = max(firstPrune, 2*len(t.leases))
}

func (t *leaseTable) get(lockID string) (held, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, ok := t.leases[lockID]
	return h, ok
}

func (t *leaseTable) forget(lockID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.leases, lockID)
}
