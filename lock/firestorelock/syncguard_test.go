package firestorelock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/lock"
)

// syncGuard is what SyncGuard 2.5.2 does to the store for plain keys: the same
// reads, decisions and writes, and nothing of this library. SyncGuard itself
// needs Node and its package, which the gate does not have.
type syncGuard struct{ client *firestore.Client }

func (s syncGuard) lockDoc(key string) *firestore.DocumentRef { return s.client.Doc("locks/" + key) }

// live says whether a lock document still excludes others: its end plus a
// second for clocks that differ has not come.
func live(doc *firestore.DocumentSnapshot, nowMs int64) bool {
	end, _ := doc.Data()["expiresAtMs"].(int64)
	return end > nowMs-1000
}

// acquire returns the new lock's id and fence; "" when somebody else holds it.
func (s syncGuard) acquire(ctx context.Context, key string, ttl time.Duration) (id, fence string, err error) {
	newID := lock.NewLockID()
	counter := s.client.Doc("fence_counters/fence:" + key)
	err = s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		id, fence = "", ""
		held, err := tx.Get(s.lockDoc(key))
		if err != nil && status.Code(err) != codes.NotFound {
			return err
		}
		count, err := tx.Get(counter)
		if err != nil && status.Code(err) != codes.NotFound {
			return err
		}
		nowMs := time.Now().UnixMilli()
		if held.Exists() && live(held, nowMs) {
			return nil
		}
		var last uint64
		if count.Exists() {
			if last, err = strconv.ParseUint(count.Data()["fence"].(string), 10, 64); err != nil {
				return err
			}
		}
		id, fence = newID, fmt.Sprintf("%015d", last+1)
		if err := tx.Set(counter, map[string]any{"fence": fence, "keyDebug": key}); err != nil {
			return err
		}
		return tx.Set(s.lockDoc(key), map[string]any{
			"lockId": id, "expiresAtMs": nowMs + ttl.Milliseconds(), "acquiredAtMs": nowMs, "key": key, "fence": fence,
		})
	})
	return id, fence, err
}

// release finds the lock by its id alone, as SyncGuard does.
func (s syncGuard) release(ctx context.Context, id string) (released bool, err error) {
	err = s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		released = false
		found, err := tx.Documents(s.client.Collection("locks").Where("lockId", "==", id).Limit(1)).GetAll()
		if err != nil || len(found) == 0 || !live(found[0], time.Now().UnixMilli()) {
			return err
		}
		released = true
		return tx.Delete(found[0].Ref)
	})
	return released, err
}

// B-04: each side respects, finds and ends the locks of the other, and takes
// over what has expired; their fences are one sequence.
func TestSyncGuard_ReadsAndIsRead(t *testing.T) {
	client := newClient(t, serverAddr)
	ours, theirs := newBackend(t, client, Config{}), syncGuard{client}
	fences := []string{}

	res := mustAcquire(t, ours, key)
	fences = append(fences, string(res.Fence))
	if id, _, err := theirs.acquire(bg, key, ttl); id != "" || err != nil {
		t.Fatalf("SyncGuard took a lock of ours: %q, %v", id, err)
	}
	if ok, err := theirs.release(bg, res.LockID); !ok || err != nil {
		t.Fatalf("SyncGuard does not find a lock of ours by its id: %t, %v", ok, err)
	}

	id, fence, err := theirs.acquire(bg, key, ttl)
	if id == "" || err != nil {
		t.Fatalf("%q, %v", id, err)
	}
	fences = append(fences, fence)
	if res, err := ours.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl}); res.OK || res.Reason != lock.ReasonLocked || err != nil {
		t.Fatalf("we took a lock of SyncGuard's: %+v, %v", res, err)
	}
	if held, err := ours.IsLocked(bg, key); !held || err != nil {
		t.Errorf("a lock of SyncGuard's is not seen: %t, %v", held, err)
	}
	if info, err := ours.Lookup(bg, lock.Query{LockID: id}); info == nil || string(info.Fence) != fence || err != nil {
		t.Errorf("a lock of SyncGuard's is looked up as %+v, %v; want fence %s", info, err, fence)
	}
	if res, err := ours.Extend(bg, lock.Ref{LockID: id}, ttl); !res.OK || err != nil {
		t.Errorf("a lock of SyncGuard's is not extended: %+v, %v", res, err)
	}
	mustRelease(t, ours, lock.Ref{LockID: id})

	// What has expired, the tolerance included, either takes over.
	if _, err := theirs.lockDoc(key).Set(bg, map[string]any{
		"lockId": lock.NewLockID(), "expiresAtMs": time.Now().UnixMilli() - 1500, "acquiredAtMs": 0, "key": key, "fence": fence,
	}); err != nil {
		t.Fatal(err)
	}
	res = mustAcquire(t, ours, key)
	fences = append(fences, string(res.Fence))
	if _, err := theirs.lockDoc(key).Update(bg, []firestore.Update{{Path: "expiresAtMs", Value: time.Now().UnixMilli() - 1500}}); err != nil {
		t.Fatal(err)
	}
	id, fence, err = theirs.acquire(bg, key, ttl)
	if id == "" || err != nil {
		t.Fatalf("SyncGuard does not take over an expired lock of ours: %v", err)
	}
	fences = append(fences, fence)
	for i, got := range fences {
		if want := fmt.Sprintf("%015d", i+1); got != want {
			t.Errorf("fences %v, want one sequence from 1", fences)
			break
		}
	}
}

