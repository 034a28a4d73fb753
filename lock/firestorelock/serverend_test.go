package firestorelock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"cloud.google.com/go/firestore"
	"github.com/jonboulle/clockwork"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/conformance/lock/faultproxy"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/lock"
)

// setClock is the machine's clock after somebody set it: the wall clock is wrong, the
// monotonic one goes on. Every now and then it is set again, if it wavers.
type setClock struct {
	lock.Clock

	mu    sync.Mutex
	base  time.Time     // where it stands still; zero: it runs
	by    time.Duration // whole seconds
	steps *rand.Rand    // nil: it does not waver
}

// elapse lets time pass on a clock that stands still.
func (c *setClock) elapse(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = c.base.Add(d)
}

func (c *setClock) set(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by = by
}

func (c *setClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.steps != nil && c.steps.IntN(100) == 0 {
		steps := []time.Duration{-time.Hour, -5 * time.Second, -time.Second, 0, time.Second, 5 * time.Second, time.Hour}
		c.by = steps[c.steps.IntN(len(steps))]
	}
	now := c.base
	if now.IsZero() {
		now = c.Clock.Now()
	}
	return moveWall(now, c.by)
}

// moveWall moves the wall clock in a reading and leaves the monotonic one, which no
// function of package time does: a test cannot set the machine's clock.
func moveWall(t time.Time, by time.Duration) time.Time {
	type layout struct {
		wall uint64 // a bit for "has a monotonic reading", 33 bits of seconds, 30 of nanoseconds
		ext  int64
		loc  *time.Location
	}
	(*layout)(unsafe.Pointer(&t)).wall += uint64(int64(by/time.Second) << 30) //nolint:gosec // see above
	return t
}

func TestSetClock_MovesTheWallClockAlone(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		before := time.Now()
		c := &setClock{Clock: lock.SystemClock(), by: by}
		after := c.Now()
		if d := after.Sub(before); d < 0 || d > time.Minute {
			t.Errorf("set by %v, the monotonic clock moved by %v", by, d)
		}
		if d := after.Round(0).Sub(before.Round(0)) - by; d < 0 || d > time.Minute {
			t.Errorf("set by %v, the wall clock is %v off that", by, d)
		}
	}
}

const shortTTL = 200 * time.Millisecond

// L-END-01: the holder's clock is an hour ahead, and it dies. The next one has the lock, with
// the next fence, exactly when the lease is over by the server's clock, however wrong its own
// clock is.
func TestServerEnd_HolderAnHourAheadDies(t *testing.T) {
	for name, offset := range map[string]time.Duration{"right": 0, "an hour behind": -time.Hour, "an hour ahead": time.Hour} {
		t.Run("successor's clock "+name, func(t *testing.T) {
			t.Parallel()
			client := newClient(t, serverAddr)
			dead := newBackend(t, client, Config{Clock: skewedClock{lock.SystemClock(), time.Hour}, MaxClockSkew: -1})
			next := newBackend(t, client, Config{Clock: skewedClock{lock.SystemClock(), offset}, MaxClockSkew: -1})
			dead.guarded, next.guarded = true, true
			res, err := dead.Acquire(bg, lock.AcquireRequest{Key: key, TTL: shortTTL})
			if err != nil || !res.OK {
				t.Fatal(res, err)
			}
			taken := updateTimeOf(t, client) // the server's clock is the machine's
			end := taken.Add(shortTTL + lock.Tolerance)
			h, err := lock.Acquire(bg, next, key, lock.WithTTL(time.Minute), lock.WithTimeout(time.Minute),
				lock.WithRetryDelay(10*time.Millisecond), lock.WithBackoff(lock.BackoffFixed), lock.WithMaxRetries(math.MaxInt32))
			if err != nil {
				t.Fatal(err)
			}
			if late := time.Since(end); late > 5*time.Second {
				t.Errorf("taken %v after the lease was over", late)
			}
			if h.Fence() != "000000000000002" {
				t.Errorf("fence %s", h.Fence())
			}
			if early := end.Sub(updateTimeOf(t, client)); early >= 0 {
				t.Errorf("taken %v before the lease was over", early)
			}
			// The dead come back: what they held is gone, and they end nothing.
			ref := lock.Ref{LockID: res.LockID, Key: key}
			if ext, err := dead.Extend(bg, ref, shortTTL); ext.OK || err != nil {
				t.Error(ext, err)
			}
			if rel, err := dead.Release(bg, ref); rel.OK || err != nil {
				t.Error(rel, err)
			}
			if held, err := next.IsLocked(bg, key); !held || err != nil {
				t.Error(held, err)
			}
		})
	}
}

