package redislock

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dronefleet/dronefleet/conformance/lock/syncguard"
	"github.com/dronefleet/dronefleet/lock"
)

// besideSyncGuard is a server, our backend, and SyncGuard on the same keys.
func besideSyncGuard(t *testing.T) (*redis.Client, *Backend, func() syncguard.Peer) {
	t.Helper()
	syncguard.Need(t)
	server := startRedis(t)
	client := dial(t, server.Addr())
	return client, newBackend(t, client, Config{SkipDurabilityCheck: true}), func() syncguard.Peer {
		return syncguard.Start(t).On(t, map[string]any{"redis": server.Addr(), "prefix": DefaultPrefix})
	}
}

// B-04: each side respects, finds, extends and ends the locks of the other, and takes over
// expired ones; their fences are one sequence.
func TestSyncGuard_ReadsAndIsRead(t *testing.T) {
	client, ours, start := besideSyncGuard(t)
	theirs := start()
	for n, key := range []string{"payment:42", "cafe\u0301 \"q\"\\/\u2028<", "a/b"} {
		res := mustAcquire(t, ours, key)
		if id, _, err := theirs.Acquire(bg, key, ttl); id != "" || err != nil {
			t.Fatalf("SyncGuard took a lock of ours: %q, %v", id, err)
		}
		if a := theirs.IsLocked(key); !a.OK {
			t.Errorf("SyncGuard does not see a lock of ours: %+v", a)
		}
		if a := theirs.Lookup(lock.Query{LockID: res.LockID}); !a.OK || a.Fence != string(res.Fence) || int64(a.ExpiresAtMs) != res.ExpiresAtMs {
			t.Errorf("SyncGuard looks a lock of ours up as %+v", a)
		}
		if a := theirs.Extend(res.LockID, ttl); !a.OK {
			t.Errorf("SyncGuard does not extend a lock of ours: %+v", a)
		}
		if info, err := lock.GetByIDRaw(bg, ours, res.LockID); err != nil || info == nil || info.Fence != res.Fence {
			t.Errorf("a lock of ours that SyncGuard extended: %+v, %v", info, err)
		}
		if ext, err := ours.Extend(bg, lock.Ref{LockID: res.LockID, Key: key}, ttl); err != nil || !ext.OK {
			t.Errorf("extend after SyncGuard: %+v, %v", ext, err)
		}
		if ok, err := theirs.Release(bg, res.LockID); !ok || err != nil {
			t.Fatalf("SyncGuard does not find a lock of ours by its id: %t, %v", ok, err)
		}
		id, fence, err := theirs.Acquire(bg, key, ttl)
		if id == "" || err != nil || fence != fmt.Sprintf("%015d", 2) {
			t.Fatalf("%q, %q, %v", id, fence, err)
		}
		if res, err := ours.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl}); res.OK || res.Reason != lock.ReasonLocked || err != nil {
			t.Fatalf("we took a lock of SyncGuard's: %+v, %v", res, err)
		}
		if info, err := ours.Lookup(bg, lock.Query{LockID: id}); info == nil || string(info.Fence) != fence || err != nil {
			t.Errorf("a lock of SyncGuard's is looked up as %+v, %v", info, err)
		}
		if ext, err := ours.Extend(bg, lock.Ref{LockID: id}, ttl); !ext.OK || err != nil {
			t.Errorf("a lock of SyncGuard's is not extended: %+v, %v", ext, err)
		}
		if list, err := ours.List(bg); err != nil || len(list) != 1 {
			t.Errorf("round %d: list %+v, %v", n, list, err)
		}
		mustRelease(t, ours, lock.Ref{LockID: id})
		if ok, err := theirs.Release(bg, id); ok || err != nil {
			t.Errorf("SyncGuard releases what we did: %t, %v", ok, err)
		}
		// Ours lives a second longer for SyncGuard too; SyncGuard's own ends with its TTL.
		last := mustAcquire(t, ours, key)
		if ext, err := ours.Extend(bg, lock.Ref{LockID: last.LockID, Key: key}, time.Millisecond); err != nil || !ext.OK {
			t.Fatalf("%+v, %v", ext, err)
		}
		waited := time.Now()
		for id = ""; id == ""; {
			if id, fence, err = theirs.Acquire(bg, key, ttl); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(waited) < lock.Tolerance/2 || fence != fmt.Sprintf("%015d", 4) {
			t.Errorf("SyncGuard took over after %s, with fence %s", time.Since(waited), fence)
		}
		mustRelease(t, ours, lock.Ref{LockID: id, Key: key})
		if n := client.Exists(bg, "syncguard:fence:syncguard:"+key).Val(); key == "a/b" && n != 1 {
			t.Errorf("%d counters", n)
		}
	}
}

// B-04: workers of both kinds contend. No two hold one key at a time, and the fences rise in
// the order of the holders, without gaps.
func TestSyncGuard_ContendsWithoutOverlap(t *testing.T) {
	_, ours, start := besideSyncGuard(t)
	var c syncguard.Contention
	for range 3 {
		c.Ours, c.Theirs = append(c.Ours, ours), append(c.Theirs, start())
	}
	c.Run(t)
}

func TestSyncGuard_IsComparedUnderContention(t *testing.T) {
	_, ours, start := besideSyncGuard(t)
	syncguard.Compare(t, ours, start(), nil)
}
