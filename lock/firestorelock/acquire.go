package firestorelock

import (
	"context"
	"errors"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/tasks"
)

// maxConflicts is how often an attempt starts again because another process changed the lock
// between its read and its commit. Usually the next read finds the lock held.
const (
	maxConflicts = 8
	maxRefusals  = 3
)

// Acquire implements lock.Backend.
func (b *Backend) Acquire(ctx context.Context, req lock.AcquireRequest) (lock.AcquireResult, error) {
	fail := func(err error) (lock.AcquireResult, error) {
		return lock.AcquireResult{}, classify(ctx, err).At("acquire", req.Key, req.LockID)
	}
	req, err := lock.ValidateAcquire(req)
	if err != nil {
		return fail(err)
	}
	at, err := b.locate(req.Key)
	if err != nil {
		return fail(err)
	}
	if ctx.Err() != nil {
		return fail(lock.AbortedBy(ctx))
	}
	a := acquisition{b: b, at: at, ttl: req.TTL, lockID: req.LockID}
	res, err := tasks.Call(ctx, &b.tasks, a.run, func(late lock.AcquireResult) {
		if late.OK {
			b.releaseInBackground(ctx, at, req.LockID)
		}
	})
	if err != nil {
		return fail(err)
	}
	return res, nil
}

// acquisition is one attempt to take a lock.
type acquisition struct {
	b      *Backend
	at     address
	ttl    time.Duration
	lockID string

	mayApply bool // a commit that failed may have been applied, or may still be
	warned   bool // WarnOfFence was called
}

// grant is a lease about to be committed.
type grant struct {
	lease lease
	now   instant
}

// view is what one consistent read saw of a key.
type view struct {
	asked   time.Time // before the read was sent
	lock    *firestore.DocumentSnapshot
	counter *firestore.DocumentSnapshot
	legacy  *firestore.DocumentSnapshot // nil if not read
}

// run reads, decides and commits until the outcome is known.
func (a *acquisition) run(ctx context.Context) (lock.AcquireResult, error) {
	var none lock.AcquireResult
	var committing error // the conflict that the last commit failed with
	var tried view
	var refused int
	for conflicts := 0; ; conflicts++ {
		if ctx.Err() != nil {
			return a.resolve(ctx, lock.AbortedBy(ctx), tried)
		}
		asked := a.b.clock.Now()
		docs, err := a.b.client.GetAll(ctx, []*firestore.DocumentRef{a.at.lock, a.at.counter})
		if err != nil {
			return a.resolve(ctx, err, tried)
		}
		seen := view{lock: docs[0], counter: docs[1], asked: asked}
		if committing != nil && rpcCode(committing) == codes.FailedPrecondition && tried.sameAs(seen) {
			// Not a conflict, it seems: the server refuses for another reason. Once may be
			// chance, because a server may refuse before its reads show why.
			if refused++; refused == maxRefusals {
				return a.resolve(ctx, committing, tried)
			}
		}
		g, answer, err := a.decide(seen)
		if err != nil {
			return none, err
		}
		if answer != nil {
			return a.accept(ctx, *answer)
		}
		if ctx.Err() != nil {
			return a.resolve(ctx, lock.AbortedBy(ctx), tried)
		}
		var res *lock.AcquireResult
		if seen.counter.Exists() {
			res, err = a.commit(ctx, seen, *g)
		} else {
			res, err = a.commitFirst(ctx)
		}
		switch {
		case err == nil:
			return a.accept(ctx, *res)
		case errors.As(err, new(*lock.Error)):
			return none, err // decided inside the transaction, nothing sent
		case !isConflict(err):
			return a.resolve(ctx, err, seen)
		case conflicts == maxConflicts:
			return a.resolve(ctx, rpcError{codes.Aborted, err}, seen)
		}
		committing, tried = err, seen
	}
}

// sameAs tells whether neither document has changed between two reads.
func (v view) sameAs(later view) bool {
	return sameVersion(v.lock, later.lock) && sameVersion(v.counter, later.counter)
}

func sameVersion(a, b *firestore.DocumentSnapshot) bool {
	return a != nil && b != nil && a.Exists() == b.Exists() && a.UpdateTime.Equal(b.UpdateTime)
}

