package search

import (
	"sync"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
)

// exchangeAt are the shares of the budget after which chains share their best.
var exchangeAt = []float64{0.3, 0.5, 0.7, 0.85, 1}

// Together runs chains at once from one share of the budget to another. They
// exchange their best solutions a few times; afterwards all hold the best.
// Report, if set, is called with the best after each exchange.
func Together(chains []*Chain, from, to float64, fraction func(steps int64) float64, run func(*Chain, Schedule), report func(*pdp.Solution)) {
	for _, x := range exchangeAt {
		s := Schedule{To: from + x*(to-from), Cooling: [2]float64{from, to}, Fraction: fraction}
		var wait sync.WaitGroup
		for _, c := range chains {
			wait.Go(func() { run(c, s) })
		}
		wait.Wait()
		share(chains)
		if report != nil {
			report(chains[0].Best)
		}
	}
}

// share loads the best solution of all chains into those whose own is worse.
func share(chains []*Chain) {
	best := chains[0]
	for _, c := range chains[1:] {
		if c.Better(c.Best.Value, best.Best.Value) {
			best = c
		}
	}
	for _, c := range chains {
		if c.Better(best.Best.Value, c.Best.Value) {
			c.Load(best.Best)
		}
	}
}
