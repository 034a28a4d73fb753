package firestorelock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/conformance/lock/faultproxy"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/tasks"
	"github.com/dronefleet/dronefleet/lock/locktest"
)

// B-01: the lease is kept through faults that pass.
func TestAutoExtend_SurvivesFaults(t *testing.T) {
	t.Parallel()
	clock := locktest.NewClock(time.Now())
	r := newRig(t, Config{Clock: clock})
	extended := make(chan struct{}, 16)
	observed := lock.WithTelemetry(r.faulty, lock.ObserverFunc(func(e lock.Event) {
		if e.Type == lock.EventExtend && e.Result == lock.ResultOK {
			extended <- struct{}{}
		}
	}))
	err := lock.Do(bg, observed, key, func(ctx context.Context, _ *lock.Handle) error {
		r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 2, Do: faultproxy.Fault{Before: codes.Unknown}})
		r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 2, Do: faultproxy.Fault{After: codes.Unavailable}})
		clock.WaitTimer(ttl / 3)
		clock.Advance(ttl / 3)
		clock.WaitTimer(time.Second) // both tries of the first extension failed
		clock.Advance(time.Second)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-extended:
			return nil
		}
	}, lock.WithTTL(ttl), lock.WithAutoExtend(), lock.WithClock(clock))
	if err != nil {
		t.Error(err)
	}
	if err := observed.Close(bg); err != nil {
		t.Error(err)
	}
}

// B-01: somebody else released the lock: the work is told.
func TestAutoExtend_ReportsALockReleasedElsewhere(t *testing.T) {
	t.Parallel()
	clock := locktest.NewClock(time.Now())
	r := newRig(t, Config{Clock: clock})
	err := lock.Do(bg, r.faulty, key, func(ctx context.Context, h *lock.Handle) error {
		mustRelease(t, r.direct, lock.Ref{LockID: h.LockID(), Key: key})
		clock.WaitTimer(ttl / 3)
		clock.Advance(ttl / 3)
		<-ctx.Done()
		return nil
	}, lock.WithTTL(ttl), lock.WithAutoExtend(), lock.WithClock(clock))
	if !errors.Is(err, lock.ErrOwnershipLost) {
		t.Error(err)
	}
}

// B-01: the server is gone: the work is told a second before the lease ends.
func TestAutoExtend_ReportsASilentServerBeforeTheEnd(t *testing.T) {
	t.Parallel()
	clock := locktest.NewClock(time.Now())
	r := newRig(t, Config{Clock: clock})
	err := lock.Do(bg, r.faulty, key, func(ctx context.Context, h *lock.Handle) error {
		silent := faultproxy.Fault{BlackHole: true}
		for _, rpc := range []string{"Commit", "BeginTransaction", "BatchGetDocuments", "Rollback"} {
			r.proxy.Add(faultproxy.Rule{RPC: rpc, Do: silent})
		}
		clock.WaitTimer(ttl / 3)
		clock.Advance(ttl / 3)
		patience := ttl - ttl/3 - time.Second
		clock.WaitTimer(patience)
		clock.Advance(patience)
		<-ctx.Done()
		r.proxy.Clear()
		return nil
	}, lock.WithTTL(ttl), lock.WithAutoExtend(), lock.WithClock(clock))
	if !errors.Is(err, lock.ErrLeaseUnproven) {
		t.Error(err)
	}
}

// A call without a deadline gives up on a silent server, not with Aborted, because the caller
// did not end it. On a slow machine the patience grows until the commit was sent.
func TestBackend_GivesUpOnASilentServer(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	warmUp(t, r.direct)
	r.proxy.Add(faultproxy.Rule{RPC: "Commit", Do: faultproxy.Fault{BlackHole: true}})
	var err error
	for r.faulty.tasks.Patience = 50 * time.Millisecond; r.proxy.Calls()["Commit"] == 0; r.faulty.tasks.Patience *= 2 {
		_, err = r.faulty.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
	}
	e, ok := errors.AsType[*lock.Error](err)
	if !ok || e.Code != lock.CodeNetworkTimeout || errors.Is(err, lock.ErrAborted) || !e.OutcomeUnknown {
		t.Errorf("%v", err)
	}
	r.proxy.Clear()
}

