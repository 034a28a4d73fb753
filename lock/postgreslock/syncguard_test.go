package postgreslock

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/conformance/lock/syncguard"
	"github.com/dronefleet/dronefleet/lock"
)

// besideSyncGuard is our backend, and SyncGuard on the same database.
func besideSyncGuard(t *testing.T) (ours *Backend, start func() syncguard.Peer) {
	t.Helper()
	syncguard.Need(t)
	ours, pool := fresh(t)
	url := fmt.Sprintf("postgres://postgres@%s/%s", shared.Addr(), pool.Config().ConnConfig.Database)
	return ours, func() syncguard.Peer { return syncguard.Start(t).On(t, map[string]any{"postgres": url}) }
}

// B-04: each side finds and ends the locks of the other, in a schema that either made first.
func TestSyncGuard_ReadsAndIsRead(t *testing.T) {
	ours, start := besideSyncGuard(t)
	theirs := start()
	if err := theirs.Do(map[string]any{"op": "setup"}).Err(); err != nil {
		t.Fatal(err)
	}
	res := mustAcquire(t, ours, "caf\u00e9")
	if id, _, err := theirs.Acquire(bg, "cafe\u0301", ttl); id != "" || err != nil {
		t.Fatalf("SyncGuard took a lock of ours: %q, %v", id, err)
	}
	if a := theirs.Extend(res.LockID, ttl); !a.OK {
		t.Errorf("SyncGuard does not extend a lock of ours: %+v", a)
	}
	if ok, err := theirs.Release(bg, res.LockID); !ok || err != nil {
		t.Errorf("SyncGuard does not find a lock of ours by its id: %t, %v", ok, err)
	}
	id, fence, err := theirs.Acquire(bg, "caf\u00e9", ttl)
	if err != nil || fence != strings.Repeat("0", 14)+"2" {
		t.Fatalf("%q, %q, %v", id, fence, err)
	}
	if res, err := ours.Acquire(bg, lock.AcquireRequest{Key: "cafe\u0301", TTL: ttl}); res.OK || err != nil {
		t.Errorf("we took a lock of SyncGuard's: %+v, %v", res, err)
	}
	if info, err := ours.Lookup(bg, lock.Query{LockID: id}); info == nil || string(info.Fence) != fence || err != nil {
		t.Errorf("%+v, %v", info, err)
	}
	if res, err := ours.Extend(bg, lock.Ref{LockID: id}, ttl); !res.OK || err != nil {
		t.Errorf("%+v, %v", res, err)
	}
	mustRelease(t, ours, lock.Ref{LockID: id})
}

// B-04: workers of both kinds contend. No two hold one key at a time, and the fences are
// one sequence without gaps, in the order of the holders.
func TestSyncGuard_ContendsWithoutOverlap(t *testing.T) {
	ours, start := besideSyncGuard(t)
	var c syncguard.Contention
	for range 3 {
		c.Ours, c.Theirs = append(c.Ours, ours), append(c.Theirs, start())
	}
	c.Run(t)
}

func TestSyncGuard_IsComparedUnderContention(t *testing.T) {
	ours, start := besideSyncGuard(t)
	syncguard.Compare(t, ours, start(), nil)
}
