package store

import (
	"sync"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
)

// Event is a published commit, with each document before and after it.
type Event struct {
	Time    int64
	Changes []Transition
}

// Transition is the effect of a commit on a document. Before or After is nil if the
// document does not exist then.
type Transition struct {
	Name          string
	Before, After *firestorepb.Document
}

// Watcher collects all commits that are published after it was opened, in order.
type Watcher struct {
	db     *DB
	mu     sync.Mutex
	events []Event
	missed int64         // time of the newest dropped event, 0 if none was dropped
	signal chan struct{} // holds a token while events are waiting
}

// maxEvents bounds what is kept for a watcher that falls behind.
const maxEvents = 4096

// Watch opens a watcher of all commits that are published from now on.
func (db *DB) Watch() *Watcher {
	db.mu.Lock()
	defer db.mu.Unlock()
	w := &Watcher{db: db, signal: make(chan struct{}, 1)}
	db.watchers[w] = struct{}{}
	return w
}

// notify adds a commit whose versions are published. Callers hold the DB's mutex.
func (w *Watcher) notify(changes []Change, at int64) {
	event := Event{Time: at, Changes: make([]Transition, len(changes))}
	for i, c := range changes {
		event.Changes[i] = Transition{Name: c.Name, Before: w.db.before(c.Name), After: c.Doc}
	}
	w.mu.Lock()
	if len(w.events) == maxEvents {
		w.missed, w.events = w.events[maxEvents-1].Time, nil
	}
	w.events = append(w.events, event)
	w.mu.Unlock()
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// before returns the state of a document before its newest version.
func (db *DB) before(name string) *firestorepb.Document {
	db.index.RLock()
	r := db.records[name]
	db.index.RUnlock()
	if v := r.newest.Load().prev.Load(); v != nil {
		return v.doc
	}
	return nil
}

// Ready receives when Take has commits to return.
func (w *Watcher) Ready() <-chan struct{} { return w.signal }

// Take returns the commits since the last call. If there were too many to keep, it
// returns the newest of them and the time of the newest one that was dropped.
func (w *Watcher) Take() (events []Event, missed int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	events, missed = w.events, w.missed
	w.events, w.missed = nil, 0
	return events, missed
}

// Close ends the watcher.
func (w *Watcher) Close() {
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	delete(w.db.watchers, w)
}
