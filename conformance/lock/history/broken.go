package history

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/conformance/lock/lockspec"
	"github.com/dronefleet/dronefleet/lock"
)

// broken is a sound backend, and what is done wrong with it.
type broken struct {
	lock.Backend
	*breaker
	acquire func(*breaker, lock.AcquireRequest, lock.AcquireResult) lock.AcquireResult
	release func(*breaker, lock.Ref, lock.ReleaseResult) lock.ReleaseResult
	extend  func(*breaker, lock.Ref, time.Duration, lock.ExtendResult) lock.ExtendResult
	lossy   bool // replies are lost, and calls take time
}

// breaker is what the defects know. One call is made at a time.
type breaker struct {
	sync.Mutex
	backend lock.Backend
	rng     *rand.Rand
	fences  map[string]int64 // the highest so far
	held    map[string]bool
}

var errLost = &lock.Error{Code: lock.CodeServiceUnavailable, Err: errors.New("the reply is lost")}

func (b broken) lost() error {
	if b.lossy && b.rng.Float64() < 0.02 {
		return errLost
	}
	return nil
}

// travel takes the time of a request, so that retries come one after the other.
func (b broken) travel() {
	if b.lossy {
		time.Sleep(time.Millisecond)
	}
}

func (b broken) Acquire(ctx context.Context, req lock.AcquireRequest) (lock.AcquireResult, error) {
	b.travel()
	b.Lock()
	defer b.Unlock()
	res, err := b.Backend.Acquire(ctx, req)
	if err == nil && b.acquire != nil {
		res = b.acquire(b.breaker, req, res)
	}
	if err == nil && res.OK {
		b.fences[req.Key], _ = lock.ParseFence(string(res.Fence))
	}
	return res, errors.Join(err, b.lost())
}

func (b broken) Release(ctx context.Context, ref lock.Ref) (lock.ReleaseResult, error) {
	b.travel()
	b.Lock()
	defer b.Unlock()
	res, err := b.Backend.Release(ctx, ref)
	if err == nil && b.release != nil {
		res = b.release(b.breaker, ref, res)
	}
	return res, errors.Join(err, b.lost())
}

func (b broken) Extend(ctx context.Context, ref lock.Ref, ttl time.Duration) (lock.ExtendResult, error) {
	b.travel()
	b.Lock()
	defer b.Unlock()
	res, err := b.Backend.Extend(ctx, ref, ttl)
	if err == nil && b.extend != nil {
		res = b.extend(b.breaker, ref, ttl, res)
	}
	return res, errors.Join(err, b.lost())
}

// fence is the last fence plus by.
func (b *breaker) fence(key string, by int64) lock.Fence {
	f, _ := lock.FormatFence(max(1, b.fences[key]+by))
	return f
}

// grant pretends that a lease was granted.
func (b *breaker) grant(req lock.AcquireRequest, fence lock.Fence) lock.AcquireResult {
	end := time.Now().Add(req.TTL)
	return lock.AcquireResult{OK: true, LockID: req.LockID, Fence: fence, ExpiresAtMs: end.UnixMilli(), Deadline: end}
}

// take ends the lease of a key, whoever holds it.
func (b *breaker) take(key string) {
	_, _ = lock.Break(context.Background(), b.backend, key, nil)
}

func (b *breaker) again(req lock.AcquireRequest) lock.AcquireResult {
	res, _ := b.backend.Acquire(context.Background(), req)
	return res
}

func extended(ttl time.Duration) lock.ExtendResult {
	end := time.Now().Add(ttl)
	return lock.ExtendResult{OK: true, ExpiresAtMs: end.UnixMilli(), Deadline: end}
}

