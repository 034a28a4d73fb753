package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/locktest"
	"github.com/dronefleet/dronefleet/lock/memlock"
)

func mustAcquire(t *testing.T, b lock.Backend, opts ...lock.Option) *lock.Handle {
	t.Helper()
	h, err := lock.Acquire(bg, b, "k", opts...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func mustClose(t *testing.T, h *lock.Handle) {
	t.Helper()
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// failures collects what OnReleaseError is told.
type failures struct {
	mu   sync.Mutex
	errs []error
	info []lock.ReleaseFailure
}

func (f *failures) option() lock.Option {
	return lock.WithOnReleaseError(func(err error, info lock.ReleaseFailure) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.errs, f.info = append(f.errs, err), append(f.info, info)
	})
}

func (f *failures) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.errs)
}

// L-HND-01
func TestHandle_ReleasesOnce(t *testing.T) {
	b := &spy{Backend: memlock.New()}
	h := mustAcquire(t, b)
	var wg sync.WaitGroup
	var released atomic.Int32
	for range 8 {
		wg.Go(func() {
			if ok, err := h.Release(bg); err != nil {
				t.Error(err)
			} else if ok {
				released.Add(1)
			}
		})
		wg.Go(func() { mustClose(t, h) })
	}
	wg.Wait()
	if _, n, _ := b.counts(); n != 1 || released.Load() > 1 {
		t.Errorf("%d backend releases, %d OK", n, released.Load())
	}
	if ok, err := h.Release(bg); ok || err != nil {
		t.Error(ok, err)
	}
}

// L-HND-01, L-HND-02
func TestHandle_FailedReleaseIsFinal(t *testing.T) {
	b := &spy{Backend: memlock.New()}
	boom := errors.New("boom")
	b.onRelease = func(context.Context) (lock.ReleaseResult, error) { return lock.ReleaseResult{}, boom }
	var f failures
	h := mustAcquire(t, b, f.option())
	if ok, err := h.Release(bg); ok || !errors.Is(err, boom) {
		t.Error(ok, err)
	}
	if ok, err := h.Release(bg); ok || err != nil {
		t.Error(ok, err)
	}
	mustClose(t, h)
	if _, n, _ := b.counts(); n != 1 || f.count() != 0 {
		t.Errorf("%d backend releases, %d reports", n, f.count())
	}
}

// L-HND-03
func TestHandle_CloseReportsOnce(t *testing.T) {
	b := &spy{Backend: memlock.New()}
	boom := errors.New("boom")
	b.onRelease = func(context.Context) (lock.ReleaseResult, error) { return lock.ReleaseResult{}, boom }
	var f failures
	h := mustAcquire(t, b, f.option())
	if err := h.Close(); !errors.Is(err, boom) {
		t.Error(err)
	}
	mustClose(t, h)
	if f.count() != 1 {
		t.Fatalf("%d reports", f.count())
	}
	if got, want := f.info[0], (lock.ReleaseFailure{Key: "k", LockID: h.LockID(), Source: lock.SourceDisposal}); got != want {
		t.Errorf("%+v", got)
	}
}

