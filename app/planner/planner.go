package planner

import (
	"context"
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/check"
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
	// TurnTime is how long before its arrival at a stop a drone can no longer be sent
	// elsewhere; default DefaultTurnTime. It must not be less than the State Managers'.
	TurnTime time.Duration
	// Learned is what to plan with until Planner.Learn says otherwise.
	Learned learning.Estimates
	// Position sends idle drones to wait where CRITICAL orders are expected, if they support
	// missions without orders.
	Position bool
	// Refused, if set, is told of each plan that the checker refused, and why.
	// A refused plan is never returned.
	Refused func(p solver.Problem, fault error)
}

// Planner plans the solve cycles of one area, one after another. It remembers
// recent demand; a new Planner for every cycle works too, but looks less far
// ahead. It must not be used by two goroutines at once.
type Planner struct {
	cfg    Config
	clock  func() time.Time
	last   *solver.Plan
	demand demand
	lead   time.Duration
	// learned is what the next cycles are planned with.
	learned learning.Estimates
	// exchanged are orders taken from their drones, searched the routes for which a better
	// order of stops was sought.
	exchanged recentChanges[string]
	searched  recentChanges[routeRevision]
}

// New returns a planner that remembers nothing yet. The clock measures how long
// planning takes, to keep it within the time limit; it does not influence what
// is planned when Options.Iterations is set.
func New(cfg Config, clock func() time.Time) *Planner {
	if cfg.Options.TimeLimit <= 0 {
		cfg.Options.TimeLimit = solver.DefaultTimeLimit
	}
	cfg.Options.Clock = clock
	if cfg.TurnTime == 0 {
		cfg.TurnTime = DefaultTurnTime
	}
	if cfg.Refused == nil {
		cfg.Refused = func(solver.Problem, error) {}
	}
	p := &Planner{cfg: cfg, clock: clock}
	p.Learn(cfg.Learned)
	return p
}

// maxLeadTime bounds what one slow cycle makes the next ones expect.
const maxLeadTime = 30 * time.Second

// ObserveLeadTime tells the planner how long it took from the start of planning
// until the drones could begin their missions.
func (p *Planner) ObserveLeadTime(took time.Duration) {
	p.lead += (min(max(took, 0), maxLeadTime) - p.lead) / 2
}

// LeadTime is how long the planner expects it to take from the start of planning
// until the drones can begin: a moving average of what it observed. Missions
// planned as if they began at once would make a CRITICAL order late that has no
// time to spare.
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
	// Reserve is how many free drones were to be kept for CRITICAL orders to
	// come; Kept is how many were.
	Reserve, Kept int
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
	return p.Plan(ctx, p.ProblemOf(snap, start))
}

// ProblemOf turns a snapshot into the planner's problem.
func (p *Planner) ProblemOf(snap domain.Snapshot, start time.Time) solver.Problem {
	params := p.learnedParams()
	problem := problemOf(snap, start, params, p.learned)
	problem.Flights = flightsOf(amendable(snap), start, params, p.cfg.TurnTime, p.learned)
	p.addStandby(&problem, snap.Flights)
	addCharging(&problem, snap)
	return problem
}

// Plan decides which missions begin at problem.Now, the time at which drones can
// begin, and how missions under way change. The plan has passed the checker. The error
// is the cause of ctx's end, or says that even the greedy plan broke a rule.
func (p *Planner) Plan(ctx context.Context, problem solver.Problem) (Result, error) {
	problem = p.withMargins(problem)
	result, err := p.planOrders(ctx, problem)
	if err != nil || !p.cfg.Position {
		return result, err
	}
	result.Plan.Standby = p.standby(&result.Problem, result.Plan)
	if fault := check.Plan(result.Problem, result.Plan); fault != nil {
		p.cfg.Refused(result.Problem, fault)
		result.Plan.Standby = nil
	}
	return result, nil
}

// planOrders decides which drones serve which orders.
func (p *Planner) planOrders(ctx context.Context, problem solver.Problem) (Result, error) {
	if len(problem.Flights) == 0 {
		return p.planIdle(ctx, problem)
	}
	result, err := p.planAmending(ctx, problem)
	if err != nil {
		return result, err
	}
	if fault := check.Plan(problem, result.Plan); fault != nil {
		p.cfg.Refused(problem, fault)
		problem.Flights = nil
		return p.planIdle(ctx, problem)
	}
	return result, nil
}

// planIdle plans with the idle drones alone.
func (p *Planner) planIdle(ctx context.Context, problem solver.Problem) (Result, error) {
	if p.cfg.Immediate || p.cfg.Options.Strategy != solver.SISR {
		plan, err := p.solve(ctx, problem, p.last, p.cfg.Options.TimeLimit)
		p.last = &plan
		result := Result{Problem: problem, Plan: plan}
		if err == nil {
			p.demand.observeDrones(result.Usable().Drones, problem.Now)
			result.Obstacles = p.obstacles(result, nil)
		}
		return result, err
	}
	result, err := p.lookAhead(ctx, problem)
	if err != nil {
		return result, err
	}
	if fault := check.Plan(problem, result.Plan); fault != nil {
		p.cfg.Refused(problem, fault)
		result.Plan, err = p.solveGreedily(ctx, problem)
		result.Kept, result.Obstacles = 0, p.obstacles(result, nil)
	}
	return result, err
}

// obstacles counts why the orders of a result wait, with the drones kept in reserve.
func (p *Planner) obstacles(r Result, kept []solver.Drone) []domain.Obstacles {
	usable := r.Usable()
	return newDirectFlights(&usable).countObstacles(r.Plan, kept, max(0, len(p.demand.drones)-len(usable.Drones)))
}

func (p *Planner) solveGreedily(ctx context.Context, problem solver.Problem) (solver.Plan, error) {
	opts := p.cfg.Options
	opts.Strategy = solver.Greedy
	return SolveChecked(ctx, problem, opts, p.cfg.Refused)
}

// solve solves a problem within limit, which Options.Iterations overrides.
func (p *Planner) solve(ctx context.Context, problem solver.Problem, warm *solver.Plan, limit time.Duration) (solver.Plan, error) {
	opts := p.cfg.Options
	opts.Warm, opts.TimeLimit = warm, limit
	return SolveChecked(ctx, problem, opts, p.cfg.Refused)
}

// SolveChecked solves a problem and checks the plan with code that is
// independent of the solver. If the plan breaks a rule, refused is called and
// the greedy plan is returned instead; if that breaks one too, the error says
// which.
func SolveChecked(ctx context.Context, p solver.Problem, opts solver.Options, refused func(p solver.Problem, fault error)) (solver.Plan, error) {
	plan, err := solver.Solve(ctx, p, opts)
	if err != nil {
		return plan, err
	}
	fault := check.Plan(p, plan)
	if fault == nil {
		return plan, nil
	}
	refused(p, fault)
	opts.Strategy = solver.Greedy
	if plan, err = solver.Solve(ctx, p, opts); err != nil {
		return plan, err
	}
	if fault := check.Plan(p, plan); fault != nil {
		return plan, fmt.Errorf("the greedy plan broke the rules too: %w", fault)
	}
	return plan, nil
}
