package planner

import (
	"context"
	"time"

	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/model"
)

// Config tunes a Planner.
type Config struct {
	// Options go to the solver. TimeLimit and Iterations are those of a whole
	// cycle; with Iterations the plan depends on the input alone.
	Options solver.Options
	// Params are the rules of planning, such as service times, that PlanSnapshot
	// uses; the zero value means the solver's defaults.
	Params solver.Params
	// Immediate plans without looking ahead: every free drone is used at once
	// and none is kept in reserve. Strategies other than SISR always plan so.
	Immediate bool
	// Limits say which stops can no longer be changed; a field that is zero stands for the
	// contract's value.
	Limits policy.Limits
	// Learned is what to plan with until Planner.Learn says otherwise.
	Learned learning.Estimates
	// Advance sends idle drones to wait where CRITICAL orders are expected, if they support
	// missions without orders.
	Advance bool
	// Refused, if set, is told of each plan that the checker refused, and why.
	// A refused plan is never returned.
	Refused func(p solver.Problem, broken error)
}

// Planner plans the solve cycles of one area, one after another. It remembers recent demand, which
// a new Planner for every cycle would not. It is not safe for concurrent use.
type Planner struct {
	cfg    Config
	clock  func() time.Time
	last   *solver.Plan
	demand demand
	lead   time.Duration
	// learned is what the next cycles are planned with.
	learned learning.Estimates
	// exchanged holds orders that were taken from their drones, resequenced the routes whose
	// sequence of stops was improved already.
	exchanged   recentChanges[string]
	resequenced recentChanges[routeRevision]
}

// New returns a planner that remembers nothing yet. The clock measures how long
// planning takes, to keep it within the time limit; it does not influence what
// is planned when Options.Iterations is set.
func New(cfg Config, clock func() time.Time) *Planner {
	if cfg.Options.TimeLimit <= 0 {
		cfg.Options.TimeLimit = solver.DefaultTimeLimit
	}
	cfg.Options.Clock = clock
	cfg.Limits = cfg.Limits.WithDefaults()
	if cfg.Refused == nil {
		cfg.Refused = func(solver.Problem, error) {}
	}
	p := &Planner{cfg: cfg, clock: clock}
	p.Learn(cfg.Learned)
	return p
}

// Learn gives the planner what was learned of the fleet: each drone's speed, the stays at stops,
// the delays and the demand of the hour. Estimates of a fleet without a past change nothing.
func (p *Planner) Learn(e learning.Estimates) {
	p.learned = e
	p.demand.expected = e.Demand
}

// Assumed is what plans use until something has been learned.
func Assumed(params solver.Params) learning.Assumed {
	params = params.WithDefaults()
	return learning.Assumed{SpeedKmh: model.DefaultSpeedKmh, Pickup: params.PickupService, Deliver: params.DeliveryService}
}

// maxLeadTime bounds what one slow cycle makes the next ones expect.
const maxLeadTime = 30 * time.Second

// ObserveLeadTime tells the planner how long it took from the start of planning
// until the drones could begin their missions.
func (p *Planner) ObserveLeadTime(took time.Duration) {
	p.lead += (min(max(took, 0), maxLeadTime) - p.lead) / 2
}

// LeadTime is how long the planner expects it to take from the start of planning until the drones
// can begin: a moving average of what it observed. Otherwise a CRITICAL order without time to
// spare would be late.
func (p *Planner) LeadTime() time.Duration { return p.lead }

// Result is what a planner decided for one cycle.
type Result struct {
	Problem solver.Problem
	// Plan holds the missions to begin now, those to change under way and, for every
	// other order, why it waits.
	Plan solver.Plan
	// Obstacles says in numbers of drones why each order of Plan.Unserved waits; it
	// has the same indices.
	Obstacles []domain.Obstacles
	// Reserve is how many free drones were to be kept for CRITICAL orders to come; Kept are
	// those that were.
	Reserve int
	Kept    []solver.Drone
	// Learned is what the plan was made with.
	Learned learning.Estimates
}

// Usable is the problem without the drones and warehouses that the solver ignored.
func (r Result) Usable() solver.Problem {
	p := r.Problem
	p.Drones = withoutIgnored(p.Drones, "drone", r.Plan.Ignored)
	p.Warehouses = withoutIgnored(p.Warehouses, "warehouse", r.Plan.Ignored)
	return p
}

// PlanSnapshot is Plan for a snapshot of the store. The missions begin at start.
func (p *Planner) PlanSnapshot(ctx context.Context, snap domain.Snapshot, start time.Time) (Result, error) {
	problem := p.ProblemOf(snap, start)
	return p.Plan(ctx, problem)
}

// Plan decides which missions begin at problem.Now, the time at which drones can begin, and
// how missions under way change. The phases are: assign orders to idle drones, amend missions
// under way, send idle drones to advance positions, explain why orders wait.
//
// The plan has passed the checker. The error is the cause of ctx's end, or says that even the
// greedy plan broke a rule.
func (p *Planner) Plan(ctx context.Context, problem solver.Problem) (Result, error) {
	problem = p.withMargins(problem)
	result, err := p.planOrders(ctx, problem)
	if err != nil {
		return Result{}, err
	}
	if p.cfg.Advance {
		result.Plan.Standby = p.standby(result)
		if !p.passes(result.Problem, result.Plan) {
			result.Plan.Standby = nil
		}
	}
	result.Obstacles, result.Learned = p.obstacles(result), p.learned
	return result, nil
}

// planOrders decides which drones serve which orders. If amendments break a rule, it plans
// without them.
func (p *Planner) planOrders(ctx context.Context, problem solver.Problem) (Result, error) {
	if len(problem.Flights) > 0 {
		result, err := p.planAmending(ctx, problem)
		if err != nil || p.passes(problem, result.Plan) {
			return result, err
		}
		problem.Flights = nil
	}
	return p.planIdle(ctx, problem)
}
