package redislock

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/syncguard"
)

// runTime is how long workers contend; LOCK_HISTORY=1m makes it longer.
func runTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("LOCK_HISTORY")
	if text == "" {
		return 2 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

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

// B-04: workers of both kinds contend for two keys. No two hold one key at a time, and the
// fences rise in the order of the holders, without gaps.
func TestSyncGuard_ContendsWithoutOverlap(t *testing.T) {
	_, ours, start := besideSyncGuard(t)
	const perKind = 3
	keys := make([]struct {
		inside, sections atomic.Int32
		last             atomic.Int64
	}, 2)
	var had [2]atomic.Int64
	peers := make([]syncguard.Peer, perKind)
	for i := range peers {
		peers[i] = start()
	}
	var all sync.WaitGroup
	end := time.Now().Add(runTime(t))
	worker := func(kind, i int, acquire func(key string) (string, string, error), release func(key, id string) (bool, error)) {
		for at := i; !t.Failed() && (time.Now().Before(end) || had[kind].Load() < 10); at++ {
			k := &keys[at%len(keys)]
			key := "vehicle:" + strconv.Itoa(at%len(keys))
			id, fence, err := acquire(key)
			if err != nil {
				t.Errorf("acquire: %v", err)
				return
			}
			if id == "" {
				time.Sleep(time.Millisecond)
				continue
			}
			if n := k.inside.Add(1); n != 1 {
				t.Errorf("%d are inside", n)
			}
			n, err := strconv.ParseInt(fence, 10, 64)
			if before := k.last.Swap(n); err != nil || n != before+1 {
				t.Errorf("fence %s after %d", fence, before)
			}
			k.sections.Add(1)
			had[kind].Add(1)
			k.inside.Add(-1)
			if ok, err := release(key, id); !ok || err != nil {
				t.Errorf("release: %t, %v", ok, err)
				return
			}
		}
	}
	for i, theirs := range peers {
		all.Go(func() {
			worker(0, i, func(key string) (string, string, error) {
				res, err := ours.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
				return res.LockID, string(res.Fence), err
			}, func(key, id string) (bool, error) {
				res, err := ours.Release(bg, lock.Ref{LockID: id, Key: key})
				return res.OK, err
			})
		})
		all.Go(func() {
			worker(1, i, func(key string) (string, string, error) { return theirs.Acquire(bg, key, ttl) },
				func(_, id string) (bool, error) { return theirs.Release(bg, id) })
		})
	}
	all.Wait()
	t.Logf("sections: %d of ours, %d of SyncGuard's; 0 overlaps, last fences %d and %d",
		had[0].Load(), had[1].Load(), keys[0].last.Load(), keys[1].last.Load())
}

// Measures pairs a second and the slow end of waiting, eight workers on one key, beside
// SyncGuard's. The figures depend on the machine's load, so none of them fails the test.
func TestSyncGuard_IsComparedUnderContention(t *testing.T) {
	_, ours, start := besideSyncGuard(t)
	const workers = 8
	const forMs = 2000
	theirs := start().Do(map[string]any{"op": "contend", "key": "their", "workers": workers, "forMs": forMs}).Took
	var mu sync.Mutex
	var took []float64
	var all sync.WaitGroup
	end := time.Now().Add(forMs * time.Millisecond)
	for range workers {
		all.Go(func() {
			for time.Now().Before(end) {
				began := time.Now()
				h, err := lock.Acquire(bg, ours, "our", lock.WithTimeout(time.Minute), lock.WithMaxRetries(1<<30))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				took = append(took, float64(time.Since(began).Microseconds())/1000)
				mu.Unlock()
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	slices.Sort(theirs)
	if len(took) == 0 || len(theirs) == 0 {
		t.Fatal("no acquisitions")
	}
	p99 := func(list []float64) float64 { return list[len(list)*99/100] }
	t.Logf("pairs in %d ms: %d of ours, %d of SyncGuard's, %.1f times as many; p99 of waiting %.1f ms and %.1f ms",
		forMs, len(took), len(theirs), float64(len(took))/float64(len(theirs)), p99(took), p99(theirs))
}
