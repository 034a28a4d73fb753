package datafile

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
	"github.com/dronefleet/dronefleet/emulator/internal/boltfile"
)

// FileName is the name of the file inside the data directory.
const FileName = "firestore.bolt"

// lockTimeout is how long Open waits for another process to close the file.
const lockTimeout = 200 * time.Millisecond

// File is an open data file. Its methods are safe for concurrent use, after Load.
type File struct {
	bolt *bolt.DB

	mu      sync.Mutex // held by Save
	summary summary    // of what is in the file
}

// Open opens the data file in dir and creates both if they do not exist. With
// fsync, Save waits until the disk has what it wrote.
func Open(dir string, fsync bool) (*File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	db, err := boltfile.Open(filepath.Join(dir, FileName), bolt.Options{
		Timeout:        lockTimeout,
		NoSync:         !fsync,
		NoGrowSync:     !fsync,
		NoFreelistSync: true, // rebuilt at Open, so that a commit writes fewer pages
		FreelistType:   bolt.FreelistMapType,
	})
	if err != nil {
		return nil, err
	}
	return &File{bolt: db}, nil
}

// Close closes the file. Nothing may be saved any more.
func (f *File) Close() error { return f.bolt.Close() }

// Load yields every document with its database, and returns the time of the last
// commit of each database, µs. Call it once, before anything is saved.
func (f *File) Load(yield func(database string, doc *pb.Document)) (last map[string]int64, err error) {
	l := loader{last: map[string]int64{}, yield: yield}
	if err := f.bolt.View(l.load); err != nil {
		return nil, fmt.Errorf("%s: %w", f.bolt.Path(), err)
	}
	f.summary = l.found
	return l.last, nil
}

// Database saves the commits of one database. It is a store.Saver.
type Database struct {
	file *File
	name string
}

// Database returns a database of the file. It exists in the file once something
// has been saved.
func (f *File) Database(name string) *Database {
	return &Database{file: f, name: name}
}

// Save writes a batch of commits in one step.
func (d *Database) Save(batch []store.Commit) error {
	records, err := encode(d.name, batch)
	if err != nil {
		return err
	}
	d.file.mu.Lock()
	defer d.file.mu.Unlock()
	sum := d.file.summary
	err = d.file.bolt.Update(func(tx *bolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists([]byte(d.name))
		if err != nil {
			return err
		}
		for _, r := range records {
			sum.remove(bucket.Get(r.key))
			sum.add(r.sealed)
			if r.sealed == nil {
				err = bucket.Delete(r.key)
			} else {
				err = bucket.Put(r.key, r.sealed)
			}
			if err != nil {
				return err
			}
		}
		return sum.write(tx)
	})
	if err == nil {
		d.file.summary = sum
	}
	return err
}

// record is a new state of a document or a clock; sealed is nil for a deletion.
type record struct{ key, sealed []byte }

// encode lists the new records in commit order; of several with one key the last
// one counts.
func encode(database string, batch []store.Commit) ([]record, error) {
	var records []record
	var last int64
	for _, commit := range batch {
		last = max(last, commit.Time)
		for _, change := range commit.Changes {
			r := record{key: documentKey(change.Name)}
			if change.Doc != nil {
				raw, err := proto.MarshalOptions{}.MarshalAppend(boltfile.Unsealed(0), change.Doc)
				if err != nil {
					return nil, fmt.Errorf("encode %s: %w", change.Name, err)
				}
				r.sealed = boltfile.Seal(r.key, raw)
			}
			records = append(records, r)
		}
	}
	return append(records, record{clockKey, encodeClock(database, last)}), nil
}
