package lock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/locktest"
	"github.com/dronefleet/dronefleet/lock/memlock"
)

func isLocked(t *testing.T, b lock.Backend) bool {
	t.Helper()
	locked, err := b.IsLocked(bg, "k")
	if err != nil {
		t.Fatal(err)
	}
	return locked
}

// L-RTY-06
func TestDo_ReleasesAfterPanicAndGoexit(t *testing.T) {
	b := &spy{Backend: memlock.New()}
	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic is lost")
			}
		}()
		_ = lock.Do(bg, b, "k", func(context.Context, *lock.Handle) error { panic("boom") })
	}()
	if isLocked(t, b) {
		t.Error("held after a panic")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = lock.Do(bg, b, "k", func(context.Context, *lock.Handle) error { runtime.Goexit(); return nil })
	}()
	<-done
	if isLocked(t, b) {
		t.Error("held after Goexit")
	}
}

// L-RTY-06: the release does not depend on the caller's context.
func TestDo_ReleasesAfterCancellation(t *testing.T) {
	b := memlock.New()
	ctx, cancel := context.WithCancel(bg)
	err := lock.Do(ctx, b, "k", func(ctx context.Context, _ *lock.Handle) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if isLocked(t, b) {
		t.Error("held after cancellation")
	}
}

// L-RTY-06
func TestDo_DoesNotRunWithoutTheLock(t *testing.T) {
	b := memlock.New()
	h := mustAcquire(t, b)
	err := lock.Do(bg, b, "k", func(context.Context, *lock.Handle) error {
		t.Error("fn ran without the lock")
		return nil
	}, lock.WithMaxRetries(0))
	if !errors.Is(err, lock.ErrAcquisitionTimeout) {
		t.Error(err)
	}
	mustClose(t, h)
}

// L-RTY-07
func TestDo_ReturnsTheWorksErrorFirst(t *testing.T) {
	work, release := errors.New("work"), errors.New("release")
	b := &spy{Backend: memlock.New()}
	b.onRelease = func(context.Context) (lock.ReleaseResult, error) { return lock.ReleaseResult{}, release }
	var f failures
	runs := 0
	value, err := lock.DoValue(bg, b, "k", func(context.Context, *lock.Handle) (int, error) { runs++; return 7, work }, f.option())
	if value != 7 || err != work || runs != 1 {
		t.Error(value, err, runs)
	}
	if f.count() != 1 || !errors.Is(f.errs[0], release) || f.info[0].Source != lock.SourceDisposal {
		t.Error(f.errs, f.info)
	}

	// A release that finds nothing is not a failure.
	b = &spy{Backend: memlock.New()}
	b.onRelease = func(context.Context) (lock.ReleaseResult, error) {
		return lock.ReleaseResult{Reason: lock.ReasonExpired}, nil
	}
	f = failures{}
	if err := lock.Do(bg, b, "k", func(context.Context, *lock.Handle) error { return nil }, f.option()); err != nil || f.count() != 0 {
		t.Error(err, f.errs)
	}
}

// B-01: what ends the lease ends fn's context and shows in Do's error.
func TestDo_ReportsALeaseThatEnded(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	b := memlock.New(memlock.WithClock(clock))
	work := errors.New("work")
	for _, fnErr := range []error{nil, work} {
		err := lock.Do(bg, b, "k", func(ctx context.Context, _ *lock.Handle) error {
			clock.Advance(lock.DefaultTTL)
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), lock.ErrLeaseUnproven) {
				t.Error(context.Cause(ctx))
			}
			return fnErr
		}, lock.WithClock(clock))
		if !errors.Is(err, lock.ErrLeaseUnproven) || (fnErr != nil && !errors.Is(err, fnErr)) {
			t.Error(err)
		}
		clock.Advance(2 * time.Second)
	}
}