// RefuseBroken shows that the check accepts traces of a sound backend, even if replies are
// lost, and refuses those of backends broken on purpose. open returns a fresh backend; within
// runs a history, in simulated time if the backend allows it.
func RefuseBroken(t *testing.T, judges lockspec.Authority, open func(*testing.T) lock.Backend, within func(*testing.T, func(*testing.T))) {
	t.Helper()
	type (
		req = lock.AcquireRequest
		ref = lock.Ref
		acq = lock.AcquireResult
		rel = lock.ReleaseResult
		ext = lock.ExtendResult
		dur = time.Duration
	)
	rows := []struct {
		name string
		broken
		want Verdict
	}{
		{"sound", broken{}, Linearizable},
		{"sound, replies lost", broken{lossy: true}, Linearizable},
		{"reuses fences", broken{acquire: func(b *breaker, r req, res acq) acq {
			if res.OK && b.rng.IntN(2) == 0 {
				res.Fence = b.fence(r.Key, 0)
			}
			return res
		}}, Violated},
		{"skips fences", broken{acquire: func(b *breaker, r req, res acq) acq {
			if res.OK {
				res.Fence = b.fence(r.Key, 2)
			}
			return res
		}}, Violated},
		{"fences fall", broken{acquire: func(b *breaker, r req, res acq) acq {
			if res.OK && b.rng.IntN(4) == 0 {
				res.Fence = b.fence(r.Key, -1)
			}
			return res
		}}, Violated},
		{"grants while held", broken{acquire: func(b *breaker, r req, res acq) acq {
			if !res.OK {
				b.take(r.Key)
				return b.again(r)
			}
			return res
		}}, Violated},
		{"takes a lease at its end, without the tolerance", broken{acquire: func(b *breaker, r req, res acq) acq {
			if !res.OK && res.HolderExpiresAtMs <= time.Now().UnixMilli() {
				b.take(r.Key)
				return b.again(r)
			}
			return res
		}}, Violated},
		{"refuses a free lock", broken{acquire: func(b *breaker, r req, res acq) acq {
			if res.OK && b.rng.IntN(20) == 0 {
				b.take(r.Key)
				return acq{Reason: lock.ReasonLocked}
			}
			return res
		}}, Violated},
		{"answers a later end than it wrote", broken{acquire: func(_ *breaker, _ req, res acq) acq {
			res.ExpiresAtMs += 500
			return res
		}}, Violated},
		{"lets the holder go on too long", broken{acquire: func(_ *breaker, _ req, res acq) acq {
			res.Deadline = res.Deadline.Add(2 * lock.Tolerance)
			return res
		}}, Violated},
		{"forgets everything", broken{acquire: func(b *breaker, r req, res acq) acq {
			if res.OK && b.fences[r.Key] > 5 {
				return b.grant(r, b.fence(r.Key, -5))
			}
			return res
		}}, Violated},
		{"leases do not expire", broken{acquire: func(b *breaker, r req, res acq) acq {
			if res.OK && b.held[r.Key] {
				b.take(r.Key)
				return acq{Reason: lock.ReasonLocked}
			}
			b.held[r.Key] = true
			return res
		}, release: func(b *breaker, r ref, res rel) rel {
			if res.OK {
				b.held[r.Key] = false
			}
			return res
		}}, Violated},
		{"releases foreign locks", broken{release: func(b *breaker, r ref, res rel) rel {
			if !res.OK {
				b.take(r.Key)
			}
			return rel{OK: true}
		}}, Violated},
		{"releases foreign locks and does not say so", broken{release: func(b *breaker, r ref, res rel) rel {
			if !res.OK {
				b.take(r.Key)
			}
			return res
		}}, Violated},
		{"says OK to every release", broken{release: func(_ *breaker, _ ref, _ rel) rel { return rel{OK: true} }}, Violated},
		{"says that nothing was released", broken{release: func(_ *breaker, _ ref, _ rel) rel {
			return rel{Reason: lock.ReasonNotFound}
		}}, Violated},
		{"releases, and keeps the lock", broken{release: func(b *breaker, r ref, res rel) rel {
			if res.OK {
				b.again(req{Key: r.Key, TTL: time.Hour, LockID: lock.NewLockID()})
			}
			return res
		}}, Violated},
		{"extends what is over", broken{extend: func(_ *breaker, _ ref, ttl dur, _ ext) ext { return extended(ttl) }}, Violated},
		{"extends foreign locks", broken{extend: func(b *breaker, r ref, ttl dur, res ext) ext {
			if !res.OK {
				if held, _ := lock.GetByKeyRaw(context.Background(), b.backend, r.Key); held != nil {
					res, _ = b.backend.Extend(context.Background(), ref{Key: r.Key, LockID: held.LockID}, ttl)
				}
			}
			return res
		}}, Violated},
		{"extends, and writes a sooner end", broken{extend: func(b *breaker, r ref, ttl dur, res ext) ext {
			if res.OK {
				_, _ = b.backend.Extend(context.Background(), r, time.Millisecond)
			}
			return res
		}}, Violated},
		{"ends the lease that it extends", broken{extend: func(b *breaker, r ref, _ dur, res ext) ext {
			_, _ = b.backend.Release(context.Background(), r)
			return res
		}}, Violated},
		{"refuses to extend", broken{extend: func(_ *breaker, _ ref, _ dur, _ ext) ext {
			return ext{Reason: lock.ReasonNotFound}
		}}, Violated},
	}
	// A history may miss a defect that no call happened to meet.
	const histories = 4
	violated := make([]int, len(rows))
	for seed := range uint64(histories) {
		recorders := make([]*Recorder, len(rows))
		within(t, func(t *testing.T) {
			var all sync.WaitGroup
			for i, row := range rows {
				backend := open(t)
				all.Go(func() { recorders[i] = brokenHistory(judges, backend, row.broken, seed) })
			}
			all.Wait()
		})
		missed := 0
		for i, row := range rows {
			got, why := recorders[i].Check(time.Minute)
			switch {
			case got == Violated && row.want == Violated && why() != "":
				violated[i]++
			case got != Linearizable:
				t.Errorf("%s, history %d: %s after %d calls, want %s\n%s", row.name, seed, got, recorders[i].Len(), row.want, why())
			}
			if row.want == Violated && violated[i] == 0 {
				missed++
			}
		}
		if missed == 0 {
			return
		}
	}
	for i, row := range rows {
		if row.want == Violated && violated[i] == 0 {
			t.Errorf("%s: %d histories are behaviours of the specification, want one that is not", row.name, histories)
		}
	}
}

// brokenHistory is what clients see in some seconds.
func brokenHistory(judges lockspec.Authority, backend lock.Backend, b broken, seed uint64) *Recorder {
	r := NewRecorder()
	b.Backend = backend
	b.breaker = &breaker{
		backend: b.Backend, rng: rand.New(rand.NewPCG(seed, 1)), fences: map[string]int64{}, held: map[string]bool{},
	}
	var clients []*Client
	for i := range 4 {
		c := &Client{Backend: b, Recorder: r, ID: i, Time: judges, Settle: func() error { return nil }}
		clients = append(clients, c)
	}
	w := Workload{Seed: seed, Keys: 2, TTL: 100 * time.Millisecond, Run: 4 * time.Second, Crashes: 0.1}
	if b.lossy {
		w.Retries = 1 // an acquisition that is given up stays, and blocks the others
	}
	w.Play(clients)
	return r
}
