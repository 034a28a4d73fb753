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

// Watcher collects every commit after the snapshot it was opened with, in order.
type Watcher struct {
	db     *DB
	mu     sync.Mutex
	events []Event
	signal chan struct{} // holds one token when events are waiting
}

// Watch opens a snapshot and a watcher of all commits after it.
func (db *DB) Watch() (*Snapshot, *Watcher) {
	db.mu.Lock()
	defer db.mu.Unlock()
	w := &Watcher{db: db, signal: make(chan struct{}, 1)}
	db.watchers[w] = struct{}{}
	if len(db.inFlight) > 0 {
		return db.open(db.inFlight[0] - 1), w
	}
	db.last = max(db.last, db.now())
	return db.open(db.last), w
}

// notify adds a commit. The DB's mutex is held, versions are published.
func (w *Watcher) notify(changes []Change, at int64) {
	event := Event{Time: at, Changes: make([]Transition, len(changes))}
	for i, c := range changes {
		event.Changes[i] = Transition{Name: c.Name, Before: w.db.before(c.Name), After: c.Doc}
	}
	w.mu.Lock()
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

// Take returns the commits since the last call.
func (w *Watcher) Take() []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.events
	w.events = nil
	return events
}

// Close stops collecting.
func (w *Watcher) Close() {
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	delete(w.db.watchers, w)
}
