package wal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	bolt "go.etcd.io/bbolt"

	"github.com/dronefleet/dronefleet/emulator/firestore/store"
	"github.com/dronefleet/dronefleet/emulator/internal/boltfile"
)

const database = "projects/p/databases/d"

func name(id string) string { return database + "/documents/c/" + id }

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
			{Time: 10, Changes: []store.Change{put(name("a")), put(name("b"))}},
			{Time: 20, Changes: []store.Change{{Name: name("a")}, put(name("c"))}},
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
		if names, last := load(t, f); !slices.Equal(names, []string{name("b"), name("c")}) || last != 20 {
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

// Damage inside a value is told, not served, with the file and what to do about it
// (E-DU-01).
func TestFile_DamagedValue(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	f, err := Open(dir, OS)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("large", 10_000)
	doc := &pb.Document{Name: name("large"), Fields: map[string]*pb.Value{
		"text": {ValueType: &pb.Value_StringValue{StringValue: text}},
	}}
	if err := f.Log(database).Append([]store.Entry{{Time: 10, Changes: []store.Change{{Name: doc.Name, Doc: doc}}}}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[bytes.Index(content, []byte(text))+len(text)/2] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err = Open(dir, OS); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, f, path, `document "`+name("large")+`" is damaged`, "restore the file from a copy")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// A value in another's place, a document in another's database, what is neither a
// document nor the clock, no clock and a file without checksums are told too
// (E-DU-01).
func TestFile_Refused(t *testing.T) {
	sealed := boltfile.Seal(clockKey, append(boltfile.Unsealed(clockSize), make([]byte, clockSize)...))
	x := []byte("d/x")
	for name, row := range map[string]struct {
		clock         []byte
		key, document []byte
		want          string
	}{
		"the value of another key": {sealed, x, sealed, `document "x" is damaged`},
		"another database's":       {sealed, x, boltfile.Seal(x, boltfile.Unsealed(0)), `document "x" stands in another database`},
		"hardly a value":           {sealed, x, []byte("x"), `document "x" is damaged`},
		"no document":              {sealed, []byte("e/x"), boltfile.Seal(x, boltfile.Unsealed(0)), `document "e/x" is damaged`},
		"no clock":                 {nil, x, nil, `database "` + database + `" is damaged`},
		"no checksums":             {make([]byte, clockSize), x, nil, "was written by an earlier version"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f, err := Open(dir, OS)
			if err != nil {
				t.Fatal(err)
			}
			err = f.bolt.Update(func(tx *bolt.Tx) error {
				b, err := tx.CreateBucket([]byte(database))
				if err == nil && row.clock != nil {
					err = b.Put(clockKey, row.clock)
				}
				if err == nil && row.document != nil {
					err = b.Put(row.key, row.document)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			wantRefused(t, f, filepath.Join(dir, FileName), row.want, "choose another data directory")
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// So is a database that is marked as a value: it would seem to be empty (E-DU-01).
func TestFile_DatabaseMarkedAsValue(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	f, err := Open(dir, OS)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Log(database).Append([]store.Entry{{Time: 10}}), f.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[bytes.Index(content, []byte(database))-16] ^= 1 // the mark of a page's only element
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err = Open(dir, OS); err != nil {
		t.Fatal(err)
	}
	if all, err := f.Databases(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("databases %v, %v; want an error that names %s", all, err, path)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func wantRefused(t *testing.T, f *File, parts ...string) {
	t.Helper()
	_, err := f.Load(database, func(*pb.Document) {})
	if err == nil {
		t.Fatal("loaded")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v; want it to contain %q", err, part)
		}
	}
}

// A file that is no database is refused.
func TestOpen_NoDatabase(t *testing.T) {
	dir := t.TempDir()
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
