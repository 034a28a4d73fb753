package firestorelock

import (
	"context"
	"errors"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/tasks"
)

// Extend implements lock.Backend.
func (b *Backend) Extend(ctx context.Context, ref lock.Ref, ttl time.Duration) (lock.ExtendResult, error) {
	fail := func(err error) (lock.ExtendResult, error) {
		return lock.ExtendResult{}, classify(ctx, err).At("extend", ref.Key, ref.LockID)
	}
	t, err := b.targetOf(ref)
	if err != nil {
		return fail(err)
	}
	if err := lock.ValidateTTL(ttl); err != nil {
		return fail(err)
	}
	if ctx.Err() != nil {
		return fail(lock.AbortedBy(ctx))
	}
	res, err := tasks.Call(ctx, &b.tasks, func(ctx context.Context) (lock.ExtendResult, error) {
		return b.extend(ctx, t, ttl)
	}, nil)
	if err != nil {
		return fail(err)
	}
	return res, nil
}

// extend updates the version this backend wrote, if it remembers it; otherwise, or if that
// version is gone, a transaction decides. Extending twice does no harm, so an unknown outcome
// is retried.
func (b *Backend) extend(ctx context.Context, t target, ttl time.Duration) (lock.ExtendResult, error) {
	if err := b.checkSkew(); err != nil {
		return lock.ExtendResult{}, err
	}
	h, ok := b.known(t)
	if !ok {
		return b.extendInTransaction(ctx, t, ttl, false)
	}
	now := b.instantWithoutRead()
	expiresAtMs := now.writeMs() + ttl.Milliseconds()
	counted, sent := countSends(ctx)
	written, err := t.at.lock.Update(counted, b.extension(expiresAtMs, ttl), firestore.LastUpdateTime(h.version))
	if err == nil {
		b.noteSends(sent)
		deadline := h.deadline // if nothing changed, nothing new is proven
		if written.UpdateTime.After(h.version) {
			b.server.learn(written.UpdateTime, now.local, b.clock.Now())
			deadline = now.deadlineOf(expiresAtMs, ttl, written.UpdateTime)
		}
		h.version = written.UpdateTime
		return b.extended(t.lockID, h, expiresAtMs, ttl, deadline), nil
	}
	lost := mayHaveApplied(err) || sent.repeated()
	if isConflict(err) || mayHaveApplied(err) && ctx.Err() == nil {
		return b.extendInTransaction(ctx, t, ttl, lost)
	}
	return lock.ExtendResult{}, withUnknownOutcome(classify(ctx, err), lost)
}

// extendInTransaction reads, compares and sets the new end. lost says that an
// earlier commit may have set one, which stays unknown if this fails.
func (b *Backend) extendInTransaction(ctx context.Context, t target, ttl time.Duration, lost bool) (lock.ExtendResult, error) {
	for round := 0; ; round++ {
		var f found
		var expiresAtMs int64
		var response firestore.CommitResponse
		updating := false
		counted, sent := countSends(ctx)
		err := b.client.RunTransaction(counted, func(ctx context.Context, tx *firestore.Transaction) error {
			var err error
			lost = lost || updating && sent.repeated()
			updating = false
			if f, err = b.find(ctx, tx, t); err != nil {
				return err
			}
			if f.live == nil && len(f.expired) == 0 {
				return errNothingToWrite
			}
			if f.live != nil {
				if err := b.checkSkew(); err != nil {
					return err
				}
				updating = true
				expiresAtMs = f.now.writeMs() + ttl.Milliseconds()
				if err := tx.Update(f.live, b.extension(expiresAtMs, ttl)); err != nil {
					return err
				}
			}
			sent.restart()
			return f.sweep(tx)
		}, firestore.WithCommitResponseTo(&response))
		switch {
		case err == nil && updating:
			return b.extendedAt(t, f, expiresAtMs, ttl, &response)
		case err == nil, errors.Is(err, errNothingToWrite):
			b.forgetGone(t)
			return lock.ExtendResult{Reason: f.reason}, nil
		}
		if !updating || !mayHaveApplied(err) {
			// What is refused when it is sent again may have been applied before.
			lost = lost || updating && sent.repeated()
			return lock.ExtendResult{}, withUnknownOutcome(classify(ctx, err), lost)
		}
		lost = true
		if round > 0 || ctx.Err() != nil {
			return lock.ExtendResult{}, withUnknownOutcome(classify(ctx, err), lost)
		}
	}
}

// extendedAt is the result of a committed transaction.
func (b *Backend) extendedAt(t target, f found, expiresAtMs int64, ttl time.Duration, response *firestore.CommitResponse) (lock.ExtendResult, error) {
	commitTime := response.CommitTime()
	b.server.learn(commitTime, f.now.local, b.clock.Now())
	deadline := f.now.deadlineOf(expiresAtMs, ttl, commitTime)
	written, err := response.WriteResults()
	if err == nil && len(written) > 0 && b.guarded { // written before, if nothing changed
		deadline = sooner(deadline, f.now.local.Add(written[0].UpdateTime.Add(ttl).Sub(commitTime)))
	}
	known, isKnown := b.leases.Get(t.lockID)
	if err != nil || len(written) == 0 || (t.at == nil && !isKnown) {
		return lock.ExtendResult{OK: true, ExpiresAtMs: expiresAtMs, Deadline: deadline}, nil
	}
	if t.at != nil {
		known.base, known.nested = t.at.base, t.at.nested
	}
	known.version = written[0].UpdateTime
	return b.extended(t.lockID, known, expiresAtMs, ttl, deadline), nil
}

// extended remembers an extension and reports it.
func (b *Backend) extended(lockID string, h held, expiresAtMs int64, ttl time.Duration, deadline time.Time) lock.ExtendResult {
	h.expiresAtMs, h.deadline, h.serverEnd = expiresAtMs, deadline, time.Time{}
	if b.guarded {
		h.serverEnd = serverEndOf(h.version, ttl)
	}
	b.remember(lockID, h)
	return lock.ExtendResult{OK: true, ExpiresAtMs: expiresAtMs, Deadline: deadline}
}
