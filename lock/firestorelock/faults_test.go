package firestorelock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/conformance/lock/faultproxy"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/locktest"
)

const (
	key = "payment:42"
	ttl = 30 * time.Second
)

var bg = context.Background()

func mustAcquire(t *testing.T, b *Backend, key string) lock.AcquireResult {
	t.Helper()
	res, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
	if err != nil || !res.OK {
		t.Fatalf("acquire: %+v, %v (%v)", res, err, errors.Unwrap(err))
	}
	return res
}

func mustRelease(t *testing.T, b *Backend, ref lock.Ref) {
	t.Helper()
	res, err := b.Release(bg, ref)
	if err != nil || !res.OK {
		t.Fatalf("release: %+v, %v (%v)", res, err, errors.Unwrap(err))
	}
}

// warmUp makes the key's counter, so that acquisitions take the usual way.
func warmUp(t *testing.T, b *Backend) {
	t.Helper()
	mustRelease(t, b, lock.Ref{LockID: mustAcquire(t, b, key).LockID, Key: key})
}

func settle(t *testing.T, b *Backend) {
	t.Helper()
	if err := b.tasks.Close(bg); err != nil {
		t.Fatal(err)
	}
}

func wantFence(t *testing.T, got, want lock.Fence) {
	t.Helper()
	if got != want {
		t.Errorf("fence %s, want %s", got, want)
	}
}

// The request counts of the documentation. L-ACQ-08, B-08
func TestBackend_MakesTheDocumentedRequests(t *testing.T) {
	r := newRig(t, Config{})
	b := r.faulty
	var held lock.AcquireResult
	steps := []struct {
		name string
		do   func() (bool, error)
		want map[string]int
	}{
		{"first acquisition of a key", func() (bool, error) {
			res, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
			held = res
			return res.OK, err
		}, map[string]int{"BatchGetDocuments": 2, "BeginTransaction": 1, "Commit": 1}},
		{"contended acquire", func() (bool, error) {
			res, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
			return res.Reason == lock.ReasonLocked, err
		}, map[string]int{"BatchGetDocuments": 1}},
		{"probe of a held lock", func() (bool, error) {
			res, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl, Probe: true})
			return res.Reason == lock.ReasonLocked, err
		}, map[string]int{"BatchGetDocuments": 1}},
		{"isLocked", func() (bool, error) { return b.IsLocked(bg, key) }, map[string]int{"BatchGetDocuments": 1}},
		{"lookup by key", func() (bool, error) {
			info, err := b.Lookup(bg, lock.Query{Key: key})
			return info != nil, err
		}, map[string]int{"BatchGetDocuments": 1}},
		{"lookup by id", func() (bool, error) {
			info, err := b.Lookup(bg, lock.Query{LockID: held.LockID})
			return info != nil, err
		}, map[string]int{"RunQuery": 1}},
		{"keyed extend", func() (bool, error) {
			res, err := b.Extend(bg, lock.Ref{LockID: held.LockID, Key: key}, ttl)
			return res.OK, err
		}, map[string]int{"Commit": 1}},
		{"keyed extend again", func() (bool, error) {
			res, err := b.Extend(bg, lock.Ref{LockID: held.LockID, Key: key}, ttl)
			return res.OK, err
		}, map[string]int{"Commit": 1}},
		{"extend by id", func() (bool, error) {
			res, err := b.Extend(bg, lock.Ref{LockID: held.LockID}, ttl)
			return res.OK, err
		}, map[string]int{"BeginTransaction": 1, "RunQuery": 1, "Commit": 1}},
		{"keyed release", func() (bool, error) {
			res, err := b.Release(bg, lock.Ref{LockID: held.LockID, Key: key})
			return res.OK, err
		}, map[string]int{"Commit": 1}},
		{"acquire", func() (bool, error) {
			res, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
			held = res
			return res.OK, err
		}, map[string]int{"BatchGetDocuments": 1, "Commit": 1}},
		{"release of another key", func() (bool, error) {
			res, err := b.Release(bg, lock.Ref{LockID: held.LockID, Key: "other"})
			return res.Reason == lock.ReasonNotFound, err
		}, map[string]int{"BeginTransaction": 1, "BatchGetDocuments": 1, "Rollback": 1}},
		{"release by id", func() (bool, error) {
			res, err := b.Release(bg, lock.Ref{LockID: held.LockID})
			return res.OK, err
		}, map[string]int{"BeginTransaction": 1, "RunQuery": 1, "Commit": 1}},
		{"keyed extend elsewhere", func() (bool, error) {
			held = mustAcquire(t, r.direct, key)
			res, err := b.Extend(bg, lock.Ref{LockID: held.LockID, Key: key}, ttl)
			return res.OK, err
		}, map[string]int{"BeginTransaction": 1, "BatchGetDocuments": 1, "Commit": 1}},
		{"keyed extend elsewhere again", func() (bool, error) {
			res, err := b.Extend(bg, lock.Ref{LockID: held.LockID, Key: key}, ttl)
			b.leases.Forget(held.LockID)
			return res.OK, err
		}, map[string]int{"Commit": 1}},
		{"keyed release elsewhere", func() (bool, error) {
			res, err := b.Release(bg, lock.Ref{LockID: held.LockID, Key: key})
			return res.OK, err
		}, map[string]int{"BeginTransaction": 1, "BatchGetDocuments": 1, "Commit": 1}},
		{"keyed release of nothing", func() (bool, error) {
			res, err := b.Release(bg, lock.Ref{LockID: held.LockID, Key: key})
			return res.Reason == lock.ReasonNotFound, err
		}, map[string]int{"BeginTransaction": 1, "BatchGetDocuments": 1, "Rollback": 1}},
	}
	for _, step := range steps {
		r.proxy.Clear()
		ok, err := step.do()
		if err != nil || !ok {
			t.Errorf("%s: %v, %v", step.name, ok, err)
		}
		if got := r.proxy.Calls(); !maps.Equal(got, step.want) {
			t.Errorf("%s: %v, want %v", step.name, got, step.want)
		}
	}
}

// L-ACQ-05, L-ACQ-06, B-03: the commit is applied, its reply is lost.
func TestAcquire_SucceedsIfOnlyTheReplyIsLost(t *testing.T) {
	lost := []codes.Code{
		codes.Unavailable, // repeated by the client library
		codes.ResourceExhausted,
		codes.Aborted, // rerun by the backend
		codes.DeadlineExceeded, codes.Internal, codes.Unknown, codes.Canceled,
	}
	for _, first := range []bool{true, false} {
		for _, code := range lost {
			t.Run(fmt.Sprintf("first=%v/%v", first, code), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, Config{})
				fence := lock.Fence("000000000000001")
				if !first {
					warmUp(t, r.direct)
					fence = "000000000000002"
				}
				r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{After: code}})
				res := mustAcquire(t, r.faulty, key)
				wantFence(t, res.Fence, fence)
				info, err := lock.GetByKeyRaw(bg, r.direct, key)
				if err != nil || info == nil || info.LockID != res.LockID || info.ExpiresAtMs != res.ExpiresAtMs {
					t.Errorf("stored %+v, %v, returned %+v", info, err, res)
				}
				mustRelease(t, r.faulty, lock.Ref{LockID: res.LockID, Key: key})
				wantFence(t, mustAcquire(t, r.direct, key).Fence, next(t, fence))
			})
		}
	}
}

