package waitline

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/tasks"
)

// ListenAfter is how long the first of the waiting must have waited before the backend
// listens. Holders of the same process wake it sooner.
const ListenAfter = 100 * time.Millisecond

// ErrUnsupported is what Lines.Follow returns if there is nothing to listen to.
var ErrUnsupported = errors.New("the store has no listeners")

// Lines are the waiting acquisitions of this process, by key. A release through the same
// backend wakes the longest waiting; the listener hears of other releases.
type Lines struct {
	Clock lock.Clock
	Tasks *tasks.Group

	// Follow listens to a key and calls Free whenever its lock is seen free. It returns
	// when ctx ends or the store refuses; waiters poll in any case.
	Follow func(ctx context.Context, key string) error

	mu       sync.Mutex
	lines    map[string]*line
	disabled bool // the store has no listeners, or the backend is closed
}

// line is the queue of one key. Each signal costs the waiter one of its few tries, so a release
// gives one signal, even if this process and the listener both tell of it. Times are the
// server's.
type line struct {
	queue   []*waiter
	pending lock.Timer         // starts the listener
	stop    context.CancelFunc // ends the listener
	told    bool               // a signal was given, and the lock not found held since
	heldAt  time.Time          // when the lock was last found held
	freeAt  time.Time          // when the listener last saw it free
}

type waiter struct {
	free  chan struct{}
	since time.Time
}

// Watch is that of lock.Waiter.
func (ws *Lines) Watch(key string) (<-chan struct{}, func()) {
	key, err := lock.NormalizeKey(key)
	if err != nil {
		return nil, func() {}
	}
	w := &waiter{free: make(chan struct{}, 1), since: ws.Clock.Now()}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.lines == nil {
		ws.lines = make(map[string]*line)
	}
	l := ws.lines[key]
	if l == nil {
		l = &line{}
		ws.lines[key] = l
	}
	l.queue = append(l.queue, w)
	return w.free, func() { ws.leave(key, w) }
}

// leave removes a waiter. A signal that it did not use, or gave up over, goes to the
// next; the last one ends the listener.
func (ws *Lines) leave(key string, w *waiter) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	l := ws.lines[key]
	if l == nil {
		return
	}
	i := slices.Index(l.queue, w)
	if i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	}
	if len(l.queue) == 0 {
		delete(ws.lines, key)
		l.silence()
		return
	}
	if i == 0 && (l.told || len(w.free) > 0) {
		l.told = false
		l.wake()
	}
}

// Wake tells the first waiter of a key.
func (ws *Lines) Wake(key string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if l := ws.lines[key]; l != nil {
		l.wake()
	}
}

// Held notes that somebody found the lock of a key held, or took it.
func (ws *Lines) Held(key string, at time.Time) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if l := ws.lines[key]; l != nil {
		l.told = false
		if at.After(l.heldAt) {
			l.heldAt = at
		}
		l.wakeIfFree()
	}
}

// Free notes that the listener saw the lock of a key free.
func (ws *Lines) Free(key string, at time.Time) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if l := ws.lines[key]; l != nil {
		l.freeAt = at
		l.wakeIfFree()
	}
}

// Close ends all listeners for good.
func (ws *Lines) Close() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.disabled = true
	for _, l := range ws.lines {
		l.silence()
	}
}

// wake tells the first waiter, unless it was told already.
func (l *line) wake() {
	if l.told || len(l.queue) == 0 {
		return
	}
	l.told = true
	select {
	case l.queue[0].free <- struct{}{}:
	default: // an older one waits still
	}
}

// wakeIfFree wakes the first waiter if the listener saw the lock free after it was last held.
func (l *line) wakeIfFree() {
	if l.freeAt.After(l.heldAt) {
		l.wake()
	}
}

// silence ends the listener, or prevents it.
func (l *line) silence() {
	if l.pending != nil {
		l.pending.Stop()
		l.pending = nil
	}
	if l.stop != nil {
		l.stop()
	}
}

// ListenSoon starts a listener on a lock that was found held, if somebody keeps waiting for it.
func (ws *Lines) ListenSoon(key string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	l := ws.lines[key]
	if l == nil || ws.disabled || l.pending != nil || l.stop != nil {
		return
	}
	l.pending = ws.Clock.AfterFunc(ListenAfter, func() { ws.listen(key, l) })
}

// listen starts the listener of a line, unless its first waiter came too recently: that one may
// still be woken sooner.
func (ws *Lines) listen(key string, l *line) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	l.pending = nil
	if ws.disabled || len(l.queue) == 0 {
		return
	}
	if early := ListenAfter - ws.Clock.Now().Sub(l.queue[0].since); early > 0 {
		l.pending = ws.Clock.AfterFunc(early, func() { ws.listen(key, l) })
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	ws.Tasks.Begin()
	go func() {
		defer ws.Tasks.End()
		defer cancel()
		err := ws.Follow(ctx, key)
		ws.mu.Lock()
		defer ws.mu.Unlock()
		l.stop = nil
		if errors.Is(err, ErrUnsupported) {
			ws.disabled = true
		}
	}()
}

// Waiting is how many keys are waited for.
func (ws *Lines) Waiting() int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.lines)
}