func updateTimeOf(t *testing.T, client *firestore.Client) time.Time {
	t.Helper()
	doc, err := client.Doc("locks/" + key).Get(bg)
	if err != nil {
		t.Fatal(err)
	}
	return doc.UpdateTime
}

// L-END-01, L-EXT-02: a lease that is over by the server's clock is over for all, and its
// holder cannot revive it, though nobody has taken it and the holder's clock shows an hour
// left.
func TestServerEnd_IsOneForAllCalls(t *testing.T) {
	r, server, clock := standingRig(t, time.Hour)
	res := mustAcquire(t, r.faulty, key)
	ref := lock.Ref{LockID: res.LockID, Key: key}
	calls := func(when string, live bool) {
		t.Helper()
		if held, err := r.faulty.IsLocked(bg, key); held != live || err != nil {
			t.Errorf("%s: locked %t, %v", when, held, err)
		}
		for _, q := range []lock.Query{{Key: key}, {LockID: res.LockID}} {
			if info, err := r.faulty.Lookup(bg, q); (info != nil) != live || err != nil {
				t.Errorf("%s: looked up %v, %v", when, info, err)
			}
		}
		if list, err := r.faulty.List(bg); (len(list) == 1) != live || err != nil {
			t.Errorf("%s: listed %v, %v", when, list, err)
		}
	}
	calls("held", true)
	clock.set(59 * time.Minute)
	for _, d := range []time.Duration{ttl, lock.Tolerance} {
		server.Advance(d)
		clock.elapse(d)
		calls("not over yet", true)
	}
	server.Advance(time.Millisecond)
	clock.elapse(time.Millisecond)
	calls("over", false)
	for _, withKey := range []bool{true, false} {
		ref := ref
		if !withKey {
			ref.Key = ""
		}
		if ext, err := r.faulty.Extend(bg, ref, ttl); ext.OK || ext.Reason != lock.ReasonExpired || err != nil {
			t.Errorf("with key %t: extended %+v, %v", withKey, ext, err)
		}
		if rel, err := r.faulty.Release(bg, ref); rel.OK || rel.Reason != lock.ReasonExpired || err != nil {
			t.Errorf("with key %t: released %+v, %v", withKey, rel, err)
		}
	}
	if next := mustAcquire(t, r.faulty, key); next.Fence != "000000000000002" {
		t.Errorf("fence %s", next.Fence)
	}
}

// standingRig is a rig with the server-time guard whose clocks stand still, the
// local one wrong by some whole seconds.
func standingRig(t *testing.T, wrongBy time.Duration) (rig, *clockwork.FakeClock, *setClock) {
	t.Helper()
	now := time.Now()
	clock := &setClock{Clock: lock.SystemClock(), base: now, by: wrongBy}
	server := clockwork.NewFakeClockAt(now)
	emulator, err := firestoreemu.Start(firestoreemu.Options{Clock: server})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := emulator.Close(); err != nil {
			t.Error(err)
		}
	})
	r := newRigAt(t, emulator.Addr(), Config{Clock: clock, MaxClockSkew: -1})
	r.faulty.guarded = true
	return r, server, clock
}

