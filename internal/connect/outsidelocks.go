package connect

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
)

const (
	// durabilityPatience bounds how long the store is asked for its settings.
	durabilityPatience = 5 * time.Second
	// clockPatience is how long a measurement of the clock is valid.
	clockPatience = time.Minute
)

// outsideLocks are the fleet's locks in a store of their own. Their leases do not depend
// on this process's clock, but the fleet's times do: a process whose clock differs too much
// from Firestore's takes no lock.
type outsideLocks struct {
	lockBackend
	stop  func() error
	clock *firestorelock.Backend

	endChecks context.CancelFunc
	checks    sync.WaitGroup

	mu       sync.Mutex
	measured time.Time // when reading was taken
	reading  lock.ClockReport
}

// newOutsideLocks also checks, in the background, what the store may lose.
func newOutsideLocks(locks lockBackend, stop func() error, here *firestorelock.Backend, log *slog.Logger) *outsideLocks {
	ctx, cancel := context.WithTimeout(context.Background(), durabilityPatience)
	o := &outsideLocks{lockBackend: locks, stop: stop, clock: here, endChecks: cancel}
	o.checks.Go(func() { warnOfLosses(ctx, locks, log) })
	return o
}

// CheckClock implements lock.ClockChecker: by Firestore's clock.
func (o *outsideLocks) CheckClock(ctx context.Context) (lock.ClockReport, error) {
	reading, err := o.clock.CheckClock(ctx)
	if err == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.reading, o.measured = reading, time.Now()
	}
	return reading, err
}

// Acquire implements lock.Backend. A wrong clock is an error with a *lock.ClockSkewError.
func (o *outsideLocks) Acquire(ctx context.Context, req lock.AcquireRequest) (lock.AcquireResult, error) {
	o.mu.Lock()
	reading, known := o.reading, time.Since(o.measured) < clockPatience
	o.mu.Unlock()
	if !known {
		var err error
		if reading, err = o.CheckClock(ctx); err != nil {
			return lock.AcquireResult{}, err
		}
	}
	if reading.Level == lock.ClockBlock {
		wrong := &lock.ClockSkewError{Offset: reading.Offset, Uncertainty: reading.Uncertainty, Limit: lock.SkewBlock}
		return lock.AcquireResult{}, (&lock.Error{Code: lock.CodeInternal, Err: wrong}).At("acquire", req.Key, req.LockID)
	}
	return o.lockBackend.Acquire(ctx, req)
}

// Close implements lock.Closer.
func (o *outsideLocks) Close(ctx context.Context) error {
	o.endChecks()
	o.checks.Wait()
	return errors.Join(o.lockBackend.Close(ctx), o.clock.Close(ctx), o.stop())
}

// warnOfLosses logs settings with which the store may issue a fence twice.
func warnOfLosses(ctx context.Context, locks lock.Backend, log *slog.Logger) {
	durable, ok := locks.(interface {
		CheckDurability(context.Context) ([]string, error)
	})
	if !ok {
		return
	}
	found, err := durable.CheckDurability(ctx)
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		log.WarnContext(ctx, "the durability of the lock store could not be checked", slog.Any("err", err))
	}
	for _, loss := range found {
		log.WarnContext(ctx, "the lock store may lose locks", slog.String("reason", loss))
	}
}