// B-01: a process that slept past the end of the lease learns of it by the clock,
// also if its timer has not run yet and fn has released meanwhile.
func TestDo_ReportsALeaseThatEndedBeforeItsTimer(t *testing.T) {
	for name, fn := range map[string]func(*lock.Handle){
		"returns": func(*lock.Handle) {},
		"releases": func(h *lock.Handle) {
			if _, err := h.Release(bg); err != nil {
				t.Error(err)
			}
		},
	} {
		for _, row := range []struct {
			asleep time.Duration
			want   error
		}{{lock.DefaultTTL - time.Millisecond, nil}, {lock.DefaultTTL, lock.ErrLeaseUnproven}} {
			clock := locktest.NewClock(time.Now())
			b := memlock.New(memlock.WithClock(clock))
			var work context.Context
			err := lock.Do(bg, b, "k", func(ctx context.Context, h *lock.Handle) error {
				clock.Set(clock.Now().Add(row.asleep)) // runs no timer
				fn(h)
				work = ctx
				return nil
			}, lock.WithClock(clock))
			if !errors.Is(err, row.want) {
				t.Errorf("%s after %v: %v, want %v", name, row.asleep, err, row.want)
			}
			if cause := context.Cause(work); row.want != nil && !errors.Is(cause, row.want) {
				t.Errorf("%s after %v: the context ended with %v", name, row.asleep, cause)
			}
		}
	}
}

// B-01: the lease is extended every third of its TTL.
func TestAutoExtend_ExtendsEveryThirdOfTheTTL(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	b := &spy{Backend: memlock.New(memlock.WithClock(clock))}
	err := lock.Do(bg, b, "k", func(ctx context.Context, h *lock.Handle) error {
		for i := range 12 {
			clock.WaitTimer(10 * time.Second)
			clock.Advance(10 * time.Second)
			if ctx.Err() != nil {
				t.Errorf("lost after %d extensions: %v", i, context.Cause(ctx))
			}
		}
		clock.WaitTimer(10 * time.Second)
		return nil
	}, lock.WithAutoExtend(), lock.WithClock(clock))
	if err != nil {
		t.Error(err)
	}
	if _, releases, extends := b.counts(); releases != 1 || extends != 12 {
		t.Errorf("%d extensions, %d releases", extends, releases)
	}
	if clock.Timers() != 0 {
		t.Errorf("%d timers are left", clock.Timers())
	}
}

// B-01: a lease that the work released itself was not lost, however long the work
// goes on.
func TestDo_AllowsReleaseDuringTheWork(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	b := memlock.New(memlock.WithClock(clock))
	err := lock.Do(bg, b, "k", func(_ context.Context, h *lock.Handle) error {
		if ok, err := h.Release(bg); !ok || err != nil {
			t.Error(ok, err)
		}
		clock.Advance(time.Hour)
		return nil
	}, lock.WithClock(clock))
	if err != nil {
		t.Error(err)
	}
}

// B-01: nor was one that was released during an extension, which then finds nothing
// to extend.
func TestDo_ReleasesDuringAnExtension(t *testing.T) {
	b := &spy{Backend: memlock.New()}
	entered, proceed := make(chan struct{}), make(chan struct{})
	b.onExtend = func(context.Context, int) (lock.ExtendResult, error) {
		close(entered)
		<-proceed
		return lock.ExtendResult{Reason: lock.ReasonNotFound}, nil
	}
	err := lock.Do(bg, b, "k", func(_ context.Context, h *lock.Handle) error {
		extended := make(chan error, 1)
		go func() { _, err := h.Extend(bg, time.Minute); extended <- err }()
		<-entered
		if ok, err := h.Release(bg); !ok || err != nil {
			t.Error(ok, err)
		}
		close(proceed)
		return <-extended
	})
	if err != nil {
		t.Error(err)
	}
}

// B-01: a lease is lost once. Do returns the cause that fn's context has, which is
// the first one found.
func TestDo_ReportsTheFirstLoss(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	b := &spy{Backend: memlock.New(memlock.WithClock(clock))}
	b.onExtend = func(context.Context, int) (lock.ExtendResult, error) {
		return lock.ExtendResult{Reason: lock.ReasonNotFound}, nil
	}
	err := lock.Do(bg, b, "k", func(ctx context.Context, h *lock.Handle) error {
		clock.Advance(lock.DefaultTTL)
		if ok, err := h.Extend(bg, time.Minute); ok || err != nil {
			t.Error(ok, err)
		}
		if cause := context.Cause(ctx); !errors.Is(cause, lock.ErrLeaseUnproven) {
			t.Error(cause)
		}
		return nil
	}, lock.WithClock(clock))
	if !errors.Is(err, lock.ErrLeaseUnproven) || errors.Is(err, lock.ErrOwnershipLost) {
		t.Error(err)
	}
}

