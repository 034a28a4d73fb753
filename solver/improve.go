package solver

import (
	"math"
	"slices"

	"github.com/dronefleet/dronefleet/solver/internal/search"
	"github.com/dronefleet/dronefleet/solver/model"
)

// stage is a part of the search that minds only the most urgent orders. Stages
// are nested: what is most urgent is planned first and alone, with nothing less
// urgent in the way, and is not given up afterwards.
type stage struct {
	orders   []int32
	from, to float64 // shares of the attempt's budget
}

// stageShare is the share of the budget that would go to a stage of all orders
// but the last one, stageMost the share of the orders above which a stage of its
// own is not worth it.
const (
	stageShare = 0.6
	stageMost  = 0.7
)

func (r *run) stages() []stage {
	var out []stage
	all := indices(len(r.orders))
	from := 0.0
	for rank, before := 0, 0; rank < model.PriorityCount-1 && !r.scalarGoal; rank++ {
		var orders []int32
		for _, o := range all {
			if r.orders[o].rank <= rank {
				orders = append(orders, o)
			}
		}
		share := float64(len(orders)) / float64(len(all))
		if len(orders) > before && share < stageMost {
			to := stageShare * math.Pow(share, 1.5)
			out = append(out, stage{orders, from, to})
			before, from = len(orders), to
		}
	}
	return append(out, stage{all, from, 1})
}

// tinyAttempts is how often the search of a tiny problem starts afresh, attemptSteps
// what each time takes at least where steps are the budget: a longer annealing
// ends in the same place, another one often in a better.
const (
	tinyAttempts = 12
	attemptSteps = 600
)

// attempt is one search through all stages.
type attempt struct {
	seed uint64
	// fraction is the share of the attempt's budget that is spent, for a chain
	// after its steps, which count from those of the attempts before.
	fraction func(steps int64) float64
	// before and steps are the steps per chain of the attempts before and of this
	// one, where steps are the budget.
	before, steps float64
}

// improve searches from the given routes.
func (r *run) improve(routes []plannedRoute) []plannedRoute {
	attempts := 1
	if len(r.orders) <= tinyProblem {
		attempts = tinyAttempts
		if n := r.opts.Iterations; n > 0 {
			attempts = min(attempts, max(1, n/attemptSteps))
		}
	}
	spent, best := r.fraction(r.elapsed()), routes
	for k := range attempts {
		steps := float64(r.opts.Iterations) / float64(attempts)
		best = r.better(best, r.try(routes, attempt{
			seed:     r.opts.Seed*1000 + uint64(k*10),
			fraction: func(steps int64) float64 { return spent(steps)*float64(attempts) - float64(k) },
			before:   float64(k) * steps, steps: steps,
		}))
	}
	return best
}

// try searches stage by stage. The given routes are one of the starting points of
// the last.
func (r *run) try(routes []plannedRoute, a attempt) []plannedRoute {
	var staged []plannedRoute
	stages := r.stages()
	for i, s := range stages {
		start := r.extend(staged, s.orders)
		if i == len(stages)-1 {
			start = r.better(routes, start)
			r.report(start)
		}
		if len(s.orders) <= singlePart {
			staged = r.improveWhole(a, s, start)
		} else {
			staged = r.improveClusters(a, s, start)
		}
	}
	return staged
}

// extend inserts what is missing of the orders, cluster by cluster.
func (r *run) extend(routes []plannedRoute, orders []int32) []plannedRoute {
	return r.inClusters(routes, orders, func(pt *part, c *cluster, _ int) []plannedRoute {
		chain := search.NewChain(pt.in, r.tuning(false), r.opts.Seed)
		chain.Load(pt.importRoutes(c.routes))
		chain.Construct(r.byUrgency(pt), r.over)
		return pt.export(chain.Best)
	})
}

