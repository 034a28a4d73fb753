package redislock

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dronefleet/dronefleet/lock"
)

// requests counts the round trips of a client.
type requests struct{ n atomic.Int64 }

func (r *requests) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *requests) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.n.Add(1)
		return next(ctx, cmd)
	}
}

func (r *requests) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.n.Add(1)
		return next(ctx, cmds)
	}
}

// Each verb is one round trip, once the server knows its script. By a lock id alone the key
// has to be found first.
func TestBackend_NeedsOneRoundTripForAVerb(t *testing.T) {
	client := dial(t, startRedis(t).Addr())
	counted := &requests{}
	client.AddHook(counted)
	b := newBackend(t, client, Config{SkipDurabilityCheck: true})
	var held lock.AcquireResult
	verbs := []struct {
		name string
		want int64
		call func() error
	}{
		{"acquire", 1, func() (err error) {
			held, err = b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
			return err
		}},
		{"acquire, held", 1, func() error {
			_, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
			return err
		}},
		{"acquire, held, as a probe", 1, func() error {
			_, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl, Probe: true})
			return err
		}},
		{"isLocked", 1, func() error { _, err := b.IsLocked(bg, key); return err }},
		{"lookup by key", 1, func() error { _, err := b.Lookup(bg, lock.Query{Key: key}); return err }},
		{"lookup by id", 1, func() error { _, err := b.Lookup(bg, lock.Query{LockID: held.LockID}); return err }},
		{"highest fence", 1, func() error { _, err := b.HighestFence(bg, key); return err }},
		{"extend", 1, func() error { _, err := b.Extend(bg, lock.Ref{LockID: held.LockID, Key: key}, ttl); return err }},
		{"extend by id", 2, func() error { _, err := b.Extend(bg, lock.Ref{LockID: held.LockID}, ttl); return err }},
		{"release by id", 2, func() error { _, err := b.Release(bg, lock.Ref{LockID: held.LockID}); return err }},
	}
	for round := range 2 { // the first one tells the server the scripts
		for _, verb := range verbs {
			before := counted.n.Load()
			if err := verb.call(); err != nil {
				t.Fatalf("%s: %v", verb.name, err)
			}
			if n := counted.n.Load() - before; round == 1 && n != verb.want {
				t.Errorf("%s: %d round trips, want %d", verb.name, n, verb.want)
			}
		}
	}
}

// A server without appendonly that is killed hands out its fences again; with appendonly
// and appendfsync always it goes on.
func TestRestart_RepeatsFencesOnlyWithoutAppendonly(t *testing.T) {
	for setting, want := range map[string]lock.Fence{"no": "000000000000001", "yes": "000000000000004"} {
		server := startRedis(t, "--appendonly", setting, "--appendfsync", "always")
		b := newBackend(t, dial(t, server.Addr()), Config{SkipDurabilityCheck: true})
		for range 3 {
			mustRelease(t, b, lock.Ref{LockID: mustAcquire(t, b, key).LockID, Key: key})
		}
		server.Kill()
		server.Restart()
		h, err := lock.Acquire(bg, b, key, lock.WithTimeout(time.Minute), lock.WithRetryTransient())
		if err != nil {
			t.Fatal(err)
		}
		if h.Fence() != want {
			t.Errorf("appendonly %s: fence %s after 3 of them, want %s", setting, h.Fence(), want)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}
