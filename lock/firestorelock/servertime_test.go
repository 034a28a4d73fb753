package firestorelock

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/conformance/lock/faultproxy"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/locktest"
)

// B-02: a client whose clock is wrong by some seconds, which the proxy shows by
// shifting the server's times instead.
func TestServerTimeGuard_TrustsTheLaterClock(t *testing.T) {
	const skew = 10 * time.Second
	for name, serverAhead := range map[string]time.Duration{"local clock slow": skew, "local clock fast": -skew, "in step": 0} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{MaxClockSkew: -1})
			warmUp(t, r.direct)
			r.proxy.Skew(serverAhead)
			before := time.Now()
			res := mustAcquire(t, r.faulty, key)
			after := time.Now()

			// Written: the later of both clocks, plus the ttl.
			later := max(serverAhead, 0)
			low, high := before.Add(later+ttl).UnixMilli(), after.Add(later+ttl).UnixMilli()
			if res.ExpiresAtMs < low-500 || res.ExpiresAtMs > high+500 {
				t.Errorf("expires %d ms off", res.ExpiresAtMs-low)
			}
			// Trusted: never longer than the ttl from the attempt. A slow reply costs
			// as much of it.
			trusted := func(deadline, before, after time.Time) {
				t.Helper()
				const slack = 500 * time.Millisecond
				if low := before.Add(ttl - after.Sub(before) - slack); deadline.Before(low) || deadline.After(after.Add(ttl)) {
					t.Errorf("deadline %v after the attempt, which took %v", deadline.Sub(before), after.Sub(before))
				}
			}
			trusted(res.Deadline, before, after)
			asked := time.Now()
			ext, err := r.faulty.Extend(bg, lock.Ref{LockID: res.LockID, Key: key}, ttl)
			extended := time.Now()
			if err != nil || !ext.OK {
				t.Fatal(ext, err)
			}
			trusted(ext.Deadline, asked, extended)
			if moved := time.Duration(ext.ExpiresAtMs-res.ExpiresAtMs) * time.Millisecond; moved < before.Sub(extended) {
				t.Errorf("the extension moved the end by %v", moved)
			}
			mustRelease(t, r.faulty, lock.Ref{LockID: res.LockID, Key: key})
		})
	}
}

// B-02: the server's clock also counts for the first call of a process with a slow clock,
// on a key that was never locked.
func TestServerTimeGuard_CoversTheFirstExtension(t *testing.T) {
	r := newRig(t, Config{MaxClockSkew: -1})
	r.proxy.Skew(10 * time.Second)
	res := mustAcquire(t, r.faulty, key)
	ext, err := r.faulty.Extend(bg, lock.Ref{LockID: res.LockID, Key: key}, ttl)
	if err != nil || !ext.OK {
		t.Fatal(ext, err)
	}
	if ext.ExpiresAtMs < res.ExpiresAtMs {
		t.Errorf("the extension moved the end by %d ms", ext.ExpiresAtMs-res.ExpiresAtMs)
	}
}

// B-02: a lease is trusted by the server's time at the commit. It may be far ahead of the
// time before: the commit took long, or the clock was set.
func TestServerTimeGuard_GoesByTheCommitsTime(t *testing.T) {
	const jump = 10 * time.Second
	acquire := func(b *Backend, _ lock.Ref) (time.Time, error) {
		res, err := b.Acquire(bg, lock.AcquireRequest{Key: "free", TTL: ttl})
		return res.Deadline, err
	}
	extend := func(b *Backend, ref lock.Ref) (time.Time, error) {
		res, err := b.Extend(bg, ref, ttl)
		return res.Deadline, err
	}
	for _, row := range []struct {
		name  string
		known bool // the lock's counter, or the version of the lease
		do    func(b *Backend, ref lock.Ref) (deadline time.Time, err error)
	}{
		{"acquire", true, acquire},
		{"first acquire", false, acquire},
		{"extend", true, extend},
		{"extend elsewhere", false, extend},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, clock := guardedRig(t)
			ref := lock.Ref{LockID: mustAcquire(t, r.faulty, key).LockID, Key: key}
			if row.known {
				mustRelease(t, r.direct, lock.Ref{LockID: mustAcquire(t, r.direct, "free").LockID, Key: "free"})
			} else {
				r.faulty.leases.Forget(ref.LockID)
			}
			r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Hook: func() { r.proxy.Skew(jump) }})
			deadline, err := row.do(r.faulty, ref)
			if late := deadline.Sub(clock.Now().Add(ttl - jump)); err != nil || deadline.IsZero() || late > 0 {
				t.Errorf("deadline %v late, %v", late, err)
			}
		})
	}
}

