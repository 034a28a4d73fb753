package firestorelock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/lock"
)

// codeTable is the contract's table of gRPC codes.
var codeTable = map[codes.Code]lock.Code{
	codes.Canceled:           lock.CodeServiceUnavailable,
	codes.Unknown:            lock.CodeInternal,
	codes.InvalidArgument:    lock.CodeInvalidArgument,
	codes.DeadlineExceeded:   lock.CodeNetworkTimeout,
	codes.NotFound:           lock.CodeInternal,
	codes.AlreadyExists:      lock.CodeInternal,
	codes.PermissionDenied:   lock.CodeAuthFailed,
	codes.ResourceExhausted:  lock.CodeRateLimited,
	codes.FailedPrecondition: lock.CodeInvalidArgument,
	codes.Aborted:            lock.CodeServiceUnavailable,
	codes.OutOfRange:         lock.CodeInternal,
	codes.Unimplemented:      lock.CodeInternal,
	codes.Internal:           lock.CodeServiceUnavailable,
	codes.Unavailable:        lock.CodeServiceUnavailable,
	codes.DataLoss:           lock.CodeInternal,
	codes.Unauthenticated:    lock.CodeAuthFailed,
}

// L-ERR-01, L-ERR-03
func TestClassify_EveryGRPCCode(t *testing.T) {
	for code, want := range codeTable {
		cause := fmt.Errorf("wrapped: %w", status.Error(code, "no such document"))
		e := classify(context.Background(), cause)
		if e.Code != want {
			t.Errorf("%v: got %v, want %v", code, e.Code, want)
		}
		if !errors.Is(e, cause) || status.Code(errors.Unwrap(e)) != code {
			t.Errorf("%v: the cause is lost", code)
		}
		if got := errors.Is(e, lock.ErrConflict); got != (code == codes.Aborted) {
			t.Errorf("%v: conflict %v", code, got)
		}
	}
	if e := classify(context.Background(), errors.New("no gRPC")); e.Code != lock.CodeInternal {
		t.Errorf("foreign error: %v", e.Code)
	}
	if e := classify(context.Background(), context.DeadlineExceeded); e.Code != lock.CodeNetworkTimeout {
		t.Errorf("the client's own timer: %v", e.Code)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for code := range codeTable {
		if e := classify(ctx, status.Error(code, "")); e.Code != lock.CodeAborted {
			t.Errorf("%v after cancellation: %v", code, e.Code)
		}
	}
}

// lateTimer is a context that ends some time after its deadline, or never.
type lateTimer struct {
	context.Context
	deadline time.Time
}

func (c lateTimer) Deadline() (time.Time, bool) { return c.deadline, true }

// L-ERR-01, L-CAN-03: gRPC may fail a call at the caller's deadline before the caller's
// context has ended. That is Aborted too.
func TestClassify_DeadlineOfTheCallerIsAborted(t *testing.T) {
	for _, row := range []struct {
		name  string
		left  time.Duration // until the deadline
		late  time.Duration // of the end of the context, 0 for never
		want  lock.Code
		waits bool
	}{
		{"ends late", 0, time.Millisecond, lock.CodeAborted, true},
		{"never ends", 0, 0, lock.CodeNetworkTimeout, true},
		{"the server's own deadline", time.Minute, 0, lock.CodeNetworkTimeout, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			start := time.Now()
			if row.late > 0 {
				time.AfterFunc(row.left+row.late, cancel)
			}
			e := classify(lateTimer{ctx, start.Add(row.left)}, status.Error(codes.DeadlineExceeded, ""))
			if e.Code != row.want || (time.Since(start) > 0) != row.waits {
				t.Errorf("%s: %v after %v, want %v", row.name, e.Code, time.Since(start), row.want)
			}
		})
	}
}

// L-ERR-02
func TestClassify_LostTransactionIsATimeout(t *testing.T) {
	for text, want := range map[string]lock.Code{
		"The referenced transaction has expired or is no longer valid.": lock.CodeNetworkTimeout,
		"Invalid transaction.":                               lock.CodeNetworkTimeout,
		"Transaction is invalid or closed.":                  lock.CodeNetworkTimeout,
		"Cannot modify entities in a read-only transaction.": lock.CodeInvalidArgument,
		"the value of expiresAtMs is invalid":                lock.CodeInvalidArgument,
		"transaction lock timeout":                           lock.CodeInvalidArgument,
	} {
		if e := classify(context.Background(), status.Error(codes.InvalidArgument, text)); e.Code != want {
			t.Errorf("%q: got %v, want %v", text, e.Code, want)
		}
	}
	if e := classify(context.Background(), status.Error(codes.NotFound, "transaction has expired")); e.Code != lock.CodeInternal {
		t.Errorf("other code: %v", e.Code)
	}
}

// checkNoSecrets looks for raw values wherever an error may be printed.
func checkNoSecrets(t *testing.T, e *lock.Error, secrets ...string) {
	t.Helper()
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, secret := range secrets {
			if text := fmt.Sprintf(format, e); strings.Contains(text, secret) {
				t.Errorf("%s reveals %q: %s", format, secret, text)
			}
		}
	}
}
