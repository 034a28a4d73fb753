package firestorelock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/conformance/lock/faultproxy"
	"github.com/dronefleet/dronefleet/lock"
)

// change is a call that writes, and how to tell what it did.
type change struct {
	name    string
	first   bool // the key was never locked
	held    bool // the lock is held before
	forget  bool // though the backend does not know it
	do      func(ctx context.Context, b *Backend, key, id string) error
	effects func(before, after *lock.RawInfo, id string) bool // whether it took effect
}

var changes = []change{
	{name: "first acquire", first: true, do: acquireAs, effects: isHeldAs},
	{name: "acquire", do: acquireAs, effects: isHeldAs},
	{name: "release", held: true, do: releaseKeyed, effects: isGone},
	{name: "release elsewhere", held: true, forget: true, do: releaseKeyed, effects: isGone},
	{name: "extend", held: true, do: extendKeyed, effects: isLonger},
	{name: "extend elsewhere", held: true, forget: true, do: extendKeyed, effects: isLonger},
}

func acquireAs(ctx context.Context, b *Backend, key, id string) error {
	res, err := b.Acquire(ctx, lock.AcquireRequest{Key: key, TTL: ttl, LockID: id})
	return wantOK(res.OK, res.Reason, err)
}

func releaseKeyed(ctx context.Context, b *Backend, key, id string) error {
	res, err := b.Release(ctx, lock.Ref{LockID: id, Key: key})
	return wantOK(res.OK, res.Reason, err)
}

func extendKeyed(ctx context.Context, b *Backend, key, id string) error {
	res, err := b.Extend(ctx, lock.Ref{LockID: id, Key: key}, 2*ttl)
	return wantOK(res.OK, res.Reason, err)
}

// wantOK turns OK=false into an error: nobody else holds the lock, so OK=false is wrong.
func wantOK(ok bool, reason lock.Reason, err error) error {
	if err == nil && !ok {
		return fmt.Errorf("not OK: %s", reason)
	}
	return err
}

func isHeldAs(_, after *lock.RawInfo, id string) bool { return after != nil && after.LockID == id }
func isGone(_, after *lock.RawInfo, _ string) bool    { return after == nil }
func isLonger(before, after *lock.RawInfo, _ string) bool {
	return after != nil && after.ExpiresAtMs > before.ExpiresAtMs
}

// trouble is what a call meets before its caller is cancelled.
type trouble struct {
	name    string
	commits []faultproxy.Fault // one each
	acquire bool               // only of acquisitions
	lease   bool               // only of extensions and releases: an acquisition goes on in the background
}

var troubles = []trouble{
	{name: "none"},
	{name: "refused", commits: []faultproxy.Fault{{Before: codes.FailedPrecondition}}},
	{name: "lost", commits: []faultproxy.Fault{{Before: codes.Internal}}, lease: true},
	{name: "reply lost", commits: []faultproxy.Fault{{After: codes.Internal}}},
	{name: "sent twice", commits: []faultproxy.Fault{{After: codes.Unavailable}}},
	{name: "sent twice, refused", commits: []faultproxy.Fault{{After: codes.Unavailable}, {Before: codes.PermissionDenied}}, lease: true},
	{name: "sent twice, conflict", commits: []faultproxy.Fault{{Before: codes.Unavailable}, {Before: codes.FailedPrecondition}}, acquire: true},
	{name: "applied, then aborted", commits: []faultproxy.Fault{{After: codes.Aborted}}, acquire: true},
}

// L-CAN-02, L-CAN-03, L-ACQ-06, B-03: the caller is cancelled at each request in turn. An
// outcome that is reported as known is true, and a failed acquisition releases what it locked.
func TestBackend_TellsTheTrueOutcomeWhereverItIsCancelled(t *testing.T) {
	onlyLong(t, "cancellations at every call")
	for _, c := range changes {
		for _, tr := range troubles {
			if tr.acquire && c.held || tr.lease && !c.held {
				continue
			}
			t.Run(c.name+"/"+tr.name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, Config{})
				client, conn := dial(t, r.proxy.Addr(), r.project)
				x := cancelRig{r, newBackend(t, client, Config{}), conn, c, tr}
				made := x.cancelledAt(t, "uncancelled", faultproxy.Rule{})
				delete(made, "Rollback") // a cancellation does not end it
				for _, rpc := range slices.Sorted(maps.Keys(made)) {
					for i := range made[rpc] {
						at := faultproxy.Rule{RPC: rpc, Skip: i, Times: 1}
						x.cancelledAt(t, fmt.Sprintf("%s %d, late", rpc, i), at)
						at.Do = faultproxy.Fault{Before: codes.PermissionDenied}
						x.cancelledAt(t, fmt.Sprintf("%s %d, not received", rpc, i), at)
						if rpc == "Commit" {
							at.Do = faultproxy.Fault{HoldReply: true}
							x.cancelledAt(t, fmt.Sprintf("%s %d, no reply", rpc, i), at)
						}
					}
				}
			})
		}
	}
}

type cancelRig struct {
	rig
	b    *Backend // behind the proxy
	conn *grpc.ClientConn
	change
	trouble
}

// cancelledAt makes the call on a key of its own, cancels its caller at the rule's
// request, and checks what is reported. It returns the requests made.
func (x cancelRig) cancelledAt(t *testing.T, key string, at faultproxy.Rule) map[string]int {
	t.Helper()
	id := lock.NewLockID()
	if !x.first {
		mustRelease(t, x.direct, lock.Ref{LockID: mustAcquire(t, x.direct, key).LockID, Key: key})
	}
	x.proxy.Clear()
	if x.held {
		if err := acquireAs(bg, x.b, key, id); err != nil {
			t.Fatal(err)
		}
	}
	if x.forget {
		x.b.leases.Forget(id)
	}
	before := x.stored(t, key)
	x.proxy.Clear()
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	if at.RPC != "" {
		at.Hook = cancel
		x.proxy.Add(at)
	}
	for _, f := range x.commits {
		x.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: f})
	}
	err := x.do(ctx, x.b, key, id)
	made := x.proxy.Calls()
	told := x.stored(t, key)
	settle(t, x.b)
	if err := x.proxy.Settle(bg, x.conn); err != nil {
		t.Error(err)
	}
	after := x.stored(t, key)
	e, failed := errors.AsType[*lock.Error](err)
	switch {
	case err != nil && !failed:
		t.Errorf("%s: %v", key, err)
	case err == nil && !x.effects(before, after, id):
		t.Errorf("%s: OK, but stored is %+v", key, after)
	case failed && !e.OutcomeUnknown && x.effects(before, after, id):
		t.Errorf("%s: told as known is %v, but stored is %+v", key, err, after)
	case failed && ctx.Err() != nil && e.Code != lock.CodeAborted: // L-ERR-01
		t.Errorf("%s: got %v, want Aborted", key, err)
	}
	late := at.Do == faultproxy.Fault{} // so perhaps after the release: left to its ttl
	if failed && !late && !x.held && told != nil && after != nil {
		t.Errorf("%s: %v, and still locked: %+v", key, err, after)
	}
	return made
}

// stored is the live lock of a key, nil if there is none.
func (x cancelRig) stored(t *testing.T, key string) *lock.RawInfo {
	t.Helper()
	info, err := lock.GetByKeyRaw(bg, x.direct, key)
	if err != nil {
		t.Error(err)
	}
	return info
}
