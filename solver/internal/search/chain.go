package search

import "math"

// Tuning is what differs between kinds of instances.
type Tuning struct {
	Hot, Cold float64 // temperatures at the start and the end, in cost
	Soft      bool    // what is left out has a price; otherwise its worth never grows
	Share     int     // percent of states of a soft chain that should have as good a bank as the best
	Mean      float64 // visits removed per step on average
	MaxString float64
	Keys      [keyCount]int
	BankTries int // bank requests that join a step, at most
	Cross     int // percent of steps that let two routes exchange tails
	// Restless is the share of the cooling during which a chain that keeps to its
	// bank prefers to leave out what was rarely left out so far.
	Restless float64
}

// Chain is one independent search with its own random stream.
type Chain struct {
	state
	rng    rng
	Tuning Tuning
	Best   *Solution
	Steps  int64
	Tried  *Collection // if set, takes every route that a step tries
	// OnBest, if set, is called with every new Best, in the chain's goroutine.
	OnBest func(*Solution)

	pending     []int32
	scratch     []int32
	open        bitset // scratch of seek
	pendingMark []bool
	rank        [keyCount][]float64
	limit       int     // routes that may be in use
	threshold   float64 // what a step's cost must be below
	soft        bool    // the bank is priced by the toll instead of forbidden
	toll        toll
	restless    bool // absences count now
	pool        pool
	eject       ejector
	spare       *Solution // scratch of StartAfresh
}

// NewChain returns a chain whose solution leaves every request out.
func NewChain(in *Instance, tuning Tuning, seed uint64) *Chain {
	c := &Chain{
		state: *newState(in), rng: newRng(seed), Tuning: tuning, Best: NewSolution(in), spare: NewSolution(in),
		pending: make([]int32, 0, in.Requests), scratch: make([]int32, 0, in.stride()), open: newBitset(len(in.Vehicles)), pendingMark: make([]bool, in.Requests),
	}
	c.limit, c.toll = len(in.Vehicles), toll{unit: 10 * tuning.Hot, most: tollLeast, least: tollLeast}
	c.pool = newPool(in)
	c.rankKeys()
	return c
}

// Construct inserts the bank's requests, in the given order, each at its
// cheapest place, until over, looked at every few of them, says that time is.
func (c *Chain) Construct(order []int32, over func() bool) {
	c.begin()
	for i, r := range order {
		if i%clockEvery == 0 && over() {
			break
		}
		if c.bankIndex[r] >= 0 {
			c.settle(r, inf, false)
		}
	}
	c.commit()
	c.keep()
}

// Load makes s the current solution, and the best if it is better.
func (c *Chain) Load(s *Solution) {
	c.eject.dissolving, c.eject.outlook = false, outlook{}
	c.restore(s)
	c.keep()
}

// keep copies the current solution to Best if it is better.
func (c *Chain) keep() bool {
	b := c.Best
	if c.in.SpanPrice > 0 {
		if c.scalar() >= b.Cost-1e-6 {
			return false
		}
		c.save()
		return true
	}
	switch {
	case c.bankValue != b.BankValue:
		if c.bankValue > b.BankValue {
			return false
		}
	case c.in.Uniform && c.used != b.Used:
		if c.used > b.Used {
			return false
		}
	case c.cost >= b.Cost-1e-7:
		return false
	}
	c.save()
	if c.in.Uniform && c.bankValue == 0 {
		c.limit = b.Used
	}
	return true
}

// save copies the current solution to Best and its new routes to the pool.
func (c *Chain) save() {
	for _, ro := range c.stale {
		nodes := c.route(ro)
		c.scratch = c.scratch[:0]
		for i := 1; i < len(nodes)-1; i++ {
			c.scratch = append(c.scratch, nodes[i].visit)
		}
		c.pool.remember(ro, c.scratch)
	}
	c.capture(c.Best)
	if c.OnBest != nil {
		c.OnBest(c.Best)
	}
}

// Schedule says how far a run is: Fraction is called every few steps and
// returns the share of the budget spent; the run ends when it reaches To. The
// cooling of which it is a part begins and ends at the shares of Cooling.
type Schedule struct {
	To       float64
	Cooling  [2]float64
	Fraction func(steps int64) float64
}

// cooled is the share of the cooling done at share f of the budget.
func (s Schedule) cooled(f float64) float64 {
	return min(1, max(0, (f-s.Cooling[0])/(s.Cooling[1]-s.Cooling[0])))
}

// clockEvery is how many steps pass between two looks at the clock.
const clockEvery = 16

