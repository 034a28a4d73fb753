package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/check"
)

// Store is what cycles need of the store.
type Store interface {
	Snapshot(ctx context.Context, req firestoretx.SnapshotRequest) (domain.Snapshot, error)
	RecordCycle(ctx context.Context, c domain.Cycle) error
	Depots(ctx context.Context) (firestoretx.Listing[domain.Depot], error)
	Fleet(ctx context.Context, depot domain.DepotID, maxSilence time.Duration) ([]domain.Drone, error)
}

// Publish sends decisions and returns, when the server has answered for all of
// them, an error for each in their order: nil where the server has it; otherwise
// it may have it or not. One that fails keeps no other from being sent.
type Publish func(ctx context.Context, decisions []domain.Decision) []error

// Config tunes a Runner. Zero values stand for the defaults in the comments.
type Config struct {
	// Depots whose cycles to run; empty means all in the store.
	Depots []domain.DepotID
	// Interval between cycles; default 10 s.
	Interval time.Duration
	// LockTTL is how long a crashed cycle blocks the next; default 15 s.
	LockTTL time.Duration
	// ReadLimit is how long reading a snapshot or the depots may take, by the
	// machine's time; default 1 min. Nothing else ends a query that is never
	// answered: the depot's lock would stay extended, and nobody planned any more.
	ReadLimit time.Duration
	// SolveLimit bounds the search in machine time; default a planner's, 8 s.
	SolveLimit time.Duration
	// Iterations, when positive, bounds the search in steps instead, so that
	// what a simulation decides does not hang on the machine's load.
	Iterations int
	// Strategy and Seed go to the solver.
	Strategy solver.Strategy
	Seed     uint64
	// Params are the rules of planning, such as service times; the zero value
	// stands for the solver's defaults.
	Params solver.Params
	// Immediate plans without a reserve, see PlannerConfig.
	Immediate bool
	// MinBattery (percent) and MaxSilence say which drones are offered; default
	// those that the assignment policy takes, 20 and 15 s.
	MinBattery float64
	MaxSilence time.Duration
	// Holder names this process in cycle records.
	Holder string
	// Tracing takes the spans; default none.
	Tracing trace.TracerProvider
}

func (c Config) withDefaults() Config {
	if c.Interval == 0 {
		c.Interval = 10 * time.Second
	}
	if c.LockTTL == 0 {
		c.LockTTL = 15 * time.Second
	}
	if c.ReadLimit == 0 {
		c.ReadLimit = time.Minute
	}
	taken := policy.DefaultMissionAssignmentPolicy()
	c.MinBattery = cmp.Or(c.MinBattery, taken.MinBattery)
	c.MaxSilence = cmp.Or(c.MaxSilence, taken.MaxSilence)
	if c.Tracing == nil {
		c.Tracing = noop.NewTracerProvider()
	}
	return c
}

// Runner runs the cycles of one process.
type Runner struct {
	store   Store
	locks   lock.Backend
	publish Publish
	newID   func() string
	clock   *simclock.Clock
	cfg     Config
	log     *slog.Logger
	meter   *meter.Meter
	faults  sync.Map // as last recorded: fault by domain.DepotID
}

// fault is what is to be corrected before a depot's cycles see everything.
type fault struct {
	leftOut []string // by the plan
	failure string   // to read the snapshot
}

// NewRunner returns a runner. newID yields unique, non-monotonic cycle ids.
func NewRunner(store Store, locks lock.Backend, publish Publish, newID func() string, clock *simclock.Clock, cfg Config, log *slog.Logger, m *meter.Meter) *Runner {
	m.Lock(meter.LockCycle) // readiness and dashboards know of it from the start
	cfg = cfg.withDefaults()
	return &Runner{store: bounded{store, cfg.ReadLimit}, locks: locks, publish: publish, newID: newID, clock: clock, cfg: cfg, log: log, meter: m}
}

