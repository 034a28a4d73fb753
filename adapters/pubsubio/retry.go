package pubsubio

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// attemptTimeout bounds an attempt: a call that is never answered must not take the whole
// lease. It doubles after each attempt that reaches it, for a slow store.
const attemptTimeout = 10 * time.Second

// retry runs f until it succeeds, fails for good, or ctx ends; the pauses grow from
// 50 ms to 5 s with jitter. When ctx ends, the error names the last failure of f,
// not only the end of the lease.
func retry(ctx context.Context, f func(context.Context) error, retryable func(error) bool) error {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second),
		backoff.WithMaxElapsedTime(0), // ctx decides
	)
	timeout := attemptTimeout
	var failure error // of the first attempt, or of a later one that ended before ctx
	err := backoff.Retry(func() error {
		attempt, end := context.WithTimeout(ctx, timeout)
		defer end()
		err := f(attempt)
		if attempt.Err() != nil {
			timeout *= 2
		}
		if err != nil && !retryable(err) {
			return backoff.Permanent(err)
		}
		if failure == nil || ctx.Err() == nil {
			failure = err
		}
		return err
	}, backoff.WithContext(b, ctx))
	if ended := ctx.Err(); ended != nil && failure != nil && errors.Is(err, ended) {
		return fmt.Errorf("%w; retried until %w", failure, ended)
	}
	return err
}

// permanent reports whether asking for a subscription again is pointless.
func permanent(err error) bool {
	switch status.Code(err) {
	case codes.NotFound, codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument:
		return true
	}
	return false
}
