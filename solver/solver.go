package solver

import (
	"context"
	"time"

	"github.com/dronefleet/dronefleet/solver/model"
)

// The plain values live in solver/model, shared with the checker.
type (
	Location       = model.Location
	Priority       = model.Priority
	Drone          = model.Drone
	Flight         = model.Flight
	Order          = model.Order
	Warehouse      = model.Warehouse
	Depot          = model.Depot
	Params         = model.Params
	Problem        = model.Problem
	StopKind       = model.StopKind
	Stop           = model.Stop
	Route          = model.Route
	Amendment      = model.Amendment
	StandbyMission = model.StandbyMission
	Standby        = model.Standby
	Reason         = model.Reason
	Unserved       = model.Unserved
	Ignored        = model.Ignored
	Objective      = model.Objective
	Plan           = model.Plan
)

// Names re-exported from solver/model.
const (
	Standard = model.Standard
	High     = model.High
	Critical = model.Critical

	DepotStart      = model.DepotStart
	WarehousePickup = model.WarehousePickup
	Delivery        = model.Delivery
	DepotReturn     = model.DepotReturn
	Charge          = model.Charge
	Wait            = model.Wait

	NoCompatibleWarehouse = model.NoCompatibleWarehouse
	OutOfRange            = model.OutOfRange
	NoDroneFree           = model.NoDroneFree
	KeptForCritical       = model.KeptForCritical
	WaitsForBetterRoute   = model.WaitsForBetterRoute
	DeadlineUnreachable   = model.DeadlineUnreachable
	OverCapacity          = model.OverCapacity
	NoDroneAllowed        = model.NoDroneAllowed
	InvalidInput          = model.InvalidInput
)

// Strategy is how a plan is searched for.
type Strategy int

// Strategies.
const (
	// SISR constructs a plan and improves it until the limit.
	SISR Strategy = iota
	// Greedy is one construction by cheapest insertion, most urgent first.
	Greedy
	// NearestFirst is the naive baseline: the most urgent orders first, each alone
	// on the drone that is nearest to the order's nearest warehouse.
	NearestFirst
)

// Strategies maps the names used on command lines to strategies.
var Strategies = map[string]Strategy{"sisr": SISR, "greedy": Greedy, "nearest": NearestFirst}

// Goal is what the search minimises.
type Goal int

// Goals.
const (
	// Production is Objective.Less.
	Production Goal = iota
	// ReferenceScalar is the cost of the reference optimizer, for comparison
	// only: metres flown + 100 x metres of the longest route + 200 000 for each
	// order dropped. It drops orders that could be delivered.
	ReferenceScalar
)

// Options steer one Solve.
type Options struct {
	// TimeLimit is the wall time for all of Solve; 0 means 8 s. Only the first plan
	// may take longer, when there are very many orders or the machine is busy.
	// Ignored when Iterations is set.
	TimeLimit time.Duration
	// Seed makes a run repeatable together with Iterations.
	Seed uint64
	// Iterations > 0 selects the deterministic mode: that many ruin-and-recreate
	// steps per worker, whatever the clock says.
	Iterations int
	// Workers is the number of search goroutines; 0 means 2.
	Workers int
	// Warm is the previous cycle's plan; the part of it that still fits is one of
	// the starting points.
	Warm *Plan
	// Strategy defaults to SISR.
	Strategy Strategy
	// Goal defaults to Production.
	Goal Goal
	// Progress, if set, is called from Solve's goroutine a few times per run.
	Progress func(Progress)
	// Clock replaces time.Now for the time limit. It must be safe for several
	// goroutines at once.
	Clock func() time.Time
}

// Progress is a report on a running search.
type Progress struct {
	Elapsed    time.Duration
	Iterations int64
	Objective  Objective
}

// DefaultTimeLimit of Solve.
const DefaultTimeLimit = 8 * time.Second

func (o Options) withDefaults() Options {
	if o.TimeLimit <= 0 {
		o.TimeLimit = DefaultTimeLimit
	}
	if o.Workers <= 0 {
		o.Workers = 2
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}

// Solve plans the problem within the limit. It never fails on bad input: what is
// impossible is listed in Plan.Unserved and Plan.Ignored, and the rest is planned.
// The error is non-nil only if ctx ended first. It is then the context's cause,
// and the plan is the best found so far, complete and feasible.
func Solve(ctx context.Context, p Problem, o Options) (Plan, error) {
	return solve(ctx, p, o.withDefaults())
}

// Screen is the plan in which nothing flies, with the reason why each order waits: that it is
// invalid or no drone can serve it, that every drone would be late (DeadlineUnreachable), or
// else NoDroneFree.
func Screen(p Problem) Plan { return prepare(p).assemble(nil) }
