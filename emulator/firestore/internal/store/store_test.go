package store

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/jonboulle/clockwork"
	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const root = "projects/p/databases/d/documents"

func put(path string) Change {
	return Change{Name: root + "/" + path, Doc: &pb.Document{Name: root + "/" + path}}
}

func del(path string) Change { return Change{Name: root + "/" + path} }

func commit(t testing.TB, db *DB, changes ...Change) int64 {
	t.Helper()
	at, err := db.Commit(changes, 0)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func scan(s *Snapshot, scope Scope, start string) []string {
	var names []string
	s.Scan(scope, start, func(d *pb.Document) bool {
		names = append(names, d.GetName())
		return true
	})
	return names
}

// Every snapshot lists exactly the documents of its time, in name order, whatever was
// created and deleted (E-ST-01, E-ST-03).
func TestDB_SnapshotsMatchModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := clockwork.NewFakeClock()
		db := New(Options{Clock: clock, Retention: time.Hour})
		type past struct {
			snapshot *Snapshot
			names    []string
		}
		model := map[string]bool{}
		var kept []past
		ids := rapid.OneOf(rapid.StringMatching("[a-c]{1,2}"), rapid.StringMatching("__id[0-9]{1,2}__"))
		for range rapid.IntRange(1, 60).Draw(t, "commits") {
			id := ids.Draw(t, "id")
			name := root + "/c/" + id
			var err error
			if rapid.Bool().Draw(t, "delete") {
				delete(model, name)
				_, err = db.Commit([]Change{del("c/" + id)}, 0)
			} else {
				model[name] = true
				_, err = db.Commit([]Change{put("c/" + id)}, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			if rapid.IntRange(0, 3).Draw(t, "keep") == 0 {
				names := []string{}
				for name := range model {
					names = append(names, name)
				}
				slices.SortFunc(names, value.CompareNameStrings)
				kept = append(kept, past{db.Now(), names})
			}
			clock.Advance(time.Duration(rapid.IntRange(0, 40).Draw(t, "minutes")) * time.Minute)
		}
		for _, p := range kept {
			got := scan(p.snapshot, Scope{Parent: root, CollectionID: "c"}, "")
			if !slices.Equal(got, p.names) {
				t.Fatalf("at %d: %v, want %v", p.snapshot.Time, got, p.names)
			}
			p.snapshot.Close()
		}
	})
}

// A collection that is much larger than a chunk stays ordered, whichever end grows.
func TestDB_OrdersLargeCollection(t *testing.T) {
	db := New(Options{Clock: clockwork.NewFakeClock(), Retention: time.Hour})
	const n = 3000
	for i := range n / 2 {
		commit(t, db, put(fmt.Sprintf("c/%05d", i)))
		commit(t, db, put(fmt.Sprintf("c/%05d", n-1-i)))
	}
	s := db.Now()
	defer s.Close()
	all := scan(s, Scope{Parent: root, CollectionID: "c"}, "")
	if len(all) != n || !slices.IsSorted(all) {
		t.Errorf("%d names, sorted %v; want %d", len(all), slices.IsSorted(all), n)
	}
	from := scan(s, Scope{Parent: root, CollectionID: "c"}, root+"/c/02000")
	if len(from) != 1000 || from[0] != root+"/c/02000" {
		t.Errorf("from 02000: %d names", len(from))
	}
}

// Concurrent readers see a commit completely or not at all (E-ST-01).
func TestDB_CommitsAreAtomic(t *testing.T) {
	db := New(Options{Clock: clockwork.NewRealClock(), Retention: time.Hour})
	var group sync.WaitGroup
	stop := make(chan struct{})
	group.Go(func() {
		defer close(stop)
		for i := range 2000 {
			a, b := put("c/a"), put("c/b")
			n := &pb.Value{ValueType: &pb.Value_IntegerValue{IntegerValue: int64(i)}}
			a.Doc.Fields, b.Doc.Fields = map[string]*pb.Value{"n": n}, map[string]*pb.Value{"n": n}
			if _, err := db.Commit([]Change{a, b}, 0); err != nil {
				t.Error(err)
			}
		}
	})
	for range 2 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := db.Now()
				a, b := s.Get(root+"/c/a"), s.Get(root+"/c/b")
				if a.GetFields()["n"].GetIntegerValue() != b.GetFields()["n"].GetIntegerValue() || (a == nil) != (b == nil) {
					t.Errorf("half a commit: %v and %v", a, b)
				}
				s.Close()
			}
		})
	}
	group.Wait()
}

