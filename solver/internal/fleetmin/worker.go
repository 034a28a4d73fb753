package fleetmin

import (
	"github.com/dronefleet/dronefleet/solver/internal/pdp"
	"github.com/dronefleet/dronefleet/solver/internal/search"
)

// worker is one chain with the memory of its attempts to save a vehicle and the
// penalty on what it leaves out.
type worker struct {
	in     *pdp.Instance
	chain  *search.Chain
	tuning Tuning

	attempting bool // a route is dissolved and not all of its requests have a place
	insertions int  // of the attempt so far
	prospect   prospect
	counter    []int64 // penalty counters: how often a request could not be placed, plus 1
	unplaced   []int32 // requests without a route, last in first out

	penalty penalty
	spare   *pdp.Solution // scratch of startAfresh
}

// newWorker returns a worker with a first solution.
func newWorker(in *pdp.Instance, tuning Tuning, seed uint64, onBest func(*pdp.Solution)) *worker {
	w := &worker{
		in: in, tuning: tuning, chain: search.NewChain(in, tuning.Tuning, seed), spare: pdp.NewSolution(in),
		counter: make([]int64, in.Requests), unplaced: make([]int32, 0, in.Requests),
		penalty: newPenalty(tuning.InitialTemperature),
	}
	c := w.chain
	c.Better = Less
	c.OnBest = func(s *pdp.Solution) {
		if s.LostPrize == 0 {
			c.Current.LimitRoutes(s.Used)
		}
		if onBest != nil {
			onBest(s)
		}
	}
	c.Tuning.AllBankTries, c.Tuning.RetryBank = true, true
	w.keepComplete()
	w.resetCounters()
	order := make([]int32, in.Requests)
	for i := range order {
		order[i] = int32(i)
	}
	c.Construct(order, func() bool { return false })
	return w
}

// load makes s the current solution, and the best if it is better, and gives up
// the attempt under way.
func (w *worker) load(s *pdp.Solution) {
	w.endAttempt()
	w.prospect = prospect{}
	w.chain.Load(s)
}

// returnToBest ends the saving of vehicles.
func (w *worker) returnToBest() {
	w.load(w.chain.Best)
	w.chain.Current.LimitRoutes(w.chain.Best.Used)
}
