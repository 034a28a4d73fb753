package store

import (
	"sync"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
)

// Event is one published commit, with each document before and after it.
type Event struct {
	Time    int64
	Changes []Transition
}

// Transition is one document's step in a commit; nil means it does not exist.
type Transition struct {
	Name          string
	Before, After *firestorepb.Document
}

// Watcher collects every commit published since it was opened, in order.
type Watcher struct {
	db     *DB
	mu     sync.Mutex
	events []Event
	missed int64         // time of the newest event dropped because more came than mostEvents, 0 for none
	signal chan struct{} // holds one token when events are waiting
}

// mostEvents bounds what is kept for a watcher that does not keep up.
const mostEvents = 4096

// Watch opens a watcher of all commits published from now on.
func (db *DB) Watch() *Watcher {
	db.mu.Lock()
	defer db.mu.Unlock()
	w := &Watcher{db: db, signal: make(chan struct{}, 1)}
	db.watchers[w] = struct{}{}
	return w
}

// notify adds a commit. The DB's mutex is held, versions are published.
func (w *Watcher) notify(changes []Change, at int64) {
	event := Event{Time: at, Changes: make([]Transition, len(changes))}
	for i, c := range changes {
		event.Changes[i] = Transition{Name: c.Name, Before: w.db.before(c.Name), After: c.Doc}
	}
	w.mu.Lock()
	if len(w.events) == mostEvents {
		w.missed, w.events = w.events[mostEvents-1].Time, nil
	}
	w.events = append(w.events, event)
	w.mu.Unlock()
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// before returns the state that the newest version of a document replaced.
func (db *DB) before(name string) *firestorepb.Document {
	db.index.RLock()
	r := db.records[name]
	db.index.RUnlock()
	if v := r.newest.Load().prev.Load(); v != nil {
		return v.doc
	}
	return nil
}

// Ready receives when Take has something to return.
func (w *Watcher) Ready() <-chan struct{} { return w.signal }

// Take returns the commits since the last call, or the newest of them and the
// time of the newest missed one when there were too many to keep.
func (w *Watcher) Take() (events []Event, missed int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	events, missed = w.events, w.missed
	w.events, w.missed = nil, 0
	return events, missed
}

// Close stops collecting.
func (w *Watcher) Close() {
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	delete(w.db.watchers, w)
}
