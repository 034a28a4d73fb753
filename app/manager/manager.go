package manager

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/history"
	"github.com/dronefleet/dronefleet/app/membership"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/app/ordering"
	"github.com/dronefleet/dronefleet/app/webhooks"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/clockwatch"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/ramp"
	"github.com/dronefleet/dronefleet/internal/restart"
	"github.com/dronefleet/dronefleet/internal/shutdown"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
)

// Config tunes a Manager. Zero values stand for the defaults in the comments.
type Config struct {
	// Worker tunes the consumption of messages.
	Worker pubsubio.Config
	// Format is the form of published messages; default protobuf.
	Format wire.Format
	// SweepInterval is how often the manager that holds the sweeper's lock sweeps what is due;
	// default 5 s.
	SweepInterval time.Duration
	// SweepLimit bounds such a sweep, by the machine's clock; default 2 min. Without it a query
	// that is never answered would keep the lock and stop all sweeping. The next sweep
	// finds what this one left.
	SweepLimit time.Duration
	// CensusInterval is how often drones and orders are counted for the metrics, by the
	// machine's clock; default 15 s, negative for never.
	CensusInterval time.Duration
	// CycleInterval is how often each depot has a cycle, or how long a cycle may take if
	// that is more; see DepotsWatch. Default: depots are not watched.
	CycleInterval time.Duration
	// Sharded says that the database has the indexes of large fleets; see firestoretx.Config.
	Sharded bool
	// Ramp is how many writes a second to each collection a new database takes from this manager at
	// first; see internal/ramp. Default: as many as come.
	Ramp float64
	// History publishes what has happened for BigQuery; see app/history.
	History bool
	// Retention is how long new documents are kept; see firestoretx.Config.
	Retention domain.Retention
	// Limits are those of the policies; a field that is zero stands for the contract's value.
	Limits policy.Limits
	// Foretelling says which reports that only move a drone are written; the default is all.
	Foretelling policy.Foretelling
	// AllowUnfenced lets decisions without a fence pass; see policy.MissionAssignmentPolicy.
	AllowUnfenced bool
	// RecordStops applies decisions whose stops are wrong, with a warning in the ledger.
	RecordStops bool
	// PlanUnregistered plans with drones that nobody registered.
	PlanUnregistered bool
	// WebhookNetworks are addresses that are not public and to which webhooks may be sent.
	WebhookNetworks []webhooks.Network
	// WebhookKeys are those of firestoretx.Config.
	WebhookKeys [][]byte
	// Tracing receives the spans; default none. Worker has the share for telemetry.
	Tracing trace.TracerProvider
}

// Manager is one replica of the State Manager.
type Manager struct {
	Store    *firestoretx.Store
	Locks    lock.Store
	Operator operator.Commands // By is empty: set it to the operator's name
	PubSub   *pubsub.Client
	Meter    *meter.Meter
	Log      *slog.Logger
	Limits   policy.Limits // of the policies
	Reach    *ordering.Reach
	// RequireSender says that orders need a requester; see Config.Worker.
	RequireSender bool

	worker *pubsubio.Worker
	outbox *pubsubio.Outbox

	publisher *pubsubio.Publisher

	clock    *simclock.Clock
	cfg      Config
	measured atomic.Pointer[measurement] // the last one of the clock; nil: none yet
	idle     atomic.Pointer[[]domain.DepotID]
	term     sweepTerm
	share    share
}

// measurement is a report on the clock and when it was made.
type measurement struct {
	lock.ClockReport
	shown time.Time // by the clock
	at    time.Time // by the machine, with its monotonic reading
}

