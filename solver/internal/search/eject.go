package search

// Guided ejection (after Nagata and Kobayashi 2010): one route is dissolved and
// its requests are forced into the others, throwing out those that were easy to
// place so far, until none is left over.

const (
	// squeezeSteps of ruin and recreate shake the other routes after each
	// forced insertion, each removing squeezeMean visits.
	squeezeSteps = 3
	squeezeMean  = 10
	// pairLimit bounds the requests of a route of which pairs are thrown out.
	pairLimit = 16
)

// ejector is the memory of one attempt; allocated once per chain.
type ejector struct {
	penalty []int32 // how often a request could not be placed
	pool    []int32 // requests without a route, last in first out
	scratch []node
	members []int32
}

// ejection is the cheapest way found to make room.
type ejection struct {
	sum   int32
	route int32
	out   [2]int32 // -1: none
	place uint32
	ties  int
}

// SaveVehicles dissolves routes one after another until the schedule ends. Best
// always holds the last complete solution.
func (c *Chain) SaveVehicles(s Schedule) {
	if c.Best.BankValue > 0 {
		return
	}
	if c.eject.penalty == nil {
		c.eject = ejector{
			penalty: make([]int32, c.in.Requests), pool: make([]int32, 0, c.in.Requests),
			scratch: make([]node, c.stride), members: make([]int32, 0, c.stride),
		}
	}
	mean := c.Tuning.Mean
	c.Tuning.Mean = squeezeMean
	for c.dissolve(s) {
	}
	c.Tuning.Mean = mean
	c.restore(c.Best)
	c.limit = c.Best.Used
}

// dissolve tries to empty one route. It reports whether there is time left.
func (c *Chain) dissolve(s Schedule) bool {
	c.restore(c.Best)
	if c.used <= 1 {
		return false
	}
	e := &c.eject
	for i := range e.penalty {
		e.penalty[i] = 1
	}
	e.pool = e.pool[:0]
	c.begin()
	ro := c.victim()
	base, n := int(ro)*c.stride, int(c.size[ro])
	for i := 1; i < n-1; i++ {
		if v := c.nodes[base+i].visit; v%Slots != DeliverySlot {
			e.pool = append(e.pool, v/Slots)
		}
	}
	for i := len(e.pool) - 1; i > 0; i-- {
		j := c.rng.intn(i + 1)
		e.pool[i], e.pool[j] = e.pool[j], e.pool[i]
	}
	for _, r := range e.pool {
		c.throwOut(r)
	}
	c.compact(ro)
	c.commit()
	c.limit = c.used

	for len(c.bank) > 0 {
		if s.Fraction(c.Steps) >= s.To {
			return false
		}
		c.force()
	}
	c.keep()
	return true
}

// victim picks the route to dissolve: random, of three draws the shortest.
func (c *Chain) victim() int32 {
	best := int32(-1)
	for range 3 {
		k := c.rng.intn(c.used)
		for ro := range c.size {
			if c.size[ro] == 2 {
				continue
			}
			if k--; k < 0 {
				if best < 0 || c.size[ro] < c.size[best] {
					best = int32(ro)
				}
				break
			}
		}
	}
	return best
}

// throwOut moves a routed request to the bank; its route must be compacted.
func (c *Chain) throwOut(r int32) {
	c.take(r)
	c.deposit(r)
}

// force places the last request of the pool, making room if it must, and shakes
// the routes.
func (c *Chain) force() {
	e := &c.eject
	if len(e.pool) == 0 { // a shake has swapped what is left out
		e.pool = append(e.pool, c.bank...)
	}
	r := e.pool[len(e.pool)-1]
	e.pool = e.pool[:len(e.pool)-1]
	if c.bankIndex[r] < 0 {
		return // a shake has placed it meanwhile
	}
	c.begin()
	if c.settle(r, true) {
		c.commit()
		return
	}
	e.penalty[r]++
	x := c.makeRoom(r)
	if x.route < 0 {
		e.pool = append(e.pool, r)
	} else {
		for _, out := range x.out {
			if out >= 0 {
				c.throwOut(out)
				e.pool = append(e.pool, out)
			}
		}
		c.compact(x.route)
		c.put(r, x.route, x.place)
	}
	c.commit()
	for range squeezeSteps {
		c.step(c.Tuning.Hot)
	}
}

// makeRoom finds the one or two requests of one route with the least penalty,
// below that of r, without which r fits.
func (c *Chain) makeRoom(r int32) ejection {
	e := &c.eject
	best := ejection{sum: e.penalty[r], route: -1}
	for ro := range c.size {
		if c.size[ro] == 2 {
			continue
		}
		base, n := ro*c.stride, int(c.size[ro])
		e.members = e.members[:0]
		for i := 1; i < n-1; i++ {
			if v := c.nodes[base+i].visit; v%Slots != DeliverySlot {
				e.members = append(e.members, v/Slots)
			}
		}
		for _, a := range e.members {
			c.tryWithout(r, int32(ro), a, -1, e.penalty[a], &best)
		}
		if best.sum <= 2 {
			continue // no pair can be cheaper
		}
		if len(e.members) > pairLimit { // a random window of a long route
			first := c.rng.intn(len(e.members) - pairLimit + 1)
			e.members = e.members[first : first+pairLimit]
		}
		for i, a := range e.members {
			for _, b := range e.members[i+1:] {
				c.tryWithout(r, int32(ro), a, b, e.penalty[a]+e.penalty[b], &best)
			}
		}
	}
	return best
}

// tryWithout tests whether r fits into the route without a and b.
func (c *Chain) tryWithout(r, ro, a, b, sum int32, best *ejection) {
	if sum > best.sum || sum == best.sum && best.route < 0 {
		return
	}
	if sum == best.sum { // among equals one at random
		if best.ties++; c.rng.intn(best.ties) != 0 {
			return
		}
	}
	base, n := int(ro)*c.stride, int(c.size[ro])
	nodes := c.eject.scratch[:0]
	for i := range n {
		x := &c.nodes[base+i]
		if v := x.visit; v >= 0 && (v/Slots == a || v/Slots == b) {
			continue
		}
		nodes = append(nodes, *x)
	}
	veh := &c.in.Vehicles[ro]
	used := c.in.timetable(nodes, veh)
	delta, place := c.cheapestPair(nodes, veh, used, r)
	if delta == inf {
		return
	}
	if sum < best.sum {
		best.ties = 1
	}
	best.sum, best.route, best.out, best.place = sum, ro, [2]int32{a, b}, place
}
