package locks

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"
)

// Limits bound how long to wait for locks and to hold them. Zero fields take the
// defaults.
type Limits struct {
	Wait time.Duration // longest wait for a lock; default 15 s
	Hold time.Duration // longest time that a holder may block others; default 20 s
}

// WithDefaults fills the zero fields.
func (l Limits) WithDefaults() Limits {
	if l.Wait == 0 {
		l.Wait = 15 * time.Second
	}
	if l.Hold == 0 {
		l.Hold = 20 * time.Second
	}
	return l
}

// Table is the lock table of one database. Its methods are safe for concurrent use.
type Table struct {
	clock  clockwork.Clock
	limits Limits

	mu         sync.Mutex
	lastAge    uint64
	attempts   uint64
	entries    map[string]*entry
	ranges     map[*HeldRange]struct{}
	committing map[*Owner]struct{} // owners with exclusive locks
	scanQueue  []*request          // waiting range requests, oldest first
	waiting    map[*request]struct{}
	woken      []*request           // to retry before the mutex is released
	hot        map[string]time.Time // until when names are hot, see yield.go
	stats      Stats
	changed    chan struct{} // closed when the set of waiting requests changes; nil without AwaitWaiting
}

// Stats counts what happened to lock requests.
type Stats struct {
	Waits    uint64 // requests that were not granted immediately
	Wounds   uint64 // owners aborted by an older one
	Timeouts uint64 // owners aborted because of Limits
}

// entry is a name with its holders and waiting requests.
type entry struct {
	shared    []*Owner
	exclusive *Owner
	queue     []*request // waiting requests, oldest first
}

// NewTable returns an empty table.
func NewTable(clock clockwork.Clock, limits Limits) *Table {
	return &Table{
		clock:      clock,
		limits:     limits.WithDefaults(),
		entries:    map[string]*entry{},
		ranges:     map[*HeldRange]struct{}{},
		committing: map[*Owner]struct{}{},
		waiting:    map[*request]struct{}{},
		hot:        map[string]time.Time{},
	}
}

// Share takes shared locks on all names, whether the documents exist or not, until
// the owner ends.
func (t *Table) Share(ctx context.Context, o *Owner, names []string) error {
	return t.acquire(ctx, &request{owner: o, names: names, mayYield: true})
}

// ShareRange takes a shared lock on the range that a query is about to scan, until
// the owner ends.
func (t *Table) ShareRange(ctx context.Context, o *Owner, scan Range) (*HeldRange, error) {
	r := &request{owner: o, scan: scan}
	if err := t.acquire(ctx, r); err != nil {
		return nil, err
	}
	return r.held, nil
}

// Narrow replaces a held range by a part of it, once it is known how far the query
// really looked because of its limit.
func (t *Table) Narrow(held *HeldRange, scan Range) {
	t.mu.Lock()
	defer t.unlock()
	held.scan = scan
	t.retry(&held.owner.blocked)
}

// Exclude takes exclusive locks on all names for a commit. prepare computes the
// effect of the commit on the newest documents. It runs under the table's mutex,
// possibly several times, the last time when the locks are granted. After that the
// owner can no longer be wounded, and the caller must call End.
func (t *Table) Exclude(ctx context.Context, o *Owner, names []string, prepare func() []Change) error {
	return t.acquire(ctx, &request{owner: o, names: names, exclusive: true, prepare: prepare})
}

// End releases all locks of the owner, after a commit, a rollback or a failure.
func (t *Table) End(o *Owner) {
	t.mu.Lock()
	defer t.unlock()
	t.abort(o, ErrEnded)
}

// Abort releases the locks of the owner, unless it is committing, and reports
// whether it did. The owner's waiting requests fail with cause.
func (t *Table) Abort(o *Owner, cause error) bool {
	t.mu.Lock()
	defer t.unlock()
	if o.phase != active {
		return false
	}
	t.abort(o, cause)
	return true
}

// Err returns why the owner has lost its locks, or nil.
func (t *Table) Err(o *Owner) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return o.cause
}

// Age returns the owner's rank, 0 before its first lock request.
func (t *Table) Age(o *Owner) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return o.age
}

// Busy reports whether the owner waits for a lock or is committing.
func (t *Table) Busy(o *Owner) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(o.waiting) > 0 || o.phase == committing
}

// Stats returns the counters so far.
func (t *Table) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stats
}

