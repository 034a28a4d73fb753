package locks

import (
	"errors"
	"slices"
	"time"
)

// Reasons for which an owner loses its locks before it ends by itself.
var (
	// ErrWounded says that an older owner needed a lock this owner held.
	ErrWounded = errors.New("locks: an older transaction took over a lock")
	// ErrWaitTimeout says that a lock was not granted within Limits.Wait.
	ErrWaitTimeout = errors.New("locks: waited too long for a lock")
	// ErrLockDeadline says that the owner kept others waiting longer than Limits.Hold.
	ErrLockDeadline = errors.New("locks: held a contended lock for too long")
	// ErrEnded says that the owner has already ended.
	ErrEnded = errors.New("locks: the owner has ended")
)

// phase is how far an owner has come. It only ever rises.
type phase int

const (
	active     phase = iota // may ask for locks, may be wounded
	committing              // holds its exclusive locks: can no longer be wounded
	ended                   // aborted or finished: holds nothing
)

// Owner is a transaction, or one commit without a transaction, as the lock table
// sees it. All fields are guarded by the table's mutex.
type Owner struct {
	age       uint64 // rank by first lock request; 0 before it; smaller is older
	attempt   uint64 // tells owners of one inherited age apart
	phase     phase
	cause     error // set when phase == ended
	shared    map[string]struct{}
	exclusive []string
	changes   []Change // what the exclusive locks are for
	ranges    []*HeldRange
	waiting   map[*request]struct{}
	blocked   []*request // requests to look at again when this owner lets go
	// blockingSince is when others began to wait for this owner because they had
	// to; meaningless while none of blocked does.
	blockingSince time.Time
}

// NewOwner returns an owner that inherits the age of an earlier attempt, or gets
// one of its own at its first lock request when age is 0.
func NewOwner(age uint64) *Owner { return &Owner{age: age} }

// olderThan ranks owners, no two alike. Of two attempts with one age the later
// one counts as older: its client has given up the other, which may still hold
// locks because its rollback was lost.
func (o *Owner) olderThan(other *Owner) bool {
	if o.age != other.age {
		return o.age < other.age
	}
	return o.attempt > other.attempt
}

// holdsAny says whether the owner has any lock.
func (o *Owner) holdsAny() bool { return len(o.shared) > 0 || len(o.ranges) > 0 }

// wait keeps a request on the list of those to look at when o lets go.
func (o *Owner) wait(r *request, now time.Time) {
	o.blocked = slices.DeleteFunc(o.blocked, func(other *request) bool { return !other.waiting })
	if !r.polite && !o.blocks(r) {
		o.blockingSince = now
	}
	o.blocked = append(o.blocked, r)
}

// blocks says whether a request other than r waits for o because it has to.
func (o *Owner) blocks(r *request) bool {
	return slices.ContainsFunc(o.blocked, func(other *request) bool { return other != r && !other.polite })
}

// HeldRange is a range lock an owner holds.
type HeldRange struct {
	owner *Owner
	scan  Range
}

// Range is the part of the database that a query scanned.
type Range interface {
	// Touches says whether a change adds to, removes from or alters what the
	// query saw.
	Touches(Change) bool
}
