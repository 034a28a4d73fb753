package search

import "github.com/dronefleet/dronefleet/solver/internal/pdp"

// mostRanked bounds how many vehicles are ranked for a request.
const mostRanked = 128

// idleRanking lists for each request the vehicles that serve it alone at the lowest cost.
// The first idle one stands for all idle vehicles, so that a large idle fleet costs no more
// than a small one.
type idleRanking struct {
	routes    *routes
	evaluator *pdp.Evaluator
	width     int     // vehicles ranked for each request
	ranked    []bool  // requests whose vehicles are ranked
	vehicles  []int32 // requests x width, -1 after the last
	costs     []float64
}

func newIdleRanking(rs *routes, e *pdp.Evaluator) *idleRanking {
	n := min(len(rs.size), mostRanked)
	return &idleRanking{
		routes: rs, evaluator: e, width: n,
		ranked: make([]bool, rs.in.Requests), vehicles: make([]int32, rs.in.Requests*n), costs: make([]float64, 0, n),
	}
}

// of returns the ranked vehicles of a request, cheapest first, up to the first
// that is negative.
func (x *idleRanking) of(r int32) []int32 {
	list := x.vehicles[int(r)*x.width:][:x.width]
	if !x.ranked[r] {
		x.ranked[r] = true
		x.rank(r, list)
	}
	return list
}

// rank fills in the list of a request, by insertion sort.
func (x *idleRanking) rank(r int32, list []int32) {
	costs := x.costs[:0]
	for v := range x.routes.size {
		empty := x.routes.empty(v)
		cost, _ := x.evaluator.Cheapest(empty, int32(v), empty[0].Next, r, inf)
		if cost == inf {
			continue
		}
		k := len(costs)
		if k < len(list) {
			costs = costs[:k+1]
		} else if k--; costs[k] <= cost {
			continue
		}
		for ; k > 0 && costs[k-1] > cost; k-- {
			costs[k], list[k] = costs[k-1], list[k-1]
		}
		costs[k], list[k] = cost, int32(v)
	}
	if len(costs) < len(list) {
		list[len(costs)] = -1
	}
}