// improveWhole anneals chains on all of a stage's orders.
func (r *run) improveWhole(a attempt, s stage, routes []plannedRoute) []plannedRoute {
	pt := r.build(s.orders, indices(len(r.drones)), false)
	pt.link(r.prepared)
	chains := make([]*search.Chain, r.opts.Workers)
	first := pt.importRoutes(routes)
	done := int64(a.before + s.from*a.steps)
	for i := range chains {
		chains[i] = search.NewChain(pt.in, r.tuning(i%2 == 1), a.seed+uint64(i))
		chains[i].Steps = done
		chains[i].Load(first)
	}
	r.stats.Clusters = 1
	search.Together(chains, s.from, s.to, a.fraction, func(best *search.Solution) {
		if s.to == 1 {
			r.report(pt.export(best))
		}
	})
	for _, c := range chains {
		r.steps += c.Steps - done
	}
	return pt.export(chains[0].Best)
}

// clusterRounds is how often the borders between clusters move, in all stages,
// fewestRounds in one at least.
const (
	clusterRounds = 6
	fewestRounds  = 3
)

// improveClusters anneals clusters in parallel, a few rounds with other borders.
func (r *run) improveClusters(a attempt, s stage, routes []plannedRoute) []plannedRoute {
	rounds := max(fewestRounds, int(math.Ceil(clusterRounds*(s.to-s.from))))
	for round := range rounds {
		if r.ctx.Err() != nil || r.opts.Iterations <= 0 && a.fraction(0) >= 1 {
			break
		}
		clusters := r.cut(routes, s.orders, math.Mod(float64(round)*0.618, 1))
		r.stats.Clusters = len(clusters)
		total := len(s.orders)
		part := (s.to - s.from) / float64(rounds)
		from := s.from + part*float64(round)
		to := from + part
		// Workers take clusters from one queue; each may search for as long as
		// its share of the orders is of all orders, from when it begins.
		out := make([][]plannedRoute, len(clusters))
		steps := make([]int64, len(clusters))
		r.eachCluster(len(clusters), func(worker, i int, done float64) {
			c := &clusters[i]
			if r.opts.Iterations <= 0 && a.fraction(0) >= to {
				out[i] = c.routes
				return
			}
			share := float64(len(c.orders)) / float64(max(1, total)) * float64(min(r.opts.Workers, len(clusters)))
			pt := r.build(c.orders, c.drones, false)
			pt.link(r.prepared)
			chain := search.NewChain(pt.in, r.tuning(false), a.seed+uint64(round*1000+i))
			chain.Load(pt.importRoutes(c.routes))
			// Of the cooling, which takes all rounds, this one is a part.
			schedule := search.Schedule{To: 1, Cooling: [2]float64{float64(-round), float64(rounds - round)}}
			if r.opts.Iterations > 0 {
				budget := a.steps * part
				schedule.Fraction = r.orCancelled(func(steps int64) float64 { return float64(steps) / budget })
			} else {
				start := a.fraction(0)
				end := min(to, start+share*part)
				if done+float64(len(c.orders))/float64(max(1, total)) > 0.999 {
					end = to
				}
				schedule.Fraction = func(int64) float64 {
					if end <= start {
						return 2
					}
					return (a.fraction(0) - start) / (end - start)
				}
			}
			chain.Promote(schedule)
			chain.Anneal(schedule)
			steps[i] = chain.Steps
			out[i] = pt.export(chain.Best)
		}, func(i int) float64 { return float64(len(clusters[i].orders)) / float64(max(1, total)) })
		routes = routes[:0:0]
		for i := range out {
			routes = append(routes, out[i]...)
			r.steps += steps[i]
		}
		if s.to == 1 {
			r.report(routes)
		}
	}
	return routes
}

// inClusters cuts the orders and the routes that serve some of them into clusters
// and has f make better routes of each.
func (r *run) inClusters(routes []plannedRoute, orders []int32, f func(pt *part, c *cluster, i int) []plannedRoute) []plannedRoute {
	clusters := r.cut(routes, orders, 0)
	out := make([][]plannedRoute, len(clusters))
	r.eachCluster(len(clusters), func(_, i int, _ float64) {
		c := &clusters[i]
		if r.over() {
			out[i] = c.routes
			return
		}
		out[i] = f(r.build(c.orders, c.drones, false), c, i)
	}, func(int) float64 { return 0 })
	return slices.Concat(out...)
}
