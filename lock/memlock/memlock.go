package memlock

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/waitline"
)

// cleanupAge is how long a lock must be over before IsLocked may drop it.
const cleanupAge = 2 * lock.Tolerance

// Backend is a lock.Backend in memory, safe for concurrent use.
type Backend struct {
	clock   lock.Clock
	log     *slog.Logger
	hash    lock.Hasher
	cleanup bool

	mu       sync.Mutex
	leases   map[string]*lease // by key
	counters map[string]int64  // never deleted
	waiters  waitline.Lines
}

type lease struct {
	key, lockID  string
	acquiredAtMs int64
	expiresAtMs  int64
	fence        lock.Fence
}

var (
	_ lock.Store  = (*Backend)(nil)
	_ lock.Waiter = (*Backend)(nil)
)

// Option changes a default of New.
type Option func(*Backend)

// WithClock sets the clock.
func WithClock(c lock.Clock) Option { return func(b *Backend) { b.clock = c } }

// WithLogger sets the logger, slog.Default by default.
func WithLogger(l *slog.Logger) Option { return func(b *Backend) { b.log = l } }

// WithHasher sets what turns keys and ids into hashes, lock.HashKey by default.
func WithHasher(h lock.Hasher) Option { return func(b *Backend) { b.hash = h } }

// WithCleanupInIsLocked lets IsLocked drop locks that ended more than two
// seconds ago.
func WithCleanupInIsLocked() Option { return func(b *Backend) { b.cleanup = true } }

// New returns an empty backend.
func New(opts ...Option) *Backend {
	b := &Backend{
		leases:   make(map[string]*lease),
		counters: make(map[string]int64),
	}
	for _, opt := range opts {
		if opt != nil {
			opt(b)
		}
	}
	if b.clock == nil {
		b.clock = lock.SystemClock()
	}
	b.waiters.Clock = b.clock
	b.log = cmp.Or(b.log, slog.Default())
	if b.hash == nil {
		b.hash = lock.HashKey
	}
	return b
}

// Capabilities describes the backend.
func (b *Backend) Capabilities() lock.Capabilities {
	return lock.Capabilities{Name: "memory", Fencing: true, TimeAuthority: lock.ClientTime}
}

// Acquire implements lock.Backend.
func (b *Backend) Acquire(ctx context.Context, req lock.AcquireRequest) (lock.AcquireResult, error) {
	fail := func(err error) (lock.AcquireResult, error) {
		return lock.AcquireResult{}, lock.Located(err, "acquire", req.Key, req.LockID)
	}
	req, err := lock.ValidateAcquire(req)
	if err != nil {
		return fail(err)
	}
	if ctx.Err() != nil {
		return fail(lock.AbortedBy(ctx))
	}

	key := req.Key
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	nowMs := now.UnixMilli()
	if old := b.leases[key]; old != nil && lock.IsLive(old.expiresAtMs, nowMs) {
		if old.lockID != req.LockID {
			b.waiters.Held(key, now)
			return lock.AcquireResult{Reason: lock.ReasonLocked, HolderExpiresAtMs: old.expiresAtMs}, nil
		}
		if old.expiresAtMs <= nowMs { // live for others, over for its holder
			b.drop(old)
			return fail(&lock.Error{Code: lock.CodeNetworkTimeout})
		}
		return old.granted(now), nil
	}
	fence, err := lock.NextFence(b.counters[key])
	if err != nil {
		return fail(err)
	}
	next := b.counters[key] + 1
	lock.WarnOfFence(b.log, b.hash, key, next)
	l := &lease{
		key:          key,
		lockID:       req.LockID,
		acquiredAtMs: nowMs,
		expiresAtMs:  nowMs + req.TTL.Milliseconds(),
		fence:        fence,
	}
	b.leases[key], b.counters[key] = l, next
	b.waiters.Held(key, now)
	return l.granted(now), nil
}

// granted is the lease as a result.
func (l *lease) granted(now time.Time) lock.AcquireResult {
	return lock.AcquireResult{
		OK:          true,
		LockID:      l.lockID,
		Fence:       l.fence,
		ExpiresAtMs: l.expiresAtMs,
		Deadline:    deadline(l.expiresAtMs, now),
	}
}

// deadline carries a wall-clock end over to the monotonic clock.
func deadline(expiresAtMs int64, now time.Time) time.Time {
	return now.Add(time.UnixMilli(expiresAtMs).Sub(now))
}

