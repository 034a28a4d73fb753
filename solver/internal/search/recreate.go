package search

import "math/bits"

// blinkOneIn is the chance, as its reciprocal, that an improving route is
// overlooked during greedy insertion.
const blinkOneIn = 100

// Keys by which the pending requests are sorted before insertion.
const (
	keyRandom = iota
	keyDemand
	keyFar
	keyClose
	keyLate
	keyEarly
	keyWidth
	keyWeight
	keyCount
)

// offer is the best place found so far for one request and, where it is ranked, what
// the next best routes cost.
type offer struct {
	cost   float64
	route  int32 // -1: none
	place  uint32
	ranked bool
	second float64
	limit  float64 // what another must cost less than to matter; ranked: that of the third
}

// take notes a place in one more route that costs less than the limit.
func (o *offer) take(cost float64, route int32, place uint32) {
	switch {
	case !o.ranked:
		o.limit = cost
	case cost >= o.second:
		o.limit = cost
		return
	case o.route >= 0 && cost >= o.cost:
		o.second, o.limit = cost, o.second
		return
	case o.route >= 0:
		o.second, o.limit = o.cost, o.second
	}
	o.cost, o.route, o.place = cost, route, place
}

// Few routes are all looked at; of more, those that serve one of the nearest
// anchors, and all only when none of these has room.
const (
	fewRoutes   = 24
	nearAnchors = 32
)

// seek returns the cheapest place for request r, if there is one. With noise each
// improving route is overlooked once in blinkOneIn. What costs as much as room is no
// place.
func (c *Chain) seek(r int32, room float64, ranked, noisy bool) offer {
	st := &c.state
	if st.in.SpanPrice != 0 {
		room = min(room, st.in.Price[r]) // dearer than leaving it out is none either
	}
	o := offer{cost: room, route: -1, ranked: ranked, second: inf, limit: room}
	c.offerIdle(&o, r, noisy)
	switch {
	case st.used <= fewRoutes || len(st.in.Anchors) == 0:
		c.openUsed(st.fleet[:st.used])
		c.offerOpen(&o, r, noisy)
	case c.refused(r):
		c.openUsed(st.touched)
		c.offerOpen(&o, r, noisy)
	default:
		c.openNear(r, DeliverySlot)
		if st.in.Near[r*Slots] != nil {
			c.openNear(r, 0)
		}
		c.offerOpen(&o, r, noisy)
		if o.route < 0 {
			c.openUsed(st.fleet[:st.used])
			c.offerOpen(&o, r, noisy)
		}
	}
	return o
}

// refused tells that a request was left out before this step, so that the routes that
// the step has not changed have no room for it. (Not so where vehicles are saved: what
// is thrown out has not tried them. Few routes are all tried again.)
func (c *Chain) refused(r int32) bool {
	return c.used > fewRoutes && !c.in.Uniform && c.isMoved[r] && c.wasBank[r]
}

// dismiss drops from what is pending what was refused and still has no place in any
// route, now that these are as empty as they will be in this step.
func (c *Chain) dismiss() {
	kept := c.pending[:0]
	for _, r := range c.pending {
		if c.refused(r) && !c.hasRoom(r) {
			c.pendingMark[r] = false
			continue
		}
		kept = append(kept, r)
	}
	c.pending = kept
}

// hasRoom tells whether an idle vehicle, or a route that the step has changed, has room
// for r.
func (c *Chain) hasRoom(r int32) bool {
	st := &c.state
	idle := offer{route: -1, limit: inf}
	if c.offerIdle(&idle, r, false); idle.route >= 0 {
		return true
	}
	for _, ro := range st.touched {
		if st.alternatives(r, ro) == 0 {
			continue
		}
		if st.look(r, ro, inf).delta != inf {
			return true
		}
	}
	return false
}

// openUsed opens those of the routes that serve something.
func (c *Chain) openUsed(routes []int32) {
	for _, ro := range routes {
		if c.size[ro] > 2 {
			c.open.add(ro)
		}
	}
}

// openNear opens the routes that serve the anchors nearest to a visit of r.
func (c *Chain) openNear(r, slot int32) {
	st := &c.state
	near := st.in.Near[r*Slots+slot]
	for _, v := range near[1:min(len(near), nearAnchors)] {
		if ro := st.routeOf[v/Slots]; ro >= 0 {
			c.open.add(ro)
		}
	}
}

