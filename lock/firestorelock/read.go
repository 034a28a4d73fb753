package firestorelock

import (
	"context"
	"errors"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/iterator"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/tasks"
)

// IsLocked implements lock.Backend: one read.
func (b *Backend) IsLocked(ctx context.Context, key string) (bool, error) {
	fail := func(err error) (bool, error) { return false, classify(ctx, err).At("isLocked", key, "") }
	at, err := b.locate(key)
	if err != nil {
		return fail(err)
	}
	if ctx.Err() != nil {
		return fail(lock.AbortedBy(ctx))
	}
	live, err := tasks.Read(ctx, &b.tasks, func(callCtx context.Context) (bool, error) {
		s, now, exists, err := b.readLock(callCtx, at)
		if err != nil || !exists {
			return false, err
		}
		live := s.liveAt(now)
		if !live {
			b.considerCleanup(ctx, at, s, now)
		}
		return live, nil
	})
	if err != nil {
		return fail(err)
	}
	return live, nil
}

// Lookup implements lock.Backend.
func (b *Backend) Lookup(ctx context.Context, q lock.Query) (*lock.Info, error) {
	return lock.WithoutRaw(b.LookupRaw(ctx, q))
}

// LookupRaw implements lock.RawLookuper.
func (b *Backend) LookupRaw(ctx context.Context, q lock.Query) (*lock.RawInfo, error) {
	fail := func(err error) (*lock.RawInfo, error) {
		return nil, classify(ctx, err).At("lookup", q.Key, q.LockID)
	}
	asked, err := lock.ValidateQuery(q)
	if err != nil {
		return fail(err)
	}
	find := func(ctx context.Context) (*lock.RawInfo, error) { return b.lookupID(ctx, asked.LockID) }
	if asked.Key != "" {
		at, err := b.locate(asked.Key)
		if err != nil {
			return fail(err)
		}
		find = func(ctx context.Context) (*lock.RawInfo, error) { return b.lookupAt(ctx, at, "") }
	} else if h, ok := b.leases.Get(asked.LockID); ok && h.nested {
		at, err := b.locate(h.base)
		if err != nil {
			return fail(err)
		}
		find = func(ctx context.Context) (*lock.RawInfo, error) { return b.lookupAt(ctx, at, asked.LockID) }
	}
	if ctx.Err() != nil {
		return fail(lock.AbortedBy(ctx))
	}
	info, err := tasks.Read(ctx, &b.tasks, find)
	if err != nil {
		return fail(err)
	}
	return info, nil
}

// List describes the live locks in the order of their document ids. It reads the whole lock
// collection, and does not see nested locks. Print only RawInfo.Info.
func (b *Backend) List(ctx context.Context) ([]lock.RawInfo, error) {
	if ctx.Err() != nil {
		return nil, lock.AbortedBy(ctx).At("list", "", "")
	}
	list, err := tasks.Read(ctx, &b.tasks, func(ctx context.Context) ([]lock.RawInfo, error) {
		asked := b.clock.Now()
		docs := b.locks.Documents(ctx)
		defer docs.Stop()
		var list []lock.RawInfo
		for {
			doc, err := docs.Next()
			if errors.Is(err, iterator.Done) {
				return list, nil
			}
			if err != nil {
				return nil, err
			}
			s := lockOf(doc)
			b.noteMalformed(s.key, s)
			if s.liveAt(b.instantOf(asked, doc.ReadTime)) {
				list = append(list, *b.describe(s))
			}
		}
	})
	if err != nil {
		return nil, classify(ctx, err).At("list", "", "")
	}
	return list, nil
}

// lookupAt reads the lock of a key; lockID, if given, must match.
func (b *Backend) lookupAt(ctx context.Context, at address, lockID string) (*lock.RawInfo, error) {
	s, now, exists, err := b.readLock(ctx, at)
	if err != nil || !exists || !s.liveAt(now) || (lockID != "" && s.lockID != lockID) {
		return nil, err
	}
	if s.key == "" { // written by others
		s.key = at.key
	}
	return b.describe(s), nil
}

// lookupID searches a lock by its id and writes nothing. Two live documents with one id are an
// error: either may be somebody else's.
func (b *Backend) lookupID(ctx context.Context, lockID string) (*lock.RawInfo, error) {
	asked := b.clock.Now()
	docs, err := b.byID(lockID).Documents(ctx).GetAll()
	if err != nil {
		return nil, err
	}
	var info *lock.RawInfo
	var hits, live int
	for _, doc := range docs {
		s := lockOf(doc)
		b.noteMalformed(s.key, s)
		if s.lockID != lockID {
			continue
		}
		hits++
		if s.liveAt(b.instantOf(asked, doc.ReadTime)) {
			live++
			info = b.describe(s)
		}
	}
	b.noteDuplicates(lockID, hits, live)
	if live > 1 {
		return nil, lock.DuplicateID(live)
	}
	return info, nil
}

// readLock is one strong read of a lock document.
func (b *Backend) readLock(ctx context.Context, at address) (s storedLock, now instant, exists bool, err error) {
	asked := b.clock.Now()
	docs, err := b.client.GetAll(ctx, []*firestore.DocumentRef{at.lock})
	if err != nil {
		return storedLock{}, instant{}, false, err
	}
	now = b.instantOf(asked, docs[0].ReadTime)
	if !docs[0].Exists() {
		return storedLock{}, now, false, nil
	}
	s = lockOf(docs[0])
	b.noteMalformed(at.key, s)
	return s, now, true, nil
}

func (b *Backend) describe(s storedLock) *lock.RawInfo {
	return &lock.RawInfo{
		Info: lock.Info{
			KeyHash:      b.hash(s.key),
			LockIDHash:   b.hash(s.lockID),
			ExpiresAtMs:  s.expiresAtMs,
			AcquiredAtMs: s.acquiredAtMs,
			Fence:        s.printableFence(),
		},
		Key:    s.key,
		LockID: s.lockID,
	}
}
