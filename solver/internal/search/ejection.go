package search

import (
	"math/bits"
	"slices"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
)

// maxEjected bounds the requests of one route that an ejection takes out. Pairs and triples
// are sought among maxMembers of the route's requests and those that must go anyway.
const (
	maxEjected = 3
	maxMembers = 16
)

// ejection is the cheapest way found to make room for a request.
type ejection struct {
	sum   int64 // of the weights of what is ejected
	route int32 // -1: none
	out   [maxEjected]int32
	count int // of out
	place pdp.Place
	ties  int
}

// ejected lists the requests that leave their route.
func (x *ejection) ejected() []int32 { return x.out[:x.count] }

// mayBeBeatenBy reports whether an ejection of the given sum would be as good: a
// tie counts once there is an ejection to tie with.
func (x *ejection) mayBeBeatenBy(sum int64) bool {
	return sum < x.sum || sum == x.sum && x.route >= 0
}

// ejector finds which requests of one route must leave it for another to fit in:
// the ejection of guided ejection search (Nagata and Bräysy 2009; for pairs
// Nagata and Kobayashi 2010), without chains of ejections.
type ejector struct {
	cur       *Current
	rng       *rng
	evaluator *pdp.Evaluator
	conflicts *routeConflicts // nil: none known

	members   []int32        // requests of the route at hand
	blockers  []int32        // members that must leave, whatever else does
	out       []int32        // members that are out now
	cuts      pdp.Set        // positions of what is out; scratch of without
	positions []pdp.Position // those that stay; scratch of without
}

func newEjector(cur *Current, rng *rng, e *pdp.Evaluator, conflicts *routeConflicts) *ejector {
	n := cur.in.MaxPositions()
	return &ejector{
		cur: cur, rng: rng, evaluator: e, conflicts: conflicts,
		members: make([]int32, 0, n), blockers: make([]int32, 0, n), out: make([]int32, 0, n),
		cuts: pdp.NewSet(n), positions: make([]pdp.Position, 0, n),
	}
}

// cheapest finds the requests of one route, maxEjected at most, without which r
// fits there: those with the least sum of weights, below the weight of r. Weights
// are at least 1.
func (x *ejector) cheapest(r int32, weight []int64) ejection {
	best := ejection{sum: weight[r], route: -1}
	for ro := range int32(len(x.cur.routes.size)) {
		if x.cur.routes.size[ro] == 2 {
			continue
		}
		x.listMembers(ro, r)
		x.trySets(r, ro, 1, x.members, 0, weight, &best)
		if !best.mayBeBeatenBy(2) {
			continue
		}
		if len(x.members) > maxMembers {
			x.narrow(x.rng.intn(len(x.members) - maxMembers + 1))
		}
		if !x.findBlockers(r, ro) {
			continue
		}
		for n := 2; n <= maxEjected; n++ {
			x.trySets(r, ro, n, x.members, 0, weight, &best)
		}
	}
	return best
}

// trySets tries r in the route without each set of n of the members in addition
// to what is out already, whose weights add up to sum.
func (x *ejector) trySets(r, ro int32, n int, members []int32, sum int64, weight []int64, best *ejection) {
	for i := range len(members) - n + 1 {
		s := sum + weight[members[i]]
		if !best.mayBeBeatenBy(s + int64(n-1)) {
			continue
		}
		x.out = append(x.out, members[i])
		switch {
		case n > 1:
			x.trySets(r, ro, n-1, members[i+1:], s, weight, best)
		case x.blockersAreOut():
			x.tryWithout(r, ro, s, best)
		}
		x.out = x.out[:len(x.out)-1]
	}
}

// listMembers lists the requests of a route, and as blockers those that conflict
// with r.
func (x *ejector) listMembers(ro, r int32) {
	x.members, x.blockers = x.cur.AppendRequests(x.members[:0], ro), x.blockers[:0]
	if x.conflicts == nil {
		return
	}
	for _, m := range x.members {
		if x.conflicts.With(r).Has(m) {
			x.blockers = append(x.blockers, m)
		}
	}
}

// narrow keeps maxMembers of the members, in a row, and the blockers.
func (x *ejector) narrow(first int) {
	x.members = append(x.members[:0], x.members[first:first+maxMembers]...)
	for _, b := range x.blockers {
		if !slices.Contains(x.members, b) {
			x.members = append(x.members, b)
		}
	}
}

// findBlockers adds to the blockers each member that must leave because r does not fit
// beside it even if all others leave. It reports whether removing some members can be
// enough. By the triangle inequality, what fits into a route still fits after more requests
// have left.
func (x *ejector) findBlockers(r, ro int32) bool {
	if len(x.blockers) > maxEjected {
		return false
	}
	defer func() { x.out = x.out[:0] }()
	x.out = append(x.out, x.members...)
	if !x.fitsWithout(r, ro) {
		return false
	}
	for i, m := range x.members {
		if slices.Contains(x.blockers, m) {
			continue
		}
		x.out = append(append(x.out[:0], x.members[:i]...), x.members[i+1:]...)
		if x.fitsWithout(r, ro) {
			continue
		}
		if x.blockers = append(x.blockers, m); len(x.blockers) > maxEjected {
			return false
		}
	}
	return true
}

func (x *ejector) blockersAreOut() bool {
	for _, b := range x.blockers {
		if !slices.Contains(x.out, b) {
			return false
		}
	}
	return true
}

// fitsWithout reports whether r fits into route ro without the requests that are out.
func (x *ejector) fitsWithout(r, ro int32) bool {
	positions, length := x.without(ro)
	delta, _ := x.evaluator.Cheapest(positions, ro, length, r, inf)
	return delta != inf
}

// tryWithout takes the ejection of what is out, whose weights add up to sum, as
// the best if r fits without it. Among equals one is drawn.
func (x *ejector) tryWithout(r, ro int32, sum int64, best *ejection) {
	if sum == best.sum {
		if best.ties++; x.rng.intn(best.ties) != 0 {
			return
		}
	}
	positions, length := x.without(ro)
	delta, place := x.evaluator.Cheapest(positions, ro, length, r, inf)
	if delta == inf {
		return
	}
	if sum < best.sum {
		best.ties = 1
	}
	best.sum, best.route, best.place = sum, ro, place
	best.count = copy(best.out[:], x.out)
}

// without returns a route's positions without what is out, and its length.
func (x *ejector) without(ro int32) ([]pdp.Position, float64) {
	rs := &x.cur.routes
	route := rs.of(ro)
	if len(x.out) == 0 {
		return route, rs.length[ro]
	}
	for _, r := range x.out {
		x.cuts.Add(rs.pickupAt[r])
		x.cuts.Add(rs.deliveryAt[r])
	}
	positions, first, from := x.positions[:0], 0, 0
	for w, cuts := range x.cuts {
		x.cuts[w] = 0
		for ; cuts != 0; cuts &= cuts - 1 {
			at := w*64 + bits.TrailingZeros64(cuts)
			if positions = append(positions, route[from:at]...); from == 0 {
				first = at
			}
			from = at + 1
		}
	}
	rest := len(positions)
	positions = append(positions, route[from:]...)
	return positions, x.cur.in.Retime(positions, &x.cur.in.Vehicles[ro], first, rest)
}
