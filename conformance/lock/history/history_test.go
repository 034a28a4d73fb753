package history

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dronefleet/dronefleet/conformance/lock/lockspec"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/memlock"
	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// defect is what is wrong with a lock service.
type defect struct {
	sameFence   bool // the fence is not incremented
	noOwner     bool // release does not compare the owner
	noTolerance bool // leases are over for everybody at their end
}

// flawed is a lock service in memory with a defect. Each client has its own clock.
type flawed struct {
	defect

	mu    sync.Mutex
	locks map[string]*flawedLock
}

type flawedLock struct {
	lockID      string
	expiresAtMs int64
	fence       int64
}

// flawedClient is a flawed service seen with a skewed clock.
type flawedClient struct {
	lock.Backend // nothing else is called
	service      *flawed
	offset       time.Duration
}

func (c flawedClient) now() time.Time { return time.Now().Add(c.offset) }

func (c flawedClient) live(l *flawedLock) bool {
	if c.service.noTolerance {
		return l.lockID != "" && l.expiresAtMs > c.now().UnixMilli()
	}
	return l.lockID != "" && lock.IsLive(l.expiresAtMs, c.now().UnixMilli())
}

func (c flawedClient) find(key string) *flawedLock {
	if c.service.locks == nil {
		c.service.locks = make(map[string]*flawedLock)
	}
	if c.service.locks[key] == nil {
		c.service.locks[key] = &flawedLock{}
	}
	return c.service.locks[key]
}

func (c flawedClient) Acquire(_ context.Context, req lock.AcquireRequest) (lock.AcquireResult, error) {
	c.service.mu.Lock()
	defer c.service.mu.Unlock()
	l := c.find(req.Key)
	if c.live(l) {
		return lock.AcquireResult{Reason: lock.ReasonLocked}, nil
	}
	if !c.service.sameFence || l.fence == 0 {
		l.fence++
	}
	start := c.now()
	l.lockID, l.expiresAtMs = req.LockID, start.Add(req.TTL).UnixMilli()
	fence, err := lock.FormatFence(l.fence)
	return lock.AcquireResult{OK: true, LockID: req.LockID, Fence: fence, ExpiresAtMs: l.expiresAtMs, Deadline: start.Add(req.TTL)}, err
}

func (c flawedClient) Release(_ context.Context, ref lock.Ref) (lock.ReleaseResult, error) {
	c.service.mu.Lock()
	defer c.service.mu.Unlock()
	l := c.find(ref.Key)
	if !c.live(l) || (l.lockID != ref.LockID && !c.service.noOwner) {
		return lock.ReleaseResult{Reason: lock.ReasonNotFound}, nil
	}
	l.lockID = ""
	return lock.ReleaseResult{OK: true}, nil
}

func (c flawedClient) Extend(_ context.Context, ref lock.Ref, ttl time.Duration) (lock.ExtendResult, error) {
	c.service.mu.Lock()
	defer c.service.mu.Unlock()
	l := c.find(ref.Key)
	if !c.live(l) || l.lockID != ref.LockID {
		return lock.ExtendResult{Reason: lock.ReasonNotFound}, nil
	}
	start := c.now()
	l.expiresAtMs = start.Add(ttl).UnixMilli()
	return lock.ExtendResult{OK: true, ExpiresAtMs: l.expiresAtMs, Deadline: start.Add(ttl)}, nil
}

// B-05: the checker accepts a sound service and finds each defect. Time is simulated, so a slow
// machine spoils no history; but a single history may miss a defect.
func TestCheck_RejectsBrokenLocks(t *testing.T) {
	const histories = 10
	for _, row := range []struct {
		name   string
		defect defect
		want   Verdict
	}{
		{"sound", defect{}, Linearizable},
		{"fence not incremented", defect{sameFence: true}, Violated},
		{"ownership not compared", defect{noOwner: true}, Violated},
		{"tolerance missing", defect{noTolerance: true}, Violated},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			violated := 0
			for seed := range uint64(histories) {
				r := flawedHistory(t, row.defect, seed)
				got, why := r.Check(20 * time.Second)
				switch {
				case got == Violated && row.want == Violated && why() != "":
					violated++
				case got != Linearizable:
					t.Errorf("history %d: %s after %d calls, want %s\n%s", seed, got, r.Len(), row.want, why())
				}
			}
			t.Logf("%d of %d histories violated", violated, histories)
			if row.want == Violated && violated == 0 {
				t.Errorf("%d histories are linearizable, want one that is violated", histories)
			}
		})
	}
}

