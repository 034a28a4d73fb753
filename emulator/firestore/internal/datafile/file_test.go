package datafile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
	"github.com/dronefleet/dronefleet/emulator/internal/boltfile"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

const database = "projects/p/databases/d"

func name(id string) string { return database + "/documents/c/" + id }

// put is a change that stores a document with a text.
func put(id, text string) store.Change {
	return store.Change{Name: name(id), Doc: &pb.Document{Name: name(id), Fields: map[string]*pb.Value{
		"text": {ValueType: &pb.Value_StringValue{StringValue: text}},
	}}}
}

func open(t testing.TB, dir string) *File {
	t.Helper()
	f, err := Open(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// save saves commits and closes the file.
func save(t testing.TB, dir string, commits ...store.Commit) {
	t.Helper()
	f := open(t, dir)
	_, err := f.Load(func(string, *pb.Document) {})
	if err := errors.Join(err, f.Database(database).Save(commits), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// saved is what a file holds of one database.
type saved struct {
	documents map[string]string // encoded, by name
	last      int64             // commit time
}

// read reads all databases of a file, or returns why it is refused.
func read(dir string) (all map[string]saved, err error) {
	f, err := Open(dir, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	all = map[string]saved{}
	of := func(database string) saved {
		if all[database].documents == nil {
			all[database] = saved{documents: map[string]string{}}
		}
		return all[database]
	}
	last, err := f.Load(func(database string, d *pb.Document) {
		raw, _ := proto.MarshalOptions{Deterministic: true}.Marshal(d) // it has just been decoded
		of(database).documents[d.GetName()] = string(raw)
	})
	for database, at := range last {
		all[database] = saved{of(database).documents, at}
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

func mustRead(t testing.TB, dir string) map[string]saved {
	t.Helper()
	all, err := read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// What was saved is there after reopening, with and without fsync.
func TestFile_KeepsWhatWasSaved(t *testing.T) {
	for _, fsync := range []bool{true, false} {
		dir := filepath.Join(t.TempDir(), "not", "there", "yet")
		f, err := Open(dir, fsync)
		if err != nil {
			t.Fatal(err)
		}
		db := f.Database(database)
		err = errors.Join(
			db.Save([]store.Commit{{Time: 10, Changes: []store.Change{put("a", ""), put("b", "")}}, {Time: 20, Changes: []store.Change{{Name: name("a")}, put("c", "")}}}),
			db.Save([]store.Commit{{Time: 30}}),
			f.Close())
		if err != nil {
			t.Fatal(err)
		}
		all := mustRead(t, dir)
		got := slices.Sorted(maps.Keys(all[database].documents))
		if len(all) != 1 || !slices.Equal(got, []string{name("b"), name("c")}) || all[database].last != 30 {
			t.Errorf("fsync %v: %v at %d; want b and c at 30", fsync, got, all[database].last)
		}
	}
}

// A database can be changed further after it was loaded.
func TestFile_SavesAfterLoad(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, store.Commit{Time: 10, Changes: []store.Change{put("a", "1"), put("b", "1")}})
	for n := range 3 {
		f := open(t, dir)
		db := f.Database(database)
		_, err := f.Load(func(string, *pb.Document) {})
		changes := []store.Change{put("a", fmt.Sprint(n)), {Name: name("b")}, put("b", "first"), put("b", fmt.Sprint(n)), {Name: name("none")}}
		if err := errors.Join(err, db.Save([]store.Commit{{Time: int64(20 + n), Changes: changes}}), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if all := mustRead(t, dir); len(all[database].documents) != 2 || all[database].last != 22 {
		t.Errorf("%d documents at %d, want 2 at 22", len(all[database].documents), all[database].last)
	}
}

// Of a file in which any one bit has flipped, everything is served as it was
// saved, or the file is refused with an error that names it (E-DU-01).
func TestFile_RefusesFlippedBit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	f := open(t, dir)
	var err error
	for _, name := range []string{database, "projects/p/databases/second", "projects/p/databases/empty"} {
		db := f.Database(name)
		for n := range 6 { // several generations of pages, so that stale ones lie around
			var changes []store.Change
			for i := range 25 {
				id := fmt.Sprintf("%s/documents/c/%02d", name, i)
				changes = append(changes, store.Change{Name: id, Doc: &pb.Document{Name: id, Fields: map[string]*pb.Value{
					"n": {ValueType: &pb.Value_IntegerValue{IntegerValue: int64(n)}},
				}}})
				if strings.HasSuffix(name, "/empty") && n == 5 {
					changes[i].Doc = nil
				}
			}
			err = errors.Join(err, db.Save([]store.Commit{{Time: int64(n + 1), Changes: changes}}))
		}
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	want := mustRead(t, dir)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Coprime to 8, so that all bits of a byte are flipped.
	stride := longtest.Size(t, "bytes from flip to flip", 101, 29)
	flipped, refused := 0, 0
	for at := 0; at < len(content); at += stride {
		bit := byte(1) << (at % 8)
		content[at] ^= bit
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		content[at] ^= bit
		flipped++
		got, err := read(dir)
		switch {
		case err == nil && !reflect.DeepEqual(got, want):
			t.Errorf("byte %d: served something else than was saved", at)
		case err != nil && !strings.Contains(err.Error(), path):
			t.Errorf("byte %d: %v; want the error to name %s", at, err, path)
		case err != nil:
			refused++
		}
	}
	if refused == 0 {
		t.Error("no file was refused")
	}
	t.Logf("%d bits of %d bytes flipped: %d refused, the others without effect", flipped, len(content), refused)
}

// A bit flipped in a large document is an error that names the file, the document
// and what to do (E-DU-01).
func TestFile_NamesDamagedDocument(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	text := strings.Repeat("large", 10_000)
	save(t, dir, store.Commit{Time: 10, Changes: []store.Change{put("large", text)}})
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[bytes.Index(content, []byte(text))+len(text)/2] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, dir, `document "`+name("large")+`" is damaged`, "restore the file from a copy")
}

// An intact record is refused where it does not belong, and so is a file without
// a record that it should have (E-DU-01).
func TestFile_RefusesMisplacedAndMissingRecords(t *testing.T) {
	const other = "projects/p/databases/other"
	sealed := func(key []byte, value string) []byte {
		return boltfile.Seal(key, append(boltfile.Unsealed(len(value)), value...))
	}
	x, foreign := documentKey(name("x")), documentKey(other+"/documents/c/x")
	clock, deleted := encodeClock(database, 20), []byte(nil)
	for rule, row := range map[string]struct {
		key, value []byte // written past Save
		want       string
	}{
		"the value of another key":     {x, sealed(documentKey(name("y")), ""), `document "` + name("x") + `" is damaged`},
		"shorter than a checksum":      {x, []byte("x"), `document "` + name("x") + `" is damaged`},
		"document of another database": {foreign, sealed(foreign, ""), `document "` + other + `/documents/c/x" is damaged: it belongs to another database`},
		"neither document nor clock":   {[]byte("e/x"), sealed([]byte("e/x"), ""), `record "e/x" of database "` + database + `" is damaged`},
		"clock of another database":    {clockKey, encodeClock(other, 20), `clock of database "` + database + `" is damaged: it belongs to another database`},
		"no clock":                     {clockKey, deleted, `clock of database "` + database + `" is damaged`},
		"older clock":                  {clockKey, encodeClock(database, 10), "records are missing or older"},
		"missing document":             {documentKey(name("kept")), deleted, "records are missing or older"},
		"older document":               {documentKey(name("kept")), sealed(documentKey(name("kept")), ""), "records are missing or older"},
		"one document too many":        {x, sealed(x, ""), "records are missing or older"},
		"the state of an earlier time": {clockKey, clock, "records are missing or older"}, // what it is, in a later transaction
	} {
		t.Run(rule, func(t *testing.T) {
			dir := t.TempDir()
			save(t, dir, store.Commit{Time: 20, Changes: []store.Change{put("kept", "text")}})
			edit(t, dir, func(tx *bolt.Tx) error {
				if row.value == nil {
					return tx.Bucket([]byte(database)).Delete(row.key)
				}
				return tx.Bucket([]byte(database)).Put(row.key, row.value)
			})
			wantRefused(t, dir, row.want, "choose another data directory")
		})
	}
}

// edit changes a file past Save.
func edit(t *testing.T, dir string, change func(*bolt.Tx) error) {
	t.Helper()
	f := open(t, dir)
	if err := errors.Join(f.bolt.Update(change), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestFile_RefusesMissingSummary(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, store.Commit{Time: 20})
	edit(t, dir, func(tx *bolt.Tx) error { return tx.DeleteBucket(summaryBucket) })
	wantRefused(t, dir, "records are missing or older")
}

func TestFile_RefusesEarlierFormat(t *testing.T) {
	dir := t.TempDir()
	edit(t, dir, func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte(database))
		return errors.Join(err, b.Put(oldClockKey, []byte("12345678")))
	})
	_, err := read(dir)
	if err == nil || errors.Is(err, boltfile.ErrDamaged) || !strings.Contains(err.Error(), "was written by an earlier version") {
		t.Errorf("%v; want that an earlier version wrote it", err)
	}
}

// A database that became a plain value would seem to be empty (E-DU-01).
func TestFile_RefusesDatabaseThatIsNoBucket(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, store.Commit{Time: 10})
	edit(t, dir, func(tx *bolt.Tx) error {
		return errors.Join(tx.DeleteBucket([]byte(database)), tx.Cursor().Bucket().Put([]byte(database), []byte("value")))
	})
	wantRefused(t, dir, `database "`+database+`" is damaged: it is not a bucket`)
}

// A store that was there and was emptied is not a new one (E-DU-01).
func TestOpen_RefusesEmptiedFile(t *testing.T) {
	for rule, content := range map[string][]byte{"empty": {}, "zeros": make([]byte, 32<<10), "text": []byte("no database")} {
		t.Run(rule, func(t *testing.T) {
			dir := t.TempDir()
			save(t, dir, store.Commit{Time: 10, Changes: []store.Change{put("a", "")}})
			if err := os.WriteFile(filepath.Join(dir, FileName), content, 0o600); err != nil {
				t.Fatal(err)
			}
			wantRefused(t, dir, "restore it from a copy")
		})
	}
}

// wantRefused checks that reading fails with an error that names the file and has
// the given parts.
func wantRefused(t *testing.T, dir string, parts ...string) {
	t.Helper()
	_, err := read(dir)
	if !errors.Is(err, boltfile.ErrDamaged) {
		t.Errorf("%v; want ErrDamaged", err)
		return
	}
	for _, part := range append(parts, filepath.Join(dir, FileName)) {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v; want it to contain %q", err, part)
		}
	}
}
