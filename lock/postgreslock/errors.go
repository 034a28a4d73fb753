package postgreslock

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dronefleet/dronefleet/lock"
)

// SQLSTATEs that mean something of their own.
const (
	stateConflict     = "40001" // serialization_failure
	stateDeadlock     = "40P01"
	stateUnknown      = "40003" // statement_completion_unknown
	stateCancelled    = "57014" // query_canceled: statement_timeout too
	stateLockTimeout  = "55P03" // lock_not_available: lock_timeout
	stateReadOnly     = "25006" // read_only_sql_transaction: a standby
	stateNoPrivilege  = "42501"
	stateDuplicateKey = "23505" // SyncGuard's unique index on lock ids
)

// storeError is a cause that came from the store. Its text may hold keys: only the code
// is printed.
type storeError struct {
	text string
	err  error
}

func (e storeError) Error() string    { return e.err.Error() }
func (e storeError) SafeText() string { return e.text }
func (e storeError) Unwrap() error    { return e.err }

func (e storeError) Is(target error) bool { return target == lock.ErrConflict && isConflict(e.err) }

// classify turns an error of pgx into a *lock.Error. The caller's ended context wins over
// everything else.
func classify(ctx context.Context, err error) *lock.Error {
	if ctx.Err() != nil {
		return lock.AbortedBy(ctx)
	}
	if e, ok := errors.AsType[*lock.Error](err); ok {
		return e
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok:
		text := "SQLSTATE " + pg.Code
		switch {
		case state(pg.Code).isSchema():
			text += ": the lock's tables or functions are missing; run locktool migrate or call postgreslock.Migrate, or check the search path"
		case pg.Code == stateReadOnly:
			text += ": the server is a replica: use the primary's address (or the session is read-only: set default_transaction_read_only = off)"
		}
		return &lock.Error{Code: state(pg.Code).lockCode(), Err: storeError{text, err}}
	case errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		return &lock.Error{Code: lock.CodeNetworkTimeout, Err: storeError{"no answer in time", err}}
	default:
		return &lock.Error{Code: lock.CodeServiceUnavailable, Err: storeError{"the connection to Postgres failed", err}}
	}
}

// state is an SQLSTATE. The first two characters are its class.
type state string

func (s state) isSchema() bool {
	switch s {
	case "42P01", "42883", "42703", "3F000": // no such table, function, column, schema
		return true
	default:
		return false
	}
}

func (s state) lockCode() lock.Code {
	switch s {
	case stateCancelled, stateLockTimeout:
		return lock.CodeNetworkTimeout
	case stateReadOnly:
		return lock.CodeServiceUnavailable
	case stateNoPrivilege:
		return lock.CodeAuthFailed
	case stateDuplicateKey, "3D000": // no such database
		return lock.CodeInvalidArgument
	}
	if s.isSchema() {
		return lock.CodeInvalidArgument
	}
	if len(s) < 2 {
		return lock.CodeInternal
	}
	switch s[:2] {
	case "08", "40", "57", "58": // connection, conflict, shutdown, system
		return lock.CodeServiceUnavailable
	case "28":
		return lock.CodeAuthFailed
	case "53":
		return lock.CodeRateLimited
	default:
		return lock.CodeInternal
	}
}

// isConflict tells whether the server rolled a transaction back because of concurrent ones.
func isConflict(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == stateConflict || pg.Code == stateDeadlock)
}

// mayHaveApplied tells whether a statement that was sent and failed may take effect. What the
// server refuses is rolled back, but a session that it ends may have committed first.
func mayHaveApplied(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return !pgconn.SafeToRetry(err)
	}
	return pg.Code == stateUnknown || pg.SeverityUnlocalized == "FATAL" || pg.SeverityUnlocalized == "PANIC"
}