// B-03: a call that only reads leaves no outcome unknown, however it ends.
func TestRead_UnansweredLeavesNoUnknownOutcome(t *testing.T) {
	for name, do := range map[string]func(ctx context.Context, b *Backend) error{
		"isLocked": func(ctx context.Context, b *Backend) error { _, err := b.IsLocked(ctx, key); return err },
		"lookup":   func(ctx context.Context, b *Backend) error { _, err := b.Lookup(ctx, lock.Query{Key: key}); return err },
		"lookup by id": func(ctx context.Context, b *Backend) error {
			_, err := b.Lookup(ctx, lock.Query{LockID: lock.NewLockID()})
			return err
		},
		"list":       func(ctx context.Context, b *Backend) error { _, err := b.List(ctx); return err },
		"checkClock": func(ctx context.Context, b *Backend) error { _, err := b.CheckClock(ctx); return err },
	} {
		for _, want := range []lock.Code{lock.CodeNetworkTimeout, lock.CodeAborted} {
			t.Run(name+"/"+string(want), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, Config{})
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				silent := faultproxy.Rule{Do: faultproxy.Fault{BlackHole: true}}
				if want == lock.CodeAborted {
					silent.Hook = cancel
				} else {
					r.faulty.tasks.Patience = 50 * time.Millisecond
				}
				for _, silent.RPC = range []string{"BatchGetDocuments", "RunQuery"} {
					r.proxy.Add(silent)
				}
				err := do(ctx, r.faulty)
				if e, ok := errors.AsType[*lock.Error](err); !ok || e.Code != want || e.OutcomeUnknown {
					t.Errorf("got %v, want %s with a known outcome", err, want)
				}
				r.proxy.Clear()
			})
		}
	}
}

// B-03: the same if the call is left behind.
func TestRead_LeftBehindLeavesNoUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(bg)
		b := &Backend{tasks: tasks.Group{Patience: tasks.Patience}}
		answered := make(chan struct{})
		time.AfterFunc(time.Second, cancel)
		_, err := tasks.Read(ctx, &b.tasks, func(context.Context) (string, error) { <-answered; return "", nil })
		if e, ok := errors.AsType[*lock.Error](err); !ok || e.Code != lock.CodeAborted || e.OutcomeUnknown {
			t.Errorf("got %v, want Aborted with a known outcome", err)
		}
		close(answered)
		settle(t, b)
	})
}

// L-CAN-04: an operation that ignores the end of its context is left behind well within
// 500 ms, and its result goes to the function late.
func TestCall_LeavesAStuckOperationBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(bg)
		b := &Backend{tasks: tasks.Group{Patience: tasks.Patience}}
		answered := make(chan struct{})
		var cancelled time.Time
		time.AfterFunc(time.Second, func() { cancelled = time.Now(); cancel() })
		var late string
		_, err := tasks.Call(ctx, &b.tasks, func(context.Context) (string, error) {
			<-answered
			return "answer", nil
		}, func(answer string) { late = answer })
		if waited := time.Since(cancelled); waited > 500*time.Millisecond {
			t.Errorf("returned %v after the cancellation", waited)
		}
		if e, ok := errors.AsType[*lock.Error](err); !ok || e.Code != lock.CodeAborted || !e.OutcomeUnknown {
			t.Errorf("got %v, want Aborted with unknown outcome", err)
		}
		close(answered)
		settle(t, b)
		if late != "answer" {
			t.Errorf("late got %q", late)
		}
	})
}

// L-CAN-04: an operation that ends soon after its context gives its own answer; nothing
// is unknown.
func TestCall_KeepsTheAnswerThatComesSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(bg)
		b := &Backend{tasks: tasks.Group{Patience: tasks.Patience}}
		time.AfterFunc(time.Second, cancel)
		answer, err := tasks.Call(ctx, &b.tasks, func(ctx context.Context) (string, error) {
			<-ctx.Done()
			time.Sleep(tasks.CancelGrace - time.Millisecond)
			return "answer", nil
		}, nil)
		if answer != "answer" || err != nil {
			t.Error(answer, err)
		}
		settle(t, b)
	})
}

// Close waits for background work, at most until its context ends: then it is Aborted.
func TestClose_WaitsForBackgroundWork(t *testing.T) {
	b := &Backend{}
	proceed := make(chan struct{})
	b.tasks.Background(bg, func(context.Context) { <-proceed })
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if err := b.Close(ctx); !errors.Is(err, lock.ErrAborted) {
		t.Error(err)
	}
	close(proceed)
	if err := b.Close(bg); err != nil {
		t.Error(err)
	}
}
