package redislock

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/dronefleet/dronefleet/lock"
)

const (
	errFewReplicas lock.SafeError = "too few replicas have the lease; a failover could forget it"
	errReplica     lock.SafeError = "the server is a replica: use the primary's address"
	errCounter     lock.SafeError = "the fence counter of this key is damaged or used up; check its value"
)

// replyError is an error that the server answered. Only its first word is printed: the
// rest may quote arguments.
type replyError struct {
	word string
	err  error
}

func (e replyError) Error() string    { return e.err.Error() }
func (e replyError) SafeText() string { return "the server answered " + e.word }
func (e replyError) Unwrap() error    { return e.err }

// codes maps the first words of the server's errors. Others are Internal.
var codes = map[string]lock.Code{
	"READONLY": lock.CodeServiceUnavailable, // a replica, perhaps only for a moment
	"LOADING":  lock.CodeServiceUnavailable, "MASTERDOWN": lock.CodeServiceUnavailable,
	"CLUSTERDOWN": lock.CodeServiceUnavailable, "TRYAGAIN": lock.CodeServiceUnavailable,
	"MOVED": lock.CodeServiceUnavailable, "ASK": lock.CodeServiceUnavailable,
	"NOREPLICAS": lock.CodeServiceUnavailable, "MISCONF": lock.CodeServiceUnavailable,
	"BUSY": lock.CodeServiceUnavailable, "UNKILLABLE": lock.CodeServiceUnavailable,
	"OOM":    lock.CodeRateLimited,
	"NOAUTH": lock.CodeAuthFailed, "WRONGPASS": lock.CodeAuthFailed, "NOPERM": lock.CodeAuthFailed,
}

// classify turns any error of an operation into a new *lock.Error. The caller's ended context
// wins. The outcome is unknown if the request may have reached the server and was not answered.
func classify(ctx context.Context, err error) *lock.Error {
	if e, ok := errors.AsType[*lock.Error](err); ok {
		same := *e
		return &same
	}
	failure := &lock.Error{Code: lock.CodeServiceUnavailable, Err: err}
	if answer, ok := errors.AsType[redis.Error](err); ok {
		text := answer.Error()
		word, rest, _ := strings.Cut(text, " ")
		failure.Code, failure.Err = lock.CodeInternal, replyError{word, err}
		if code, ok := codes[word]; ok {
			failure.Code = code
		}
		if strings.HasPrefix(rest, "max number of clients reached") {
			failure.Code = lock.CodeRateLimited
		}
		if word == "READONLY" {
			failure.Err = errReplica
		}
		if word == "LOCKFENCE" || strings.HasPrefix(rest, "value is not an integer or out of range") || strings.HasPrefix(rest, "increment or decrement would overflow") {
			failure.Err = errCounter
		}
		return failure
	}
	dial, isOp := errors.AsType[*net.OpError](err)
	network, isNet := errors.AsType[net.Error](err)
	switch {
	case ctx.Err() != nil:
		failure = lock.AbortedBy(ctx)
		failure.OutcomeUnknown = true
	case errors.Is(err, errFewReplicas):
		failure.OutcomeUnknown = true
	case isOp && dial.Op == "dial", errors.Is(err, redis.ErrClosed), errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		// never sent
	case isNet && network.Timeout(), errors.Is(err, context.DeadlineExceeded):
		failure.Code, failure.OutcomeUnknown = lock.CodeNetworkTimeout, true
	default:
		failure.OutcomeUnknown = true
	}
	return failure
}

func outcomeUnknown(err error) bool {
	e, ok := errors.AsType[*lock.Error](err)
	return ok && e.OutcomeUnknown
}
