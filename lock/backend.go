package lock

import (
	"context"
	"time"
)

// Backend stores leases. Each method makes one attempt, never waits for another holder, and is
// safe for concurrent use.
//
// Arguments are checked before any I/O and refused with ErrInvalidArgument; then a context that
// has already ended is ErrAborted.
type Backend interface {
	// Acquire tries once to take the lock of a key. If another holder has it, OK is false with
	// ReasonLocked. After an error with OutcomeUnknown the attempt's id may hold the lock until
	// it is released or ends.
	Acquire(ctx context.Context, req AcquireRequest) (AcquireResult, error)

	// Release gives the lock up. Of repeated or concurrent releases at most one
	// is OK; a lock that is absent, foreign or over is left alone.
	Release(ctx context.Context, ref Ref) (ReleaseResult, error)

	// Extend makes the lease end ttl from now, which may be sooner than it did.
	// It never revives a lease that is over.
	Extend(ctx context.Context, ref Ref, ttl time.Duration) (ExtendResult, error)

	// IsLocked reports whether a live lock exists for the key.
	IsLocked(ctx context.Context, key string) (bool, error)

	// Lookup describes a live lock, or returns nil, nil. The answer may be out of date when it
	// returns, so it guards nothing. If several live locks have the id, the error is
	// ErrInternal.
	Lookup(ctx context.Context, q Query) (*Info, error)

	// Capabilities describes the backend.
	Capabilities() Capabilities
}

// RawLookuper is a Backend that can also reveal keys and lock ids.
type RawLookuper interface {
	// LookupRaw is Lookup with the raw key and lock id.
	LookupRaw(ctx context.Context, q Query) (*RawInfo, error)
}

// Lister is a Backend that can list its locks.
type Lister interface {
	// List describes the live locks. RawInfo.Info alone is fit for printing.
	List(ctx context.Context) ([]RawInfo, error)
}

// Closer is a Backend that does work in the background.
type Closer interface {
	// Close ends that work and waits for it until ctx ends. Leases that it could not release
	// expire.
	Close(ctx context.Context) error
}

// Store is a Backend with all that a service and its operators need of it.
type Store interface {
	Backend
	RawLookuper
	Lister
	ClockChecker
	Closer
}

// FenceReader is a Backend that can tell which fences it has handed out, for resources
// that refuse a fence that no holder can have.
type FenceReader interface {
	// HighestFence is the highest fence ever issued for a key, empty if none was. It asks the
	// store's primary. Fences issued before the call are not above the answer, unless the store
	// lost them.
	HighestFence(ctx context.Context, key string) (Fence, error)
}

// Waiter is a Backend that signals when a held key is worth another try. Signals may be missing
// or spurious, so helpers poll as well.
type Waiter interface {
	// Watch registers interest in a key until stop is called. The channel receives a value when
	// the key may be free; the longest waiting watcher of a process is signalled first.
	Watch(key string) (free <-chan struct{}, stop func())
}

// Capabilities describes a backend.
type Capabilities struct {
	Name          string // such as "firestore" or "redis"
	Fencing       bool   // acquisitions carry fences
	TimeAuthority string // whose clock decides about expiry: ClientTime or ServerTime
}

// Whose clock decides about expiry. With ClientTime the clients' clocks decide and must agree;
// with ServerTime a wrong client clock does no harm.
const (
	ClientTime = "client"
	ServerTime = "server"
)

// Reason says why a result is not OK. It is what the deciding read saw; no extra read is made
// to refine it.
type Reason string

// The reasons.
const (
	ReasonLocked   Reason = "locked"    // another holder has the lock
	ReasonExpired  Reason = "expired"   // the lease was found, but over
	ReasonNotFound Reason = "not-found" // there is no such lease
)

// AcquireRequest asks for one attempt.
type AcquireRequest struct {
	// Key names the lock: non-empty valid UTF-8, at most 512 bytes in Unicode
	// NFC. Keys equal under NFC are one lock.
	Key string

	// TTL is the length of the lease: a positive whole number of milliseconds.
	TTL time.Duration

	// LockID makes attempts idempotent: a retry with the id of an attempt that succeeded
	// returns its lease. If it is empty, the backend makes one. Use a new id for each logical
	// acquisition, and after an error with OutcomeUnknown: the backend may still release what
	// that attempt took.
	LockID string

	// Probe hints that the lock is probably held: the backend answers a held
	// lock from a plain read that takes no locks in the store.
	Probe bool
}

// AcquireResult is the outcome of an attempt.
type AcquireResult struct {
	OK          bool
	LockID      string // proves ownership; as committed
	Fence       Fence  // as committed
	ExpiresAtMs int64  // as committed, Unix milliseconds

	// Deadline is when the holder must stop, on the local monotonic clock. It
	// is never later than the moment ExpiresAtMs names.
	Deadline time.Time

	Reason            Reason // when not OK
	HolderExpiresAtMs int64  // when not OK: end of the holder's lease, if known
}

// Ref names a lease. With a Key the backend reads the lock directly; without
// one it searches for the id.
type Ref struct {
	LockID string
	Key    string // optional
}

// ReleaseResult is the outcome of a release.
type ReleaseResult struct {
	OK     bool   // this call deleted the lock
	Reason Reason // when not OK
}

// ExtendResult is the outcome of an extension.
type ExtendResult struct {
	OK          bool
	ExpiresAtMs int64     // as committed, Unix milliseconds
	Deadline    time.Time // when the holder must stop, see AcquireResult
	Reason      Reason    // when not OK

	// Repeated tells that the request was sent more than once, also when not OK: the store
	// may still execute an earlier copy, and thereby shorten a later extension.
	Repeated bool
}

// Query names a lock to look up: exactly one field is set.
type Query struct {
	Key    string
	LockID string
}

// Info describes a live lock without revealing its key or id.
type Info struct {
	KeyHash      string `json:"keyHash"`
	LockIDHash   string `json:"lockIdHash"`
	ExpiresAtMs  int64  `json:"expiresAtMs"`  // Unix milliseconds
	AcquiredAtMs int64  `json:"acquiredAtMs"` // Unix milliseconds
	Fence        Fence  `json:"fence"`        // 15 digits, also for older documents
}

// RawInfo is Info with the raw key and lock id. Whoever holds a lock id can
// release the lock: keep it out of logs.
type RawInfo struct {
	Info
	Key    string `json:"key"`
	LockID string `json:"lockId"`
}
