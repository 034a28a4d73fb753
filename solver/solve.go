package solver

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/solver/internal/search"
	"github.com/dronefleet/dronefleet/solver/model"
)

const rankCount = model.RankCount

// dispatchTuning is in metres.
var dispatchTuning = search.Tuning{
	InitialTemperature: 2000, FinalTemperature: 20, MeanRemoved: 20, MaxString: 10,
	RegretPercent: 10, TwoOptStarPercent: 30, BankTries: 40, AbsenceShare: 0.7,
	Sorts: search.SortWeights{
		search.SortRandom: 4, search.SortDemand: 1, search.SortFar: 2, search.SortClose: 1, search.SortEnd: 3, search.SortPrize: 8,
	},
}

// endgame is the part of the limit kept for assembling the plan.
const endgame = 2 * time.Millisecond

// leastFill is what is kept for the late fill however short the construction was.
const leastFill = time.Millisecond

// run is one Solve in progress.
type run struct {
	*prepared
	ctx   context.Context
	opts  Options
	start time.Time
	until time.Duration // when the search ends; the limit is for all
	least time.Duration // until when orders are inserted, be it beyond the limit
	stats model.Stats
	steps int64
}

func solve(ctx context.Context, p Problem, o Options) (Plan, error) {
	r := &run{ctx: ctx, opts: o, start: o.Clock()}
	r.prepared = prepare(p)
	r.least = insertingTakes * r.elapsed()
	r.until = o.TimeLimit
	if len(r.orders) <= tinyProblem {
		r.until = min(r.until, tinyTime+time.Duration(len(r.drones))*tinyDrone)
	}
	r.scalarGoal = o.Goal == ReferenceScalar
	var routes []plannedRoute
	if len(r.orders) > 0 && len(r.drones) > 0 {
		switch o.Strategy {
		case NearestFirst:
			routes = r.nearestFirst()
		case Greedy:
			routes = r.fillLate(r.construct())
		default:
			routes = r.search()
		}
	}
	plan := r.assemble(routes)
	r.stats.Elapsed = r.elapsed()
	r.stats.Iterations = r.steps
	plan.Stats = r.stats
	return plan, context.Cause(ctx)
}

func (r *run) elapsed() time.Duration { return r.opts.Clock().Sub(r.start) }

// search constructs, improves until the limit and fills what is left with late
// deliveries.
func (r *run) search() []plannedRoute {
	routes := r.construct()
	r.stats.FirstPlan = r.elapsed()
	r.report(routes)
	routes = r.better(routes, r.rewarm())
	if r.over() {
		return routes
	}
	return r.fillLate(r.improve(routes))
}

