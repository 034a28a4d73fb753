package postgreslock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/tasks"
)

// What the functions of the schema answer first.
const (
	statusDone     = 1 // then: fence, end (Unix ms), time until then (µs)
	statusHeld     = 2 // the same, of the holder
	statusExpired  = 3
	statusNotFound = 4
	statusDamaged  = 5 // then: the counter
)

const (
	// conflictTries bounds how often a statement is sent that the server rolled back
	// because of others at the same time.
	conflictTries = 10

	giveUpTries = 3

	detachedTimeout = tasks.DetachedTimeout
	connectTimeout  = 10 * time.Second
)

// answer is what a function of the schema answered.
type answer struct {
	status int64
	values []int64
	sent   time.Time // when it was asked
}

// lease reads the answer of statusDone and statusHeld. The deadline is what the server said is
// left, counted from before the question.
func (a answer) lease() (fence, expiresAtMs int64, deadline time.Time) {
	return a.values[1], a.values[2], a.sent.Add(time.Duration(a.values[3]) * time.Microsecond)
}

// reason is why an answer is not OK.
func (a answer) reason() lock.Reason {
	if a.status == statusExpired {
		return lock.ReasonExpired
	}
	return lock.ReasonNotFound
}

// call asks a function of the schema. OutcomeUnknown of its error tells whether it may
// have taken effect, or still can.
func (b *Backend) call(ctx context.Context, sql string, args ...any) (answer, error) {
	bounded, cancel := context.WithTimeout(ctx, b.tasks.Patience)
	defer cancel()
	for try := 1; ; try++ {
		a, sent, err := b.ask(bounded, try > 1, sql, args)
		if err == nil {
			return a, nil
		}
		if isConflict(err) && try < conflictTries && bounded.Err() == nil {
			continue
		}
		e := classify(ctx, err)
		e.OutcomeUnknown = sent && mayHaveApplied(err)
		return answer{}, e
	}
}

// ask sends one statement. anew says that the server rolled it back before, as it does in
// serializable sessions. sent tells whether there was a connection to send it on.
func (b *Backend) ask(ctx context.Context, anew bool, sql string, args []any) (a answer, sent bool, err error) {
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		if ctx.Err() != nil && b.pool.Stat().AcquiredConns() >= b.pool.Config().MaxConns {
			err = &lock.Error{Code: lock.CodeRateLimited, Err: errPoolExhausted}
		}
		return answer{}, false, err
	}
	defer conn.Release()
	a.sent = time.Now()
	if anew {
		err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, sql, args...).Scan(&a.values)
		})
	} else {
		err = conn.QueryRow(ctx, sql, args...).Scan(&a.values)
	}
	if err != nil {
		return answer{}, true, err
	}
	a.status = a.values[0]
	return a, true, nil
}

// Acquire implements lock.Backend.
func (b *Backend) Acquire(ctx context.Context, req lock.AcquireRequest) (lock.AcquireResult, error) {
	fail := func(err error) (lock.AcquireResult, error) {
		return lock.AcquireResult{}, lock.Located(err, "acquire", req.Key, req.LockID)
	}
	req, err := lock.ValidateAcquire(req)
	if err == nil {
		err = storable(req.Key)
	}
	if err != nil {
		return fail(err)
	}
	key := req.Key
	if ctx.Err() != nil {
		return fail(lock.AbortedBy(ctx))
	}
	if req.Probe {
		seen, err := b.read(ctx, b.sql.byKey, key)
		if err != nil {
			return fail(err)
		}
		if len(seen) > 0 && seen[0].live() && seen[0].lockID != req.LockID {
			return b.contended(key, seen[0].fence, seen[0].expiresAtMs), nil
		}
	}
	a, err := b.call(ctx, b.sql.acquire, key, req.LockID, req.TTL.Milliseconds())
	if err != nil {
		a, err = b.resolve(ctx, key, req.LockID, err)
	}
	if err != nil {
		return fail(err)
	}
	if a.status == statusDamaged {
		return fail(lock.Internal(fmt.Sprintf("fence counter is %d, outside 0..%d; the counter of this key is damaged or used up", a.values[1], lock.FenceMax-1)))
	}
	number, expiresAtMs, deadline := a.lease()
	if a.status == statusHeld {
		return b.contended(key, number, expiresAtMs), nil
	}
	b.waiters.Held(key, heldAt(number))
	fence, err := lock.FormatFence(number)
	if err != nil {
		return fail(err)
	}
	lock.WarnOfFence(b.log, b.hash, key, number)
	if !time.Now().Before(deadline) {
		b.giveUp(ctx, key, req.LockID)
		return fail(&lock.Error{Code: lock.CodeNetworkTimeout, OutcomeUnknown: true, Err: tasks.ErrLeaseOver})
	}
	b.remember(req.LockID, deadline)
	return lock.AcquireResult{OK: true, LockID: req.LockID, Fence: fence, ExpiresAtMs: expiresAtMs, Deadline: deadline}, nil
}

func (b *Backend) remember(lockID string, deadline time.Time) {
	b.leases.Put(lockID, deadline, func(deadline time.Time) bool { return time.Now().After(deadline) })
}