// B-05: a lock is taken again after tries of unknown outcome. Each try may have used
// one fence, no more.
func TestCheck_AllowsAFencePerTry(t *testing.T) {
	for _, row := range []struct {
		fence int64
		want  Verdict
	}{{1, Linearizable}, {2, Linearizable}, {3, Linearizable}, {4, Violated}} {
		r := NewRecorder()
		for i, o := range []struct {
			lockID string
			out    output
		}{
			{"a", output{unknown: true}},
			{"b", output{}},
			{"a", output{unknown: true}},
			{"b", output{}},
			{"a", output{ok: true, fence: row.fence, until: 1000}},
		} {
			at := time.Duration(10 * i)
			r.add(0, input{kind: Acquire, key: "key", lockID: o.lockID, called: int64(at), returned: int64(at + 5)}, o.out)
		}
		if got, why := r.Check(time.Minute); got != row.want {
			t.Errorf("fence %d: %s, want %s\n%s", row.fence, got, row.want, why())
		}
	}
}

// B-05: an acquisition loses its first reply, and an operator breaks its lease before it asks
// again. It finds the lock taken by another and may be tried anew, but not if the operator came
// after its answer.
func TestCheck_AllowsABrokenAcquisitionToBeRefused(t *testing.T) {
	for brokenAt, want := range map[int64]Verdict{10: Linearizable, 60: Violated} {
		r := NewRecorder()
		call := func(kind Kind, lockID string, called, returned int64, out output) {
			r.add(0, input{kind: kind, key: "key", lockID: lockID, ttl: 1000, called: called, returned: returned}, out)
		}
		call(Acquire, "a", 0, 50, output{})
		call(Break, "a", brokenAt, brokenAt+5, output{ok: true})
		call(Acquire, "b", 20, 25, output{ok: true, fence: 2, until: 1000, ends: 1000})
		call(Acquire, "a", 70, 75, output{})
		call(Acquire, "a", 80, 85, output{})
		if got, why := r.Check(time.Minute); got != want {
			t.Errorf("broken at %d: %s, want %s\n%s", brokenAt, got, want, why())
		}
	}
}

// slow is a lock service that takes its time and then grants a fence.
type slow struct {
	lock.Backend // nothing else is called
	takes        time.Duration
	fence        int64
}

func (s slow) Acquire(_ context.Context, req lock.AcquireRequest) (lock.AcquireResult, error) {
	time.Sleep(s.takes)
	fence, err := lock.FormatFence(s.fence)
	end := time.Now().Add(req.TTL)
	return lock.AcquireResult{OK: true, LockID: req.LockID, Fence: fence, ExpiresAtMs: end.UnixMilli(), Deadline: end}, err
}

// B-05: during one slow call several leases may have been granted and have ended, as
// many as the time allows; each used a fence.
func TestCheck_AllowsASlowCallSeveralFences(t *testing.T) {
	const ttl = 100 * time.Millisecond
	const life = ttl + lock.Tolerance
	for _, row := range []struct {
		takes time.Duration
		fence int64
		want  Verdict
	}{
		{life, 1, Linearizable}, {life, 2, Violated},
		{life + 1, 2, Linearizable}, {life + 1, 3, Violated},
		{2*life + 1, 3, Linearizable}, {2*life + 1, 4, Violated},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &Client{Backend: slow{takes: row.takes, fence: row.fence}, Recorder: NewRecorder()}
			if _, err := c.Acquire(t.Context(), lock.AcquireRequest{Key: "key", TTL: ttl, LockID: "a"}); err != nil {
				t.Error(err)
			}
			if got, why := c.Recorder.Check(time.Minute); got != row.want {
				t.Errorf("fence %d after %v: %s, want %s\n%s", row.fence, row.takes, got, row.want, why())
			}
		})
	}
}

