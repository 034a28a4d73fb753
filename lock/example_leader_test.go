package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/memlock"
)

// lead runs work whenever this process is the leader, until ctx ends. work must end with
// its context: another process may be the leader then.
func lead(ctx context.Context, backend lock.Backend, work func(context.Context, lock.Fence) error) error {
	for ctx.Err() == nil {
		err := lock.Do(ctx, backend, "billing:leader", func(ctx context.Context, h *lock.Handle) error {
			return work(ctx, h.Fence())
		}, lock.WithTTL(15*time.Second), lock.WithAutoExtend(),
			lock.WithTimeout(time.Hour), lock.WithMaxRetries(math.MaxInt), lock.WithRetryTransient()) // stand by
		if err != nil && !standsBy(err) {
			return err
		}
	}
	return nil
}

// standsBy reports whether an error only means that another process leads, or may.
func standsBy(err error) bool {
	return errors.Is(err, lock.ErrAcquisitionTimeout) || errors.Is(err, lock.ErrAborted) ||
		errors.Is(err, lock.ErrOwnershipLost) || errors.Is(err, lock.ErrLeaseUnproven)
}

// One process of several leads; when it ends or loses its lease, the next one does.
func Example_leader() {
	ctx, stop := context.WithCancel(context.Background())
	backend := memlock.New() // in production: firestorelock.New
	terms := 0

	err := lead(ctx, backend, func(ctx context.Context, fence lock.Fence) error {
		fmt.Println("leading with fence", fence)
		if terms++; terms == 1 { // an operator ends the first term
			_, err := lock.Break(ctx, backend, "billing:leader", nil)
			return err
		}
		stop()
		<-ctx.Done()
		return nil
	})
	fmt.Println("stopped:", err)
	// Output:
	// leading with fence 000000000000001
	// leading with fence 000000000000002
	// stopped: <nil>
}
