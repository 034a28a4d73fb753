package redislock

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

// B-07: a waiting acquisition is woken by a release of another process, long before it
// would have tried again.
func TestWaiter_IsWokenByAnotherProcess(t *testing.T) {
	r := newRig(t, Config{})
	holder := mustAcquire(t, r.direct, key)
	waiting := make(chan error, 1)
	go func() {
		h, err := lock.Acquire(bg, r.faulty, key, lock.WithTimeout(time.Hour), lock.WithRetryDelay(time.Hour))
		if err == nil {
			err = h.Close()
		}
		waiting <- err
	}()
	for r.client.PubSubNumSub(bg, r.direct.channel(r.direct.head+key)).Val()[r.direct.channel(r.direct.head+key)] == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	mustRelease(t, r.direct, lock.Ref{LockID: holder.LockID, Key: key})
	if err := <-waiting; err != nil {
		t.Error(err)
	}
}

// 64 acquisitions wait, all of one process or of 8: nobody waits longer than four times
// the median.
func TestWaiter_IsFair(t *testing.T) {
	const waiters = 64
	server := startRedis(t)
	for _, processes := range []int{1, 8} {
		prefix := fresh()
		var backends []*Backend
		for range processes {
			backends = append(backends, newBackend(t, dial(t, server.Addr()), Config{Prefix: prefix, SkipDurabilityCheck: true}))
		}
		first := mustAcquire(t, backends[0], key)
		var mu sync.Mutex
		var waits []time.Duration
		var all sync.WaitGroup
		for i := range waiters {
			all.Go(func() {
				began := time.Now()
				h, err := lock.Acquire(bg, backends[i%processes], key, lock.WithTimeout(time.Hour), lock.WithMaxRetries(1<<30))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				waits = append(waits, time.Since(began))
				mu.Unlock()
				time.Sleep(2 * time.Millisecond)
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(300 * time.Millisecond) // so that all wait, and listen
		mustRelease(t, backends[0], lock.Ref{LockID: first.LockID, Key: key})
		all.Wait()
		slices.Sort(waits)
		median, longest := waits[len(waits)/2], waits[len(waits)-1]
		t.Logf("%d processes: median %s, longest %s", processes, median, longest)
		if longest > 4*median {
			t.Errorf("%d processes: one waits %s, the median is %s", processes, longest, median)
		}
	}
}
