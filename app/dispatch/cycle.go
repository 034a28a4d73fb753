package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/solver"
)

// ErrLocked says that another process runs the area's cycle.
var ErrLocked = errors.New("another cycle of the area is running")

// OtherAreaError says that a cycle planned nothing because the depot no longer names its area: a
// depot with a lower id was added nearby.
type OtherAreaError struct{ Area domain.DepotID }

func (e *OtherAreaError) Error() string {
	return fmt.Sprintf("the depot is now planned by the cycles of depot %s", e.Area)
}

func isOtherArea(err error) bool {
	_, is := errors.AsType[*OtherAreaError](err)
	return is
}

// errShutdown is the cause of a cycle's end when the process stops.
var errShutdown = errors.New("the optimizer was told to stop")

// NewMemory returns what an area's first cycle begins with.
func (r *Runner) NewMemory() *Memory {
	cfg := r.cfg.Planner()
	cfg.Refused = r.planRefused
	memory := &Memory{planner: planner.New(cfg, time.Now)}
	if !r.cfg.NoLearning {
		memory.learner = learning.NewLearner(r.store, planner.Assumed(r.cfg.Params), r.cfg.Confidence)
	}
	return memory
}

// continues reports whether the memory is of the area's cycle before the one with this fence: no other
// process can have run one in between. From now on the memory is of this cycle.
func (m *Memory) continues(fence lock.Fence) bool {
	n, err := lock.ParseFence(string(fence))
	was := m.fence
	m.fence = n
	return err == nil && was > 0 && n-was <= 1 // the lock was kept, or nobody else had it
}

// planRefused logs a plan that the checker refused, with its problem, for
// debugging.
func (r *Runner) planRefused(p solver.Problem, broken error) {
	r.meter.Cycles.PlansRefused.Inc()
	instance, err := json.Marshal(p)
	if err != nil {
		instance = []byte(err.Error())
	}
	r.log.Error("plan refused by the checker; the greedy plan replaces it",
		slog.Any("err", broken), slog.String("problem", string(instance)))
}

// Once runs one cycle of the area that is named by a depot, under a lock that it takes for the cycle.
// The memory is the area's, from earlier cycles; nil means none. The error is, or wraps,
//
// - ErrLocked if another process is running a cycle of the area, - a *lock.ClockSkewError if this
// process's clock is wrong, so it must not take a lock, - an *OtherAreaError if no area is named
// by the depot any more.
func (r *Runner) Once(ctx context.Context, depot domain.DepotID, memory *Memory) (domain.Cycle, error) {
	if memory == nil {
		memory = r.NewMemory()
	}
	return r.traced(ctx, depot, func(ctx context.Context) (domain.Cycle, error) {
		began := time.Now()
		h, err := r.take(ctx, depot)
		if err != nil {
			return domain.Cycle{}, err
		}
		defer r.giveUp(ctx, h)
		return r.cycle(ctx, h, began, depot, memory)
	})
}

// owned runs one cycle of an area whose lock this process holds.
func (r *Runner) owned(ctx context.Context, h *lock.Handle, depot domain.DepotID, memory *Memory) error {
	_, err := r.traced(ctx, depot, func(ctx context.Context) (domain.Cycle, error) {
		return r.cycle(ctx, h, time.Now(), depot, memory)
	})
	return err
}

// traced runs a cycle in a trace of its own, and keeps why it did not end.
func (r *Runner) traced(ctx context.Context, depot domain.DepotID, run func(context.Context) (domain.Cycle, error)) (domain.Cycle, error) {
	ctx, span := r.startCycle(meter.WithOperation(ctx, "cycle"), depot)
	defer span.End()
	cycle, err := run(ctx)
	if err != nil && !errors.Is(err, ErrLocked) && !isOtherArea(err) && ctx.Err() == nil {
		r.meter.Cycles.Hindered(err)
	}
	describeCycle(span, cycle, err)
	return cycle, err
}

