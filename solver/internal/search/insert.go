package search

import (
	"math/bits"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
)

// blinkOneIn is the chance, as its reciprocal, that an insertion with blinks
// overlooks a route that would improve on the best so far. SISR blinks at single
// positions; here a route is one cache entry, so whole routes are overlooked.
const blinkOneIn = 100

// Up to fewRoutes routes are all looked at. With more, only those that serve one of
// the nearAnchors nearest anchors are, and all routes if none of those has room.
const (
	fewRoutes   = 24
	nearAnchors = 32
)

// candidate is the cheapest place found so far for one request and, for regret
// insertion, what the next best routes cost.
type candidate struct {
	cost   float64
	route  int32 // -1: none
	place  pdp.Place
	regret bool    // keep the second and the third best cost
	second float64 // second best cost, if regret
	limit  float64 // what a place must cost less than to matter; if regret the third best cost
}

// improve takes a place in one more route that costs less than the limit.
func (x *candidate) improve(cost float64, route int32, place pdp.Place) {
	switch {
	case !x.regret:
		x.limit = cost
	case cost >= x.second:
		x.limit = cost
		return
	case x.route >= 0 && cost >= x.cost:
		x.second, x.limit = cost, x.second
		return
	case x.route >= 0:
		x.second, x.limit = x.cost, x.second
	}
	x.cost, x.route, x.place = cost, route, place
}

// inserter searches the routes for the cheapest place of a request.
type inserter struct {
	cur    *Current
	rng    *rng
	tuning *Tuning
	reach  *pdp.Reach
	cache  insertionCache
	idle   *idleRanking // nil: the vehicles are identical
	open   pdp.Set      // routes to look at
}

// insertBest moves a request from the bank to its cheapest place below room and
// reports whether there was one.
func (x *inserter) insertBest(r int32, room float64, blinks bool) bool {
	best := x.best(r, room, false, blinks)
	if best.route < 0 {
		return false
	}
	x.cur.assign(r, best.route, best.place)
	return true
}

// best returns the cheapest place for a request that costs less than room, if
// there is one.
func (x *inserter) best(r int32, room float64, regret, blinks bool) candidate {
	rs, in := &x.cur.routes, x.cur.in
	if in.SpanCost != 0 {
		room = min(room, in.Penalty[r]) // a dearer place is worse than the bank
	}
	best := candidate{cost: room, route: -1, regret: regret, second: inf, limit: room}
	x.tryIdle(&best, r, blinks)
	switch {
	case rs.used <= fewRoutes || len(in.Anchors) == 0:
		x.openUsed(rs.inUse())
		x.tryOpen(&best, r, blinks)
	case x.refused(r):
		x.openUsed(x.cur.undo.touched.list)
		x.tryOpen(&best, r, blinks)
	default:
		x.openNear(r, pdp.DeliverySlot)
		if in.Near[r*pdp.Slots] != nil {
			x.openNear(r, 0)
		}
		x.tryOpen(&best, r, blinks)
		if best.route < 0 {
			x.openUsed(rs.inUse())
			x.tryOpen(&best, r, blinks)
		}
	}
	return best
}

// refused reports whether a request was in the bank before this step: routes that the step
// has not changed have no room for it. With few routes all are tried again.
func (x *inserter) refused(r int32) bool {
	return x.cur.routes.used > fewRoutes && !x.tuning.RetryBank && x.cur.undo.wasInBank(r)
}

// hasRoom reports whether an idle vehicle, or a route that the step has changed,
// has room for a request.
func (x *inserter) hasRoom(r int32) bool {
	idle := candidate{route: -1, limit: inf}
	if x.tryIdle(&idle, r, false); idle.route >= 0 {
		return true
	}
	for _, ro := range x.cur.undo.touched.list {
		if x.reach.Pickups(r, ro) == 0 {
			continue
		}
		if x.cache.cheapest(r, ro, inf).delta != inf {
			return true
		}
	}
	return false
}

// openUsed opens those of the routes that serve something.
func (x *inserter) openUsed(routes []int32) {
	for _, ro := range routes {
		if x.cur.routes.size[ro] > 2 {
			x.open.Add(ro)
		}
	}
}

// openNear opens the routes that serve the anchors nearest to a visit of r.
func (x *inserter) openNear(r, slot int32) {
	near := x.cur.in.Near[r*pdp.Slots+slot]
	for _, v := range near[1:min(len(near), nearAnchors)] {
		if ro := x.cur.routes.routeOf[pdp.Request(v)]; ro >= 0 {
			x.open.Add(ro)
		}
	}
}

// tryOpen tries the open routes whose vehicles could serve r, and closes all.
// Routes whose cheapest insertion is known come first, then the route that r was
// in last: what they cost bounds how hard the others are searched.
func (x *inserter) tryOpen(best *candidate, r int32, blinks bool) {
	servers, row, version := x.reach.Servers(r), x.cache.of(r), x.cur.routes.version
	for w, routes := range x.open {
		routes &= servers[w]
		unknown := routes
		for ; routes != 0; routes &= routes - 1 {
			ro := int32(w*64 + bits.TrailingZeros64(routes))
			if e := &row[ro]; e.version == version[ro] && e.place != pdp.LowerBound {
				if e.delta < best.limit {
					x.consider(best, ro, e, blinks)
				}
				unknown &^= routes & -routes
			}
		}
		x.open[w] = unknown
	}
	if last := x.cur.lastRoute[r]; x.open.Has(last) {
		x.tryRoute(best, r, last, blinks)
		x.open.Remove(last)
	}
	for w, routes := range x.open {
		x.open[w] = 0
		for ; routes != 0; routes &= routes - 1 {
			x.tryRoute(best, r, int32(w*64+bits.TrailingZeros64(routes)), blinks)
		}
	}
}

// tryIdle tries the cheapest idle vehicle.
func (x *inserter) tryIdle(best *candidate, r int32, blinks bool) {
	rs := &x.cur.routes
	if !rs.mayUseOneMore() {
		return
	}
	if x.idle == nil {
		x.tryRoute(best, r, rs.idle()[0], blinks)
		return
	}
	for _, v := range x.idle.of(r) {
		if v < 0 {
			return
		}
		if rs.size[v] > 2 {
			continue
		}
		// The idle vehicles ranked after this one cost no less.
		if e := x.cache.cheapest(r, v, inf); e.delta >= best.limit || x.consider(best, v, e, blinks) {
			return
		}
	}
	for _, v := range rs.idle() {
		x.tryRoute(best, r, v, blinks)
	}
}

// tryRoute tries a route, used or empty.
func (x *inserter) tryRoute(best *candidate, r, ro int32, blinks bool) {
	if e := x.cache.cheapest(r, ro, best.limit); e.delta < best.limit {
		x.consider(best, ro, e, blinks)
	}
}

// consider takes an insertion into a route if it is below the candidate's limit
// and not overlooked, and reports whether it did.
func (x *inserter) consider(best *candidate, ro int32, e *insertion, blinks bool) bool {
	cost := e.delta
	if span := x.cur.in.SpanCost; span != 0 {
		d := x.cur.routes.length[ro]
		cost += span * (max(0, d+cost-x.cur.spanFree) - max(0, d-x.cur.spanFree))
	}
	if cost >= best.limit || blinks && x.rng.next()>>32 < (1<<32)/blinkOneIn {
		return false
	}
	best.improve(cost, ro, e.place)
	return true
}
