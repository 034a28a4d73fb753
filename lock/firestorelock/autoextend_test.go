package firestorelock

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/faultproxy"
)

// B-01: the lease is kept through faults that pass.
func TestAutoExtend_SurvivesFaults(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	extended := make(chan struct{}, 16)
	observed := lock.WithTelemetry(r.faulty, lock.ObserverFunc(func(e lock.Event) {
		if e.Type == lock.EventExtend && e.Result == lock.ResultOK {
			extended <- struct{}{}
		}
	}))
	err := lock.Do(bg, observed, key, func(ctx context.Context, _ *lock.Handle) error {
		r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 2, Do: faultproxy.Fault{Before: codes.Unknown}})
		r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 2, Do: faultproxy.Fault{After: codes.Unavailable}})
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-extended:
			return nil
		}
	}, lock.WithTTL(3*time.Second), lock.WithAutoExtend())
	if err != nil {
		t.Error(err)
	}
	if err := observed.Close(bg); err != nil {
		t.Error(err)
	}
}

// B-01: somebody else released the lock: the work is told.
func TestAutoExtend_Lost(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	err := lock.Do(bg, r.faulty, key, func(ctx context.Context, h *lock.Handle) error {
		mustRelease(t, r.direct, lock.Ref{LockID: h.LockID(), Key: key})
		<-ctx.Done()
		return nil
	}, lock.WithTTL(3*time.Second), lock.WithAutoExtend())
	if !errors.Is(err, lock.ErrOwnershipLost) {
		t.Error(err)
	}
}

// B-01: the server is gone: the work is told before the lease ends.
func TestAutoExtend_Unproven(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	err := lock.Do(bg, r.faulty, key, func(ctx context.Context, h *lock.Handle) error {
		silent := faultproxy.Fault{BlackHole: true}
		for _, rpc := range []string{"Commit", "BeginTransaction", "BatchGetDocuments", "Rollback"} {
			r.proxy.Add(faultproxy.Rule{RPC: rpc, Do: silent})
		}
		<-ctx.Done()
		if !time.Now().Before(h.ExpiresAt()) {
			t.Error("told after the end of the lease")
		}
		r.proxy.Clear()
		return nil
	}, lock.WithTTL(2*time.Second), lock.WithAutoExtend())
	if !errors.Is(err, lock.ErrLeaseUnproven) {
		t.Error(err)
	}
}

// A call without a deadline does not wait for a silent server for ever, and
// that is no Aborted: the caller did not end it.
func TestPatience(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.faulty.patience = 50 * time.Millisecond
	warmUp(t, r.direct)
	r.proxy.Add(faultproxy.Rule{RPC: "Commit", Do: faultproxy.Fault{BlackHole: true}})
	_, err := r.faulty.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
	e, ok := errors.AsType[*lock.Error](err)
	if !ok || e.Code != lock.CodeNetworkTimeout || errors.Is(err, lock.ErrAborted) || !e.OutcomeUnknown {
		t.Errorf("%v", err)
	}
	r.proxy.Clear()
}
