package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

// Workload is what the clients do.
type Workload struct {
	Seed    uint64
	Keys    int
	TTL     time.Duration
	Extend  time.Duration // length of extensions; 0: TTL
	Run     time.Duration // how long
	Crashes float64       // share of leases whose holder is paused beyond their end
	Cancels float64       // share of calls whose context ends early
	Retries float64       // share of leases taken by lock.Acquire, which tries again after errors
	Brisk   float64       // share of leases that are released at once
	Kills   float64       // share of leases whose holder dies in a call, if clients have a Cut
	Breaks  float64       // share of leases after which the client breaks a lock

	// Grants, if not nil, counts the leases that were granted. The clients then stop at
	// Acquisitions, or after Run if that is not 0.
	Grants       *atomic.Int64
	Acquisitions int
}

// isOver tells whether a client stops.
func (w Workload) isOver(ctx context.Context) bool {
	return ctx.Err() != nil || w.Grants != nil && w.Grants.Load() >= int64(w.Acquisitions)
}

// chance draws whether something happens. What never does draws nothing.
func chance(rng *rand.Rand, share float64) bool { return share > 0 && rng.Float64() < share }

// Play lets every client work on random keys until the time is over. What each
// client does depends on the seed alone; how the calls meet does not.
func (w Workload) Play(clients []*Client) {
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if w.Run > 0 {
		defer time.AfterFunc(w.Run, cancel).Stop()
	}
	for i, c := range clients {
		rng := rand.New(rand.NewPCG(w.Seed, uint64(i)))
		wg.Go(func() {
			for !w.isOver(ctx) {
				w.useLease(ctx, c, rng)
			}
			c.settling.Wait()
		})
	}
	wg.Wait()
}

// useLease is the life of one lease: acquired, perhaps extended, released or abandoned, and
// perhaps extended and released again after its end.
func (w Workload) useLease(ctx context.Context, c *Client, rng *rand.Rand) {
	key := keyName(rng.IntN(w.Keys))
	id, ok, err := w.acquire(ctx, c, rng, key)
	switch {
	case err != nil && w.Grants != nil: // during an outage
		pause(ctx, time.Duration(rng.Int64N(int64(100*time.Millisecond))))
		return
	case !ok:
		pause(ctx, time.Duration(rng.Int64N(int64(10*time.Millisecond))))
		return
	case w.Grants != nil:
		w.Grants.Add(1)
	}
	ref := lock.Ref{LockID: id, Key: key}
	if chance(rng, w.Breaks) {
		_ = c.Break(ctx, keyName(rng.IntN(w.Keys)))
	}
	if chance(rng, w.Kills) {
		defer time.AfterFunc(time.Duration(rng.Int64N(int64(time.Millisecond))), c.Cut).Stop()
		_, _ = c.Extend(ctx, ref, cmp.Or(w.Extend, w.TTL))
		return
	}
	if !chance(rng, w.Brisk) {
		w.linger(ctx, c, rng, ref)
	}
	_, _ = c.Release(w.callContext(ctx, rng), ref)
}

// linger is what a holder does that is not done at once.
func (w Workload) linger(ctx context.Context, c *Client, rng *rand.Rand, ref lock.Ref) {
	for range rng.IntN(3) {
		pause(ctx, time.Duration(rng.Int64N(int64(w.TTL/3))))
		if ext, err := c.Extend(w.callContext(ctx, rng), ref, cmp.Or(w.Extend, w.TTL)); err != nil || !ext.OK {
			break
		}
	}
	if rng.Float64() < w.Crashes {
		pause(ctx, w.TTL+lock.Tolerance+time.Duration(rng.Int64N(int64(w.TTL))))
		_, _ = c.Extend(w.callContext(ctx, rng), ref, cmp.Or(w.Extend, w.TTL)) // too late
	}
}

func keyName(i int) string { return fmt.Sprintf("key-%d", i) }

// acquire takes a lock by one call, or by the calls that the helper makes of it. The workload,
// not the handle, then looks after the lease.
func (w Workload) acquire(ctx context.Context, c *Client, rng *rand.Rand, key string) (id string, ok bool, err error) {
	if rng.Float64() >= w.Retries {
		id = lock.NewLockID()
		res, err := c.Acquire(w.callContext(ctx, rng), lock.AcquireRequest{Key: key, TTL: w.TTL, LockID: id})
		return id, err == nil && res.OK, err
	}
	h, err := lock.Acquire(w.callContext(ctx, rng), c, key, lock.WithTTL(w.TTL), lock.WithRetryTransient(),
		lock.WithRetryDelay(0), lock.WithMaxRetries(5), lock.WithTimeout(time.Minute))
	if errors.Is(err, lock.ErrAcquisitionTimeout) {
		return "", false, nil
	}
	return h.LockID(), err == nil, err
}

// callContext is the context of one call. It outlives the run, so that the end
// of the run cancels no call.
func (w Workload) callContext(ctx context.Context, rng *rand.Rand) context.Context {
	ctx = context.WithoutCancel(ctx)
	if rng.Float64() >= w.Cancels {
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	time.AfterFunc(time.Duration(rng.Int64N(int64(4*time.Millisecond))), cancel)
	return ctx
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