// B-01
func TestAutoExtend_EndsTheWorkWhenOwnershipIsLost(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	b := memlock.New(memlock.WithClock(clock))
	err := lock.Do(bg, b, "k", func(ctx context.Context, h *lock.Handle) error {
		if res, err := b.Release(bg, lock.Ref{LockID: h.LockID()}); !res.OK || err != nil {
			t.Error(res, err)
		}
		clock.WaitTimer(10 * time.Second)
		clock.Advance(10 * time.Second)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), lock.ErrOwnershipLost) {
			t.Error(context.Cause(ctx))
		}
		clock.Advance(time.Hour) // the lease is over too by now; it was lost before
		return nil
	}, lock.WithAutoExtend(), lock.WithClock(clock))
	if !errors.Is(err, lock.ErrOwnershipLost) {
		t.Error(err)
	}
}

// B-01: errors are retried until a second before the deadline.
func TestAutoExtend_EndsTheWorkWhenTheLeaseIsUnproven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &spy{Backend: memlock.New()}
		b.onExtend = func(context.Context, int) (lock.ExtendResult, error) {
			return lock.ExtendResult{}, lock.ErrServiceUnavailable
		}
		start := time.Now()
		err := lock.Do(bg, b, "k", func(ctx context.Context, _ *lock.Handle) error {
			<-ctx.Done()
			return nil
		}, lock.WithAutoExtend())
		if !errors.Is(err, lock.ErrLeaseUnproven) {
			t.Error(err)
		}
		if after := time.Since(start); after != 29*time.Second {
			t.Errorf("given up after %v, want 29 s", after)
		}
		if _, _, extends := b.counts(); extends != 19 { // after 10 s, 11 s … 28 s
			t.Errorf("%d extensions were tried, want 19", extends)
		}
	})
}

// B-01: a hanging extension is given up before the lease ends, by a tenth of the TTL and at
// most a second. That is the old lease, or the extended one if it ends sooner.
func TestAutoExtend_EndsTheWorkWhenTheStoreHangs(t *testing.T) {
	for _, row := range []struct{ ttl, lease, patience time.Duration }{
		{30 * time.Second, 30 * time.Second, 19 * time.Second},
		{3 * time.Second, 3 * time.Second, 1700 * time.Millisecond},
		{30 * time.Second, time.Hour, 29 * time.Second},
	} {
		clock := locktest.NewClock(time.Now())
		mem := memlock.New(memlock.WithClock(clock))
		b := &spy{Backend: mem}
		b.onAcquire = func(ctx context.Context, _ int) (lock.AcquireResult, error) {
			return mem.Acquire(ctx, lock.AcquireRequest{Key: "k", TTL: row.lease})
		}
		entered := make(chan struct{})
		b.onExtend = func(ctx context.Context, _ int) (lock.ExtendResult, error) {
			close(entered)
			<-ctx.Done()
			return lock.ExtendResult{}, ctx.Err()
		}
		err := lock.Do(bg, b, "k", func(ctx context.Context, _ *lock.Handle) error {
			clock.WaitTimer(row.ttl / 3)
			clock.Advance(row.ttl / 3)
			<-entered
			clock.WaitTimer(row.patience)
			clock.Advance(row.patience)
			<-ctx.Done()
			return nil
		}, lock.WithTTL(row.ttl), lock.WithAutoExtend(), lock.WithClock(clock))
		if !errors.Is(err, lock.ErrLeaseUnproven) {
			t.Errorf("%+v: %v", row, err)
		}
	}
}

