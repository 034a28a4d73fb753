package search

// The route pool remembers the routes of the best solutions a chain has met.
// Some steps put one of them back in place of whatever its vehicle does now and
// repair the rest: good routes of different solutions are recombined, as set
// packing over the pool would, but under the same acceptance as any other step.
const (
	poolSize  = 256
	poolShare = 3 // percent of the steps
)

type pool struct {
	visits []int32 // poolSize slabs of a route's stride
	length []int32
	route  []int32
	next   int
	filled int
}

func newPool(in *Instance) pool {
	return pool{
		visits: make([]int32, poolSize*in.stride()),
		length: make([]int32, poolSize), route: make([]int32, poolSize),
	}
}

// remember stores a route of a new best solution over the oldest one.
func (p *pool) remember(route int32, visits []int32) {
	if len(visits) == 0 {
		return
	}
	slab := len(p.visits) / poolSize
	copy(p.visits[p.next*slab:], visits)
	p.length[p.next], p.route[p.next] = int32(len(visits)), route
	p.next = (p.next + 1) % poolSize
	p.filled = min(p.filled+1, poolSize)
}

// recall is a ruin that ends with a remembered route in place.
func (c *Chain) recall() {
	p := &c.pool
	k := c.rng.intn(p.filled)
	slab := len(p.visits) / poolSize
	visits := p.visits[k*slab : k*slab+int(p.length[k])]
	ro := p.route[k]
	if c.in.Uniform { // any vehicle will do: that of the first request now
		if ro = c.routeOf[visits[0]/Slots]; ro < 0 {
			ro = p.route[k]
		}
	}
	before := c.route(ro)
	if len(before) == 2 && c.used >= c.limit {
		return
	}
	for i := 1; i < len(before)-1; i++ {
		if r := before[i].visit / Slots; c.routeOf[r] == ro {
			c.remove(r)
		}
	}
	for _, v := range visits {
		if r := v / Slots; c.routeOf[r] >= 0 {
			c.remove(r)
		} else {
			c.enqueue(r)
		}
	}
	c.closeRuin()

	c.touch(ro)
	c.cost -= c.routeCost(ro)
	c.resize(ro, len(visits)+2)
	nodes := c.route(ro)
	for i, v := range visits {
		nodes[1+i] = c.in.node(v)
		if v%Slots != DeliverySlot {
			r := v / Slots
			c.withdraw(r)
			c.routeOf[r], c.altOf[r] = ro, uint8(v%Slots)
		}
	}
	nodes[1+len(visits)] = node{loc: c.in.Vehicles[ro].End, visit: endVisit}
	c.refresh(ro)
	c.cost += c.routeCost(ro)
}
