package firestorelock

import (
	"fmt"
	"math"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/lock"
)

// Fields of the stored documents, as SyncGuard names them.
const (
	fieldLockID     = "lockId"
	fieldExpiresAt  = "expiresAtMs"
	fieldAcquiredAt = "acquiredAtMs"
	fieldKey        = "key"
	fieldFence      = "fence"
	fieldKeyDebug   = "keyDebug"
)

// fieldLease is ours alone: {ttlMs, expiresAtMs}, the length of the lease and the end written
// with it. SyncGuard drops it when it takes the lock, and keeps it when it extends: then the
// ends differ, and the length no longer counts.
const (
	fieldLease = "lease"
	fieldTTL   = "ttlMs"
)

// lease is the content of a lock document.
type lease struct {
	lockID       string
	key          string
	expiresAtMs  int64
	acquiredAtMs int64
	fence        lock.Fence
	ttl          time.Duration // zero without the server-time guard
}

// fields is the whole document of a lease.
func (l lease) fields() map[string]any {
	fields := map[string]any{
		fieldLockID:     l.lockID,
		fieldExpiresAt:  l.expiresAtMs,
		fieldAcquiredAt: l.acquiredAtMs,
		fieldKey:        l.key,
		fieldFence:      string(l.fence),
	}
	if l.ttl > 0 {
		fields[fieldLease] = leaseField(l.expiresAtMs, l.ttl)
	}
	return fields
}

func leaseField(expiresAtMs int64, ttl time.Duration) map[string]any {
	return map[string]any{fieldTTL: ttl.Milliseconds(), fieldExpiresAt: expiresAtMs}
}

// extension is what an extension sets: the end and, with the server-time guard,
// the length of the lease.
func (b *Backend) extension(expiresAtMs int64, ttl time.Duration) []firestore.Update {
	updates := []firestore.Update{{Path: fieldExpiresAt, Value: expiresAtMs}}
	if b.guarded {
		updates = append(updates, firestore.Update{Path: fieldLease, Value: leaseField(expiresAtMs, ttl)})
	}
	return updates
}

// counterFields is the whole document of a fence counter.
func counterFields(fence lock.Fence, key string) map[string]any {
	return map[string]any{fieldFence: string(fence), fieldKeyDebug: key}
}

// storedLock is a lock document as read. What other writers left unreadable is absent, and
// malformed says what is wrong.
type storedLock struct {
	lockID       string
	key          string
	expiresAtMs  int64
	hasExpiry    bool
	acquiredAtMs int64
	ttl          time.Duration // 0 if unknown
	updateTime   time.Time     // by the server; zero if unknown
	fence        int64         // 0 if absent or unreadable
	fenceErr     error         // a fence field that cannot be read
	malformed    string
}

// lockOf reads a lock document.
func lockOf(doc *firestore.DocumentSnapshot) storedLock {
	s := decodeLock(doc.Data())
	s.updateTime = doc.UpdateTime
	return s
}

// decodeLock reads the fields of a lock document. Unknown ones are ignored.
func decodeLock(data map[string]any) storedLock {
	var s storedLock
	s.lockID, _ = data[fieldLockID].(string)
	s.key, _ = data[fieldKey].(string)
	if key, err := lock.NormalizeKey(s.key); err == nil { // SyncGuard stores it as typed
		s.key = key
	}
	s.expiresAtMs, s.hasExpiry = integer(data[fieldExpiresAt])
	s.acquiredAtMs, _ = integer(data[fieldAcquiredAt])
	s.ttl = s.decodeTTL(data[fieldLease])
	if raw, ok := data[fieldFence]; ok {
		s.fence, s.fenceErr = decodeFence(raw)
	}
	switch {
	case !s.hasExpiry:
		s.malformed = "expiresAtMs is not an integer: the lock counts as over"
	case s.lockID == "":
		s.malformed = "lockId is not a string: the lock cannot be released"
	case s.fenceErr != nil:
		s.malformed = "fence is unreadable"
	}
	return s
}

// decodeTTL is the length of the lease, 0 if the end was not written with it.
func (s storedLock) decodeTTL(raw any) time.Duration {
	written, _ := raw.(map[string]any)
	end, hasEnd := integer(written[fieldExpiresAt])
	ms, hasTTL := integer(written[fieldTTL])
	if !hasEnd || !hasTTL || !s.hasExpiry || end != s.expiresAtMs || ms <= 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// serverEnd is when the lease is over by the server's clock, whatever end its
// holder wrote; zero if that is unknown.
func (s storedLock) serverEnd() time.Time {
	if s.ttl == 0 || s.updateTime.IsZero() {
		return time.Time{}
	}
	return serverEndOf(s.updateTime, s.ttl)
}

// liveAt is the one liveness rule, for a document.
func (s storedLock) liveAt(now instant) bool {
	return s.hasExpiry && lock.IsLive(s.expiresAtMs, now.judgeMs()) && !now.isPast(s.serverEnd())
}

// printableFence is the fence in 15 digits, empty if it has none.
func (s storedLock) printableFence() lock.Fence {
	fence, err := lock.FormatFence(s.fence)
	if err != nil {
		return ""
	}
	return fence
}

// decodeCounter reads a fence counter. An existing counter that cannot be read
// is an error: starting again at 1 would break every resource that compares.
func decodeCounter(data map[string]any) (int64, error) {
	raw, ok := data[fieldFence]
	if !ok {
		return 0, lock.Internal("fence counter has no field fence; repair the document by hand, never below the last fence")
	}
	return decodeFence(raw)
}

// decodeFence reads a fence written as digits or as an integer.
func decodeFence(raw any) (int64, error) {
	if s, ok := raw.(string); ok {
		return lock.ParseFence(s)
	}
	n, ok := integer(raw)
	if !ok || n < 0 {
		return 0, lock.Internal(fmt.Sprintf("stored fence is a %T and not a whole number", raw))
	}
	return n, nil
}

// integer reads an integer or an integral double. SyncGuard stores an end beyond int64 for a
// huge ttl: that is the last possible moment.
func integer(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		switch {
		case n != math.Trunc(n):
			return 0, false
		case n >= 1<<63:
			return math.MaxInt64, true
		case n < -(1 << 63):
			return math.MinInt64, true
		}
		return int64(n), true
	default:
		return 0, false
	}
}

// overwrite turns a whole document into updates of an existing one. Unlike a plain overwrite,
// an update can have a version as its precondition.
func overwrite(old, wanted map[string]any) []firestore.Update {
	updates := make([]firestore.Update, 0, len(wanted))
	for name, value := range wanted {
		updates = append(updates, firestore.Update{FieldPath: firestore.FieldPath{name}, Value: value})
	}
	for name := range old {
		if _, keep := wanted[name]; !keep {
			updates = append(updates, firestore.Update{FieldPath: firestore.FieldPath{name}, Value: firestore.Delete})
		}
	}
	return updates
}