// B-02, L-ACQ-05, L-ACQ-06: a lease that is found by a read is trusted from when the read
// was sent, however late the answer is.
func TestServerTimeGuard_CountsASlowReadFromItsRequest(t *testing.T) {
	for name, lost := range map[string]codes.Code{"run again": codes.Aborted, "outcome read": codes.Internal} {
		t.Run(name, func(t *testing.T) {
			r, clock := guardedRig(t)
			warmUp(t, r.direct)
			r.proxy.Skew(10 * time.Second) // or the end by the local clock comes first
			asked := clock.Now()
			r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{After: lost}})
			r.proxy.Add(faultproxy.Rule{RPC: "BatchGetDocuments", Skip: 1, Times: 1, Hook: func() { clock.Advance(5 * time.Second) }})
			res := mustAcquire(t, r.faulty, key)
			if late := res.Deadline.Sub(asked.Add(ttl)); late > 0 {
				t.Errorf("deadline %v late", late)
			}
		})
	}
}

// guardedRig is a rig whose local clock stands still and whose server-time guard is
// on nevertheless.
func guardedRig(t *testing.T) (rig, *locktest.Clock) {
	t.Helper()
	clock := locktest.NewClock(time.Now())
	r := newRig(t, Config{Clock: clock, MaxClockSkew: -1})
	r.faulty.guarded = true
	return r, clock
}