func next(t *testing.T, f lock.Fence) lock.Fence {
	t.Helper()
	n, err := lock.ParseFence(string(f))
	if err != nil {
		t.Fatal(err)
	}
	f, err = lock.FormatFence(n + 1)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// L-ACQ-06, L-FENCE-02: the commit is not applied.
func TestAcquire_ReportsACommitThatWasNotApplied(t *testing.T) {
	for code, unknown := range map[codes.Code]bool{
		codes.DeadlineExceeded: true, codes.Internal: true, codes.Unknown: true, codes.Canceled: true,
		codes.PermissionDenied: false, codes.InvalidArgument: false, codes.DataLoss: false,
	} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Config{})
			warmUp(t, r.direct)
			r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{Before: code}})
			res, err := r.faulty.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
			e, ok := errors.AsType[*lock.Error](err)
			if !ok || res.OK || e.Code != lockCode(code, err) || e.OutcomeUnknown != unknown {
				t.Fatalf("%+v, %v, want %v, outcome unknown %v", res, err, lockCode(code, err), unknown)
			}
			settle(t, r.faulty)
			wantFence(t, mustAcquire(t, r.direct, key).Fence, "000000000000002")
		})
	}
}

// L-ACQ-06: the reply is lost and the state cannot be read either.
func TestAcquire_ReleasesAnUnresolvedLeaseInTheBackground(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("first=%v", first), func(t *testing.T) {
			r := newRig(t, Config{})
			reads, fence := 2, lock.Fence("000000000000002")
			if !first {
				warmUp(t, r.direct)
				reads, fence = 1, "000000000000003"
			}
			r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{After: codes.Unknown}})
			r.proxy.Add(faultproxy.Rule{RPC: "BatchGetDocuments", Skip: reads, Times: 1, Do: faultproxy.Fault{Before: codes.PermissionDenied}})
			_, err := r.faulty.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
			if e, ok := errors.AsType[*lock.Error](err); !ok || !e.OutcomeUnknown || e.Code != lock.CodeInternal {
				t.Fatalf("got %v, want Internal with unknown outcome", err)
			}
			settle(t, r.faulty)
			wantFence(t, mustAcquire(t, r.direct, key).Fence, fence)
		})
	}
}

// L-ACQ-06: a failed commit may still apply, until something that it depends on has changed. A
// key's first acquisition depends on nothing, so its outcome stays unknown.
func TestAcquire_KnowsAnOvertakenCommitHasFailed(t *testing.T) {
	relocked := func(t *testing.T, r rig) {
		mustRelease(t, r.direct, lock.Ref{LockID: mustAcquire(t, r.direct, key).LockID, Key: key})
	}
	for _, row := range []struct {
		name     string
		first    bool
		overtake func(t *testing.T, r rig)
	}{
		{"counter changed", false, relocked}, // and the lock is as it was: absent
		{"lock changed", false, func(t *testing.T, r rig) {
			if _, err := r.client.Doc("locks/"+key).Set(bg, map[string]any{fieldExpiresAt: 1}); err != nil {
				t.Error(err)
			}
		}},
		{"first acquisition", true, relocked},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, Config{})
			reads := 2
			if !row.first {
				warmUp(t, r.direct)
				reads = 1
			}
			r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{Before: codes.Internal}})
			r.proxy.Add(faultproxy.Rule{RPC: "BatchGetDocuments", Skip: reads, Times: 1, Hook: func() { row.overtake(t, r) }})
			_, err := r.faulty.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
			if e, ok := errors.AsType[*lock.Error](err); !ok || e.Code != lock.CodeServiceUnavailable || e.OutcomeUnknown != row.first {
				t.Errorf("got %v, want ServiceUnavailable, outcome unknown %v", err, row.first)
			}
		})
	}
}

// L-ACQ-01: the commit depends on the lock as it was read, not on the counter alone: an
// extension, or a program with its counter elsewhere, changes only the lock.
func TestAcquire_NoticesThatOnlyTheLockChanged(t *testing.T) {
	for _, expired := range []bool{false, true} {
		t.Run(fmt.Sprintf("expired=%v", expired), func(t *testing.T) {
			r := newRig(t, Config{})
			warmUp(t, r.direct)
			put := func(end time.Time) {
				doc := lease{lockID: lock.NewLockID(), key: key, expiresAtMs: end.UnixMilli(), fence: "000000000000001"}
				if _, err := r.client.Doc("locks/"+key).Set(bg, doc.fields()); err != nil {
					t.Error(err)
				}
			}
			if expired {
				put(time.Now().Add(-time.Minute))
			}
			r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Hook: func() { put(time.Now().Add(time.Minute)) }})
			if res, err := r.faulty.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl}); err != nil || res.OK {
				t.Errorf("%+v, %v, want a held lock", res, err)
			}
		})
	}
}

// L-ACQ-02: a refused commit is tried again after a read: as often as another process was
// faster, but without a conflict only three times.
func TestAcquire_RetriesARefusedCommit(t *testing.T) {
	for _, row := range []struct {
		name     string
		refusals int
		conflict bool
		want     lock.Code
	}{
		{"two refusals", 2, false, ""},
		{"three refusals", 3, false, lock.CodeInvalidArgument},
		{"five conflicts", 5, true, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, Config{})
			warmUp(t, r.direct)
			counter := r.client.Doc("fence_counters/fence:" + key)
			touched := 0
			r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: row.refusals, Do: faultproxy.Fault{Before: codes.FailedPrecondition}, Hook: func() {
				if !row.conflict {
					return
				}
				touched++
				if _, err := counter.Update(bg, []firestore.Update{{Path: fieldKeyDebug, Value: touched}}); err != nil {
					t.Error(err)
				}
			}})
			res, err := r.faulty.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
			if e, _ := errors.AsType[*lock.Error](err); res.OK != (row.want == "") || e != nil && e.Code != row.want {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
}

