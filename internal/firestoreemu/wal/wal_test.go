package wal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	bolt "go.etcd.io/bbolt"

	"github.com/dronefleet/dronefleet/internal/firestoreemu/store"
)

const database = "projects/p/databases/d"

func load(t *testing.T, f *File) (names []string, last int64) {
	t.Helper()
	last, err := f.Load(database, func(d *pb.Document) { names = append(names, d.GetName()) })
	if err != nil {
		t.Fatal(err)
	}
	return names, last
}

// What was appended is there after reopening, in both sync modes.
func TestFile_Reopen(t *testing.T) {
	for _, sync := range []Sync{Full, OS} {
		dir := filepath.Join(t.TempDir(), "made", "if", "missing")
		f, err := Open(dir, sync)
		if err != nil {
			t.Fatal(err)
		}
		put := func(name string) store.Change { return store.Change{Name: name, Doc: &pb.Document{Name: name}} }
		err = f.Log(database).Append([]store.Entry{
			{Time: 10, Changes: []store.Change{put("a"), put("b")}},
			{Time: 20, Changes: []store.Change{{Name: "a"}, put("c")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if f, err = Open(dir, sync); err != nil {
			t.Fatal(err)
		}
		if names, last := load(t, f); strings.Join(names, " ") != "b c" || last != 20 {
			t.Errorf("%v: %v at %d, want b c at 20", sync, names, last)
		}
		if all, err := f.Databases(); err != nil || len(all) != 1 || all[0] != database {
			t.Errorf("databases %v, %v", all, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Damage is told, not skipped.
func TestFile_Damaged(t *testing.T) {
	dir := t.TempDir()
	f, err := Open(dir, OS)
	if err != nil {
		t.Fatal(err)
	}
	err = f.bolt.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte(database))
		if err != nil {
			return err
		}
		return b.Put(append(documentPrefix, 'x'), []byte("\xff\xff"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Load(database, func(*pb.Document) {}); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("a damaged document: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, OS); err == nil {
		t.Error("a file that is no database was opened")
	}
}

func TestSync_Text(t *testing.T) {
	for _, want := range []Sync{Full, OS} {
		var got Sync
		if err := got.UnmarshalText([]byte(want.String())); err != nil || got != want {
			t.Errorf("%v: read back as %v, %v", want, got, err)
		}
	}
	if err := new(Sync).UnmarshalText([]byte("never")); err == nil {
		t.Error("never: accepted")
	}
}
