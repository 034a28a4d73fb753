package store

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/jonboulle/clockwork"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// DB is one database. Its methods are safe for concurrent use.
type DB struct {
	clock     clockwork.Clock
	retention int64 // how long superseded versions stay readable, µs

	mu         sync.Mutex // orders commits and snapshots
	published  sync.Cond  // signalled when commits leave inFlight
	last       int64      // newest time of a commit or snapshot
	floor      int64      // oldest time that can be read
	inFlight   []int64    // times of commits being saved, oldest first
	snapshots  map[*Snapshot]struct{}
	superseded []supersession // oldest first
	watchers   map[*Watcher]struct{}
	committer  *committer // nil: memory only

	index       sync.RWMutex // guards the three maps but not what they point to
	records     map[string]*record
	collections map[string]*collection   // by full path
	byID        map[string][]*collection // by collection id, with any parent
}

// supersession records that a version was replaced, so that the old one can be
// dropped later.
type supersession struct {
	time   int64
	record *record
}

// Options configure a DB.
type Options struct {
	Clock     clockwork.Clock
	Retention time.Duration // how long old versions stay readable
}

// New returns an empty database in memory.
func New(opts Options) *DB {
	db := &DB{
		clock:       opts.Clock,
		retention:   opts.Retention.Microseconds(),
		snapshots:   map[*Snapshot]struct{}{},
		watchers:    map[*Watcher]struct{}{},
		records:     map[string]*record{},
		collections: map[string]*collection{},
		byID:        map[string][]*collection{},
	}
	db.published.L = &db.mu
	return db
}

// Change is the new state of a document in a commit. Doc is nil for a deletion. The
// commit sets the times of Doc, which must not be changed afterwards.
type Change struct {
	Name      string
	Doc       *firestorepb.Document
	Recreated bool // the commit deletes the document before it creates Doc
}

// Commit publishes the changes in one step and returns the commit time. This is
// not before earliest, and later than every earlier commit and every snapshot
// taken so far. With a Saver it returns once the commit is saved. A commit without
// changes is saved too: its time must not be used again after a restart.
func (db *DB) Commit(changes []Change, earliest int64) (int64, error) {
	db.mu.Lock()
	db.last = max(db.last+1, db.now(), earliest)
	at := db.last
	db.stamp(changes, at)
	if db.committer == nil {
		db.publish(changes, at)
		db.mu.Unlock()
		return at, nil
	}
	db.inFlight = append(db.inFlight, at)
	done := db.committer.submit(changes, at)
	db.mu.Unlock()
	return at, <-done
}

// stamp sets the times of the documents.
func (db *DB) stamp(changes []Change, at int64) {
	stamp := Timestamp(at)
	for _, c := range changes {
		if c.Doc == nil {
			continue
		}
		c.Doc.UpdateTime, c.Doc.CreateTime = stamp, stamp
		if before := db.Newest(c.Name); before != nil && !c.Recreated {
			c.Doc.CreateTime = before.CreateTime
		}
	}
}

// publish makes a commit visible. Callers hold mu.
func (db *DB) publish(changes []Change, at int64) {
	for _, c := range changes {
		r := db.record(c.Name)
		v := &version{time: at, doc: c.Doc}
		if old := r.newest.Load(); old != nil {
			v.prev.Store(old)
			db.superseded = append(db.superseded, supersession{at, r})
		}
		r.newest.Store(v)
	}
	for w := range db.watchers {
		w.notify(changes, at)
	}
	db.forget(64 + 2*len(changes)) // more than a commit can add
}

// record returns the record of a name, which it creates if necessary. Callers hold
// mu.
func (db *DB) record(name string) *record {
	db.index.RLock()
	r := db.records[name]
	db.index.RUnlock()
	if r != nil {
		return r
	}
	r = &record{name: name}
	path := collectionOf(name)
	db.index.Lock()
	db.records[name] = r
	c := db.collections[path]
	if c == nil {
		c = newCollection(path)
		db.collections[path] = c
		db.byID[c.id()] = append(slices.Clip(db.byID[c.id()]), c)
	}
	db.index.Unlock()
	c.insert(r)
	return r
}

// forget drops up to limit superseded versions that are older than the retention and
// that no open snapshot needs.
func (db *DB) forget(limit int) {
	horizon := db.now() - db.retention
	if len(db.superseded) == 0 || db.superseded[0].time > horizon {
		return
	}
	for s := range db.snapshots {
		horizon = min(horizon, s.Time)
	}
	done := 0
	for _, s := range db.superseded[:min(limit, len(db.superseded))] {
		if s.time > horizon {
			break
		}
		if s.record.cut(horizon) {
			db.drop(s.record)
		}
		done++
	}
	db.superseded = db.superseded[done:]
}

// drop removes a record that has only a tombstone left.
func (db *DB) drop(r *record) {
	db.index.Lock()
	defer db.index.Unlock()
	if db.records[r.name] != r {
		return
	}
	delete(db.records, r.name)
	path := collectionOf(r.name)
	c := db.collections[path]
	c.remove(r)
	if c.empty() {
		delete(db.collections, path)
		rest := slices.DeleteFunc(slices.Clone(db.byID[c.id()]), func(o *collection) bool { return o == c })
		if len(rest) == 0 {
			delete(db.byID, c.id())
		} else {
			db.byID[c.id()] = rest
		}
	}
}

func (db *DB) now() int64 { return db.clock.Now().UnixMicro() }

// Newest returns the last published state of a document, nil if it does not exist.
func (db *DB) Newest(name string) *firestorepb.Document {
	db.index.RLock()
	r := db.records[name]
	db.index.RUnlock()
	if r == nil {
		return nil
	}
	if v := r.newest.Load(); v != nil {
		return v.doc
	}
	return nil
}

// collectionOf returns the path of the collection of a document.
func collectionOf(document string) string {
	return document[:strings.LastIndexByte(document, '/')]
}

// Timestamp converts a time of this package.
func Timestamp(us int64) *timestamppb.Timestamp {
	return timestamppb.New(time.UnixMicro(us))
}

// Micros converts to a time of this package, rounding down.
func Micros(t *timestamppb.Timestamp) int64 { return t.AsTime().UnixMicro() }

// collectionsUnder lists, in name order, the collections of parent, which is the full
// name of a document or the root, and with allDescendants also those of all documents
// below it. If id is not empty, only collections with that id.
func (db *DB) collectionsUnder(parent, id string, allDescendants bool) []*collection {
	db.index.RLock()
	defer db.index.RUnlock()
	if id != "" && !allDescendants {
		if c := db.collections[parent+"/"+id]; c != nil {
			return []*collection{c}
		}
		return nil
	}
	var found []*collection
	candidates := maps.Values(db.collections)
	if id != "" {
		candidates = slices.Values(db.byID[id])
	}
	for c := range candidates {
		rest, below := strings.CutPrefix(c.path, parent+"/")
		if below && (allDescendants || !strings.Contains(rest, "/")) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *collection) int { return value.CompareNameStrings(a.path, b.path) })
	return found
}