// offerOpen offers what the open routes have to offer whose vehicles can serve r
// at all, and closes them. Those of which that is known come first, then the one it
// was in last: what these offer bounds how hard the others are searched.
func (c *Chain) offerOpen(o *offer, r int32, noisy bool) {
	able := c.servers[int(r)*len(c.open):][:len(c.open)]
	row := c.cache[int(r)*len(c.size):][:len(c.size)]
	for w, routes := range c.open {
		routes &= able[w]
		unknown := routes
		for ; routes != 0; routes &= routes - 1 {
			ro := int32(w*64 + bits.TrailingZeros64(routes))
			if e := &row[ro]; e.version == c.version[ro] && e.place != atLeast {
				if e.delta < o.limit {
					c.consider(o, ro, e, noisy)
				}
				unknown &^= routes & -routes
			}
		}
		c.open[w] = unknown
	}
	if last := c.lastRoute[r]; c.open.has(last) {
		c.offerRoute(o, r, last, noisy)
		c.open.drop(last)
	}
	for w, routes := range c.open {
		c.open[w] = 0
		for ; routes != 0; routes &= routes - 1 {
			c.offerRoute(o, r, int32(w*64+bits.TrailingZeros64(routes)), noisy)
		}
	}
}

// offerRoute offers what a route, in use or idle, has to offer.
func (c *Chain) offerRoute(o *offer, r, ro int32, noisy bool) {
	if e := c.look(r, ro, o.limit); e.delta < o.limit {
		c.consider(o, ro, e, noisy)
	}
}

// look returns the best insertion of a request into a route, or that there is none
// below cutoff.
func (st *state) look(r, ro int32, cutoff float64) *cached {
	e := &st.cache[int(r)*len(st.size)+int(ro)]
	if v := st.version[ro]; e.version != v || e.place == atLeast && e.delta < cutoff {
		e.delta, e.place = st.evaluate(r, ro, cutoff)
		e.version = v
	}
	return e
}

// offerIdle offers the cheapest idle vehicle.
func (c *Chain) offerIdle(o *offer, r int32, noisy bool) {
	st := &c.state
	if st.used == len(st.fleet) || st.used >= c.limit {
		return
	}
	if st.in.Uniform {
		c.offerRoute(o, r, st.fleet[st.used], noisy)
		return
	}
	if !st.ranked[r] {
		st.rankFavourites(r)
	}
	for _, v := range st.favourite[int(r)*st.favourites:][:st.favourites] {
		if v < 0 {
			return
		}
		if st.size[v] > 2 {
			continue
		}
		// The others cost no less.
		if e := c.look(r, v, inf); e.delta >= o.limit || c.consider(o, v, e, noisy) {
			return
		}
	}
	for _, v := range st.fleet[st.used:] {
		c.offerRoute(o, r, v, noisy)
	}
}

// mostFavourites bounds how many vehicles a request keeps ranked.
const mostFavourites = 128

// rankFavourites lists the vehicles that could serve r alone, cheapest first, -1
// after the last.
func (st *state) rankFavourites(r int32) {
	st.ranked[r] = true
	list := st.favourite[int(r)*st.favourites:][:st.favourites]
	cost := st.favouriteCost[:0]
	for v := range st.in.Vehicles {
		blank := st.blank(v)
		d, _ := st.cheapestPair(blank, int32(v), blank[0].next, r, inf)
		if d == inf {
			continue
		}
		k := len(cost)
		if k < len(list) {
			cost = cost[:k+1]
		} else if k--; cost[k] <= d {
			continue
		}
		for ; k > 0 && cost[k-1] > d; k-- {
			cost[k], list[k] = cost[k-1], list[k-1]
		}
		cost[k], list[k] = d, int32(v)
	}
	if len(cost) < len(list) {
		list[len(cost)] = -1
	}
}

// consider takes the place that e describes if it is better than the offer, and
// reports that.
func (c *Chain) consider(o *offer, ro int32, e *cached, noisy bool) bool {
	st := &c.state
	cost := e.delta
	if st.in.SpanPrice != 0 {
		d := st.dist[ro]
		cost += st.in.SpanPrice * (max(0, d+cost-st.spanFree) - max(0, d-st.spanFree))
	}
	if cost >= o.limit || noisy && c.rng.next()>>32 < (1<<32)/blinkOneIn {
		return false
	}
	o.take(cost, ro, e.place)
	return true
}

// settle puts bank request r into the cheapest route and reports success.
func (c *Chain) settle(r int32, room float64, noisy bool) bool {
	o := c.seek(r, room, false, noisy)
	if o.route < 0 {
		return false
	}
	c.put(r, o.route, o.place)
	return true
}

// put moves bank request r into a route.
func (c *Chain) put(r, route int32, place uint32) {
	c.note(r)
	c.withdraw(r)
	c.touch(route)
	c.insert(r, route, place)
}

// regretShare is the percentage of steps that insert by regret, but for those that only
// shake the routes while vehicles are saved.
const regretShare = 10