// B-01: if little of the lease is left when its reply comes, it is extended in time.
func TestAutoExtend_SurvivesSlowReplies(t *testing.T) {
	for name, took := range map[string]struct {
		acquire time.Duration
		extends []time.Duration
	}{
		"of the acquisition": {22 * time.Second, nil},
		"of extensions":      {0, []time.Duration{18 * time.Second, 2 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := memlock.New()
				b := &spy{Backend: mem}
				id := lock.NewLockID()
				b.onAcquire = func(ctx context.Context, _ int) (lock.AcquireResult, error) {
					res, err := mem.Acquire(ctx, lock.AcquireRequest{Key: "k", TTL: lock.DefaultTTL, LockID: id})
					time.Sleep(took.acquire)
					return res, err
				}
				b.onExtend = func(ctx context.Context, n int) (lock.ExtendResult, error) {
					res, err := mem.Extend(ctx, lock.Ref{LockID: id}, lock.DefaultTTL)
					if n <= len(took.extends) {
						time.Sleep(took.extends[n-1])
						err = errors.Join(err, ctx.Err())
					}
					return res, err
				}
				err := lock.Do(bg, b, "k", func(ctx context.Context, _ *lock.Handle) error {
					select {
					case <-ctx.Done():
					case <-time.After(time.Minute):
					}
					return nil
				}, lock.WithAutoExtend(), lock.WithTimeout(time.Minute))
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// B-01: after a failed extension the lease is kept if a later one succeeds.
func TestAutoExtend_RecoversFromErrors(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	b := &spy{Backend: memlock.New(memlock.WithClock(clock))}
	recovered := make(chan struct{})
	b.onExtend = func(ctx context.Context, n int) (lock.ExtendResult, error) {
		if n == 1 {
			return lock.ExtendResult{}, lock.ErrServiceUnavailable
		}
		defer close(recovered)
		return lock.ExtendResult{OK: true, ExpiresAtMs: clock.Now().Add(time.Hour).UnixMilli(), Deadline: clock.Now().Add(time.Hour)}, nil
	}
	err := lock.Do(bg, b, "k", func(ctx context.Context, _ *lock.Handle) error {
		clock.WaitTimer(10 * time.Second)
		clock.Advance(10 * time.Second)
		clock.WaitTimer(time.Second)
		clock.Advance(time.Second)
		<-recovered
		clock.WaitTimer(10 * time.Second)
		return ctx.Err()
	}, lock.WithAutoExtend(), lock.WithClock(clock))
	if err != nil {
		t.Error(err)
	}
}

// B-10
func TestMaxHold_BoundsAutoExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &spy{Backend: memlock.New()}
		start := time.Now()
		var end time.Time
		err := lock.Do(bg, b, "k", func(ctx context.Context, h *lock.Handle) error {
			<-ctx.Done()
			end = h.ExpiresAt()
			return nil
		}, lock.WithAutoExtend(), lock.WithMaxHold(45*time.Second))
		if !errors.Is(err, lock.ErrLeaseUnproven) {
			t.Error(err)
		}
		if after := time.Since(start); after != 45*time.Second {
			t.Errorf("over after %v, want 45 s", after)
		}
		if !end.Equal(start.Add(45 * time.Second)) {
			t.Errorf("the lease ended %v after it began, want 45 s", end.Sub(start))
		}
		if _, _, extends := b.counts(); extends != 2 { // by the ttl, then to the bound
			t.Errorf("%d extensions, want 2", extends)
		}
	})
}

// B-10: after a manual extension beyond the TTL automatic ones go on to the bound,
// unless the manual one went beyond that.
func TestMaxHold_AllowsManualExtension(t *testing.T) {
	for _, row := range []struct{ extension, end time.Duration }{
		{time.Minute, 2 * time.Minute},
		{time.Hour, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			err := lock.Do(bg, memlock.New(), "k", func(ctx context.Context, h *lock.Handle) error {
				if ok, err := h.Extend(bg, row.extension); !ok || err != nil {
					t.Error(ok, err)
				}
				<-ctx.Done()
				return nil
			}, lock.WithAutoExtend(), lock.WithMaxHold(2*time.Minute))
			if !errors.Is(err, lock.ErrLeaseUnproven) {
				t.Error(err)
			}
			if after := time.Since(start); after != row.end {
				t.Errorf("extended by %v: over after %v, want %v", row.extension, after, row.end)
			}
		})
	}
}

// B-10: a bound below the TTL bounds the first lease too.
func TestMaxHold_BoundsTheFirstLease(t *testing.T) {
	for _, opts := range [][]lock.Option{{lock.WithAutoExtend()}, nil} {
		clock := locktest.NewClock(time.Now())
		start := clock.Now()
		b := &spy{Backend: memlock.New(memlock.WithClock(clock))}
		h := mustAcquire(t, b, append(opts, lock.WithClock(clock), lock.WithMaxHold(1500*time.Microsecond))...)
		if end := h.ExpiresAt(); !end.Equal(start.Add(time.Millisecond)) {
			t.Errorf("the lease ends %v after it began, want the bound in whole milliseconds", end.Sub(start))
		}
		clock.Advance(time.Millisecond)
		if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrLeaseUnproven) {
			t.Errorf("at the end of the lease: %v", cause)
		}
		mustClose(t, h)
		if _, _, extends := b.counts(); extends != 0 {
			t.Errorf("%d extensions", extends)
		}
	}
}
