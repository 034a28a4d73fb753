package firestorelock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

const (
	// cancelGrace is how long a call waits for its operation after the caller's
	// context has ended. Most return at once; one stuck in the client's own
	// rollback is left to finish alone.
	cancelGrace = 250 * time.Millisecond

	// detachedTimeout bounds the work done for a caller that has returned.
	detachedTimeout = 2 * time.Second

	// operationTimeout bounds every call; a context may end it sooner.
	operationTimeout = 60 * time.Second
)

// errNoAnswer is why a call without a deadline of its own gave up.
var errNoAnswer error = safeText("no answer within a minute")

// tasks counts running operations and background work.
type tasks struct {
	mu      sync.Mutex
	running int
	closed  bool
	idle    chan struct{} // closed when running is 0, if somebody waits
}

func (t *tasks) begin() {
	t.mu.Lock()
	t.running++
	t.mu.Unlock()
}

func (t *tasks) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	if t.running == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// isClosed tells whether background work is still welcome.
func (t *tasks) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// close refuses further optional work and waits for what runs.
func (t *tasks) close(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
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

// background runs f in a tracked goroutine under a bounded context that keeps
// the caller's values but not its cancellation.
func (b *Backend) background(ctx context.Context, f func(context.Context)) {
	b.tasks.begin()
	go func() {
		defer b.tasks.end()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), detachedTimeout)
		defer cancel()
		f(ctx)
	}()
}

// call runs an operation so that the caller gets an answer soon after its
// context has ended, even if the operation is stuck. An operation left behind
// is tracked; late gets its result, at any time after the caller got an error
// of unknown outcome.
func call[T any](ctx context.Context, b *Backend, operation func(context.Context) (T, error), late func(T)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	b.tasks.begin()
	result := make(chan outcome, 1)
	go func() {
		defer b.tasks.end()
		opCtx, cancel := context.WithTimeout(ctx, b.patience)
		defer cancel()
		value, err := operation(opCtx)
		if err != nil && opCtx.Err() != nil && ctx.Err() == nil {
			// Our own bound ended it, so to the caller it is a timeout.
			err = &lock.Error{Code: lock.CodeNetworkTimeout, OutcomeUnknown: outcomeUnknown(err), Err: errNoAnswer}
		}
		result <- outcome{value, err}
	}()
	select {
	case o := <-result:
		return o.value, o.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(cancelGrace)
	defer grace.Stop()
	select {
	case o := <-result:
		return o.value, o.err
	case <-grace.C:
	}
	b.tasks.begin()
	go func() {
		defer b.tasks.end()
		if o := <-result; o.err == nil && late != nil {
			late(o.value)
		}
	}()
	var none T
	e := lock.AbortedBy(ctx)
	e.OutcomeUnknown = true
	return none, e
}

// read is call for an operation that changes nothing: whatever becomes of it,
// no outcome is unknown.
func read[T any](ctx context.Context, b *Backend, operation func(context.Context) (T, error)) (T, error) {
	value, err := call(ctx, b, operation, nil)
	if e, ok := errors.AsType[*lock.Error](err); ok {
		known := *e
		known.OutcomeUnknown = false
		return value, &known
	}
	return value, err
}

// Close waits for background work, at most until ctx ends (ErrAborted). The
// client stays open. Locks stay held; calls still work, but nothing optional
// is started any more.
func (b *Backend) Close(ctx context.Context) error {
	b.waiters.close()
	return b.tasks.close(ctx)
}