// L-ACQ-05, L-ACQ-06, L-ERR-01: the read after a conflict fails. The acquisition reports that
// error, unless the second try finds its own lock. If the client library sent the commit twice,
// the outcome is unknown.
func TestAcquire_ReportsTheReadThatFailedAfterAConflict(t *testing.T) {
	sentTwiceThenOnce := []faultproxy.Fault{{Before: codes.Unavailable}, {Before: codes.Aborted}, {Before: codes.Aborted}}
	for _, row := range []struct {
		name    string
		key     string             // "other" was never locked
		commits []faultproxy.Fault // one each
		reads   int                // before those that fail
		fail    int
		ok      bool
		unknown bool
	}{
		{name: "sent once", key: key, commits: []faultproxy.Fault{{Before: codes.FailedPrecondition}}, reads: 1, fail: 2},
		{name: "sent twice", key: key, commits: []faultproxy.Fault{{After: codes.Unavailable}, {Before: codes.FailedPrecondition}},
			reads: 1, fail: 2, unknown: true},
		{name: "sent twice, then once", key: key, commits: sentTwiceThenOnce, reads: 2, fail: 2, unknown: true},
		{name: "applied", key: key, commits: []faultproxy.Fault{{After: codes.Aborted}}, reads: 1, fail: 1, ok: true},
		{name: "first, sent twice", key: "other", commits: []faultproxy.Fault{{After: codes.Unavailable}, {Before: codes.PermissionDenied}},
			reads: 2, fail: 1, unknown: true},
		{name: "first, sent twice, then once", key: "other", commits: sentTwiceThenOnce, reads: 4, fail: 2, unknown: true},
		{name: "first, applied", key: "other", commits: []faultproxy.Fault{{After: codes.Aborted}}, reads: 2, fail: 1, ok: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, Config{})
			warmUp(t, r.faulty)
			mustRelease(t, r.faulty, lock.Ref{LockID: mustAcquire(t, r.faulty, key).LockID, Key: key})
			for _, fault := range row.commits {
				r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: fault})
			}
			r.proxy.Add(faultproxy.Rule{RPC: "BatchGetDocuments", Skip: row.reads, Times: row.fail, Do: faultproxy.Fault{Before: codes.PermissionDenied}})
			res, err := r.faulty.Acquire(bg, lock.AcquireRequest{Key: row.key, TTL: ttl})
			e, failed := errors.AsType[*lock.Error](err)
			switch {
			case failed == row.ok || res.OK != row.ok:
				t.Errorf("%+v, %v", res, err)
			case res.OK:
				mustRelease(t, r.direct, lock.Ref{LockID: res.LockID, Key: row.key})
			case e.Code != lock.CodeAuthFailed || e.OutcomeUnknown != row.unknown:
				t.Errorf("got %v, want AuthFailed, outcome unknown %v", err, row.unknown)
			}
			settle(t, r.faulty)
			if locked, err := r.direct.IsLocked(bg, row.key); locked || err != nil {
				t.Errorf("still locked: %v, %v", locked, err)
			}
		})
	}
}

// L-RTY-05, L-ACQ-06: the background release of a try of unknown outcome comes after the
// next try, and does not release what that one took.
func TestAcquire_RetryKeepsItsLeaseThroughALateRelease(t *testing.T) {
	for _, applied := range []bool{false, true} {
		t.Run(fmt.Sprintf("applied=%v", applied), func(t *testing.T) {
			r := newRig(t, Config{})
			warmUp(t, r.direct)
			lost := faultproxy.Fault{Before: codes.Internal}
			if applied {
				lost = faultproxy.Fault{After: codes.Internal}
			}
			r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: lost})
			// The outcome cannot be read either, or it would be known if applied.
			r.proxy.Add(faultproxy.Rule{RPC: "BatchGetDocuments", Skip: 1, Times: 1, Do: faultproxy.Fault{Before: codes.PermissionDenied}})
			retried := make(chan struct{})
			r.proxy.Add(faultproxy.Rule{RPC: "BeginTransaction", Times: 1, Hook: func() {
				if applied { // the next try finds the lock held until the release
					r.proxy.WaitCalls("BatchGetDocuments", 3)
					return
				}
				<-retried
			}})
			h, err := lock.Acquire(bg, r.faulty, key, lock.WithRetryTransient(), lock.WithRetryDelay(time.Millisecond))
			close(retried)
			if err != nil {
				t.Fatal(err)
			}
			settle(t, r.faulty)
			info, err := lock.GetByKeyRaw(bg, r.direct, key)
			if err != nil || info == nil || info.LockID != h.LockID() || info.Fence != h.Fence() {
				t.Errorf("stored %+v, %v; the holder has fence %s", info, err, h.Fence())
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// L-ACQ-06, L-ACQ-07: a lease that nobody will use may be released late if the first
// release failed. The outcome is unknown, so that its lock id is not used again.
func TestAcquire_UnreleasedLeaseIsAnUnknownOutcome(t *testing.T) {
	for _, row := range []struct {
		name  string
		ttl   time.Duration
		fault faultproxy.Fault
		want  error
	}{
		{"caller is gone", ttl, faultproxy.Fault{After: codes.Internal}, lock.ErrAborted},
		{"lease is over", 50 * time.Millisecond, faultproxy.Fault{Delay: 60 * time.Millisecond}, lock.ErrNetworkTimeout},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, Config{})
			warmUp(t, r.direct)
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: row.fault})
			r.proxy.Add(faultproxy.Rule{RPC: "Commit", Do: faultproxy.Fault{Before: codes.PermissionDenied}})
			if row.want == lock.ErrAborted {
				r.proxy.Add(faultproxy.Rule{RPC: "BatchGetDocuments", Skip: 1, Times: 1, Hook: cancel})
			}
			_, err := r.faulty.Acquire(ctx, lock.AcquireRequest{Key: key, TTL: row.ttl})
			if e, ok := errors.AsType[*lock.Error](err); !errors.Is(err, row.want) || !ok || !e.OutcomeUnknown {
				t.Errorf("got %v, want %v with unknown outcome", err, row.want)
			}
		})
	}
}

// L-ACQ-06, L-CAN-04: an acquisition that is stuck when its caller is cancelled is left
// behind and releases its lease itself; until then its outcome is unknown.
func TestAcquire_LeftBehindGivesItsLeaseUp(t *testing.T) {
	r := newRig(t, Config{})
	warmUp(t, r.direct)
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	gone := make(chan struct{})
	r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{After: codes.Internal}})
	r.proxy.Add(faultproxy.Rule{RPC: "BatchGetDocuments", Skip: 1, Times: 1, Hook: func() { cancel(); <-gone }})
	r.leavesBehind(t, ctx, gone)
}

