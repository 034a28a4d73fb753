package lock

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Handle is one held lease. It is safe for concurrent use, and an empty one (nil or the zero
// value) does nothing. It releases at most once: if that fails, the lease expires in the store.
type Handle struct {
	backend Backend
	key     string
	lockID  string
	fence   Fence
	cfg     config

	ctx    context.Context
	cancel context.CancelCauseFunc

	heartbeat *heartbeat // nil without WithAutoExtend

	extending chan struct{} // one slot: orders extensions with their bookkeeping
	longest   time.Duration // what extensions may still ask for; 0: anything. Belongs to the slot

	mu          sync.Mutex
	state       handleState
	deadline    time.Time
	expiresAtMs int64
	leaseEnd    Timer // fires at deadline
	loss        error // ErrOwnershipLost or ErrLeaseUnproven

	cancelRelease context.CancelCauseFunc // while closing
	released      chan struct{}           // closed when state is closed

	reported atomic.Bool // a failed release is reported once, by whichever Close sees it
}

type handleState int

const (
	active handleState = iota
	closing
	closed
)

// newHandle starts the bookkeeping of a lease. The handle's context is derived
// from parent.
func newHandle(parent context.Context, b Backend, key string, res AcquireResult, c config) *Handle {
	ctx, cancel := context.WithCancelCause(parent)
	h := &Handle{
		backend:     b,
		key:         key,
		lockID:      res.LockID,
		fence:       res.Fence,
		cfg:         c,
		ctx:         ctx,
		cancel:      cancel,
		deadline:    res.Deadline,
		expiresAtMs: res.ExpiresAtMs,
		extending:   make(chan struct{}, 1),
		released:    make(chan struct{}),
	}
	h.mu.Lock()
	h.armLeaseEnd()
	h.mu.Unlock()
	if c.autoExtend {
		h.heartbeat = startHeartbeat(context.WithoutCancel(parent), h)
	}
	return h
}

// isNone tells whether there never was a lease.
func (h *Handle) isNone() bool { return h == nil || h.backend == nil }

// LockID is the secret that proves ownership.
func (h *Handle) LockID() string {
	if h.isNone() {
		return ""
	}
	return h.lockID
}

// Key is the key as it was given.
func (h *Handle) Key() string {
	if h.isNone() {
		return ""
	}
	return h.key
}

// Fence is the token to pass with every write to the protected resource.
func (h *Handle) Fence() Fence {
	if h.isNone() {
		return ""
	}
	return h.fence
}

// ExpiresAt is the end of the lease as last known to be stored, zero if there is
// none.
func (h *Handle) ExpiresAt() time.Time {
	if h.isNone() {
		return time.Time{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.UnixMilli(h.expiresAtMs)
}

// Context ends when the lease does. Its cause is ErrOwnershipLost if the store refused an
// extension, ErrLeaseUnproven if the lease ended or was not extended in time, ErrClosed after
// Release or Close. In Do it also ends with the caller's context.
func (h *Handle) Context() context.Context {
	if h.isNone() {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(ErrClosed)
		return ctx
	}
	return h.ctx
}

// Extend makes the lease end ttl from now. A lease that is over can still be extended until
// somebody else may take it, but a context that has ended stays ended. False means that the
// lease is lost (the context ends with ErrOwnershipLost) or that the handle was closed.
//
// After an error the handle relies on the sooner of the old and the new end, until an extension
// succeeds. If the store's clock decides about expiry, the failed extension may be executed
// late, so no later one is longer than it. An answer that comes after the new lease has ended
// is ErrNetworkTimeout.
func (h *Handle) Extend(ctx context.Context, ttl time.Duration) (bool, error) {
	if h.isNone() {
		return false, nil
	}
	if err := ValidateTTL(ttl); err != nil {
		return false, Located(err, "extend", h.key, h.lockID)
	}
	if !h.isActive() {
		return false, nil
	}
	ok, err := h.extend(ctx, ttl)
	if err != nil {
		return false, Located(err, "extend", h.key, h.lockID)
	}
	return ok, nil
}

// Release gives the lock up. True means that this call did; a later call is
// false, nil. It returns its error and reports it nowhere else.
func (h *Handle) Release(ctx context.Context) (bool, error) {
	if h.isNone() {
		return false, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !h.beginRelease(cancel) {
		return false, nil
	}
	ok, err := h.releaseOnce(ctx)
	if err != nil {
		return false, Located(err, "release", h.key, h.lockID)
	}
	return ok, nil
}

// Close releases the lock if nobody has, and waits for a release in flight, at most the close
// timeout. The first failure is reported to OnReleaseError and returned; further calls return
// nil.
func (h *Handle) Close() error {
	if h.isNone() {
		return nil
	}
	return h.dispose()
}

// isActive tells whether no release has begun.
func (h *Handle) isActive() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state == active
}

// lost is ErrOwnershipLost, ErrLeaseUnproven or nil.
func (h *Handle) lost() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noticeEnd()
	return h.loss
}

// noticeEnd ends the handle's context if the lease is over by the clock, for the timer may run
// late or belong to an end that an extension moved. The caller holds mu.
func (h *Handle) noticeEnd() {
	if h.state == active && h.loss == nil && !h.cfg.clock.Now().Before(h.deadline) {
		h.loss = ErrLeaseUnproven
		h.cancel(h.loss)
	}
}

// lose ends the handle's context because the lease can no longer be relied on.
func (h *Handle) lose(cause error) {
	h.mu.Lock()
	if h.state == active && h.loss == nil {
		h.loss = cause
	}
	h.mu.Unlock()
	h.cancel(cause)
}

// extend asks the backend and keeps the books, one extension at a time. One that
// hangs keeps no other call waiting beyond its context.
func (h *Handle) extend(ctx context.Context, ttl time.Duration) (bool, error) {
	select {
	case h.extending <- struct{}{}:
	case <-ctx.Done():
		return false, AbortedBy(ctx)
	}
	defer func() { <-h.extending }()
	if !h.isActive() { // released meanwhile
		return false, nil
	}
	if ctx.Err() != nil { // nothing is asked, so the end of the lease stays
		return false, AbortedBy(ctx)
	}
	if h.longest > 0 {
		ttl = min(ttl, h.longest)
	}
	asked := h.cfg.clock.Now()
	h.endBy(asked.Add(ttl))
	res, err := h.backend.Extend(ctx, Ref{LockID: h.lockID, Key: h.key}, ttl)
	// A store with its own clock counts the time of a late request from when it
	// comes. Others keep the end that was meant, and notice that they are late.
	if (err != nil || res.Repeated) && h.backend.Capabilities().TimeAuthority == ServerTime {
		h.longest = ttl
	}
	if err != nil {
		return false, err
	}
	if !res.OK {
		h.lose(ErrOwnershipLost)
		return false, nil
	}
	if res.Deadline.IsZero() {
		res.Deadline = asked.Add(ttl)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deadline, h.expiresAtMs = res.Deadline, res.ExpiresAtMs
	h.armLeaseEnd()
	if !h.cfg.clock.Now().Before(h.deadline) {
		h.noticeEnd()
		return false, &Error{Code: CodeNetworkTimeout, Err: ErrLeaseUnproven}
	}
	return true, nil
}

// endBy makes the lease end at a time if that is sooner: from now on the store
// may hold that end, whether or not anybody learns of it (L-TIME-04).
func (h *Handle) endBy(end time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if end.Before(h.deadline) {
		h.deadline = end
		h.armLeaseEnd()
	}
}

// armLeaseEnd ends the context at the deadline. The caller holds mu.
func (h *Handle) armLeaseEnd() {
	if h.leaseEnd != nil {
		h.leaseEnd.Stop()
	}
	if h.state != active {
		return
	}
	left := h.deadline.Sub(h.cfg.clock.Now())
	h.leaseEnd = h.cfg.clock.AfterFunc(max(left, 0), h.onLeaseEnd)
}

// onLeaseEnd runs at the deadline.
func (h *Handle) onLeaseEnd() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noticeEnd()
}

// beginRelease claims the one release of the handle, and ends its context.
func (h *Handle) beginRelease(cancel context.CancelCauseFunc) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != active {
		return false
	}
	h.noticeEnd()
	h.state = closing
	h.cancelRelease = cancel
	h.leaseEnd.Stop()
	h.cancel(ErrClosed)
	return true
}

// releaseOnce makes the release that beginRelease claimed. The heartbeat stops
// first, or it would take the released lease for a lost one.
func (h *Handle) releaseOnce(ctx context.Context) (bool, error) {
	defer func() {
		h.mu.Lock()
		h.state = closed
		h.cancelRelease = nil
		h.mu.Unlock()
		close(h.released)
	}()
	h.heartbeat.stop()
	res, err := h.backend.Release(ctx, Ref{LockID: h.lockID, Key: h.key})
	return res.OK && err == nil, err
}

// dispose is the release of Close and Do: bounded, detached, reported.
func (h *Handle) dispose() error {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(h.ctx))
	if !h.beginRelease(cancel) {
		cancel(nil)
		return h.awaitRelease()
	}
	result := make(chan error, 1)
	go func() {
		defer cancel(nil)
		_, err := h.releaseOnce(ctx)
		result <- err
	}()
	expired, stop := after(h.cfg.clock, h.cfg.closeTimeout)
	defer stop()
	select {
	case err := <-result:
		if err == nil {
			return nil
		}
		return h.report(err)
	case <-expired:
		cancel(errCloseTimeout)
		return h.report(&Error{Code: CodeNetworkTimeout, OutcomeUnknown: true, Err: errCloseTimeout})
	}
}

