package dispatch

import (
	"context"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/check"
)

// PlannerConfig says how a Planner plans.
type PlannerConfig struct {
	// Options of the solver; TimeLimit and Iterations are those of a whole
	// cycle. With Iterations the plans depend on nothing but the input.
	Options solver.Options
	// Params are the rules of planning, such as service times; the zero value
	// stands for the solver's defaults.
	Params solver.Params
	// Immediate gives every drone work at once, whatever may come next: the
	// plan of one instant, with nothing kept in reserve. Strategies other than
	// SISR, being what it is compared with, always plan so.
	Immediate bool
}

// Planner plans the cycles of one depot, one after another. It remembers recent
// demand; a new one for each cycle works too, only less far-sighted.
type Planner struct {
	cfg     PlannerConfig
	refused func(p solver.Problem, fault error)
	last    *solver.Plan
	demand  demand
	lead    time.Duration
	fleet   fleet
}

// NewPlanner returns a planner without memories. refused is told of plans that
// broke the rules; they are never used.
func NewPlanner(cfg PlannerConfig, refused func(p solver.Problem, fault error)) *Planner {
	if cfg.Options.TimeLimit <= 0 {
		cfg.Options.TimeLimit = solver.DefaultTimeLimit
	}
	return &Planner{cfg: cfg, refused: refused}
}

// longestLead bounds what one slow cycle makes the next ones expect.
const longestLead = 30 * time.Second

// published tells how long it took from the start of planning until drones
// could begin. The next plan starts that much later: a flight that leaves a
// CRITICAL order no time would be late if planned as from now.
func (p *Planner) published(after time.Duration) {
	p.lead += (min(max(after, 0), longestLead) - p.lead) / 2
}

// Round is what one cycle is to do.
type Round struct {
	Problem solver.Problem
	// Plan holds the missions to begin now and, of all other orders, why they
	// wait.
	Plan solver.Plan
	// Reserve is how many free drones were to be kept for CRITICAL orders to
	// come, Kept how many were.
	Reserve, Kept int
}

// Plan decides which missions begin at start, the moment drones can hear of
// it. The plan has passed the checker. The error is the end of ctx, or that not
// even the greedy plan kept the rules.
func (p *Planner) Plan(ctx context.Context, snap domain.Snapshot, start time.Time) (Round, error) {
	problem := ProblemOf(snap, start, p.cfg.Params)
	if p.cfg.Immediate || p.cfg.Options.Strategy != solver.SISR {
		plan, err := p.solve(ctx, problem, p.last, p.cfg.Options.TimeLimit)
		p.last = &plan
		return Round{Problem: problem, Plan: plan}, err
	}
	round, err := p.lookAhead(ctx, problem)
	if err != nil {
		return round, err
	}
	if fault := check.Plan(problem, round.Plan); fault != nil {
		p.refused(problem, fault)
		round.Plan, err = Solve(ctx, problem, solver.Options{Strategy: solver.Greedy}, func(fault error) { p.refused(problem, fault) })
	}
	return round, err
}

// solve solves a problem within limit of machine time, unless steps count.
func (p *Planner) solve(ctx context.Context, problem solver.Problem, warm *solver.Plan, limit time.Duration) (solver.Plan, error) {
	opts := p.cfg.Options
	opts.Warm, opts.TimeLimit = warm, limit
	return Solve(ctx, problem, opts, func(fault error) { p.refused(problem, fault) })
}