// L-HND-03
func TestHandle_CloseWaitsForRelease(t *testing.T) {
	b := &spy{Backend: memlock.New()}
	entered, proceed := make(chan struct{}), make(chan struct{})
	b.onRelease = func(context.Context) (lock.ReleaseResult, error) {
		close(entered)
		<-proceed
		return lock.ReleaseResult{OK: true}, nil
	}
	h := mustAcquire(t, b)
	released, closed := make(chan bool, 1), make(chan error, 1)
	go func() { ok, _ := h.Release(bg); released <- ok }()
	<-entered
	go func() { closed <- h.Close() }()
	select {
	case <-closed:
		t.Error("Close did not wait")
	default:
	}
	close(proceed)
	if ok := <-released; !ok {
		t.Error("the release was not OK")
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// L-HND-04
func TestHandle_CloseEndsAtItsTimeout(t *testing.T) {
	for _, inFlight := range []bool{false, true} {
		clock := locktest.NewClock(time.Now())
		b := &spy{Backend: memlock.New(memlock.WithClock(clock))}
		entered := make(chan struct{})
		b.onRelease = func(ctx context.Context) (lock.ReleaseResult, error) {
			close(entered)
			<-ctx.Done()
			return lock.ReleaseResult{}, ctx.Err()
		}
		var f failures
		h := mustAcquire(t, b, f.option(), lock.WithClock(clock))
		released := make(chan error, 1)
		if inFlight {
			go func() { _, err := h.Release(bg); released <- err }()
			<-entered
		}
		closed := make(chan error, 1)
		go func() { closed <- h.Close() }()
		<-entered
		clock.WaitTimer(lock.DefaultCloseTimeout)
		clock.Advance(lock.DefaultCloseTimeout)
		if err := <-closed; !errors.Is(err, lock.ErrNetworkTimeout) {
			t.Errorf("in flight %v: %v", inFlight, err)
		}
		if f.count() != 1 {
			t.Errorf("in flight %v: %d reports", inFlight, f.count())
		}
		if inFlight {
			if err := <-released; err == nil {
				t.Error("the release was not cancelled")
			}
		}
		mustClose(t, h)
	}
}

// L-HND-03, L-HND-04: a release hangs and ignores its cancellation. The first Close
// reports that, the next returns nil.
func TestHandle_CloseReportsAHungReleaseOfOthersOnce(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	b := &spy{Backend: memlock.New(memlock.WithClock(clock))}
	entered, proceed := make(chan struct{}), make(chan struct{})
	b.onRelease = func(context.Context) (lock.ReleaseResult, error) {
		close(entered)
		<-proceed
		return lock.ReleaseResult{OK: true}, nil
	}
	var f failures
	h := mustAcquire(t, b, f.option(), lock.WithClock(clock))
	released := make(chan error, 1)
	go func() { _, err := h.Release(bg); released <- err }()
	<-entered
	closeTwice(t, h, clock, &f)
	close(proceed)
	<-released
}

// closeTwice closes h beside a release that hangs: one Close reports it.
func closeTwice(t *testing.T, h *lock.Handle, clock *locktest.Clock, f *failures) {
	t.Helper()
	for _, want := range []error{lock.ErrNetworkTimeout, nil} {
		closed := make(chan error, 1)
		go func() { closed <- h.Close() }()
		clock.WaitTimer(lock.DefaultCloseTimeout)
		clock.Advance(lock.DefaultCloseTimeout)
		if err := <-closed; !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if f.count() != 1 {
		t.Errorf("%d reports", f.count())
	}
}

// L-HND-03, L-HND-04: the same where Close itself made the release.
func TestHandle_CloseReportsAHungReleaseOnce(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	b := &spy{Backend: memlock.New(memlock.WithClock(clock))}
	proceed := make(chan struct{})
	b.onRelease = func(context.Context) (lock.ReleaseResult, error) {
		<-proceed
		return lock.ReleaseResult{OK: true}, nil
	}
	defer close(proceed)
	var f failures
	h := mustAcquire(t, b, f.option(), lock.WithClock(clock))
	closeTwice(t, h, clock, &f)
}

// L-HND-04: WithCloseTimeout replaces the default.
func TestHandle_CloseTimeoutIsConfigurable(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	b := &spy{Backend: memlock.New(memlock.WithClock(clock))}
	b.onRelease = func(ctx context.Context) (lock.ReleaseResult, error) {
		<-ctx.Done()
		return lock.ReleaseResult{}, ctx.Err()
	}
	h := mustAcquire(t, b, lock.WithClock(clock), lock.WithCloseTimeout(time.Second))
	closed := make(chan error, 1)
	go func() { closed <- h.Close() }()
	clock.WaitTimer(time.Second)
	clock.Advance(time.Second)
	if err := <-closed; !errors.Is(err, lock.ErrNetworkTimeout) {
		t.Error(err)
	}
}

// L-HND-04
func TestHandle_CloseWaitsWithoutTimeout(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	b := &spy{Backend: memlock.New(memlock.WithClock(clock))}
	proceed := make(chan struct{})
	b.onRelease = func(context.Context) (lock.ReleaseResult, error) {
		<-proceed
		return lock.ReleaseResult{OK: true}, nil
	}
	h := mustAcquire(t, b, lock.WithClock(clock), lock.WithCloseTimeout(-1))
	closed := make(chan error, 1)
	go func() { closed <- h.Close() }()
	clock.Advance(time.Hour)
	close(proceed)
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// L-HND-05
func TestHandle_DoesNothingAfterRelease(t *testing.T) {
	b := &spy{Backend: memlock.New()}
	h := mustAcquire(t, b)
	if ok, err := h.Release(bg); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := h.Extend(bg, time.Minute); ok || err != nil {
		t.Error(ok, err)
	}
	if _, _, n := b.counts(); n != 0 {
		t.Errorf("%d extensions", n)
	}
	if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrClosed) {
		t.Error(cause)
	}
}

// L-HND-05: nil, or the zero value that somebody embeds.
func TestHandle_NilDoesNothing(t *testing.T) {
	for name, h := range map[string]*lock.Handle{"nil": nil, "zero": {}} {
		if ok, err := h.Extend(bg, time.Minute); ok || err != nil {
			t.Error(name, ok, err)
		}
		if ok, err := h.Release(bg); ok || err != nil {
			t.Error(name, ok, err)
		}
		if err := h.Close(); err != nil {
			t.Error(name, err)
		}
		if h.LockID() != "" || h.Key() != "" || h.Fence() != "" || !h.ExpiresAt().IsZero() {
			t.Errorf("a %s handle holds something", name)
		}
		if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrClosed) {
			t.Errorf("the context of a %s handle ended with %v", name, cause)
		}
	}
}

// L-HND-06
func TestHandle_LogsWithoutCallback(t *testing.T) {
	var log strings.Builder
	b := &spy{Backend: memlock.New()}
	b.onRelease = func(context.Context) (lock.ReleaseResult, error) {
		return lock.ReleaseResult{}, fmt.Errorf("documents/locks/payment:42: %w", lock.ErrServiceUnavailable)
	}
	h := mustAcquire(t, b, lock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if err := h.Close(); err == nil {
		t.Error("no error")
	}
	text := log.String()
	if strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "source=disposal") || !strings.Contains(text, "ServiceUnavailable") {
		t.Error(text)
	}
	if strings.Contains(text, h.LockID()) || strings.Contains(text, "payment:42") { // L-ID-03
		t.Error("the log reveals the lock id, or the key that somebody wrapped around the error")
	}
}

// L-RTY-07
func TestHandle_SurvivesAPanickingCallback(t *testing.T) {
	b := &spy{Backend: memlock.New()}
	b.onRelease = func(context.Context) (lock.ReleaseResult, error) {
		return lock.ReleaseResult{}, errors.New("boom")
	}
	h := mustAcquire(t, b, lock.WithOnReleaseError(func(error, lock.ReleaseFailure) { panic("callback") }))
	if err := h.Close(); err == nil {
		t.Error("no error")
	}
}

func TestHandle_ExtendMovesTheDeadline(t *testing.T) {
	clock := locktest.NewClock(time.Now().Truncate(time.Millisecond))
	b := memlock.New(memlock.WithClock(clock))
	h := mustAcquire(t, b, lock.WithClock(clock), lock.WithTTL(time.Second))
	clock.Advance(900 * time.Millisecond)
	if ok, err := h.Extend(bg, time.Second); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if !h.ExpiresAt().Equal(clock.Now().Add(time.Second)) {
		t.Error(h.ExpiresAt())
	}
	clock.Advance(900 * time.Millisecond)
	if h.Context().Err() != nil {
		t.Error("the context ended with the old end")
	}
	if _, err := h.Extend(bg, 0); !errors.Is(err, lock.ErrInvalidArgument) {
		t.Error(err)
	}
	// B-01, L-TIME-04: without auto-extension it ends at the deadline exactly.
	clock.Advance(99 * time.Millisecond)
	if h.Context().Err() != nil {
		t.Error("ended early")
	}
	clock.Advance(time.Millisecond)
	if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrLeaseUnproven) {
		t.Error(cause)
	}
	mustClose(t, h)
}

// A handle names its key, so that the backend need not search for the id.
func TestHandle_NamesItsKey(t *testing.T) {
	var j journal
	o := lock.WithTelemetry(memlock.New(), &j)
	h := mustAcquire(t, o)
	if ok, err := h.Extend(bg, time.Minute); !ok || err != nil {
		t.Error(ok, err)
	}
	mustClose(t, h)
	mustDrain(t, o)
	for _, e := range j.events {
		if e.KeyHash != lock.HashKey("k") || e.LockIDHash != lock.HashKey(h.LockID()) {
			t.Errorf("%+v", e)
		}
	}
}

// L-TIME-04: if the backend gives no deadline, the lease lasts the TTL from when the
// backend was asked. An extension that ends after the release starts no timer.
func TestHandle_CountsTheTTLIfABackendGivesNoDeadline(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	b := &spy{Backend: memlock.New(memlock.WithClock(clock))}
	var h *lock.Handle
	b.onExtend = func(_ context.Context, n int) (lock.ExtendResult, error) {
		if n == 2 {
			if ok, err := h.Release(bg); !ok || err != nil {
				t.Error(ok, err)
			}
		}
		return lock.ExtendResult{OK: true, ExpiresAtMs: clock.Now().Add(time.Minute).UnixMilli()}, nil
	}
	h = mustAcquire(t, b, lock.WithClock(clock), lock.WithTTL(2*time.Minute))
	for range 2 {
		if ok, err := h.Extend(bg, time.Minute); !ok || err != nil {
			t.Error(ok, err)
		}
		clock.Advance(59 * time.Second)
	}
	if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrClosed) {
		t.Error(cause)
	}
	if clock.Timers() != 0 {
		t.Errorf("%d timers are left", clock.Timers())
	}
}

