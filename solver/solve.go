package solver

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/solver/internal/search"
	"github.com/dronefleet/dronefleet/solver/model"
)

const rankCount = model.RankCount

// run is one Solve in progress.
type run struct {
	*prepared
	ctx   context.Context
	opts  Options
	start time.Time
}

func solve(ctx context.Context, p Problem, o Options) (Plan, error) {
	r := &run{ctx: ctx, opts: o, start: o.Clock()}
	r.prepared = prepare(p)
	var routes []plannedRoute
	if len(r.orders) > 0 && len(r.drones) > 0 {
		routes = r.greedy()
	}
	plan := r.assemble(routes)
	plan.Stats.Elapsed = r.elapsed()
	return plan, context.Cause(ctx)
}

func (r *run) elapsed() time.Duration { return r.opts.Clock().Sub(r.start) }

// greedy is one construction over everything.
func (r *run) greedy() []plannedRoute {
	pt := r.build(indices(len(r.orders)), indices(len(r.drones)))
	chain := search.NewChain(pt.in, dispatchTuning, r.opts.Seed)
	chain.Construct(r.byUrgency(pt))
	return pt.export(chain.Best)
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

func indices(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

// dispatchTuning is for metres.
var dispatchTuning = search.Tuning{Hot: 500, Cold: 5, Mean: 10, BankTries: 6, Keys: [8]int{4, 1, 2, 1, 0, 3, 0, 4}}