// contended is the result for a lock that somebody else has.
func (b *Backend) contended(key string, fence, expiresAtMs int64) lock.AcquireResult {
	b.waiters.Held(key, heldAt(fence))
	b.waiters.ListenSoon(key)
	return lock.AcquireResult{Reason: lock.ReasonLocked, HolderExpiresAtMs: expiresAtMs}
}

// resolve finds out what became of an acquisition that failed after it may have been sent. If
// it cannot tell, it releases in the background.
func (b *Backend) resolve(ctx context.Context, key, lockID string, failed error) (answer, error) {
	e, ok := errors.AsType[*lock.Error](failed)
	if !ok || !e.OutcomeUnknown {
		return answer{}, failed
	}
	if ctx.Err() != nil { // the caller has gone
		b.giveUp(ctx, key, lockID)
		return answer{}, failed
	}
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), detachedTimeout)
	defer cancel()
	asked := time.Now()
	seen, err := b.read(detached, b.sql.byKey, key)
	if err != nil || len(seen) == 0 || !seen[0].live() || seen[0].lockID != lockID {
		b.giveUp(ctx, key, lockID)
		return answer{}, failed
	}
	if ctx.Err() != nil {
		b.giveUp(ctx, key, lockID)
		return answer{}, lock.AbortedBy(ctx)
	}
	return seen[0].answer(asked), nil
}

// giveUp releases a lease that nobody will use, in the background. The server may still be
// executing the acquisition, so it tries more than once.
func (b *Backend) giveUp(ctx context.Context, key, lockID string) {
	b.tasks.Background(ctx, func(ctx context.Context) {
		for range giveUpTries {
			if a, err := b.call(ctx, b.sql.release, key, lockID); err == nil && a.status == statusDone {
				b.waiters.Wake(key)
				return
			}
			sleep(ctx, detachedTimeout/(2*giveUpTries))
		}
	})
}

// sleep waits until d has passed or ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Release implements lock.Backend.
func (b *Backend) Release(ctx context.Context, ref lock.Ref) (lock.ReleaseResult, error) {
	fail := func(err error) (lock.ReleaseResult, error) {
		return lock.ReleaseResult{}, lock.Located(err, "release", ref.Key, ref.LockID)
	}
	key, err := admit(ctx, ref)
	if err != nil {
		return fail(err)
	}
	a, err := b.call(ctx, b.sql.release, key, ref.LockID)
	if isLost(ctx, err) {
		// The first call may have deleted it. Nobody else can take it over while its lease
		// lasts, so if it is gone by then, the first call released it.
		first := err
		if a, err = b.callAgain(ctx, b.sql.release, key, ref.LockID); err == nil && a.status != statusDone {
			if deadline, _ := b.leases.Get(ref.LockID); !time.Now().Before(deadline) {
				return fail(first)
			}
			a.status = statusDone
		}
	}
	if err != nil {
		return fail(err)
	}
	b.leases.Forget(ref.LockID)
	if a.status != statusDone {
		return lock.ReleaseResult{Reason: a.reason()}, nil
	}
	if key != nil {
		b.waiters.Wake(*key)
	}
	return lock.ReleaseResult{OK: true}, nil
}

// Extend implements lock.Backend.
func (b *Backend) Extend(ctx context.Context, ref lock.Ref, ttl time.Duration) (lock.ExtendResult, error) {
	fail := func(err error) (lock.ExtendResult, error) {
		return lock.ExtendResult{}, lock.Located(err, "extend", ref.Key, ref.LockID)
	}
	if err := lock.ValidateTTL(ttl); err != nil {
		return fail(err)
	}
	key, err := admit(ctx, ref)
	if err != nil {
		return fail(err)
	}
	a, err := b.call(ctx, b.sql.extend, key, ref.LockID, ttl.Milliseconds())
	repeated := isLost(ctx, err)
	if repeated {
		a, err = b.callAgain(ctx, b.sql.extend, key, ref.LockID, ttl.Milliseconds())
	}
	if err != nil {
		return fail(err)
	}
	if a.status != statusDone {
		return lock.ExtendResult{Reason: a.reason(), Repeated: repeated}, nil
	}
	_, expiresAtMs, deadline := a.lease()
	b.remember(ref.LockID, deadline)
	return lock.ExtendResult{OK: true, ExpiresAtMs: expiresAtMs, Deadline: deadline, Repeated: repeated}, nil
}

// callAgain repeats a call whose answer was lost. If it fails too, the first one may have taken
// effect.
func (b *Backend) callAgain(ctx context.Context, sql string, args ...any) (answer, error) {
	a, err := b.call(ctx, sql, args...)
	if e, ok := errors.AsType[*lock.Error](err); ok {
		e.OutcomeUnknown = true
	}
	return a, err
}

// isLost tells whether a call may have taken effect without an answer, and may be repeated.
func isLost(ctx context.Context, err error) bool {
	e, ok := errors.AsType[*lock.Error](err)
	return ok && e.OutcomeUnknown && ctx.Err() == nil
}

// admit checks a reference, then the context. The key is nil if there is none.
func admit(ctx context.Context, ref lock.Ref) (*string, error) {
	ref, err := lock.ValidateRef(ref)
	if err == nil {
		err = storable(ref.Key)
	}
	if err == nil && ctx.Err() != nil {
		err = lock.AbortedBy(ctx)
	}
	if err != nil || ref.Key == "" {
		return nil, err
	}
	return &ref.Key, nil
}