// leavesBehind checks that an acquisition which is stuck until gone is closed returns an
// unknown outcome to its caller, and then releases its lease.
func (r *rig) leavesBehind(t *testing.T, ctx context.Context, gone chan struct{}) {
	t.Helper()
	_, err := r.faulty.Acquire(ctx, lock.AcquireRequest{Key: key, TTL: ttl})
	if e, ok := errors.AsType[*lock.Error](err); !ok || e.Code != lock.CodeAborted || !e.OutcomeUnknown {
		t.Errorf("got %v, want Aborted with unknown outcome", err)
	}
	if locked, err := r.direct.IsLocked(bg, key); !locked || err != nil {
		t.Errorf("released already: %v, %v", locked, err)
	}
	close(gone)
	settle(t, r.faulty)
	if locked, err := r.direct.IsLocked(bg, key); locked || err != nil {
		t.Errorf("still locked: %v, %v", locked, err)
	}
}

// stuckClock is the machine's clock. Once told to be stuck, its next reading blocks until
// it is told to go on.
type stuckClock struct {
	lock.Clock
	stuck atomic.Bool
	read  func()
}

func (c *stuckClock) Now() time.Time {
	if c.stuck.CompareAndSwap(true, false) {
		c.read()
	}
	return c.Clock.Now()
}

// L-ACQ-06, L-CAN-04: the same if it gets stuck after its commit was answered.
func TestAcquire_LeftBehindAfterCommitGivesItsLeaseUp(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	gone := make(chan struct{})
	clock := &stuckClock{Clock: lock.SystemClock(), read: func() { cancel(); <-gone }}
	r := newRig(t, Config{Clock: clock})
	warmUp(t, r.direct)
	r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Hook: func() { clock.stuck.Store(true) }})
	r.leavesBehind(t, ctx, gone)
}

// L-ACQ-05, L-REL-04: a nested lease is known by its id although the reply to its commit
// was lost.
func TestAcquire_KnowsANestedLeaseWhoseReplyWasLost(t *testing.T) {
	r := newRig(t, Config{})
	const nested = "a/b/c"
	mustRelease(t, r.direct, lock.Ref{LockID: mustAcquire(t, r.direct, nested).LockID, Key: nested})
	r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{After: codes.Internal}})
	mustRelease(t, r.faulty, lock.Ref{LockID: mustAcquire(t, r.faulty, nested).LockID})
}

// L-ACQ-06: the lock was taken, but the caller is gone.
func TestAcquire_ReleasesALeaseWhoseCallerIsGone(t *testing.T) {
	r := newRig(t, Config{})
	warmUp(t, r.direct)
	ctx, cancel := context.WithCancel(bg)
	r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{HoldReply: true}, Hook: cancel})
	_, err := r.faulty.Acquire(ctx, lock.AcquireRequest{Key: key, TTL: ttl})
	if !errors.Is(err, lock.ErrAborted) || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want Aborted", err)
	}
	settle(t, r.faulty)
	if locked, err := r.direct.IsLocked(bg, key); locked || err != nil {
		t.Errorf("still locked: %v, %v", locked, err)
	}
}

// L-TIME-02: a rerun counts the lease from its own clock reading. L-ACQ-02
func TestAcquire_RerunMovesExpiry(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	r := newRig(t, Config{Clock: clock})
	warmUp(t, r.direct)
	counter := r.client.Doc("fence_counters/fence:" + key)
	r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Hook: func() {
		clock.Advance(7 * time.Second)
		if _, err := counter.Update(bg, []firestore.Update{{Path: fieldKeyDebug, Value: "touched"}}); err != nil {
			t.Error(err)
		}
	}})
	res := mustAcquire(t, r.faulty, key)
	if want := clock.Now().Add(ttl).UnixMilli(); res.ExpiresAtMs != want {
		t.Errorf("expires at %d, want %d", res.ExpiresAtMs, want)
	}
	if !res.Deadline.Equal(clock.Now().Add(ttl).Truncate(time.Millisecond)) {
		t.Errorf("deadline %v", res.Deadline)
	}
}

// L-ACQ-01, L-REL-05: somebody takes the lock between the read and the commit.
func TestAcquire_LosesToAFasterProcess(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("first=%v", first), func(t *testing.T) {
			r := newRig(t, Config{})
			if !first {
				warmUp(t, r.direct)
			}
			var other lock.AcquireResult
			// After the plain read, before the transaction or the commit.
			rpc := "Commit"
			if first {
				rpc = "BeginTransaction"
			}
			r.proxy.Add(faultproxy.Rule{RPC: rpc, Times: 1, Hook: func() { other = mustAcquire(t, r.direct, key) }})
			res, err := r.faulty.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
			if err != nil || res.OK || res.Reason != lock.ReasonLocked || res.HolderExpiresAtMs != other.ExpiresAtMs {
				t.Errorf("%+v, %v", res, err)
			}
			mustRelease(t, r.direct, lock.Ref{LockID: other.LockID, Key: key})
			wantFence(t, mustAcquire(t, r.faulty, key).Fence, next(t, other.Fence))
		})
	}
}

// L-ACQ-07: the lease is over when the reply arrives.
func TestAcquire_RejectsALeaseThatIsOverOnArrival(t *testing.T) {
	r := newRig(t, Config{})
	warmUp(t, r.direct)
	r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{Delay: 60 * time.Millisecond}})
	_, err := r.faulty.Acquire(bg, lock.AcquireRequest{Key: key, TTL: 50 * time.Millisecond})
	if !errors.Is(err, lock.ErrNetworkTimeout) {
		t.Fatalf("got %v, want NetworkTimeout", err)
	}
	settle(t, r.faulty)
	if locked, err := r.direct.IsLocked(bg, key); locked || err != nil {
		t.Errorf("still locked: %v, %v", locked, err)
	}
}

// B-03: a release whose reply was lost did release.
func TestRelease_SucceedsIfOnlyTheReplyIsLost(t *testing.T) {
	for _, known := range []bool{true, false} { // by version, by transaction
		for _, code := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Unknown, codes.Canceled} {
			t.Run(fmt.Sprintf("known=%v/%v", known, code), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, Config{})
				warmUp(t, r.faulty)
				res := mustAcquire(t, r.faulty, key)
				if !known {
					r.faulty.leases.Forget(res.LockID)
				}
				r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{After: code}})
				mustRelease(t, r.faulty, lock.Ref{LockID: res.LockID, Key: key})
				again, err := r.faulty.Release(bg, lock.Ref{LockID: res.LockID, Key: key})
				if err != nil || again.OK {
					t.Errorf("second release: %+v, %v", again, err)
				}
			})
		}
	}
}

