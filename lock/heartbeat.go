package lock

import (
	"context"
	"sync"
	"time"
)

const (
	beatsPerTTL      = 3
	minAutoExtendTTL = 30 * time.Millisecond
	maxProofMargin   = time.Second
)

// heartbeat extends a lease until it is stopped or the lease is lost.
type heartbeat struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func startHeartbeat(ctx context.Context, h *Handle) *heartbeat {
	ctx, cancel := context.WithCancel(ctx)
	hb := &heartbeat{cancel: cancel}
	until := time.Time{}
	if h.cfg.maxHold > 0 {
		until = h.cfg.clock.Now().Add(h.cfg.maxHold)
	}
	hb.done.Go(func() { beat(ctx, h, until) })
	return hb
}

// stop ends the heartbeat and waits for an extension in flight.
func (hb *heartbeat) stop() {
	if hb == nil {
		return
	}
	hb.cancel()
	hb.done.Wait()
}

// beat extends every third of the TTL, or sooner if less of the lease is left, and retries soon
// after an error. It gives up while enough of the lease is left to stop the work in an orderly
// way. until, if set, is when the lease must be over.
func beat(ctx context.Context, h *Handle, until time.Time) {
	ttl, clock := h.cfg.ttl, h.cfg.clock
	margin := min(ttl/10, maxProofMargin)
	failed := false
	for {
		proofEnd := h.deadlineNow().Add(-margin)
		left := proofEnd.Sub(clock.Now())
		if left <= 0 {
			h.lose(ErrLeaseUnproven)
			return
		}
		// A lease whose reply was slow has less left than a beat: half
		// of that is for the extension.
		pause := min(ttl/beatsPerTTL, left/2)
		if failed {
			pause = min(ttl/30, left)
		}
		wait(ctx, clock, pause, nil)
		if ctx.Err() != nil {
			return
		}
		left = proofEnd.Sub(clock.Now())
		if left <= 0 {
			continue // a manual extension may have moved the deadline
		}
		extension := ttl
		if !until.IsZero() {
			most := until.Sub(clock.Now()).Truncate(time.Millisecond)
			if !clock.Now().Add(most).After(h.deadlineNow()) {
				return // too late to extend: the lease expires
			}
			extension = min(ttl, most)
		}
		// A manual extension may have made the lease longer than this one does.
		ok, err := extendWithin(ctx, h, extension, min(left, extension-margin))
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && !ok:
			return // lost, as Handle.extend has told, or released
		}
		failed = err != nil
	}
}

// extendWithin is one extension that gives up when the proof runs out.
func extendWithin(ctx context.Context, h *Handle, ttl, budget time.Duration) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := h.cfg.clock.AfterFunc(budget, cancel)
	defer timer.Stop()
	return h.extend(ctx, ttl)
}

func (h *Handle) deadlineNow() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deadline
}
