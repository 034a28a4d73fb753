package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/locktest"
	"github.com/dronefleet/dronefleet/lock/memlock"
)

// L-RTY-01
func TestOptions_Defaults(t *testing.T) {
	ttl, retries, delay, timeout, backoff, jitter, err := lock.Config()
	if err != nil || ttl != 30*time.Second || retries != 10 || delay != 100*time.Millisecond ||
		timeout != 5*time.Second || backoff != lock.BackoffExponential || jitter != lock.JitterEqual {
		t.Error(ttl, retries, delay, timeout, backoff, jitter, err)
	}
}

// L-RTY-02
func TestConfig_PauseGrows(t *testing.T) {
	ms := time.Millisecond
	for _, row := range []struct {
		n    int
		r    float64
		opts []lock.Option
		want time.Duration
	}{
		{1, 0, nil, 50 * ms},
		{1, 0.5, nil, 75 * ms},
		{3, 0, nil, 200 * ms},
		{3, 0.25, nil, 250 * ms},
		{4, 0.5, []lock.Option{lock.WithBackoff(lock.BackoffFixed)}, 75 * ms},
		{2, 0.5, []lock.Option{lock.WithJitter(lock.JitterFull)}, 100 * ms},
		{2, 0, []lock.Option{lock.WithJitter(lock.JitterFull)}, 0},
		{2, 0.9, []lock.Option{lock.WithJitter(lock.JitterNone)}, 200 * ms},
		{1_000_000, 0.9, []lock.Option{lock.WithJitter(lock.JitterNone)}, math.MaxInt64},
		{64, 0, nil, math.MaxInt64 / 2},
		{5, 0.5, []lock.Option{lock.WithRetryDelay(0)}, 0},
	} {
		got, err := lock.Pause(row.n, row.r, row.opts...)
		if err != nil || got != row.want {
			t.Errorf("try %d, r %v: %v, %v, want %v", row.n, row.r, got, err, row.want)
		}
	}
	for n := 1; n <= 1_000_000; n = n*3 + 1 {
		for _, r := range []float64{0, 0.5, math.Nextafter(1, 0)} {
			for _, j := range []lock.Jitter{lock.JitterEqual, lock.JitterFull, lock.JitterNone} {
				if got, err := lock.Pause(n, r, lock.WithJitter(j), lock.WithRetryDelay(math.MaxInt64/3)); err != nil || got < 0 {
					t.Errorf("try %d, r %v, %s: %v, %v", n, r, j, got, err)
				}
			}
		}
	}
}