// B-03: the reply of the first sending is lost, and the repeated one fails in
// its own way.
func TestRelease_SucceedsIfTheRepetitionIsRefused(t *testing.T) {
	for _, known := range []bool{true, false} {
		for _, code := range []codes.Code{codes.Aborted, codes.FailedPrecondition, codes.Internal} {
			if !known && code == codes.FailedPrecondition {
				continue // a transaction's commit of a delete has no precondition
			}
			t.Run(fmt.Sprintf("known=%v/%v", known, code), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, Config{})
				warmUp(t, r.faulty)
				res := mustAcquire(t, r.faulty, key)
				if !known {
					r.faulty.leases.Forget(res.LockID)
				}
				r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{After: codes.Unavailable}})
				r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{Before: code}})
				mustRelease(t, r.faulty, lock.Ref{LockID: res.LockID, Key: key})
			})
		}
	}
}

// L-REL-05: the lease ended by the server's clock only, and another process took the lock. The
// release is not ours, though its commit was sent twice.
func TestRelease_IsNotOursAfterATakeover(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	warmUp(t, r.faulty)
	old := mustAcquire(t, r.faulty, key)
	later := newBackend(t, r.client, Config{Clock: skewedClock{lock.SystemClock(), time.Minute}})
	taken := mustAcquire(t, later, key)
	r.proxy.Skew(time.Minute)
	r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{Before: codes.Unavailable}})
	if res, err := r.faulty.Release(bg, lock.Ref{LockID: old.LockID, Key: key}); err != nil || res.OK {
		t.Errorf("%+v, %v", res, err)
	}
	mustRelease(t, later, lock.Ref{LockID: taken.LockID, Key: key})
}

// L-REL-02: a lease that is found over was not released by us, though the commit was sent
// twice: somebody who knows the lock id had shortened it.
func TestRelease_IsNotOursIfTheLeaseWasOver(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	r := newRig(t, Config{Clock: clock})
	warmUp(t, r.faulty)
	ref := lock.Ref{LockID: mustAcquire(t, r.faulty, key).LockID, Key: key}
	if res, err := r.direct.Extend(bg, ref, time.Millisecond); err != nil || !res.OK {
		t.Fatalf("%+v, %v", res, err)
	}
	clock.Advance(time.Millisecond + lock.Tolerance)
	r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{Before: codes.Unavailable}})
	if res, err := r.faulty.Release(bg, ref); err != nil || res.OK || res.Reason != lock.ReasonExpired {
		t.Errorf("%+v, %v, want expired", res, err)
	}
}

// A release that conflicts and then finds the lock released by somebody else is not ours,
// though it ran twice.
func TestRelease_IsNotOursAfterAConflict(t *testing.T) {
	for _, known := range []bool{true, false} {
		r := newRig(t, Config{})
		warmUp(t, r.faulty)
		ref := lock.Ref{LockID: mustAcquire(t, r.faulty, key).LockID, Key: key}
		if !known {
			r.faulty.leases.Forget(ref.LockID)
		}
		r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{Before: codes.Aborted}})
		// The conflict frees the document; before the rerun reads it, it is gone.
		again := faultproxy.Rule{RPC: "BeginTransaction", Times: 1, Hook: func() { mustRelease(t, r.direct, ref) }}
		if !known {
			again.Skip = 1
		}
		r.proxy.Add(again)
		if res, err := r.faulty.Release(bg, ref); err != nil || res.OK {
			t.Errorf("known %v: %+v, %v", known, res, err)
		}
	}
}

// L-REL-05: the same if the transaction expired before its only commit.
func TestRelease_IsNotOursAfterAnExpiredTransaction(t *testing.T) {
	r := newRig(t, Config{})
	warmUp(t, r.faulty)
	ref := lock.Ref{LockID: mustAcquire(t, r.faulty, key).LockID, Key: key}
	r.faulty.leases.Forget(ref.LockID)
	r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{Before: codes.InvalidArgument, Text: "The referenced transaction has expired"}})
	r.proxy.Add(faultproxy.Rule{RPC: "BeginTransaction", Skip: 1, Times: 1, Hook: func() { mustRelease(t, r.direct, ref) }})
	if res, err := r.faulty.Release(bg, ref); err != nil || res.OK {
		t.Errorf("%+v, %v", res, err)
	}
}

// L-REL-01, L-REL-05: somebody else who knows the lock id released the lock. That looks
// like a commit of ours that was applied and resent, but ours was sent only once.
func TestRelease_IsNotOursIfSentOnce(t *testing.T) {
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("known=%v", known), func(t *testing.T) {
			r := newRig(t, Config{})
			warmUp(t, r.faulty)
			res := mustAcquire(t, r.faulty, key)
			ref := lock.Ref{LockID: res.LockID, Key: key}
			if !known {
				r.faulty.leases.Forget(res.LockID)
			}
			mustRelease(t, r.direct, ref)
			got, err := r.faulty.Release(bg, ref)
			if err != nil || got.OK || got.Reason != lock.ReasonNotFound {
				t.Errorf("%+v, %v, want not-found", got, err)
			}
		})
	}
}

// A release that was not applied is made again.
func TestRelease_RetriesWhatWasNotApplied(t *testing.T) {
	for _, known := range []bool{true, false} {
		r := newRig(t, Config{})
		res := mustAcquire(t, r.faulty, key)
		if !known {
			r.faulty.leases.Forget(res.LockID)
		}
		r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{Before: codes.Unknown}})
		mustRelease(t, r.faulty, lock.Ref{LockID: res.LockID, Key: key})
		if locked, err := r.direct.IsLocked(bg, key); locked || err != nil {
			t.Errorf("still locked: %v, %v", locked, err)
		}
	}
}

// A refused release can be tried again.
func TestRelease_CanBeTriedAgainAfterARefusal(t *testing.T) {
	r := newRig(t, Config{})
	ref := lock.Ref{LockID: mustAcquire(t, r.faulty, key).LockID, Key: key}
	r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{Before: codes.PermissionDenied}})
	if _, err := r.faulty.Release(bg, ref); !errors.Is(err, lock.ErrAuthFailed) {
		t.Fatalf("got %v, want AuthFailed", err)
	}
	r.proxy.Clear()
	mustRelease(t, r.faulty, ref)
	if calls := r.proxy.Calls(); !maps.Equal(calls, map[string]int{"Commit": 1}) {
		t.Errorf("requests %v", calls)
	}
}