// L-TIME-04: an extension that failed may have been applied, so the handle counts on
// the sooner of the old and the new end.
func TestHandle_CountsTheSoonerEndAfterAFailedExtension(t *testing.T) {
	for _, row := range []struct {
		name    string
		ttl     time.Duration // of a lease of 30 s, extended after 10 s
		applied bool
		end     time.Duration
	}{
		{"shorter, applied", 5 * time.Second, true, 15 * time.Second},
		{"shorter, not applied", 5 * time.Second, false, 15 * time.Second},
		{"longer, applied", time.Minute, true, 30 * time.Second},
		{"longer, not applied", time.Minute, false, 30 * time.Second},
	} {
		clock := locktest.NewClock(time.Now())
		mem := memlock.New(memlock.WithClock(clock))
		b := &spy{Backend: mem}
		h := mustAcquire(t, b, lock.WithClock(clock))
		b.onExtend = func(ctx context.Context, _ int) (lock.ExtendResult, error) {
			if row.applied {
				if res, err := mem.Extend(ctx, lock.Ref{LockID: h.LockID()}, row.ttl); !res.OK || err != nil {
					t.Error(res, err)
				}
			}
			return lock.ExtendResult{}, &lock.Error{Code: lock.CodeServiceUnavailable, OutcomeUnknown: true}
		}
		clock.Advance(10 * time.Second)
		if ok, err := h.Extend(bg, row.ttl); ok || !errors.Is(err, lock.ErrServiceUnavailable) {
			t.Errorf("%s: %v, %v", row.name, ok, err)
		}
		clock.Advance(row.end - 10*time.Second - time.Millisecond)
		if h.Context().Err() != nil {
			t.Errorf("%s: ended early: %v", row.name, context.Cause(h.Context()))
		}
		clock.Advance(time.Millisecond)
		if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrLeaseUnproven) {
			t.Errorf("%s: %v after %v", row.name, cause, row.end)
		}
		mustClose(t, h)
	}
}