// take acquires an area's lock. Its lease is extended until giveUp.
func (r *Runner) take(ctx context.Context, depot domain.DepotID) (*lock.Handle, error) {
	opts := append(r.clock.LockOptions(r.cfg.LockTTL), lock.WithAutoExtend(), lock.WithLogger(r.log))
	began := time.Now()
	h, ok, err := lock.TryAcquire(ctx, r.locks, domain.CycleLockKey(depot), opts...)
	if err != nil {
		switch {
		case ctx.Err() != nil: // a shutdown is not a failure
		case isClockWrong(err):
			r.meter.Cycles.Ended(meter.CycleClockWrong)
		default:
			r.meter.Cycles.Ended(meter.CycleFailed)
		}
		return nil, fmt.Errorf("depot %s: cycle lock: %w", depot, err)
	}
	r.meter.Lock(meter.LockCycle).Tried(began, ok)
	if !ok {
		r.meter.Cycles.Ended(meter.CycleSkipped)
		return nil, fmt.Errorf("depot %s: %w", depot, ErrLocked)
	}
	return h, nil
}

// giveUp releases an area's lock.
func (r *Runner) giveUp(ctx context.Context, h *lock.Handle) {
	r.meter.Lock(meter.LockCycle).Gave()
	if err := h.Close(); err != nil {
		r.log.WarnContext(ctx, "cycle lock not released; it will expire", slog.Any("err", err))
	}
}

// cycle runs a cycle under a lock and records it. began is when its time begins to count.
func (r *Runner) cycle(ctx context.Context, h *lock.Handle, began time.Time, depot domain.DepotID, memory *Memory) (domain.Cycle, error) {
	cycle := domain.Cycle{
		ID: domain.CycleID(r.newID()), DepotID: depot, Fence: string(h.Fence()), Holder: r.cfg.Holder,
		StartedAt: r.clock.Now(),
	}
	remembered := memory.continues(h.Fence())
	err := r.planAndPublish(ctx, h.Context(), &cycle, memory)
	if err != nil {
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
	case domain.CyclePublishing, domain.CyclePublished, domain.CycleEmpty:
		r.meter.Cycles.Ended(meter.CycleRun)
		if remembered {
			r.meter.Cycles.Remembered.Inc()
		}
		r.meter.Cycles.Took.Record(time.Since(began))
	}
	r.record(ctx, cycle, memory)
	return cycle, err
}

// outcomeOf classifies a cycle that ended with err under a lease.
func outcomeOf(err error, lease context.Context) (domain.CycleOutcome, string) {
	switch {
	case errors.Is(err, errShutdown), isOtherArea(err):
		return domain.CycleAborted, err.Error()
	case lease.Err() != nil:
		return domain.CycleLeaseLost, context.Cause(lease).Error()
	}
	return domain.CycleFailed, err.Error()
}

// planAndPublish does a cycle's work under a lease. A shutdown, the end of ctx,
// stops it until it publishes; from then on it publishes the whole plan.
func (r *Runner) planAndPublish(ctx, lease context.Context, c *domain.Cycle, memory *Memory) error {
	planning, stop := context.WithCancelCause(lease)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { stop(errShutdown) })()
	p, err := r.plan(planning, c, memory)
	if cause := context.Cause(planning); cause != nil {
		return cause
	}
	if err != nil {
		return err
	}
	if len(p.decisions) == 0 {
		c.Outcome = domain.CycleEmpty
		r.judgeByAllDrones(ctx, p, memory)
		r.handOver(lease, c, p)
		listUnserved(c, unservedOrders(p))
		return nil
	}
	began := time.Now()
	// If the process dies while it publishes, this record is the only trace of the cycle.
	begun := *c
	begun.Outcome, begun.Detail = domain.CyclePublishing, fmt.Sprintf("publishing %d decisions", len(p.decisions))
	if err := r.store.RecordCycle(lease, begun); err != nil {
		return fmt.Errorf("nothing published: %w", err)
	}
	if cause := context.Cause(lease); cause != nil { // lost while the record was written
		return cause
	}
	c.Outcome = domain.CyclePublished
	results := r.publish(lease, p.decisions)
	c.PublishTook = time.Since(began)
	failed, err := countPublished(c, p, results)
	r.meter.Cycles.Amended.Add(int64(c.Amended))
	r.meter.Cycles.Exchanged.Add(int64(c.Exchanged))
	r.meter.Cycles.Standby.Add(int64(c.Standby))
	if err == nil {
		memory.planner.ObserveLeadTime(r.clock.Since(p.began))
	}
	r.judgeByAllDrones(ctx, p, memory)
	r.handOver(lease, c, p)
	listUnserved(c, append(failed, unservedOrders(p)...))
	return err
}