// B-03: a reply was lost and the second try failed: the outcome is unknown, whatever the
// second try failed with.
func TestOutcomeUnknown_SurvivesAFailedSecondTry(t *testing.T) {
	for name, do := range map[string]func(b *Backend, ref lock.Ref) error{
		"release": func(b *Backend, ref lock.Ref) error { _, err := b.Release(bg, ref); return err },
		"extend":  func(b *Backend, ref lock.Ref) error { _, err := b.Extend(bg, ref, time.Minute); return err },
	} {
		for _, row := range []struct {
			name    string
			known   bool // the first commit is by version, else a transaction's
			lost    faultproxy.Fault
			again   faultproxy.Fault // what the commit meets when the client library repeats it
			begun   int              // transactions before the one that fails
			unknown bool
		}{
			{name: "version, lost", known: true, lost: faultproxy.Fault{Before: codes.Internal}, unknown: true},
			{name: "version, conflict", known: true, lost: faultproxy.Fault{Before: codes.FailedPrecondition}},
			{name: "version, sent twice", known: true, lost: faultproxy.Fault{After: codes.Unavailable},
				again: faultproxy.Fault{Before: codes.FailedPrecondition}, unknown: true},
			{name: "transaction, lost", lost: faultproxy.Fault{Before: codes.Unknown}, begun: 1, unknown: true},
			{name: "transaction, sent twice", lost: faultproxy.Fault{After: codes.Unavailable},
				again: faultproxy.Fault{Before: codes.PermissionDenied}, begun: 1, unknown: true},
			{name: "transaction, sent twice, then conflict", lost: faultproxy.Fault{Before: codes.Unavailable},
				again: faultproxy.Fault{Before: codes.Aborted}, begun: 1, unknown: true},
			{name: "transaction, refused", lost: faultproxy.Fault{Before: codes.PermissionDenied}, begun: 1},
		} {
			t.Run(name+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, Config{})
				warmUp(t, r.faulty)
				ref := lock.Ref{LockID: mustAcquire(t, r.faulty, key).LockID, Key: key}
				if !row.known {
					r.faulty.leases.Forget(ref.LockID)
				}
				r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: row.lost})
				r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: row.again})
				r.proxy.Add(faultproxy.Rule{RPC: "BeginTransaction", Skip: row.begun, Do: faultproxy.Fault{Before: codes.PermissionDenied}})
				err := do(r.faulty, ref)
				if e, ok := errors.AsType[*lock.Error](err); !ok || e.Code != lock.CodeAuthFailed || e.OutcomeUnknown != row.unknown {
					t.Errorf("got %v, want AuthFailed, outcome unknown %v", err, row.unknown)
				}
			})
		}
	}
}

// B-03: a read that failed changed nothing and is not tried again, whatever it failed
// with.
func TestOutcomeKnown_AfterAFailedRead(t *testing.T) {
	for name, do := range map[string]func(b *Backend, ref lock.Ref) error{
		"release": func(b *Backend, ref lock.Ref) error { _, err := b.Release(bg, ref); return err },
		"extend":  func(b *Backend, ref lock.Ref) error { _, err := b.Extend(bg, ref, time.Minute); return err },
	} {
		r := newRig(t, Config{})
		ref := lock.Ref{LockID: mustAcquire(t, r.direct, key).LockID, Key: key}
		r.proxy.Add(faultproxy.Rule{RPC: "BatchGetDocuments", Do: faultproxy.Fault{Before: codes.Unknown}})
		err := do(r.faulty, ref)
		if e, ok := errors.AsType[*lock.Error](err); !ok || e.Code != lock.CodeInternal || e.OutcomeUnknown {
			t.Errorf("%s: got %v, want Internal with a known outcome", name, err)
		}
		if n := r.proxy.Calls()["BeginTransaction"]; n != 1 {
			t.Errorf("%s: %d transactions", name, n)
		}
	}
}

// B-03: a commit whose reply the caller did not wait for may have been applied.
func TestOutcomeUnknown_AfterACancelledCommit(t *testing.T) {
	for name, do := range map[string]func(ctx context.Context, b *Backend, ref lock.Ref) error{
		"release": func(ctx context.Context, b *Backend, ref lock.Ref) error { _, err := b.Release(ctx, ref); return err },
		"extend": func(ctx context.Context, b *Backend, ref lock.Ref) error {
			_, err := b.Extend(ctx, ref, time.Minute)
			return err
		},
	} {
		for _, known := range []bool{true, false} {
			r := newRig(t, Config{})
			ref := lock.Ref{LockID: mustAcquire(t, r.faulty, key).LockID, Key: key}
			if !known {
				r.faulty.leases.Forget(ref.LockID)
			}
			ctx, cancel := context.WithCancel(bg)
			r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{HoldReply: true}, Hook: cancel})
			err := do(ctx, r.faulty, ref)
			if e, ok := errors.AsType[*lock.Error](err); !ok || e.Code != lock.CodeAborted || !e.OutcomeUnknown {
				t.Errorf("%s, known %v: got %v, want Aborted with unknown outcome", name, known, err)
			}
			cancel()
		}
	}
}

// B-03: if every try ends unknown, there are two tries, not endless ones.
func TestOutcomeUnknown_IsTriedTwice(t *testing.T) {
	for name, do := range map[string]func(b *Backend, ref lock.Ref) error{
		"release": func(b *Backend, ref lock.Ref) error { _, err := b.Release(bg, ref); return err },
		"extend":  func(b *Backend, ref lock.Ref) error { _, err := b.Extend(bg, ref, time.Minute); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Config{})
			warmUp(t, r.faulty)
			ref := lock.Ref{LockID: mustAcquire(t, r.faulty, key).LockID, Key: key}
			r.faulty.leases.Forget(ref.LockID)
			before := r.proxy.Calls()["BeginTransaction"]
			r.proxy.Add(faultproxy.Rule{RPC: "Commit", Do: faultproxy.Fault{Before: codes.Internal}})
			err := do(r.faulty, ref)
			if e, ok := errors.AsType[*lock.Error](err); !ok || !e.OutcomeUnknown {
				t.Errorf("got %v, want an unknown outcome", err)
			}
			if n := r.proxy.Calls()["BeginTransaction"] - before; n != 2 {
				t.Errorf("%d transactions", n)
			}
		})
	}
}

// L-REL-05: releases of one lock id go one by one. Otherwise one could delete the lock
// while the reply to the other is lost, and both would count it as theirs.
func TestRelease_GoesOneByOnePerID(t *testing.T) {
	r := newRig(t, Config{})
	warmUp(t, r.faulty)
	ref := lock.Ref{LockID: mustAcquire(t, r.faulty, key).LockID, Key: key}
	r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{Before: codes.Internal}, Hook: func() {
		ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
		defer cancel()
		if res, err := r.faulty.Release(ctx, ref); !errors.Is(err, lock.ErrAborted) {
			t.Errorf("the second release did not wait: %+v, %v", res, err)
		}
	}})
	mustRelease(t, r.faulty, ref)
	if res, err := r.faulty.Release(bg, ref); err != nil || res.OK {
		t.Errorf("a later release: %+v, %v", res, err)
	}
	if len(r.faulty.releasing.taken) != 0 {
		t.Error("a turn was not given back")
	}
}