// L-TIME-04: an extension is an error if its lease is over when the answer comes.
func TestHandle_RejectsAnExtensionAnsweredTooLate(t *testing.T) {
	for _, row := range []struct {
		took time.Duration
		late bool
	}{{time.Second - time.Millisecond, false}, {time.Second, true}} {
		clock := locktest.NewClock(time.Now())
		mem := memlock.New(memlock.WithClock(clock))
		b := &spy{Backend: mem}
		h := mustAcquire(t, b, lock.WithClock(clock))
		b.onExtend = func(ctx context.Context, _ int) (lock.ExtendResult, error) {
			res, err := mem.Extend(ctx, lock.Ref{LockID: h.LockID()}, time.Second)
			clock.Set(clock.Now().Add(row.took)) // runs no timer
			return res, err
		}
		ok, err := h.Extend(bg, time.Second)
		if ok == row.late || errors.Is(err, lock.ErrNetworkTimeout) != row.late {
			t.Errorf("after %v: %v, %v", row.took, ok, err)
		}
		if cause := context.Cause(h.Context()); errors.Is(cause, lock.ErrLeaseUnproven) != row.late {
			t.Errorf("after %v: the context ended with %v", row.took, cause)
		}
		mustClose(t, h)
	}
}

// L-TIME-04: a shorter end that was confirmed can be made longer again.
func TestHandle_ExtendMakesAShortenedLeaseLongerAgain(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	h := mustAcquire(t, memlock.New(memlock.WithClock(clock)), lock.WithClock(clock))
	for _, ttl := range []time.Duration{5 * time.Second, time.Minute} {
		if ok, err := h.Extend(bg, ttl); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	clock.Advance(59 * time.Second)
	if h.Context().Err() != nil {
		t.Error("ended with an end that was replaced")
	}
	mustClose(t, h)
	if clock.Timers() != 0 {
		t.Errorf("%d timers are left", clock.Timers())
	}
}

// serverClock is a backend whose own clock decides about expiry.
type serverClock struct{ lock.Backend }

func (b serverClock) Capabilities() lock.Capabilities {
	c := b.Backend.Capabilities()
	c.TimeAuthority = lock.ServerTime
	return c
}

// L-TIME-04: a store with its own clock may execute a late extension last. Then the
// handle must not believe in a longer lease than that one makes.
func TestHandle_BelievesNoLongerThanALateExtensionLasts(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	store := memlock.New(memlock.WithClock(clock))
	b := &spy{Backend: serverClock{store}}
	for name, answer := range map[string]func(ref lock.Ref) (lock.ExtendResult, error){
		"failed": func(lock.Ref) (lock.ExtendResult, error) { return lock.ExtendResult{}, lock.ErrNetworkTimeout },
		"sent twice": func(ref lock.Ref) (lock.ExtendResult, error) {
			res, err := store.Extend(bg, ref, 5*time.Second)
			res.Repeated = true
			return res, err
		},
	} {
		h := mustAcquire(t, b, lock.WithClock(clock))
		ref := lock.Ref{LockID: h.LockID(), Key: h.Key()}
		b.onExtend = func(context.Context, int) (lock.ExtendResult, error) { return answer(ref) }
		if ok, err := h.Extend(bg, 5*time.Second); ok != (err == nil) || err != nil && !errors.Is(err, lock.ErrNetworkTimeout) {
			t.Fatal(name, ok, err)
		}
		b.onExtend = nil
		if ok, err := h.Extend(bg, time.Minute); !ok || err != nil {
			t.Fatal(name, ok, err)
		}
		if late, err := store.Extend(bg, ref, 5*time.Second); !late.OK || err != nil {
			t.Fatal(name, late, err)
		}
		clock.Advance(5 * time.Second)
		if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrLeaseUnproven) {
			t.Errorf("%s: the context ended with %v", name, cause)
		}
		mustClose(t, h)
	}
}