func (r *run) report(routes []plannedRoute) {
	if r.opts.Progress != nil {
		r.opts.Progress(Progress{Elapsed: r.elapsed(), Iterations: r.steps, Objective: r.assemble(routes).Objective})
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
	lost, won := r.leftOut(a), r.leftOut(b)
	if c := slices.Compare(won[:], lost[:]); c < 0 || c == 0 && y.Less(x) {
		return b
	}
	return a
}

// leftOut is how much routes that are in time leave out, rank by rank. Like the
// search, it counts an order that has waited beyond the highest rank several
// times.
func (r *run) leftOut(routes []plannedRoute) (sum [rankCount]int) {
	served := servedBy(routes)
	for o := range r.orders {
		if !served[int32(o)] {
			sum[r.orders[o].rank] += 1 + r.orders[o].extra
		}
	}
	return sum
}

// reserve is the part of its time that the search leaves to what follows: the late
// fill repeats a construction, and the plan is assembled.
func (r *run) reserve() time.Duration {
	return endgame + min(max(leastFill, 2*r.stats.FirstPlan), r.until/4)
}

// over tells whether it is time to assemble the plan.
func (r *run) over() bool {
	return r.ctx.Err() != nil || r.opts.Iterations <= 0 && r.elapsed() > r.opts.TimeLimit-endgame
}

// insertingTakes is how many times as long as the preparation inserting all orders
// takes, about, where drones are few.
const insertingTakes = 20

// stuck tells whether it is time to end the first construction. Where there are so
// many orders, or the machine is so busy, that the limit is over before, the
// construction is done all the same: without it nothing would be flown, in no cycle,
// and ever more orders would wait.
func (r *run) stuck() bool {
	return r.over() && (r.ctx.Err() != nil || r.elapsed() > r.least)
}

// fraction returns the share of the budget between began and the search's end that is
// spent, for a chain after its steps.
func (r *run) fraction(began time.Duration) func(int64) float64 {
	if r.opts.Iterations > 0 {
		return r.orCancelled(func(steps int64) float64 { return float64(steps) / float64(r.opts.Iterations) })
	}
	span := r.until - r.reserve() - began
	return r.orCancelled(func(int64) float64 {
		if span <= 0 {
			return 2
		}
		return float64(r.elapsed()-began) / float64(span)
	})
}

// fewSteps is the number of orders above which a chain has few steps for each.
const fewSteps = 800

// tuning of a chain.
func (r *run) tuning() search.Tuning {
	t := dispatchTuning
	switch n := len(r.orders); {
	case r.scalarGoal:
		t.InitialTemperature, t.FinalTemperature, t.BankTries = 20_000, 50, 6
	case n > fewSteps:
		// Few steps per order: small ruins and a cool start do more.
		t.MeanRemoved, t.InitialTemperature, t.FinalTemperature = 10, 500, 5
	case n <= tinyProblem:
		t.MeanRemoved, t.FinalTemperature = 10, 5
	}
	return t
}

// seed is the first of those that this run's chains have.
func (r *run) seed() uint64 { return r.opts.Seed * 1000 }

func (r *run) orCancelled(f func(int64) float64) func(int64) float64 {
	return func(steps int64) float64 {
		if r.ctx.Err() != nil {
			return 2
		}
		return f(steps)
	}
}

// construct inserts every order greedily, most urgent first, cluster by
// cluster.
func (r *run) construct() []plannedRoute {
	return r.extend(nil, indices(len(r.orders)), r.stuck, true)
}

// fillLate serves, late, what could not be served in time: a late medical
// delivery is better than none. Nothing that is in a route changes its place in
// time for it.
func (r *run) fillLate(routes []plannedRoute) []plannedRoute {
	if r.scalarGoal || !r.misses(routes) {
		return routes
	}
	clusters := r.cut(routes, indices(len(r.orders)), 0)
	return r.eachCluster(clusters, func(c *cluster, _ int, _ float64) []plannedRoute {
		if c.missed == 0 || r.overtime(len(clusters)) {
			return c.routes
		}
		return r.insert(r.build(c.orders, c.drones, true, c.routes...), c.routes, r.over)
	})
}

// overtime tells whether one more of n clusters would not be done in time, going
// by what construction took.
func (r *run) overtime(n int) bool {
	each := 3 * r.stats.FirstPlan / 2 * time.Duration(min(n, r.opts.Workers)) / time.Duration(n)
	return r.opts.Iterations <= 0 && r.elapsed()+each > r.opts.TimeLimit-endgame
}

// misses tells whether some order is in no route.
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

// byUrgency orders a part's requests by rank, then by deadline.
func (r *run) byUrgency(pt *part) []int32 {
	order := indices(len(pt.orders))
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := &r.orders[pt.orders[a]], &r.orders[pt.orders[b]]
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.due, y.due), cmp.Compare(y.overdue, x.overdue))
	})
	return order
}

// nearestFirst is the naive baseline: most urgent first, each order alone on the
// nearest drone that can, from the nearest warehouse.
func (r *run) nearestFirst() []plannedRoute {
	pt := &part{orders: indices(len(r.orders))}
	used := make([]bool, len(r.drones))
	var routes []plannedRoute
	service := (r.params.PickupService + r.params.DeliveryService).Seconds()
	for _, o := range r.byUrgency(pt) {
		order := &r.orders[o]
		src := slices.MinFunc(order.sources, func(a, b source) int {
			return cmp.Compare(a.at.metres(order.delivery), b.at.metres(order.delivery))
		})
		best, nearest := -1, math.Inf(1)
		for d := range r.drones {
			dr := &r.drones[d]
			approach := dr.at.metres(src.at)
			total := approach + src.at.metres(order.delivery) + order.delivery.metres(dr.home)
			if !used[d] && order.weight <= dr.capacity && approach < nearest &&
				total <= dr.reach && total*dr.pace+service <= dr.maxTime {
				best, nearest = d, approach
			}
		}
		if best < 0 {
			continue
		}
		used[best] = true
		k := slices.Index(order.sources, src)
		routes = append(routes, plannedRoute{drone: int32(best), stops: []plannedStop{{o, int8(k)}, {o, -1}}})
	}
	return routes
}

func indices(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}