// Superseded versions and deleted names are dropped when nothing can read them
// (E-ST-05).
func TestDB_DropsOldVersions(t *testing.T) {
	clock := clockwork.NewFakeClock()
	db := New(Options{Clock: clock, Retention: time.Minute})
	for range 100 {
		commit(t, db, put("c/d"), put("gone/g"))
	}
	commit(t, db, del("gone/g"))
	clock.Advance(time.Hour)
	for range 5 {
		commit(t, db, put("other/o"))
	}
	versions := 0
	for v := db.records[root+"/c/d"].newest.Load(); v != nil; v = v.prev.Load() {
		versions++
	}
	if versions != 1 {
		t.Errorf("%d versions are kept, want 1", versions)
	}
	if db.records[root+"/gone/g"] != nil || db.collections[root+"/gone"] != nil || db.byID["gone"] != nil {
		t.Error("a deleted name is kept")
	}
}

// slowSaver holds every batch until the test lets it proceed.
type slowSaver struct {
	batches chan []Commit
	proceed chan error
}

func (s *slowSaver) Save(batch []Commit) error {
	s.batches <- batch
	return <-s.proceed
}

// A commit that is being saved is not visible, and later commits gather into one
// batch (E-DU-02, E-DU-03).
func TestDB_CommitsInGroups(t *testing.T) {
	db := New(Options{Clock: clockwork.NewFakeClock(), Retention: time.Hour})
	saver := &slowSaver{batches: make(chan []Commit), proceed: make(chan error)}
	db.SaveTo(saver)
	defer func() {
		if err := db.StopSaving(); err != nil {
			t.Error(err)
		}
	}()
	var group sync.WaitGroup
	write := func(path string) {
		group.Go(func() {
			if _, err := db.Commit([]Change{put(path)}, 0); err != nil {
				t.Error(err)
			}
		})
	}
	write("c/first")
	first := <-saver.batches
	early := db.Now()
	defer early.Close()
	if early.Time >= first[0].Time {
		t.Errorf("snapshot at %d while the commit at %d is being saved", early.Time, first[0].Time)
	}
	for i := range 3 {
		write(fmt.Sprintf("c/%d", i))
	}
	for queued := 0; queued < 3; {
		db.committer.mu.Lock()
		queued = len(db.committer.queue)
		db.committer.mu.Unlock()
	}
	saver.proceed <- nil
	if second := <-saver.batches; len(second) != 3 {
		t.Errorf("the second batch has %d commits, want 3", len(second))
	}
	seen := db.Now()
	if got := len(scan(seen, Scope{Parent: root, CollectionID: "c"}, "")); got != 1 {
		t.Errorf("%d documents are visible, want the first", got)
	}
	seen.Close()
	saver.proceed <- nil
	group.Wait()
	last := db.Now()
	defer last.Close()
	if got := len(scan(last, Scope{Parent: root, CollectionID: "c"}, "")); got != 4 {
		t.Errorf("%d documents in the end, want 4", got)
	}
}

type failingSaver struct{ err error }

func (s failingSaver) Save([]Commit) error { return s.err }

// The error of a failed Save is returned again at the end, for callers that look
// only there (E-DU-01).
func TestDB_StopSavingReturnsEarlierFailure(t *testing.T) {
	db := New(Options{Clock: clockwork.NewFakeClock(), Retention: time.Hour})
	full := errors.New("no space left on device")
	db.SaveTo(failingSaver{full})
	if _, err := db.Commit([]Change{put("c/d")}, 0); !errors.Is(err, full) {
		t.Errorf("Commit: %v", err)
	}
	if err := db.StopSaving(); !errors.Is(err, full) {
		t.Errorf("StopSaving: %v", err)
	}
}