// hungExtend returns a handle with automatic extension whose manual extension hangs
// and ignores its context until proceed is called. The heartbeat waits for it.
func hungExtend(t *testing.T) (h *lock.Handle, clock *locktest.Clock, proceed func()) {
	t.Helper()
	clock = locktest.NewClock(time.Now())
	b := &spy{Backend: memlock.New(memlock.WithClock(clock))}
	entered, release := make(chan struct{}), make(chan struct{})
	b.onExtend = func(_ context.Context, n int) (lock.ExtendResult, error) {
		if n == 1 {
			close(entered)
			<-release
		}
		return lock.ExtendResult{}, lock.ErrNetworkTimeout
	}
	h = mustAcquire(t, b, lock.WithClock(clock), lock.WithAutoExtend())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if ok, err := h.Extend(bg, time.Minute); ok || !errors.Is(err, lock.ErrNetworkTimeout) {
			t.Error(ok, err)
		}
	}()
	<-entered
	clock.WaitTimer(10 * time.Second)
	clock.Advance(10 * time.Second)
	clock.WaitTimer(19 * time.Second) // the heartbeat's extension has begun
	return h, clock, func() { close(release); <-done }
}

// within fails the test if something does not happen in a generous time.
func within(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error(what)
	}
}

// L-HND-01, L-CAN-01: an extension that hangs does not hold up the release.
func TestHandle_ReleasesBesideAHungExtension(t *testing.T) {
	h, _, proceed := hungExtend(t)
	released := make(chan struct{})
	go func() {
		defer close(released)
		if ok, err := h.Release(bg); !ok || err != nil {
			t.Error(ok, err)
		}
	}()
	within(t, "the release waits for the extension", released)
	proceed()
	<-released
}

