package leasetable

import "sync"

// firstPrune is the size at which leases that are over are first looked for.
const firstPrune = 1024

// Table holds what a backend remembers of its leases. It is safe for concurrent use.
type Table[L any] struct {
	mu      sync.Mutex
	leases  map[string]L
	pruneAt int
}

// Put remembers a lease, and drops those that are over whenever the table has doubled.
func (t *Table[L]) Put(lockID string, lease L, isOver func(L) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leases == nil {
		t.leases, t.pruneAt = make(map[string]L), firstPrune
	}
	t.leases[lockID] = lease
	if len(t.leases) < t.pruneAt {
		return
	}
	for id, lease := range t.leases {
		if isOver(lease) {
			delete(t.leases, id)
		}
	}
	t.pruneAt = max(firstPrune, 2*len(t.leases))
}

// Get returns what is remembered of a lease.
func (t *Table[L]) Get(lockID string) (lease L, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	lease, known = t.leases[lockID]
	return lease, known
}

// Forget drops a lease.
func (t *Table[L]) Forget(lockID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.leases, lockID)
}

// Len is the number of leases.
func (t *Table[L]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.leases)
}
