package search

import (
	"math/bits"
	"slices"
)

// mostThrown requests of one route are thrown out at once, at most. Pairs and triples
// are sought among eligible of a route's requests, and those that must go anyway.
const (
	mostThrown = 3
	eligible   = 16
)

// ejection is the cheapest way found to make room for a request.
type ejection struct {
	sum   int64 // penalty of what is thrown out
	route int32 // -1: none
	out   [mostThrown]int32
	count int // of out
	place uint32
	ties  int
}

func (x *ejection) thrown() []int32 { return x.out[:x.count] }

// eviction is the search for what a route must be rid of for a request to fit into it.
type eviction struct {
	members  []int32 // the route's requests
	blockers []int32 // those of them without whose leaving nothing helps
	out      []int32 // what is out now
	cuts     bitset  // positions of what is out; scratch of without
	nodes    []node  // those that stay; too
}

func newEviction(in *Instance) eviction {
	return eviction{
		members: make([]int32, 0, in.stride()), blockers: make([]int32, 0, in.stride()),
		out: make([]int32, 0, in.stride()), cuts: newBitset(in.stride()), nodes: make([]node, 0, in.stride()),
	}
}

// makeRoom finds the at most mostThrown requests of one route with the least penalty,
// below that of r, without which r fits.
func (c *Chain) makeRoom(r int32, penalty []int64) ejection {
	e := &c.eject.eviction
	best := ejection{sum: penalty[r], route: -1}
	for ro := range int32(len(c.size)) {
		if c.size[ro] == 2 {
			continue
		}
		c.listMembers(ro, r)
		c.trySets(r, ro, 1, e.members, 0, penalty, &best)
		if !best.mayBeBeatenBy(2) {
			continue
		}
		if len(e.members) > eligible {
			e.narrow(c.rng.intn(len(e.members) - eligible + 1))
		}
		if !c.findBlockers(r, ro) {
			continue
		}
		for n := 2; n <= mostThrown; n++ {
			c.trySets(r, ro, n, e.members, 0, penalty, &best)
		}
	}
	return best
}

// mayBeBeatenBy tells whether the least penalty of a set would be as good as the best: a
// tie counts once there is an ejection to tie with.
func (x *ejection) mayBeBeatenBy(sum int64) bool {
	return sum < x.sum || sum == x.sum && x.route >= 0
}

// trySets tries r in the route without each set of n of the members in addition to what
// is out already, whose penalty is sum.
func (c *Chain) trySets(r, ro int32, n int, members []int32, sum int64, penalty []int64, best *ejection) {
	e := &c.eject.eviction
	for i := range len(members) - n + 1 {
		s := sum + penalty[members[i]]
		if !best.mayBeBeatenBy(s + int64(n-1)) { // a penalty is 1 at least
			continue
		}
		e.out = append(e.out, members[i])
		switch {
		case n > 1:
			c.trySets(r, ro, n-1, members[i+1:], s, penalty, best)
		case e.isUnblocked():
			c.tryWithout(r, ro, s, best)
		}
		e.out = e.out[:len(e.out)-1]
	}
}

// listMembers lists the requests of a route, and as blockers those of them with which r
// can be in no route.
func (c *Chain) listMembers(ro, r int32) {
	e := &c.eject.eviction
	e.members, e.blockers = e.members[:0], e.blockers[:0]
	nodes := c.route(ro)
	for i := 1; i < len(nodes)-1; i++ {
		v := nodes[i].visit
		if v%Slots == DeliverySlot {
			continue
		}
		e.members = append(e.members, v/Slots)
		if c.in.Uniform && c.clashesOf(r).has(v/Slots) {
			e.blockers = append(e.blockers, v/Slots)
		}
	}
}

// narrow leaves so many members as are eligible, in a row, and the blockers.
func (e *eviction) narrow(first int) {
	e.members = append(e.members[:0], e.members[first:first+eligible]...)
	for _, b := range e.blockers {
		if !slices.Contains(e.members, b) {
			e.members = append(e.members, b)
		}
	}
}

