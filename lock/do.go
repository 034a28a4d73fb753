package lock

import (
	"context"
	"errors"
)

// Do acquires the lock of a key, runs fn once and releases the lock, even when fn panics or
// exits its goroutine. The release does not depend on ctx.
//
// fn's context ends with ctx or with the lease, then with the cause ErrOwnershipLost or
// ErrLeaseUnproven. Do returns an error that matches that cause even if fn returned nil; fn's
// own error comes first. It does not return the error of a failed release: see
// WithOnReleaseError.
func Do(ctx context.Context, b Backend, key string, fn func(context.Context, *Handle) error, opts ...Option) error {
	_, err := DoValue(ctx, b, key, func(ctx context.Context, h *Handle) (struct{}, error) {
		return struct{}{}, fn(ctx, h)
	}, opts...)
	return err
}

// DoValue is Do for a function with a result. The result is returned as it is,
// also beside an error.
func DoValue[T any](ctx context.Context, b Backend, key string, fn func(context.Context, *Handle) (T, error), opts ...Option) (T, error) {
	var none T
	c, err := prepare(ctx, key, opts)
	if err != nil {
		return none, err
	}
	res, err := acquireLoop(ctx, b, key, c)
	if err != nil {
		return none, err
	}
	h := newHandle(ctx, b, key, res, c)
	// Deferred first: a panic or runtime.Goexit inside fn must release too.
	defer h.dispose()
	value, err := fn(h.Context(), h)
	if lost := h.lost(); lost != nil && !errors.Is(err, lost) {
		err = errors.Join(err, lost)
	}
	return value, err
}
