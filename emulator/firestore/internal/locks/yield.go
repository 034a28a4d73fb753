package locks

import (
	"slices"
	"time"
)

// Wound-wait alone makes a hot counter slow: many transactions share the name, the
// commit of the oldest aborts all others, and each of those pauses up to a second
// in its client before it retries. So a name is hot for a while after a transaction
// lost its upgrade from shared to exclusive, and a new reader of a hot name yields:
// it lets the present holders finish first, for a short time. Only an owner without
// locks yields. Nobody waits for such an owner, so yielding cannot deadlock.
//
// Yielding changes when a lock is granted, never who wins. It therefore runs on
// real time and not on the injected clock.
const (
	hotFor   = 10 * time.Second       // since the last contended upgrade
	yieldFor = 100 * time.Millisecond // while no holder finishes
	maxYield = 2 * time.Second        // in total
)

// yield makes a new reader of a hot name wait for one of its holders, and reports
// whether it does.
func (t *Table) yield(r *request) bool {
	if !r.mayYield || len(t.hot) == 0 || r.owner.holdsAny() {
		return false
	}
	holder := t.hotHolder(r)
	if holder == nil {
		return false
	}
	now := time.Now()
	if r.yieldTimer == nil {
		r.yieldBegan = now
		r.yieldTimer = time.AfterFunc(yieldFor, func() { t.endYield(r) })
	} else if now.Sub(r.yieldBegan) < maxYield {
		r.yieldTimer.Reset(yieldFor)
	}
	r.yielding = true
	holder.wait(r, t.clock.Now())
	return true
}

// hotHolder returns another owner that shares a hot name that r requests.
func (t *Table) hotHolder(r *request) *Owner {
	for _, name := range r.names {
		until, hot := t.hot[name]
		e := t.entries[name]
		if !hot || e == nil || time.Now().After(until) || slices.Contains(e.shared, r.owner) {
			continue
		}
		if len(e.shared) > 0 {
			return e.shared[0]
		}
	}
	return nil
}

// endYield grants r its locks if it still waits.
func (t *Table) endYield(r *request) {
	t.mu.Lock()
	defer t.unlock()
	if r.waiting {
		r.mayYield = false
		t.tryGrant(r)
	}
}

// noteLostUpgrade marks as hot the names that an aborted owner shared and wanted to
// write.
func (t *Table) noteLostUpgrade(r *request) {
	if !r.exclusive {
		return
	}
	for _, name := range r.names {
		if _, shared := r.owner.shared[name]; shared {
			t.hot[name] = time.Now().Add(hotFor)
		}
	}
}

// keepHot renews the mark of hot names that other requests queue for.
func (t *Table) keepHot(r *request) {
	if len(t.hot) == 0 {
		return
	}
	for _, name := range r.names {
		if _, hot := t.hot[name]; hot && len(t.entries[name].queue) > 0 {
			t.hot[name] = time.Now().Add(hotFor)
		}
	}
}

// coolDown removes names that are no longer hot.
func (t *Table) coolDown() {
	now := time.Now()
	for name, until := range t.hot {
		if now.After(until) {
			delete(t.hot, name)
		}
	}
}
