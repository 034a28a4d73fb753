package history

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
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
	Crashes float64       // share of leases that are abandoned
	Cancels float64       // share of calls whose context ends early
	Retries float64       // share of leases taken by lock.Acquire, which tries again after errors
}

// Play lets every client work on random keys until the time is over. What each
// client does depends on the seed alone; how the calls meet does not.
func (w Workload) Play(clients []*Client) {
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(context.Background(), w.Run)
	defer cancel()
	for i, c := range clients {
		rng := rand.New(rand.NewPCG(w.Seed, uint64(i)))
		wg.Go(func() {
			for ctx.Err() == nil {
				w.useLease(ctx, c, rng)
			}
			c.settling.Wait()
		})
	}
	wg.Wait()
}

// useLease is the life of one lease: acquired, perhaps extended, released or abandoned, and
// perhaps extended and released once more when it is no longer ours.
func (w Workload) useLease(ctx context.Context, c *Client, rng *rand.Rand) {
	key := fmt.Sprintf("key-%d", rng.IntN(w.Keys))
	id, ok := w.acquire(ctx, c, rng, key)
	if !ok {
		pause(ctx, time.Duration(rng.Int64N(int64(10*time.Millisecond))))
		return
	}
	ref := lock.Ref{LockID: id, Key: key}
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
	_, _ = c.Release(w.callContext(ctx, rng), ref)
}

// acquire takes a lock by one call, or by as many as the helper makes of it. The
// lease is then the workload's; the handle knows no clock of the client's.
func (w Workload) acquire(ctx context.Context, c *Client, rng *rand.Rand, key string) (id string, ok bool) {
	if rng.Float64() >= w.Retries {
		id = lock.NewLockID()
		res, err := c.Acquire(w.callContext(ctx, rng), lock.AcquireRequest{Key: key, TTL: w.TTL, LockID: id})
		return id, err == nil && res.OK
	}
	h, err := lock.Acquire(w.callContext(ctx, rng), c, key, lock.WithTTL(w.TTL), lock.WithRetryTransient(),
		lock.WithRetryDelay(0), lock.WithMaxRetries(5))
	return h.LockID(), err == nil
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
