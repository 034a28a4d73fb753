package firestorelock

import (
	"slices"
	"sync"

	"github.com/dronefleet/dronefleet/lock"
)

// waiters are the acquisitions of this process that wait, by key, longest
// first. A release through the same backend wakes the first of them.
type waiters struct {
	mu    sync.Mutex
	queue map[string][]chan struct{}
}

// Watch implements lock.Waiter.
func (b *Backend) Watch(key string) (<-chan struct{}, func()) {
	key, err := lock.NormalizeKey(key)
	if err != nil {
		return nil, func() {}
	}
	w := &b.waiters
	free := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		w.queue = make(map[string][]chan struct{})
	}
	w.queue[key] = append(w.queue[key], free)
	return free, func() { w.leave(key, free) }
}

// leave removes a waiter. A signal it did not use goes to the next.
func (w *waiters) leave(key string, free chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	queue := w.queue[key]
	if i := slices.Index(queue, free); i >= 0 {
		queue = slices.Delete(queue, i, i+1)
	}
	if len(queue) == 0 {
		delete(w.queue, key)
		return
	}
	w.queue[key] = queue
	if len(free) > 0 {
		signal(queue[0])
	}
}

// wake tells the first waiter of a key.
func (w *waiters) wake(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if queue := w.queue[key]; len(queue) > 0 {
		signal(queue[0])
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // already told
	}
}
