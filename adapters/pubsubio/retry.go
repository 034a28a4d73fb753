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

// attemptTimeout is how long an attempt may take; after one that takes longer the next
// has twice the time, for a store that is slow. A call that is never answered would
// take the whole lease, and hold up for as long all that waits behind it.
const attemptTimeout = 10 * time.Second

// retry runs f until it succeeds, fails for good, or ctx ends; the pauses grow
// from 50 ms to 5 s with jitter. When ctx ends, the error tells why f had failed
// before: that a lease is over says nothing of what kept its message.
func retry(ctx context.Context, f func(context.Context) error, retryable func(error) bool) error {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second),
		backoff.WithMaxElapsedTime(0), // ctx decides
	)
	timeout := attemptTimeout
	var failure error // of the first attempt, or of a later one that ctx let come to its end
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
		return fmt.Errorf("%w; tried until %w", failure, ended)
	}
	return err
}

// permanent reports whether a subscription will not be there however often one
// asks.
func permanent(err error) bool {
	switch status.Code(err) {
	case codes.NotFound, codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument:
		return true
	}
	return false
}