// L-RTY-08, L-TIME-03
func TestOptions_RefusesNegativeValues(t *testing.T) {
	for name, opt := range map[string]lock.Option{
		"ttl zero":     lock.WithTTL(0),
		"ttl negative": lock.WithTTL(-time.Second),
		"ttl fraction": lock.WithTTL(time.Millisecond + 1),
		"retries":      lock.WithMaxRetries(-1),
		"delay":        lock.WithRetryDelay(-1),
		"timeout":      lock.WithTimeout(-1),
		"max hold":     lock.WithMaxHold(-1),
		"max hold, µs": lock.WithMaxHold(time.Millisecond - 1),
		"backoff":      lock.WithBackoff("x"),
		"jitter":       lock.WithJitter("x"),
	} {
		b := &spy{Backend: memlock.New()}
		if _, err := lock.Acquire(bg, b, "k", opt); !errors.Is(err, lock.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
		if n, _, _ := b.counts(); n != 0 {
			t.Errorf("%s: %d tries", name, n)
		}
	}
	_, err := lock.Acquire(bg, memlock.New(), "k", lock.WithTTL(29*time.Millisecond), lock.WithAutoExtend())
	if !errors.Is(err, lock.ErrInvalidArgument) {
		t.Errorf("auto-extension of a short ttl: %v", err)
	}
}

// contendedUntil is a backend whose lock is free from the n-th try on.
func contendedUntil(n int) *spy {
	s := &spy{Backend: memlock.New()}
	s.onAcquire = func(ctx context.Context, try int) (lock.AcquireResult, error) {
		if try < n {
			return lock.AcquireResult{Reason: lock.ReasonLocked}, nil
		}
		s.mu.Lock()
		req := s.acquires[try-1]
		s.mu.Unlock()
		return s.Backend.Acquire(ctx, req)
	}
	return s
}

// L-RTY-03, L-RTY-08
func TestAcquire_BoundsItsTries(t *testing.T) {
	for _, row := range []struct {
		name    string
		freeAt  int
		opts    []lock.Option
		tries   int
		timeout bool
	}{
		{"first try", 1, nil, 1, false},
		{"last try", 11, nil, 11, false},
		{"one try too many", 12, nil, 11, true},
		{"no retry", 2, []lock.Option{lock.WithMaxRetries(0)}, 1, true},
		{"no time", 1, []lock.Option{lock.WithTimeout(0)}, 0, true},
	} {
		b := contendedUntil(row.freeAt)
		h, err := lock.Acquire(bg, b, "k", append(row.opts, lock.WithRetryDelay(0))...)
		if row.timeout != errors.Is(err, lock.ErrAcquisitionTimeout) || (err == nil) != (h != nil) {
			t.Errorf("%s: %v, %v", row.name, h, err)
		}
		if tries, _, _ := b.counts(); tries != row.tries {
			t.Errorf("%s: %d tries, want %d", row.name, tries, row.tries)
		}
		if err := h.Close(); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// L-RTY-02, L-RTY-03: the pauses, on a clock that stands still.
func TestAcquire_SleepsBetweenTries(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	b := contendedUntil(4)
	done := make(chan error, 1)
	go func() {
		h, err := lock.Acquire(bg, b, "k", lock.WithClock(clock), lock.WithRand(func() float64 { return 0.5 }))
		if err == nil {
			err = h.Close()
		}
		done <- err
	}()
	for _, pause := range []time.Duration{75, 150, 300} {
		clock.WaitTimer(pause * time.Millisecond)
		clock.Advance(pause * time.Millisecond)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	// All tries share one id; retries say that the lock is probably held.
	for i, req := range b.acquires {
		if req.LockID != b.acquires[0].LockID || req.Probe != (i > 0) {
			t.Errorf("try %d: %+v", i+1, req) // L-RTY-05, L-ACQ-08
		}
	}
}

// signals is a backend that tells whoever waits that the lock is free.
type signals struct {
	*spy
	free chan struct{}
}

func (s signals) Watch(string) (<-chan struct{}, func()) { return s.free, func() {} }

// B-07: who is told of a release expects a free lock, and tries at once without a look.
func TestAcquire_DoesNotProbeAfterASignal(t *testing.T) {
	b := signals{&spy{Backend: memlock.New()}, make(chan struct{}, 1)}
	b.onAcquire = func(ctx context.Context, n int) (lock.AcquireResult, error) {
		if n == 1 {
			b.free <- struct{}{}
			return lock.AcquireResult{Reason: lock.ReasonLocked}, nil
		}
		return b.Backend.Acquire(ctx, b.acquires[n-1])
	}
	h, err := lock.Acquire(bg, b, "k", lock.WithRetryDelay(time.Hour), lock.WithTimeout(2*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if len(b.acquires) != 2 || b.acquires[1].Probe {
		t.Errorf("tries %+v", b.acquires)
	}
}

// B-06: the end of the holder's lease shortens the pause, never lengthens it.
func TestAcquire_WakesWhenTheLeaseEnds(t *testing.T) {
	clock := locktest.NewClock(time.UnixMilli(1_000_000))
	b := &spy{Backend: memlock.New()}
	b.onAcquire = func(context.Context, int) (lock.AcquireResult, error) {
		return lock.AcquireResult{Reason: lock.ReasonLocked, HolderExpiresAtMs: clock.Now().UnixMilli() - 990}, nil
	}
	done := make(chan error, 1)
	go func() {
		_, err := lock.Acquire(bg, b, "k", lock.WithClock(clock), lock.WithMaxRetries(1), lock.WithRand(func() float64 { return 0.5 }))
		done <- err
	}()
	clock.WaitTimer(35 * time.Millisecond)
	clock.Advance(35 * time.Millisecond) // 10 ms to the end of the tolerance, 25 ms of jitter
	if err := <-done; !errors.Is(err, lock.ErrAcquisitionTimeout) {
		t.Error(err)
	}
}

// B-06: another writer may store an end in the far future. The pauses are then those of
// the backoff: the sum of end and tolerance must not overflow and use up the tries.
func TestAcquire_PollsALockThatNeverExpires(t *testing.T) {
	for _, forEver := range []int64{1<<53 - 1, math.MaxInt64} { // JavaScript's greatest integer, and ours
		clock := locktest.NewClock(time.UnixMilli(1_000_000))
		b := &spy{Backend: memlock.New()}
		b.onAcquire = func(context.Context, int) (lock.AcquireResult, error) {
			return lock.AcquireResult{Reason: lock.ReasonLocked, HolderExpiresAtMs: forEver}, nil
		}
		done := make(chan error, 1)
		go func() {
			_, err := lock.Acquire(bg, b, "k", lock.WithClock(clock), lock.WithMaxRetries(1), lock.WithRand(func() float64 { return 0.5 }))
			done <- err
		}()
		asleep := make(chan struct{})
		go func() { clock.WaitTimer(75 * time.Millisecond); close(asleep) }()
		select {
		case err := <-done:
			t.Errorf("until %d: tried again at once: %v", forEver, err)
			continue
		case <-asleep:
		}
		clock.Advance(75 * time.Millisecond)
		if err := <-done; !errors.Is(err, lock.ErrAcquisitionTimeout) {
			t.Error(err)
		}
	}
}

// B-06: the clock that decides is slightly behind the local one. The lock is taken soon after
// it is free: a full pause may outlast the budget, and trying every few milliseconds would use
// up the tries.
func TestAcquire_RetriesSoonAfterTheLocalEnd(t *testing.T) {
	clock := locktest.NewClock(time.UnixMilli(1_000_000))
	const behind = 120 * time.Millisecond
	end := clock.Now().Add(10 * time.Millisecond) // of the lease, tolerance included
	b := &spy{Backend: memlock.New()}
	b.onAcquire = func(_ context.Context, try int) (lock.AcquireResult, error) {
		if clock.Now().Before(end.Add(behind)) {
			return lock.AcquireResult{Reason: lock.ReasonLocked, HolderExpiresAtMs: end.Add(-lock.Tolerance).UnixMilli()}, nil
		}
		return lock.AcquireResult{OK: true, LockID: lock.NewLockID(), Deadline: clock.Now().Add(time.Minute)}, nil
	}
	done := make(chan error, 1)
	go func() {
		h, err := lock.Acquire(bg, b, "k", lock.WithClock(clock), lock.WithRetryDelay(2*time.Second), lock.WithRand(func() float64 { return 0 }))
		done <- errors.Join(err, h.Close())
	}()
	for _, pause := range []time.Duration{10, 50, 50, 100} { // then the end is past by 0, 50, 100 and 200 ms
		asleep := make(chan struct{})
		go func() { clock.WaitTimer(pause * time.Millisecond); close(asleep) }()
		select {
		case <-asleep:
		case <-time.After(time.Minute):
			t.Fatalf("no pause of %d ms", pause)
		}
		clock.Advance(pause * time.Millisecond)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// B-06: a lease that is over by the local clock may still be live by the one that decides.
// Tries then wait, at most as long as usual, or they would be used up at once.
func TestAcquire_WaitsThoughTheLocalEndIsPast(t *testing.T) {
	for _, ago := range []time.Duration{lock.Tolerance, lock.Tolerance + time.Minute} {
		clock := locktest.NewClock(time.UnixMilli(1_000_000))
		b := &spy{Backend: memlock.New()}
		b.onAcquire = func(context.Context, int) (lock.AcquireResult, error) {
			return lock.AcquireResult{Reason: lock.ReasonLocked, HolderExpiresAtMs: clock.Now().Add(-ago).UnixMilli()}, nil
		}
		done := make(chan error, 1)
		go func() {
			_, err := lock.Acquire(bg, b, "k", lock.WithClock(clock), lock.WithMaxRetries(1), lock.WithRand(func() float64 { return 0 }))
			done <- err
		}()
		asleep := make(chan struct{})
		go func() { clock.WaitTimer(50 * time.Millisecond); close(asleep) }()
		select {
		case err := <-done:
			t.Errorf("%v ago: tried again at once: %v", ago, err)
			continue
		case <-asleep:
		}
		clock.Advance(50 * time.Millisecond)
		if err := <-done; !errors.Is(err, lock.ErrAcquisitionTimeout) {
			t.Error(err)
		}
	}
}

// L-RTY-03: the last pause is cut to what is left, then the budget is over.
func TestAcquire_TimeoutEndsASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := contendedUntil(100)
		start := time.Now()
		if _, err := lock.Acquire(bg, b, "k", lock.WithTimeout(10*time.Millisecond)); !errors.Is(err, lock.ErrAcquisitionTimeout) {
			t.Error(err)
		}
		if waited := time.Since(start); waited != 10*time.Millisecond {
			t.Errorf("waited %v, want 10 ms", waited)
		}
		if tries, _, _ := b.counts(); tries != 1 {
			t.Errorf("%d tries", tries)
		}
	})
}

// L-RTY-04: a hung backend ends with the budget, as AcquisitionTimeout: whether the
// lock was free is unknown.
func TestAcquire_TimeoutEndsATry(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	b := &spy{Backend: memlock.New()}
	b.onAcquire = func(ctx context.Context, _ int) (lock.AcquireResult, error) {
		<-ctx.Done()
		return lock.AcquireResult{}, &lock.Error{Code: lock.CodeAborted, OutcomeUnknown: true, Err: ctx.Err()}
	}
	for name, acquire := range map[string]func() error{
		"Acquire": func() error { _, err := lock.Acquire(bg, b, "k", lock.WithClock(clock)); return err },
		"TryAcquire": func() error {
			_, _, err := lock.TryAcquire(bg, b, "k", lock.WithClock(clock))
			return err
		},
	} {
		done := make(chan error, 1)
		go func() { done <- acquire() }()
		clock.WaitTimer(5 * time.Second)
		clock.Advance(5 * time.Second)
		err := <-done
		e, ok := errors.AsType[*lock.Error](err)
		if !errors.Is(err, lock.ErrAcquisitionTimeout) || !ok || !e.OutcomeUnknown || !strings.Contains(err.Error(), "not answered") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// L-RTY-04: a lock that is granted just as the budget or the caller's context ends is
// returned: nobody else would release it.
func TestAcquire_KeepsALeaseGrantedAtTheEnd(t *testing.T) {
	for name, acquire := range map[string]func(context.Context, lock.Backend, lock.Clock) (*lock.Handle, error){
		"Acquire": func(ctx context.Context, b lock.Backend, c lock.Clock) (*lock.Handle, error) {
			return lock.Acquire(ctx, b, "k", lock.WithClock(c))
		},
		"TryAcquire": func(ctx context.Context, b lock.Backend, c lock.Clock) (*lock.Handle, error) {
			h, _, err := lock.TryAcquire(ctx, b, "k", lock.WithClock(c))
			return h, err
		},
	} {
		for _, end := range []string{"budget", "context"} {
			ctx, cancel := context.WithCancel(bg)
			clock := locktest.NewClock(time.Now())
			b := &spy{Backend: memlock.New(memlock.WithClock(clock))}
			b.onAcquire = func(context.Context, int) (lock.AcquireResult, error) {
				if end == "budget" {
					clock.Advance(5 * time.Second)
				} else {
					cancel()
				}
				return b.Backend.Acquire(bg, b.acquires[0])
			}
			h, err := acquire(ctx, b, clock)
			if err != nil || h == nil {
				t.Errorf("%s, end of the %s: %v", name, end, err)
			} else {
				mustClose(t, h)
			}
			cancel()
		}
	}
}

// L-ACQ-06: a try may have taken the lock although its caller is gone.
func TestAcquire_CancellationKeepsAnUnknownOutcome(t *testing.T) {
	for name, acquire := range map[string]func(context.Context, lock.Backend) error{
		"Acquire":    func(ctx context.Context, b lock.Backend) error { _, err := lock.Acquire(ctx, b, "k"); return err },
		"TryAcquire": func(ctx context.Context, b lock.Backend) error { _, _, err := lock.TryAcquire(ctx, b, "k"); return err },
	} {
		ctx, cancel := context.WithCancel(bg)
		b := &spy{Backend: memlock.New()}
		b.onAcquire = func(context.Context, int) (lock.AcquireResult, error) {
			cancel()
			return lock.AcquireResult{}, &lock.Error{Code: lock.CodeServiceUnavailable, OutcomeUnknown: true}
		}
		err := acquire(ctx, b)
		if e, ok := errors.AsType[*lock.Error](err); !ok || e.Code != lock.CodeAborted || !e.OutcomeUnknown {
			t.Errorf("%s: got %v, want Aborted with unknown outcome", name, err)
		}
	}
}

// L-RTY-03, L-RTY-04: the end of the caller's context is Aborted, during a pause and
// during a try.
func TestAcquire_EndsWithItsContext(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(bg)
	done := make(chan error, 1)
	go func() {
		_, err := lock.Acquire(ctx, contendedUntil(100), "k", lock.WithClock(clock))
		done <- err
	}()
	clock.WaitTimers(1)
	cancel(cause)
	if err := <-done; !errors.Is(err, lock.ErrAborted) || !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}

	ctx, cancel = context.WithCancelCause(bg)
	b := &spy{Backend: memlock.New()}
	b.onAcquire = func(ctx context.Context, _ int) (lock.AcquireResult, error) {
		cancel(cause)
		<-ctx.Done()
		return lock.AcquireResult{}, errors.New("foreign")
	}
	if _, err := lock.Acquire(ctx, b, "k", lock.WithClock(clock)); !errors.Is(err, lock.ErrAborted) || !errors.Is(err, cause) {
		t.Error(err)
	}
	if _, err := lock.Acquire(ctx, b, "k", lock.WithClock(clock)); !errors.Is(err, lock.ErrAborted) {
		t.Error(err)
	}
	if tries, _, _ := b.counts(); tries != 1 {
		t.Errorf("%d tries, the last context had ended before", tries)
	}
}

// L-RTY-05: what an unknown outcome left behind is released by its lock id, perhaps
// after the next try. So the next try has a new id.
func TestAcquire_TakesANewIDAfterAnUnknownOutcome(t *testing.T) {
	unknown := &lock.Error{Code: lock.CodeServiceUnavailable, OutcomeUnknown: true}
	for _, row := range []struct {
		name  string
		err   *lock.Error
		opts  []lock.Option
		other bool // the next try has another id
	}{
		{"transient, outcome known", &lock.Error{Code: lock.CodeNetworkTimeout}, []lock.Option{lock.WithRetryTransient()}, false},
		{"transient, outcome unknown", unknown, []lock.Option{lock.WithRetryTransient()}, true},
		{"conflict, outcome known", &lock.Error{Code: lock.CodeServiceUnavailable, Err: lock.ErrConflict}, nil, false},
		{"conflict, outcome unknown", &lock.Error{Code: lock.CodeServiceUnavailable, OutcomeUnknown: true, Err: lock.ErrConflict}, nil, true},
	} {
		b := contendedUntil(3)
		contended := b.onAcquire
		b.onAcquire = func(ctx context.Context, try int) (lock.AcquireResult, error) {
			if try == 1 {
				return lock.AcquireResult{}, row.err
			}
			return contended(ctx, try)
		}
		h, err := lock.Acquire(bg, b, "k", append(row.opts, lock.WithRetryDelay(0))...)
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		first, second, third := b.acquires[0].LockID, b.acquires[1].LockID, b.acquires[2].LockID
		if (second != first) != row.other || third != second || h.LockID() != third {
			t.Errorf("%s: ids %s, %s, %s; the handle has %s", row.name, first, second, third, h.LockID())
		}
		mustClose(t, h)
	}
}

// L-ACQ-06: if a try may have taken the lock, the error that ends the acquisition says
// so.
func TestAcquire_ReportsTheUnknownOutcomeOfATry(t *testing.T) {
	unknown := &lock.Error{Code: lock.CodeServiceUnavailable, OutcomeUnknown: true}
	contended := lock.AcquireResult{Reason: lock.ReasonLocked}
	for _, row := range []struct {
		name    string
		first   error
		second  error
		retries int
		want    error
		unknown bool
	}{
		{"of the last", unknown, nil, 0, lock.ErrAcquisitionTimeout, true},
		{"of the one before", unknown, nil, 1, lock.ErrAcquisitionTimeout, true},
		{"before a refusal", unknown, lock.ErrAuthFailed, 1, lock.ErrAuthFailed, true},
		{"none", lock.ErrServiceUnavailable, nil, 1, lock.ErrAcquisitionTimeout, false},
	} {
		b := &spy{Backend: memlock.New()}
		b.onAcquire = func(_ context.Context, try int) (lock.AcquireResult, error) {
			if try == 1 {
				return lock.AcquireResult{}, row.first
			}
			return contended, row.second
		}
		_, err := lock.Acquire(bg, b, "k", lock.WithRetryTransient(), lock.WithRetryDelay(0), lock.WithMaxRetries(row.retries))
		if e, ok := errors.AsType[*lock.Error](err); !errors.Is(err, row.want) || !ok || e.OutcomeUnknown != row.unknown {
			t.Errorf("%s: %v, want %v, outcome unknown %v", row.name, err, row.want, row.unknown)
		}
	}
	if lock.ErrAuthFailed.(*lock.Error).OutcomeUnknown {
		t.Error("the sentinel has changed")
	}
}

// L-RTY-05
func TestAcquire_RetriesOnlyWhatItShould(t *testing.T) {
	foreign := errors.New("foreign")
	for _, row := range []struct {
		name  string
		err   error
		opts  []lock.Option
		want  error
		tries int
	}{
		{"conflict is contention", &lock.Error{Code: lock.CodeServiceUnavailable, Err: lock.ErrConflict}, nil, lock.ErrAcquisitionTimeout, 3},
		{"unavailable", lock.ErrServiceUnavailable, nil, lock.ErrServiceUnavailable, 1},
		{"timeout", lock.ErrNetworkTimeout, nil, lock.ErrNetworkTimeout, 1},
		{"unavailable, opted in", lock.ErrServiceUnavailable, []lock.Option{lock.WithRetryTransient()}, lock.ErrAcquisitionTimeout, 3},
		{"timeout, opted in", lock.ErrNetworkTimeout, []lock.Option{lock.WithRetryTransient()}, lock.ErrAcquisitionTimeout, 3},
		{"rate, opted in", lock.ErrRateLimited, []lock.Option{lock.WithRetryTransient()}, lock.ErrAcquisitionTimeout, 3},
		{"auth, opted in", lock.ErrAuthFailed, []lock.Option{lock.WithRetryTransient()}, lock.ErrAuthFailed, 1},
		{"foreign", foreign, nil, lock.ErrInternal, 1},
		{"foreign keeps its cause", foreign, nil, foreign, 1},
	} {
		b := &spy{Backend: memlock.New()}
		b.onAcquire = func(context.Context, int) (lock.AcquireResult, error) { return lock.AcquireResult{}, row.err }
		opts := append(row.opts, lock.WithMaxRetries(2), lock.WithRetryDelay(0))
		if _, err := lock.Acquire(bg, b, "k", opts...); !errors.Is(err, row.want) {
			t.Errorf("%s: %v", row.name, err)
		}
		if tries, _, _ := b.counts(); tries != row.tries {
			t.Errorf("%s: %d tries, want %d", row.name, tries, row.tries)
		}
	}
}

// L-RTY-05: an *Error that a backend wrapped ends the loop unchanged, not as Internal.
func TestAcquire_KeepsAWrappedError(t *testing.T) {
	refused := fmt.Errorf("tenant 7: %w", lock.ErrAuthFailed)
	b := &spy{Backend: memlock.New()}
	b.onAcquire = func(context.Context, int) (lock.AcquireResult, error) { return lock.AcquireResult{}, refused }
	if _, err := lock.Acquire(bg, b, "k"); err != refused {
		t.Error(err)
	}
	if _, _, err := lock.TryAcquire(bg, b, "k"); err != refused {
		t.Error(err)
	}
}

// B-07: a release in the process wakes the longest waiting acquisition.
func TestAcquire_WokenByRelease(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	b := memlock.New(memlock.WithClock(clock))
	first, err := lock.Acquire(bg, b, "k", lock.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		h, err := lock.Acquire(bg, b, "k", lock.WithClock(clock))
		if err == nil {
			err = h.Close()
		}
		done <- err
	}()
	clock.WaitTimers(2) // the first lease's end and the pause
	if ok, err := first.Release(bg); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := <-done; err != nil { // though the clock stands still
		t.Error(err)
	}
}

// L-RTY-08: arguments come before everything else.
func TestAcquire_RefusesABadKey(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	cancel()
	_, err := lock.Acquire(ctx, memlock.New(), "")
	if !errors.Is(err, lock.ErrInvalidArgument) {
		t.Error(err)
	}
	if _, _, err := lock.TryAcquire(ctx, memlock.New(), "a\xff"); !errors.Is(err, lock.ErrInvalidArgument) {
		t.Error(err)
	}
}
