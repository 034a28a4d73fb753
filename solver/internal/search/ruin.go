package search

import "github.com/dronefleet/dronefleet/solver/internal/pdp"

// Parameters of string removal, as in SISR (Christiaens and Vanden Berghe 2020).
const (
	splitShare  = 0.5  // share of strings that preserve some visits in their middle
	splitGrowth = 0.01 // chance that the preserved middle grows by one more
)

// worstNear is how many of the anchors near the seed worst removal looks at.
const worstNear = 40

// longRoute is the number of positions above which a route is not removed whole.
const longRoute = 26

// ruiner removes requests around a seed visit. Whatever visit is removed, the
// other visit of its request goes too.
type ruiner struct {
	cur     *Current
	rng     *rng
	tuning  *Tuning
	pending *indexSet // what recreate will try to insert
}

// ruin removes requests around a seed in one of four ways and closes the routes.
func (x *ruiner) ruin(seed int32) {
	mean := x.tuning.MeanRemoved
	switch p := x.rng.intn(100); {
	case p < 85:
		x.removeStrings(seed)
	case p < 94:
		x.removeRelated(seed, 1+x.rng.intn(int(mean)))
	case p < 97:
		x.removeWorst(seed, 1+x.rng.intn(int(mean)))
	default:
		x.removeRoute(seed)
	}
	x.inviteBank(seed)
	x.close()
}

// removeStrings is adjacent string removal: strings of visits from the routes
// around the seed (SISR).
func (x *ruiner) removeStrings(seed int32) {
	rs := &x.cur.routes
	longest := min(x.tuning.MaxString, x.cur.meanVisits())
	most := 4*x.tuning.MeanRemoved/(1+longest) - 1
	strings := int(x.rng.float()*max(most, 0) + 1)
	for _, v := range x.cur.in.Near[seed] {
		if strings == 0 {
			return
		}
		r := pdp.Request(v)
		ro := rs.routeOf[r]
		if ro < 0 || x.cur.undo.touched.has[ro] {
			continue
		}
		visits := int(rs.size[ro]) - 2
		limit := min(longest, float64(visits))
		length := min(int(x.rng.float()*limit+1), visits)
		at := int(rs.deliveryAt[r])
		if !pdp.IsDelivery(v) {
			at = int(rs.pickupAt[r])
		}
		preserved := 0
		if length > 1 && length < visits && x.rng.float() < splitShare {
			preserved = 1
			for length+preserved < visits && x.rng.float() < splitGrowth {
				preserved++
			}
		}
		x.removeString(ro, at, length, preserved)
		strings--
	}
}

// removeString removes length visits from a window of length+preserved visits
// that holds position at: the string and split-string procedures of SISR.
func (x *ruiner) removeString(ro int32, at, length, preserved int) {
	rs := &x.cur.routes
	visits := int(rs.size[ro]) - 2
	window := length + preserved
	low, high := max(1, at-window+1), min(at, visits-window+1)
	first := low + x.rng.intn(high-low+1)
	middle := -1
	if preserved > 0 {
		middle = first + 1 + x.rng.intn(max(1, length-1))
	}
	positions := rs.of(ro)
	for i := first; i < first+window; i++ {
		if middle >= 0 && i >= middle && i < middle+preserved {
			continue
		}
		r := pdp.Request(positions[i].Visit)
		if rs.routeOf[r] == ro {
			x.remove(r)
		}
	}
}

// removeRelated is related removal (Shaw 1998) with nearness as the only
// relation: single requests around the seed, each with probability 3/4.
func (x *ruiner) removeRelated(seed int32, count int) {
	for _, v := range x.cur.in.Near[seed] {
		if count == 0 {
			return
		}
		if r := pdp.Request(v); x.cur.routes.routeOf[r] >= 0 && x.rng.next()&3 != 0 {
			x.remove(r)
			count--
		}
	}
}

// removeRoute removes the seed's whole route, if it is not long, and some
// requests around it.
func (x *ruiner) removeRoute(seed int32) {
	rs := &x.cur.routes
	ro := rs.routeOf[pdp.Request(seed)]
	if ro < 0 || rs.size[ro] > longRoute {
		x.removeStrings(seed)
		return
	}
	x.removeAll(ro)
	x.removeRelated(seed, int(x.tuning.MeanRemoved/3))
}

// removeAll removes every request of a route.
func (x *ruiner) removeAll(ro int32) {
	positions := x.cur.routes.of(ro)
	for i := 1; i < len(positions)-1; i++ {
		if r := pdp.Request(positions[i].Visit); x.cur.routes.routeOf[r] == ro {
			x.remove(r)
		}
	}
}

// removeWorst is worst removal (Ropke and Pisinger 2006) around the seed: the
// requests whose removal saves most, with some noise.
func (x *ruiner) removeWorst(seed int32, count int) {
	for ; count > 0; count-- {
		worst, most := int32(-1), -inf
		for k, v := range x.cur.in.Near[seed] {
			if k > worstNear {
				break
			}
			r := pdp.Request(v)
			if x.cur.routes.routeOf[r] < 0 || x.pending.has[r] {
				continue
			}
			if saving := x.saving(r) * (0.6 + 0.8*x.rng.float()); saving > most {
				worst, most = r, saving
			}
		}
		if worst < 0 {
			return
		}
		x.remove(worst)
	}
}

// saving estimates the distance that removing a request saves, as if its two
// visits were apart. In a route already ruined the positions around may belong
// to removed requests.
func (x *ruiner) saving(r int32) float64 {
	rs := &x.cur.routes
	positions := rs.of(rs.routeOf[r])
	total := 0.0
	for _, i := range [2]int32{rs.pickupAt[r], rs.deliveryAt[r]} {
		prev, next := positions[i-1].Loc, positions[i+1].Loc
		total += positions[i-1].Next + positions[i].Next - x.cur.in.Dist[prev][next]
	}
	return total
}

// remove takes a request out of its route and makes it pending.
func (x *ruiner) remove(r int32) {
	x.cur.unroute(r)
	x.pending.add(r)
}

// meanVisits is the mean number of visits of the routes in use.
func (cur *Current) meanVisits() float64 {
	routed := 2 * (cur.in.Requests - len(cur.bank.requests))
	return float64(routed) / float64(max(1, cur.routes.used))
}

// close drops the removed visits from the routes and puts what is pending into
// the bank until it is inserted.
func (x *ruiner) close() {
	for _, ro := range x.cur.undo.touched.list {
		x.cur.compact(ro)
	}
	for _, r := range x.pending.list {
		x.cur.undo.saveRequest(&x.cur.bank, r)
		x.cur.toBank(r)
	}
}

// inviteBank makes some requests from the bank pending: those near the seed, or
// all if the bank is small.
func (x *ruiner) inviteBank(seed int32) {
	count := x.tuning.BankTries
	if count > 0 && !x.tuning.AllBankTries {
		count = x.rng.intn(count + 1)
	}
	bank := &x.cur.bank
	if len(bank.requests) == 0 || count == 0 {
		return
	}
	if len(bank.requests) <= count {
		for _, r := range bank.requests {
			x.pending.add(r)
		}
		return
	}
	for _, v := range x.cur.in.Near[seed] {
		if r := pdp.Request(v); bank.has(r) && x.pending.add(r) {
			if count--; count == 0 {
				return
			}
		}
	}
}
