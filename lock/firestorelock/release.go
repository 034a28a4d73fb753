package firestorelock

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/tasks"
)

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
	res, err := tasks.Call(ctx, &b.tasks, func(ctx context.Context) (lock.ReleaseResult, error) {
		return b.release(ctx, t)
	}, nil)
	if err != nil {
		return fail(err)
	}
	return res, nil
}

// release deletes the version this backend wrote, if it remembers it; otherwise, or if that
// version is gone, a transaction decides. Releases of one id go one by one: one whose reply was
// lost would take another's deletion for its own (L-REL-05).
func (b *Backend) release(ctx context.Context, t target) (lock.ReleaseResult, error) {
	done, err := b.releasing.take(ctx, t.lockID)
	if err != nil {
		return lock.ReleaseResult{}, err
	}
	defer done()
	h, ok := b.known(t)
	if !ok {
		return b.releaseInTransaction(ctx, t, lostReply{})
	}
	counted, sent := countSends(ctx)
	_, err = t.at.lock.Delete(counted, firestore.LastUpdateTime(h.version))
	if err == nil {
		b.noteSends(sent)
		b.leases.Forget(t.lockID)
		b.waiters.Wake(t.at.key)
		return lock.ReleaseResult{OK: true}, nil
	}
	lost := lostReply{mayHaveApplied(err) || sent.repeated(), h.expiresAtMs, h.serverEnd}
	if isConflict(err) || mayHaveApplied(err) && ctx.Err() == nil {
		// Changed by another process, or deleted by our own commit.
		return b.releaseInTransaction(ctx, t, lost)
	}
	return lock.ReleaseResult{}, lost.failure(ctx, err)
}

// lostReply says that an earlier commit of a release may have deleted the lock,
// and when the lease it deleted would have ended.
type lostReply struct {
	possible    bool
	expiresAtMs int64
	serverEnd   time.Time // zero if unknown
}

// explains reports whether our own commit deleted a lock that is gone. After the lease others
// may take the lock, so its absence proves nothing. With the server-time guard only the
// server's clock decides, because the local one may have been set.
func (l lostReply) explains(now instant) bool {
	at := now.local
	if !now.server.IsZero() {
		now.server = now.server.Add(now.late)
		at = now.server
	}
	return l.possible && lock.IsLive(l.expiresAtMs, at.UnixMilli()) && !now.isPast(l.serverEnd)
}

// failure is the error that ends a release. What an earlier commit may have done stays unknown.
func (l lostReply) failure(ctx context.Context, err error) error {
	return withUnknownOutcome(classify(ctx, err), l.possible)
}

// releaseInTransaction reads, compares and deletes. If the id is gone although nobody else may
// have taken the lock, an earlier commit with a lost reply deleted it, and the lock counts as
// released.
func (b *Backend) releaseInTransaction(ctx context.Context, t target, lost lostReply) (lock.ReleaseResult, error) {
	for round := 0; ; round++ {
		var f found
		deleting := false
		counted, sent := countSends(ctx)
		err := b.client.RunTransaction(counted, func(ctx context.Context, tx *firestore.Transaction) error {
			var err error
			if deleting && sent.repeated() {
				lost = lostReply{true, f.stored.expiresAtMs, f.stored.serverEnd()}
			}
			deleting = false
			if f, err = b.find(ctx, tx, t); err != nil {
				return err
			}
			if f.live == nil && len(f.expired) == 0 {
				return errNothingToWrite
			}
			if f.live != nil {
				deleting = true
				if err := tx.Delete(f.live); err != nil {
					return err
				}
			}
			sent.restart()
			return f.sweep(tx)
		})
		switch {
		case err == nil && deleting:
			b.leases.Forget(t.lockID)
			b.waiters.Wake(f.stored.key)
			return lock.ReleaseResult{OK: true}, nil
		case err == nil, errors.Is(err, errNothingToWrite):
			b.forgetGone(t)
			if f.reason == lock.ReasonNotFound && lost.explains(f.now) {
				if t.at != nil {
					b.waiters.Wake(t.at.key)
				}
				return lock.ReleaseResult{OK: true}, nil
			}
			return lock.ReleaseResult{Reason: f.reason}, nil
		}
		if !deleting || !mayHaveApplied(err) {
			// What is refused when it is sent again may have been applied before.
			lost.possible = lost.possible || deleting && sent.repeated()
			return lock.ReleaseResult{}, lost.failure(ctx, err)
		}
		if round > 0 || ctx.Err() != nil {
			return lock.ReleaseResult{}, withUnknownOutcome(classify(ctx, err), true)
		}
		// A transaction that the server no longer knows has expired, or an earlier sending, if
		// there was one, committed it.
		if !isTransactionGone(err) || sent.repeated() {
			lost = lostReply{true, f.stored.expiresAtMs, f.stored.serverEnd()}
		}
	}
}

// releaseInBackground releases a lease that nobody will use.
func (b *Backend) releaseInBackground(ctx context.Context, at address, lockID string) {
	b.tasks.Begin()
	go func() {
		defer b.tasks.End()
		b.releaseDetached(ctx, at, lockID)
	}()
}

// releaseDetached releases a lease that nobody will use, even if the caller is gone. If it
// fails, the lock ends with its ttl, or with a release that takes effect late.
func (b *Backend) releaseDetached(ctx context.Context, at address, lockID string) (released bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tasks.DetachedTimeout)
	defer cancel()
	_, err := b.release(ctx, target{lockID: lockID, at: &at})
	if err != nil {
		b.log.Warn("lock left to its ttl",
			slog.String("key_hash", b.hash(at.key)), slog.Any("err", classify(ctx, err).At("release", "", "")))
	}
	return err == nil
}
