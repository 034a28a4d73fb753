package search

import "math"

// Tuning is what differs between kinds of instances.
type Tuning struct {
	Hot, Cold float64 // temperatures at the start and the end, in cost
	Mean      float64 // visits removed per step on average
	Keys      [keyCount]int
	BankTries int // bank requests that join a step, at most
}

// Chain is one independent search with its own random stream.
type Chain struct {
	state
	rng    rng
	Tuning Tuning
	Best   *Solution
	Steps  int64

	pending     []int32
	pendingMark []bool
	rank        [keyCount][]float64
	noEmpty     bool // unused vehicles stay unused
	eject       ejector
}

// NewChain returns a chain whose solution leaves every request out.
func NewChain(in *Instance, tuning Tuning, seed uint64) *Chain {
	c := &Chain{
		state: *newState(in), rng: newRng(seed), Tuning: tuning, Best: NewSolution(in),
		pending: make([]int32, 0, in.Requests), pendingMark: make([]bool, in.Requests),
	}
	c.rankKeys()
	return c
}

// Construct inserts the bank's requests, in the given order, each at its
// cheapest place.
func (c *Chain) Construct(order []int32) {
	c.begin()
	for _, r := range order {
		if c.bankIndex[r] >= 0 {
			c.settle(r, false)
		}
	}
	c.commit()
	c.keep()
}

// Load makes s the current solution, and the best if it is better.
func (c *Chain) Load(s *Solution) {
	c.restore(s)
	c.keep()
}

// keep copies the current solution to Best if it is better.
func (c *Chain) keep() bool {
	if c.bankValue > c.Best.BankValue || c.bankValue == c.Best.BankValue && c.cost >= c.Best.Cost-1e-7 {
		return false
	}
	c.capture(c.Best)
	return true
}

// Schedule says how far a run is: Fraction is called every few steps and
// returns the share of the budget spent; the run ends when it reaches To.
type Schedule struct {
	To       float64
	Fraction func(steps int64) float64
}

// clockEvery is how many steps pass between two looks at the clock.
const clockEvery = 16

// Anneal runs ruin-and-recreate steps under simulated annealing.
func (c *Chain) Anneal(s Schedule) {
	if c.in.Requests == 0 || len(c.in.Anchors) == 0 {
		return
	}
	for {
		f := s.Fraction(c.Steps)
		if f >= s.To {
			return
		}
		temperature := c.Tuning.Hot * math.Pow(c.Tuning.Cold/c.Tuning.Hot, f)
		for range clockEvery {
			c.step(temperature)
		}
		c.recount()
	}
}

// step is one ruin, recreate, accept.
func (c *Chain) step(temperature float64) {
	c.Steps++
	c.begin()
	c.ruin()
	c.closeRuin()
	c.recreate()
	better := c.bankValue < c.oldBank ||
		c.bankValue == c.oldBank && c.cost < c.oldCost-temperature*c.rng.logFloat()
	if !better {
		c.rollback()
		return
	}
	c.commit()
	c.keep()
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
	if c.Tuning.BankTries > 0 {
		c.enqueueBank(seed, c.rng.intn(c.Tuning.BankTries+1))
	}
}
