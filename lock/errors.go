package lock

import (
	"context"
	"errors"
	"fmt"
)

// Code classifies an error by what the caller can do about it.
type Code string

// The codes.
const (
	CodeServiceUnavailable Code = "ServiceUnavailable" // the store is in trouble: try again later
	CodeAuthFailed         Code = "AuthFailed"         // credentials or permissions
	CodeInvalidArgument    Code = "InvalidArgument"    // the call can never succeed
	CodeRateLimited        Code = "RateLimited"        // the store's quota: slow down
	CodeNetworkTimeout     Code = "NetworkTimeout"     // no answer in time
	CodeAcquisitionTimeout Code = "AcquisitionTimeout" // the helper's budget is used up
	CodeAborted            Code = "Aborted"            // the caller's context ended
	CodeInternal           Code = "Internal"           // damaged data, a defect, or a wrong clock (see ClockSkewError)
)

// Sentinels, one per code, for errors.Is.
var (
	ErrServiceUnavailable error = &Error{Code: CodeServiceUnavailable}
	ErrAuthFailed         error = &Error{Code: CodeAuthFailed}
	ErrInvalidArgument    error = &Error{Code: CodeInvalidArgument}
	ErrRateLimited        error = &Error{Code: CodeRateLimited}
	ErrNetworkTimeout     error = &Error{Code: CodeNetworkTimeout}
	ErrAcquisitionTimeout error = &Error{Code: CodeAcquisitionTimeout}
	ErrAborted            error = &Error{Code: CodeAborted}
	ErrInternal           error = &Error{Code: CodeInternal}
)

// Causes of a Handle's context, for context.Cause and errors.Is.
var (
	// ErrOwnershipLost: the store says that the lease is no longer ours.
	ErrOwnershipLost error = SafeError("lock: ownership lost")
	// ErrLeaseUnproven: the lease ended, or could not be extended in time.
	ErrLeaseUnproven error = SafeError("lock: lease no longer proven")
	// ErrClosed: the handle was released or closed.
	ErrClosed error = SafeError("lock: handle closed")
)

// ErrConflict is the cause when the store gave up on an operation because concurrent
// transactions touched the same lock (gRPC ABORTED). Helpers treat it as contention.
var ErrConflict error = SafeError("concurrent transactions on one lock")

// Error is the one error type of the lock packages. Its text holds neither Key nor LockID, and
// repeats only causes that are known to hold neither; Unwrap gives the cause itself.
type Error struct {
	Code   Code
	Op     string // acquire, release, extend, isLocked, lookup, ...
	Key    string `json:"-"` // the key as given, if known
	LockID string `json:"-"` // the lock id, if known

	// OutcomeUnknown says that the operation may still take effect, or did. A
	// retry of an acquisition then needs a new lock id.
	OutcomeUnknown bool

	Err error `json:"-"` // the cause
}

// SafeTexter is a cause whose text is known to hold no key and no lock id, so
// that Error may repeat it.
type SafeTexter interface {
	error
	SafeText() string
}

// Error describes the failure in one line.
func (e *Error) Error() string {
	text := "lock"
	if e.Op != "" {
		text += ": " + e.Op
	}
	text += ": " + string(e.Code)
	if cause := safeText(e.Err); cause != "" {
		text += ": " + cause
	}
	if e.OutcomeUnknown {
		text += " (outcome unknown)"
	}
	return text
}

// GoString keeps %#v from revealing the key and the lock id.
func (e *Error) GoString() string { return e.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports equal codes, so that every Error matches its sentinel.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Invalid returns an ErrInvalidArgument. The text names the field and the fix
// and must hold no key or lock id.
func Invalid(text string) *Error { return &Error{Code: CodeInvalidArgument, Err: SafeError(text)} }

// Internal returns an ErrInternal. The text must hold no key or lock id.
func Internal(text string) *Error { return &Error{Code: CodeInternal, Err: SafeError(text)} }

// DuplicateID returns the ErrInternal of a lookup by an id that n live locks have:
// any of them could be a wrong answer.
func DuplicateID(n int) *Error {
	return Internal(fmt.Sprintf("%d live locks have this lock id; look them up by key", n))
}

// AbortedBy returns the ErrAborted of a context that has ended: it matches
// ErrAborted, ctx.Err() and context.Cause(ctx) under errors.Is.
func AbortedBy(ctx context.Context) *Error {
	return &Error{Code: CodeAborted, Err: contextError{ctx.Err(), context.Cause(ctx)}}
}

// At returns a copy of e that names the operation, the key and the lock id,
// where they were not named yet.
func (e *Error) At(op, key, lockID string) *Error {
	c := *e
	if c.Op == "" {
		c.Op = op
	}
	if c.Key == "" {
		c.Key = key
	}
	if c.LockID == "" {
		c.LockID = lockID
	}
	return &c
}

// Located names operation, key and lock id in an error of a backend. An error that wraps an
// *Error stays as it is; any other becomes ErrInternal.
func Located(err error, op, key, lockID string) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*Error); ok {
		return e.At(op, key, lockID)
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return (&Error{Code: CodeInternal, Err: err}).At(op, key, lockID)
}

// SafeError is a constant text that holds no key and no lock id.
type SafeError string

// Error is the text.
func (s SafeError) Error() string { return string(s) }

// SafeText implements SafeTexter.
func (s SafeError) SafeText() string { return string(s) }

// contextError is an ended context: what ended it and why. Only the former is
// printed, because the latter is the caller's text.
type contextError struct{ err, cause error }

func (c contextError) Error() string    { return c.err.Error() }
func (c contextError) SafeText() string { return c.err.Error() }
func (c contextError) Unwrap() []error  { return []error{c.err, c.cause} }

// safeText is the part of an error's text that may be printed.
func safeText(err error) string {
	if s, ok := errors.AsType[SafeTexter](err); ok {
		return s.SafeText()
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Error()
	}
	if errors.Is(err, context.Canceled) {
		return context.Canceled.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return context.DeadlineExceeded.Error()
	}
	return ""
}
