package dispatch

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/app/membership"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/solver"
)

// Store is what cycles need of the store.
type Store interface {
	Snapshot(ctx context.Context, req firestoretx.SnapshotRequest) (domain.Snapshot, error)
	RecordCycle(ctx context.Context, c domain.Cycle) error
	RecordQuietCycles(ctx context.Context, latest domain.Cycle, n int) error
	KnownDepots(ctx context.Context) (firestoretx.Listing[domain.Depot], error)
	FollowPlaces(ctx context.Context) error
	CountDrones(ctx context.Context, depots []domain.Depot) error
	Fleet(ctx context.Context, depots []domain.DepotID, maxSilence time.Duration) ([]domain.Drone, error)
	learning.Store
	Idle(ctx context.Context, depots []domain.DepotID, limits policy.Limits) ([]domain.Drone, error)
	Waiting(ctx context.Context, depots []domain.DepotID) (map[domain.DepotID]int, error)
	HandOver(ctx context.Context, h domain.HandOvers) (refusals []error, _ error)
	membership.Store
}

// PublishFunc sends decisions and waits for the server's answer to each. It returns an error for
// each decision, in the same order: nil if the server has it, otherwise the server may or may not
// have it. A failed decision does not keep the others from being sent.
type PublishFunc func(ctx context.Context, decisions []domain.Decision) []error

// Config tunes a Runner. Zero values mean the defaults in the comments.
type Config struct {
	// Depots whose areas' cycles to run; empty means all depots in the store.
	Depots []domain.DepotID
	// AreaRadius, in km, is how far apart depots may be to be planned by one cycle, see
	// policy.AreasOf; 0 leaves each depot alone. All optimizers of a fleet need the same.
	AreaRadius float64
	// Interval between cycles; default 10 s.
	Interval time.Duration
	// LockTTL is how long a process that died blocks its areas; default 15 s.
	LockTTL time.Duration
	// LockEachCycle takes an area's lock for one cycle, so that any process may run the next. The
	// default is that members own areas, see package ownership.
	LockEachCycle bool
	// Searches bounds the cycles that search at once; default processors / 1.6, at least 1.
	Searches int
	// ReadLimit is how long reading a snapshot or the depots may take, in machine time; default 1
	// min. Otherwise a query without an answer would block the depot for ever, because its lock is
	// extended meanwhile.
	ReadLimit time.Duration
	// SolveLimit bounds the search in machine time; default 8 s.
	SolveLimit time.Duration
	// Iterations, when positive, bounds the search in steps instead, so that what
	// a simulation decides does not depend on the machine's load.
	Iterations int
	// Strategy and Seed go to the solver.
	Strategy solver.Strategy
	Seed     uint64
	// Params are the rules of planning, such as service times; the zero value
	// means the solver's defaults.
	Params solver.Params
	// NoAmendments leaves missions under way as they are.
	NoAmendments bool
	// Limits select the drones that are offered and the stops that can be changed; a field
	// that is zero stands for the contract's value.
	Limits policy.Limits
	// NoLearning plans as if the fleet had no past, and learns nothing.
	NoLearning bool
	// Confidence is the share of deliveries that should be in time if delays are like those
	// of the past; default learning.DefaultConfidence.
	Confidence float64
	// NoAdvance leaves idle drones where they are, instead of sending some to where CRITICAL
	// orders are expected. So does NoAmendments.
	NoAdvance bool
	// Immediate plans without a reserve, see planner.Config.
	Immediate bool
	// Holder names this process in cycle records.
	Holder string
	// OnFailure, if set, is called with the error of each cycle of Run that failed.
	OnFailure func(error)
	// Tracing takes the spans; default none.
	Tracing trace.TracerProvider
}

// Planner is how cycles plan.
func (c Config) Planner() planner.Config {
	return planner.Config{
		Options:   solver.Options{TimeLimit: c.SolveLimit, Iterations: c.Iterations, Strategy: c.Strategy, Seed: c.Seed},
		Params:    c.Params,
		Immediate: c.Immediate,
		Advance:   !c.NoAdvance && !c.NoAmendments,
		Limits:    c.Limits,
	}
}

func (c Config) withDefaults() Config {
	c.Interval = cmp.Or(c.Interval, 10*time.Second)
	c.LockTTL = cmp.Or(c.LockTTL, 15*time.Second)
	c.ReadLimit = cmp.Or(c.ReadLimit, time.Minute)
	c.Searches = cmp.Or(c.Searches, DefaultSearches())
	c.Limits = c.Limits.WithDefaults()
	c.Confidence = cmp.Or(c.Confidence, learning.DefaultConfidence)
	if c.Tracing == nil {
		c.Tracing = noop.NewTracerProvider()
	}
	return c
}

// Runner runs the cycles of one process.
type Runner struct {
	store   Store
	locks   lock.Backend
	publish PublishFunc
	newID   func() string
	clock   *simclock.Clock
	cfg     Config
	log     *slog.Logger
	meter   *meter.Meter

	searches searches
	team     *team    // nil with Config.LockEachCycle
	blocked  sync.Map // domain.DepotID of an area to obstacle, as last recorded
}

// NewRunner returns a runner. newID yields unique, non-monotonic cycle ids.
func NewRunner(store Store, locks lock.Backend, publish PublishFunc, newID func() string, clock *simclock.Clock, cfg Config, log *slog.Logger, m *meter.Meter) *Runner {
	m.Lock(meter.LockCycle) // so that readiness and dashboards have it from the start
	cfg = cfg.withDefaults()
	m.Cycles.SetPeriod(max(cfg.Interval, cfg.SolveLimit))
	r := &Runner{store: timedStore{store, cfg.ReadLimit}, locks: locks, publish: publish, newID: newID, clock: clock, cfg: cfg, log: log, meter: m, searches: newSearches(cfg.Searches)}
	if !cfg.LockEachCycle {
		r.team = newTeam(r)
	}
	return r
}

// timedStore is a store whose snapshot and depot reads have a time limit. Fleet
// has one of its own.
type timedStore struct {
	Store
	limit time.Duration
}

func (s timedStore) Snapshot(ctx context.Context, req firestoretx.SnapshotRequest) (domain.Snapshot, error) {
	ctx, end := context.WithTimeout(ctx, s.limit)
	defer end()
	return s.Store.Snapshot(ctx, req)
}

func (s timedStore) KnownDepots(ctx context.Context) (firestoretx.Listing[domain.Depot], error) {
	ctx, end := context.WithTimeout(ctx, s.limit)
	defer end()
	return s.Store.KnownDepots(ctx)
}
