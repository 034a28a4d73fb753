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

// fleetRounds is how often chains that save vehicles share what they found.
const fleetRounds = 8

// fleetShare of the budget goes to saving vehicles before distance is minded:
// the larger the instance, the more vehicles there are to save.
func fleetShare(requests int) float64 {
	return min(0.6, 0.2+0.0015*float64(requests))
}

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
		chains[i].Construct(order)
	}
	forFleet := fleetShare(in.Requests)
	for round := range fleetRounds {
		to := forFleet * float64(round+1) / fleetRounds
		parallel(chains, func(c *Chain) { c.SaveVehicles(Schedule{To: to, Fraction: o.Fraction}) })
		share(chains)
	}
	Together(chains, forFleet, o.Fraction, nil)
	for _, c := range chains {
		steps += c.Steps
	}
	return chains[0].Best, steps
}

// parallel runs f on every chain at once.
func parallel(chains []*Chain, f func(*Chain)) {
	var wait sync.WaitGroup
	for _, c := range chains {
		wait.Go(func() { f(c) })
	}
	wait.Wait()
}

// share gives every chain the best solution of all.
func share(chains []*Chain) {
	best := chains[0]
	for _, c := range chains[1:] {
		if c.Best.Less(best.Best) {
			best = c
		}
	}
	for _, c := range chains {
		if c != best && best.Best.Less(c.Best) {
			c.Load(best.Best)
		}
	}
}

// Together anneals independent chains that exchange their best solutions at
// fixed shares of the budget left after from; afterwards all hold the best.
func Together(chains []*Chain, from float64, fraction func(int64) float64, report func(*Solution)) {
	for _, x := range exchanges {
		to := from + x*(1-from)
		parallel(chains, func(c *Chain) {
			s := Schedule{From: from, To: to, Fraction: fraction}
			c.Promote(s)
			c.Anneal(s)
		})
		share(chains)
		if report != nil {
			report(chains[0].Best)
		}
	}
}
