package redislock

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/tasks"
)

const fenceDigits = 15

// storedLock is the value of a lock.
type storedLock struct {
	LockID       string `json:"lockId"`
	ExpiresAtMs  int64  `json:"expiresAtMs"`
	AcquiredAtMs int64  `json:"acquiredAtMs"`
	Key          string `json:"key"`
	Fence        string `json:"fence"`

	lockKey string
}

// parseLock reads a value that should be a lock.
func parseLock(text string) (storedLock, error) {
	var s storedLock
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, lock.Internal("stored lock is not valid JSON; find the program that writes other keys under the prefix")
	}
	return s, nil
}

// fence is the stored fence in 15 digits, or unchanged if it is invalid.
func (s storedLock) fence() lock.Fence {
	if n, err := lock.ParseFence(s.Fence); err == nil {
		if f, err := lock.FormatFence(n); err == nil {
			return f
		}
	}
	return lock.Fence(s.Fence)
}

// quoted is a key as JSON.
func quoted(key string) string {
	for i := range len(key) {
		if c := key[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			text, _ := json.Marshal(key) // a valid string always can be
			return string(text)
		}
	}
	return `"` + key + `"`
}

func (b *Backend) describe(s storedLock) *lock.RawInfo {
	return &lock.RawInfo{
		Info: lock.Info{
			KeyHash:      b.hash(s.Key),
			LockIDHash:   b.hash(s.LockID),
			ExpiresAtMs:  s.ExpiresAtMs,
			AcquiredAtMs: s.AcquiredAtMs,
			Fence:        s.fence(),
		},
		Key:    s.Key,
		LockID: s.LockID,
	}
}

// lookupKey returns the live lock of a key; nil if there is none.
func (b *Backend) lookupKey(ctx context.Context, lockKey string) (*storedLock, error) {
	reply, err := b.ask(ctx, readScript, lockKey)
	if err != nil {
		return nil, err
	}
	nowMs, _ := reply[0].(int64)
	text, ok := "", false
	if len(reply) > 1 {
		text, ok = reply[1].(string)
	}
	if !ok {
		return nil, nil
	}
	s, err := parseLock(text)
	if err != nil || !lock.IsLive(s.ExpiresAtMs, nowMs) {
		return nil, err
	}
	s.lockKey = lockKey
	return &s, nil
}

// ask reads by a script. What only reads may be asked again.
func (b *Backend) ask(ctx context.Context, s *script, key string) ([]any, error) {
	reply, err := b.persist(ctx, func(ctx context.Context) (any, error) {
		return b.run(ctx, s, false, []string{key})
	})
	if err != nil {
		return nil, err
	}
	list, ok := reply.([]any)
	if !ok || len(list) == 0 {
		return nil, lock.Internal("script did not return a list")
	}
	return list, nil
}

// seen is what was found of a lock id.
type seen struct {
	live []storedLock
	none lock.Reason // why there is not one
}

// lookupID returns the live locks of an id.
func (b *Backend) lookupID(ctx context.Context, lockID string) (seen, error) {
	found := seen{none: lock.ReasonNotFound}
	reply, err := b.ask(ctx, findScript, b.indexKey(lockID))
	if err != nil {
		return found, err
	}
	nowMs, _ := reply[0].(int64)
	for pair := range slices.Chunk(reply[1:], 2) {
		lockKey, _ := pair[0].(string)
		text, ok := "", false
		if len(pair) == 2 {
			text, ok = pair[1].(string)
		}
		if !ok {
			found.none = lock.ReasonExpired // nobody released it
			continue
		}
		s, err := parseLock(text)
		if err != nil {
			return found, err
		}
		s.lockKey = lockKey
		switch {
		case s.LockID != lockID: // somebody else's by now
		case lock.IsLive(s.ExpiresAtMs, nowMs):
			found.live = append(found.live, s)
		default:
			found.none = lock.ReasonExpired
		}
	}
	if len(found.live) > 1 {
		found.none = lock.ReasonNotFound
		b.log.Warn("several locks with one lock id", slog.String("lock_id_hash", b.hash(lockID)), slog.Int("live", len(found.live)))
	}
	return found, nil
}

// admit checks a key, then the context, and returns where the lock is.
func (b *Backend) admit(ctx context.Context, key string) (lockKey string, err error) {
	normal, err := lock.NormalizeKey(key)
	if err != nil {
		return "", err
	}
	if lockKey, err = b.lockKey(normal); err == nil && ctx.Err() != nil {
		err = lock.AbortedBy(ctx)
	}
	return lockKey, err
}

