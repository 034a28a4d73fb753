package manager

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/codes"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/lock"
)

// SweeperKey is the key of the lock that makes one manager the sweeper.
const SweeperKey = "statemanager:sweeper"

const (
	// outboxGrace is how long the sweeper leaves a new mission's command to its assigner.
	outboxGrace = 5 * time.Second
	// sweepAllEvery is the time between two sweeps of everything. They find what other tools wrote.
	sweepAllEvery = time.Hour
	// sweepAllAgain is that time after one that failed, or that had to correct documents: an earlier
	// version may be at work beside this one.
	sweepAllAgain = 5 * time.Minute
	// sweepAllLimit bounds a sweep of everything, by the machine's clock.
	sweepAllLimit = time.Hour
)

// sweepTerm is what a manager keeps as the sweeper, from the time it gets the lock until it loses it
// or gives it up. Only the goroutine that sweeps changes it.
type sweepTerm struct {
	sweeper *firestoretx.Sweeper
	lock    atomic.Pointer[lock.Handle] // nil: it is not the sweeper
	began   chan struct{}               // tells the census that a term began
	all     sync.WaitGroup

	mu      sync.Mutex
	nextAll time.Time // by the clock; zero: at once
	runsAll bool
}

// lasts reports whether this manager is the sweeper.
func (t *sweepTerm) lasts() bool {
	h := t.lock.Load()
	return h != nil && h.Context().Err() == nil
}

// sweep sweeps every interval while it holds the lock, and tries to get the lock while it does not.
func (m *Manager) sweep(ctx context.Context) {
	ctx = meter.WithOperation(ctx, "sweep")
	ticker := m.clock.NewTicker(m.cfg.SweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			if err := m.endTerm(); err != nil {
				m.Log.WarnContext(ctx, "sweeper's lock not released; others wait until its lease ends", slog.Any("err", err))
			}
			return
		case <-ticker.Chan():
		}
		if err := m.sweepIfClockIsRight(ctx); err != nil && ctx.Err() == nil {
			m.Log.WarnContext(ctx, "sweep failed; the next one will retry", slog.Any("err", err))
		}
	}
}

// sweepIfClockIsRight sweeps unless the clock is wrong. Then it only sends owed
// commands, which depend on no clock. It does so without the lock, which would keep
// others from sweeping; a command may be sent twice.
func (m *Manager) sweepIfClockIsRight(ctx context.Context) error {
	right, err := m.clockIsRight(ctx)
	switch {
	case err != nil:
		m.cannotSweep(err)
		return err
	case right:
		return m.sweepOnce(ctx)
	}
	m.Meter.SweepsSkipped.Inc()
	m.leaveShare(errClockWrong)
	err = m.endTerm()
	ctx, end := context.WithTimeout(ctx, m.cfg.SweepLimit)
	defer end()
	return errors.Join(err, m.outbox.Collect(ctx, outboxGrace))
}

// sweepOnce sweeps what is due, if this manager is the sweeper or can become it. It gives the lock up
// if it cannot sweep, because another manager may be able to. Otherwise it sweeps its share.
func (m *Manager) sweepOnce(ctx context.Context) error {
	is, err := m.isSweeper(ctx)
	if err != nil || !is {
		return errors.Join(err, m.sweepShare(ctx))
	}
	m.sweepAll(ctx)
	sweeping, end := context.WithTimeout(m.term.lock.Load().Context(), m.cfg.SweepLimit) // the lock's context outlives ctx
	defer end()
	defer context.AfterFunc(ctx, end)()
	err = m.sweepDue(sweeping)
	if sweeping.Err() != nil || firestoretx.Retryable(err) {
		err = errors.Join(err, m.endTerm())
	}
	return err
}

// isSweeper reports whether this manager holds the lock, and takes it if it is free.
func (m *Manager) isSweeper(ctx context.Context) (bool, error) {
	if m.term.lasts() {
		return true, nil
	}
	lost := m.endTerm()
	opts := append(m.clock.LockOptions(15*time.Second), lock.WithAutoExtend(), lock.WithLogger(m.Log))
	began := time.Now()
	h, ok, err := lock.TryAcquire(ctx, m.Locks, SweeperKey, opts...)
	if err != nil {
		return false, errors.Join(lost, err)
	}
	m.Meter.Lock(meter.LockSweeper).Tried(began, ok)
	if !ok {
		return false, lost
	}
	m.term.lock.Store(h)
	select {
	case m.term.began <- struct{}{}:
	default:
	}
	return true, lost
}

// endTerm ends a sweep of everything and releases the lock, if this manager is the sweeper.
func (m *Manager) endTerm() error {
	h := m.term.lock.Swap(nil)
	if h == nil {
		return nil
	}
	err := h.Close()
	m.term.all.Wait()
	m.Meter.Lock(meter.LockSweeper).Gave()
	return err
}

// sweepAll begins a sweep of everything if it is time for one. It ends with the lock or with ctx.
func (m *Manager) sweepAll(ctx context.Context) {
	t := &m.term
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runsAll || m.clock.Now().Before(t.nextAll) {
		return
	}
	t.runsAll = true
	sweeping, end := context.WithTimeout(t.lock.Load().Context(), sweepAllLimit)
	stop := context.AfterFunc(ctx, end)
	t.all.Go(func() {
		defer end()
		defer stop()
		next := m.sweepAllOnce(sweeping)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.runsAll, t.nextAll = false, m.clock.Now().Add(next)
	})
}

// sweepAllOnce sweeps everything, and returns when to do so again.
func (m *Manager) sweepAllOnce(ctx context.Context) (next time.Duration) {
	result, corrected, err := m.term.sweeper.All(ctx, m.clockHolds)
	m.logSwept(ctx, result)
	m.Meter.DueCorrected.Add(int64(corrected))
	switch {
	case err != nil:
		if ctx.Err() == nil {
			m.Log.WarnContext(ctx, "sweep of everything failed; another one follows", slog.Any("err", err))
		}
		return sweepAllAgain
	case corrected > 0:
		m.Log.InfoContext(ctx, "documents corrected whose dueAt was missing or wrong", slog.Int("documents", corrected))
		return sweepAllAgain
	}
	return sweepAllEvery
}

func (m *Manager) clockHolds() bool { return !m.clockWasSet(m.measured.Load()) }

// sweepDue sends owed commands, and then sweeps what is due, in a trace of its own, while ctx, which
// the lock bounds, lasts.
func (m *Manager) sweepDue(ctx context.Context) error {
	ctx, span := m.cfg.Tracing.Tracer("github.com/dronefleet/dronefleet/app/manager").Start(ctx, "sweep")
	defer span.End()
	err := m.outbox.Collect(ctx, outboxGrace)
	if err = errors.Join(err, m.sweepAreas(ctx, m.takes(ctx, true))); err != nil {
		span.SetStatus(codes.Error, err.Error())
		return err
	}
	m.Meter.Sweeps.Inc()
	return nil
}

func (m *Manager) logSwept(ctx context.Context, result firestoretx.SweepResult) {
	if result != (firestoretx.SweepResult{}) {
		m.Log.InfoContext(ctx, "swept", slog.Int("missions_failed", result.MissionsFailed),
			slog.Int("drones_unknown", result.DronesUnknown), slog.Int("orders_late", result.OrdersLate), slog.Int("orders_adopted", result.OrdersAdopted))
	}
}