// decide judges what was read: either a lease to commit, or the answer.
func (a *acquisition) decide(v view) (*grant, *lock.AcquireResult, error) {
	now := a.b.instantOf(v.asked, v.lock.ReadTime)
	var old storedLock
	if v.lock.Exists() {
		old = lockOf(v.lock)
		a.b.noteMalformed(a.at.key, old)
		live := old.liveAt(now)
		if live && old.lockID == a.lockID {
			return nil, a.ours(old, now), nil
		}
		if live {
			a.b.waiters.Held(a.at.key, v.lock.ReadTime)
			a.b.waiters.ListenSoon(a.at.key)
			return nil, &lock.AcquireResult{Reason: lock.ReasonLocked, HolderExpiresAtMs: old.expiresAtMs}, nil
		}
	}
	if err := a.b.checkSkew(); err != nil {
		return nil, nil, err
	}
	fence, err := a.nextFence(v, old)
	if err != nil {
		return nil, nil, err
	}
	nowMs := now.writeMs()
	g := &grant{
		lease: lease{
			lockID:       a.lockID,
			key:          a.at.key,
			expiresAtMs:  nowMs + a.ttl.Milliseconds(),
			acquiredAtMs: nowMs,
			fence:        fence,
		},
		now: now,
	}
	if a.b.guarded {
		g.lease.ttl = a.ttl
	}
	return g, nil, nil
}

// ours is the answer if an earlier run of the same acquisition did commit, though its reply was
// lost.
func (a *acquisition) ours(stored storedLock, now instant) *lock.AcquireResult {
	deadline := now.deadlineRead(stored, a.ttl)
	a.remember(held{version: stored.updateTime, expiresAtMs: stored.expiresAtMs, serverEnd: stored.serverEnd(), deadline: deadline})
	return &lock.AcquireResult{
		OK:          true,
		LockID:      a.lockID,
		Fence:       stored.printableFence(),
		ExpiresAtMs: stored.expiresAtMs,
		Deadline:    deadline,
	}
}

// nextFence is one more than the highest counter known for the key.
func (a *acquisition) nextFence(v view, old storedLock) (lock.Fence, error) {
	var highest int64
	if v.counter.Exists() {
		n, err := decodeCounter(v.counter.Data())
		if err != nil {
			return "", err
		}
		highest = n
	} else {
		if old.fenceErr != nil {
			return "", old.fenceErr
		}
		highest = old.fence
		if v.legacy != nil && v.legacy.Exists() {
			n, err := decodeCounter(v.legacy.Data())
			if err != nil {
				return "", err
			}
			highest = max(highest, n)
		}
	}
	fence, err := lock.NextFence(highest)
	if highest >= lock.FenceWarn && !a.warned {
		a.warned = true
		lock.WarnOfFence(a.b.log, a.b.hash, a.at.key, highest+1)
	}
	return fence, err
}

// commit writes lock and counter, on condition that both are as they were read.
func (a *acquisition) commit(ctx context.Context, seen view, g grant) (*lock.AcquireResult, error) {
	//lint:ignore SA1019 the only public way to one atomic commit with preconditions
	batch := a.b.client.Batch()
	if seen.lock.Exists() {
		batch.Update(a.at.lock, overwrite(seen.lock.Data(), g.lease.fields()), firestore.LastUpdateTime(seen.lock.UpdateTime))
	} else {
		batch.Create(a.at.lock, g.lease.fields())
	}
	counter := counterFields(g.lease.fence, a.at.key)
	batch.Update(a.at.counter, overwrite(seen.counter.Data(), counter), firestore.LastUpdateTime(seen.counter.UpdateTime))
	ctx, sent := countSends(ctx)
	asked := a.b.clock.Now()
	written, err := batch.Commit(ctx)
	if err != nil {
		a.mayApply = a.mayApply || mayHaveApplied(err) || sent.repeated()
		return nil, err
	}
	a.b.noteSends(sent)
	a.b.server.learn(written[0].UpdateTime, asked, a.b.clock.Now())
	return a.granted(g, written[0].UpdateTime), nil
}

