package solver

import (
	"time"

	"github.com/dronefleet/dronefleet/solver/internal/search"
)

// A tiny problem has at most tinyProblem orders. Its search ends by itself after
// tinyTime, far below most limits: a longer one finds hardly more.
const (
	tinyProblem = search.Collectable
	tinyTime    = 47 * time.Millisecond
)

// tinyAttempts is how often the search of a tiny problem starts afresh, attemptSteps
// what each time takes at least where steps are the budget: a longer annealing
// ends in the same place, another one often in a better.
const (
	tinyAttempts = 16
	attemptSteps = 600
)

// packShare is the part of a tiny problem's time in which the routes of all attempts
// are combined; packNodes bounds that where steps are the budget.
const (
	packShare = 0.35
	packNodes = 500_000
)

// mostPacked is how many drones a packing can tell apart.
const mostPacked = 64

// improveTiny searches a tiny problem many times over and then for the best
// combination of the routes tried.
func (r *run) improveTiny(routes []plannedRoute) []plannedRoute {
	attempts, part := tinyAttempts, 1-packShare
	if n := r.opts.Iterations; n > 0 {
		attempts, part = min(attempts, max(1, n/attemptSteps)), 1
	}
	all := r.build(indices(len(r.orders)), indices(len(r.drones)), false)
	var tried []*search.Collection
	if !r.scalarGoal && len(r.drones) <= mostPacked {
		for range r.opts.Workers {
			tried = append(tried, search.NewCollection(all.in))
		}
	}
	spent, best := r.fraction(r.elapsed()), routes
	for k := range attempts {
		steps := float64(r.opts.Iterations) / float64(attempts)
		best = r.better(best, r.try(routes, attempt{
			seed:     r.opts.Seed*1000 + uint64(k*10),
			fraction: func(steps int64) float64 { return spent(steps)/part*float64(attempts) - float64(k) },
			before:   float64(k) * steps, steps: steps, tried: tried,
		}))
	}
	if tried == nil {
		return best
	}
	for _, t := range tried[1:] {
		tried[0].Merge(t)
	}
	chain := search.NewChain(all.in, r.tuning(false), r.opts.Seed)
	chain.Load(all.importRoutes(best))
	if !chain.Pack(tried[0], packNodes, r.opts.Workers, func() float64 { return (1 - spent(0)) / packShare }) {
		return best
	}
	return r.better(best, all.export(chain.Best))
}
