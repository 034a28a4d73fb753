package solver

import (
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/solver/internal/search"
	"github.com/dronefleet/dronefleet/solver/internal/setpart"
)

// A tiny problem has at most tinyProblem orders. Its search ends by itself after tinyTime,
// far below most limits: a longer one hardly finds more. Each drone adds tinyDrone, because
// looking at thousands takes most of tinyTime.
const (
	tinyProblem = setpart.MaxRequests
	tinyTime    = 47 * time.Millisecond
	tinyDrone   = 20 * time.Microsecond
)

// tinyAttempts is how often the search of a tiny problem starts afresh: a longer annealing
// ends with the same plan, another one often with a better. If steps are the budget, each
// attempt has at least attemptSteps.
const (
	tinyAttempts = 16
	attemptSteps = 600
)

// partitionShare is the part of a tiny problem's time that set partitioning has,
// partitionBudget what bounds it where steps are the budget.
const (
	partitionShare  = 0.35
	partitionBudget = 16_000_000
)

// maxPartitionDrones is how many drones set partitioning can tell apart in time.
const maxPartitionDrones = 64

// improveTiny has every worker search a tiny problem many times over and then
// finds the best combination of the routes tried.
func (r *run) improveTiny(routes []plannedRoute) []plannedRoute {
	attempts, searchShare := tinyAttempts, 1-partitionShare
	if n := r.opts.Iterations; n > 0 {
		attempts, searchShare = min(attempts, max(1, n/attemptSteps)), 1
	}
	sp := r.subproblem(indices(len(r.orders)), indices(len(r.drones)), false)
	sp.link()
	partition := !r.scalarGoal && len(r.drones) <= maxPartitionDrones
	spent, first := r.budget.spent(), sp.importRoutes(routes)
	chains, pools := make([]*search.Chain, r.opts.Workers), make([]*setpart.Pool, r.opts.Workers)
	var wait sync.WaitGroup
	for i := range chains {
		wait.Go(func() {
			c := search.NewChain(sp.in, r.tinyTuning(i), r.seed()+uint64(i))
			if partition {
				pools[i] = setpart.NewPool(sp.in)
				c.OnRoute = pools[i].Add
			}
			for k := range attempts {
				from, to := searchShare*float64(k)/float64(attempts), searchShare*float64(k+1)/float64(attempts)
				c.Tuning = r.tinyTuning(i + k)
				c.Load(first)
				c.Anneal(search.Schedule{To: to, Cooling: [2]float64{from, to}, Fraction: spent})
			}
			chains[i] = c
		})
	}
	wait.Wait()
	best, pool := chains[0].Best, pools[0]
	for i, c := range chains {
		r.steps += c.Steps
		if c.Best.Less(best.Value) {
			best, pool = c.Best, pools[i]
		}
	}
	if partition {
		for _, p := range pools {
			if p != pool {
				pool.Merge(p)
			}
		}
		setpart.Improve(sp.in, best, pool, setpart.Options{
			Budget: partitionBudget, Workers: len(chains), Left: func() float64 { return (1 - spent(0)) / partitionShare },
		})
	}
	r.stats.Clusters = 1
	return r.better(routes, sp.export(best))
}
