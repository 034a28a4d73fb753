package solver

import (
	"math"
	"slices"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
	"github.com/dronefleet/dronefleet/solver/internal/search"
)

// stage is a part of the search that plans only the most urgent orders. Stages are nested:
// the most urgent orders are planned first and alone, and are not given up afterwards.
type stage struct {
	orders   []int32
	from, to float64 // shares of the budget
}

// A stage with a share x of the orders ends at stageShare x^stagePower of the
// budget. Above a share of stageMost it is not worth a stage of its own.
const (
	stageShare = 0.9
	stagePower = 1.5
	stageMost  = 0.9
)

// stages returns a stage for each rank but the lowest, and one for all orders.
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
	return r.better(routes, r.improveStages(routes, r.budget.spent()))
}

// improveStages searches stage by stage; spent returns the share of the budget
// that is spent, for a chain after its steps. The given routes are one of the
// starting points of the last stage.
func (r *run) improveStages(routes []plannedRoute, spent func(steps int64) float64) []plannedRoute {
	var staged []plannedRoute
	stages := r.stages()
	for i, s := range stages {
		start := r.insertMissing(staged, s.orders, r.budget.over, true)
		if i == len(stages)-1 {
			start = r.better(routes, start)
			r.report(start)
		}
		if r.cuttable(len(s.orders)) {
			staged = r.improveClusters(s, start, spent)
		} else {
			staged = r.improveWhole(s, start, spent)
		}
	}
	return staged
}

// improveWhole anneals several chains on all orders of a stage.
func (r *run) improveWhole(s stage, routes []plannedRoute, spent func(steps int64) float64) []plannedRoute {
	sp := r.subproblem(s.orders, indices(len(r.drones)), false)
	sp.link()
	chains := make([]*search.Chain, r.opts.Workers)
	first := sp.importRoutes(routes)
	done := int64(s.from * float64(r.opts.Iterations))
	for i := range chains {
		chains[i] = search.NewChain(sp.in, r.tuning(), r.seed()+uint64(i))
		chains[i].Steps = done
		chains[i].Load(first)
	}
	r.stats.Clusters = 1
	search.Together(chains, s.from, s.to, spent, promoteAndAnneal, func(best *pdp.Solution) {
		if s.to == 1 {
			r.report(sp.export(best))
		}
	})
	for _, c := range chains {
		r.steps += c.Steps - done
	}
	return sp.export(chains[0].Best)
}

// promoteAndAnneal is what a chain does between two exchanges.
func promoteAndAnneal(c *search.Chain, s search.Schedule) {
	c.Promote(s)
	c.Anneal(s)
}

// clusterRounds is how often the borders between clusters move, in all stages;
// fewestRounds is the least in one.
const (
	clusterRounds = 6
	fewestRounds  = 3
)

// improveClusters anneals clusters in parallel, in a few rounds with different
// borders.
func (r *run) improveClusters(s stage, routes []plannedRoute, spent func(steps int64) float64) []plannedRoute {
	rounds := max(fewestRounds, int(math.Ceil(clusterRounds*(s.to-s.from))))
	for i := range rounds {
		if r.budget.cancelled() || r.budget.timed() && spent(0) >= 1 {
			break
		}
		// The golden ratio spreads the shifts evenly however many rounds there are.
		clusters := r.cut(routes, s.orders, math.Mod(float64(i)*0.618, 1))
		r.stats.Clusters = len(clusters)
		// Before the last stage only what is left out counts.
		if s.to < 1 {
			if !slices.ContainsFunc(clusters, func(c cluster) bool { return c.unserved > 0 }) {
				break
			}
			r.shareEffort(clusters, 1)
		}
		share := (s.to - s.from) / float64(rounds)
		routes = r.improveRound(round{
			number: i, share: share, to: s.from + share*float64(i) + share, spent: spent,
			// Of the cooling, which takes all rounds, this one is a part.
			cooling: [2]float64{float64(-i), float64(rounds - i)},
		}, clusters)
		if s.to == 1 {
			r.report(routes)
		}
	}
	return routes
}

// round is one round over all clusters.
type round struct {
	number    int
	share, to float64 // its share of the budget, and where that ends
	cooling   [2]float64
	spent     func(steps int64) float64
}

// improveRound anneals every cluster once.
func (r *run) improveRound(rd round, clusters []cluster) []plannedRoute {
	steps := make([]int64, len(clusters))
	routes := r.eachCluster(clusters, func(c *cluster, i int, done float64) []plannedRoute {
		schedule := search.Schedule{To: 1, Cooling: rd.cooling}
		if schedule.Fraction = r.clusterBudget(rd, c, len(clusters), done); schedule.Fraction == nil {
			return c.routes
		}
		sp := r.subproblem(c.orders, c.drones, false)
		sp.link()
		chain := search.NewChain(sp.in, r.tuning(), r.seed()+uint64(rd.number*1000+i))
		chain.Load(sp.importRoutes(c.routes))
		promoteAndAnneal(chain, schedule)
		steps[i] = chain.Steps
		return sp.export(chain.Best)
	})
	for _, n := range steps {
		r.steps += n
	}
	return routes
}

// clusterBudget returns the share of a cluster's budget that is spent, for a chain after its
// steps, or nil if the cluster has none. Each cluster may search for its share of the effort
// from its start, the last one until the end of the round; done is the effort handed out
// before.
func (r *run) clusterBudget(rd round, c *cluster, clusters int, done float64) func(steps int64) float64 {
	if !r.budget.timed() {
		steps := max(1, float64(r.opts.Iterations)*rd.share*c.effort*float64(clusters))
		return r.budget.orCancelled(func(n int64) float64 { return float64(n) / steps })
	}
	begin, end := rd.spent(0), rd.to
	if done+c.effort < 0.999 {
		end = min(rd.to, begin+rd.share*c.effort*float64(min(r.opts.Workers, clusters)))
	}
	if begin >= end {
		return nil
	}
	return func(int64) float64 { return (rd.spent(0) - begin) / (end - begin) }
}