// commitFirst is the first acquisition of a key, which has no counter yet. One transaction also
// reads the counter that SyncGuard 1.x may have kept.
func (a *acquisition) commitFirst(ctx context.Context) (*lock.AcquireResult, error) {
	var g *grant
	var answer *lock.AcquireResult
	var response firestore.CommitResponse
	ctx, sent := countSends(ctx)
	err := a.b.client.RunTransaction(ctx, func(ctx context.Context, tx *firestore.Transaction) error {
		if ctx.Err() != nil {
			return lock.AbortedBy(ctx)
		}
		asked := a.b.clock.Now()
		docs, err := tx.GetAll([]*firestore.DocumentRef{a.at.lock, a.at.counter, a.at.legacy})
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return lock.AbortedBy(ctx)
		}
		g, answer, err = a.decide(view{asked: asked, lock: docs[0], counter: docs[1], legacy: docs[2]})
		if err != nil {
			return err
		}
		if answer != nil {
			return errNothingToWrite
		}
		sent.restart()
		if err := tx.Set(a.at.lock, g.lease.fields()); err != nil {
			return err
		}
		return tx.Set(a.at.counter, counterFields(g.lease.fence, a.at.key))
	}, firestore.MaxAttempts(1), firestore.WithCommitResponseTo(&response))
	switch {
	case answer != nil:
		return answer, nil
	case err != nil:
		a.mayApply = a.mayApply || mayHaveApplied(err) || g != nil && sent.repeated()
		return nil, err
	}
	return a.granted(*g, response.CommitTime()), nil
}

// errNothingToWrite rolls a transaction back that has its answer.
var errNothingToWrite = errors.New("nothing to write")

// granted is the result of a lease that was committed.
func (a *acquisition) granted(g grant, commitTime time.Time) *lock.AcquireResult {
	deadline := g.now.deadlineOf(g.lease.expiresAtMs, a.ttl, commitTime)
	h := held{version: commitTime, expiresAtMs: g.lease.expiresAtMs, deadline: deadline}
	if g.lease.ttl > 0 {
		h.serverEnd = serverEndOf(commitTime, g.lease.ttl)
	}
	a.remember(h)
	return &lock.AcquireResult{
		OK:          true,
		LockID:      a.lockID,
		Fence:       g.lease.fence,
		ExpiresAtMs: g.lease.expiresAtMs,
		Deadline:    deadline,
	}
}

func (a *acquisition) remember(h held) {
	h.base, h.nested = a.at.base, a.at.nested
	a.b.remember(a.lockID, h)
	a.b.waiters.Held(a.at.key, h.version)
}

// accept hands a lease out, unless it is over already.
func (a *acquisition) accept(ctx context.Context, res lock.AcquireResult) (lock.AcquireResult, error) {
	if !res.OK || a.b.clock.Now().Before(res.Deadline) {
		return res, nil
	}
	released := a.b.releaseDetached(ctx, a.at, a.lockID)
	return lock.AcquireResult{}, &lock.Error{Code: lock.CodeNetworkTimeout, OutcomeUnknown: !released, Err: tasks.ErrLeaseOver}
}

// resolve finds out, when an error ends the attempt, whether an earlier failed commit was
// applied. If nobody can tell, the lease is released in the background, perhaps after the
// caller's next try; the outcome is unknown, so that this try has another id.
func (a *acquisition) resolve(ctx context.Context, err error, tried view) (lock.AcquireResult, error) {
	var none lock.AcquireResult
	if tried.lock == nil { // nothing was sent
		return none, classify(ctx, err)
	}
	readCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tasks.DetachedTimeout)
	defer cancel()
	asked := a.b.clock.Now()
	docs, readErr := a.b.client.GetAll(readCtx, []*firestore.DocumentRef{a.at.lock, a.at.counter})
	failure := *classify(ctx, err) // now, for the caller may have gone meanwhile
	if readErr == nil {
		seen := view{asked: asked, lock: docs[0], counter: docs[1]}
		_, answer, decideErr := a.decide(seen)
		if decideErr == nil && answer != nil && answer.OK {
			if ctx.Err() == nil {
				return a.accept(ctx, *answer)
			}
			aborted := lock.AbortedBy(ctx)
			aborted.OutcomeUnknown = !a.b.releaseDetached(ctx, a.at, a.lockID)
			return none, aborted
		}
		// A commit whose preconditions no longer hold can never apply. The
		// transaction of a first acquisition has none.
		if tried.counter.Exists() && !tried.sameAs(seen) {
			return none, &failure
		}
	}
	if a.mayApply {
		failure.OutcomeUnknown = true
		a.b.releaseInBackground(ctx, a.at, a.lockID)
	}
	return none, &failure
}
