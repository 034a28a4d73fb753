package solver

import (
	"math"
	"slices"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
	"github.com/dronefleet/dronefleet/solver/internal/search"
)

// stage is a part of the search that minds only the most urgent orders. Stages
// are nested: what is most urgent is planned first and alone, with nothing less
// urgent in the way, and is not given up afterwards.
type stage struct {
	orders   []int32
	from, to float64 // shares of the budget
}

// A stage of a share x of the orders ends at stageShare x^stagePower of the
// budget. Above a share of stageMost it is not worth one of its own.
const (
	stageShare = 0.9
	stagePower = 1.5
	stageMost  = 0.9
)

func (r *run) stages() []stage {
	var out []stage
	all := indices(len(r.orders))
	from := 0.0
	for rank, before := 0, 0; rank < rankCount-1 && !r.scalarGoal; rank++ {
		var orders []int32
		for _, o := range all {
			if r.orders[o].rank <= rank {
				orders = append(orders, o)
			}
		}
		share := float64(len(orders)) / float64(len(all))
		if len(orders) > before && share < stageMost {
			to := stageShare * math.Pow(share, stagePower)
			out = append(out, stage{orders, from, to})
			before, from = len(orders), to
		}
	}
	return append(out, stage{all, from, 1})
}

// improve searches from the given routes.
func (r *run) improve(routes []plannedRoute) []plannedRoute {
	if len(r.orders) <= tinyProblem {
		return r.improveTiny(routes)
	}
	return r.better(routes, r.improveStages(routes, r.fraction(r.elapsed())))
}

// improveStages searches stage by stage; fraction is the share of the budget that is
// spent, for a chain after its steps. The given routes are one of the starting points
// of the last stage.
func (r *run) improveStages(routes []plannedRoute, fraction func(steps int64) float64) []plannedRoute {
	var staged []plannedRoute
	stages := r.stages()
	for i, s := range stages {
		start := r.extend(staged, s.orders, r.over, true)
		if i == len(stages)-1 {
			start = r.better(routes, start)
			r.report(start)
		}
		if r.cuttable(len(s.orders)) {
			staged = r.improveClusters(s, start, fraction)
		} else {
			staged = r.improveWhole(s, start, fraction)
		}
	}
	return staged
}

// extend inserts greedily what the routes leave out of the orders, cluster by
// cluster. When time is over it keeps the routes as they are if they fit, and
// otherwise what fits of them.
func (r *run) extend(routes []plannedRoute, orders []int32, over func() bool, fit bool) []plannedRoute {
	return r.eachCluster(r.cut(routes, orders, 0), func(c *cluster, _ int, _ float64) []plannedRoute {
		switch {
		case !over():
			return r.insert(r.build(c.orders, c.drones, false), c.routes, over)
		case fit:
			return c.routes
		}
		return r.curtail(c.routes)
	})
}

// curtail shortens routes to what fits of them, each by itself: that is done at once.
func (r *run) curtail(routes []plannedRoute) []plannedRoute {
	var out []plannedRoute
	for _, route := range routes {
		var orders []int32
		for _, s := range route.stops {
			if s.source < 0 {
				orders = append(orders, s.order)
			}
		}
		pt := r.build(orders, []int32{route.drone}, false)
		out = append(out, pt.export(pt.importRoutes([]plannedRoute{route}))...)
	}
	return out
}

// insert adds to routes of a part what they leave out, most urgent first, each
// order at its cheapest place, until time is over.
func (r *run) insert(pt *part, routes []plannedRoute, over func() bool) []plannedRoute {
	chain := search.NewChain(pt.in, r.tuning(), r.opts.Seed)
	chain.Load(pt.importRoutes(routes))
	chain.Construct(r.byUrgency(pt), over)
	return pt.export(chain.Best)
}

// improveWhole anneals chains on all of a stage's orders.
func (r *run) improveWhole(s stage, routes []plannedRoute, fraction func(steps int64) float64) []plannedRoute {
	pt := r.build(s.orders, indices(len(r.drones)), false)
	pt.link(r.prepared)
	chains := make([]*search.Chain, r.opts.Workers)
	first := pt.importRoutes(routes)
	done := int64(s.from * float64(r.opts.Iterations))
	for i := range chains {
		chains[i] = search.NewChain(pt.in, r.tuning(), r.seed()+uint64(i))
		chains[i].Steps = done
		chains[i].Load(first)
	}
	r.stats.Clusters = 1
	search.Together(chains, s.from, s.to, fraction, promoteAndAnneal, func(best *pdp.Solution) {
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
func (r *run) improveClusters(s stage, routes []plannedRoute, fraction func(steps int64) float64) []plannedRoute {
	rounds := max(fewestRounds, int(math.Ceil(clusterRounds*(s.to-s.from))))
	for round := range rounds {
		if r.ctx.Err() != nil || r.opts.Iterations <= 0 && fraction(0) >= 1 {
			break
		}
		clusters := r.cut(routes, s.orders, math.Mod(float64(round)*0.618, 1))
		r.stats.Clusters = len(clusters)
		// Before the last stage nothing counts but what is left out.
		if s.to < 1 {
			if !slices.ContainsFunc(clusters, func(c cluster) bool { return c.unserved > 0 }) {
				break
			}
			r.allot(clusters, 1)
		}
		part := (s.to - s.from) / float64(rounds)
		from := s.from + part*float64(round)
		to := from + part
		// Of the cooling, which takes all rounds, this one is a part.
		schedule := search.Schedule{To: 1, Cooling: [2]float64{float64(-round), float64(rounds - round)}}
		steps := make([]int64, len(clusters))
		routes = r.eachCluster(clusters, func(c *cluster, i int, done float64) []plannedRoute {
			schedule := schedule
			if r.opts.Iterations > 0 {
				steps := max(1, float64(r.opts.Iterations)*part*c.effort*float64(len(clusters)))
				schedule.Fraction = r.orCancelled(func(n int64) float64 { return float64(n) / steps })
			} else {
				// Each may search for as long as its effort is, from when it begins, the last
				// until the end.
				begin, end := fraction(0), to
				if done+c.effort < 0.999 {
					end = min(to, begin+part*c.effort*float64(min(r.opts.Workers, len(clusters))))
				}
				if begin >= end {
					return c.routes
				}
				schedule.Fraction = func(int64) float64 { return (fraction(0) - begin) / (end - begin) }
			}
			pt := r.build(c.orders, c.drones, false)
			pt.link(r.prepared)
			chain := search.NewChain(pt.in, r.tuning(), r.seed()+uint64(round*1000+i))
			chain.Load(pt.importRoutes(c.routes))
			promoteAndAnneal(chain, schedule)
			steps[i] = chain.Steps
			return pt.export(chain.Best)
		})
		for _, n := range steps {
			r.steps += n
		}
		if s.to == 1 {
			r.report(routes)
		}
	}
	return routes
}

// promoteAndAnneal is what a chain does between two exchanges.
func promoteAndAnneal(c *search.Chain, s search.Schedule) {
	c.Promote(s)
	c.Anneal(s)
}
