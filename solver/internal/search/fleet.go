package search

import "sync"

// FleetOptions steer MinimizeFleet.
type FleetOptions struct {
	Tuning   Tuning
	Seed     uint64
	Workers  int
	Fraction func(steps int64) float64 // share of the budget spent
	// OnBest, if set, is called with every chain's new bests, by several
	// goroutines at once.
	OnBest func(*Solution)
}

// exchanges are the shares of the budget after which chains share their best.
var exchanges = []float64{0.3, 0.5, 0.7, 0.85, 1}

// Saving vehicles comes before distance is minded. It goes on in rounds, after
// each of which the chains that need more take the solution with the fewest, for as
// long as it pays: until fleetPatience times the share at which the last vehicle was
// saved, at least fleetLeast of the budget (more for many requests, up to fleetLarge
// for fleetLargeAt of them, and fleetLarge where the outlook is good) and at most
// fleetMost; or until there is no hope. Of every further leg fleetRetry of the budget
// is one more attempt, unless there is none.
const (
	fleetRounds   = 30
	fleetLeast    = 0.12
	fleetLarge    = 0.3
	fleetLargeAt  = 250
	fleetMost     = 0.6
	fleetPatience = 3
	fleetRetry    = 0.05
)

// MinimizeFleet serves all requests with few vehicles, then little distance, and
// returns the best solution and the number of steps of all workers.
func MinimizeFleet(in *Instance, o FleetOptions) (best *Solution, steps int64) {
	chains := make([]*Chain, o.Workers)
	order := make([]int32, in.Requests)
	for i := range order {
		order[i] = int32(i)
	}
	for i := range chains {
		// One chain in two keeps to complete states and small ruins: where the fleet
		// is tight, a soft one can take long to find back to them.
		tuning := o.Tuning
		if i%2 == 1 {
			tuning.Soft, tuning.Mean = false, tuning.Mean/2
		}
		chains[i] = NewChain(in, tuning, o.Seed*1000+uint64(i))
		chains[i].OnBest = o.OnBest
		chains[i].Construct(order, func() bool { return false })
	}
	spent, until := 0.0, min(fleetLarge, max(fleetLeast, fleetLarge*float64(in.Requests)/fleetLargeAt))
	more := true // vehicles may be saved
	for round := 1; spent < until && more; round++ {
		spent = fleetMost * float64(round) / fleetRounds
		before := chains[0].Best.Used
		parallel(chains, func(c *Chain) { c.SaveVehicles(Schedule{To: spent, Fraction: o.Fraction}) })
		share(chains, fewer)
		if chains[0].Best.Used < before {
			until = min(fleetMost, max(until, fleetPatience*spent))
			continue
		}
		var prospect outlook
		for _, c := range chains {
			prospect.add(c.eject.outlook)
		}
		more = !prospect.hopeless(in.Requests)
		if prospect.good() {
			until = max(until, fleetLarge)
		}
	}
	for _, c := range chains {
		c.returnToBest()
	}
	share(chains, (*Solution).Less)
	climb(chains, spent, o.Fraction, more)
	for _, c := range chains {
		steps += c.Steps
	}
	return chains[0].Best, steps
}

// What follows the saving of vehicles is a number of legs, each a whole
// annealing of its own, from another start. Then the chains join for the
// last part of the budget, from the best of all. A fleet without a vehicle to
// spare traps an annealing for good; so there are as many as leave each
// stepsPerLeg per request, and no two are alike.
const (
	mostLegs    = 4
	stepsPerLeg = 250
	paceShare   = 0.02
	lastLeg     = 0.25
)

// climb minimises distance with the vehicles that are.
func climb(chains []*Chain, from float64, fraction func(int64) float64, more bool) {
	last := 1 - lastLeg*(1-from)
	// The pace is measured on the first moments of the first leg.
	before, tried := chains[0].Steps, from+paceShare*(last-from)
	parallel(chains, func(c *Chain) {
		c.Anneal(Schedule{To: tried, Cooling: [2]float64{from, last}, Fraction: fraction})
	})
	steps := float64(chains[0].Steps-before) * (last - from) / max(fraction(chains[0].Steps)-from, 1e-9)
	from = tried
	legs := int(min(mostLegs, steps/float64(chains[0].in.Requests)/stepsPerLeg))
	if legs < 2 { // no time to lose
		Together(chains, from, 1, fraction, nil)
		return
	}
	for leg := range legs {
		begin := from + (last-from)*float64(leg)/float64(legs)
		end := from + (last-from)*float64(leg+1)/float64(legs)
		parallel(chains, func(c *Chain) {
			base := c.Tuning
			c.vary(leg)
			s := Schedule{To: min(end, begin+fleetRetry), Fraction: fraction}
			if leg > 0 {
				c.StartAfresh(s, more)
			}
			s.To, s.Cooling = end, [2]float64{begin, end}
			c.Anneal(s)
			c.Tuning = base
		})
	}
	share(chains, (*Solution).Less)
	for _, c := range chains {
		c.restore(c.Best)
		c.Tuning.Hot /= 5 // what is left is refinement
	}
	Together(chains, last, 1, fraction, nil)
}

// vary makes the legs unlike each other: large ruins, great heat, neither.
func (c *Chain) vary(leg int) {
	switch t := &c.Tuning; leg % 3 {
	case 0:
		t.Mean, t.MaxString, t.Hot = 1.5*t.Mean, 2*t.MaxString, 3*t.Hot
	case 1:
		t.Hot *= 10
	}
}

// parallel runs f on every chain at once.
func parallel(chains []*Chain, f func(*Chain)) {
	var wait sync.WaitGroup
	for _, c := range chains {
		wait.Go(func() { f(c) })
	}
	wait.Wait()
}

// share gives the best solution of all chains to those whose own is worse.
func share(chains []*Chain, better func(a, b *Solution) bool) {
	best := chains[0].Best
	for _, c := range chains[1:] {
		if better(c.Best, best) {
			best = c.Best
		}
	}
	for _, c := range chains {
		if better(best, c.Best) {
			c.Load(best)
		}
	}
}

// fewer reports whether a needs fewer vehicles. A chain whose solution needs as many
// goes on undisturbed with what it is about.
func fewer(a, b *Solution) bool { return a.Used < b.Used }

// Together anneals independent chains from share from to share to of the budget.
// They exchange their best solutions at fixed shares of that; afterwards all
// hold the best.
func Together(chains []*Chain, from, to float64, fraction func(int64) float64, report func(*Solution)) {
	for _, x := range exchanges {
		s := Schedule{To: from + x*(to-from), Cooling: [2]float64{from, to}, Fraction: fraction}
		parallel(chains, func(c *Chain) {
			c.Promote(s)
			c.Anneal(s)
		})
		share(chains, (*Solution).Less)
		if report != nil {
			report(chains[0].Best)
		}
	}
}
