package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

var (
	messagesBucket = []byte("messages") // id -> published, stored, wire
	holdsBucket    = []byte("holds")    // holder, id -> state
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

// Holds are the messages that one holder gets in one change.
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

// Held is one hold as loaded.
type Held struct {
	ID    uint64
	Acked bool
}

// State is the content of a journal.
type State struct {
	Boots      uint64 // times the journal was opened, this one included
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

	failed error       // a transaction failed: nothing more is written; only the committer touches it
	tell   func(error) // told of it

	mu      sync.Mutex
	changed sync.Cond
	queue   []change
	closed  bool
}

type change struct {
	apply func(*bolt.Tx) error
	done  chan error // nil when nobody waits
}

// Open opens or creates the journal in dir and loads it. When a change cannot be
// written, tell is called with the reason, once: no later one is tried.
func Open(dir string, tell func(error)) (*Journal, *State, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, fmt.Errorf("data directory: %w", err)
	}
	path := filepath.Join(dir, "pubsub.db")
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

// Close commits what is enqueued and closes the file. It fails when an earlier
// change did: nothing since then is on disk.
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

// Edit is a change of the resources, made by Put, Delete or Release.
type Edit func(*Journal, *bolt.Tx) error

// Apply makes all the edits or, when it fails or the process dies in it, none. It
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
		return tx.Bucket([]byte(kind)).Put([]byte(r.Name), append(number(r.Holder), r.Config...))
	}
}

// Delete removes a resource and all it holds.
func Delete(kind Kind, name string, holder uint64) Edit {
	return func(j *Journal, tx *bolt.Tx) error {
		if err := tx.Bucket([]byte(kind)).Delete([]byte(name)); err != nil {
			return err
		}
		return j.release(tx, holder)
	}
}

// Release removes all that a holder holds.
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
				continue // nobody wants it
			}
			value := append(append(number(uint64(m.Published)), number(uint64(m.Stored))...), m.Wire...)
			if err := bucket.Put(number(m.ID), value); err != nil {
				return err
			}
		}
		return nil
	})
}

// Settle enqueues what changed in a holder: revived messages are unacked
// again, acked ones are kept as such, dropped ones are no longer held. It does
// not wait; a crash may forget it.
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
	state := []byte{0}
	if acked {
		state[0] = 1
	}
	for _, id := range ids {
		key := append(number(holder), number(id)...)
		if bucket.Get(key) == nil {
			j.refs[id]++
		}
		if err := bucket.Put(key, state); err != nil {
			return err
		}
	}
	return nil
}

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
		meta := tx.Bucket(metaBucket)
		state.Boots = read(meta.Get(bootsKey)) + 1
		state.LastHolder = read(meta.Get(lastHolderKey))
		if err := meta.Put(bootsKey, number(state.Boots)); err != nil {
			return err
		}
		for _, kind := range []Kind{Topic, Subscription, Snapshot} {
			err := tx.Bucket([]byte(kind)).ForEach(func(k, v []byte) error {
				if len(v) < 8 {
					return fmt.Errorf("%s %s: record of %d bytes", kind, k, len(v))
				}
				state.Resources[kind] = append(state.Resources[kind], Resource{
					Name: string(k), Holder: read(v), Config: append([]byte(nil), v[8:]...),
				})
				return nil
			})
			if err != nil {
				return err
			}
		}
		return j.loadMessages(tx, state)
	})
	return state, err
}

// makeBuckets makes those that are missing, of a new file all. It refuses what is
// none of them: one whose name is damaged would be made anew, with nothing in it.
func makeBuckets(tx *bolt.Tx) error {
	all := []string{string(messagesBucket), string(holdsBucket), string(metaBucket), string(Topic), string(Subscription), string(Snapshot)}
	err := tx.ForEach(func(name []byte, bucket *bolt.Bucket) error {
		if bucket == nil || !slices.Contains(all, string(name)) {
			return fmt.Errorf("unknown content %q: the file is damaged; restore it from a copy or choose another data directory", name)
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

func (j *Journal) loadMessages(tx *bolt.Tx, state *State) error {
	err := tx.Bucket(holdsBucket).ForEach(func(k, v []byte) error {
		if len(k) != 16 || len(v) != 1 {
			return fmt.Errorf("hold %x: %x", k, v)
		}
		id := read(k[8:])
		state.Holds[read(k)] = append(state.Holds[read(k)], Held{ID: id, Acked: v[0] == 1})
		j.refs[id]++
		return nil
	})
	if err != nil {
		return err
	}
	return tx.Bucket(messagesBucket).ForEach(func(k, v []byte) error {
		if len(k) != 8 || len(v) < 16 {
			return fmt.Errorf("message %x: record of %d bytes", k, len(v))
		}
		id := read(k)
		state.Messages[id] = Message{
			ID: id, Published: int64(read(v)), Stored: int64(read(v[8:])), Wire: append([]byte(nil), v[16:]...),
		}
		return nil
	})
}

// putMax stores n unless more is stored already.
func putMax(tx *bolt.Tx, key []byte, n uint64) error {
	meta := tx.Bucket(metaBucket)
	if read(meta.Get(key)) >= n {
		return nil
	}
	return meta.Put(key, number(n))
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 0, 24), n) }

func read(b []byte) uint64 {
	if len(b) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}
