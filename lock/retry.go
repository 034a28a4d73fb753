package lock

import (
	"context"
	"errors"
	"math"
	"time"
)

// expiryJitter spreads the waiters of one lease that ends by expiry.
const expiryJitter = 50 * time.Millisecond

// pause is the wait after failed try n (1, 2, ...) for a random r in [0, 1).
// Growth saturates instead of overflowing.
func (c config) pause(n int, r float64) time.Duration {
	base := c.retryDelay
	if c.backoff == BackoffExponential {
		base = saturatingShift(base, n-1)
	}
	switch c.jitter {
	case JitterEqual:
		return base/2 + scale(base/2, r)
	case JitterFull:
		return scale(base, r)
	default:
		return base
	}
}

func saturatingShift(d time.Duration, by int) time.Duration {
	if d == 0 || by <= 0 {
		return d
	}
	if d > math.MaxInt64>>by {
		return math.MaxInt64
	}
	return d << by
}

// scale is r*d for r in [0, 1), safe at the ends of the range.
func scale(d time.Duration, r float64) time.Duration {
	f := r * float64(d)
	if f >= float64(math.MaxInt64) {
		return d
	}
	return time.Duration(f)
}

// untilFree shortens a pause to the moment when the holder's lease may be taken. If that moment
// is past but the lock is still held, the clock that judges it is behind this one: then the
// pause is as long as the moment is past, to find out by how much.
func (c config) untilFree(pause time.Duration, holderExpiresAtMs int64, now time.Time) time.Duration {
	if holderExpiresAtMs <= 0 {
		return pause
	}
	free := time.UnixMilli(holderExpiresAtMs).Add(Tolerance).Sub(now)
	if free <= 0 {
		free = max(-free, expiryJitter)
	}
	jitter := scale(expiryJitter, c.rand())
	if free >= pause-jitter { // also where their sum overflows
		return pause
	}
	return free + jitter
}

// acquireLoop tries until success, an error, or the end of the budget. Tries share a lock id,
// so that a try whose reply was lost is recognised. After an unknown outcome the next try uses
// a new id, because the backend may release the old one at any time (L-RTY-05).
func acquireLoop(ctx context.Context, b Backend, key string, c config) (AcquireResult, error) {
	req := AcquireRequest{Key: key, TTL: c.ttl, LockID: NewLockID()}
	var uncertain error // of the last try that may have taken the lock
	fail := func(err error) (AcquireResult, error) {
		err = Located(err, "acquire", key, "")
		if e, ok := err.(*Error); ok {
			e.withOutcomeOf(uncertain)
		}
		return AcquireResult{}, err
	}

	free, stop := watch(b, key)
	defer stop()

	start := c.clock.Now()
	for try := 1; ; try++ {
		if ctx.Err() != nil {
			return fail(AbortedBy(ctx))
		}
		remaining := c.timeout - c.clock.Now().Sub(start)
		if remaining <= 0 {
			return fail(timedOut(nil))
		}
		tried := c.clock.Now()
		res, err := tryWithin(ctx, b, req, c.clock, remaining)
		if isOutcomeUnknown(err) {
			uncertain = err
		}
		switch {
		case err == nil && res.OK:
			if res.Deadline.IsZero() {
				res.Deadline = tried.Add(c.ttl)
			}
			return res, nil
		case ctx.Err() != nil:
			return fail(AbortedBy(ctx))
		case isBudget(err):
			return fail(timedOut(errBudget))
		case err != nil && !c.retries(err):
			return fail(err)
		}

		remaining = c.timeout - c.clock.Now().Sub(start)
		if try > c.maxRetries || remaining <= 0 {
			return fail(timedOut(err))
		}
		pause := min(c.pause(try, c.rand()), remaining)
		if err == nil {
			pause = c.untilFree(pause, res.HolderExpiresAtMs, c.clock.Now())
		}
		signalled := wait(ctx, c.clock, pause, free)
		if isOutcomeUnknown(err) {
			req.LockID = NewLockID()
		}
		req.Probe = !signalled // a lock that was just released is probably free
	}
}

// errBudget is the cause with which the budget of an acquisition ends a try.
var errBudget error = SafeError("the store had not answered when the timeout ended")

// tryWithin makes one try that ends with the budget. The budget runs on the
// injected clock, so it is not a context deadline.
func tryWithin(ctx context.Context, b Backend, req AcquireRequest, clock Clock, budget time.Duration) (AcquireResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := clock.AfterFunc(budget, func() { cancel(errBudget) })
	defer func() {
		timer.Stop()
		cancel(nil)
	}()
	res, err := b.Acquire(ctx, req)
	if err != nil && context.Cause(ctx) == errBudget {
		// Whatever the backend made of it: the budget ended this try.
		return AcquireResult{}, (&Error{Code: CodeAborted, Err: errBudget}).withOutcomeOf(err)
	}
	return res, err
}

// retries reports whether an error is contention, or transient and worth a retry.
func (c config) retries(err error) bool {
	if errors.Is(err, ErrConflict) {
		return true
	}
	return c.retryTransient && (errors.Is(err, ErrServiceUnavailable) ||
		errors.Is(err, ErrNetworkTimeout) || errors.Is(err, ErrRateLimited))
}

func timedOut(last error) *Error {
	if last == nil {
		last = SafeError("the lock was not free within the timeout and retries")
	}
	return &Error{Code: CodeAcquisitionTimeout, Err: last}
}

// withOutcomeOf carries OutcomeUnknown over from the error that e replaces.
func (e *Error) withOutcomeOf(err error) *Error {
	e.OutcomeUnknown = e.OutcomeUnknown || isOutcomeUnknown(err)
	return e
}

// isOutcomeUnknown reports whether the operation may still take effect.
func isOutcomeUnknown(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.OutcomeUnknown
}

// wait pauses until d has passed, ctx ends or the lock may be free, and tells whether it is
// the last. A pause of zero does not yield to the clock at all.
func wait(ctx context.Context, clock Clock, d time.Duration, free <-chan struct{}) (signalled bool) {
	if d <= 0 {
		return false
	}
	elapsed := make(chan struct{})
	timer := clock.AfterFunc(d, func() { close(elapsed) })
	defer timer.Stop()
	select {
	case <-elapsed:
	case <-free:
		return true
	case <-ctx.Done():
	}
	return false
}

// watch asks the backend for signals of the key, if it supports them.
func watch(b Backend, key string) (<-chan struct{}, func()) {
	if w, ok := b.(Waiter); ok {
		return w.Watch(key)
	}
	return nil, func() {}
}
