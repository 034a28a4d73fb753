package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dronefleet/dronefleet/emulator/internal/boltfile"
)

// Kind is a kind of named resource.
type Kind string

// The resources of a server.
const (
	Topic        Kind = "topics"
	Subscription Kind = "subscriptions"
	Snapshot     Kind = "snapshots"
)

// FileName is the file inside the data directory.
const FileName = "pubsub.db"

// Buckets and their records, each sealed with a checksum: see package boltfile.
var (
	messagesBucket = []byte("messages") // id -> published, stored, wire
	holdsBucket    = []byte("holds")    // holder, id -> 1 when acked, else 0
	metaBucket     = []byte("meta")
	bootsKey       = []byte("boots")
	lastHolderKey  = []byte("last holder")
)

// Message is a stored message.
type Message struct {
	ID        uint64
	Published int64 // Unix nanoseconds as published
	Stored    int64 // Unix nanoseconds on the server's clock
	Wire      []byte
}

// Holds are the messages that one change gives to a holder.
type Holds struct {
	Holder uint64
	IDs    []uint64
}

// Resource is a topic, subscription or snapshot.
type Resource struct {
	Name   string
	Holder uint64
	Config []byte
}

// Held is a hold as loaded.
type Held struct {
	ID    uint64
	Acked bool
}

// State is the content of a journal.
type State struct {
	Boots      uint64 // how often the journal was opened, this time included
	LastHolder uint64
	Resources  map[Kind][]Resource
	Messages   map[uint64]Message
	Holds      map[uint64][]Held // by holder, in order of message id
}

// Journal is an open file. Its methods are safe for concurrent use.
type Journal struct {
	db   *bolt.DB
	refs map[uint64]int32 // holds per message; only the committer touches it
	wg   sync.WaitGroup

	failed error       // why a transaction failed; nothing is written after that; only the committer touches it
	tell   func(error) // called with failed, once

	mu      sync.Mutex
	changed sync.Cond
	queue   []change
	closed  bool
}

type change struct {
	apply func(*bolt.Tx) error
	done  chan error // nil when no caller waits
}

// Open opens or creates the journal in dir and loads it. When a change cannot be
// written, tell is called once with the reason, and no later change is tried.
func Open(dir string, tell func(error)) (*Journal, *State, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, fmt.Errorf("data directory: %w", err)
	}
	path := filepath.Join(dir, FileName)
	db, err := boltfile.Open(path, bolt.Options{
		Timeout: time.Second, NoFreelistSync: true, FreelistType: bolt.FreelistMapType,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("data directory: %w", err)
	}
	j := &Journal{db: db, refs: map[uint64]int32{}, tell: tell}
	j.changed.L = &j.mu
	state, err := j.load()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("data directory: load %s: %w", path, err), db.Close())
	}
	j.wg.Go(j.commitLoop)
	return j, state, nil
}

// Close commits the enqueued changes and closes the file. It fails when an earlier
// change failed: nothing since then is on disk.
func (j *Journal) Close() error {
	j.mu.Lock()
	j.closed = true
	j.changed.Signal()
	j.mu.Unlock()
	j.wg.Wait()
	return errors.Join(j.failed, j.db.Close())
}

// enqueue adds a change to the next transaction.
func (j *Journal) enqueue(c change) {
	j.mu.Lock()
	closed := j.closed
	if !closed {
		j.queue = append(j.queue, c)
		j.changed.Signal()
	}
	j.mu.Unlock()
	if closed && c.done != nil {
		c.done <- errors.New("the journal is closed")
	}
}

// do enqueues a change and waits until it is on disk.
func (j *Journal) do(apply func(*bolt.Tx) error) error {
	done := make(chan error, 1)
	j.enqueue(change{apply, done})
	return <-done
}

func (j *Journal) commitLoop() {
	for {
		j.mu.Lock()
		for len(j.queue) == 0 && !j.closed {
			j.changed.Wait()
		}
		batch := j.queue
		j.queue = nil
		j.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		err := j.failed
		if err == nil {
			if err = j.commit(batch); err != nil {
				j.tell(err)
			}
		}
		for _, c := range batch {
			if c.done != nil {
				c.done <- err
			}
		}
		j.failed = err
	}
}

