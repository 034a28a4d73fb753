package firestoreemu

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/locks"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
)

// These errors have the texts of the real service (E-TX-03, E-TX-07, E-TX-10,
// E-TX-12, E-ST-05, E-ER-01).
var (
	errInvalidTransaction = status.Error(codes.InvalidArgument, "Invalid transaction.")
	errExpired            = status.Error(codes.InvalidArgument, "The referenced transaction has expired or is no longer valid.")
	errReadOnlyWrites     = status.Error(codes.InvalidArgument, "Cannot modify entities in a read-only transaction.")
	errReadOnlyRetry      = status.Error(codes.InvalidArgument, "Cannot retry a read-only transaction.")
	errContention         = status.Error(codes.Aborted, "Aborted due to cross-transaction contention. This occurs when multiple transactions attempt to access the same data, requiring Firestore to abort at least one in order to enforce serializability.")
	errTooMuchContention  = status.Error(codes.Aborted, "Too much contention on these documents. Please try again.")
	errPrecision          = status.Error(codes.InvalidArgument, "timestamp cannot have more than microseconds precision")
	errFuture             = status.Error(codes.InvalidArgument, "The requested 'read_time' cannot be in the future.")
	errTooOld             = status.Error(codes.FailedPrecondition, "The requested snapshot version is too old.")
	errPayload            = status.Error(codes.InvalidArgument, "Request payload size exceeds the limit: 10485760 bytes.")
)

// errLapsed is the cause with which an expired transaction is aborted.
var errLapsed = errors.New("firestoreemu: the transaction has expired")

// lockStatus turns an error of the lock table into a status.
func lockStatus(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, locks.ErrWounded):
		return errContention
	case errors.Is(err, locks.ErrWaitTimeout), errors.Is(err, locks.ErrLockDeadline):
		return errTooMuchContention
	case errors.Is(err, locks.ErrEnded), errors.Is(err, errLapsed):
		return errExpired
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.Aborted, err.Error())
}

// snapshotStatus turns an error of the store into a status.
func snapshotStatus(err error) error {
	switch {
	case errors.Is(err, store.ErrFuture):
		return errFuture
	case errors.Is(err, store.ErrTooOld):
		return errTooOld
	}
	return err
}

func invalidf(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

// unimplemented refuses an RPC or a field that the server does not implement
// (E-RPC-03).
func unimplemented(what string) error {
	return status.Errorf(codes.Unimplemented, "embedded firestore: %s not implemented (E-RPC-03)", what)
}