// recreate inserts the pending requests. It ends as soon as the step could not pass
// though all that is still pending cost nothing.
func (c *Chain) recreate() {
	c.dismiss()
	if !c.eject.dissolving && c.rng.intn(100) < regretShare {
		c.insertByRegret()
	} else {
		c.insertByKey()
	}
	c.clearPending()
}

// insertByKey inserts what is pending in the order of a random key.
func (c *Chain) insertByKey() {
	c.sortPending(c.pickKey())
	hoped := c.hope()
	for _, r := range c.pending {
		if c.bankIndex[r] < 0 { // recall has placed some
			continue
		}
		if !c.settle(r, c.room(r, hoped), true) {
			hoped.leaveOut(&c.state, r)
		}
		if hoped.cost = c.cost; !c.passes(hoped) {
			return
		}
	}
}

// insertByRegret inserts first what would lose most by waiting: regret-3 (Ropke and
// Pisinger 2006).
func (c *Chain) insertByRegret() {
	for hoped := c.hope(); c.passes(hoped); hoped.cost = c.cost {
		r, o := c.mostRegretted(&hoped)
		if r < 0 {
			return
		}
		c.put(r, o.route, o.place)
	}
}

// noPlace is what a request is taken to cost in a second or third route where it has
// no place there.
const noPlace = 1e6

// mostRegretted returns the pending request whose second and third best routes cost
// most above the best, and its best place; r is -1 if there is none. What has no place
// is pending no longer.
func (c *Chain) mostRegretted(hoped *tally) (r int32, best offer) {
	r, most := -1, 0.0
	kept := c.pending[:0]
	for _, x := range c.pending {
		if c.bankIndex[x] < 0 {
			c.pendingMark[x] = false
			continue
		}
		o := c.seek(x, inf, true, true)
		if o.route < 0 || o.cost >= c.room(x, *hoped) {
			hoped.leaveOut(&c.state, x)
			c.pendingMark[x] = false
			continue
		}
		kept = append(kept, x)
		regret := min(o.second, noPlace) + min(o.limit, noPlace) - 2*o.cost
		if r < 0 || regret > most {
			r, best, most = x, o, regret
		}
	}
	c.pending = kept
	return r, best
}

// hope is what a step comes to if all that is pending finds a place that costs
// nothing; it cannot come to less.
func (c *Chain) hope() tally {
	t := c.tally
	for _, r := range c.pending {
		if c.bankIndex[r] >= 0 {
			t.takeIn(&c.state, r)
		}
	}
	return t
}

func (c *Chain) clearPending() {
	for _, r := range c.pending {
		c.pendingMark[r] = false
	}
	c.pending = c.pending[:0]
}

// pickKey draws a sort key by the tuning's shares.
func (c *Chain) pickKey() int {
	total := 0
	for _, w := range c.Tuning.Keys {
		total += w
	}
	x := c.rng.intn(total)
	for k, w := range c.Tuning.Keys {
		if x -= w; x < 0 {
			return k
		}
	}
	return keyRandom
}

// sortPending orders the pending requests by the key, ties at random.
func (c *Chain) sortPending(key int) {
	p := c.pending
	for i := len(p) - 1; i > 0; i-- {
		j := c.rng.intn(i + 1)
		p[i], p[j] = p[j], p[i]
	}
	if key == keyRandom {
		return
	}
	rank := c.rank[key]
	for i := 1; i < len(p); i++ {
		r := p[i]
		x := rank[r]
		j := i
		for ; j > 0 && rank[p[j-1]] > x; j-- {
			p[j] = p[j-1]
		}
		p[j] = r
	}
}

// rankKeys computes the static sort keys of every request; smaller goes first.
func (c *Chain) rankKeys() {
	in := c.in
	for k := range c.rank {
		c.rank[k] = make([]float64, in.Requests)
	}
	for r := range in.Requests {
		p, d := r*Slots, r*Slots+DeliverySlot
		far := inf
		for i := range in.Vehicles {
			v := &in.Vehicles[i]
			far = min(far, in.row(v.Start)[in.Loc[p]]+in.row(in.Loc[d])[v.End])
			if in.Uniform {
				break
			}
		}
		far += in.row(in.Loc[p])[in.Loc[d]]
		c.rank[keyDemand][r] = -in.Demand[r]
		c.rank[keyFar][r] = -far
		c.rank[keyClose][r] = far
		c.rank[keyLate][r] = -in.Early[p]
		c.rank[keyEarly][r] = in.Late[d]
		c.rank[keyWidth][r] = in.Late[d] - in.Early[p]
		c.rank[keyWeight][r] = -float64(in.Weight[r])
	}
}
