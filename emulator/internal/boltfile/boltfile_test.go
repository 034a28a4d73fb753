package boltfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dronefleet/dronefleet/emulator/internal/boltfile"
	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var options = bolt.Options{Timeout: 1, NoFreelistSync: true}

const values = 15

func value(i byte) []byte { return bytes.Repeat([]byte{i + 1}, 10_000) } // several pages

// fill makes a file with a nested bucket.
func fill(t *testing.T, path string) {
	t.Helper()
	db, err := boltfile.Open(path, options)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		outer, err := tx.CreateBucket([]byte("outer"))
		if err != nil {
			return err
		}
		inner, err := outer.CreateBucket([]byte("inner"))
		if err != nil {
			return err
		}
		for i := range byte(values) {
			err = errors.Join(err, inner.Put([]byte{i}, value(i)))
		}
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestOpen_RefusesFileInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	fill(t, path)
	db, err := boltfile.Open(path, options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := boltfile.Open(path, options); !errors.Is(err, boltfile.ErrInUse) {
		t.Errorf("opened twice: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// A file cut short is refused, unless it lost only unused pages. It does not crash
// the process.
func TestOpen_SurvivesFileCutShort(t *testing.T) { // E-DU-01, P-DUR-01
	path := filepath.Join(t.TempDir(), "file")
	fill(t, path)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for length := len(content) - 2048; length > 0; length -= 10240 {
		if err := os.WriteFile(path, content[:length], 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := boltfile.Open(path, options)
		if err != nil {
			refused++
			continue
		}
		err = db.View(func(tx *bolt.Tx) error {
			inner := tx.Bucket([]byte("outer")).Bucket([]byte("inner"))
			for i := range byte(values) {
				if !bytes.Equal(inner.Get([]byte{i}), value(i)) {
					return fmt.Errorf("cut from %d to %d bytes: value %d is wrong", len(content), length, i)
				}
			}
			return nil
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if refused == 0 {
		t.Error("no file was refused")
	}
}

// Nor does a file with an overwritten page.
func TestOpen_SurvivesOverwrittenPage(t *testing.T) { // E-DU-01, P-DUR-01
	path := filepath.Join(t.TempDir(), "file")
	fill(t, path)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	refused := 0
	for at := 2 * page; at < len(content); at += page {
		overwritten := bytes.Clone(content)
		copy(overwritten[at:], bytes.Repeat([]byte{0xa5}, page))
		if err := os.WriteFile(path, overwritten, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := boltfile.Open(path, options)
		if err != nil {
			refused++
		} else if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if refused == 0 {
		t.Error("no file was refused")
	}
}

// Nor does a file with a flipped bit in a page's header or elements.
func TestOpen_SurvivesFlippedBit(t *testing.T) { // E-DU-01, P-DUR-01
	path := filepath.Join(t.TempDir(), "file")
	growTree(t, path)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const structure = 64 // a page's header and its first elements
	page := os.Getpagesize()
	refused := 0
	for at := 2 * page; at < len(content); at += page {
		for i := range structure {
			bit := byte(1) << (i % 8)
			content[at+i] ^= bit
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			content[at+i] ^= bit
			db, err := boltfile.Open(path, unsynced)
			if err != nil {
				refused++
				continue
			}
			if err := errors.Join(change(db, rewrite), change(db, remove), db.Close()); err != nil {
				t.Errorf("bit of byte %d of page %d: %v", i, at/page, err)
			}
		}
	}
	if refused == 0 {
		t.Error("no file was refused")
	}
}

// A page that claims fewer elements than it has is refused: the others would be
// lost without an error.
func TestOpen_RefusesMiscountedPage(t *testing.T) { // E-DU-01, P-DUR-01
	path := filepath.Join(t.TempDir(), "file")
	growTree(t, path)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	refused := 0
	for at := 2 * page; at < len(content); at += page {
		count := content[at+10 : at+12] // after the page's number and kind
		elements := binary.NativeEndian.Uint16(count)
		for fewer := range elements {
			binary.NativeEndian.PutUint16(count, fewer)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			binary.NativeEndian.PutUint16(count, elements)
			db, err := boltfile.Open(path, unsynced)
			if err != nil {
				refused++
				continue
			}
			left := 0
			err = change(db, func(*bolt.Bucket, []byte) error { left++; return nil })
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			if left != keys {
				t.Errorf("page %d claims %d elements of %d: %d values of %d are left", at/page, fewer, elements, left, keys)
			}
		}
	}
	if refused == 0 {
		t.Error("no file was refused")
	}
}

var unsynced = bolt.Options{Timeout: 1, NoFreelistSync: true, NoSync: true, NoGrowSync: true}

const keys = 17 // values in growTree's bucket

// growTree makes a file with several levels of branches.
func growTree(t *testing.T, path string) {
	t.Helper()
	db, err := boltfile.Open(path, unsynced)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		bucket, err := tx.CreateBucket([]byte("bucket"))
		for i := range keys - 1 {
			err = errors.Join(err, bucket.Put(fmt.Appendf(nil, "%01000d", i), []byte("value")))
		}
		small, errSmall := bucket.CreateBucket([]byte("small"))
		return errors.Join(err, errSmall, small.Put([]byte("key"), []byte("value")), bucket.Put([]byte("large"), value(0)))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// change does something to each value that is there.
func change(db *bolt.DB, do func(bucket *bolt.Bucket, key []byte) error) error {
	return db.Update(func(tx *bolt.Tx) error {
		bucket := tx.Bucket([]byte("bucket"))
		if bucket == nil {
			return nil
		}
		var keys [][]byte
		err := bucket.ForEach(func(key, value []byte) error {
			if value != nil {
				keys = append(keys, bytes.Clone(key))
			}
			return nil
		})
		for _, key := range keys {
			err = errors.Join(err, do(bucket, key))
		}
		return err
	})
}

func rewrite(bucket *bolt.Bucket, key []byte) error {
	return bucket.Put(key, bytes.Clone(bucket.Get(key)))
}

func remove(bucket *bolt.Bucket, key []byte) error { return bucket.Delete(key) }

// fullDiskFile makes TestOpen_FullDiskLeavesNothing the process with a full disk:
// the limit that plays one is the whole process's, and go test has files of its own.
const fullDiskFile = "BOLTFILE_FULL_DISK"

// A disk that fills up while the file is created leaves nothing behind.
func TestOpen_FullDiskLeavesNothing(t *testing.T) { // E-DU-01, P-DUR-01
	if path := os.Getenv(fullDiskFile); path != "" {
		openOnFullDisk(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "file")
	child := exec.Command(os.Args[0], "-test.run=^TestOpen_FullDiskLeavesNothing$")
	child.Env = append(os.Environ(), fullDiskFile+"="+path)
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	fill(t, path)
}

// openOnFullDisk fails the test if a file is created where three pages have room:
// bbolt begins with four.
func openOnFullDisk(t *testing.T, path string) {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur = uint64(3 * os.Getpagesize())
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if _, err := boltfile.Open(path, options); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("opened with %v, want EFBIG: a file has no room", err)
	}
}

// An emptied file is not taken for a new one.
func TestOpen_RefusesEmptiedFile(t *testing.T) { // E-DU-01, P-DUR-01
	path := filepath.Join(t.TempDir(), "file")
	fill(t, path)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	_, err := boltfile.Open(path, options)
	if !errors.Is(err, boltfile.ErrDamaged) || !strings.Contains(err.Error(), "open "+path+": the file is empty") {
		t.Errorf("%v; want ErrDamaged, the path and that it is empty", err)
	}
}

// Processes that create the same file at once share one file.
func TestOpen_ConcurrentCreation(t *testing.T) { // E-DU-01, P-DUR-01
	path := filepath.Join(t.TempDir(), "file")
	var opened atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			db, err := boltfile.Open(path, bolt.Options{Timeout: time.Minute})
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(db.Update(func(tx *bolt.Tx) error {
				_, err := tx.CreateBucket(fmt.Append(nil, opened.Add(1)))
				return err
			}), db.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	db, err := boltfile.Open(path, options)
	if err != nil {
		t.Fatal(err)
	}
	buckets := 0
	err = db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func([]byte, *bolt.Bucket) error { buckets++; return nil })
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if buckets != 8 {
		t.Errorf("%d of 8 buckets are in the file", buckets)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Damage of either meta page is refused: bbolt would go back to the older one
// without an error, and with it to the state before the last commit.
func TestOpen_RefusesDamagedMetaPage(t *testing.T) { // E-DU-01, P-DUR-01
	path := filepath.Join(t.TempDir(), "file")
	fill(t, path)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const header, meta = 16, 64
	for page := range 2 {
		for i := range 8 * meta {
			damaged := bytes.Clone(content)
			damaged[page*os.Getpagesize()+header+i/8] ^= 1 << (i % 8)
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if db, err := boltfile.Open(path, options); err == nil {
				t.Errorf("opened with bit %d of meta page %d flipped", i, page)
				_ = db.Close()
			} else if !errors.Is(err, boltfile.ErrDamaged) || !strings.Contains(err.Error(), path) {
				t.Errorf("bit %d of meta page %d: %v", i, page, err)
			}
		}
	}
}
