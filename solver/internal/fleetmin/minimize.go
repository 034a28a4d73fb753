package fleetmin

import (
	"sync"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
	"github.com/dronefleet/dronefleet/solver/internal/search"
)

// Tuning is what differs between kinds of instances. BankTries of the local
// search applies while unserved requests have a penalty.
type Tuning struct {
	search.Tuning
	// Penalised lets every other search leave requests out at a penalty.
	Penalised bool
	// CompletePercent of the states of a penalised search should be complete when
	// it is hot.
	CompletePercent int
}

// Options steer Minimize.
type Options struct {
	Tuning   Tuning
	Seed     uint64
	Workers  int
	Fraction func(steps int64) float64 // share of the budget spent, for a worker after its steps
	// OnBest, if set, is called with every worker's new bests, by several
	// goroutines at once.
	OnBest func(*pdp.Solution)
}

// Less orders solutions: less prize lost, then fewer vehicles, then lower cost.
func Less(a, b pdp.Value) bool {
	if a.LostPrize != b.LostPrize {
		return a.LostPrize < b.LostPrize
	}
	if a.Used != b.Used {
		return a.Used < b.Used
	}
	return a.Cost < b.Cost
}

// Saving vehicles comes before distance, in rounds; after each, the workers with more
// vehicles take over the solution with the fewest. It ends at savePatience times the share
// of the budget at which the last vehicle was saved, within bounds: at least saveLeast of
// the budget (up to saveMany for manyRequests, or with a good prospect), at most saveMost,
// and at once when the prospect is hopeless.
const (
	saveRounds   = 30
	saveLeast    = 0.12
	saveMany     = 0.3
	manyRequests = 250
	saveMost     = 0.6
	savePatience = 3
)

// Minimize serves all requests with few vehicles, then little distance. It
// returns the best solution and the number of steps of all workers. The vehicles
// of the instance must be identical.
func Minimize(in *pdp.Instance, o Options) (best *pdp.Solution, steps int64) {
	team := make([]*worker, o.Workers)
	for i := range team {
		// One worker in two keeps to complete solutions and small ruins: where the
		// fleet is tight, a penalised one can take long to find back to them.
		tuning := o.Tuning
		if i%2 == 1 {
			tuning.Penalised, tuning.MeanRemoved = false, tuning.MeanRemoved/2
		}
		team[i] = newWorker(in, tuning, o.Seed*1000+uint64(i), o.OnBest)
	}
	spent, more := saveVehicles(team, o.Fraction)
	for _, w := range team {
		w.returnToBest()
	}
	share(team, Less)
	shorten(team, spent, o.Fraction, more)
	for _, w := range team {
		steps += w.chain.Steps
	}
	return team[0].chain.Best, steps
}

// saveVehicles runs the rounds that save vehicles. It returns the share of the
// budget spent and whether more vehicles might be saved.
func saveVehicles(team []*worker, fraction func(int64) float64) (spent float64, more bool) {
	in := team[0].in
	until := min(saveMany, max(saveLeast, saveMany*float64(in.Requests)/manyRequests))
	more = true
	for round := 1; spent < until && more; round++ {
		spent = saveMost * float64(round) / saveRounds
		before := team[0].chain.Best.Used
		parallel(team, func(w *worker) { w.saveVehicles(search.Schedule{To: spent, Fraction: fraction}) })
		share(team, fewer)
		if team[0].chain.Best.Used < before {
			until = min(saveMost, max(until, savePatience*spent))
			continue
		}
		var all prospect
		for _, w := range team {
			all.add(w.prospect)
		}
		more = !all.hopeless(in.Requests)
		if all.good() {
			until = max(until, saveMany)
		}
	}
	return spent, more
}

// Distance is shortened in legs, each an annealing of its own from another start and with
// other tuning, because a fleet without a spare vehicle traps an annealing for good. Each
// leg has at least stepsPerLeg per request; in the last part of the budget the workers join,
// from the best of all. Each leg but the first spends retryShare of the budget on another
// attempt to save a vehicle, unless that is hopeless.
const (
	maxLegs     = 4
	stepsPerLeg = 250
	paceShare   = 0.02 // of the legs' budget, to measure the pace
	joinShare   = 0.25 // of the budget, for the last part
	retryShare  = 0.05
	// joinCooler divides the initial temperature of the last part: what is left is
	// refinement.
	joinCooler = 5
)

// shorten minimises distance with the vehicles that are in use.
func shorten(team []*worker, from float64, fraction func(int64) float64, more bool) {
	last := 1 - joinShare*(1-from)
	first := team[0].chain
	before, measured := first.Steps, from+paceShare*(last-from)
	parallel(team, func(w *worker) {
		w.anneal(search.Schedule{To: measured, Cooling: [2]float64{from, last}, Fraction: fraction})
	})
	steps := float64(first.Steps-before) * (last - from) / max(fraction(first.Steps)-from, 1e-9)
	from = measured
	legs := int(min(maxLegs, steps/float64(team[0].in.Requests)/stepsPerLeg))
	if legs < 2 { // too few steps for more than one annealing
		together(team, from, fraction)
		return
	}
	for leg := range legs {
		begin := from + (last-from)*float64(leg)/float64(legs)
		end := from + (last-from)*float64(leg+1)/float64(legs)
		parallel(team, func(w *worker) {
			base := w.chain.Tuning
			w.vary(leg)
			s := search.Schedule{To: min(end, begin+retryShare), Fraction: fraction}
			if leg > 0 {
				w.startAfresh(s, more)
			}
			s.To, s.Cooling = end, [2]float64{begin, end}
			w.anneal(s)
			w.chain.Tuning = base
		})
	}
	share(team, Less)
	for _, w := range team {
		w.chain.Current.Restore(w.chain.Best)
		w.chain.Tuning.InitialTemperature /= joinCooler
	}
	together(team, last, fraction)
}

// together anneals the team for the rest of the budget, with exchanges.
func together(team []*worker, from float64, fraction func(int64) float64) {
	chains, workers := make([]*search.Chain, len(team)), map[*search.Chain]*worker{}
	for i, w := range team {
		chains[i], workers[w.chain] = w.chain, w
	}
	search.Together(chains, from, 1, fraction, func(c *search.Chain, s search.Schedule) { workers[c].anneal(s) }, nil)
}

// vary makes the legs unlike each other: large ruins and hot, very hot, neither.
func (w *worker) vary(leg int) {
	switch t := &w.chain.Tuning; leg % 3 {
	case 0:
		t.MeanRemoved, t.MaxString, t.InitialTemperature = 1.5*t.MeanRemoved, 2*t.MaxString, 3*t.InitialTemperature
	case 1:
		t.InitialTemperature *= 10
	}
}

// parallel runs f for every worker at once.
func parallel(team []*worker, f func(*worker)) {
	var wait sync.WaitGroup
	for _, w := range team {
		wait.Go(func() { f(w) })
	}
	wait.Wait()
}

// share gives the best solution of all to the workers whose own is worse.
func share(team []*worker, less func(a, b pdp.Value) bool) {
	best := team[0].chain.Best
	for _, w := range team[1:] {
		if less(w.chain.Best.Value, best.Value) {
			best = w.chain.Best
		}
	}
	for _, w := range team {
		if less(best.Value, w.chain.Best.Value) {
			w.load(best)
		}
	}
}

// fewer orders by vehicles alone. A worker whose solution needs as many as the
// best continues its attempt undisturbed.
func fewer(a, b pdp.Value) bool { return a.Used < b.Used }
