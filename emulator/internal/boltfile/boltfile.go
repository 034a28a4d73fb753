// Package boltfile opens the data files of the embedded servers.
package boltfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
// would end the process with a fault, or with a panic in a goroutine of its own.
func inspect(path string, options bolt.Options) (err error) {
	db, err := bolt.Open(path, 0o600, &options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return db.View(func(tx *bolt.Tx) error { return check(file, tx, int64(db.Info().PageSize)) })
}

// check checks what the transaction would see in the file.
func check(file io.ReaderAt, tx *bolt.Tx, pageSize int64) error {
	t := tree{file: file, pageSize: pageSize, used: make([]bool, tx.Size()/pageSize)}
	t.used[0], t.used[1] = true, true // bbolt has checked these
	return t.check(uint64(tx.Cursor().Bucket().RootPage()), nil, nil)
}

func damaged(how any) error {
	return fmt.Errorf("the file is cut short or damaged (%v); restore it from a copy or choose another data directory", how)
}
