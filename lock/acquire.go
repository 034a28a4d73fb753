package lock

import "context"

// Acquire waits for the lock of a key and returns its handle, which outlives ctx: release or
// close it. It retries on contention until the timeout or the retries are used up
// (ErrAcquisitionTimeout) or ctx ends (ErrAborted).
func Acquire(ctx context.Context, b Backend, key string, opts ...Option) (*Handle, error) {
	c, err := prepare(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	res, err := acquireLoop(ctx, b, key, c)
	if err != nil {
		return nil, err
	}
	return newHandle(context.WithoutCancel(ctx), b, key, res, c), nil
}

// TryAcquire tries once. A held lock is nil, false, nil. The timeout applies,
// the retry options do not.
func TryAcquire(ctx context.Context, b Backend, key string, opts ...Option) (*Handle, bool, error) {
	c, err := prepare(ctx, key, opts)
	if err != nil {
		return nil, false, err
	}
	fail := func(err error) (*Handle, bool, error) { return nil, false, Located(err, "acquire", key, "") }
	if c.timeout <= 0 {
		return fail(timedOut(nil))
	}
	tried := c.clock.Now()
	res, err := tryWithin(ctx, b, AcquireRequest{Key: key, TTL: c.ttl, LockID: NewLockID()}, c.clock, c.timeout)
	switch {
	case err != nil && ctx.Err() != nil:
		return fail(AbortedBy(ctx).withOutcomeOf(err))
	case isBudget(err):
		return fail(timedOut(errBudget).withOutcomeOf(err))
	case err != nil:
		return fail(err)
	case !res.OK:
		return nil, false, nil
	}
	if res.Deadline.IsZero() {
		res.Deadline = tried.Add(c.ttl)
	}
	return newHandle(context.WithoutCancel(ctx), b, key, res, c), true, nil
}

// prepare checks everything that can be checked without I/O.
func prepare(ctx context.Context, key string, opts []Option) (config, error) {
	c, err := newConfig(opts)
	if err != nil {
		return config{}, Located(err, "acquire", key, "")
	}
	if _, err := NormalizeKey(key); err != nil {
		return config{}, Located(err, "acquire", key, "")
	}
	if ctx.Err() != nil {
		return config{}, AbortedBy(ctx).At("acquire", key, "")
	}
	return c, nil
}
