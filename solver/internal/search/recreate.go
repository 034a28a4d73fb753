package search

// cheapest returns the best route and place for request r over all routes, or
// route -1. With probability blink each route is overlooked.
func (c *Chain) cheapest(r int32, blink uint64) (route int32, place uint32) {
	st := &c.state
	bestCost := inf
	route = -1
	emptySeen := false
	for ro := range st.size {
		if st.size[ro] == 2 {
			if st.in.Uniform {
				if emptySeen {
					continue
				}
				emptySeen = true
			}
		}
		delta, at := st.best(r, int32(ro))
		if delta == inf {
			continue
		}
		d := st.dist[ro]
		if gain := st.routeCost(d+delta) - st.routeCost(d); gain < bestCost {
			if blink != 0 && c.rng.next()>>32 < blink {
				continue
			}
			bestCost, route, place = gain, int32(ro), at
		}
	}
	return route, place
}

// placeCheapest puts bank request r into the cheapest route and reports success.
func (c *Chain) placeCheapest(r int32, blink uint64) bool {
	route, at := c.cheapest(r, blink)
	if route < 0 {
		return false
	}
	st := &c.state
	st.note(r)
	st.withdraw(r)
	st.touch(route)
	st.insert(r, route, at)
	return true
}
