package locks

import (
	"slices"
	"time"
)

// Wound-wait alone makes a hot counter slow: many transactions share the name,
// the oldest one's commit wounds all others, and each of those sleeps up to a
// second in its client before it tries again. So a name on which a transaction
// has lately lost its upgrade from shared to exclusive counts as hot, and the
// next reader of it lets the present holders finish first, for a short while. Only
// an owner without locks is that polite: nobody waits for it, so courtesy makes
// no circles.
// This is scheduling only: it changes when a lock is granted, never who wins.
// It therefore runs on real time, not on the injected clock.
const (
	hotFor       = 10 * time.Second       // since the last contended upgrade
	patience     = 100 * time.Millisecond // without any holder finishing
	mostPatience = 2 * time.Second        // altogether
)

// waitsOutOfCourtesy leaves a reader of a hot name behind one of its holders.
func (t *Table) waitsOutOfCourtesy(r *request) bool {
	if !r.courteous || len(t.hot) == 0 || r.owner.holdsAny() {
		return false
	}
	holder := t.hotHolder(r)
	if holder == nil {
		return false
	}
	now := time.Now()
	if r.patience == nil {
		r.began = now
		r.patience = time.AfterFunc(patience, func() { t.endCourtesy(r) })
	} else if now.Sub(r.began) < mostPatience {
		r.patience.Reset(patience)
	}
	r.polite = true
	holder.wait(r, t.clock.Now())
	return true
}

// hotHolder returns another owner that shares a hot name r asks for.
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

// endCourtesy lets r share the name after all.
func (t *Table) endCourtesy(r *request) {
	t.mu.Lock()
	defer t.unlock()
	if r.waiting {
		r.courteous = false
		t.tryGrant(r)
	}
}

// noteLostUpgrade marks the names that an aborted owner had shared and wanted to
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

// keepHot renews the mark of hot names that others queue for.
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

// coolDown forgets names that are no longer hot.
func (t *Table) coolDown() {
	now := time.Now()
	for name, until := range t.hot {
		if now.After(until) {
			delete(t.hot, name)
		}
	}
}
