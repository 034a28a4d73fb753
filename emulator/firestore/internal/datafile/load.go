package datafile

import (
	"bytes"
	"fmt"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	"github.com/dronefleet/dronefleet/emulator/internal/boltfile"
)

// loader reads a whole file.
type loader struct {
	yield func(database string, doc *pb.Document)
	last  map[string]int64
	found summary
}

// firstTransaction is the number of the first bbolt transaction that can save
// something in a new file.
const firstTransaction = 2

func (l *loader) load(tx *bolt.Tx) error {
	err := tx.ForEach(func(name []byte, bucket *bolt.Bucket) error {
		switch {
		case bytes.Equal(name, summaryBucket) && bucket != nil:
			return nil
		case bucket == nil:
			return fmt.Errorf("database %q %w", name, errNoBucket)
		}
		return l.database(string(name), bucket)
	})
	if err != nil || tx.ID() < firstTransaction {
		return err
	}
	var stored []byte
	if bucket := tx.Bucket(summaryBucket); bucket != nil {
		stored = bucket.Get(summaryKey)
	}
	if !bytes.Equal(stored, l.found.encode(tx)) {
		return fmt.Errorf("the file %w", errIncomplete)
	}
	return nil
}

func (l *loader) database(name string, bucket *bolt.Bucket) error {
	clock := bucket.Get(clockKey)
	if clock == nil && bucket.Get(oldClockKey) != nil {
		return fmt.Errorf("database %q %w", name, errOldFormat)
	}
	last, err := decodeClock(clock, name)
	if err != nil {
		return fmt.Errorf("clock of database %q %w", name, err)
	}
	l.last[name] = last
	l.found.add(clock)
	return bucket.ForEach(func(key, sealed []byte) error {
		if bytes.Equal(key, clockKey) {
			return nil
		}
		return l.document(name, key, sealed)
	})
}

func (l *loader) document(database string, key, sealed []byte) error {
	name, isDocument := bytes.CutPrefix(key, documentPrefix)
	if !isDocument {
		return fmt.Errorf("record %q of database %q %w", key, database, errUnknownKey)
	}
	raw, err := boltfile.Unseal(key, sealed)
	switch {
	case err != nil:
		return fmt.Errorf("document %q %w", name, err)
	case !bytes.HasPrefix(name, []byte(database+"/documents/")):
		return fmt.Errorf("document %q %w", name, errMisplaced)
	}
	doc := &pb.Document{}
	if err := proto.Unmarshal(raw, doc); err != nil {
		return fmt.Errorf("document %q cannot be decoded: %w", name, err)
	}
	l.found.add(sealed)
	l.yield(database, doc)
	return nil
}
