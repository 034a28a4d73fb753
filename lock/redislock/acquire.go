package redislock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/tasks"
)

// indexRetention is how long the index remembers an id after its lock is over, so that its
// holder is told "expired" instead of "not found".
const indexRetention = time.Minute

// Acquire implements lock.Backend.
func (b *Backend) Acquire(ctx context.Context, req lock.AcquireRequest) (lock.AcquireResult, error) {
	fail := func(err error) (lock.AcquireResult, error) {
		return lock.AcquireResult{}, classify(ctx, err).At("acquire", req.Key, req.LockID)
	}
	req, err := lock.ValidateAcquire(req)
	if err != nil {
		return fail(err)
	}
	a := acquisition{b: b, key: req.Key, ttl: req.TTL, lockID: req.LockID}
	if a.lockKey, err = b.lockKey(a.key); err != nil {
		return fail(err)
	}
	if ctx.Err() != nil {
		return fail(lock.AbortedBy(ctx))
	}
	res, err := call(ctx, b, a.run, func(late lock.AcquireResult) {
		if late.OK {
			a.giveBack(ctx)
		}
	})
	if err != nil {
		return fail(err)
	}
	return res, nil
}

// acquisition is one attempt to take a lock.
type acquisition struct {
	b            *Backend
	key, lockKey string
	ttl          time.Duration
	lockID       string
}

// run asks until the outcome is known. Asking again is safe: the server recognises the
// lock id.
func (a *acquisition) run(ctx context.Context) (lock.AcquireResult, error) {
	var none lock.AcquireResult
	keys := []string{a.lockKey, a.b.indexKey(a.lockID), a.b.fenceKey(a.lockKey)}
	stored := `{"lockId":"` + a.lockID + `","key":` + quoted(a.key) + `,"fence":"`
	lease, life, retention := lifetimes(a.ttl)
	var asked time.Time
	reply, err := a.b.persist(ctx, func(ctx context.Context) (any, error) {
		asked = time.Now()
		return a.b.run(ctx, acquireScript, true, keys, stored, lease, life, retention)
	})
	if err != nil {
		if outcomeUnknown(err) {
			a.giveBack(ctx)
		}
		return none, err
	}
	res, err := a.judge(reply, asked)
	if err != nil {
		return none, err
	}
	if res.OK && !time.Now().Before(res.Deadline) { // L-ACQ-07
		a.giveBack(ctx)
		return none, &lock.Error{Code: lock.CodeNetworkTimeout, OutcomeUnknown: true, Err: tasks.ErrLeaseOver}
	}
	return res, nil
}

// judge reads what the script answered.
func (a *acquisition) judge(reply any, asked time.Time) (lock.AcquireResult, error) {
	var none lock.AcquireResult
	switch reply := reply.(type) {
	case string:
		var nowMs int64
		res := lock.AcquireResult{OK: true, LockID: a.lockID, Deadline: asked.Add(a.ttl)}
		if len(reply) > fenceDigits {
			res.Fence = lock.Fence(reply[:fenceDigits])
			end, start, _ := strings.Cut(strings.TrimPrefix(reply[fenceDigits:], `","expiresAtMs":`), `,"acquiredAtMs":`)
			res.ExpiresAtMs, _ = strconv.ParseInt(end, 10, 64)
			nowMs, _ = strconv.ParseInt(strings.TrimSuffix(start, "}"), 10, 64)
		}
		if nowMs == 0 || res.ExpiresAtMs == 0 {
			break
		}
		n, err := lock.ParseFence(string(res.Fence))
		if err != nil {
			return none, err
		}
		lock.WarnOfFence(a.b.log, a.b.hash, a.key, n)
		a.b.waiters.Held(a.key, version(n))
		return res, nil
	case []any:
		if len(reply) != 2 {
			break
		}
		text, _ := reply[0].(string)
		nowMs, _ := reply[1].(int64)
		old, err := parseLock(text)
		if err != nil {
			return none, err
		}
		n, _ := lock.ParseFence(old.Fence) // an invalid fence counts as old
		a.b.waiters.Held(a.key, version(n))
		if old.LockID == a.lockID {
			// An earlier run, whose reply was lost, was granted it.
			left := time.Duration(old.ExpiresAtMs-nowMs) * time.Millisecond
			return lock.AcquireResult{
				OK: true, LockID: a.lockID, Fence: old.fence(), ExpiresAtMs: old.ExpiresAtMs, Deadline: asked.Add(left),
			}, nil
		}
		a.b.waiters.ListenSoon(a.key)
		return lock.AcquireResult{Reason: lock.ReasonLocked, HolderExpiresAtMs: old.ExpiresAtMs}, nil
	}
	return none, lock.Internal(fmt.Sprintf("acquire script returned an unexpected %T", reply))
}

// giveBack releases, in the background, a lease that was not handed out.
func (a *acquisition) giveBack(ctx context.Context) {
	a.b.tasks.Background(ctx, func(ctx context.Context) {
		_, _ = a.b.releaseAt(ctx, a.key, a.lockKey, a.lockID) // else it ends with its ttl
	})
}

// lifetimes are the length of a lease, of its lock's key and of the index entry, as arguments
// of scripts. Redis keeps a key through the millisecond of its end, when the lock is already
// over.
func lifetimes(ttl time.Duration) (lease, life, retention string) {
	ms := ttl.Milliseconds()
	format := func(ms int64) string { return strconv.FormatInt(ms, 10) }
	return format(ms), format(ms + lock.Tolerance.Milliseconds() - 1), format(ms + indexRetention.Milliseconds())
}

// Tries of one call whose requests or replies are lost.
const (
	maxTries   = 3
	retryPause = 20 * time.Millisecond
)

// persist makes a request until it is answered. The error says whether an earlier
// request may have taken effect.
func (b *Backend) persist(ctx context.Context, ask func(context.Context) (any, error)) (any, error) {
	unknown := false
	for try := 1; ; try++ {
		reply, err := ask(ctx)
		if err == nil {
			return reply, nil
		}
		e := classify(ctx, err)
		e.OutcomeUnknown = e.OutcomeUnknown || unknown
		unknown = e.OutcomeUnknown
		if try == maxTries || e.Code != lock.CodeServiceUnavailable || errors.Is(err, errFewReplicas) || ctx.Err() != nil {
			return nil, e
		}
		timer := time.NewTimer(retryPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, e
		}
	}
}

// call is tasks.Call. If ctx cannot end, it needs no goroutine of its own, and the client's
// timeouts bound it.
func call[T any](ctx context.Context, b *Backend, operation func(context.Context) (T, error), late func(T)) (T, error) {
	if ctx.Done() != nil {
		return tasks.Call(ctx, &b.tasks, operation, late)
	}
	b.tasks.Begin()
	defer b.tasks.End()
	return operation(ctx)
}
