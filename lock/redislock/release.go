package redislock

import (
	"context"
	"strconv"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

// callRetention is how long the server recognises a repeated release.
const callRetention = 10 * time.Second

// Release implements lock.Backend.
func (b *Backend) Release(ctx context.Context, ref lock.Ref) (lock.ReleaseResult, error) {
	fail := func(err error) (lock.ReleaseResult, error) {
		return lock.ReleaseResult{}, classify(ctx, err).At("release", ref.Key, ref.LockID)
	}
	t, err := b.targetOf(ref)
	if err != nil {
		return fail(err)
	}
	if ctx.Err() != nil {
		return fail(lock.AbortedBy(ctx))
	}
	res, err := call(ctx, b, func(ctx context.Context) (lock.ReleaseResult, error) {
		none, err := b.find(ctx, &t)
		if err != nil || none != "" {
			return lock.ReleaseResult{Reason: none}, err
		}
		return b.releaseAt(ctx, t.key, t.lockKey, t.lockID)
	}, nil)
	if err != nil {
		return fail(err)
	}
	return res, nil
}

// releaseAt releases the lock of a key, if the id has it. It repeats a call whose reply was
// lost under the same name.
func (b *Backend) releaseAt(ctx context.Context, key, lockKey, lockID string) (lock.ReleaseResult, error) {
	keys := []string{lockKey, b.indexKey(lockID)}
	call := b.nextCall()
	reply, err := b.persist(ctx, func(ctx context.Context) (any, error) {
		return b.run(ctx, releaseScript, false, keys, storedID(lockID), call, callRetentionMs, b.channel(lockKey))
	})
	if err != nil {
		return lock.ReleaseResult{}, err
	}
	if reply != int64(1) {
		return lock.ReleaseResult{Reason: reasonOf(reply)}, nil
	}
	b.waiters.Wake(key)
	return lock.ReleaseResult{OK: true}, nil
}

var callRetentionMs = strconv.FormatInt(callRetention.Milliseconds(), 10)

// storedID is a lock id as it is found in a stored lock.
func storedID(lockID string) string { return `"lockId":"` + lockID + `"` }

// reasonOf reads a script's answer that nothing was done.
func reasonOf(reply any) lock.Reason {
	if reply == int64(-2) {
		return lock.ReasonExpired
	}
	return lock.ReasonNotFound
}

// target is the lease that a release or an extension is about.
type target struct {
	lockID       string
	key, lockKey string // empty: to be found by the id
}

// targetOf checks a reference.
func (b *Backend) targetOf(ref lock.Ref) (target, error) {
	ref, err := lock.ValidateRef(ref)
	if err != nil {
		return target{}, err
	}
	t := target{lockID: ref.LockID, key: ref.Key}
	if ref.Key != "" {
		t.lockKey, err = b.lockKey(ref.Key)
	}
	return t, err
}

// find looks a lock up by its id if it has no key, and returns why there is not exactly one.
func (b *Backend) find(ctx context.Context, t *target) (none lock.Reason, err error) {
	if t.key != "" {
		return "", nil
	}
	seen, err := b.lookupID(ctx, t.lockID)
	if err != nil {
		return "", err
	}
	if len(seen.live) != 1 {
		return seen.none, nil
	}
	t.key = seen.live[0].Key
	t.lockKey = seen.live[0].lockKey
	return "", nil
}

// Extend implements lock.Backend.
func (b *Backend) Extend(ctx context.Context, ref lock.Ref, ttl time.Duration) (lock.ExtendResult, error) {
	fail := func(err error) (lock.ExtendResult, error) {
		return lock.ExtendResult{}, classify(ctx, err).At("extend", ref.Key, ref.LockID)
	}
	if err := lock.ValidateTTL(ttl); err != nil {
		return fail(err)
	}
	t, err := b.targetOf(ref)
	if err != nil {
		return fail(err)
	}
	if ctx.Err() != nil {
		return fail(lock.AbortedBy(ctx))
	}
	res, err := call(ctx, b, func(ctx context.Context) (lock.ExtendResult, error) {
		none, err := b.find(ctx, &t)
		if err != nil || none != "" {
			return lock.ExtendResult{Reason: none}, err
		}
		return b.extendAt(ctx, t, ttl)
	}, nil)
	if err != nil {
		return fail(err)
	}
	return res, nil
}

// extendAt moves the end of a lease.
func (b *Backend) extendAt(ctx context.Context, t target, ttl time.Duration) (lock.ExtendResult, error) {
	lease, life, retention := lifetimes(ttl)
	var asked time.Time
	tries := 0
	reply, err := b.persist(ctx, func(ctx context.Context) (any, error) {
		asked = time.Now()
		tries++
		return b.run(ctx, extendScript, true, []string{t.lockKey, b.indexKey(t.lockID)}, storedID(t.lockID), lease, life, retention)
	})
	if err != nil {
		return lock.ExtendResult{}, err
	}
	ends, ok := reply.(int64)
	if !ok || ends < 0 {
		return lock.ExtendResult{Reason: reasonOf(reply), Repeated: tries > 1}, nil
	}
	return lock.ExtendResult{OK: true, ExpiresAtMs: ends, Deadline: asked.Add(ttl), Repeated: tries > 1}, nil
}
