package connect

import (
	"context"
	"errors"
	"log/slog"

	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
)

// Locks opens the fleet's locks on the fleet's clock, in c.LockStore if that is set and
// else in Firestore. Close them after use. Each call is counted, and logged with hashes in
// place of keys and lock ids.
func (c *Clients) Locks(clock *simclock.Clock, log *slog.Logger) (*lock.Observed, error) {
	here, err := firestorelock.New(c.Firestore, firestorelock.Config{Clock: clock.ForLocks(), Logger: log})
	if err != nil {
		return nil, err
	}
	var backend lock.Backend = here
	if c.LockStore.Set() {
		if clock.ForLocks() != nil {
			return nil, errors.New("--lock does not work with simulated time: leases in a lock store keep real time; leave --lock out")
		}
		outside, stop, err := c.LockStore.open(context.Background(), log)
		if err != nil {
			return nil, err
		}
		backend = newOutsideLocks(outside, stop, here, log)
	}
	o := &lockObserver{meter: c.Meter, log: log}
	c.Meter.AwaitLockEvents()
	o.locks = lock.WithTelemetry(backend, o)
	return o.locks, nil
}

// lockObserver counts and logs what the locks do.
type lockObserver struct {
	meter   *meter.Meter
	log     *slog.Logger
	locks   *lock.Observed // set before the first event
	dropped int64          // how many of locks.Dropped are counted
}

// Observe implements lock.Observer.
func (o *lockObserver) Observe(e lock.Event) {
	o.meter.LockEvents(meter.LockEvent{Type: string(e.Type), Result: string(e.Result), Reason: e.Why()}).Inc()
	if dropped := o.locks.Dropped(); dropped > o.dropped {
		o.meter.LockEventsDropped.Add(dropped - o.dropped)
		o.dropped = dropped
	}
	o.log.LogAttrs(context.Background(), lockEventLevel(e), "lock event",
		slog.String("type", string(e.Type)), slog.String("result", string(e.Result)), slog.String("reason", e.Why()),
		slog.String("key_hash", e.KeyHash), slog.String("lock_id_hash", e.LockIDHash), slog.Duration("took", e.Duration))
}

// lockEventLevel is WARN for a lease that was lost or could not be extended, which nobody
// else reports. Contention is normal, and callers log their own errors.
func lockEventLevel(e lock.Event) slog.Level {
	lost := e.Result == lock.ResultFail && (e.Type == lock.EventExtend || e.Type == lock.EventRelease && e.Reason != "")
	if lost && e.Code != lock.CodeAborted {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}