// AwaitWaiting waits until exactly n requests wait for locks, or the context ends.
// Tests use it to know that a request is blocked.
func (t *Table) AwaitWaiting(ctx context.Context, n int) error {
	for {
		t.mu.Lock()
		if len(t.waiting) == n {
			t.mu.Unlock()
			return nil
		}
		if t.changed == nil {
			t.changed = make(chan struct{})
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Tick enforces the limits. The server calls it as its clock advances.
func (t *Table) Tick() {
	t.mu.Lock()
	defer t.unlock()
	now := t.clock.Now()
	for r := range t.waiting {
		if !r.deadline.After(now) {
			t.stats.Timeouts++
			t.abort(r.owner, ErrWaitTimeout)
		}
	}
	for r := range t.waiting {
		for _, h := range t.holders(r) {
			if h.phase == active && h.blocks(nil) && now.Sub(h.blockingSince) >= t.limits.Hold {
				t.stats.Timeouts++
				t.abort(h, ErrLockDeadline)
			}
		}
	}
	t.coolDown()
}

// acquire grants the request, or waits until it is granted, its owner is aborted or
// the context ends.
func (t *Table) acquire(ctx context.Context, r *request) error {
	t.mu.Lock()
	o := r.owner
	if o.phase != active {
		defer t.mu.Unlock()
		t.noteLostUpgrade(r)
		return cmp.Or(o.cause, ErrEnded)
	}
	if o.attempt == 0 {
		t.attempts++
		o.attempt = t.attempts
	}
	if o.age == 0 {
		t.lastAge++
		o.age = t.lastAge
	}
	if blocked := t.tryGrant(r); !blocked {
		t.unlock()
		return nil
	}
	r.done = make(chan error, 1)
	r.deadline = t.clock.Now().Add(t.limits.Wait)
	t.enqueue(r)
	t.stats.Waits++
	t.unlock()

	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
	}
	t.mu.Lock()
	if r.waiting {
		t.dequeue(r)
		r.settle(ctx.Err())
		t.retry(&r.blocked)
	}
	t.unlock()
	return <-r.done
}

// tryGrant grants r if nothing blocks it. Otherwise it registers r with one of the
// owners or requests that block it, so that r is retried when that one is done, and
// reports true.
func (t *Table) tryGrant(r *request) (blocked bool) {
	r.yielding = false
	holders := t.woundYounger(r)
	if ahead := t.aheadInQueue(r); ahead != nil {
		ahead.blocked = append(ahead.blocked, r)
		return true
	}
	if len(holders) > 0 {
		holders[0].wait(r, t.clock.Now())
		return true
	}
	if t.yield(r) {
		return true
	}
	t.grant(r)
	return false
}

// woundYounger aborts the younger holders that block r and returns the remaining
// ones, which are older or committing.
func (t *Table) woundYounger(r *request) []*Owner {
	for {
		holders := t.holders(r)
		wounded := false
		for _, h := range holders {
			if h.phase == active && r.owner.olderThan(h) {
				t.stats.Wounds++
				t.abort(h, ErrWounded)
				wounded = true
			}
		}
		if !wounded {
			return holders
		}
	}
}

// holders returns all other owners with a lock that conflicts with r.
func (t *Table) holders(r *request) []*Owner {
	var found []*Owner
	for _, name := range r.names {
		e := t.entries[name]
		if e == nil {
			continue
		}
		if e.exclusive != nil && e.exclusive != r.owner {
			found = append(found, e.exclusive)
		}
		if r.exclusive {
			for _, h := range e.shared {
				if h != r.owner {
					found = append(found, h)
				}
			}
		}
	}
	switch {
	case r.scan != nil:
		for h := range t.committing {
			if h != r.owner && touchesAny(r.scan, h.changes) {
				found = append(found, h)
			}
		}
	case r.exclusive && len(found) == 0 && len(t.ranges) > 0:
		changes := r.prepare()
		for held := range t.ranges {
			if held.owner != r.owner && touchesAny(held.scan, changes) {
				found = append(found, held.owner)
			}
		}
	}
	return found
}

// aheadInQueue returns an older waiting request that r must not overtake. An owner
// that already shares a name overtakes the queue for that name, because the others
// wait for it anyway.
func (t *Table) aheadInQueue(r *request) *request {
	for _, name := range r.names {
		e := t.entries[name]
		if e == nil || slices.Contains(e.shared, r.owner) {
			continue
		}
		// The nearest one, so that a queue of n costs one retry per commit and not n.
		for _, w := range slices.Backward(e.queue) {
			if w.owner.olderThan(r.owner) && (w.exclusive || r.exclusive) {
				return w
			}
		}
	}
	switch {
	case r.scan != nil:
		return t.olderCommitTouching(r)
	case r.exclusive && len(t.scanQueue) > 0:
		changes := r.prepare()
		for _, w := range t.scanQueue {
			if w.owner.olderThan(r.owner) && touchesAny(w.scan, changes) {
				return w
			}
		}
	}
	return nil
}

// olderCommitTouching returns an older waiting commit that would change what the
// query r reads.
func (t *Table) olderCommitTouching(r *request) *request {
	for w := range t.waiting {
		if !w.exclusive || !w.owner.olderThan(r.owner) {
			continue
		}
		if touchesAny(r.scan, w.prepare()) {
			return w
		}
	}
	return nil
}

// grant gives r its locks.
func (t *Table) grant(r *request) {
	o := r.owner
	switch {
	case r.exclusive:
		o.changes = r.prepare()
		o.exclusive = r.names
		o.phase = committing
		for _, name := range r.names {
			t.entry(name).exclusive = o
		}
		t.committing[o] = struct{}{}
		t.keepHot(r)
	case r.scan != nil:
		r.held = &HeldRange{owner: o, scan: r.scan}
		o.ranges = append(o.ranges, r.held)
		t.ranges[r.held] = struct{}{}
	default:
		if o.shared == nil {
			o.shared = make(map[string]struct{}, len(r.names))
		}
		for _, name := range r.names {
			if _, held := o.shared[name]; held {
				continue
			}
			o.shared[name] = struct{}{}
			e := t.entry(name)
			e.shared = append(e.shared, o)
		}
	}
	if !r.waiting {
		return
	}
	t.dequeue(r)
	r.settle(nil)
	// Requests queued behind r now wait for its owner, or can be granted too.
	t.retry(&r.blocked)
}

// abort ends the owner with the given cause, releases its locks, answers its
// waiting requests and retries those that it blocked.
func (t *Table) abort(o *Owner, cause error) {
	if o.phase == ended {
		return
	}
	o.phase = ended
	o.cause = cause
	for r := range o.waiting {
		t.dequeue(r)
		t.noteLostUpgrade(r)
		r.settle(cause)
		t.retry(&r.blocked)
	}
	t.release(o)
	t.retry(&o.blocked)
}

// release removes the owner's locks from the table. The owner keeps its set of
// shared names for noteLostUpgrade.
func (t *Table) release(o *Owner) {
	for name := range o.shared {
		e := t.entries[name]
		if i := slices.Index(e.shared, o); i >= 0 {
			e.shared = slices.Delete(e.shared, i, i+1)
		}
		t.drop(name, e)
	}
	for _, name := range o.exclusive {
		e := t.entries[name]
		if e != nil && e.exclusive == o {
			e.exclusive = nil
			t.drop(name, e)
		}
	}
	for _, held := range o.ranges {
		delete(t.ranges, held)
	}
	o.exclusive, o.ranges, o.changes = nil, nil, nil
	delete(t.committing, o)
}

// retry schedules the requests for another try and empties their list.
func (t *Table) retry(blocked *[]*request) {
	t.woken = append(t.woken, *blocked...)
	*blocked = nil
}

// unlock tries the scheduled requests, oldest first, until none is left, and
// then unlocks the table. Granting one may schedule others.
func (t *Table) unlock() {
	for len(t.woken) > 0 {
		batch := t.woken
		t.woken = nil
		slices.SortStableFunc(batch, byAge)
		for i, r := range batch {
			if r.waiting {
				t.tryGrant(r)
			}
			if len(t.woken) > 0 { // an older one may have come free
				t.woken = append(t.woken, batch[i+1:]...)
				break
			}
		}
	}
	t.mu.Unlock()
}

func (t *Table) entry(name string) *entry {
	e := t.entries[name]
	if e == nil {
		e = &entry{}
		t.entries[name] = e
	}
	return e
}

// drop removes an entry without holders and waiting requests.
func (t *Table) drop(name string, e *entry) {
	if e.exclusive == nil && len(e.shared) == 0 && len(e.queue) == 0 {
		delete(t.entries, name)
	}
}

// enqueue makes r visible to later requests.
func (t *Table) enqueue(r *request) {
	r.waiting = true
	t.waiting[r] = struct{}{}
	t.notifyChanged()
	if r.owner.waiting == nil {
		r.owner.waiting = map[*request]struct{}{}
	}
	r.owner.waiting[r] = struct{}{}
	for _, name := range r.names {
		e := t.entry(name)
		e.queue = insertByAge(e.queue, r)
	}
	if r.scan != nil {
		t.scanQueue = insertByAge(t.scanQueue, r)
	}
}

// dequeue removes r from all queues.
func (t *Table) dequeue(r *request) {
	delete(t.waiting, r)
	t.notifyChanged()
	delete(r.owner.waiting, r)
	for _, name := range r.names {
		e := t.entries[name]
		e.queue = without(e.queue, r)
		t.drop(name, e)
	}
	t.scanQueue = without(t.scanQueue, r)
	r.waiting = false
}

// notifyChanged wakes AwaitWaiting.
func (t *Table) notifyChanged() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

func insertByAge(queue []*request, r *request) []*request {
	at, _ := slices.BinarySearchFunc(queue, r, byAge)
	return slices.Insert(queue, at, r)
}

func without(queue []*request, r *request) []*request {
	if i := slices.Index(queue, r); i >= 0 {
		return slices.Delete(queue, i, i+1)
	}
	return queue
}