// L-REL-04: a nested lease is still known by its id after a release that failed.
func TestRelease_OfANestedLeaseCanBeTriedAgain(t *testing.T) {
	for _, code := range []codes.Code{codes.Internal, codes.FailedPrecondition} {
		r := newRig(t, Config{})
		ref := lock.Ref{LockID: mustAcquire(t, r.faulty, "a/b/c").LockID}
		r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{Before: code}})
		r.proxy.Add(faultproxy.Rule{RPC: "BeginTransaction", Times: 1, Do: faultproxy.Fault{Before: codes.PermissionDenied}})
		if _, err := r.faulty.Release(bg, ref); !errors.Is(err, lock.ErrAuthFailed) {
			t.Fatalf("%v: got %v, want AuthFailed", code, err)
		}
		mustRelease(t, r.faulty, ref)
		if locked, err := r.direct.IsLocked(bg, "a/b/c"); locked || err != nil {
			t.Errorf("%v: still locked: %v, %v", code, locked, err)
		}
	}
}

// B-03: an extension is made again, whether it was applied or not.
func TestExtend_IsMadeAgainIfTheReplyIsLost(t *testing.T) {
	for _, known := range []bool{true, false} {
		for _, fault := range []faultproxy.Fault{
			{After: codes.Unavailable}, {After: codes.DeadlineExceeded}, {After: codes.Unknown},
			{Before: codes.Internal}, {Before: codes.Aborted}, {After: codes.Aborted},
		} {
			t.Run(fmt.Sprintf("known=%v/%v,%v", known, fault.Before, fault.After), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, Config{})
				res := mustAcquire(t, r.faulty, key)
				if !known {
					r.faulty.leases.Forget(res.LockID)
				}
				r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: fault})
				ext, err := r.faulty.Extend(bg, lock.Ref{LockID: res.LockID, Key: key}, time.Minute)
				if err != nil || !ext.OK {
					t.Fatalf("%+v, %v", ext, err)
				}
				info, err := r.direct.Lookup(bg, lock.Query{Key: key})
				if err != nil || info == nil || info.ExpiresAtMs != ext.ExpiresAtMs {
					t.Errorf("stored %+v, %v, returned %+v", info, err, ext)
				}
				mustRelease(t, r.faulty, lock.Ref{LockID: res.LockID, Key: key})
			})
		}
	}
}

// B-08: an extension that changes nothing keeps the document's version, and the backend
// remembers that one.
func TestKnownVersion_StaysIfNothingChanges(t *testing.T) {
	r := newRig(t, Config{Clock: locktest.NewClock(time.Now())})
	ref := lock.Ref{LockID: mustAcquire(t, r.direct, key).LockID, Key: key}
	for range 2 { // the first by a transaction
		if res, err := r.faulty.Extend(bg, ref, ttl); err != nil || !res.OK {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	r.proxy.Clear()
	mustRelease(t, r.faulty, ref)
	if calls := r.proxy.Calls(); !maps.Equal(calls, map[string]int{"Commit": 1}) {
		t.Errorf("requests %v", calls)
	}
}

// B-08: a lease changed elsewhere is found by the transaction.
func TestKnownVersion_FallsBackToTheTransaction(t *testing.T) {
	r := newRig(t, Config{})
	ref := lock.Ref{LockID: mustAcquire(t, r.faulty, key).LockID, Key: key}
	for range 2 {
		if res, err := r.direct.Extend(bg, ref, time.Minute); err != nil || !res.OK {
			t.Fatalf("%+v, %v", res, err)
		}
		if res, err := r.faulty.Extend(bg, ref, ttl); err != nil || !res.OK {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	if res, err := r.direct.Extend(bg, ref, time.Minute); err != nil || !res.OK {
		t.Fatalf("%+v, %v", res, err)
	}
	mustRelease(t, r.faulty, ref)
}

// afterRead is a connection that calls f once the n-th read has been answered in
// full, before the reader goes on.
func afterRead(n int64, f func()) grpc.DialOption {
	var answered atomic.Int64
	return grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := stream(ctx, desc, cc, method, opts...)
		if err != nil {
			return nil, err
		}
		return watchedStream{s, func() {
			if answered.Add(1) == n {
				f()
			}
		}}, nil
	})
}

// watchedStream calls ended at the end of the replies.
type watchedStream struct {
	grpc.ClientStream
	ended func()
}

func (s watchedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == io.EOF {
		s.ended()
	}
	return err
}

// L-CAN-02: a context that ends between the answer of the read and the write stops
// the write, so nothing about the outcome is unknown.
func TestBackend_WritesNothingIfCancelledAfterTheRead(t *testing.T) {
	for _, row := range []struct {
		name  string
		reads int64
		do    func(ctx context.Context, b *Backend, lockID string) error
	}{
		{"acquire", 1, func(ctx context.Context, b *Backend, _ string) error {
			_, err := b.Acquire(ctx, lock.AcquireRequest{Key: "free", TTL: ttl})
			return err
		}},
		{"first acquisition, before its transaction", 1, func(ctx context.Context, b *Backend, _ string) error {
			_, err := b.Acquire(ctx, lock.AcquireRequest{Key: "never locked", TTL: ttl})
			return err
		}},
		{"first acquisition, in its transaction", 2, func(ctx context.Context, b *Backend, _ string) error {
			_, err := b.Acquire(ctx, lock.AcquireRequest{Key: "never locked", TTL: ttl})
			return err
		}},
		{"release", 1, func(ctx context.Context, b *Backend, id string) error {
			_, err := b.Release(ctx, lock.Ref{LockID: id, Key: key})
			return err
		}},
		{"release by id", 1, func(ctx context.Context, b *Backend, id string) error {
			_, err := b.Release(ctx, lock.Ref{LockID: id})
			return err
		}},
		{"extend", 1, func(ctx context.Context, b *Backend, id string) error {
			_, err := b.Extend(ctx, lock.Ref{LockID: id, Key: key}, ttl)
			return err
		}},
		{"extend by id", 1, func(ctx context.Context, b *Backend, id string) error {
			_, err := b.Extend(ctx, lock.Ref{LockID: id}, ttl)
			return err
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, Config{})
			mustRelease(t, r.direct, lock.Ref{LockID: mustAcquire(t, r.direct, "free").LockID, Key: "free"})
			held := mustAcquire(t, r.direct, key)
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			b := newBackend(t, clientOf(t, r.proxy.Addr(), r.project, afterRead(row.reads, cancel)), Config{})
			err := row.do(ctx, b, held.LockID)
			if e, ok := errors.AsType[*lock.Error](err); !ok || e.Code != lock.CodeAborted || e.OutcomeUnknown {
				t.Errorf("got %v, want Aborted with a known outcome", err)
			}
			settle(t, b)
			if n := r.proxy.Calls()["Commit"]; n != 0 {
				t.Errorf("%d commits", n)
			}
		})
	}
}

// L-ACQ-06, L-CAN-02: if ctx ends after a conflict and the client library sent the commit
// twice, the outcome is unknown: the first sending may still be on its way.
func TestAcquire_CancelledAfterAConflictMayBeUnknown(t *testing.T) {
	for _, row := range []struct {
		name    string
		lost    []codes.Code
		unknown bool
	}{
		{"sent once", []codes.Code{codes.Aborted}, false},
		{"sent twice", []codes.Code{codes.Unavailable, codes.Aborted}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, Config{})
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			const readsBefore = 3 // two of the first acquisition, and one before the conflict
			b := newBackend(t, clientOf(t, r.proxy.Addr(), r.project, afterRead(readsBefore+1, cancel)), Config{})
			mustRelease(t, r.direct, lock.Ref{LockID: mustAcquire(t, b, key).LockID, Key: key})
			for _, code := range row.lost {
				r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{Before: code}})
			}
			_, err := b.Acquire(ctx, lock.AcquireRequest{Key: key, TTL: ttl})
			if e, ok := errors.AsType[*lock.Error](err); !ok || e.Code != lock.CodeAborted || e.OutcomeUnknown != row.unknown {
				t.Errorf("got %v, want Aborted, outcome unknown %v", err, row.unknown)
			}
		})
	}
}