// New assembles a manager on open connections.
func New(c *connect.Clients, clock *simclock.Clock, cfg Config, log *slog.Logger) (*Manager, error) {
	cfg.SweepInterval = cmp.Or(cfg.SweepInterval, 5*time.Second)
	cfg.CensusInterval = cmp.Or(cfg.CensusInterval, 15*time.Second)
	cfg.SweepLimit = cmp.Or(cfg.SweepLimit, 2*time.Minute)
	cfg.Format = cmp.Or(cfg.Format, wire.Protobuf)
	if cfg.Tracing == nil {
		cfg.Tracing = noop.NewTracerProvider()
	}
	cfg.Worker.Now, cfg.Worker.Tracing = clock.Now, cfg.Tracing
	cfg.Worker.TelemetryCoalesce = cmp.Or(cfg.Worker.TelemetryCoalesce, clock.Real(time.Second))
	if err := cfg.Foretelling.Check(cfg.Limits); err != nil {
		return nil, err
	}
	locks, err := c.Locks(clock, log)
	if err != nil {
		return nil, err
	}
	m := &Manager{Locks: locks, clock: clock, cfg: cfg, Log: log, Meter: c.Meter, PubSub: c.PubSub, Limits: cfg.Limits.WithDefaults()}
	c.Meter.Lock(meter.LockSweeper) // readiness and dashboards know of it from the start
	var counters lock.FenceReader   // in Firestore the store reads them itself, in its transactions
	if c.LockStore.Set() {
		counters = locks
	}
	m.Store = firestoretx.New(c.Firestore, firestoretx.Config{
		Now:     clock.Now,
		Warning: func(ctx context.Context, req domain.OrderRequest) string { return m.Reach.Warning(ctx, req) },
		Limits:  m.Limits, AllowUnfenced: cfg.AllowUnfenced, RecordStops: cfg.RecordStops, PlanUnregistered: cfg.PlanUnregistered, Foretelling: cfg.Foretelling, Counters: counters,
		Owed:       func(ctx context.Context, mission domain.Mission) { m.outbox.Offer(ctx, mission) },
		Conflicted: c.Meter.CommitRetried, Sharded: cfg.Sharded, Retention: cfg.Retention, WebhookKeys: cfg.WebhookKeys,
		PickedUpAgain: func(ctx context.Context, order domain.OrderID) {
			c.Meter.PickedUpAgain.Inc()
			log.ErrorContext(ctx, "parcel picked up again", slog.String("order_id", string(order)))
		},
		Delivered: func(_ context.Context, o domain.Order) {
			c.Meter.Fleet.Delivered(o.Priority.String(), o.Late, o.DeliveredAt.Sub(o.CreatedAt))
		},
	})
	m.term.sweeper, m.term.began = m.Store.NewSweeper(), make(chan struct{}, 1)
	m.share.members = membership.New(membership.Config{
		Store: m.Store, Clock: clock, Log: log, Self: domain.Member{Sweeps: true}, Retry: cfg.SweepInterval, MayJoin: m.mayShare,
	})
	m.Reach, m.RequireSender = ordering.NewReach(m.Store), cfg.Worker.RequireSender
	for _, p := range domain.Priorities {
		c.Meter.Fleet.ExpectDeliveries(p.String())
	}
	m.Operator = operator.Commands{Store: m.Store, Locks: m.Locks, PubSub: c.PubSub, Patience: operator.ServicePatience, ReviewBytes: operator.ServiceReviewBytes}
	if c.Config.Emulated() {
		m.Operator.Patience = 0
	}
	c.Meter.IndexShards.Store(1)
	if cfg.Sharded {
		c.Meter.IndexShards.Store(firestoretx.Shards)
	}
	if cfg.Ramp > 0 {
		cfg.Worker.Ramp = m.newRamp(cfg.Ramp)
		c.Meter.OnWrites(cfg.Worker.Ramp.Spent)
	}
	publisher := pubsubio.NewPublisher(c.PubSub) // whoever publishes waits for the answer, so nothing is left to stop
	if m.publisher = publisher; cfg.History {
		c.Meter.Lock(meter.LockHistory)
	}
	m.outbox = pubsubio.NewOutbox(m.Store, publisher, cfg.Format, log, c.Meter)
	m.worker = pubsubio.NewWorker(c.PubSub, m.Store, publisher, cfg.Worker, log, c.Meter)
	return m, nil
}

// usedEvents are some 150 drones' in a day. A database that took them yesterday has no ramp.
const usedEvents = 20_000

// newRamp returns a ramp that tells the meter what it holds back. Writes are counted by the machine's clock,
// and the ramp's beginning is by Firestore's.
func (m *Manager) newRamp(rate float64) *ramp.Ramp {
	return ramp.New(ramp.Config{
		Rate: rate, Now: time.Now,
		Began: func(ctx context.Context) (time.Time, error) {
			return m.Store.RampBegan(meter.WithOperation(ctx, "ramp"), usedEvents)
		},
		Held: func(collection string) {
			m.Meter.RampHeld(collection).Inc()
			m.Meter.RampHeldLast.Set(time.Now())
		},
	})
}

// ShutdownPlan is the plan by which Run ends.
func (m *Manager) ShutdownPlan() shutdown.Plan { return m.worker.ShutdownPlan() }

// errNotStopped says that something did not end in time. What it held was not acked.
var errNotStopped = errors.New("shutdown ran out of time with messages unsettled; they will be redelivered")

// Run works until ctx ends, then settles what it holds: pulling stops, messages
// in work are finished or nacked, owed commands are published, locks are released.
// It returns at the end of its plan's phase Locks, whatever does not answer.
func (m *Manager) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	return m.RunUntil(ctx, stop)
}

// RunUntil is Run with a ctx that the manager itself may end through stop.
func (m *Manager) RunUntil(ctx context.Context, stop context.CancelCauseFunc) error {
	commands, endCommands := m.ShutdownPlan().Context(ctx, shutdown.Commands)
	defer endCommands()
	everything, endEverything := m.ShutdownPlan().Context(ctx, shutdown.Locks)
	defer endEverything()

	ended := make(chan error, 1)
	go func() { ended <- m.run(ctx, stop, commands, everything) }()
	select {
	case err := <-ended:
		return err
	case <-everything.Done():
	}
	select {
	case err := <-ended: // at the same moment
		return err
	default:
		return errNotStopped
	}
}

