package tasks

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

const (
	// CancelGrace is how long a call waits for its operation after the caller's context has
	// ended. Most return at once; a stuck one finishes in the background.
	CancelGrace = 250 * time.Millisecond

	// DetachedTimeout bounds the work done for a caller that has returned.
	DetachedTimeout = 2 * time.Second

	// Patience is the usual Group.Patience.
	Patience = 60 * time.Second
)

// ErrLeaseOver is why a granted lease is not handed out.
const ErrLeaseOver lock.SafeError = "the lease was over before the reply arrived; use a longer ttl"

// errNoAnswer is why a call without a deadline of its own gave up.
const errNoAnswer lock.SafeError = "no answer in time"

// Group counts running operations and background work.
type Group struct {
	Patience time.Duration // bounds every call; a context may end it sooner

	mu      sync.Mutex
	running int
	closed  bool
	idle    chan struct{} // closed when running is 0, if somebody waits
}

// Begin counts an operation that ends with End.
func (t *Group) Begin() {
	t.mu.Lock()
	t.running++
	t.mu.Unlock()
}

// End ends what Begin counted.
func (t *Group) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	if t.running == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// IsClosed tells whether optional work is refused.
func (t *Group) IsClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// Close refuses optional work from now on and waits for what runs, at most until ctx ends
// (ErrAborted).
func (t *Group) Close(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	return t.Wait(ctx)
}

// Wait waits for what runs, at most until ctx ends (ErrAborted).
func (t *Group) Wait(ctx context.Context) error {
	t.mu.Lock()
	if t.running == 0 {
		t.mu.Unlock()
		return nil
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return lock.AbortedBy(ctx).At("close", "", "")
	}
}

// Background runs f in a tracked goroutine under a bounded context that keeps
// the caller's values but not its cancellation.
func (t *Group) Background(ctx context.Context, f func(context.Context)) {
	t.Begin()
	go func() {
		defer t.End()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), DetachedTimeout)
		defer cancel()
		f(ctx)
	}()
}

// Call runs an operation and returns soon after ctx ends, even if the operation is stuck. Then
// the caller gets an error of unknown outcome, the operation is tracked, and late gets its
// result.
func Call[T any](ctx context.Context, t *Group, operation func(context.Context) (T, error), late func(T)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	t.Begin()
	result := make(chan outcome, 1)
	go func() {
		defer t.End()
		opCtx, cancel := context.WithTimeout(ctx, t.Patience)
		defer cancel()
		value, err := operation(opCtx)
		if err != nil && opCtx.Err() != nil && ctx.Err() == nil {
			// Our own bound ended it, so to the caller it is a timeout.
			err = &lock.Error{Code: lock.CodeNetworkTimeout, OutcomeUnknown: isUnknown(err), Err: errNoAnswer}
		}
		result <- outcome{value, err}
	}()
	select {
	case o := <-result:
		return o.value, o.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(CancelGrace)
	defer grace.Stop()
	select {
	case o := <-result:
		return o.value, o.err
	case <-grace.C:
	}
	t.Begin()
	go func() {
		defer t.End()
		if o := <-result; o.err == nil && late != nil {
			late(o.value)
		}
	}()
	var none T
	e := lock.AbortedBy(ctx)
	e.OutcomeUnknown = true
	return none, e
}

// Read is Call for an operation that changes nothing, so its outcome is never unknown.
func Read[T any](ctx context.Context, t *Group, operation func(context.Context) (T, error)) (T, error) {
	value, err := Call(ctx, t, operation, nil)
	if e, ok := errors.AsType[*lock.Error](err); ok {
		known := *e
		known.OutcomeUnknown = false
		return value, &known
	}
	return value, err
}

// isUnknown tells whether what failed may have taken effect.
func isUnknown(err error) bool {
	e, ok := errors.AsType[*lock.Error](err)
	return ok && e.OutcomeUnknown
}