// L-HND-05: an extension that waited for another one asks the backend nothing if the
// handle was released meanwhile.
func TestHandle_DoesNotExtendOnceReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &spy{Backend: memlock.New()}
		proceed := make(chan struct{})
		b.onExtend = func(context.Context, int) (lock.ExtendResult, error) {
			<-proceed
			return lock.ExtendResult{}, lock.ErrNetworkTimeout
		}
		h := mustAcquire(t, b)
		go func() { _, _ = h.Extend(bg, time.Minute) }()
		synctest.Wait()
		go func() {
			if ok, err := h.Extend(bg, time.Minute); ok || err != nil {
				t.Errorf("the extension that waited: %v, %v", ok, err)
			}
		}()
		synctest.Wait()
		mustClose(t, h)
		close(proceed)
		synctest.Wait()
		if _, _, n := b.counts(); n != 1 {
			t.Errorf("%d extensions", n)
		}
	})
}

// B-01: an extension that hangs does not delay the loss of the lease.
func TestHandle_ReportsTheLossBesideAHungExtension(t *testing.T) {
	h, clock, proceed := hungExtend(t)
	clock.Advance(19 * time.Second)
	within(t, "not lost a second before the lease ends", h.Context().Done())
	if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrLeaseUnproven) {
		t.Error(cause)
	}
	proceed()
	mustClose(t, h)
}

// L-CAN-01: waiting for another extension ends with the context. Nothing was asked, so
// the end of the lease stays.
func TestHandle_ExtendEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	cancel()
	h, clock, proceed := hungExtend(t)
	failed := make(chan struct{})
	go func() {
		defer close(failed)
		if ok, err := h.Extend(ctx, time.Second); ok || !errors.Is(err, lock.ErrAborted) {
			t.Error(ok, err)
		}
	}()
	within(t, "the extension waits for the other one", failed)
	clock.Advance(10 * time.Second)
	if h.Context().Err() != nil {
		t.Error("an extension that was not asked for ended the lease")
	}
	proceed()
	<-failed
	mustClose(t, h)
}

