package search

import "github.com/dronefleet/dronefleet/solver/internal/pdp"

// Chain is one search: a current and a best solution, and a random stream of its
// own.
type Chain struct {
	Tuning  Tuning
	Current Current
	Best    *pdp.Solution
	Steps   int64
	// Better orders solutions; pdp.Value.Less unless set.
	Better func(a, b pdp.Value) bool
	// OnBest, if set, is called with every new Best, in the chain's goroutine.
	OnBest func(*pdp.Solution)
	// OnRoute, if set, is called with every route that a step tries, whether the
	// step is kept or not. The visits are valid until it returns.
	OnRoute func(vehicle int32, visits []int32, length float64)
	// Tried is the score of the last step, whether it was kept or not.
	Tried Score

	in         *pdp.Instance
	rng        rng
	evaluator  pdp.Evaluator
	conflicts  *routeConflicts
	accept     acceptance
	pending    indexSet
	ruin       ruiner
	recreate   recreator
	insert     inserter
	twoOptStar twoOptStar
	memory     routeMemory
	ejector    *ejector // nil until it is needed
	scratch    []int32
}

// NewChain returns a chain whose solution leaves every request out.
func NewChain(in *pdp.Instance, tuning Tuning, seed uint64) *Chain {
	c := &Chain{
		Tuning: tuning, Current: newCurrent(in), Best: pdp.NewSolution(in), Better: pdp.Value.Less,
		in: in, rng: newRng(seed), pending: newIndexSet(in.Requests), scratch: make([]int32, 0, in.MaxPositions()),
	}
	cur, rng, reach := &c.Current, &c.rng, pdp.NewReach(in)
	c.evaluator = pdp.NewEvaluator(in, reach)
	c.accept = acceptance{before: &cur.undo.before, penalised: in.SpanCost > 0, weight: 1}
	c.insert = inserter{cur: cur, rng: rng, tuning: &c.Tuning, reach: reach, open: pdp.NewSet(len(in.Vehicles))}
	if in.Identical {
		c.conflicts = newRouteConflicts(&cur.routes)
	} else {
		c.insert.idle = newIdleRanking(&cur.routes, &c.evaluator)
	}
	c.insert.cache = newInsertionCache(&cur.routes, &c.evaluator, c.conflicts)
	c.ruin = ruiner{cur: cur, rng: rng, tuning: &c.Tuning, pending: &c.pending}
	c.recreate = recreator{cur: cur, rng: rng, tuning: &c.Tuning, accept: &c.accept, insert: &c.insert, sorter: newSorter(in), pending: &c.pending}
	c.twoOptStar = twoOptStar{cur: cur, rng: rng}
	c.memory = newRouteMemory(in)
	c.memory.cur, c.memory.rng, c.memory.ruin = cur, rng, &c.ruin
	return c
}

// Construct inserts the requests of the bank in the given order, each at its
// cheapest place, until over, asked every few requests, says that time is up.
func (c *Chain) Construct(order []int32, over func() bool) {
	c.Current.begin()
	for i, r := range order {
		if i%ClockEvery == 0 && over() {
			break
		}
		if c.Current.bank.has(r) {
			c.insert.insertBest(r, inf, false)
		}
	}
	c.Current.commit()
	c.Keep()
}

// Load makes s the current solution, and the best if it is better.
func (c *Chain) Load(s *pdp.Solution) {
	c.Current.Restore(s)
	c.Keep()
}

// Keep copies the current solution to Best if it is better by more than rounding,
// and reports whether it is.
func (c *Chain) Keep() bool {
	rounding := 1e-7
	if c.in.SpanCost > 0 {
		rounding = 1e-6
	}
	bar := c.Best.Value
	bar.Cost -= rounding
	if !c.Better(c.Current.value(), bar) {
		return false
	}
	c.memory.rememberChanged()
	c.Current.copyChanged(c.Best)
	if c.OnBest != nil {
		c.OnBest(c.Best)
	}
	return true
}

// Penalise makes steps pass by cost + weight x penalty of the bank from now on,
// instead of comparing prizes first; 0 ends that.
func (c *Chain) Penalise(weight float64) {
	c.accept.penalised, c.accept.weight = weight > 0, weight
}

// ClockEvery is how many steps pass between two looks at the clock.
const ClockEvery = 16

// Anneal runs steps under simulated annealing.
func (c *Chain) Anneal(s Schedule) {
	if c.in.Requests == 0 || len(c.in.Anchors) == 0 {
		return
	}
	c.drawSpanFree()
	defer func() { c.accept.countAbsences = false }()
	for {
		f := s.Fraction(c.Steps)
		if f >= s.To {
			return
		}
		cooled := s.Cooled(f)
		c.accept.countAbsences = cooled < c.Tuning.AbsenceShare
		temperature := c.Tuning.Temperature(cooled)
		for range ClockEvery {
			c.Step(temperature)
		}
		c.drawSpanFree()
		c.Current.Recount()
	}
}

// spanEvery is how many steps pass between two draws of spanFree.
const spanEvery = 512

// drawSpanFree draws the length above which routes cost span: a little below the longest.
// The maximum alone is a flat objective; the sum over all routes near it guides the search.
func (c *Chain) drawSpanFree() {
	if c.in.SpanCost == 0 || c.Steps%spanEvery != 0 {
		return
	}
	longest := 0.0
	for _, d := range c.Current.routes.length {
		longest = max(longest, d)
	}
	if c.Current.spanFree = inf; longest > 0 {
		c.Current.spanFree = longest * (0.85 + 0.15*c.rng.float())
	}
}

// Step is one ruin, recreate and accept. It reports whether it was kept.
func (c *Chain) Step(temperature float64) bool {
	c.Steps++
	cur := &c.Current
	cur.begin()
	c.accept.threshold = cur.Cost - temperature*c.rng.logFloat()
	switch x := c.rng.intn(100) - c.Tuning.TwoOptStarPercent; {
	case x < 0 && c.exchangeTails():
	case x >= 0 && x < reinstatePercent && c.memory.filled > 0:
		c.memory.reinstate()
	default:
		c.ruin.ruin(c.drawSeed())
	}
	c.recreate.run()
	if c.OnRoute != nil {
		c.reportRoutes()
	}
	c.Tried = cur.Score
	ok := c.accept.passes(cur.Score)
	if ok {
		cur.commit()
	} else {
		cur.rollback()
	}
	if c.accept.countAbsences {
		cur.countAbsences()
	}
	if ok {
		c.Keep()
	}
	return ok
}

// drawSeed draws the visit that a step works around.
func (c *Chain) drawSeed() int32 { return c.in.Anchors[c.rng.intn(len(c.in.Anchors))] }

// exchangeTails is a 2-opt* around a random seed, if there is a feasible one.
func (c *Chain) exchangeTails() bool {
	seed := c.drawSeed()
	if !c.twoOptStar.exchange(seed) {
		return false
	}
	c.ruin.inviteBank(seed)
	return true
}

// reportRoutes calls OnRoute with the routes that the step has changed.
func (c *Chain) reportRoutes() {
	rs := &c.Current.routes
	for _, ro := range c.Current.undo.touched.list {
		if rs.size[ro] > 2 {
			c.scratch = rs.appendVisits(c.scratch[:0], ro)
			c.OnRoute(ro, c.scratch, rs.length[ro])
		}
	}
}

// Intn draws a number in [0,n) from the chain's random stream.
func (c *Chain) Intn(n int) int { return c.rng.intn(n) }

// Shuffle brings a list into random order, drawn from the chain's random stream.
func (c *Chain) Shuffle(list []int32) { c.rng.shuffle(list) }
