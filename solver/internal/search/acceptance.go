package search

// acceptance decides whether a step is kept: the Metropolis criterion of
// simulated annealing, with the random threshold drawn before the step as in
// SISR, so that a hopeless step can end early.
type acceptance struct {
	before    *Score  // the score before the step
	threshold float64 // what the cost must stay below

	// penalised adds weight x penalty to the cost instead of comparing prizes first.
	penalised bool
	weight    float64

	// countAbsences prefers, of banks with the same value, the one whose requests were absent
	// less often, at any cost: these find a route again. They are SISR's absence counters.
	countAbsences bool
}

// passes reports whether a step that comes to the given score is kept.
func (a *acceptance) passes(s Score) bool {
	switch {
	case a.penalised:
		return s.Cost+a.weight*s.Penalty < a.threshold+a.weight*a.before.Penalty
	case s.LostPrize != a.before.LostPrize:
		return s.LostPrize < a.before.LostPrize
	}
	return a.countAbsences && s.Absences < a.before.Absences || s.Cost < a.threshold
}

// room returns what the insertion of a request with the given penalty may cost for the step
// to pass at a score of at least s. It is +Inf if the step can pass without the request.
func (a *acceptance) room(penalty float64, s Score) float64 {
	if a.penalised {
		room := a.threshold + a.weight*(a.before.Penalty-s.Penalty) - s.Cost
		if a.weight*penalty < room {
			return inf
		}
		return room
	}
	if s.LostPrize < a.before.LostPrize || a.countAbsences && s.Absences < a.before.Absences {
		return inf
	}
	return a.threshold - s.Cost
}
