package search

// crossTails lets two routes near the seed exchange what follows a moment at
// which both are empty: 2-opt* for pickups and deliveries. At their starts the
// vehicles exchange whole routes. It reports whether both can drive what they
// got; if not, nothing has changed.
func (c *Chain) crossTails(seed int32) bool {
	a := c.routeOf[seed/Slots]
	if a < 0 {
		return false // the seed is in the bank
	}
	b := c.companion(seed, a)
	if b < 0 {
		return false
	}
	i, j := c.emptyPosition(a), c.emptyPosition(b)
	na, nb := int(c.size[a]), int(c.size[b])
	tailA, tailB := na-1-(i+1), nb-1-(j+1) // visits after the positions, without the end
	sizeA, sizeB := i+1+tailB+1, j+1+tailA+1
	if sizeA > c.stride || sizeB > c.stride || tailA+tailB == 0 {
		return false
	}
	c.touch(a)
	c.touch(b)
	c.cost -= c.routeCost(a) + c.routeCost(b)
	// What the routes were is in the undo log.
	c.resize(a, sizeA)
	c.resize(b, sizeB)
	copy(c.route(a)[i+1:], c.was(b)[j+1:nb-1])
	copy(c.route(b)[j+1:], c.was(a)[i+1:na-1])
	if !c.endRoute(a) || !c.endRoute(b) {
		c.rollback()
		return false
	}
	c.cost += c.routeCost(a) + c.routeCost(b)
	return true
}

// endRoute ends a route whose visits have been replaced, and reports whether its
// vehicle can drive it.
func (c *Chain) endRoute(ro int32) bool {
	veh, nodes := &c.in.Vehicles[ro], c.route(ro)
	nodes[len(nodes)-1] = node{loc: veh.End, visit: endVisit}
	c.claim(ro)
	c.refresh(ro)
	if len(nodes) == 2 {
		return true
	}
	return c.dist[ro] <= veh.MaxDist && veh.bears(nodes)
}

// idleShare is the percentage of exchanges that a vehicle not in use takes part
// in.
const idleShare = 20

// companion is the vehicle for an exchange: that of another anchor near the
// seed, or an idle one.
func (c *Chain) companion(seed, not int32) int32 {
	near := c.in.Near[seed]
	if idle := len(c.fleet) - c.used; idle > 0 && c.used < c.limit && c.rng.intn(100) < idleShare {
		return c.fleet[c.used+c.rng.intn(idle)]
	}
	for range 4 {
		ro := c.routeOf[near[c.rng.intn(len(near))]/Slots]
		if ro >= 0 && ro != not {
			return ro
		}
	}
	return -1
}

// emptyPosition draws a position of a route after which nothing is aboard, not
// even without weight: the start or a delivery.
func (c *Chain) emptyPosition(ro int32) int {
	nodes := c.route(ro)
	at, aboard := 0, 0
	for i, seen := 0, 0; i < len(nodes)-1; i++ {
		if v := nodes[i].visit; v >= 0 {
			if v%Slots == DeliverySlot {
				aboard--
			} else {
				aboard++
			}
		}
		if aboard > 0 {
			continue
		}
		if seen++; c.rng.intn(seen) == 0 {
			at = i
		}
	}
	return at
}
