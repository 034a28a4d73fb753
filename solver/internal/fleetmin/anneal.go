package fleetmin

import "github.com/dronefleet/dronefleet/solver/internal/search"

const (
	// incompleteLimit is how many steps a search may take after its last complete state; then
	// guided ejection with up to repairInsertions tries to complete it.
	incompleteLimit  = 100
	repairInsertions = 100
)

// anneal runs steps under simulated annealing. A worker that is penalised may
// leave requests out meanwhile.
func (w *worker) anneal(s search.Schedule) {
	c := w.chain
	if w.in.Requests == 0 || len(w.in.Anchors) == 0 {
		return
	}
	if !w.tuning.Penalised {
		c.Anneal(s)
		return
	}
	w.allowIncomplete()
	defer w.keepComplete()
	for {
		f := s.Fraction(c.Steps)
		if f >= s.To {
			return
		}
		cooled := s.Cooled(f)
		w.penalty.tighten(w.tuning.CompletePercent, cooled)
		temperature := c.Tuning.Temperature(cooled)
		for range search.ClockEvery {
			c.Step(temperature)
			w.penalty.note(w.isComplete(), temperature, c.Tried.Cost/float64(w.in.Requests))
			c.Penalise(w.penalty.weight)
		}
		w.repair(s)
		c.Current.Recount()
	}
}

// allowIncomplete lets steps leave requests out at the penalty.
func (w *worker) allowIncomplete() {
	w.chain.Penalise(w.penalty.weight)
	w.chain.Tuning.BankTries = w.tuning.BankTries
}

// keepComplete lets no step leave out more than before.
func (w *worker) keepComplete() {
	w.chain.Penalise(0)
	w.chain.Tuning.BankTries = 0
}

// isComplete reports whether no more is left out than by the best solution.
func (w *worker) isComplete() bool {
	return w.chain.Current.LostPrize <= w.chain.Best.LostPrize
}

// repair completes the solution of a penalised search that has been incomplete for
// long, by guided ejection, which may fail.
func (w *worker) repair(s search.Schedule) {
	c := w.chain
	if w.penalty.incompleteSteps < incompleteLimit {
		return
	}
	w.unplaced = append(w.unplaced[:0], c.Current.Bank()...)
	w.keepComplete()
	restore := w.withSmallRuins()
	for i := 0; i < repairInsertions && !w.isComplete() && s.Fraction(c.Steps) < s.To; i++ {
		w.force()
	}
	restore()
	w.penalty.repaired(w.isComplete())
	w.allowIncomplete()
	c.Keep()
}
