package store

import (
	"errors"
	"slices"
	"strings"

	"cloud.google.com/go/firestore/apiv1/firestorepb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// Reasons why there is no snapshot at a given time.
var (
	ErrFuture = errors.New("store: the snapshot time is in the future")
	ErrTooOld = errors.New("store: the snapshot time is older than the retention")
)

// Snapshot is the state of the database at one time. It sees every commit up to Time
// completely, and none after it. Close it, so that old versions can be dropped.
type Snapshot struct {
	Time int64
	db   *DB
}

// Now opens a snapshot that sees every acknowledged commit. All later commits get a
// later time. It does not see commits that are being saved.
func (db *DB) Now() *Snapshot {
	db.mu.Lock()
	defer db.mu.Unlock()
	if len(db.inFlight) > 0 {
		return db.open(db.inFlight[0] - 1)
	}
	db.last = max(db.last, db.now())
	return db.open(db.last)
}

// At opens the snapshot at a given time. It waits for earlier commits that are being
// saved. It fails with ErrFuture or ErrTooOld.
func (db *DB) At(time int64) (*Snapshot, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	switch {
	case time > max(db.last, db.now()):
		return nil, ErrFuture
	case time < max(db.floor, db.now()-db.retention):
		return nil, ErrTooOld
	}
	db.last = max(db.last, time)
	s := db.open(time)
	for len(db.inFlight) > 0 && db.inFlight[0] <= time {
		db.published.Wait()
	}
	return s, nil
}

func (db *DB) open(time int64) *Snapshot {
	s := &Snapshot{Time: time, db: db}
	db.snapshots[s] = struct{}{}
	return s
}

// Close releases the versions that only this snapshot needs. Closing twice is
// harmless.
func (s *Snapshot) Close() {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	delete(s.db.snapshots, s)
}

// Get returns a document, nil if it does not exist.
func (s *Snapshot) Get(name string) *firestorepb.Document {
	s.db.index.RLock()
	r := s.db.records[name]
	s.db.index.RUnlock()
	if r == nil {
		return nil
	}
	return r.at(s.Time)
}

// Version is the update time of a document, or of its deletion. It is 0 if neither is
// known.
func (s *Snapshot) Version(name string) int64 {
	s.db.index.RLock()
	r := s.db.records[name]
	s.db.index.RUnlock()
	if r == nil {
		return 0
	}
	return r.versionAt(s.Time)
}

// Scope selects collections, see query.Scope.
type Scope struct {
	Parent         string
	CollectionID   string
	AllDescendants bool
}

// Scan yields the existing documents in scope, collection by collection, each in name
// order, until yield returns false. If start is not empty, the scan of each
// collection begins at that name.
func (s *Snapshot) Scan(scope Scope, start string, yield func(*firestorepb.Document) bool) {
	for _, c := range s.db.collectionsUnder(scope.Parent, scope.CollectionID, scope.AllDescendants) {
		more := c.all(start, func(r *record) bool {
			doc := r.at(s.Time)
			return doc == nil || yield(doc)
		})
		if !more {
			return
		}
	}
}

// CollectionIDs lists, in order, the ids of the collections directly under parent that
// have a document, or a document below a missing one.
func (s *Snapshot) CollectionIDs(parent string) []string {
	ids := map[string]bool{}
	for _, c := range s.db.collectionsUnder(parent, "", true) {
		id, _, _ := strings.Cut(c.path[len(parent)+1:], "/")
		if !ids[id] && s.holdsAny(c) {
			ids[id] = true
		}
	}
	sorted := make([]string, 0, len(ids))
	for id := range ids {
		sorted = append(sorted, id)
	}
	slices.Sort(sorted)
	return sorted
}

// MissingParents lists, in name order, the documents in the collection at path that do
// not exist but have documents below them.
func (s *Snapshot) MissingParents(path string) []string {
	found := map[string]bool{}
	for _, c := range s.db.collectionsUnder(path, "", true) {
		id, _, _ := strings.Cut(c.path[len(path)+1:], "/")
		name := path + "/" + id
		if !found[name] && s.Get(name) == nil && s.holdsAny(c) {
			found[name] = true
		}
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.SortFunc(names, value.CompareNameStrings)
	return names
}

func (s *Snapshot) holdsAny(c *collection) bool {
	return !c.all("", func(r *record) bool { return r.at(s.Time) == nil })
}