// run works until ctx ends, which stop causes. Commands are published until commands
// ends; everything bounds the rest.
func (m *Manager) run(ctx context.Context, stop context.CancelCauseFunc, commands, everything context.Context) error {
	settled := make(chan struct{})
	var outbox sync.WaitGroup
	outbox.Go(func() { m.outbox.Run(commands, settled) })

	var work sync.WaitGroup
	work.Go(func() { m.followPlaces(ctx) })
	work.Go(func() { m.sweep(ctx) })
	work.Go(func() { m.share.members.Run(ctx, domain.MemberID(uuid.NewString())) })
	work.Go(func() { m.takeCensus(ctx) })
	work.Go(func() { m.nameMisplacedStops(ctx) })
	work.Go(func() { m.sendToWebhooks(ctx) })
	work.Go(func() { clockwatch.Watch(ctx, m.Locks, m.Meter, m.Log, m.noteClock) })
	if m.cfg.History {
		work.Go(func() { m.publishHistory(ctx) })
	}
	if m.cfg.CycleInterval > 0 {
		work.Go(func() { m.watchDepots(ctx) })
	}
	err := m.worker.Run(ctx, stop)
	work.Wait()

	close(settled)
	outbox.Wait()
	return errors.Join(err, m.Locks.Close(everything))
}

// followPlaces keeps the depots that orders and decisions need up to date until ctx ends.
func (m *Manager) followPlaces(ctx context.Context) {
	restart.Until(ctx, func() {
		if err := m.Store.FollowPlaces(meter.WithOperation(ctx, "places")); err != nil && ctx.Err() == nil {
			m.Log.WarnContext(ctx, "places not followed; the State Manager reads them until they are", slog.Any("err", err))
		}
	})
}

// sendToWebhooks sends messages to webhooks while no other manager does.
func (m *Manager) sendToWebhooks(ctx context.Context) {
	webhooks.New(webhooks.Config{
		Store: m.Store, Locks: m.Locks, LockOptions: m.clock.LockOptions(15 * time.Second), Meter: m.Meter,
		Client: webhooks.NewClient(m.cfg.WebhookNetworks), Log: m.Log,
	}).Run(ctx)
}

// publishHistory publishes what has happened while no other manager does.
func (m *Manager) publishHistory(ctx context.Context) {
	history.New(history.Config{
		Store: m.Store, Locks: m.Locks, LockOptions: m.clock.LockOptions(15 * time.Second), Publisher: m.publisher, Meter: m.Meter, Log: m.Log,
	}).Run(ctx)
}

// nameMisplacedStops logs each mission under way with a stop for which a decision would be
// rejected today. It changes nothing.
func (m *Manager) nameMisplacedStops(ctx context.Context) {
	misplaced, err := m.Store.MisplacedStops(ctx)
	if err != nil && ctx.Err() == nil {
		m.Log.WarnContext(ctx, "stops of missions under way not checked", slog.Any("err", err))
	}
	for id, stop := range misplaced {
		m.Log.WarnContext(ctx, "mission under way has a misplaced stop", slog.String("mission_id", string(id)), slog.String("stop", stop))
	}
}

// Outages returns why messages cannot be consumed at present.
func (m *Manager) Outages() []error { return m.worker.Outages() }

// LockKeys are the keys of the managers' locks. They are not secret.
var LockKeys = []string{SweeperKey, webhooks.LockKey, history.LockKey}

// noteClock keeps a measurement of the clock, and logs when sweeping stops or resumes
// because of it.
func (m *Manager) noteClock(report lock.ClockReport) {
	before := m.measured.Swap(&measurement{ClockReport: report, shown: m.clock.Now().Round(0), at: time.Now()})
	wrong, was := report.Level == lock.ClockBlock, before != nil && before.Level == lock.ClockBlock
	switch {
	case wrong && !was:
		m.Log.Error("sweeping disabled: clock skew would mark live drones silent; synchronise the clock (NTP)", slog.Duration("offset", report.Offset))
	case was && !wrong:
		m.Log.Info("sweeping enabled again: the clock is right", slog.Duration("offset", report.Offset))
	}
}

// clockIsRight reports whether silence may be judged by this clock. A clock that is
// minutes fast would mark every drone silent and fail its mission. A clock that was
// not measured yet, or was set since, is measured now.
func (m *Manager) clockIsRight(ctx context.Context) (bool, error) {
	if last := m.measured.Load(); last == nil || m.clockWasSet(last) {
		report, err := m.Locks.CheckClock(ctx)
		if err != nil {
			return false, err
		}
		m.noteClock(report)
	}
	return m.measured.Load().Level != lock.ClockBlock, nil
}

// clockWasSet reports whether the clock was set since it was measured.
func (m *Manager) clockWasSet(since *measurement) bool {
	moved := m.clock.Real(m.clock.Now().Round(0).Sub(since.shown))
	return (moved - time.Since(since.at)).Abs() >= lock.SkewBlock
}
