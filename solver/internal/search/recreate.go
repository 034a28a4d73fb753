package search

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

// offer is the best place found so far for one request.
type offer struct {
	cost  float64
	route int32 // -1: none
	place uint32
	empty bool // an empty route has been looked at, and all are alike
}

// cheapest returns the best route and place for request r over all routes, or
// route -1. With noise each improving route is overlooked once in blinkOneIn.
//
// What the cache knows goes first, then the route that r was in last: what they
// offer bounds how hard the other routes are searched.
func (c *Chain) cheapest(r int32, noisy bool) (route int32, place uint32) {
	st := &c.state
	routes := len(st.size)
	row := st.cache[int(r)*routes : int(r)*routes+routes]
	versions := st.version[:routes]
	last := st.lastRoute[r]
	o := offer{route: -1, cost: inf}
	if st.in.SpanPrice != 0 {
		o.cost = st.in.Price[r] // dearer than leaving it out is no place
	}
	open := c.open[:0]
	for ro := range row {
		e := &row[ro]
		if e.version == versions[ro] {
			if e.delta >= o.cost {
				continue
			}
			if e.place != atLeast {
				c.consider(&o, int32(ro), e, noisy)
				continue
			}
		}
		open = append(open, int32(ro))
		if int32(ro) == last {
			open[0], open[len(open)-1] = last, open[0]
		}
	}
	for _, ro := range open {
		e := &row[ro]
		if e.version == versions[ro] && e.delta >= o.cost {
			continue
		}
		e.delta, e.place = st.evaluate(r, ro, o.cost)
		e.version = versions[ro]
		if e.delta < o.cost {
			c.consider(&o, ro, e, noisy)
		}
	}
	return o.route, o.place
}

// consider takes the place that e describes if it is better than the offer.
func (c *Chain) consider(o *offer, ro int32, e *cached, noisy bool) {
	st := &c.state
	cost := e.delta
	if st.in.SpanPrice != 0 {
		d := st.dist[ro]
		cost += st.in.SpanPrice * (max(0, d+cost-st.spanFree) - max(0, d-st.spanFree))
	}
	if st.size[ro] == 2 {
		if o.empty || st.used >= c.limit {
			return
		}
		o.empty = st.in.Uniform
	}
	if cost >= o.cost || noisy && c.rng.next()>>32 < (1<<32)/blinkOneIn {
		return
	}
	o.cost, o.route, o.place = cost, ro, e.place
}

// settle puts bank request r into the cheapest route and reports success.
func (c *Chain) settle(r int32, noisy bool) bool {
	route, place := c.cheapest(r, noisy)
	if route < 0 {
		return false
	}
	c.put(r, route, place)
	return true
}

// put moves bank request r into a route.
func (c *Chain) put(r, route int32, place uint32) {
	c.note(r)
	c.withdraw(r)
	c.touch(route)
	c.insert(r, route, place)
}

// recreate inserts the pending requests in the order of a random key.
func (c *Chain) recreate() {
	c.sortPending(c.pickKey())
	for _, r := range c.pending {
		if c.bankIndex[r] >= 0 { // recall has placed some
			c.settle(r, true)
		}
	}
	c.clearPending()
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
			far = min(far, in.Dist[int(v.Start)*in.N+int(in.Loc[p])]+in.Dist[int(in.Loc[d])*in.N+int(v.End)])
			if in.Uniform {
				break
			}
		}
		far += in.Dist[int(in.Loc[p])*in.N+int(in.Loc[d])]
		c.rank[keyDemand][r] = -in.Demand[r]
		c.rank[keyFar][r] = -far
		c.rank[keyClose][r] = far
		c.rank[keyLate][r] = -in.Early[p]
		c.rank[keyEarly][r] = in.Late[d]
		c.rank[keyWidth][r] = in.Late[d] - in.Early[p]
		c.rank[keyWeight][r] = -float64(in.Weight[r])
	}
}
