package firestorelock

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

// A lease takes far less than 1 KiB, and abandoned leases are forgotten.
func TestBackend_ForgetsAbandonedLeases(t *testing.T) {
	const n = 20_000
	b := &Backend{clock: lock.SystemClock()}
	now := time.Now()
	put := func(i int, end time.Duration) {
		b.remember(lock.NewLockID(), held{
			base: fmt.Sprintf("some/usual/key-%d", i), version: now, expiresAtMs: now.Add(end).UnixMilli(), deadline: now,
		})
	}
	before := heap()
	for i := range n {
		put(i, time.Minute)
	}
	each := (heap() - before) / n
	t.Logf("%d bytes per lease", each)
	if each > 512 {
		t.Errorf("%d bytes per lease", each)
	}
	for i := range 3 * n {
		put(i, -time.Minute)
	}
	if size := b.leases.Len(); size > 3*n {
		t.Errorf("%d leases are remembered, %d are live", size, n)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