// IsLocked implements lock.Backend.
func (b *Backend) IsLocked(ctx context.Context, key string) (bool, error) {
	fail := func(err error) (bool, error) { return false, classify(ctx, err).At("isLocked", key, "") }
	lockKey, err := b.admit(ctx, key)
	if err != nil {
		return fail(err)
	}
	held, err := tasks.Read(ctx, &b.tasks, func(ctx context.Context) (*storedLock, error) { return b.lookupKey(ctx, lockKey) })
	if err != nil {
		return fail(err)
	}
	return held != nil, nil
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
	checked, err := lock.ValidateQuery(q)
	if err != nil {
		return fail(err)
	}
	var lockKey string
	if checked.Key != "" {
		if lockKey, err = b.lockKey(checked.Key); err != nil {
			return fail(err)
		}
	}
	if ctx.Err() != nil {
		return fail(lock.AbortedBy(ctx))
	}
	held, err := tasks.Read(ctx, &b.tasks, func(ctx context.Context) (*storedLock, error) {
		if lockKey != "" {
			return b.lookupKey(ctx, lockKey)
		}
		found, err := b.lookupID(ctx, checked.LockID)
		switch {
		case err != nil || len(found.live) == 0:
			return nil, err
		case len(found.live) > 1:
			return nil, lock.DuplicateID(len(found.live))
		}
		return &found.live[0], nil
	})
	if err != nil {
		return fail(err)
	}
	if held == nil {
		return nil, nil
	}
	return b.describe(*held), nil
}

// listBatch is how many keys a scan looks at in one request.
const listBatch = 500

// List describes the live locks, sorted by key. It scans the keys of the prefix in several
// requests and may miss locks that come or go meanwhile.
func (b *Backend) List(ctx context.Context) ([]lock.RawInfo, error) {
	fail := func(err error) ([]lock.RawInfo, error) { return nil, classify(ctx, err).At("list", "", "") }
	if ctx.Err() != nil {
		return fail(lock.AbortedBy(ctx))
	}
	list, err := tasks.Read(ctx, &b.tasks, func(ctx context.Context) ([]lock.RawInfo, error) {
		scan := func(ctx context.Context, c redis.Cmdable) ([]lock.RawInfo, error) {
			found := map[string]lock.RawInfo{}
			for cursor := uint64(0); ; {
				keys, next, err := c.Scan(ctx, cursor, globEscaper.Replace(b.head)+"*", listBatch).Result()
				if err != nil {
					return nil, err
				}
				for _, lockKey := range keys {
					normal, err := lock.NormalizeKey(strings.TrimPrefix(lockKey, b.head))
					if err != nil {
						continue
					}
					if at, err := b.lockKey(normal); err != nil || at != lockKey {
						continue // an index or a counter
					}
					held, err := b.lookupKey(ctx, lockKey)
					if err != nil {
						return nil, err
					}
					if held != nil {
						found[lockKey] = *b.describe(*held)
					}
				}
				if cursor = next; cursor == 0 {
					break
				}
			}
			list := make([]lock.RawInfo, 0, len(found))
			for _, info := range found {
				list = append(list, info)
			}
			return list, nil
		}
		cluster, ok := b.client.(*redis.ClusterClient)
		if !ok {
			return scan(ctx, b.client)
		}
		master, err := cluster.MasterForKey(ctx, b.head) // all keys are in one slot
		if err != nil {
			return nil, err
		}
		return scan(ctx, master)
	})
	if err != nil {
		return fail(err)
	}
	slices.SortFunc(list, func(x, y lock.RawInfo) int { return strings.Compare(x.Key, y.Key) })
	return list, nil
}

// globEscaper makes a prefix match itself.
var globEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// CheckClock implements lock.ClockChecker. No lock depends on the local clock; the report is
// for comparing times of locks with local times.
func (b *Backend) CheckClock(ctx context.Context) (lock.ClockReport, error) {
	fail := func(err error) (lock.ClockReport, error) {
		return lock.ClockReport{}, classify(ctx, err).At("checkClock", "", "")
	}
	if ctx.Err() != nil {
		return fail(lock.AbortedBy(ctx))
	}
	report, err := tasks.Read(ctx, &b.tasks, func(ctx context.Context) (lock.ClockReport, error) {
		return lock.MeasureClock(lock.SystemClock(), b.client.Time(ctx).Result)
	})
	if err != nil {
		return fail(err)
	}
	return report, nil
}