// B-04: workers of both kinds contend for one key; never are two inside, and the
// fences rise in the order in which they were. Ends once each kind has had
// enough, or some by the end of runTime: on other servers all is slower.
func TestSyncGuard_ContendsWithoutOverlap(t *testing.T) {
	const perKind, enough = 3, 45
	project := freshProject()
	var inside atomic.Int32
	var last atomic.Int64
	var had [2]atomic.Int64 // sections of ours, of SyncGuard's
	slow := time.Now().Add(runTime(t))
	over := func() bool {
		a, b := had[0].Load(), had[1].Load()
		return min(a, b) >= enough || min(a, b) > 0 && time.Now().After(slow)
	}
	section := func(who string, fence string) {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%s is inside together with %d others", who, n-1)
		}
		now, err := strconv.ParseInt(fence, 10, 64)
		if err != nil {
			t.Error(err)
		}
		if before := last.Swap(now); now <= before {
			t.Errorf("%s has fence %d after %d", who, now, before)
		}
		time.Sleep(time.Millisecond) // so that others find it held
		inside.Add(-1)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lost := func(err error) bool { // against another transaction, every time it was tried
		return status.Code(err) == codes.Aborted || errors.Is(err, lock.ErrServiceUnavailable)
	}
	worker := func(who string, had *atomic.Int64, acquire func() (id, fence string, err error), release func(id string) (bool, error)) {
		for !over() {
			id, fence, err := acquire()
			if err != nil && !lost(err) {
				t.Errorf("%s: acquire: %v", who, err)
				return
			}
			if err != nil || id == "" {
				time.Sleep(time.Millisecond)
				continue
			}
			section(who, fence)
			ok, err := release(id)
			for lost(err) && ctx.Err() == nil {
				ok, err = release(id)
			}
			if !ok || err != nil {
				t.Errorf("%s: release: %t, %v", who, ok, err)
				return
			}
			had.Add(1)
		}
	}
	var workers sync.WaitGroup
	for i := range perKind {
		client := clientOf(t, serverAddr, project)
		ours, theirs := newBackend(t, client, Config{}), syncGuard{clientOf(t, serverAddr, project)}
		workers.Go(func() {
			worker(fmt.Sprintf("our worker %d", i), &had[0], func() (string, string, error) {
				res, err := ours.Acquire(ctx, lock.AcquireRequest{Key: key, TTL: ttl})
				if err != nil || !res.OK {
					return "", "", err
				}
				return res.LockID, string(res.Fence), nil
			}, func(id string) (bool, error) {
				res, err := ours.Release(ctx, lock.Ref{LockID: id, Key: key})
				return res.OK, err
			})
		})
		workers.Go(func() {
			worker(fmt.Sprintf("SyncGuard %d", i), &had[1], func() (string, string, error) {
				return theirs.acquire(ctx, key, ttl)
			}, func(id string) (bool, error) { return theirs.release(ctx, id) })
		})
	}
	workers.Wait()
	if sections := had[0].Load() + had[1].Load(); last.Load() != sections {
		t.Errorf("the last fence is %d after %d sections", last.Load(), sections)
	}
	t.Logf("%d sections of ours, %d of SyncGuard's", had[0].Load(), had[1].Load())
}