// Anneal runs ruin-and-recreate steps under simulated annealing.
func (c *Chain) Anneal(s Schedule) {
	if c.in.Requests == 0 || len(c.in.Anchors) == 0 {
		return
	}
	c.soft = c.Tuning.Soft
	c.relax()
	defer func() { c.soft, c.restless = false, false }()
	for {
		f := s.Fraction(c.Steps)
		if f >= s.To {
			return
		}
		cooled := s.cooled(f)
		c.restless = cooled < c.Tuning.Restless
		c.toll.tighten(c.Tuning.Share, cooled)
		temperature := c.Tuning.Hot * math.Pow(c.Tuning.Cold/c.Tuning.Hot, cooled)
		for range clockEvery {
			c.step(temperature)
		}
		c.comeHome(s)
		c.relax()
		c.recount()
	}
}

// relax redraws the length above which routes cost span: a little below the
// longest, so that the sum over routes leads where the maximum alone is flat.
func (c *Chain) relax() {
	if c.in.SpanPrice == 0 || c.Steps%512 != 0 {
		return
	}
	longest := 0.0
	for _, d := range c.dist {
		longest = max(longest, d)
	}
	if c.spanFree = inf; longest > 0 {
		c.spanFree = longest * (0.85 + 0.15*c.rng.float())
	}
}

// step is one ruin, recreate, accept.
func (c *Chain) step(temperature float64) {
	c.Steps++
	c.begin()
	c.threshold = c.cost - temperature*c.rng.logFloat()
	switch x := c.rng.intn(100) - c.Tuning.Cross; {
	case x < 0 && c.cross():
	case x >= 0 && x < poolShare && c.pool.filled > 0:
		c.recall()
	default:
		c.ruin()
		c.closeRuin()
	}
	c.recreate()
	if c.Tried != nil {
		c.collect()
	}
	ok := c.accepts(temperature)
	if ok {
		c.commit()
	} else {
		c.rollback()
	}
	if c.restless {
		c.countAbsences()
	}
	if ok {
		c.keep()
	}
}

// passes decides on what a step comes to: the bank first, then Metropolis on the
// cost. Of banks worth the same, a restless chain takes one that has been absent
// less, at any cost: what is rarely absent finds a place again. These are the absence
// counters of Christiaens and Vanden Berghe 2020. A soft chain prices the bank
// instead, so that it may cross states that leave something out.
func (c *Chain) passes(t tally) bool {
	switch {
	case c.priced():
		return t.cost+c.unit()*t.bankPrice < c.threshold+c.unit()*c.before.bankPrice
	case t.bankValue != c.before.bankValue:
		return t.bankValue < c.before.bankValue
	}
	return c.restless && t.bankAbsence < c.before.bankAbsence || t.cost < c.threshold
}

// priced tells whether what is left out has a price, and unit how much that is.
func (c *Chain) priced() bool { return c.soft || c.in.SpanPrice > 0 }

func (c *Chain) unit() float64 {
	if c.in.SpanPrice > 0 {
		return 1
	}
	return c.toll.unit
}

// room is what the insertion of a pending request may cost if the step is to pass,
// when t is the least it can come to: nothing dearer matters, unless the request can
// just as well be left out.
func (c *Chain) room(r int32, t tally) float64 {
	if c.priced() {
		room := c.threshold + c.unit()*(c.before.bankPrice-t.bankPrice) - t.cost
		if c.unit()*c.in.Price[r] < room {
			return inf
		}
		return room
	}
	if t.bankValue < c.before.bankValue || c.restless && t.bankAbsence < c.before.bankAbsence {
		return inf
	}
	return c.threshold - t.cost
}

// accepts decides on the step.
func (c *Chain) accepts(temperature float64) bool {
	ok := c.passes(c.tally)
	if c.soft {
		value := c.bankValue
		if !ok {
			value = c.before.bankValue
		}
		c.toll.note(value <= c.Best.BankValue, temperature, c.cost/float64(c.in.Requests))
	}
	return ok
}

// ruin picks a seed and a way of removing.
func (c *Chain) ruin() {
	seed := c.in.Anchors[c.rng.intn(len(c.in.Anchors))]
	switch x := c.rng.intn(100); {
	case x < 85:
		c.ruinStrings(seed, c.Tuning.Mean)
	case x < 94:
		c.ruinRelated(seed, 1+c.rng.intn(int(c.Tuning.Mean)))
	case x < 97:
		c.ruinWorst(seed, 1+c.rng.intn(int(c.Tuning.Mean)))
	default:
		c.ruinRoute(seed, c.Tuning.Mean)
	}
	c.invite(seed)
}

// cross lets routes around a random seed exchange tails, if they can.
func (c *Chain) cross() bool {
	seed := c.in.Anchors[c.rng.intn(len(c.in.Anchors))]
	if !c.crossTails(seed) {
		return false
	}
	c.invite(seed)
	return true
}

// invite has some of the bank's requests join the step.
func (c *Chain) invite(seed int32) {
	switch {
	case c.soft:
		c.enqueueBank(seed, c.Tuning.BankTries)
	case !c.in.Uniform && c.Tuning.BankTries > 0:
		c.enqueueBank(seed, c.rng.intn(c.Tuning.BankTries+1))
	}
}
