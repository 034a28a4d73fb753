package lock_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/memlock"
)

// timetable remembers the last slot of a task that was claimed. It stands for a
// document or a row that all processes share.
type timetable struct {
	mu    sync.Mutex
	fence lock.Fence
	slot  time.Time
}

// claim reports whether the slot is new. A fence below the highest seen is refused:
// its holder lost the lock and does not know it yet.
func (t *timetable) claim(fence lock.Fence, slot time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if fence < t.fence || !slot.After(t.slot) {
		return false
	}
	t.fence, t.slot = fence, slot
	return true
}

// tick runs the hourly report if no process has run this hour's.
func tick(ctx context.Context, backend lock.Backend, table *timetable, now time.Time, report func(context.Context, time.Time) error) error {
	h, free, err := lock.TryAcquire(ctx, backend, "schedule:hourly-report",
		lock.WithTTL(15*time.Second), lock.WithAutoExtend())
	if err != nil || !free {
		return err
	}
	defer h.Close()
	slot := now.Truncate(time.Hour)
	if !table.claim(h.Fence(), slot) {
		return nil
	}
	return report(h.Context(), slot)
}

// A schedule that several processes keep. The lock alone would run a slot again if
// one process ticks after another has finished; the record of the last slot does not.
func Example_scheduler() {
	ctx := context.Background()
	backend, table := memlock.New(), &timetable{}
	report := func(_ context.Context, slot time.Time) error {
		fmt.Println("report of", slot.Format("15:04"))
		return nil
	}
	for _, now := range []string{"2026-11-24 09:00:00", "2026-11-24 09:00:03", "2026-11-24 10:00:01"} { // of three processes
		at, err := time.Parse(time.DateTime, now)
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := tick(ctx, backend, table, at, report); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// report of 09:00
	// report of 10:00
}
