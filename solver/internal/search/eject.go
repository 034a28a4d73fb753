package search

import (
	"cmp"
	"slices"
)

// Guided ejection (after Nagata and Kobayashi 2010): one route is dissolved and
// its requests are forced into the others, throwing out those that were easy to
// place so far, until none is left over.

const (
	// squeezeSteps of ruin and recreate shake the other routes after each
	// forced insertion, each removing squeezeMean visits.
	squeezeSteps = 3
	squeezeMean  = 10
	// forcedPerRequest insertions an attempt may take. Few are that long: to begin
	// again is to lose what the penalties have learned.
	forcedPerRequest = 100
)

// outlook is how near the attempts to do with one vehicle less have come since the
// last was saved: their insertions, those that left few requests over, and those that
// left twice as many at most.
type outlook struct{ insertions, few, some int }

// What is few: one request in fewOf, fewest at least.
const (
	fewOf  = 50
	fewest = 4
)

func (o *outlook) note(left, requests int) {
	few := max(fewest, requests/fewOf)
	o.insertions++
	if left <= few {
		o.few++
	}
	if left <= 2*few {
		o.some++
	}
}

func (o *outlook) add(p outlook) {
	o.insertions, o.few, o.some = o.insertions+p.insertions, o.few+p.few, o.some+p.some
}

// An attempt that succeeds has had few left over for most of its time. So one in
// goodOne insertions with few is a promise; and where none in hopelessAfter per request
// has come near, none will.
const (
	goodOne       = 20
	hopelessAfter = 40
)

func (o *outlook) good() bool { return o.few > 0 && o.few*goodOne >= o.insertions }

func (o *outlook) hopeless(requests int) bool {
	return o.some == 0 && o.insertions >= hopelessAfter*requests
}

// ejector is the memory of one attempt; allocated once per chain.
type ejector struct {
	dissolving bool
	forced     int // insertions so far
	outlook    outlook

	penalty []int64 // how often a request could not be placed
	pool    []int32 // requests without a route, last in first out
	eviction
}

func (e *ejector) prepare(in *Instance) {
	if e.penalty == nil {
		*e = ejector{penalty: make([]int64, in.Requests), pool: make([]int32, 0, in.Requests), eviction: newEviction(in)}
		e.forget()
	}
}

// forget makes all requests equally easy to place.
func (e *ejector) forget() {
	for i := range e.penalty {
		e.penalty[i] = 1
	}
}

// SaveVehicles dissolves routes one after another until the schedule ends. An
// attempt that is under way then goes on with the next call, unless another
// solution is loaded. Best always holds the last complete solution.
func (c *Chain) SaveVehicles(s Schedule) {
	if c.Best.BankValue > 0 {
		return
	}
	e := &c.eject
	e.prepare(c.in)
	mean := c.Tuning.Mean
	c.Tuning.Mean = squeezeMean
	if !e.dissolving {
		c.restore(c.Best)
	}
	for c.Best.Used > 1 && s.Fraction(c.Steps) < s.To {
		if !e.dissolving {
			c.dissolve()
		}
		if !c.rehouse(s) && !e.dissolving {
			c.restore(c.Best)
		}
	}
	c.Tuning.Mean = mean
}

// returnToBest ends the saving of vehicles.
func (c *Chain) returnToBest() {
	c.Load(c.Best)
	c.limit = c.Best.Used
}

// StartAfresh makes the current solution another one with as few vehicles as
// the best, built from nothing, or the best itself if none is found until the
// schedule ends. What is left of the schedule goes to saving a vehicle more, if more is
// to be saved.
func (c *Chain) StartAfresh(s Schedule, more bool) {
	e := &c.eject
	e.prepare(c.in)
	mean := c.Tuning.Mean
	c.Tuning.Mean = squeezeMean
	c.begin()
	for r := range c.routeOf {
		if c.routeOf[r] >= 0 {
			c.remove(int32(r))
		}
	}
	c.closeRuin()
	c.limit, c.threshold = len(c.in.Vehicles), inf
	c.recreate()
	c.commit()
	fresh := c.Best
	for ok := len(c.bank) == 0; ok; ok = c.rehouse(s) {
		if c.used <= c.Best.Used {
			c.copyTo(c.spare)
			fresh = c.spare
		}
		if c.used <= 1 || !more && c.used <= c.Best.Used {
			break
		}
		c.dissolve()
	}
	e.dissolving = false
	c.restore(fresh)
	c.limit = c.Best.Used
	c.Tuning.Mean = mean
}

// dissolve begins an attempt to do with one route less than a complete solution
// has: the requests of one are left over.
func (c *Chain) dissolve() {
	e := &c.eject
	e.dissolving, e.forced = true, 0
	e.forget()
	e.pool = e.pool[:0]
	c.begin()
	ro := c.victim()
	nodes := c.route(ro)
	for i := 1; i < len(nodes)-1; i++ {
		if v := nodes[i].visit; v%Slots != DeliverySlot {
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
}

// rehouse forces what is left over into the other routes and reports whether all
// of it has found a place. If not, the time is over, or the attempt, as hopeless.
func (c *Chain) rehouse(s Schedule) bool {
	e := &c.eject
	for len(c.bank) > 0 {
		if s.Fraction(c.Steps) >= s.To {
			return false
		}
		if e.forced++; e.forced > forcedPerRequest*c.in.Requests {
			e.dissolving = false
			return false
		}
		c.force()
		e.outlook.note(len(c.bank), c.in.Requests)
	}
	e.dissolving, e.outlook = false, outlook{}
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
	if c.settle(r, inf, true) {
		c.commit()
		return
	}
	e.penalty[r]++
	x := c.makeRoom(r, e.penalty)
	if x.route < 0 {
		e.pool = append(e.pool, r)
	} else {
		e.pool = append(e.pool, c.exchange(r, &x)...)
	}
	c.commit()
	for range squeezeSteps {
		c.step(c.Tuning.Hot / 10)
	}
}

// exchange throws out what is in r's way, puts r in and returns what left.
func (c *Chain) exchange(r int32, x *ejection) []int32 {
	for _, out := range x.thrown() {
		c.throwOut(out)
	}
	c.compact(x.route)
	c.put(r, x.route, x.place)
	return x.thrown()
}

// Promote gives bank requests the place of a few routed ones that weigh
// less together, and those another place if there is one. The bank only gets
// better. It takes at most a tenth of what is left
// of the schedule.
func (c *Chain) Promote(s Schedule) {
	if c.in.Uniform || c.in.SpanPrice > 0 || len(c.bank) == 0 {
		return
	}
	e := &c.eject
	e.prepare(c.in)
	e.pool = append(e.pool[:0], c.bank...)
	for i := len(e.pool) - 1; i > 0; i-- {
		j := c.rng.intn(i + 1)
		e.pool[i], e.pool[j] = e.pool[j], e.pool[i]
	}
	slices.SortStableFunc(e.pool, func(a, b int32) int { return cmp.Compare(c.in.Weight[b], c.in.Weight[a]) })
	now := s.Fraction(c.Steps)
	stop := now + (s.To-now)/10
	c.begin()
	for _, r := range e.pool {
		if s.Fraction(c.Steps) > stop {
			break
		}
		if c.bankIndex[r] < 0 || c.settle(r, inf, false) {
			continue
		}
		x := c.makeRoom(r, c.in.Weight)
		if x.route < 0 {
			continue
		}
		for _, out := range c.exchange(r, &x) {
			c.settle(out, inf, false)
		}
	}
	c.commit()
	c.keep()
}
