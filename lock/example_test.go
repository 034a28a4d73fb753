package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/memlock"
)

// Do is the usual way: the lock is held while the function runs, is extended
// meanwhile, and is given up whatever happens.
func ExampleDo() {
	ctx := context.Background()
	backend := memlock.New() // in production: firestorelock.New

	err := lock.Do(ctx, backend, "report:2026-11", func(ctx context.Context, h *lock.Handle) error {
		fmt.Println("holding with fence", h.Fence())
		return nil // work under ctx: it ends when the lease is lost
	}, lock.WithTTL(15*time.Second), lock.WithAutoExtend())

	switch {
	case errors.Is(err, lock.ErrAcquisitionTimeout):
		fmt.Println("somebody else is at it")
	case errors.Is(err, lock.ErrOwnershipLost), errors.Is(err, lock.ErrLeaseUnproven):
		fmt.Println("the lease was lost on the way")
	default:
		fmt.Println("done:", err)
	}
	// Output:
	// holding with fence 000000000000001
	// done: <nil>
}

// TryAcquire is for work that may as well be skipped.
func ExampleTryAcquire() {
	ctx := context.Background()
	backend := memlock.New()

	first, ok, err := lock.TryAcquire(ctx, backend, "nightly")
	fmt.Println("first:", ok, err)
	_, ok, err = lock.TryAcquire(ctx, backend, "nightly")
	fmt.Println("second:", ok, err)

	if err := first.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// first: true <nil>
	// second: false <nil>
}

// A long job extends its lease between steps, and stops if that fails.
func ExampleHandle_Extend() {
	ctx := context.Background()
	h, err := lock.Acquire(ctx, memlock.New(), "import", lock.WithTTL(10*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()

	for step := range 3 {
		if ok, err := h.Extend(ctx, 10*time.Second); err != nil || !ok {
			fmt.Println("stop before step", step)
			return
		}
		fmt.Println("step", step)
	}
	// Output:
	// step 0
	// step 1
	// step 2
}

// ledger is a resource that knows fences: it refuses whoever comes with a lower
// one than it has seen.
type ledger struct {
	mu      sync.Mutex
	highest lock.Fence
}

var errStaleFence = errors.New("stale fence")

func (l *ledger) write(fence lock.Fence, entry string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if fence < l.highest {
		return fmt.Errorf("%w: %q refused", errStaleFence, entry)
	}
	l.highest = fence // equal is the same holder's next write
	return nil
}

// A holder that was paused past the end of its lease comes back and writes. The
// lock cannot stop it; the resource can.
func ExampleFence() {
	ctx := context.Background()
	backend := memlock.New()
	var l ledger

	paused, err := lock.Acquire(ctx, backend, "ledger", lock.WithTTL(time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	// The lease ends while its holder is paused (here it is given up), and
	// somebody else takes over.
	if _, err := paused.Release(ctx); err != nil {
		fmt.Println(err)
	}
	err = lock.Do(ctx, backend, "ledger", func(_ context.Context, h *lock.Handle) error {
		return l.write(h.Fence(), "new holder")
	})
	fmt.Println("new holder:", err)
	fmt.Println("paused holder:", l.write(paused.Fence(), "paused holder"))
	// Output:
	// new holder: <nil>
	// paused holder: stale fence: "paused holder" refused
}

// Telemetry reports every call, with hashes in place of keys and lock ids.
func ExampleWithTelemetry() {
	ctx := context.Background()
	observed := lock.WithTelemetry(memlock.New(), lock.ObserverFunc(func(e lock.Event) {
		fmt.Printf("%s: %s %s %q\n", e.Type, e.Result, e.KeyHash, e.Reason)
	}))

	err := lock.Do(ctx, observed, "payment:42", func(ctx context.Context, _ *lock.Handle) error {
		_, _, err := lock.TryAcquire(ctx, observed, "payment:42")
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	if err := observed.Close(ctx); err != nil { // delivers what is queued
		fmt.Println(err)
	}
	// Output:
	// acquire: ok 6831d3d1611c045158f886b7 ""
	// acquire: fail 6831d3d1611c045158f886b7 "locked"
	// release: ok 6831d3d1611c045158f886b7 ""
}