// bounded is a store whose reads end in time. Fleet has a bound of its own.
type bounded struct {
	Store
	limit time.Duration
}

func (b bounded) Snapshot(ctx context.Context, req firestoretx.SnapshotRequest) (domain.Snapshot, error) {
	ctx, end := context.WithTimeout(ctx, b.limit)
	defer end()
	return b.Store.Snapshot(ctx, req)
}

func (b bounded) Depots(ctx context.Context) (firestoretx.Listing[domain.Depot], error) {
	ctx, end := context.WithTimeout(ctx, b.limit)
	defer end()
	return b.Store.Depots(ctx)
}

// CycleKey is the key of the lock that keeps a depot's cycles apart.
func CycleKey(depot domain.DepotID) string { return "optimizer:cycle:" + string(depot) }

// maxUnservedBytes is what a cycle's document may spend on listing the orders it
// left, with the reasons why, of the 1 MiB that a document may have; the rest has
// room in what remains. An entry takes unservedBytes beside its two texts.
const (
	maxUnservedBytes = 700 << 10
	unservedBytes    = 32
)

// listUnserved notes the orders that are left, as many as a document holds, and
// how many are not listed.
func listUnserved(c *domain.Cycle, unserved []solver.Unserved) {
	room := maxUnservedBytes
	for i, u := range unserved {
		reason := string(u.Reason)
		if u.Detail != "" {
			reason += ": " + u.Detail
		}
		if room -= len(u.OrderID) + len(reason) + unservedBytes; room < 0 {
			c.Detail = fmt.Sprintf("%d more orders were left and are not listed", len(unserved)-i)
			return
		}
		c.Unserved = append(c.Unserved, domain.UnservedOrder{OrderID: domain.OrderID(u.OrderID), Reason: reason})
	}
}

// maxLeftOut is how many documents a cycle's own lists that its plan left out, and
// maxLeftOutBytes what it tells of each, as a complaint may quote a field that is
// nearly as long as a document: enough to correct, and in the worst case little beside
// the orders.
const (
	maxLeftOut      = 100
	maxLeftOutBytes = 1600
)

// leaveOut notes what the plan left out, and why.
func leaveOut(c *domain.Cycle, what string) {
	if len(c.LeftOut) < maxLeftOut {
		c.LeftOut = append(c.LeftOut, strings.ToValidUTF8(what[:min(len(what), maxLeftOutBytes)], ""))
	}
}

// ErrLocked says that another process runs the depot's cycle.
var ErrLocked = errors.New("another cycle of the depot is running")

// errShutdown is why a cycle stops that is told to.
var errShutdown = errors.New("the optimizer was told to stop")

// Once runs one cycle of a depot. It returns ErrLocked when another process is
// at it. The planner is the depot's; nil stands for one that remembers nothing.
func (r *Runner) Once(ctx context.Context, depot domain.DepotID, planner *Planner) (domain.Cycle, error) {
	if planner == nil {
		planner = r.NewPlanner()
	}
	ctx, span := r.startCycle(meter.WithOperation(ctx, "cycle"), depot)
	defer span.End()
	cycle, err := r.once(ctx, depot, planner)
	describeCycle(span, cycle, err)
	return cycle, err
}

