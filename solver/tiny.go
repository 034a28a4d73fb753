package solver

import (
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/solver/internal/search"
	"github.com/dronefleet/dronefleet/solver/internal/setpart"
)

// A tiny problem has at most tinyProblem orders. Its search ends by itself after
// tinyTime, far below most limits: a longer one finds hardly more. It has tinyDrone more
// for each drone: thousands of them take most of tinyTime to look at.
const (
	tinyProblem = setpart.MaxRequests
	tinyTime    = 47 * time.Millisecond
	tinyDrone   = 20 * time.Microsecond
)

// tinyAttempts is how often the search of a tiny problem starts afresh, attemptSteps
// what each time takes at least where steps are the budget: a longer annealing
// ends in the same place, another one often in a better.
const (
	tinyAttempts = 16
	attemptSteps = 600
)

// packShare is the part of a tiny problem's time in which the routes of all attempts
// are combined; packLooks bounds that where steps are the budget.
const (
	packShare = 0.35
	packLooks = 16_000_000
)

// mostPacked is how many drones a packing can tell apart.
const mostPacked = 64

// tinyTuning is that of a worker's k-th attempt: they refine and nearly start anew with
// every step by turns.
func (r *run) tinyTuning(k int) search.Tuning {
	t := r.tuning()
	if k%2 == 1 && !r.scalarGoal {
		t.InitialTemperature, t.MeanRemoved = 5000, 14
	}
	return t
}

// improveTiny has every worker search a tiny problem many times over and then looks for
// the best combination of the routes tried.
func (r *run) improveTiny(routes []plannedRoute) []plannedRoute {
	attempts, part := tinyAttempts, 1-packShare
	if n := r.opts.Iterations; n > 0 {
		attempts, part = min(attempts, max(1, n/attemptSteps)), 1
	}
	pt := r.build(indices(len(r.orders)), indices(len(r.drones)), false)
	pt.link(r.prepared)
	packed := !r.scalarGoal && len(r.drones) <= mostPacked
	spent, first := r.fraction(r.elapsed()), pt.importRoutes(routes)
	chains, pools := make([]*search.Chain, r.opts.Workers), make([]*setpart.Pool, r.opts.Workers)
	var wait sync.WaitGroup
	for i := range chains {
		wait.Go(func() {
			c := search.NewChain(pt.in, r.tinyTuning(i), r.seed()+uint64(i))
			if packed {
				pools[i] = setpart.NewPool(pt.in)
				c.OnRoute = pools[i].Add
			}
			for k := range attempts {
				from, to := part*float64(k)/float64(attempts), part*float64(k+1)/float64(attempts)
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
	if packed {
		for _, p := range pools {
			if p != pool {
				pool.Merge(p)
			}
		}
		setpart.Improve(pt.in, best, pool, setpart.Options{
			Budget: packLooks, Workers: len(chains), Left: func() float64 { return (1 - spent(0)) / packShare },
		})
	}
	r.stats.Clusters = 1
	return r.better(routes, pt.export(best))
}