// findBlockers adds to the blockers each member without whose leaving r does not fit
// though all others left, and reports whether a set of members can be enough. By the
// triangle inequality, a route without more requests has room for all that fits into it
// without fewer.
func (c *Chain) findBlockers(r, ro int32) bool {
	e := &c.eject.eviction
	if len(e.blockers) > mostThrown {
		return false
	}
	defer func() { e.out = e.out[:0] }()
	e.out = append(e.out, e.members...)
	if !c.fitsWithout(r, ro) {
		return false
	}
	for i, m := range e.members {
		if slices.Contains(e.blockers, m) {
			continue
		}
		e.out = append(append(e.out[:0], e.members[:i]...), e.members[i+1:]...)
		if c.fitsWithout(r, ro) {
			continue
		}
		if e.blockers = append(e.blockers, m); len(e.blockers) > mostThrown {
			return false
		}
	}
	return true
}

// isUnblocked tells whether all blockers are out.
func (e *eviction) isUnblocked() bool {
	for _, b := range e.blockers {
		if !slices.Contains(e.out, b) {
			return false
		}
	}
	return true
}

func (c *Chain) fitsWithout(r, ro int32) bool {
	nodes, used := c.without(ro)
	delta, _ := c.cheapestPair(nodes, ro, used, r, inf)
	return delta != inf
}

// tryWithout tests whether r fits into the route without what is out, whose penalty is
// sum.
func (c *Chain) tryWithout(r, ro int32, sum int64, best *ejection) {
	if sum == best.sum { // among equals one at random
		if best.ties++; c.rng.intn(best.ties) != 0 {
			return
		}
	}
	nodes, used := c.without(ro)
	delta, place := c.cheapestPair(nodes, ro, used, r, inf)
	if delta == inf {
		return
	}
	if sum < best.sum {
		best.ties = 1
	}
	best.sum, best.route, best.place = sum, ro, place
	best.count = copy(best.out[:], c.eject.out)
}

// without returns a route's positions without what is out, and its length.
func (c *Chain) without(ro int32) ([]node, float64) {
	e := &c.eject.eviction
	route := c.route(ro)
	if len(e.out) == 0 {
		return route, c.dist[ro]
	}
	for _, r := range e.out {
		e.cuts.add(c.posP[r])
		e.cuts.add(c.posD[r])
	}
	nodes, first, from := e.nodes[:0], 0, 0
	for w, positions := range e.cuts {
		e.cuts[w] = 0
		for ; positions != 0; positions &= positions - 1 {
			at := w*64 + bits.TrailingZeros64(positions)
			if nodes = append(nodes, route[from:at]...); from == 0 {
				first = at
			}
			from = at + 1
		}
	}
	rest := len(nodes)
	nodes = append(nodes, route[from:]...)
	return nodes, c.in.mend(nodes, &c.in.Vehicles[ro], first, rest)
}

// mend is timetable after cuts into a timetabled route, of whole requests, all of them
// between the positions before first and rest. Beyond these it ends where nothing changes
// any more: departures where a wait swallows what was gained, latest arrivals where
// a window bounds them closer than what follows.
func (in *Instance) mend(nodes []node, veh *Vehicle, first, rest int) (total float64) {
	for i := first; i < len(nodes); i++ {
		prev, cur := &nodes[i-1], &nodes[i]
		if i <= rest {
			prev.next = in.row(prev.loc)[cur.loc]
		}
		depart := prev.depart + veh.Pace*prev.next
		if depart < cur.early {
			depart = cur.early
		}
		depart += cur.svc
		if i >= rest {
			if depart == cur.depart {
				break
			}
		} else if v := cur.visit; v%Slots == DeliverySlot {
			cur.load = prev.load - in.Demand[v/Slots]
		} else {
			cur.load = prev.load + in.Demand[v/Slots]
		}
		cur.depart = depart
	}
	late := nodes[rest].latest
	for i := rest - 1; i >= 0; i-- {
		cur := &nodes[i]
		late -= veh.Pace*cur.next + cur.svc
		if late > cur.late {
			late = cur.late
		}
		if i < first-1 && late == cur.latest {
			break
		}
		cur.latest = late
	}
	for i := range nodes {
		total += nodes[i].next
	}
	return total
}