// L-END-01: the length counts with the end it was written with, and no other: peers
// that extend a lease know nothing of it.
func TestStoredLock_ServerEnd(t *testing.T) {
	const end = int64(1_800_000_000_000)
	whole := map[string]any{"ttlMs": int64(15_000), "expiresAtMs": end}
	for _, row := range []struct {
		name  string
		lease any
		want  time.Duration
	}{
		{"written with its end", whole, 15 * time.Second},
		{"integral doubles", map[string]any{"ttlMs": 15_000.0, "expiresAtMs": float64(end)}, 15 * time.Second},
		{"absent", nil, 0},
		{"of another end", map[string]any{"ttlMs": int64(15_000), "expiresAtMs": end - 1}, 0},
		{"without its end", map[string]any{"ttlMs": int64(15_000)}, 0},
		{"without a length", map[string]any{"expiresAtMs": end}, 0},
		{"no length", map[string]any{"ttlMs": int64(0), "expiresAtMs": end}, 0},
		{"negative", map[string]any{"ttlMs": int64(-1), "expiresAtMs": end}, 0},
		{"longer than any duration", map[string]any{"ttlMs": int64(math.MaxInt64), "expiresAtMs": end}, 0},
		{"as long as a duration can be", map[string]any{"ttlMs": int64(math.MaxInt64 / 1_000_000), "expiresAtMs": end}, math.MaxInt64 / 1_000_000 * time.Millisecond},
		{"a text", "15s", 0},
	} {
		s := decodeLock(map[string]any{"lockId": "id", "expiresAtMs": end, "lease": row.lease})
		if s.ttl != row.want || s.malformed != "" {
			t.Errorf("%s: %v %q, want %v", row.name, s.ttl, s.malformed, row.want)
		}
		s.updateTime = time.UnixMilli(end)
		if got := s.serverEnd(); row.want == 0 != got.IsZero() || row.want > 0 && !got.After(s.updateTime) {
			t.Errorf("%s: over at %v", row.name, got)
		}
	}
}

// L-END-01: live until the server's clock is past update time + TTL + tolerance, and
// not longer than by the end that was written.
func TestStoredLock_LiveByTheServersClock(t *testing.T) {
	updated := time.UnixMilli(1_800_000_000_000)
	s := storedLock{hasExpiry: true, expiresAtMs: updated.Add(time.Hour).UnixMilli(), ttl: ttl, updateTime: updated}
	end := updated.Add(ttl + time.Second)
	for _, row := range []struct {
		name  string
		local time.Time
		at    time.Time // by the server; zero without the guard
		live  bool
	}{
		{"at its end", updated, end, true},
		{"past it", updated, end.Add(time.Nanosecond), false},
		{"past it, by a clock that is behind", updated.Add(-time.Hour), end.Add(time.Nanosecond), false},
		{"by the local clock alone", end.Add(time.Minute), updated, true},
		{"no guard", end.Add(time.Minute), time.Time{}, true},
		{"over by the end that was written", updated.Add(2 * time.Hour), updated.Add(2 * time.Hour), false},
	} {
		if live := s.liveAt(instant{local: row.local, server: row.at}); live != row.live {
			t.Errorf("%s: live %t", row.name, live)
		}
	}
	if over := (instant{server: end.Add(time.Second)}); isLongOver(s, over) {
		t.Error("cleaned up within the cleanup guard")
	}
	if over := (instant{server: end.Add(time.Second + 1)}); !isLongOver(s, over) {
		t.Error("not cleaned up")
	}
}

// L-END-01, L-EXT-01: with the guard each acquisition and each extension writes the
// length it was asked for; without, and by SyncGuard, nothing is known of it.
func TestServerEnd_Documents(t *testing.T) {
	r, _, clock := standingRig(t, 0)
	stored := func() (map[string]any, storedLock) {
		t.Helper()
		doc, err := r.client.Doc("locks/" + key).Get(bg)
		if err != nil {
			t.Fatal(err)
		}
		return doc.Data(), lockOf(doc)
	}
	check := func(what string, wantTTL time.Duration, end int64) {
		t.Helper()
		fields, s := stored()
		want := map[string]any{"ttlMs": wantTTL.Milliseconds(), "expiresAtMs": end}
		if !reflect.DeepEqual(fields["lease"], want) || s.ttl != wantTTL || len(fields) != 6 {
			t.Errorf("%s: %v, want lease %v", what, fields, want)
		}
	}
	res := mustAcquire(t, r.faulty, key)
	check("first acquired", ttl, res.ExpiresAtMs)
	ref := lock.Ref{LockID: res.LockID, Key: key}
	for _, known := range []bool{true, false} {
		if !known {
			r.faulty.leases.Forget(ref.LockID)
		}
		for _, length := range []time.Duration{2 * ttl, ttl / 2} {
			ext, err := r.faulty.Extend(bg, ref, length)
			if err != nil || !ext.OK {
				t.Fatal(ext, err)
			}
			check(fmt.Sprintf("extended, version known %t", known), length, ext.ExpiresAtMs)
		}
	}
	mustRelease(t, r.faulty, ref)
	res = mustAcquire(t, r.faulty, key)
	check("acquired", ttl, res.ExpiresAtMs)

	// A peer without the field extends it, and takes it over.
	extendAsPeer(t, r.client, res.ExpiresAtMs+1)
	if _, s := stored(); s.ttl != 0 || !s.serverEnd().IsZero() {
		t.Errorf("extended by a peer: %+v", s)
	}
	peer := newBackend(t, r.client, Config{Clock: clock})
	clock.elapse(2 * ttl)
	mustAcquire(t, peer, key)
	if fields, s := stored(); len(fields) != 5 || s.ttl != 0 {
		t.Errorf("taken over by a peer: %v", fields)
	}
}