// errCloseTimeout is why Close gave up.
var errCloseTimeout error = SafeError("release did not finish within the close timeout")

// awaitRelease waits for the release that somebody else began.
func (h *Handle) awaitRelease() error {
	expired, stop := after(h.cfg.clock, h.cfg.closeTimeout)
	defer stop()
	select {
	case <-h.released:
		return nil
	case <-expired:
	}
	h.mu.Lock()
	cancel := h.cancelRelease
	h.mu.Unlock()
	if cancel == nil { // done meanwhile
		return nil
	}
	cancel(errCloseTimeout)
	return h.report(&Error{Code: CodeNetworkTimeout, OutcomeUnknown: true, Err: errCloseTimeout})
}

// report tells OnReleaseError, or the log, of a failed release, if no other Close
// has.
func (h *Handle) report(err error) error {
	if h.reported.Swap(true) {
		return nil
	}
	err = Located(err, "release", h.key, h.lockID)
	if h.cfg.onReleaseError == nil {
		h.cfg.logger.Warn("lock release failed",
			slog.String("source", SourceDisposal),
			slog.Any("err", printable(err)))
		return err
	}
	h.tell(err)
	return err
}

// printable is an error as it may be logged: without what others wrapped
// around it, which may name the key.
func printable(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return err
}

// tell calls OnReleaseError; a broken callback must not break the caller.
func (h *Handle) tell(err error) {
	defer func() { _ = recover() }()
	h.cfg.onReleaseError(err, ReleaseFailure{Key: h.key, LockID: h.lockID, Source: SourceDisposal})
}

// after is a channel that closes once d has passed; never for a negative d.
func after(clock Clock, d time.Duration) (elapsed <-chan struct{}, stop func()) {
	c := make(chan struct{})
	if d < 0 {
		return c, func() {}
	}
	timer := clock.AfterFunc(d, func() { close(c) })
	return c, func() { timer.Stop() }
}
