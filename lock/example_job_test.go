package lock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/memlock"
)

// migrate runs work unless another process is running it.
func migrate(ctx context.Context, backend lock.Backend, work func(context.Context, lock.Fence) error) error {
	h, free, err := lock.TryAcquire(ctx, backend, "billing:migration:7",
		lock.WithTTL(15*time.Second), // how long a crash blocks the next run
		lock.WithAutoExtend(),        // the work may take longer
		lock.WithMaxHold(time.Hour),  // but not for ever
	)
	if err != nil {
		return err
	}
	if !free {
		fmt.Println("skipped: another process is at it")
		return nil
	}
	defer h.Close()
	if err := work(h.Context(), h.Fence()); err != nil {
		return err
	}
	return context.Cause(h.Context()) // not nil if the lease was lost on the way
}

// A job that must not run twice at once: whoever comes second skips it.
func Example_job() {
	ctx := context.Background()
	backend := memlock.New() // in production: firestorelock.New

	err := migrate(ctx, backend, func(ctx context.Context, fence lock.Fence) error {
		fmt.Println("migrating with fence", fence)
		return migrate(ctx, backend, nil) // another process starts meanwhile
	})
	fmt.Println("done:", err)
	// Output:
	// migrating with fence 000000000000001
	// skipped: another process is at it
	// done: <nil>
}
