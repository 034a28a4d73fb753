package firestorelock

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/lock"
)

const (
	cleanupPause    = time.Second // between two cleanups of one key
	maxCleanups     = 16          // in flight
	maxCleanupsKept = 4096        // keys whose last cleanup is remembered
)

// cleanups limits the background deletion of dead locks.
type cleanups struct {
	mu      sync.Mutex
	running int
	last    map[string]time.Time
}

// admit tells whether a cleanup of the key may start.
func (c *cleanups) admit(key string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, ok := c.last[key]; c.running >= maxCleanups || (ok && now.Sub(last) < cleanupPause) {
		return false
	}
	if c.last == nil || len(c.last) >= maxCleanupsKept {
		c.last = make(map[string]time.Time)
	}
	c.last[key] = now
	c.running++
	return true
}

func (c *cleanups) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
}

// considerCleanup deletes a lock that is long over, in the background. The transaction judges
// again, because somebody may have acquired it. Counters stay: a fence must outlive every lock.
func (b *Backend) considerCleanup(ctx context.Context, at address, s storedLock, now instant) {
	if !b.cfg.CleanupInIsLocked || !isLongOver(s, now) || b.tasks.IsClosed() {
		return
	}
	if !b.cleanups.admit(at.base, now.local) {
		return
	}
	b.tasks.Background(ctx, func(ctx context.Context) {
		defer b.cleanups.done()
		err := b.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
			asked := b.clock.Now()
			docs, err := tx.GetAll([]*firestore.DocumentRef{at.lock})
			if err != nil {
				return err
			}
			if !docs[0].Exists() || !isLongOver(lockOf(docs[0]), b.instantOf(asked, docs[0].ReadTime)) {
				return errNothingToWrite
			}
			return tx.Delete(at.lock)
		})
		if err != nil && err != errNothingToWrite {
			b.log.Debug("cleanup of an expired lock failed",
				slog.String("key_hash", b.hash(at.key)), slog.Any("err", classify(ctx, err)))
		}
	})
}

// isLongOver tells whether a lock ended more than cleanupAge ago.
func isLongOver(s storedLock, now instant) bool {
	if end := s.serverEnd(); !end.IsZero() && now.isPast(end.Add(cleanupAge-lock.Tolerance)) {
		return true
	}
	return s.hasExpiry && now.judgeMs()-s.expiresAtMs > cleanupAge.Milliseconds()
}
