package firestorelock

import (
	"context"
	"log/slog"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/lock"
)

// target is the lease a release or an extension is about.
type target struct {
	lockID string
	at     *address // nil: the lease is searched by id
}

// targetOf checks a reference. A query by id sees direct children of the lock
// collection only; nested locks are found in the table of own leases.
func (b *Backend) targetOf(ref lock.Ref) (target, error) {
	ref, err := lock.ValidateRef(ref)
	if err != nil {
		return target{}, err
	}
	key := ref.Key
	if key == "" {
		h, ok := b.leases.Get(ref.LockID)
		if !ok || !h.nested {
			return target{lockID: ref.LockID}, nil
		}
		key = h.base
	}
	at, err := b.locate(key)
	if err != nil {
		return target{}, err
	}
	return target{lockID: ref.LockID, at: &at}, nil
}

// known returns what is remembered of the target, if that is enough to act without reading: the
// lease is live by the local clock, and by the server's as far as it is known.
func (b *Backend) known(t target) (held, bool) {
	if t.at == nil {
		return held{}, false
	}
	h, ok := b.leases.Get(t.lockID)
	now := b.instantWithoutRead()
	return h, ok && h.base == t.at.base && lock.IsLive(h.expiresAtMs, now.local.UnixMilli()) && !now.isPast(h.serverEnd)
}

// forgetGone forgets a lease that is not where it should be. One that was looked for at another
// key may still live.
func (b *Backend) forgetGone(t target) {
	if h, ok := b.leases.Get(t.lockID); ok && (t.at == nil || t.at.base == h.base) {
		b.leases.Forget(t.lockID)
	}
}

// found is what a transaction saw of a target.
type found struct {
	live    *firestore.DocumentRef   // the one live document; nil: none
	stored  storedLock               // its content
	expired []*firestore.DocumentRef // dead copies to be swept, if there were duplicates
	reason  lock.Reason              // why live is nil
	now     instant
}

// find reads the target inside a transaction.
func (b *Backend) find(ctx context.Context, tx *firestore.Transaction, t target) (found, error) {
	if ctx.Err() != nil {
		return found{}, lock.AbortedBy(ctx)
	}
	asked := b.clock.Now()
	var docs []*firestore.DocumentSnapshot
	var err error
	if t.at != nil {
		docs, err = tx.GetAll([]*firestore.DocumentRef{t.at.lock})
	} else {
		docs, err = tx.Documents(b.byID(t.lockID)).GetAll()
	}
	if err != nil {
		return found{}, err
	}
	if ctx.Err() != nil {
		return found{}, lock.AbortedBy(ctx)
	}
	now := b.instantWithoutRead() // a query without hits tells no time
	if len(docs) > 0 {
		now = b.instantOf(asked, docs[0].ReadTime)
	}
	f := b.judge(docs, t.lockID, now)
	if t.at != nil { // others may write a lock without its key
		f.stored.key = t.at.key
	}
	return f, nil
}

func (b *Backend) byID(lockID string) firestore.Query {
	return b.locks.Where(fieldLockID, "==", lockID)
}

// judge picks the live document of a lock id. If two are live, either may be somebody else's,
// and none is touched.
func (b *Backend) judge(docs []*firestore.DocumentSnapshot, lockID string, now instant) found {
	f := found{reason: lock.ReasonNotFound, now: now}
	var hits, live int
	for _, doc := range docs {
		if !doc.Exists() {
			continue
		}
		s := lockOf(doc)
		b.noteMalformed(s.key, s)
		if s.lockID != lockID {
			continue
		}
		hits++
		if !s.liveAt(now) {
			f.expired = append(f.expired, doc.Ref)
			continue
		}
		live++
		f.live, f.stored = doc.Ref, s
	}
	b.noteDuplicates(lockID, hits, live)
	if live != 1 {
		f.live = nil
	}
	if live == 0 && hits > 0 {
		f.reason = lock.ReasonExpired
	}
	if hits < 2 || live > 1 {
		f.expired = nil
	}
	return f
}

// noteDuplicates reports copies of one lock id.
func (b *Backend) noteDuplicates(lockID string, hits, live int) {
	if hits < 2 {
		return
	}
	b.log.Warn("several lock documents with one lock id",
		slog.String("lock_id_hash", b.hash(lockID)), slog.Int("documents", hits), slog.Int("live", live))
}

// sweep deletes the dead copies of a duplicated lock id.
func (f found) sweep(tx *firestore.Transaction) error {
	for _, ref := range f.expired {
		if err := tx.Delete(ref); err != nil {
			return err
		}
	}
	return nil
}
