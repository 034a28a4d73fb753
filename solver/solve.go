package solver

import (
	"cmp"
	"context"
	"slices"

	"github.com/dronefleet/dronefleet/solver/internal/search"
	"github.com/dronefleet/dronefleet/solver/model"
)

const rankCount = model.RankCount

// run is one Solve in progress.
type run struct {
	*prepared
	budget *budget
	opts   Options
	stats  model.Stats
	steps  int64
}

func solve(ctx context.Context, p Problem, o Options) (Plan, error) {
	b := newBudget(ctx, o)
	r := &run{budget: b, opts: o, prepared: prepare(p)}
	b.prepared(len(r.orders), len(r.drones))
	r.scalarGoal = o.Goal == ReferenceScalar
	var routes []plannedRoute
	if len(r.orders) > 0 && len(r.drones) > 0 {
		switch o.Strategy {
		case NearestFirst:
			routes = r.nearestFirst()
		case Greedy:
			routes = r.addLate(r.construct())
		default:
			routes = r.search()
		}
	}
	plan := r.assemble(routes)
	r.stats.Elapsed = b.elapsed()
	r.stats.Iterations = r.steps
	plan.Stats = r.stats
	return plan, context.Cause(ctx)
}

// search constructs a plan, improves it until the limit and adds late deliveries
// of what is left.
func (r *run) search() []plannedRoute {
	routes := r.construct()
	r.budget.firstPlan = r.budget.elapsed()
	r.stats.FirstPlan = r.budget.firstPlan
	r.report(routes)
	routes = r.better(routes, r.repairWarm())
	if r.budget.over() {
		return routes
	}
	return r.addLate(r.improve(routes))
}

// report calls Options.Progress.
func (r *run) report(routes []plannedRoute) {
	if r.opts.Progress != nil {
		r.opts.Progress(Progress{Elapsed: r.budget.elapsed(), Iterations: r.steps, Objective: r.assemble(routes).Objective})
	}
}

// better returns the better of two sets of routes; b may be nil.
func (r *run) better(a, b []plannedRoute) []plannedRoute {
	if b == nil {
		return a
	}
	x, y := r.assemble(a).Objective, r.assemble(b).Objective
	if r.scalarGoal {
		if y.ReferenceScalar() < x.ReferenceScalar() {
			return b
		}
		return a
	}
	missedA, missedB := r.missedByRank(a), r.missedByRank(b)
	if c := slices.Compare(missedB[:], missedA[:]); c < 0 || c == 0 && y.Less(x) {
		return b
	}
	return a
}

// missedByRank is how much routes that are in time leave out, rank by rank. Like
// the search, it counts an order that has waited beyond the highest rank several
// times.
func (r *run) missedByRank(routes []plannedRoute) (sum [rankCount]int) {
	served := servedBy(routes)
	for o := range r.orders {
		if !served[int32(o)] {
			sum[r.orders[o].rank] += 1 + r.orders[o].extra
		}
	}
	return sum
}

// construct inserts every order greedily, most urgent first, cluster by cluster.
func (r *run) construct() []plannedRoute {
	return r.insertMissing(nil, indices(len(r.orders)), r.budget.constructionOver, true)
}

// insertMissing inserts greedily what the routes leave out of the orders, cluster by
// cluster. When time is over it keeps the feasible part of the routes.
func (r *run) insertMissing(routes []plannedRoute, orders []int32, over func() bool, feasible bool) []plannedRoute {
	return r.eachCluster(r.cut(routes, orders, 0), func(c *cluster, _ int, _ float64) []plannedRoute {
		switch {
		case !over():
			return r.insert(r.subproblem(c.orders, c.drones, false), c.routes, over)
		case feasible:
			return c.routes
		}
		return r.keepFitting(c.routes)
	})
}

// keepFitting shortens each route to what fits of it. Routes are looked at one by
// one, which takes no time.
func (r *run) keepFitting(routes []plannedRoute) []plannedRoute {
	var out []plannedRoute
	for _, route := range routes {
		var orders []int32
		for _, s := range route.stops {
			if s.source < 0 {
				orders = append(orders, s.order)
			}
		}
		sp := r.subproblem(orders, []int32{route.drone}, false)
		out = append(out, sp.export(sp.importRoutes([]plannedRoute{route}))...)
	}
	return out
}

// insert adds to routes of a subproblem what they leave out, most urgent first,
// each order at its cheapest place, until time is over.
func (r *run) insert(sp *subproblem, routes []plannedRoute, over func() bool) []plannedRoute {
	chain := search.NewChain(sp.in, r.tuning(), r.opts.Seed)
	chain.Load(sp.importRoutes(routes))
	chain.Construct(r.byUrgency(sp.orders), over)
	return sp.export(chain.Best)
}

// byUrgency sorts the indices of some orders by rank, then by deadline.
func (r *run) byUrgency(orders []int32) []int32 {
	order := indices(len(orders))
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := &r.orders[orders[a]], &r.orders[orders[b]]
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.due, y.due), cmp.Compare(y.overdue, x.overdue))
	})
	return order
}

// addLate serves, late, what could not be served in time: a late medical
// delivery is better than none. No order that is in a route becomes late for it.
func (r *run) addLate(routes []plannedRoute) []plannedRoute {
	if r.scalarGoal || !r.misses(routes) {
		return routes
	}
	clusters := r.cut(routes, indices(len(r.orders)), 0)
	return r.eachCluster(clusters, func(c *cluster, _ int, _ float64) []plannedRoute {
		if c.missed == 0 || r.budget.lateFillOver(len(clusters), r.opts.Workers) {
			return c.routes
		}
		return r.insert(r.subproblem(c.orders, c.drones, true, c.routes...), c.routes, r.budget.over)
	})
}

// misses reports whether some order is in no route.
func (r *run) misses(routes []plannedRoute) bool {
	n := 0
	for _, route := range routes {
		n += len(route.stops) / 2
	}
	return n < len(r.orders)
}

func servedBy(routes []plannedRoute) map[int32]bool {
	served := map[int32]bool{}
	for _, route := range routes {
		for _, s := range route.stops {
			served[s.order] = true
		}
	}
	return served
}

func indices(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}
