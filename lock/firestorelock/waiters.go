package firestorelock

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/lock"
)

// listenAfter is how long the first of the waiting must have waited before the
// lock document is listened to. Holders of the same process wake it sooner.
const listenAfter = 100 * time.Millisecond

// waiters are the acquisitions of this process that wait, by key. A release
// through the same backend wakes the longest waiting, and where that does not
// happen soon a listener on the lock document does, whoever releases.
type waiters struct {
	mu       sync.Mutex
	lines    map[string]*line
	disabled bool // the server has no listeners, or the backend is closed
}

// line is the queue of one key. A signal costs a try, and a waiter has not many: a
// release gives one, though this process and the listener both tell of it. Times are
// the server's.
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

// Watch implements lock.Waiter.
func (b *Backend) Watch(key string) (<-chan struct{}, func()) {
	key, err := lock.NormalizeKey(key)
	if err != nil {
		return nil, func() {}
	}
	ws := &b.waiters
	w := &waiter{free: make(chan struct{}, 1), since: b.clock.Now()}
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
func (ws *waiters) leave(key string, w *waiter) {
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

// wake tells the first waiter of a key.
func (ws *waiters) wake(key string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if l := ws.lines[key]; l != nil {
		l.wake()
	}
}

// held notes that somebody found the lock of a key held, or took it.
func (ws *waiters) held(key string, at time.Time) {
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

// free notes that the listener saw the lock of a key free.
func (ws *waiters) free(key string, at time.Time) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if l := ws.lines[key]; l != nil {
		l.freeAt = at
		l.wakeIfFree()
	}
}

// close ends all listeners for good.
func (ws *waiters) close() {
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

// wakeIfFree tells of what the listener saw, if the lock was not held later.
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

// listenSoon arranges for a listener on a lock that was found held, if somebody
// waits for it and goes on waiting.
func (b *Backend) listenSoon(at address) {
	ws := &b.waiters
	ws.mu.Lock()
	defer ws.mu.Unlock()
	l := ws.lines[at.key]
	if l == nil || ws.disabled || l.pending != nil || l.stop != nil {
		return
	}
	l.pending = b.clock.AfterFunc(listenAfter, func() { b.listen(at, l) })
}

// listen starts the listener of a line. If its first waiter came only just, that may
// still be woken sooner, and is waited for as well.
func (b *Backend) listen(at address, l *line) {
	ws := &b.waiters
	ws.mu.Lock()
	defer ws.mu.Unlock()
	l.pending = nil
	if ws.disabled || len(l.queue) == 0 {
		return
	}
	if early := listenAfter - b.clock.Now().Sub(l.queue[0].since); early > 0 {
		l.pending = b.clock.AfterFunc(early, func() { b.listen(at, l) })
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	b.tasks.begin()
	go func() {
		defer b.tasks.end()
		defer cancel()
		err := b.follow(ctx, at)
		ws.mu.Lock()
		defer ws.mu.Unlock()
		l.stop = nil
		if rpcCode(err) == codes.Unimplemented {
			ws.disabled = true
		}
	}()
}

// follow wakes the first waiter whenever the lock is seen absent or over. It
// returns when ctx ends or the server refuses; waiters poll in any case.
func (b *Backend) follow(ctx context.Context, at address) error {
	changes := at.lock.Snapshots(ctx)
	defer changes.Stop()
	for {
		doc, err := changes.Next()
		if err != nil {
			return err
		}
		if !doc.Exists() || !lockOf(doc).liveAt(b.instantSeen(doc.ReadTime)) {
			b.waiters.free(at.key, doc.ReadTime)
		}
	}
}
