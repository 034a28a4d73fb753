package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"github.com/dronefleet/dronefleet/emulator/internal/boltfile"
	"github.com/dronefleet/dronefleet/emulator/pubsub/internal/journal"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// fill makes a journal with records of every kind and returns its file and what
// the next Open must load.
func fill(t *testing.T) (path string, content []byte, want *journal.State) {
	t.Helper()
	dir := t.TempDir()
	reopen(t, dir, func(j *journal.Journal) {
		err := j.Apply(
			journal.Put(journal.Topic, journal.Resource{Name: "projects/p/topics/telemetry", Holder: 1, Config: []byte("topic config")}),
			journal.Put(journal.Subscription, journal.Resource{Name: "projects/p/subscriptions/ingest", Holder: 2, Config: []byte("subscription config")}),
			journal.Put(journal.Snapshot, journal.Resource{Name: "projects/p/snapshots/snap", Holder: 3, Config: []byte("snapshot config")}),
		)
		if err != nil {
			t.Fatal(err)
		}
		for id := range uint64(60) {
			message := journal.Message{ID: id, Published: int64(id), Stored: int64(id), Wire: fmt.Appendf(nil, "message %d: %0200d", id, id)}
			if err := j.Publish([]journal.Message{message}, []journal.Holds{{Holder: 2, IDs: []uint64{id}}, {Holder: 3, IDs: []uint64{id}}}); err != nil {
				t.Fatal(err)
			}
		}
		j.Settle(2, nil, []uint64{1, 3}, []uint64{5, 7})
		j.Settle(3, nil, nil, []uint64{7, 9})
	})
	path = filepath.Join(dir, journal.FileName)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want = reopen(t, dir, nil)
	return path, content, want
}

func open(t *testing.T, path string, content []byte) (*journal.State, error) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	j, state, err := journal.Open(filepath.Dir(path), func(err error) { t.Error(err) })
	if err != nil {
		return nil, err
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return state, nil
}

// Wherever a bit flips, the journal refuses the file and names it, or loads exactly
// what was stored because the bit is in an unused place.
func TestOpen_NeverServesFlippedBit(t *testing.T) { // P-DUR-01
	path, content, want := fill(t)
	// A prime, so that every position in a byte and a record comes up.
	stride := longtest.Size(t, "bits from flip to flip", 16007, 2003)
	flips, refused := 0, 0
	for bit := 0; bit < 8*len(content); bit += stride {
		content[bit/8] ^= 1 << (bit % 8)
		state, err := open(t, path, content)
		content[bit/8] ^= 1 << (bit % 8)
		flips++
		if err == nil {
			if diff := cmp.Diff(want, state); diff != "" {
				t.Fatalf("bit %d of byte %d was served:\n%s", bit%8, bit/8, diff)
			}
			continue
		}
		refused++
		if !strings.Contains(err.Error(), path) || !errors.Is(err, boltfile.ErrDamaged) {
			t.Errorf("bit %d of byte %d: %v; want an error that names %s", bit%8, bit/8, err, path)
		}
	}
	t.Logf("%d of %d flips were refused, the others were in unused places", refused, flips)
	if refused == 0 {
		t.Error("no flip was refused")
	}
}

// Every bit of a record is covered, and the error names the record.
func TestOpen_NamesDamagedRecord(t *testing.T) { // P-DUR-01
	path, content, _ := fill(t)
	for record, value := range map[string]string{
		`resource "projects/p/topics/telemetry"`:     "topic config",
		`resource "projects/p/subscriptions/ingest"`: "subscription config",
		`resource "projects/p/snapshots/snap"`:       "snapshot config",
		`message 33`:                                 fmt.Sprintf("message 33: %0200d", 33),
	} {
		copies := bytes.Count(content, []byte(value)) // with those in pages that are no longer used
		for bit := range 8 * len(value) {
			damaged := bytes.Clone(content)
			for range copies {
				at := bytes.Index(damaged, []byte(value))
				damaged[at+bit/8] ^= 1 << (bit % 8)
			}
			_, err := open(t, path, damaged)
			if !errors.Is(err, boltfile.ErrDamaged) || !strings.Contains(err.Error(), path+": "+record+" is damaged") {
				t.Fatalf("bit %d of %s: %v", bit, record, err)
			}
		}
	}
}

// An emptied file is not taken for a new one.
func TestOpen_RefusesEmptiedFile(t *testing.T) { // P-DUR-01
	path, _, _ := fill(t)
	if state, err := open(t, path, nil); !errors.Is(err, boltfile.ErrDamaged) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v, %v; want an error that names %s", state, err, path)
	}
}

// A bucket whose name is damaged is not taken for an unknown one beside an empty one
// of the right name.
func TestOpen_RefusesDamagedBucketName(t *testing.T) { // P-DUR-01
	path, content, _ := fill(t)
	content = bytes.ReplaceAll(content, []byte("topics"), []byte("topicr"))
	if state, err := open(t, path, content); !errors.Is(err, boltfile.ErrDamaged) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v, %v; want an error that names %s", state, err, path)
	}
}

// A record in another's place, a value that is too short and a file of an earlier
// version are refused.
func TestOpen_RefusesForeignRecord(t *testing.T) { // P-DUR-01
	seal := func(key, value string) []byte {
		return boltfile.Seal([]byte(key), append(boltfile.Unsealed(len(value)), value...))
	}
	id := strings.Repeat("\x00", 7) + "\x05"
	for name, row := range map[string]struct {
		bucket, key string
		value       []byte
		want        string
	}{
		"message of another id":   {"messages", id, seal("other", strings.Repeat("x", 20)), "message 5 is damaged"},
		"short message":           {"messages", id, seal(id, "x"), "message 5 is damaged"},
		"message of a long id":    {"messages", id + id, seal(id+id, strings.Repeat("x", 20)), "message 5 5 is damaged"},
		"hold without a state":    {"holds", id + id, seal(id+id, ""), "hold (holder and message 5 5) is damaged"},
		"hold without a message":  {"holds", id, seal(id, "\x01"), "hold (holder and message 5) is damaged"},
		"topic without a holder":  {"topics", "t", seal("t", "x"), `resource "t" is damaged`},
		"damaged counter":         {"meta", "boots", []byte("x"), `counter "boots" is damaged`},
		"file of earlier version": {"meta", "boots", make([]byte, 8), `counter "boots" was written by an earlier version`},
	} {
		t.Run(name, func(t *testing.T) {
			path, _, _ := fill(t)
			db, err := bolt.Open(path, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = db.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte(row.bucket)).Put([]byte(row.key), row.value) })
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			_, _, err = journal.Open(filepath.Dir(path), nil)
			if err == nil || !strings.Contains(err.Error(), path+": "+row.want) {
				t.Errorf("%v; want %q", err, row.want)
			}
		})
	}
}
