package connect

import (
	"context"
	"log/slog"

	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
)

// Locks returns the fleet's locks, on the fleet's clock; close them after use. It is
// the only function that knows the lock backend. Each call is counted, and logged
// with hashes in place of keys and lock ids.
func (c *Clients) Locks(clock *simclock.Clock, log *slog.Logger) (lock.Store, error) {
	backend, err := firestorelock.New(c.Firestore, firestorelock.Config{Clock: clock.ForLocks(), Logger: log})
	if err != nil {
		return nil, err
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
	dropped int64          // of locks.Dropped, how many are counted
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

// lockEventLevel is WARN for what nobody else reports: a lease that was lost, or
// could not be extended. Contention is everyday, and callers log their own errors.
func lockEventLevel(e lock.Event) slog.Level {
	lost := e.Result == lock.ResultFail && (e.Type == lock.EventExtend || e.Type == lock.EventRelease && e.Reason != "")
	if lost && e.Code != lock.CodeAborted {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}