func (r *Runner) once(ctx context.Context, depot domain.DepotID, planner *Planner) (domain.Cycle, error) {
	opts := append(r.clock.LockOptions(r.cfg.LockTTL), lock.WithAutoExtend(), lock.WithLogger(r.log))
	began := time.Now()
	h, ok, err := lock.TryAcquire(ctx, r.locks, CycleKey(depot), opts...)
	if err != nil {
		if ctx.Err() == nil { // a shutdown is no failure
			r.meter.Cycles.Ended(meter.CycleFailed)
		}
		return domain.Cycle{}, fmt.Errorf("depot %s: cycle lock: %w", depot, err)
	}
	held := r.meter.Lock(meter.LockCycle)
	held.Tried(began, ok)
	if !ok {
		r.meter.Cycles.Ended(meter.CycleSkipped)
		return domain.Cycle{}, fmt.Errorf("depot %s: %w", depot, ErrLocked)
	}
	defer func() {
		held.Gave()
		if err := h.Close(); err != nil {
			r.log.WarnContext(ctx, "cycle lock not released; it will expire", slog.Any("err", err))
		}
	}()
	cycle := domain.Cycle{
		ID: domain.CycleID(r.newID()), DepotID: depot, Fence: string(h.Fence()), Holder: r.cfg.Holder,
		StartedAt: r.clock.Now(),
	}
	if err = r.cycle(ctx, h.Context(), &cycle, planner); err != nil {
		outcome, why := outcomeOf(err, h.Context())
		if cycle.Detail != "" {
			why += "; " + cycle.Detail
		}
		cycle.Outcome, cycle.Detail = outcome, why
		err = fmt.Errorf("depot %s: %w", depot, err)
	}
	cycle.EndedAt = r.clock.Now()
	switch cycle.Outcome {
	case domain.CycleFailed, domain.CycleLeaseLost:
		r.meter.Cycles.Ended(meter.CycleFailed)
	case domain.CycleAborted: // neither run nor failed
	default:
		r.meter.Cycles.Ended(meter.CycleRun)
		r.meter.Cycles.Took.Record(time.Since(began))
	}
	r.record(ctx, cycle)
	return cycle, err
}

// outcomeOf is what ended a cycle that came to err under a lease.
func outcomeOf(err error, lease context.Context) (domain.CycleOutcome, string) {
	switch {
	case errors.Is(err, errShutdown):
		return domain.CycleAborted, err.Error()
	case lease.Err() != nil:
		return domain.CycleLeaseLost, context.Cause(lease).Error()
	}
	return domain.CycleFailed, err.Error()
}

// cycle does the work under a lease. The end of ctx, a shutdown, ends it until
// it publishes; what is planned by then is published whole.
func (r *Runner) cycle(ctx, lease context.Context, c *domain.Cycle, planner *Planner) error {
	planning, stop := context.WithCancelCause(lease)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { stop(errShutdown) })()
	do, err := r.decide(planning, c, planner)
	if cause := context.Cause(planning); cause != nil {
		return cause
	}
	if err != nil {
		return err
	}
	if len(do.decisions) == 0 {
		c.Outcome = domain.CycleEmpty
		r.awaited(ctx, c, planner, do)
		listUnserved(c, do.unserved)
		return nil
	}
	began := time.Now()
	// Should the process die while it publishes, this is all that tells of the
	// cycle.
	begun := *c
	begun.Outcome, begun.Detail = domain.CyclePublishing, fmt.Sprintf("%d decisions are to be published", len(do.decisions))
	if err := r.store.RecordCycle(lease, begun); err != nil {
		return fmt.Errorf("nothing published: %w", err)
	}
	if cause := context.Cause(lease); cause != nil { // while the answer was on its way
		return cause
	}
	c.Outcome = domain.CyclePublished
	var errs []error
	var failed []solver.Unserved
	untold := 0
	results := r.publish(lease, do.decisions)
	c.PublishTook = time.Since(began)
	for i, err := range results {
		d := do.decisions[i]
		if err == nil {
			c.Missions++
			c.Assigned += len(d.OrderIDs)
			c.DistanceKm += do.distances[d.DroneID]
			continue
		}
		if len(errs) < maxErrors {
			errs = append(errs, fmt.Errorf("publish the decision on drone %s: %w", d.DroneID, err))
		} else {
			untold++
		}
		for _, id := range d.OrderIDs {
			failed = append(failed, solver.Unserved{OrderID: string(id), Reason: publishFailed})
		}
	}
	if untold > 0 {
		errs = append(errs, fmt.Errorf("and of %d more", untold))
	}
	if len(errs) == 0 {
		planner.published(r.clock.Since(do.planned))
	}
	r.awaited(ctx, c, planner, do)
	listUnserved(c, append(failed, do.unserved...))
	return errors.Join(errs...)
}

