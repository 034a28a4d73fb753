package locks

import (
	"errors"
	"slices"
	"time"
)

// Reasons why an owner loses its locks before it ends.
var (
	// ErrWounded means that an older owner needed a lock that this owner held.
	ErrWounded = errors.New("locks: aborted in favor of an older transaction")
	// ErrWaitTimeout means that a lock was not granted within Limits.Wait.
	ErrWaitTimeout = errors.New("locks: waited too long for a lock")
	// ErrLockDeadline means that the owner blocked others longer than Limits.Hold.
	ErrLockDeadline = errors.New("locks: held a contended lock for too long")
	// ErrEnded means that the owner has ended.
	ErrEnded = errors.New("locks: the owner has ended")
)

// phase is how far an owner has come. It never decreases.
type phase int

const (
	active     phase = iota // can request locks and can be wounded
	committing              // holds its exclusive locks and can no longer be wounded
	ended                   // finished or aborted; holds nothing
)

// Owner is a transaction, or a commit without a transaction. All fields are guarded
// by the table's mutex.
type Owner struct {
	age       uint64 // rank by first lock request, smaller is older; 0 before it
	attempt   uint64 // distinguishes owners that inherited the same age
	phase     phase
	cause     error // set when phase == ended
	shared    map[string]struct{}
	exclusive []string
	changes   []Change // what the exclusive locks are for
	ranges    []*HeldRange
	waiting   map[*request]struct{}
	blocked   []*request // requests to retry when this owner releases its locks
	// blockingSince is when the first of the requests that must wait for this owner
	// began to. It is valid only while there is such a request in blocked.
	blockingSince time.Time
}

// NewOwner returns an owner with the age of an earlier attempt. If age is 0, it gets
// a new one at its first lock request.
func NewOwner(age uint64) *Owner { return &Owner{age: age} }

// olderThan is a total order of owners. Of two attempts with the same age the later
// one counts as older: the client has given up the earlier one, which may still
// hold locks because its rollback was lost.
func (o *Owner) olderThan(other *Owner) bool {
	if o.age != other.age {
		return o.age < other.age
	}
	return o.attempt > other.attempt
}

// holdsAny reports whether the owner holds any lock.
func (o *Owner) holdsAny() bool { return len(o.shared) > 0 || len(o.ranges) > 0 }

// wait adds a request to those to retry when o releases its locks.
func (o *Owner) wait(r *request, now time.Time) {
	o.blocked = slices.DeleteFunc(o.blocked, func(other *request) bool { return !other.waiting })
	if !r.yielding && !o.blocks(r) {
		o.blockingSince = now
	}
	o.blocked = append(o.blocked, r)
}

// blocks reports whether a request other than r must wait for o. Requests that
// yield do not count.
func (o *Owner) blocks(r *request) bool {
	return slices.ContainsFunc(o.blocked, func(other *request) bool { return other != r && !other.yielding })
}

// HeldRange is a range lock that an owner holds.
type HeldRange struct {
	owner *Owner
	scan  Range
}

// Range is the part of the database that a query scanned.
type Range interface {
	// Touches reports whether a change adds to, removes from or alters what the
	// query read.
	Touches(Change) bool
}
