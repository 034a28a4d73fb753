package datafile

import (
	"encoding/binary"
	"errors"

	bolt "go.etcd.io/bbolt"

	"github.com/dronefleet/dronefleet/emulator/internal/boltfile"
)

// A database's bucket holds its clock and, under names with a prefix that no
// other key begins with, its documents. A bucket that no database's name can have
// holds the summary.
var (
	clockKey       = []byte("time")
	documentPrefix = []byte("d/")
	oldClockKey    = []byte("clock") // the clock in files of earlier versions

	summaryBucket = []byte("summary")
	summaryKey    = []byte("records")
)

// These errors read as the end of a sentence that names the record.
var (
	errNoBucket   error = boltfile.Damage("is damaged: it is not a bucket; restore the file from a copy or choose another data directory")
	errMisplaced  error = boltfile.Damage("is damaged: it belongs to another database; restore the file from a copy or choose another data directory")
	errUnknownKey error = boltfile.Damage("is damaged: it is neither a document nor a clock; restore the file from a copy or choose another data directory")
	errIncomplete error = boltfile.Damage("is damaged: records are missing or older than the last commit; restore it from a copy or choose another data directory")
	errOldFormat        = errors.New("was written by an earlier version in another format; choose another data directory")
)

func documentKey(name string) []byte {
	return append(documentPrefix[:len(documentPrefix):len(documentPrefix)], name...)
}

const timeSize = 8

// encodeClock seals the time of a database's last commit, with its name: the
// bucket's own has no checksum.
func encodeClock(database string, last int64) []byte {
	value := binary.BigEndian.AppendUint64(boltfile.Unsealed(timeSize+len(database)), uint64(last))
	return boltfile.Seal(clockKey, append(value, database...))
}

func decodeClock(sealed []byte, database string) (last int64, err error) {
	raw, err := boltfile.Unseal(clockKey, sealed)
	switch {
	case err != nil:
		return 0, err
	case len(raw) < timeSize || string(raw[timeSize:]) != database:
		return 0, errMisplaced
	}
	return int64(binary.BigEndian.Uint64(raw)), nil
}

// summary shows whether a file holds all records of its last commit and no older
// ones. Checksums of single records cannot: bbolt leaves earlier pages in the
// file, and a flipped bit in a page number can bring them back.
type summary struct {
	count uint64 // records
	sum   uint64 // of their checksums, modulo 1<<64
}

// add counts a record in; nil means that there is none.
func (s *summary) add(sealed []byte) {
	if sealed != nil {
		s.count++
		s.sum += uint64(boltfile.ChecksumOf(sealed))
	}
}

// remove counts a record out.
func (s *summary) remove(sealed []byte) {
	if sealed != nil {
		s.count--
		s.sum -= uint64(boltfile.ChecksumOf(sealed))
	}
}

// encode seals the summary with the number of the bbolt transaction that writes
// it, which the file's checksummed header has too.
func (s summary) encode(tx *bolt.Tx) []byte {
	value := boltfile.Unsealed(3 * 8)
	value = binary.BigEndian.AppendUint64(value, uint64(tx.ID()))
	value = binary.BigEndian.AppendUint64(value, s.count)
	return boltfile.Seal(summaryKey, binary.BigEndian.AppendUint64(value, s.sum))
}

func (s summary) write(tx *bolt.Tx) error {
	bucket, err := tx.CreateBucketIfNotExists(summaryBucket)
	if err != nil {
		return err
	}
	return bucket.Put(summaryKey, s.encode(tx))
}
