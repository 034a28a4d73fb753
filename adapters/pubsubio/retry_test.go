package pubsubio

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
)

// F-ACK-01: whoever looks into a message that was given back finds what kept it
// from being applied, not only that its lease is over.
func TestRetry_NamesTheLastFailureWhenTimeIsUp(t *testing.T) {
	denied := status.Error(codes.PermissionDenied, "the role is missing")
	for _, tt := range []struct {
		name string
		// attempt is what the n-th attempt answers; it may end the time.
		attempt func(n int, end func()) error
		want    string
		also    error
	}{
		{"after the first attempt", func(_ int, end func()) error { end(); return denied }, "the role is missing", context.Canceled},
		{"during the second attempt", func(n int, end func()) error {
			if n == 2 {
				end()
				return status.Error(codes.Canceled, "the call was cancelled")
			}
			return denied
		}, "the role is missing", context.Canceled},
		{"during the third, which says so", func(n int, end func()) error {
			if n == 3 {
				end()
				return context.Canceled
			}
			if n == 1 {
				return status.Error(codes.Unavailable, "no connection")
			}
			return denied
		}, "the role is missing", context.Canceled},
		{"and it fails for good", func(n int, end func()) error {
			if n == 2 {
				end()
				return errors.New("never")
			}
			return denied
		}, "never", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			n := 0
			err := retry(ctx, func(context.Context) error { n++; return tt.attempt(n, end) }, firestoretx.Retryable)
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.also != nil && !errors.Is(err, tt.also) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// F-ACK-01: a call that is never answered does not take the whole lease of its
// message: another one is made, which has more time, while the lease lasts.
func TestRetry_AbandonsACallWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, end := context.WithTimeout(t.Context(), 50*time.Second)
		defer end()
		var took []time.Duration
		err := retry(ctx, func(ctx context.Context) error {
			called := time.Now()
			if len(took) < 2 {
				<-ctx.Done()
			}
			took = append(took, time.Since(called))
			return ctx.Err()
		}, firestoretx.Retryable)
		if err != nil || len(took) != 3 || took[0] > 10*time.Second || took[1] <= took[0] || time.Since(began) > 40*time.Second {
			t.Errorf("%v after %v; the attempts took %v", err, time.Since(began), took)
		}
	})
}