// extendAsPeer sets the end alone, as SyncGuard and older versions do.
func extendAsPeer(t *testing.T, client *firestore.Client, end int64) {
	t.Helper()
	if _, err := client.Doc("locks/"+key).Update(bg, []firestore.Update{{Path: "expiresAtMs", Value: end}}); err != nil {
		t.Fatal(err)
	}
}

// L-END-01: a holder never relies on its lease longer than others do, where its first
// reply was lost and its clock was set back since.
func TestServerEnd_HolderStopsFirst(t *testing.T) {
	for name, lost := range map[string]codes.Code{"run again": codes.Aborted, "outcome read": codes.Internal} {
		t.Run(name, func(t *testing.T) {
			r, server, clock := standingRig(t, time.Hour)
			warmUp(t, r.direct)
			r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{After: lost}})
			const passed = ttl / 4
			r.proxy.Add(faultproxy.Rule{RPC: "BatchGetDocuments", Skip: 1, Times: 1, Hook: func() {
				clock.set(0)
				clock.elapse(passed)
				server.Advance(passed)
			}})
			res := mustAcquire(t, r.faulty, key)
			if left := res.Deadline.Sub(clock.Now()); left > ttl-passed {
				t.Errorf("relies on it for %v more, others for %v", left, ttl-passed+lock.Tolerance)
			}
		})
	}
}

// L-END-01, L-REL-02: that a lock is gone proves nothing once others may have taken
// it by the server's clock.
func TestLostReply_ExplainsNothingAfterTheServersEnd(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	lost := lostReply{possible: true, expiresAtMs: now.Add(time.Hour).UnixMilli(), serverEnd: now}
	for _, row := range []struct {
		at   instant
		want bool
	}{
		{instant{local: now, server: now}, true},
		{instant{local: now, server: now.Add(1)}, false},
		{instant{local: now, server: now, late: 1}, false},          // an estimate
		{instant{local: now}, true},                                 // no guard
		{instant{local: now.Add(2 * time.Hour), server: now}, true}, // set since
		{instant{local: now.Add(-time.Hour), server: now.Add(2 * time.Hour)}, false},
	} {
		if got := lost.explains(row.at); got != row.want {
			t.Errorf("%+v: %t", row.at, got)
		}
	}
}

// L-END-01, B-03: a release whose reply was lost did release, though the local clock was
// set ahead before it could be made again.
func TestServerEnd_ReleaseWithALostReplyWhileTheClockIsSet(t *testing.T) {
	for _, known := range []bool{true, false} { // by version, by transaction
		r, _, clock := standingRig(t, 0)
		warmUp(t, r.direct)
		ref := lock.Ref{LockID: mustAcquire(t, r.faulty, key).LockID, Key: key}
		if !known {
			r.faulty.leases.Forget(ref.LockID)
		}
		r.proxy.Add(faultproxy.Rule{
			RPC: "Commit", Times: 1, Do: faultproxy.Fault{After: codes.Internal},
			Hook: func() { clock.set(time.Hour) },
		})
		if rel, err := r.faulty.Release(bg, ref); err != nil || !rel.OK {
			t.Errorf("known %t: %+v, %v, want released", known, rel, err)
		}
	}
}