// maxErrors is how many failures to publish a cycle's error tells: when Pub/Sub
// does not answer, all are alike, and together too long for a document. Which
// orders they concern is on record.
const maxErrors = 10

// publishFailed is why an order is left whose decision the server may not have.
// If it has it all the same, the ledger says what became of it.
const publishFailed solver.Reason = "publish_failed"

// intent is what a cycle is to do.
type intent struct {
	problem   solver.Problem // without the drones that the plan left out
	decisions []domain.Decision
	distances map[domain.DroneID]float64 // km
	unserved  []solver.Unserved
	planned   time.Time // when planning began
}

// decide plans what is to be done, and notes in c what it saw.
func (r *Runner) decide(ctx context.Context, c *domain.Cycle, planner *Planner) (intent, error) {
	began, asked := time.Now(), r.clock.Now()
	snap, err := r.store.Snapshot(ctx, firestoretx.SnapshotRequest{
		Depot: c.DepotID, MinBattery: r.cfg.MinBattery, MaxSilence: r.cfg.MaxSilence,
		OnMalformed: func(err error) {
			r.log.ErrorContext(ctx, "document left out of the snapshot; correct it", slog.Any("err", err))
			leaveOut(c, err.Error())
		},
	})
	if err != nil {
		return intent{}, err
	}
	snap.CycleID, snap.Fence = c.ID, c.Fence
	c.SnapshotTime, c.Drones, c.Orders = snap.ReadTime, len(snap.Drones), len(snap.Orders)
	c.ReadTook = time.Since(began)

	began = time.Now()
	planned := r.clock.Now()
	// Deadlines are of the server's time, which this process may not keep.
	round, err := r.plan(ctx, planner, snap, snap.ReadTime.Add(planned.Sub(asked)))
	if err != nil {
		return intent{}, err
	}
	plan := round.Plan
	c.SolveTook = time.Since(began)
	if len(plan.Ignored) > 0 {
		first := plan.Ignored[0]
		r.log.WarnContext(ctx, "left out of the plan; correct the document", slog.Int("count", len(plan.Ignored)),
			slog.String("kind", first.Kind), slog.String("id", first.ID), slog.String("detail", first.Detail))
	}
	for _, i := range plan.Ignored {
		leaveOut(c, i.Kind+" "+i.ID+": "+i.Detail)
	}

	c.Objective = fmt.Sprintf("unserved %d CRITICAL, %d HIGH, %d STANDARD; %.1f km; %d drones kept for CRITICAL", plan.Objective.Unserved[solver.Critical],
		plan.Objective.Unserved[solver.High], plan.Objective.Unserved[solver.Standard], plan.Objective.DistanceKm, round.Kept)
	r.meter.Cycles.SetUnserved(overlooked(plan.Unserved, snap, everyDepotHad*r.cfg.Interval))
	distances := map[domain.DroneID]float64{}
	for _, route := range plan.Routes {
		distances[domain.DroneID(route.DroneID)] = route.DistanceKm
	}
	problem := round.Problem
	problem.Drones = withoutIgnored(problem.Drones, "drone", plan.Ignored)
	return intent{problem, DecisionsOf(plan, snap), distances, plan.Unserved, planned}, nil
}

// everyDepotHad is so many intervals that in them each depot has had a cycle, and
// what that decided is applied.
const everyDepotHad = 3

// overlooked counts, by priority, the orders left that have been pending for so long.
// One depot's cycle leaves what another's serves; what is still pending after a cycle
// of each, none of them serves, be it because its document is of no use.
func overlooked(left []solver.Unserved, snap domain.Snapshot, pending time.Duration) map[string]int64 {
	counts := map[string]int64{}
	for _, p := range domain.Priorities {
		counts[p.String()] = 0
	}
	for _, u := range left {
		if o := &snap.Orders[u.Index]; snap.ReadTime.Sub(o.PendingSince) >= pending {
			counts[o.Priority.String()]++
		}
	}
	return counts
}

