package firestorelock

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/tasks"
)

// rpcError is a cause that came from the store. Its text may hold document
// names, and so keys: only the code is printed.
type rpcError struct {
	code codes.Code
	err  error
}

func (e rpcError) Error() string    { return e.err.Error() }
func (e rpcError) SafeText() string { return "gRPC code " + e.code.String() }
func (e rpcError) Unwrap() error    { return e.err }

func (e rpcError) Is(target error) bool {
	return target == lock.ErrConflict && e.code == codes.Aborted
}

// classify turns any error of an operation into a *lock.Error. The caller's
// ended context wins over everything else.
func classify(ctx context.Context, err error) *lock.Error {
	if e, ok := errors.AsType[*lock.Error](err); ok {
		return e
	}
	code := rpcCode(err)
	if code == codes.DeadlineExceeded {
		awaitDeadline(ctx)
	}
	if ctx.Err() != nil {
		return lock.AbortedBy(ctx)
	}
	return &lock.Error{Code: lockCode(code, err), Err: rpcError{code, err}}
}

// awaitDeadline waits for the end of a context whose deadline has passed: gRPC may fail a call
// before the context's own timer runs.
func awaitDeadline(ctx context.Context) {
	deadline, ok := ctx.Deadline()
	if !ok || time.Now().Before(deadline) {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(tasks.CancelGrace): // its timer is not the clock's
	}
}

// rpcCode is the gRPC code of an error. The client library reports its own
// timers as bare context errors.
func rpcCode(err error) codes.Code {
	if e, ok := errors.AsType[rpcError](err); ok {
		return e.code
	}
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	default:
		return codes.Unknown
	}
}

func lockCode(code codes.Code, err error) lock.Code {
	switch code {
	case codes.Unavailable, codes.Internal, codes.Aborted, codes.Canceled:
		return lock.CodeServiceUnavailable
	case codes.DeadlineExceeded:
		return lock.CodeNetworkTimeout
	case codes.PermissionDenied, codes.Unauthenticated:
		return lock.CodeAuthFailed
	case codes.InvalidArgument:
		if isTransactionGone(err) {
			return lock.CodeNetworkTimeout
		}
		return lock.CodeInvalidArgument
	case codes.FailedPrecondition:
		return lock.CodeInvalidArgument
	case codes.ResourceExhausted:
		return lock.CodeRateLimited
	default:
		return lock.CodeInternal
	}
}

// isTransactionGone recognises the one failure that has no code of its own:
// the server no longer knows the transaction.
func isTransactionGone(err error) bool {
	if rpcCode(err) != codes.InvalidArgument {
		return false
	}
	text := strings.ToLower(err.Error())
	if !strings.Contains(text, "transaction") {
		return false
	}
	for _, word := range []string{"invalid transaction", "is invalid", "closed", "expired", "no longer valid"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// mayHaveApplied tells whether a commit that returned err can have taken
// effect, or can still do so.
func mayHaveApplied(err error) bool {
	switch rpcCode(err) {
	case codes.DeadlineExceeded, codes.Canceled, codes.Unavailable, codes.Internal, codes.Unknown:
		return true
	default:
		return isTransactionGone(err)
	}
}

// isConflict tells whether a commit failed because a document was not in the
// state its precondition names, or because another transaction won.
func isConflict(err error) bool {
	switch rpcCode(err) {
	case codes.Aborted, codes.FailedPrecondition, codes.AlreadyExists, codes.NotFound:
		return true
	default:
		return false
	}
}

// withUnknownOutcome is e, with OutcomeUnknown set if unknown.
func withUnknownOutcome(e *lock.Error, unknown bool) *lock.Error {
	c := *e
	c.OutcomeUnknown = c.OutcomeUnknown || unknown
	return &c
}