// L-END-02: nobody takes or extends a lock by a clock that the server's answers prove
// wrong; the error says how far it is off, and nothing is written.
func TestSkewedClock_IsRefused(t *testing.T) {
	const limit = 500 * time.Millisecond
	for _, row := range []struct {
		name    string
		cfg     Config
		ahead   time.Duration // of the server
		refused bool
	}{
		{"local clock slow", Config{}, 2 * time.Second, true},
		{"local clock fast", Config{}, -2 * time.Second, true},
		{"an hour", Config{}, -time.Hour, true},
		{"in step", Config{}, 0, false},
		{"within the limit", Config{MaxClockSkew: time.Minute}, 10 * time.Second, false},
		{"over a limit of its own", Config{MaxClockSkew: time.Minute}, -2 * time.Minute, true},
		{"never refuse", Config{MaxClockSkew: -1}, 2 * time.Second, false},
		{"no guard", Config{DisableServerTimeGuard: true}, 2 * time.Second, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, row.cfg)
			ref := lock.Ref{LockID: mustAcquire(t, r.direct, key).LockID, Key: key}
			mustRelease(t, r.direct, lock.Ref{LockID: mustAcquire(t, r.direct, "known").LockID})
			r.proxy.Skew(row.ahead)
			before := r.proxy.Calls()["Commit"]
			refused := func(what string, ok bool, err error) {
				t.Helper()
				if !row.refused {
					if !ok || err != nil {
						t.Errorf("%s: %t, %v", what, ok, err)
					}
					return
				}
				var skewed *lock.ClockSkewError
				if ok || !errors.As(err, &skewed) || !errors.Is(err, lock.ErrInternal) {
					t.Fatalf("%s: %t, %v", what, ok, err)
				}
				want := limit
				if row.cfg.MaxClockSkew > 0 {
					want = row.cfg.MaxClockSkew
				}
				if off := skewed.Offset - row.ahead; off.Abs() > skewed.Uncertainty+20*time.Millisecond || skewed.Limit != want {
					t.Errorf("%s: %+v, want the offset %v", what, skewed, row.ahead)
				}
				shown := skewed.Offset.Abs().Round(time.Millisecond)
				if shown > 10*time.Second {
					shown = shown.Round(time.Second)
				}
				for _, word := range []string{shown.String(), "synchronise it (NTP)"} {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("%s: %q does not say %q", what, err, word)
					}
				}
			}
			for _, k := range []string{"known", "first"} {
				res, err := r.faulty.Acquire(bg, lock.AcquireRequest{Key: k, TTL: ttl})
				refused("acquire "+k, res.OK, err)
			}
			for _, ref := range []lock.Ref{ref, {LockID: ref.LockID}} {
				ext, err := r.faulty.Extend(bg, ref, ttl)
				refused("extend", ext.OK, err)
			}
			fresh := newBackend(t, clientOf(t, r.proxy.Addr(), r.project), row.cfg) // it knows nothing until it reads
			ext, err := fresh.Extend(bg, ref, ttl)
			refused("extend first", ext.OK, err)
			if sent := r.proxy.Calls()["Commit"] - before; row.refused && sent > 0 {
				t.Errorf("%d commits", sent)
			}
			// Giving up a lock needs no clock.
			mustRelease(t, r.faulty, ref)
		})
	}
}

// L-END-02: a clock that is set during a lease is noticed without asking the server,
// and one that is set right again is trusted at once.
func TestSkewedClock_SetDuringALease(t *testing.T) {
	r := newRig(t, Config{})
	clock := &setClock{Clock: lock.SystemClock()}
	r.faulty.clock, r.faulty.guarded = clock, true
	ref := lock.Ref{LockID: mustAcquire(t, r.faulty, key).LockID, Key: key}
	for _, by := range []time.Duration{-time.Hour, time.Hour, 0, 2 * time.Second, 0} {
		clock.set(by)
		ext, err := r.faulty.Extend(bg, ref, ttl)
		if skewed, ok := errors.AsType[*lock.ClockSkewError](err); ok != (by != 0) || ok && (skewed.Offset+by).Abs() > time.Second {
			t.Errorf("set by %v: %+v, %v", by, ext, err)
		}
		if by == 0 && !ext.OK {
			t.Errorf("set right: %+v, %v", ext, err)
		}
	}
}

// L-END-02: an offset that a slow network leaves uncertain is not held against the clock.
func TestSkewedClock_UnknownBehindASlowNetwork(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.proxy.Skew(2 * time.Second)
	r.proxy.Add(faultproxy.Rule{RPC: "BatchGetDocuments", Do: faultproxy.Fault{Delay: 3 * time.Second}})
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	if res, err := r.faulty.Acquire(ctx, lock.AcquireRequest{Key: key, TTL: time.Minute}); !res.OK || err != nil {
		t.Error(res, err)
	}
}
