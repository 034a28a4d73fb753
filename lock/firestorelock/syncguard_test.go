package firestorelock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/conformance/lock/syncguard"
	"github.com/dronefleet/dronefleet/lock"
)

// eachPeer runs a test beside what SyncGuard does and, where it is installed,
// beside SyncGuard itself. start begins one more peer on a project.
func eachPeer(t *testing.T, test func(t *testing.T, start func(t *testing.T, project string) syncguard.Contender)) {
	t.Run("what SyncGuard does", func(t *testing.T) {
		test(t, func(t *testing.T, project string) syncguard.Contender {
			return syncGuard{clientOf(t, serverAddr, project)}
		})
	})
	t.Run("SyncGuard", func(t *testing.T) {
		syncguard.Need(t)
		test(t, func(t *testing.T, project string) syncguard.Contender {
			return inProject(t, startSyncGuard(t), project)
		})
	})
}

// syncGuard is what SyncGuard 2.5.2 does to the store for plain keys: the same
// reads, decisions and writes, and nothing of this library.
type syncGuard struct{ client *firestore.Client }

func (s syncGuard) lockDoc(key string) *firestore.DocumentRef { return s.client.Doc("locks/" + key) }

// live says whether a lock document still excludes others: its end plus a
// second for clocks that differ has not come.
func live(doc *firestore.DocumentSnapshot, nowMs int64) bool {
	end, _ := doc.Data()["expiresAtMs"].(int64)
	return end > nowMs-1000
}

func (s syncGuard) Acquire(ctx context.Context, key string, ttl time.Duration) (id, fence string, err error) {
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

// Release finds the lock by its id alone, as SyncGuard does.
func (s syncGuard) Release(ctx context.Context, id string) (released bool, err error) {
	err = s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		released = false
		found, err := tx.Documents(s.client.Collection("locks").Where("lockId", "==", id)).GetAll()
		if err != nil || len(found) == 0 || !live(found[0], time.Now().UnixMilli()) {
			return err
		}
		released = true
		return tx.Delete(found[0].Ref)
	})
	return released, err
}

// B-04: each side respects, finds and ends the locks of the other, and takes over expired
// ones; their fences are one sequence.
func TestSyncGuard_ReadsAndIsRead(t *testing.T) {
	eachPeer(t, func(t *testing.T, start func(*testing.T, string) syncguard.Contender) {
		project := freshProject()
		client := clientOf(t, serverAddr, project)
		ours, theirs := newBackend(t, client, Config{}), start(t, project)
		fences := []string{}

		res := mustAcquire(t, ours, key)
		fences = append(fences, string(res.Fence))
		if id, _, err := theirs.Acquire(bg, key, ttl); id != "" || err != nil {
			t.Fatalf("SyncGuard took a lock of ours: %q, %v", id, err)
		}
		if ok, err := theirs.Release(bg, res.LockID); !ok || err != nil {
			t.Fatalf("SyncGuard does not find a lock of ours by its id: %t, %v", ok, err)
		}

		id, fence, err := theirs.Acquire(bg, key, ttl)
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

		// Either takes over a lock that has expired, tolerance included.
		if _, err := client.Doc("locks/"+key).Set(bg, map[string]any{
			"lockId": lock.NewLockID(), "expiresAtMs": time.Now().UnixMilli() - 1500, "acquiredAtMs": 0, "key": key, "fence": fence,
		}); err != nil {
			t.Fatal(err)
		}
		res = mustAcquire(t, ours, key)
		fences = append(fences, string(res.Fence))
		if _, err := client.Doc("locks/"+key).Update(bg, []firestore.Update{{Path: "expiresAtMs", Value: time.Now().UnixMilli() - 1500}}); err != nil {
			t.Fatal(err)
		}
		id, fence, err = theirs.Acquire(bg, key, ttl)
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
	})
}

// lost reports an attempt that lost to another transaction every time it was tried, or
// waited until the server gave up.
func lost(err error) bool {
	return status.Code(err) == codes.Aborted || errors.Is(err, lock.ErrServiceUnavailable) || errors.Is(err, lock.ErrNetworkTimeout)
}

// B-04: workers of both kinds contend. No two hold one key at a time, and the fences rise in
// the order of the holders, without gaps but for attempts that lost.
func TestSyncGuard_ContendsWithoutOverlap(t *testing.T) {
	eachPeer(t, func(t *testing.T, start func(*testing.T, string) syncguard.Contender) {
		project := freshProject()
		c := syncguard.Contention{Lost: lost}
		for range 3 {
			c.Ours = append(c.Ours, newBackend(t, clientOf(t, serverAddr, project), Config{}))
			c.Theirs = append(c.Theirs, start(t, project))
		}
		c.Run(t)
	})
}

func TestSyncGuard_IsComparedUnderContention(t *testing.T) {
	syncguard.Need(t)
	project := freshProject()
	syncguard.Compare(t, newBackend(t, clientOf(t, serverAddr, project), Config{}), inProject(t, startSyncGuard(t), project), lost)
}

// B-04, L-ACQ-01: workers of both kinds find one expired lock, and one takes it over. The test
// ends when that happened often enough, or a few times within the time limit.
func TestSyncGuard_TakesOverOnce(t *testing.T) {
	eachPeer(t, func(t *testing.T, start func(*testing.T, string) syncguard.Contender) {
		const perKind, some, rounds = 2, 4, 12
		project := freshProject()
		client := clientOf(t, serverAddr, project)
		var tries []func() (fence string, err error)
		for range perKind {
			ours, theirs := newBackend(t, clientOf(t, serverAddr, project), Config{}), start(t, project)
			tries = append(tries, func() (string, error) {
				res, err := ours.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
				return string(res.Fence), err
			}, func() (string, error) {
				_, fence, err := theirs.Acquire(bg, key, ttl)
				return fence, err
			})
		}
		var won [2]int // by ours, by SyncGuard
		slow := time.Now().Add(syncguard.Limit(t))
		for round := 1; round <= rounds && !t.Failed() && (round <= some || time.Now().Before(slow)); {
			var mu sync.Mutex
			winners := map[int]string{}
			var all sync.WaitGroup
			for i, try := range tries {
				all.Go(func() {
					if i%2 == round%2 { // by turns the other kind comes first
						time.Sleep(time.Duration(rand.Int64N(int64(20 * time.Millisecond))))
					}
					fence, err := try()
					if err != nil && !lost(err) {
						t.Errorf("try %d: %v", i, err)
					}
					if fence != "" {
						mu.Lock()
						defer mu.Unlock()
						winners[i] = fence
					}
				})
			}
			all.Wait()
			if len(winners) == 0 {
				continue // each was in the other's way
			}
			for i, fence := range winners {
				won[i%2]++
				if want := fmt.Sprintf("%015d", round); len(winners) > 1 || fence != want {
					t.Errorf("round %d: taken over by %v, want by one with fence %s", round, winners, want)
				}
			}
			if _, err := client.Doc("locks/"+key).Update(bg, []firestore.Update{{Path: "expiresAtMs", Value: time.Now().UnixMilli() - 1500}}); err != nil {
				t.Fatal(err)
			}
			round++
		}
		t.Logf("taken over %d times by ours, %d by SyncGuard", won[0], won[1])
	})
}