// maxErrors is how many failed publications a cycle's error names. All of them would not fit a
// document; the record lists the orders of every one.
const maxErrors = 10

// publishFailed is the reason of an order whose decision Pub/Sub may not have. If it has it, the
// ledger will have the outcome.
const publishFailed = "publish_failed"

// countPublished notes in c what the server has, by the results of publishing.
// It returns the orders of the other decisions, and why these failed.
func countPublished(c *domain.Cycle, p cyclePlan, results []error) (failed []domain.UnservedOrder, _ error) {
	var errs []error
	more := 0
	for i, err := range results {
		d := p.decisions[i]
		given := d.OrderIDs
		if d.Amends() {
			given = p.added[d.DroneID]
		}
		if err == nil {
			switch {
			case d.Standby():
				c.Standby++
			case d.Amends():
				c.Amended++
				c.Exchanged += p.released[d.DroneID]
			default:
				c.Missions++
			}
			c.Assigned += len(given)
			c.DistanceKm += p.distances[d.DroneID]
			continue
		}
		if len(errs) < maxErrors {
			errs = append(errs, fmt.Errorf("publish the decision on drone %s: %w", d.DroneID, err))
		} else {
			more++
		}
		for _, id := range given {
			failed = append(failed, domain.UnservedOrder{OrderID: id, Reason: publishFailed})
		}
	}
	if more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", more))
	}
	return failed, errors.Join(errs...)
}

// cyclePlan is what a cycle decided.
type cyclePlan struct {
	snapshot  domain.Snapshot
	problem   solver.Problem // without the drones that the plan left out
	decisions []domain.Decision
	distances map[domain.DroneID]float64          // km that the drone flies more
	added     map[domain.DroneID][]domain.OrderID // by amendments
	released  map[domain.DroneID]int              // orders that amendments take away
	unserved  []solver.Unserved
	obstacles []domain.Obstacles // of the unserved orders
	learned   learning.Estimates // that the plan was made with
	began     time.Time          // of planning
	homes     []domain.DepotID   // of the area's drones; empty for all drones
}