// twice is a lock service that executes an extension twice, the second time when the lease
// would be over without the first, or is over in spite of it.
type twice struct {
	lock.Backend
	pause    time.Duration
	repeated bool
}

func (s twice) Extend(ctx context.Context, ref lock.Ref, ttl time.Duration) (lock.ExtendResult, error) {
	time.Sleep(ttl)
	if res, err := s.Backend.Extend(ctx, ref, ttl); err != nil || !res.OK {
		return res, err
	}
	time.Sleep(s.pause)
	res, err := s.Backend.Extend(ctx, ref, ttl)
	res.Repeated = s.repeated
	return res, err
}

// B-05: an extension that was sent twice may have taken effect twice, and no other. While it
// is under way, somebody finds the lock held because of the first.
func TestCheck_AllowsARepeatedExtensionTwoEnds(t *testing.T) {
	const ttl = 100 * time.Millisecond
	const life = ttl + lock.Tolerance
	for _, pause := range []time.Duration{life - ttl/2, 2 * life} {
		for repeated, want := range map[bool]Verdict{true: Linearizable, false: Violated} {
			synctest.Test(t, func(t *testing.T) {
				memory, recorder := memlock.New(), NewRecorder()
				c := &Client{Backend: twice{memory, pause, repeated}, Recorder: recorder, Time: lockspec.ServerTime}
				other := &Client{Backend: memory, Recorder: recorder, ID: 1, Time: lockspec.ServerTime}
				ref := lock.Ref{Key: "key", LockID: lock.NewLockID()}
				if res, err := c.Acquire(t.Context(), lock.AcquireRequest{Key: ref.Key, LockID: ref.LockID, TTL: ttl}); err != nil || !res.OK {
					t.Fatal(res, err)
				}
				time.AfterFunc(life+ttl/4, func() {
					if res, err := other.Acquire(t.Context(), lock.AcquireRequest{Key: ref.Key, LockID: lock.NewLockID(), TTL: ttl}); err != nil || res.OK {
						t.Error(res, err)
					}
				})
				if res, err := c.Extend(t.Context(), ref, ttl); err != nil || res.OK != (pause < life) {
					t.Fatal(res, err)
				}
				c.settling.Wait()
				if got, why := recorder.Check(time.Minute); got != want {
					t.Errorf("repeated %t, %s: %s, want %s\n%s", repeated, pause, got, want, why())
				}
			})
		}
	}
}

// late is a lock service that executes an extension once more, some time after its answer.
type late struct {
	lock.Backend
	pause time.Duration
}

func (s late) Extend(ctx context.Context, ref lock.Ref, ttl time.Duration) (lock.ExtendResult, error) {
	time.AfterFunc(s.pause, func() { _, _ = s.Backend.Extend(context.WithoutCancel(ctx), ref, ttl) })
	res, err := s.Backend.Extend(ctx, ref, ttl)
	res.Repeated = true
	return res, err
}

// B-05: the first sending of a repeated extension may arrive after the answer to the second,
// and end the lease later than its holder was told. Nothing may take effect after the way to
// the server has settled.
func TestCheck_AllowsARepeatedExtensionToArriveLate(t *testing.T) {
	const ttl = 100 * time.Millisecond
	const pause = ttl / 2
	for settles, want := range map[time.Duration]Verdict{pause: Linearizable, 0: Violated} {
		synctest.Test(t, func(t *testing.T) {
			memory, recorder := memlock.New(), NewRecorder()
			c := &Client{Backend: late{memory, pause}, Recorder: recorder, Time: lockspec.ServerTime, Settle: func() error {
				time.Sleep(settles)
				return nil
			}}
			other := &Client{Backend: memory, Recorder: recorder, ID: 1, Time: lockspec.ServerTime}
			ref := lock.Ref{Key: "key", LockID: lock.NewLockID()}
			if res, err := c.Acquire(t.Context(), lock.AcquireRequest{Key: ref.Key, LockID: ref.LockID, TTL: ttl}); err != nil || !res.OK {
				t.Fatal(res, err)
			}
			if res, err := c.Extend(t.Context(), ref, ttl); err != nil || !res.OK {
				t.Fatal(res, err)
			}
			time.Sleep(ttl + lock.Tolerance + pause/2)
			if res, err := other.Acquire(t.Context(), lock.AcquireRequest{Key: ref.Key, LockID: lock.NewLockID(), TTL: ttl}); err != nil || res.OK {
				t.Fatal(res, err)
			}
			c.settling.Wait()
			if got, why := recorder.Check(time.Minute); got != want {
				t.Errorf("settles after %s: %s, want %s\n%s", settles, got, want, why())
			}
		})
	}
}

