// Package boltfile opens the data files of the embedded servers.
package boltfile

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"runtime/debug"
	"syscall"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// ErrInUse says that another process has the file open.
var ErrInUse = errors.New("in use by another process; stop it or choose another data directory")

// Open opens the file, made if missing, or says why it cannot be used.
func Open(path string, options bolt.Options) (*bolt.DB, error) {
	db, err := open(path, options)
	if errors.Is(err, bolterrors.ErrTimeout) {
		err = ErrInUse
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}

func open(path string, options bolt.Options) (*bolt.DB, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return create(path, options)
	case err != nil:
		return nil, err
	case info.Size() > 0:
		if info.Size()%int64(os.Getpagesize()) != 0 { // the rest of that page would read as zeros
			return nil, damaged(fmt.Sprintf("%d bytes are no whole pages", info.Size()))
		}
		reading := options
		reading.ReadOnly = true
		if err := inspect(path, reading); err != nil {
			return nil, err
		}
	}
	return bolt.Open(path, 0o600, &options)
}

// create makes the file. What a disk that fills up leaves of one holds nothing:
// it goes again, or it would be taken for a damaged one when there is room.
func create(path string, options bolt.Options) (*bolt.DB, error) {
	db, err := bolt.Open(path, 0o600, &options)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		err = errors.Join(err, os.Remove(path))
	}
	return db, err
}

// inspect reads all that is in the file. bbolt maps it into memory and trusts it:
// what is missing or damaged, by a full disk, a copy cut short or a power loss,
// would end the process with a fault.
func inspect(path string, options bolt.Options) (err error) {
	db, err := bolt.Open(path, 0o600, &options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return db.View(func(tx *bolt.Tx) (err error) {
		defer func() {
			if panicked := recover(); panicked != nil {
				err = damaged(panicked)
			}
		}()
		return tx.ForEach(func(_ []byte, bucket *bolt.Bucket) error { return readAll(bucket) })
	})
}

func damaged(how any) error {
	return fmt.Errorf("the file is cut short or damaged (%v); restore it from a copy or choose another data directory", how)
}

func readAll(bucket *bolt.Bucket) error {
	sum := crc32.NewIEEE() // of no interest, but it touches every byte
	var last []byte
	return bucket.ForEach(func(key, value []byte) error {
		if last != nil && bytes.Compare(last, key) >= 0 {
			return damaged(fmt.Sprintf("key %x after %x", key, last))
		}
		last = key
		_, err := sum.Write(value)
		if value == nil {
			err = readAll(bucket.Bucket(key))
		}
		return err
	})
}
