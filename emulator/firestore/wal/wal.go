package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	"github.com/dronefleet/dronefleet/emulator/firestore/store"
	"github.com/dronefleet/dronefleet/emulator/internal/boltfile"
)

// Sync says what a commit waits for.
type Sync int

const (
	Full Sync = iota // fsync: survives a power loss
	OS               // write: survives the death of the process
)

// String is the form UnmarshalText reads.
func (s Sync) String() string {
	if s == OS {
		return "os"
	}
	return "full"
}

// UnmarshalText reads "full" or "os", so that Sync can be a flag.
func (s *Sync) UnmarshalText(text []byte) error {
	switch string(text) {
	case "full":
		*s = Full
	case "os":
		*s = OS
	default:
		return fmt.Errorf("unknown sync mode %q; want full or os", text)
	}
	return nil
}

// FileName is the file inside the data directory.
const FileName = "firestore.bolt"

// lockTimeout is how long Open waits for another process to let go of the file.
const lockTimeout = 200 * time.Millisecond

// Keys inside a database's bucket: documents under a prefix of their own, so that
// no document id can meet the clock.
var (
	clockKey       = []byte("clock") // last commit time, µs, big endian
	documentPrefix = []byte("d/")
)

const clockSize = 8

// File is an open data file.
type File struct {
	bolt *bolt.DB
}

// Open opens the data file in dir, making both if need be.
func Open(dir string, sync Sync) (*File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("wal: data directory: %w", err)
	}
	path := filepath.Join(dir, FileName)
	db, err := boltfile.Open(path, bolt.Options{
		Timeout:        lockTimeout,
		NoSync:         sync == OS,
		NoGrowSync:     sync == OS,
		NoFreelistSync: true, // rebuilt at Open; a commit then writes fewer pages
		FreelistType:   bolt.FreelistMapType,
	})
	if err != nil {
		return nil, fmt.Errorf("wal: %w", err)
	}
	return &File{bolt: db}, nil
}

// Close closes the file. All logs on it must have stopped.
func (f *File) Close() error { return f.bolt.Close() }

// Databases lists the names of the databases kept in the file.
func (f *File) Databases() ([]string, error) {
	var names []string
	err := f.bolt.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, bucket *bolt.Bucket) error {
			if bucket == nil {
				return fmt.Errorf("wal: %s: database %q %w", f.bolt.Path(), name, errNoDatabase)
			}
			names = append(names, string(name))
			return nil
		})
	})
	return names, err
}

// Load yields every document of a database and returns the time of its last
// commit, 0 if there is none.
func (f *File) Load(database string, yield func(*pb.Document)) (last int64, err error) {
	err = f.bolt.View(func(tx *bolt.Tx) error {
		bucket := tx.Bucket([]byte(database))
		if bucket == nil {
			return nil
		}
		if last, err = readClock(bucket.Get(clockKey)); err != nil {
			return fmt.Errorf("database %q %w", database, err)
		}
		return bucket.ForEach(func(key, sealed []byte) error {
			if bytes.Equal(key, clockKey) {
				return nil
			}
			name, doc := string(bytes.TrimPrefix(key, documentPrefix)), &pb.Document{}
			raw, err := boltfile.Unseal(key, sealed)
			if err == nil && !strings.HasPrefix(name, database+"/documents/") {
				err = errForeign
			}
			if err == nil {
				err = proto.Unmarshal(raw, doc)
			}
			if err != nil {
				return fmt.Errorf("document %q %w", name, err)
			}
			yield(doc)
			return nil
		})
	})
	if err != nil {
		return 0, fmt.Errorf("wal: %s: %w", f.bolt.Path(), err)
	}
	return last, nil
}

// readClock is the first thing read of a database: every commit writes the clock.
func readClock(sealed []byte) (int64, error) {
	if len(sealed) == clockSize {
		return 0, errUnsealed
	}
	raw, err := boltfile.Unseal(clockKey, sealed)
	if err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(raw)), nil
}

// Log appends the commits of one database. It is a store.Log.
type Log struct {
	file     *File
	database []byte
}

// Log returns the log of a database.
func (f *File) Log(database string) *Log {
	return &Log{file: f, database: []byte(database)}
}

// Append writes a batch of commits in one step.
func (l *Log) Append(batch []store.Entry) error {
	type put struct{ key, value []byte }
	var puts []put // in commit order; a later one of the same key wins
	var last int64
	for _, entry := range batch {
		last = max(last, entry.Time)
		for _, change := range entry.Changes {
			p := put{key: append(documentPrefix[:len(documentPrefix):len(documentPrefix)], change.Name...)}
			if change.Doc != nil {
				raw, err := proto.MarshalOptions{}.MarshalAppend(boltfile.Unsealed(0), change.Doc)
				if err != nil {
					return fmt.Errorf("wal: encode %s: %w", change.Name, err)
				}
				p.value = boltfile.Seal(p.key, raw)
			}
			puts = append(puts, p)
		}
	}
	return l.file.bolt.Update(func(tx *bolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists(l.database)
		if err != nil {
			return err
		}
		for _, p := range puts {
			if p.value == nil {
				err = bucket.Delete(p.key)
			} else {
				err = bucket.Put(p.key, p.value)
			}
			if err != nil {
				return err
			}
		}
		return bucket.Put(clockKey, boltfile.Seal(clockKey, binary.BigEndian.AppendUint64(boltfile.Unsealed(clockSize), uint64(last))))
	})
}
