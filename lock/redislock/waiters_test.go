package redislock

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/conformance/lock/history"
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
	server := startRedis(t)
	for _, processes := range []int{1, 8} {
		prefix := fresh()
		var backends []lock.Backend
		for range processes {
			backends = append(backends, newBackend(t, dial(t, server.Addr()), Config{Prefix: prefix, SkipDurabilityCheck: true}))
		}
		listening := func() { time.Sleep(300 * time.Millisecond) }
		history.CheckFairness(t, key, listening, backends...)
	}
}
