package boltfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// ErrInUse says that another process has the file open.
var ErrInUse = errors.New("in use by another process; stop it or choose another data directory")

// errEmpty is found only if the file was emptied: Open never leaves an empty one.
var errEmpty error = Damage("the file is empty: what it held is lost; restore it from a copy, or delete it to start with nothing")

// Open opens the file, which it creates when missing. It reads every page first
// and fails when the file is in use, empty or damaged.
func Open(path string, options bolt.Options) (*bolt.DB, error) {
	db, err := open(path, options)
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		err = ErrInUse
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		err = damaged(err)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}

func open(path string, options bolt.Options) (*bolt.DB, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := create(path, options); err != nil {
			return nil, err
		}
		info, err = os.Stat(path)
	}
	switch {
	case err != nil:
		return nil, err
	case info.Size() == 0:
		return nil, errEmpty
	case info.Size()%int64(os.Getpagesize()) != 0: // bbolt would read the rest of the last page as zeros
		return nil, damaged(fmt.Sprintf("%d bytes are not whole pages", info.Size()))
	}
	reading := options
	reading.ReadOnly = true
	if err := inspect(path, reading); err != nil {
		return nil, err
	}
	return bolt.Open(path, 0o600, &options)
}

// create makes the file under another name first. A process that is killed or a
// disk that fills up on the way leaves nothing at path, so that an empty file
// there was emptied.
func create(path string, options bolt.Options) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new*")
	if err != nil {
		return err
	}
	temporary := file.Name()
	defer func() { _ = os.Remove(temporary) }() // fails when it was renamed
	if err := file.Close(); err != nil {
		return err
	}
	db, err := bolt.Open(temporary, 0o600, &options)
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	// A link never replaces a file that another process has made meanwhile.
	err = os.Link(temporary, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return os.Rename(temporary, path) // a file system without hard links
}

// inspect reads all that is in the file. bbolt maps it into memory and trusts it:
// a page that is missing or damaged would end the process with a fault, or with a
// panic in a goroutine of bbolt's.
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
	pageSize := int64(db.Info().PageSize)
	if err := checkMetas(file, pageSize); err != nil {
		return err
	}
	return db.View(func(tx *bolt.Tx) error { return check(file, tx, pageSize) })
}

// check checks what the transaction would see in the file.
func check(file io.ReaderAt, tx *bolt.Tx, pageSize int64) error {
	t := tree{file: file, pageSize: pageSize, used: make([]bool, tx.Size()/pageSize)}
	for i := range metaPages {
		t.used[i] = true
	}
	return t.check(uint64(tx.Cursor().Bucket().RootPage()), nil, nil)
}

// Damage is an ErrDamaged in other words.
type Damage string

func (d Damage) Error() string { return string(d) }

// Is makes every Damage an ErrDamaged.
func (d Damage) Is(target error) bool { return target == ErrDamaged }

func damaged(how any) error {
	return Damage(fmt.Sprintf("the file is cut short or damaged (%v); restore it from a copy or choose another data directory", how))
}
