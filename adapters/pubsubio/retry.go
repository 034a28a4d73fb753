package pubsubio

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// retry runs f until it succeeds, fails for good, or ctx ends; the pauses grow
// from 50 ms to 5 s with jitter.
func retry(ctx context.Context, f func() error, retryable func(error) bool) error {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second),
		backoff.WithMaxElapsedTime(0), // ctx decides
	)
	return backoff.Retry(func() error {
		err := f()
		if err != nil && !retryable(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(b, ctx))
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
