package history

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/lock"
)

// LockKey is the key of the lock that lets one process at a time publish.
const LockKey = "statemanager:history"

const (
	// usualDelay is how long after an event it is read. Its time is from before its commit, and by a
	// State Manager's clock, which may be behind.
	usualDelay = 15 * time.Minute
	// longestPeriod bounds what is published before the cursor is stored, and again after a crash.
	longestPeriod = time.Minute
)

// Config tunes an Exporter. Zero durations stand for the defaults in the comments.
type Config struct {
	Store *firestoretx.Store
	Locks lock.Backend
	// LockOptions are those of the lock, which must have a TTL.
	LockOptions []lock.Option
	Publisher   *pubsubio.Publisher
	Meter       *meter.Meter
	Log         *slog.Logger
	// Every is how often Firestore is read; default 30 s.
	Every time.Duration
	// Delay is how long after an event it is read; default 15 min.
	Delay time.Duration
}

// Exporter publishes the history while no other process does.
type Exporter struct{ cfg Config }

// New returns an exporter.
func New(cfg Config) *Exporter {
	cfg.Every = cmp.Or(cfg.Every, 30*time.Second)
	cfg.Delay = cmp.Or(cfg.Delay, usualDelay)
	return &Exporter{cfg}
}

// Run publishes until ctx ends.
func (e *Exporter) Run(ctx context.Context) {
	ctx = meter.WithOperation(ctx, "history")
	for ctx.Err() == nil {
		if err := e.runOnce(ctx); err != nil && ctx.Err() == nil {
			e.cfg.Log.WarnContext(ctx, "history interrupted; retrying", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(e.cfg.Every):
		}
	}
}

// runOnce publishes what is due if the lock is free.
func (e *Exporter) runOnce(ctx context.Context) error {
	began := time.Now()
	h, free, err := lock.TryAcquire(ctx, e.cfg.Locks, LockKey, append(slices.Clone(e.cfg.LockOptions), lock.WithAutoExtend(), lock.WithLogger(e.cfg.Log))...)
	if err != nil {
		return err
	}
	held := e.cfg.Meter.Lock(meter.LockHistory)
	held.Tried(began, free)
	if !free {
		return nil
	}
	defer held.Gave()
	leading, stop := context.WithCancel(meter.WithOperation(h.Context(), "history")) // the lock's context outlives ctx
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	err = e.catchUp(leading)
	return errors.Join(err, h.Close())
}

// catchUp publishes until nothing is due. A history that begins has nothing of before.
func (e *Exporter) catchUp(ctx context.Context) error {
	defer e.cfg.Meter.HistoryBehind.Set(0)
	for {
		through, now, err := e.cfg.Store.HistoryCursor(ctx)
		if err != nil {
			return err
		}
		due := now.Add(-e.cfg.Delay)
		if through.IsZero() {
			return e.cfg.Store.SaveHistoryCursor(ctx, due)
		}
		if !through.Before(due) {
			return nil
		}
		e.cfg.Meter.HistoryBehind.Set(due.Sub(through))
		until := earlier(due, through.Add(longestPeriod))
		if err := e.publish(ctx, through, until); err != nil {
			return err
		}
		if err := e.cfg.Store.SaveHistoryCursor(ctx, until); err != nil {
			return err
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// publish publishes a period.
func (e *Exporter) publish(ctx context.Context, from, until time.Time) error {
	return e.cfg.Store.ReadHistory(ctx, from, until, firestoretx.HistorySink{
		Events: func(events []firestoretx.CommittedEvent) error {
			return errors.Join(
				send(ctx, e, pubsubio.HistoryEvents, events, func(c firestoretx.CommittedEvent) ([]byte, error) { return wire.EventRow(c.DocumentID, c.Event) }),
				e.sendEnded(ctx, events),
			)
		},
		Decisions: func(d []domain.LedgerEntry) error {
			return send(ctx, e, pubsubio.HistoryDecisions, d, wire.DecisionRow)
		},
		Refusals: func(r []domain.Refusal) error { return send(ctx, e, pubsubio.HistoryRefusals, r, wire.RefusalRow) },
		Malformed: func(err error) {
			e.cfg.Log.WarnContext(ctx, "document left out of the history; correct it", slog.Any("err", err))
		},
	})
}

// sendEnded publishes the orders and missions of events as they are now, if they have ended. A later
// event about one of them publishes it again.
func (e *Exporter) sendEnded(ctx context.Context, events []firestoretx.CommittedEvent) error {
	var orders []domain.OrderID
	var missions []domain.MissionID
	for _, c := range events {
		switch {
		case c.Entity == domain.EntityOrder && domain.OrderStatus(c.To).Final() && !slices.Contains(orders, domain.OrderID(c.ID)):
			orders = append(orders, domain.OrderID(c.ID))
		case c.Entity == domain.EntityMission && c.To != string(domain.MissionActive) && !slices.Contains(missions, domain.MissionID(c.ID)):
			missions = append(missions, domain.MissionID(c.ID))
		}
	}
	endedOrders, err := e.cfg.Store.OrdersOf(ctx, orders)
	if err := e.leaveOut(ctx, err); err != nil {
		return err
	}
	endedMissions, err := e.cfg.Store.MissionsOf(ctx, missions)
	if err := e.leaveOut(ctx, err); err != nil {
		return err
	}
	return errors.Join(
		send(ctx, e, pubsubio.HistoryOrders, endedOrders, wire.OrderRow),
		send(ctx, e, pubsubio.HistoryMissions, endedMissions, wire.MissionRow),
	)
}

// leaveOut logs documents that cannot be decoded and returns any other error.
func (e *Exporter) leaveOut(ctx context.Context, err error) error {
	if _, malformed := errors.AsType[*firestoretx.MalformedError](err); malformed {
		e.cfg.Log.WarnContext(ctx, "document left out of the history; correct it", slog.Any("err", err))
		return nil
	}
	return err
}

// send publishes rows and returns once Pub/Sub has all of them.
func send[T any](ctx context.Context, e *Exporter, table string, items []T, encode func(T) ([]byte, error)) error {
	var sent []pubsubio.Published
	var failed error
	for _, item := range items {
		row, err := encode(item)
		if err != nil {
			e.cfg.Log.WarnContext(ctx, "row left out of the history", slog.String("table", table), slog.Any("err", err))
			continue
		}
		sent = append(sent, e.cfg.Publisher.Publish(ctx, pubsubio.HistoryTopic(table), row, map[string]string{wire.AttrContentType: wire.JSON.ContentType()}, ""))
	}
	for _, p := range sent {
		if _, err := p.Wait(ctx); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	if failed == nil {
		e.cfg.Meter.HistoryRows(table).Add(int64(len(sent)))
	}
	return failed
}
