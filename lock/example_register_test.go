package lock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/locktest"
	"github.com/dronefleet/dronefleet/lock/memlock"
)

// register is a value that all processes share. It stands for a document or a row.
type register struct {
	highest lock.Fence
	value   string
}

// write stores a value, unless a later holder has written.
func (r *register) write(fence lock.Fence, value string) error {
	if fence < r.highest {
		return fmt.Errorf("%q refused: its fence is lower than %s", value, r.highest)
	}
	r.highest, r.value = fence, value // in one transaction, such as UPDATE … WHERE fence <= $1
	return nil
}

// A holder is paused for longer than its lease, as by a suspended machine, and writes when
// it wakes up. Its lease cannot help: only the register knows that another has written.
func Example_pausedHolder() {
	ctx, clock, r := context.Background(), locktest.NewClock(time.Unix(0, 0)), &register{}
	backend := memlock.New(memlock.WithClock(clock))
	request := lock.AcquireRequest{Key: "reports:today", TTL: 15 * time.Second}

	paused, err := backend.Acquire(ctx, request)
	if err != nil {
		fmt.Println(err)
	}
	clock.Advance(time.Minute) // nothing runs
	next, err := backend.Acquire(ctx, request)
	if err != nil {
		fmt.Println(err)
	}
	for _, w := range []struct {
		fence lock.Fence
		value string
	}{{next.Fence, "written by the holder"}, {paused.Fence, "written late"}} {
		if err := r.write(w.fence, w.value); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(r.value)
	// Output:
	// "written late" refused: its fence is lower than 000000000000002
	// written by the holder
}