// L-CAN-01: with a context that has ended nothing is asked, even if no other extension
// is in flight, so the end of the lease stays.
func TestHandle_ExtendAsksNothingAfterCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	cancel()
	clock := locktest.NewClock(time.Now())
	b := &spy{Backend: memlock.New(memlock.WithClock(clock))}
	h := mustAcquire(t, b, lock.WithClock(clock))
	for range 64 { // each of which might find the end of ctx by chance
		if ok, err := h.Extend(ctx, time.Millisecond); ok || !errors.Is(err, lock.ErrAborted) {
			t.Fatal(ok, err)
		}
	}
	clock.Advance(lock.DefaultTTL - time.Millisecond)
	if _, _, n := b.counts(); n != 0 || h.Context().Err() != nil {
		t.Errorf("%d extensions; the context ended with %v", n, context.Cause(h.Context()))
	}
	mustClose(t, h)
}

func TestHandle_ExtendReportsALostLease(t *testing.T) {
	b := memlock.New()
	h := mustAcquire(t, b)
	if res, err := b.Release(bg, lock.Ref{LockID: h.LockID()}); !res.OK || err != nil {
		t.Fatal(res, err)
	}
	if ok, err := h.Extend(bg, time.Minute); ok || err != nil {
		t.Error(ok, err)
	}
	if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrOwnershipLost) {
		t.Error(cause)
	}
	mustClose(t, h)
}

// L-HND-01, L-HND-03, L-HND-05: many goroutines extend, release, close and await one
// handle at once. In every interleaving it is released once and leaves nothing behind.
func TestHandle_IsSafeForConcurrentUse(t *testing.T) {
	for round := range 50 {
		synctest.Test(t, func(t *testing.T) {
			b := &spy{Backend: memlock.New()}
			var f failures
			h := mustAcquire(t, b, lock.WithTTL(time.Second), lock.WithAutoExtend(), f.option())
			rng := rand.New(rand.NewPCG(uint64(round), 0))
			var released atomic.Int32
			var wg sync.WaitGroup
			start := make(chan struct{})
			many := func(use func()) {
				for range 4 {
					delay := time.Duration(rng.IntN(3)) * 333 * time.Millisecond // as the heartbeat, or not
					wg.Go(func() {
						<-start
						time.Sleep(delay)
						use()
					})
				}
			}
			many(func() {
				for h.Context().Err() == nil {
					if ok, err := h.Extend(bg, time.Second); err != nil || !ok && h.Context().Err() == nil {
						t.Error(ok, err, "and the context goes on")
					}
					time.Sleep(time.Duration(round) * time.Millisecond)
				}
			})
			many(func() {
				ok, err := h.Release(bg)
				if err != nil {
					t.Error(err)
				}
				if ok {
					released.Add(1)
				}
			})
			many(func() { mustClose(t, h) })
			many(func() {
				<-h.Context().Done()
				if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrClosed) {
					t.Error(cause)
				}
			})
			close(start)
			wg.Wait()
			if _, n, _ := b.counts(); n != 1 || released.Load() > 1 || f.count() != 0 {
				t.Errorf("%d backend releases, %d OK, %d reports", n, released.Load(), f.count())
			}
			if locked, err := b.IsLocked(bg, "k"); locked || err != nil {
				t.Errorf("still locked: %v, %v", locked, err)
			}
			if ok, err := h.Extend(bg, time.Second); ok || err != nil {
				t.Error(ok, err)
			}
		})
	}
}

// The handle outlives the context of its acquisition.
func TestHandle_OutlivesTheContextOfAcquire(t *testing.T) {
	for name, acquire := range map[string]func(context.Context, lock.Backend) (*lock.Handle, error){
		"Acquire": func(ctx context.Context, b lock.Backend) (*lock.Handle, error) { return lock.Acquire(ctx, b, "k") },
		"TryAcquire": func(ctx context.Context, b lock.Backend) (*lock.Handle, error) {
			h, _, err := lock.TryAcquire(ctx, b, "k")
			return h, err
		},
	} {
		ctx, cancel := context.WithCancel(bg)
		h, err := acquire(ctx, memlock.New())
		if err != nil {
			t.Fatal(name, err)
		}
		cancel()
		if h.Context().Err() != nil {
			t.Errorf("%s: the handle ended with the context of its acquisition", name)
		}
		mustClose(t, h)
	}
}