// operation is one call, and the requests it depends on.
type operation struct {
	name  string
	reads string
	do    func(ctx context.Context, b *Backend, lockID string) error
}

var operations = []operation{
	{"acquire", "BatchGetDocuments", func(ctx context.Context, b *Backend, _ string) error {
		_, err := b.Acquire(ctx, lock.AcquireRequest{Key: "other", TTL: ttl})
		return err
	}},
	{"release", "BatchGetDocuments", func(ctx context.Context, b *Backend, id string) error {
		_, err := b.Release(ctx, lock.Ref{LockID: id, Key: key})
		return err
	}},
	{"release by id", "RunQuery", func(ctx context.Context, b *Backend, id string) error {
		_, err := b.Release(ctx, lock.Ref{LockID: id})
		return err
	}},
	{"extend", "BatchGetDocuments", func(ctx context.Context, b *Backend, id string) error {
		_, err := b.Extend(ctx, lock.Ref{LockID: id, Key: key}, ttl)
		return err
	}},
	{"isLocked", "BatchGetDocuments", func(ctx context.Context, b *Backend, _ string) error {
		_, err := b.IsLocked(ctx, key)
		return err
	}},
	{"lookup", "BatchGetDocuments", func(ctx context.Context, b *Backend, _ string) error {
		_, err := b.Lookup(ctx, lock.Query{Key: key})
		return err
	}},
	{"lookup by id", "RunQuery", func(ctx context.Context, b *Backend, id string) error {
		_, err := b.Lookup(ctx, lock.Query{LockID: id})
		return err
	}},
}

// L-CAN-04: a silent server does not hold a cancelled caller.
// TestCall_LeavesAStuckOperationBehind checks it for a client library that does not end the
// call.
func TestBackend_LeavesASilentServer(t *testing.T) {
	for _, op := range operations {
		for _, rpc := range []string{op.reads, "Commit", "BeginTransaction"} {
			t.Run(op.name+"/"+rpc, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, Config{})
				r.faulty.tasks.Patience = time.Hour
				res := mustAcquire(t, r.direct, key)
				reached := make(chan struct{}, 16)
				silent := faultproxy.Fault{BlackHole: true}
				r.proxy.Add(faultproxy.Rule{RPC: rpc, Do: silent, Hook: func() { reached <- struct{}{} }})
				r.proxy.Add(faultproxy.Rule{RPC: "Rollback", Do: silent})
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				result := make(chan error, 1)
				go func() { result <- op.do(ctx, r.faulty, res.LockID) }()
				select {
				case <-reached:
				case err := <-result: // this operation makes no such request
					if err != nil {
						t.Error(err)
					}
					return
				}
				cancel()
				if err := <-result; !errors.Is(err, lock.ErrAborted) {
					t.Errorf("got %v, want Aborted", err)
				}
				r.proxy.Clear() // or the leftovers take their full time
			})
		}
	}
}

// L-ERR-01: all codes, each through the request that can return it. TestClassify_EveryGRPCCode
// covers the requests that the client library repeats.
func TestBackend_MapsTheCodesOfEveryRequest(t *testing.T) {
	repeated := map[string]map[codes.Code]bool{
		"Commit":            {codes.Unavailable: true, codes.ResourceExhausted: true},
		"BeginTransaction":  {codes.Unavailable: true, codes.ResourceExhausted: true, codes.Internal: true, codes.DeadlineExceeded: true},
		"RunQuery":          {codes.Unavailable: true, codes.Internal: true, codes.DeadlineExceeded: true},
		"BatchGetDocuments": {codes.Unavailable: true, codes.Internal: true, codes.DeadlineExceeded: true},
	}
	// What a commit with preconditions answers is a conflict, unless it persists.
	conflict := map[codes.Code]lock.Code{
		codes.NotFound:           lock.CodeServiceUnavailable,
		codes.AlreadyExists:      lock.CodeServiceUnavailable,
		codes.FailedPrecondition: lock.CodeInvalidArgument,
	}
	via := map[string]func(b *Backend) error{
		"BatchGetDocuments": func(b *Backend) error { _, err := b.IsLocked(bg, key); return err },
		"RunQuery":          func(b *Backend) error { _, err := b.Lookup(bg, lock.Query{LockID: lock.NewLockID()}); return err },
		"BeginTransaction": func(b *Backend) error {
			_, err := b.Extend(bg, lock.Ref{LockID: lock.NewLockID(), Key: key}, ttl)
			return err
		},
		"Commit": func(b *Backend) error {
			_, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
			return err
		},
	}
	for rpc, do := range via {
		t.Run(rpc, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Config{})
			warmUp(t, r.direct)
			for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
				if repeated[rpc][code] || (rpc == "BeginTransaction" && code == codes.Aborted) {
					continue
				}
				r.proxy.Clear()
				r.proxy.Add(faultproxy.Rule{RPC: rpc, Do: faultproxy.Fault{Before: code, Text: "documents/locks/" + key}})
				want := codeTable[code]
				if rpc == "Commit" && conflict[code] != "" {
					want = conflict[code]
				}
				err := do(r.faulty)
				e, ok := errors.AsType[*lock.Error](err)
				if !ok || e.Code != want {
					t.Errorf("%v: got %v, want %v", code, err, want)
					continue
				}
				checkNoSecrets(t, e, key) // L-ID-03
			}
		})
	}
}