// Release implements lock.Backend.
func (b *Backend) Release(ctx context.Context, ref lock.Ref) (lock.ReleaseResult, error) {
	checked, err := admit(ctx, ref)
	if err != nil {
		return lock.ReleaseResult{}, lock.Located(err, "release", ref.Key, ref.LockID)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l, reason := b.find(checked)
	if l == nil {
		return lock.ReleaseResult{Reason: reason}, nil
	}
	b.drop(l)
	return lock.ReleaseResult{OK: true}, nil
}

// Extend implements lock.Backend.
func (b *Backend) Extend(ctx context.Context, ref lock.Ref, ttl time.Duration) (lock.ExtendResult, error) {
	fail := func(err error) (lock.ExtendResult, error) {
		return lock.ExtendResult{}, lock.Located(err, "extend", ref.Key, ref.LockID)
	}
	if err := lock.ValidateTTL(ttl); err != nil {
		return fail(err)
	}
	checked, err := admit(ctx, ref)
	if err != nil {
		return fail(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l, reason := b.find(checked)
	if l == nil {
		return lock.ExtendResult{Reason: reason}, nil
	}
	now := b.clock.Now()
	l.expiresAtMs = now.UnixMilli() + ttl.Milliseconds()
	return lock.ExtendResult{OK: true, ExpiresAtMs: l.expiresAtMs, Deadline: deadline(l.expiresAtMs, now)}, nil
}

// IsLocked implements lock.Backend.
func (b *Backend) IsLocked(ctx context.Context, key string) (bool, error) {
	normal, err := lock.NormalizeKey(key)
	if err == nil && ctx.Err() != nil {
		err = lock.AbortedBy(ctx)
	}
	if err != nil {
		return false, lock.Located(err, "isLocked", key, "")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.leases[normal]
	if l == nil {
		return false, nil
	}
	nowMs := b.clock.Now().UnixMilli()
	if b.cleanup && nowMs-l.expiresAtMs > cleanupAge.Milliseconds() {
		b.drop(l)
		return false, nil
	}
	return lock.IsLive(l.expiresAtMs, nowMs), nil
}

// Lookup implements lock.Backend.
func (b *Backend) Lookup(ctx context.Context, q lock.Query) (*lock.Info, error) {
	return lock.WithoutRaw(b.LookupRaw(ctx, q))
}

// LookupRaw implements lock.RawLookuper.
func (b *Backend) LookupRaw(ctx context.Context, q lock.Query) (*lock.RawInfo, error) {
	checked, err := lock.ValidateQuery(q)
	if err == nil && ctx.Err() != nil {
		err = lock.AbortedBy(ctx)
	}
	if err != nil {
		return nil, lock.Located(err, "lookup", q.Key, q.LockID)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if checked.LockID != "" {
		switch live, _ := b.search(lock.Ref{LockID: checked.LockID}); len(live) {
		case 0:
			return nil, nil
		case 1:
			return b.describe(live[0]), nil
		default:
			return nil, lock.Located(lock.DuplicateID(len(live)), "lookup", "", checked.LockID)
		}
	}
	l := b.leases[checked.Key]
	if l == nil || !lock.IsLive(l.expiresAtMs, b.clock.Now().UnixMilli()) {
		return nil, nil
	}
	return b.describe(l), nil
}

// List describes the live locks, sorted by key.
func (b *Backend) List(ctx context.Context) ([]lock.RawInfo, error) {
	if ctx.Err() != nil {
		return nil, lock.Located(lock.AbortedBy(ctx), "list", "", "")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	nowMs := b.clock.Now().UnixMilli()
	var list []lock.RawInfo
	for _, l := range b.leases {
		if lock.IsLive(l.expiresAtMs, nowMs) {
			list = append(list, *b.describe(l))
		}
	}
	slices.SortFunc(list, func(x, y lock.RawInfo) int { return strings.Compare(x.Key, y.Key) })
	return list, nil
}

func (b *Backend) describe(l *lease) *lock.RawInfo {
	return &lock.RawInfo{
		Info: lock.Info{
			KeyHash:      b.hash(l.key),
			LockIDHash:   b.hash(l.lockID),
			ExpiresAtMs:  l.expiresAtMs,
			AcquiredAtMs: l.acquiredAtMs,
			Fence:        l.fence,
		},
		Key:    l.key,
		LockID: l.lockID,
	}
}

// find returns the one live lease of a reference. Of several with one id none is
// meant. The caller holds mu.
func (b *Backend) find(ref lock.Ref) (*lease, lock.Reason) {
	live, reason := b.search(ref)
	if len(live) != 1 {
		return nil, reason
	}
	return live[0], ""
}

// search returns the live leases of a reference, with a key at most that key's, and
// a reason for there being none. The caller holds mu.
func (b *Backend) search(ref lock.Ref) (live []*lease, none lock.Reason) {
	none = lock.ReasonNotFound
	nowMs := b.clock.Now().UnixMilli()
	look := func(l *lease) {
		switch {
		case l == nil, l.lockID != ref.LockID:
		case lock.IsLive(l.expiresAtMs, nowMs):
			live = append(live, l)
		default:
			none = lock.ReasonExpired
		}
	}
	if ref.Key != "" {
		look(b.leases[ref.Key])
		return live, none
	}
	for _, l := range b.leases {
		look(l)
	}
	return live, none
}

// drop removes a lease, keeps its counter and wakes the first waiter. The caller holds mu.
func (b *Backend) drop(l *lease) {
	delete(b.leases, l.key)
	b.waiters.Wake(l.key)
}

// Watch implements lock.Waiter.
func (b *Backend) Watch(key string) (<-chan struct{}, func()) { return b.waiters.Watch(key) }

// admit checks a reference, then the context.
func admit(ctx context.Context, ref lock.Ref) (lock.Ref, error) {
	ref, err := lock.ValidateRef(ref)
	if err == nil && ctx.Err() != nil {
		err = lock.AbortedBy(ctx)
	}
	return ref, err
}

// CheckClock implements lock.ClockChecker: the store's clock is the local one.
func (b *Backend) CheckClock(ctx context.Context) (lock.ClockReport, error) {
	if ctx.Err() != nil {
		return lock.ClockReport{}, lock.AbortedBy(ctx)
	}
	return lock.ClockReport{Level: lock.ClockOK}, nil
}

// Close implements lock.Closer; nothing runs in the background.
func (b *Backend) Close(context.Context) error { return nil }