// plan reads the snapshot and plans. It notes in c what it saw and decided.
func (r *Runner) plan(ctx context.Context, c *domain.Cycle, memory *Memory) (cyclePlan, error) {
	p := memory.planner
	turn, err := r.searches.wait(ctx)
	if err != nil {
		return cyclePlan{}, err
	}
	defer turn.end()
	r.waited(turn.waited)
	began, asked := time.Now(), r.clock.Now()
	snap, err := r.store.Snapshot(ctx, firestoretx.SnapshotRequest{
		Depot: c.DepotID, AreaRadius: r.cfg.AreaRadius, Limits: r.cfg.Limits,
		Flights: !r.cfg.NoAmendments, Known: &memory.flights,
		OnMalformed: func(err error) {
			r.log.ErrorContext(ctx, "document left out of the snapshot; correct it", slog.Any("err", err))
			leaveOut(c, err.Error())
		},
	})
	if err != nil {
		return cyclePlan{}, err
	}
	if snap.Depot.ID != c.DepotID {
		return cyclePlan{}, &OtherAreaError{snap.Depot.ID}
	}
	snap.CycleID, snap.Fence = c.ID, c.Fence
	area := domain.Area{Depots: snap.Depots()}.DepotIDs()
	if len(area) > 1 {
		c.DepotIDs = area
	}
	c.SnapshotTime, c.Drones, c.Flights, c.Orders = snap.ReadTime, len(snap.Drones), len(snap.Flights), len(snap.Orders)
	c.ReadTook = time.Since(began)
	r.learn(ctx, memory, snap)
	if err := turn.resume(ctx); err != nil {
		return cyclePlan{}, err
	}

	began = time.Now()
	planningBegan := r.clock.Now()
	// Deadlines are in the server's time; this process's clock may be off.
	now := snap.ReadTime.Add(planningBegan.Sub(asked))
	result, err := r.solve(ctx, p, snap, now.Add(p.LeadTime()))
	if err != nil {
		return cyclePlan{}, err
	}
	plan := result.Plan
	c.SolveTook = time.Since(began)
	if len(plan.Ignored) > 0 {
		first := plan.Ignored[0]
		r.log.WarnContext(ctx, "document left out of the plan; correct it", slog.Int("count", len(plan.Ignored)),
			slog.String("kind", first.Kind), slog.String("id", first.ID), slog.String("detail", first.Detail))
	}
	for _, i := range plan.Ignored {
		leaveOut(c, i.Kind+" "+i.ID+": "+i.Detail)
	}
	c.Objective = objective(plan.Objective, len(result.Kept))
	r.meter.Cycles.SetUnserved(string(c.DepotID), countUnserved(plan.Unserved, snap, intervalsPerRound*r.cfg.Interval))
	decided := newCyclePlan(snap, result)
	decided.began = planningBegan
	if !snap.Alone {
		decided.homes = area
	}
	return decided, nil
}

// newCyclePlan is what follows from a planner's result.
func newCyclePlan(snap domain.Snapshot, result planner.Result) cyclePlan {
	plan := result.Plan
	p := cyclePlan{
		snapshot: snap, problem: result.Usable(), decisions: planner.DecisionsOf(plan, snap), unserved: plan.Unserved, obstacles: result.Obstacles, learned: result.Learned,
		distances: map[domain.DroneID]float64{}, added: map[domain.DroneID][]domain.OrderID{}, released: map[domain.DroneID]int{},
	}
	for _, route := range plan.Routes {
		drone := domain.DroneID(route.DroneID)
		p.distances[drone] = route.DistanceKm
		p.added[drone] = planner.OrderIDs(route.OrderIDs()) // counts if the route amends a mission without orders
	}
	for _, s := range plan.Standby {
		p.distances[domain.DroneID(s.DroneID)] = s.DistanceKm
	}
	for _, a := range plan.Amendments {
		drone := domain.DroneID(a.DroneID)
		p.distances[drone], p.released[drone] = a.DetourKm, len(a.ReleasedIDs)
		p.added[drone] = append(p.added[drone], planner.OrderIDs(a.AddedIDs)...)
	}
	return p
}

// learnLimit bounds how long a cycle waits for what was learned.
const learnLimit = 5 * time.Second

// learn gives the planner what was learned in the snapshot's area until its read time.
func (r *Runner) learn(ctx context.Context, memory *Memory, snap domain.Snapshot) {
	if memory.learner == nil {
		return
	}
	scope := domain.LearningScope{Area: snap.Depot.ID}
	if !snap.Alone {
		scope.Depots = domain.Area{Depots: snap.Depots()}.DepotIDs()
	}
	looking, end := context.WithTimeout(meter.WithOperation(ctx, "learn"), learnLimit)
	defer end()
	learned, err := memory.learner.Look(looking, scope, snap.ReadTime)
	if err != nil && ctx.Err() == nil {
		r.log.WarnContext(ctx, "nothing learned; the cycle plans with what was learned before", slog.Any("err", err))
	}
	memory.planner.Learn(learned)
}

func (r *Runner) solve(ctx context.Context, p *planner.Planner, snap domain.Snapshot, start time.Time) (planner.Result, error) {
	ctx, span := r.tracer().Start(ctx, "solve")
	defer span.End()
	return p.PlanSnapshot(ctx, snap, start)
}
