package search

import "github.com/dronefleet/dronefleet/solver/internal/pdp"

// idlePercent of the tail exchanges are with a vehicle that is not in use.
const idlePercent = 20

// companionDraws is how often an exchange draws a second route near the seed.
const companionDraws = 4

// twoOptStar exchanges the tails of two routes: 2-opt* (Potvin and Rousseau 1995)
// at positions where both vehicles are empty, so that no pickup is separated from
// its delivery. At their starts the vehicles exchange whole routes.
type twoOptStar struct {
	cur *Current
	rng *rng
}

// exchange exchanges the tails of two routes near the seed and reports whether
// both vehicles can drive what they got; if not, nothing has changed.
func (x *twoOptStar) exchange(seed int32) bool {
	rs := &x.cur.routes
	a := rs.routeOf[pdp.Request(seed)]
	if a < 0 {
		return false // the seed is in the bank
	}
	b := x.companion(seed, a)
	if b < 0 {
		return false
	}
	i, j := x.emptyPosition(a), x.emptyPosition(b)
	na, nb := int(rs.size[a]), int(rs.size[b])
	tailA, tailB := na-1-(i+1), nb-1-(j+1) // visits after the positions, without the end
	sizeA, sizeB := i+1+tailB+1, j+1+tailA+1
	if sizeA > rs.stride || sizeB > rs.stride || tailA+tailB == 0 {
		return false
	}
	undo := &x.cur.undo
	undo.saveRoute(rs, a)
	undo.saveRoute(rs, b)
	x.cur.Cost -= x.cur.routeCost(a) + x.cur.routeCost(b)
	rs.resize(a, sizeA)
	rs.resize(b, sizeB)
	copy(rs.of(a)[i+1:], undo.route(b)[j+1:nb-1])
	copy(rs.of(b)[j+1:], undo.route(a)[i+1:na-1])
	if !x.finish(a) || !x.finish(b) {
		x.cur.rollback()
		return false
	}
	x.cur.Cost += x.cur.routeCost(a) + x.cur.routeCost(b)
	return true
}

// finish ends a route whose visits were replaced, and reports whether its vehicle
// can drive it.
func (x *twoOptStar) finish(ro int32) bool {
	rs := &x.cur.routes
	veh, positions := &x.cur.in.Vehicles[ro], rs.of(ro)
	positions[len(positions)-1] = veh.EndPosition()
	rs.claim(ro)
	rs.refresh(ro)
	return len(positions) == 2 || x.cur.in.Feasible(ro, positions, rs.length[ro])
}

// companion returns the second route of an exchange: that of another anchor near
// the seed, or an empty one; -1 if none was drawn.
func (x *twoOptStar) companion(seed, not int32) int32 {
	rs, near := &x.cur.routes, x.cur.in.Near[seed]
	if rs.mayUseOneMore() && x.rng.intn(100) < idlePercent {
		idle := rs.idle()
		return idle[x.rng.intn(len(idle))]
	}
	for range companionDraws {
		ro := rs.routeOf[pdp.Request(near[x.rng.intn(len(near))])]
		if ro >= 0 && ro != not {
			return ro
		}
	}
	return -1
}

// emptyPosition draws a position of a route, the start or a delivery, after which
// nothing is aboard, not even a parcel without weight.
func (x *twoOptStar) emptyPosition(ro int32) int {
	positions := x.cur.routes.of(ro)
	at, aboard := 0, 0
	for i, seen := 0, 0; i < len(positions)-1; i++ {
		if v := positions[i].Visit; v >= 0 {
			if pdp.IsDelivery(v) {
				aboard--
			} else {
				aboard++
			}
		}
		if aboard > 0 {
			continue
		}
		if seen++; x.rng.intn(seen) == 0 {
			at = i
		}
	}
	return at
}
