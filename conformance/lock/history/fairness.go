package history

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

// CheckFairness lets 64 acquisitions of a key wait, spread over backends that share a store,
// while the first backend holds it; listening returns once all backends wait. Then nobody must
// wait longer than four times the median.
func CheckFairness(t *testing.T, key string, listening func(), backends ...lock.Backend) {
	t.Helper()
	const (
		waiters = 64
		section = 2 * time.Millisecond
		ttl     = time.Hour // no lease ends
	)
	ctx := context.Background()
	first, err := lock.Acquire(ctx, backends[0], key, lock.WithTTL(ttl))
	if err != nil {
		t.Fatal(err)
	}
	var (
		mu     sync.Mutex
		had    []time.Time
		inside atomic.Int32
		all    sync.WaitGroup
	)
	for i := range waiters {
		all.Go(func() {
			h, err := lock.Acquire(ctx, backends[i%len(backends)], key, lock.WithTTL(ttl),
				lock.WithTimeout(5*time.Minute), lock.WithMaxRetries(1<<30))
			if err != nil {
				t.Error(err)
				return
			}
			if n := inside.Add(1); n != 1 {
				t.Errorf("%d holders", n)
			}
			mu.Lock()
			had = append(had, time.Now())
			mu.Unlock()
			time.Sleep(section)
			inside.Add(-1)
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	listening()
	freed := time.Now()
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
	if len(had) < waiters {
		t.Fatalf("%d of %d had the lock", len(had), waiters)
	}
	slices.SortFunc(had, time.Time.Compare)
	median, longest := had[waiters/2].Sub(freed), had[waiters-1].Sub(freed)
	t.Logf("%d waiters over %d backends: median %v, longest %v", waiters, len(backends), median, longest)
	if longest > 4*median {
		t.Errorf("the longest wait is %v, more than 4 times the median of %v", longest, median)
	}
}