// resent is a lock service that executes a release twice, and answers the second.
type resent struct {
	lock.Backend
	pause time.Duration
}

func (s resent) Release(ctx context.Context, ref lock.Ref) (lock.ReleaseResult, error) {
	if res, err := s.Backend.Release(ctx, ref); err != nil || !res.OK {
		return res, err
	}
	time.Sleep(s.pause)
	return s.Backend.Release(ctx, ref)
}

// B-03, B-05: a release whose reply was lost finds nothing after the lease's end, though it
// freed the lock before. While the lease is live such an answer is wrong.
func TestCheck_AllowsARepeatedReleaseToFindNothing(t *testing.T) {
	const ttl = 100 * time.Millisecond
	const life = ttl + lock.Tolerance
	for pause, want := range map[time.Duration]Verdict{life / 2: Violated, 2 * life: Linearizable} {
		synctest.Test(t, func(t *testing.T) {
			memory, recorder := memlock.New(), NewRecorder()
			c := &Client{Backend: resent{memory, pause}, Recorder: recorder, Time: lockspec.ServerTime}
			other := &Client{Backend: memory, Recorder: recorder, ID: 1, Time: lockspec.ServerTime}
			ref := lock.Ref{Key: "key", LockID: lock.NewLockID()}
			if res, err := c.Acquire(t.Context(), lock.AcquireRequest{Key: ref.Key, LockID: ref.LockID, TTL: ttl}); err != nil || !res.OK {
				t.Fatal(res, err)
			}
			time.AfterFunc(ttl/2, func() { // it is free already
				if res, err := other.Acquire(t.Context(), lock.AcquireRequest{Key: ref.Key, LockID: lock.NewLockID(), TTL: ttl}); err != nil || !res.OK {
					t.Error(res, err)
				}
			})
			if res, err := c.Release(t.Context(), ref); err != nil || res.OK {
				t.Fatal(res, err)
			}
			if got, why := recorder.Check(time.Minute); got != want {
				t.Errorf("%s: %s, want %s\n%s", pause, got, want, why())
			}
		})
	}
}

// B-05, L-TST-02
func TestCheck_RefusesTracesOfBrokenBackends(t *testing.T) {
	open := func(*testing.T) lock.Backend { return memlock.New() }
	RefuseBroken(t, lockspec.ClientTime, open, synctest.Test)
}

// flawedHistory is what clients with wrong clocks see of a service with the
// defect in four seconds of simulated time.
func flawedHistory(t *testing.T, d defect, seed uint64) *Recorder {
	var r *Recorder
	synctest.Test(t, func(*testing.T) {
		r = NewRecorder()
		service := &flawed{defect: d}
		var clients []*Client
		// The tolerance covers clocks half a second wrong either way, less what
		// leases lose as whole milliseconds.
		for i, offset := range []time.Duration{-499, -200, 200, 499} {
			offset *= time.Millisecond
			clients = append(clients, &Client{
				Backend: flawedClient{service: service, offset: offset}, Recorder: r, ID: i, Offset: offset, Time: lockspec.ClientTime,
			})
		}
		Workload{Seed: seed, Keys: 2, TTL: 100 * time.Millisecond, Run: 4 * time.Second, Crashes: 0.1}.Play(clients)
	})
	return r
}