func (j *Journal) commit(batch []change) error {
	return j.db.Update(func(tx *bolt.Tx) error {
		for _, c := range batch {
			if err := c.apply(tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// Sync waits until everything enqueued so far is on disk.
func (j *Journal) Sync() error { return j.do(func(*bolt.Tx) error { return nil }) }

// Edit is a change of resources, made by Put, Delete or Release.
type Edit func(*Journal, *bolt.Tx) error

// Apply makes all edits or, if it fails or the process dies, none of them. It
// returns once they are on disk.
func (j *Journal) Apply(edits ...Edit) error {
	return j.do(func(tx *bolt.Tx) error {
		for _, edit := range edits {
			if err := edit(j, tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// Put stores a resource.
func Put(kind Kind, r Resource) Edit {
	return func(_ *Journal, tx *bolt.Tx) error {
		if err := putMax(tx, lastHolderKey, r.Holder); err != nil {
			return err
		}
		key := []byte(r.Name)
		return tx.Bucket([]byte(kind)).Put(key, boltfile.Seal(key, append(sealed(r.Holder), r.Config...)))
	}
}

// Delete removes a resource and all its holds.
func Delete(kind Kind, name string, holder uint64) Edit {
	return func(j *Journal, tx *bolt.Tx) error {
		if err := tx.Bucket([]byte(kind)).Delete([]byte(name)); err != nil {
			return err
		}
		return j.release(tx, holder)
	}
}

// Release removes all holds of a holder.
func Release(holder uint64) Edit {
	return func(j *Journal, tx *bolt.Tx) error { return j.release(tx, holder) }
}

func (j *Journal) release(tx *bolt.Tx, holder uint64) error {
	bucket := tx.Bucket(holdsBucket)
	prefix := number(holder)
	var ids []uint64
	for c, k := prefixed(bucket, prefix); k != nil && [8]byte(k) == [8]byte(prefix); k, _ = c.Next() {
		ids = append(ids, binary.BigEndian.Uint64(k[8:]))
	}
	return j.drop(tx, holder, ids)
}

func prefixed(bucket *bolt.Bucket, prefix []byte) (*bolt.Cursor, []byte) {
	c := bucket.Cursor()
	k, _ := c.Seek(prefix)
	return c, k
}

// Publish stores messages with their holds and returns once they are on disk.
func (j *Journal) Publish(messages []Message, holds []Holds) error {
	return j.do(func(tx *bolt.Tx) error {
		bucket := tx.Bucket(messagesBucket)
		held := map[uint64]bool{}
		for _, h := range holds {
			for _, id := range h.IDs {
				held[id] = true
			}
			if err := j.hold(tx, h.Holder, h.IDs, false); err != nil {
				return err
			}
		}
		for _, m := range messages {
			if !held[m.ID] {
				continue // no subscription gets it
			}
			key := number(m.ID)
			value := append(sealed(uint64(m.Published), uint64(m.Stored)), m.Wire...)
			if err := bucket.Put(key, boltfile.Seal(key, value)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Settle enqueues changes of a holder: revived messages are unacked again, acked
// ones stay held as acked, dropped ones are no longer held. It does not wait, so
// a crash may forget the changes.
func (j *Journal) Settle(holder uint64, revived, acked, dropped []uint64) {
	j.enqueue(change{apply: func(tx *bolt.Tx) error {
		if err := j.hold(tx, holder, revived, false); err != nil {
			return err
		}
		if err := j.hold(tx, holder, acked, true); err != nil {
			return err
		}
		return j.drop(tx, holder, dropped)
	}})
}

func (j *Journal) hold(tx *bolt.Tx, holder uint64, ids []uint64, acked bool) error {
	bucket := tx.Bucket(holdsBucket)
	state := holdUnacked
	if acked {
		state = holdAcked
	}
	for _, id := range ids {
		key := append(number(holder), number(id)...)
		if bucket.Get(key) == nil {
			j.refs[id]++
		}
		if err := bucket.Put(key, boltfile.Seal(key, append(boltfile.Unsealed(1), state))); err != nil {
			return err
		}
	}
	return nil
}

// The states of a hold.
const holdUnacked, holdAcked byte = 0, 1

func (j *Journal) drop(tx *bolt.Tx, holder uint64, ids []uint64) error {
	holds, messages := tx.Bucket(holdsBucket), tx.Bucket(messagesBucket)
	for _, id := range ids {
		key := append(number(holder), number(id)...)
		if holds.Get(key) == nil {
			continue
		}
		if err := holds.Delete(key); err != nil {
			return err
		}
		if j.refs[id]--; j.refs[id] > 0 {
			continue
		}
		delete(j.refs, id)
		if err := messages.Delete(number(id)); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) load() (*State, error) {
	state := &State{
		Resources: map[Kind][]Resource{}, Messages: map[uint64]Message{}, Holds: map[uint64][]Held{},
	}
	err := j.db.Update(func(tx *bolt.Tx) error {
		if err := makeBuckets(tx); err != nil {
			return err
		}
		var err error
		if state.Boots, err = readMeta(tx, bootsKey); err != nil {
			return err
		}
		if state.LastHolder, err = readMeta(tx, lastHolderKey); err != nil {
			return err
		}
		state.Boots++
		if err := putMeta(tx, bootsKey, state.Boots); err != nil {
			return err
		}
		if err := loadResources(tx, state); err != nil {
			return err
		}
		if err := j.loadHolds(tx, state); err != nil {
			return err
		}
		return loadMessages(tx, state)
	})
	return state, err
}

// makeBuckets creates the missing buckets, all of them in a new file. It refuses an
// unknown one: if a bucket's name is damaged, creating the bucket again would make
// its content seem to be gone.
func makeBuckets(tx *bolt.Tx) error {
	all := []string{string(messagesBucket), string(holdsBucket), string(metaBucket), string(Topic), string(Subscription), string(Snapshot)}
	err := tx.ForEach(func(name []byte, bucket *bolt.Bucket) error {
		if bucket == nil || !slices.Contains(all, string(name)) {
			return fmt.Errorf("bucket %q %w", name, boltfile.ErrDamaged)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range all {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	return nil
}

func loadResources(tx *bolt.Tx, state *State) error {
	for _, kind := range []Kind{Topic, Subscription, Snapshot} {
		err := tx.Bucket([]byte(kind)).ForEach(func(k, v []byte) error {
			value, err := unseal(k, v, 8)
			if err != nil {
				return fmt.Errorf("resource %q %w", k, err)
			}
			state.Resources[kind] = append(state.Resources[kind], Resource{
				Name: string(k), Holder: read(value), Config: bytes.Clone(value[8:]),
			})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) loadHolds(tx *bolt.Tx, state *State) error {
	return tx.Bucket(holdsBucket).ForEach(func(k, v []byte) error {
		value, err := unseal(k, v, 1)
		if err == nil && len(k) != 16 {
			err = boltfile.ErrDamaged
		}
		if err != nil {
			return fmt.Errorf("hold (holder and message %s) %w", numbers(k), err)
		}
		holder, id := read(k), read(k[8:])
		state.Holds[holder] = append(state.Holds[holder], Held{ID: id, Acked: value[0] == holdAcked})
		j.refs[id]++
		return nil
	})
}

func loadMessages(tx *bolt.Tx, state *State) error {
	return tx.Bucket(messagesBucket).ForEach(func(k, v []byte) error {
		value, err := unseal(k, v, 16)
		if err == nil && len(k) != 8 {
			err = boltfile.ErrDamaged
		}
		if err != nil {
			return fmt.Errorf("message %s %w", numbers(k), err)
		}
		id := read(k)
		state.Messages[id] = Message{
			ID: id, Published: int64(read(value)), Stored: int64(read(value[8:])), Wire: bytes.Clone(value[16:]),
		}
		return nil
	})
}

// putMax stores n unless a larger number is stored already.
func putMax(tx *bolt.Tx, key []byte, n uint64) error {
	stored, err := readMeta(tx, key)
	if err != nil || stored >= n {
		return err
	}
	return putMeta(tx, key, n)
}

func putMeta(tx *bolt.Tx, key []byte, n uint64) error {
	return tx.Bucket(metaBucket).Put(key, boltfile.Seal(key, sealed(n)))
}

// errUnsealed is found at the counter of boots, which is read first.
var errUnsealed = errors.New("was written by an earlier version, which kept no checksums; choose another data directory")

// readMeta returns 0 when nothing is stored under the key.
func readMeta(tx *bolt.Tx, key []byte) (uint64, error) {
	stored := tx.Bucket(metaBucket).Get(key)
	if stored == nil {
		return 0, nil
	}
	value, err := unseal(key, stored, 8)
	if err != nil && len(stored) == 8 {
		err = errUnsealed
	}
	if err != nil {
		return 0, fmt.Errorf("counter %q %w", key, err)
	}
	return read(value), nil
}

// sealed begins a value that boltfile.Seal completes, with numbers.
func sealed(numbers ...uint64) []byte {
	value := boltfile.Unsealed(8 * len(numbers))
	for _, n := range numbers {
		value = binary.BigEndian.AppendUint64(value, n)
	}
	return value
}

// unseal returns a value of at least size bytes.
func unseal(key, stored []byte, size int) ([]byte, error) {
	value, err := boltfile.Unseal(key, stored)
	if err == nil && len(value) < size {
		err = boltfile.ErrDamaged
	}
	return value, err
}

// numbers shows a key as an error names it.
func numbers(key []byte) string {
	var out []string
	for ; len(key) >= 8; key = key[8:] {
		out = append(out, strconv.FormatUint(read(key), 10))
	}
	return strings.Join(out, " ")
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 0, 16), n) }

func read(b []byte) uint64 { return binary.BigEndian.Uint64(b) }