// B-02: a lock that is over by one clock only is not taken.
func TestServerTimeGuard_TakesOnlyWhatIsOverByBothClocks(t *testing.T) {
	for _, row := range []struct {
		name        string
		end         time.Duration // of the planted lock, from now by the local clock
		serverAhead time.Duration
		guard       bool
		free        bool
	}{
		{"over by both", -2 * time.Second, 0, true, true},
		{"live by the server", -2 * time.Second, -10 * time.Second, true, false},
		{"live by the local clock", time.Minute, 2 * time.Minute, true, false},
		{"live by the server, no guard", -2 * time.Second, -10 * time.Second, false, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, Config{DisableServerTimeGuard: !row.guard, MaxClockSkew: -1})
			warmUp(t, r.direct)
			if _, err := r.client.Doc("locks/"+key).Set(bg, lease{
				lockID: lock.NewLockID(), key: key, expiresAtMs: time.Now().Add(row.end).UnixMilli(), fence: "000000000000001",
			}.fields()); err != nil {
				t.Fatal(err)
			}
			r.proxy.Skew(row.serverAhead)
			res, err := r.faulty.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
			if err != nil || res.OK != row.free {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
}

// B-02: release and extend also treat a lease as over only if both clocks say so.
func TestServerTimeGuard_FindsALeaseOverOnlyByBothClocks(t *testing.T) {
	for _, serverAhead := range []time.Duration{0, -10 * time.Second} {
		for _, withKey := range []bool{true, false} {
			r := newRig(t, Config{MaxClockSkew: -1})
			id := lock.NewLockID()
			if _, err := r.client.Doc("locks/"+key).Set(bg, lease{
				lockID: id, key: key, expiresAtMs: time.Now().Add(-2 * time.Second).UnixMilli(), fence: "000000000000001",
			}.fields()); err != nil {
				t.Fatal(err)
			}
			r.proxy.Skew(serverAhead)
			ref := lock.Ref{LockID: id}
			if withKey {
				ref.Key = key
			}
			live := serverAhead < 0
			if res, err := r.faulty.Extend(bg, ref, time.Millisecond); err != nil || res.OK != live {
				t.Errorf("server ahead %v, key %v: extend %+v, %v", serverAhead, withKey, res, err)
			}
			if res, err := r.faulty.Release(bg, ref); err != nil || res.OK != live {
				t.Errorf("server ahead %v, key %v: release %+v, %v", serverAhead, withKey, res, err)
			}
		}
	}
}

// B-02: between its answers the server's clock is extrapolated, and a late answer does
// not set it back.
func TestServerClock_GoesOnBetweenAnswers(t *testing.T) {
	var c serverClock
	local := time.Now()
	if at, _ := c.at(local); !at.IsZero() {
		t.Errorf("%v before the first answer", at)
	}
	server := local.Add(time.Hour).Round(0)
	c.learn(server, local.Add(-time.Millisecond), local)
	c.learn(server.Add(-time.Second), local, local.Add(time.Second))
	if at, late := c.at(local.Add(2 * time.Second)); !at.Equal(server.Add(2*time.Second)) || late != time.Millisecond {
		t.Errorf("%v off, perhaps %v late", at.Sub(server.Add(2*time.Second)), late)
	}
	c.learn(server.Add(5*time.Second), local.Add(time.Second), local.Add(3*time.Second))
	if at, late := c.at(local.Add(4 * time.Second)); !at.Equal(server.Add(6*time.Second)) || late != 2*time.Second {
		t.Errorf("%v off, perhaps %v late", at.Sub(server.Add(6*time.Second)), late)
	}
}

// B-02: if the commit was slow, the lease is trusted by the commit's time.
func TestDeadlineOf_GoesByTheCommitsTime(t *testing.T) {
	local := time.Now()
	for local.Nanosecond()%1e6 == 0 { // the end is in whole milliseconds, the clock is not
		local = local.Add(time.Microsecond)
	}
	wall := local.Round(0).Truncate(time.Millisecond)
	for _, row := range []struct {
		name   string
		end    time.Duration // from the local wall clock
		commit time.Duration // the server's clock at the commit, likewise
		server bool
		want   time.Duration
	}{
		{"no guard", ttl, 0, false, ttl},
		{"in step", ttl, 0, true, ttl},
		{"slow commit", ttl, 3 * time.Second, true, ttl - 3*time.Second},
		{"server ahead, end from its clock", ttl + 5*time.Second, 5 * time.Second, true, ttl},
		{"server behind", ttl, -5 * time.Second, true, ttl},
		{"server set back, end from its clock before", ttl + 5*time.Second, 0, true, ttl},
	} {
		now := instant{local: local}
		if row.server {
			now.server = wall
		}
		deadline := now.deadlineOf(wall.Add(row.end).UnixMilli(), ttl, wall.Add(row.commit))
		if deadline.Round(0).After(wall.Add(row.end)) { // L-TIME-04
			t.Errorf("%s: %v after the end", row.name, deadline.Round(0).Sub(wall.Add(row.end)))
		}
		got := deadline.Sub(local)
		if got > row.want || got < row.want-2*time.Millisecond {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// B-02: a lease that is found in the store is trusted until its sooner end by the two
// clocks, counted from when it was asked for, and never longer than its TTL.
func TestDeadlineRead_GoesByTheSoonerEnd(t *testing.T) {
	local := time.Now()
	wall := local.Round(0).Truncate(time.Millisecond)
	for _, row := range []struct {
		name   string
		end    time.Duration // from the local wall clock
		asked  time.Duration // likewise
		server time.Duration // the server's clock at the read, likewise
		guard  bool
		want   time.Duration
	}{
		{"no guard", 3 * time.Second, 0, 5 * time.Second, false, 3 * time.Second},
		{"in step", 3 * time.Second, 0, 0, true, 3 * time.Second},
		{"server ahead", 5 * time.Second, 0, 4 * time.Second, true, time.Second},
		{"server behind", 3 * time.Second, 0, -4 * time.Second, true, 3 * time.Second},
		{"slow reply", 3 * time.Second, -2 * time.Second, 0, true, time.Second},
		{"longer than the ttl", ttl + time.Hour, 0, 0, true, ttl},
	} {
		now := instant{local: local, asked: local.Add(row.asked)}
		if row.guard {
			now.server = wall.Add(row.server)
		}
		got := now.deadlineRead(storedLock{expiresAtMs: wall.Add(row.end).UnixMilli()}, ttl).Sub(local)
		if got > row.want || got < row.want-2*time.Millisecond {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// B-09, L-CLK-01
func TestCheckClock_MeasuresOffsetAndUncertainty(t *testing.T) {
	r := newRig(t, Config{MaxClockSkew: -1})
	for skew, want := range map[time.Duration]lock.ClockLevel{
		0: lock.ClockOK, 350 * time.Millisecond: lock.ClockWarn, -350 * time.Millisecond: lock.ClockWarn,
		5 * time.Second: lock.ClockBlock, -5 * time.Second: lock.ClockBlock,
	} {
		r.proxy.Clear()
		r.proxy.Skew(skew)
		report, err := r.faulty.CheckClock(bg)
		for err == nil && report.Uncertainty > 100*time.Millisecond { // a machine this slow tells no level from another
			r.proxy.Clear()
			r.proxy.Skew(skew)
			report, err = r.faulty.CheckClock(bg)
		}
		if err != nil || report.Level != want {
			t.Errorf("%v: %+v, %v", skew, report, err)
		}
		if off := report.Offset - skew; off.Abs() > report.Uncertainty+20*time.Millisecond {
			t.Errorf("%v: measured %v +- %v", skew, report.Offset, report.Uncertainty)
		}
		if n := r.proxy.Calls()["BatchGetDocuments"]; n != 5 {
			t.Errorf("%d reads", n)
		}
	}
}

func TestClockLevelOf_GradesSkew(t *testing.T) {
	ms := time.Millisecond
	for _, row := range []struct {
		offset, uncertainty time.Duration
		want                lock.ClockLevel
	}{
		{199 * ms, 0, lock.ClockOK}, {-199 * ms, 0, lock.ClockOK}, {200 * ms, 50 * ms, lock.ClockWarn}, {-200 * ms, 0, lock.ClockWarn},
		{499 * ms, 0, lock.ClockWarn}, {500 * ms, 0, lock.ClockBlock}, {-500 * ms, 0, lock.ClockBlock}, {520 * ms, 30 * ms, lock.ClockWarn},
	} {
		if got := lock.ClockLevelOf(row.offset, row.uncertainty); got != row.want {
			t.Errorf("%v +- %v: %s, want %s", row.offset, row.uncertainty, got, row.want)
		}
	}
}