func (r *Runner) plan(ctx context.Context, planner *Planner, snap domain.Snapshot, now time.Time) (Round, error) {
	ctx, span := r.tracer().Start(ctx, "solve")
	defer span.End()
	return planner.Plan(ctx, snap, now.Add(planner.lead))
}

// NewPlanner returns a planner for the cycles of one depot.
func (r *Runner) NewPlanner() *Planner {
	return NewPlanner(PlannerConfig{
		Options:   solver.Options{TimeLimit: r.cfg.SolveLimit, Iterations: r.cfg.Iterations, Strategy: r.cfg.Strategy, Seed: r.cfg.Seed},
		Params:    r.cfg.Params,
		Immediate: r.cfg.Immediate,
	}, r.refused)
}

// refused keeps a plan that broke the rules for whoever will look into it.
func (r *Runner) refused(p solver.Problem, fault error) {
	r.meter.Cycles.PlansRefused.Inc()
	instance, err := json.Marshal(p)
	if err != nil {
		instance = []byte(err.Error())
	}
	r.log.Error("plan broke the rules and is not published; the greedy one is",
		slog.Any("err", fault), slog.String("problem", string(instance)))
}

// Solve plans and has the plan checked by what shares no code with the solver.
// A plan that fails is never returned: refused is told why, and the greedy plan
// takes its place if that one holds.
func Solve(ctx context.Context, p solver.Problem, opts solver.Options, refused func(fault error)) (solver.Plan, error) {
	plan, err := solver.Solve(ctx, p, opts)
	if err != nil {
		return plan, err
	}
	fault := check.Plan(p, plan)
	if fault == nil {
		return plan, nil
	}
	refused(fault)
	opts.Strategy = solver.Greedy
	if plan, err = solver.Solve(ctx, p, opts); err != nil {
		return plan, err
	}
	if fault := check.Plan(p, plan); fault != nil {
		return plan, fmt.Errorf("the greedy plan broke the rules too: %w", fault)
	}
	return plan, nil
}

// record stores the cycle and says how it went. A cycle that saw no order, or
// nothing at all, leaves no document, unless what is to be corrected has changed:
// a fault that nobody corrects would fill the audit with a record every interval.
func (r *Runner) record(ctx context.Context, c domain.Cycle) {
	level := slog.LevelInfo
	if c.Outcome == domain.CycleFailed || c.Outcome == domain.CycleLeaseLost {
		level = slog.LevelWarn
	}
	r.log.Log(ctx, level, "cycle", slog.String("cycle_id", string(c.ID)), slog.String("outcome", string(c.Outcome)),
		slog.String("depot_id", string(c.DepotID)), slog.String("fence", c.Fence),
		slog.Int("drones", c.Drones), slog.Int("orders", c.Orders), slog.Int("missions", c.Missions),
		slog.Int("assigned", c.Assigned), slog.String("objective", c.Objective),
		slog.Duration("solve", c.SolveTook), slog.String("detail", c.Detail))
	recorded, _ := r.faults.Load(c.DepotID)
	known, _ := recorded.(fault)
	found := fault{leftOut: known.leftOut}
	switch {
	case c.Outcome == domain.CycleEmpty || c.Outcome == domain.CyclePublished: // others may not have seen all
		found.leftOut = c.LeftOut
	case c.Outcome == domain.CycleFailed && c.SnapshotTime.IsZero():
		found.failure = c.Detail
	}
	unchanged := slices.Equal(found.leftOut, known.leftOut) && found.failure == known.failure
	if unchanged && c.Orders == 0 && (c.Outcome == domain.CycleEmpty || found.failure != "") {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := r.store.RecordCycle(ctx, c); err != nil {
		r.log.WarnContext(ctx, "cycle not recorded", slog.Any("err", err))
		return
	}
	r.faults.Store(c.DepotID, found)
}
