package solver

import "github.com/dronefleet/dronefleet/solver/internal/search"

// dispatchTuning is in metres.
var dispatchTuning = search.Tuning{
	InitialTemperature: 2000, FinalTemperature: 20, MeanRemoved: 20, MaxString: 10,
	RegretPercent: 10, TwoOptStarPercent: 30, BankTries: 40, AbsenceShare: 0.7,
	Sorts: search.SortWeights{
		search.SortRandom: 4, search.SortDemand: 1, search.SortFar: 2, search.SortClose: 1, search.SortEnd: 3, search.SortPrize: 8,
	},
}

// fewSteps is the number of orders above which a chain has few steps for each.
const fewSteps = 800

// tuning returns the tuning of a chain.
func (r *run) tuning() search.Tuning {
	t := dispatchTuning
	switch n := len(r.orders); {
	case r.scalarGoal:
		t.InitialTemperature, t.FinalTemperature, t.BankTries = 20_000, 50, 6
	case n > fewSteps:
		// Few steps per order: small ruins and a cool start do more.
		t.MeanRemoved, t.InitialTemperature, t.FinalTemperature = 10, 500, 5
	case n <= tinyProblem:
		t.MeanRemoved, t.FinalTemperature = 10, 5
	}
	return t
}

// tinyTuning returns the tuning of a worker's k-th attempt at a tiny problem.
// Attempts alternate between refining and nearly starting anew with every step.
func (r *run) tinyTuning(k int) search.Tuning {
	t := r.tuning()
	if k%2 == 1 && !r.scalarGoal {
		t.InitialTemperature, t.MeanRemoved = 5000, 14
	}
	return t
}

// seed returns the first of the seeds of this run's chains.
func (r *run) seed() uint64 { return r.opts.Seed * 1000 }
