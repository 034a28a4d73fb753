package fleetmin

// Limits of the penalty weight, in what a served request costs on average.
const (
	// weightLeast is the most at first, and again once the most has grown above
	// weightMost: a state that is not completed at such a penalty is a dead end.
	weightLeast = 2
	weightMost  = 20
	// weightGrowth is how the most grows with every repair that fails.
	weightGrowth = 1.2
)

const (
	// adaptEvery steps are between two changes of the weight, by adaptFactor.
	adaptEvery  = 100
	adaptFactor = 1.1
	// coldPercent of the states should be complete when a chain is cold.
	coldPercent = 90
	// startWeight is the first weight, in initial temperatures.
	startWeight = 10
)

// penalty adapts the weight on the requests that a search leaves out: strategic
// oscillation (Glover 1977). At a low weight the search crosses between regions
// that no complete solutions connect; at a high one it completes them.
type penalty struct {
	weight float64 // cost per unit of pdp.Instance.Penalty
	most   float64 // what weight may grow to, in costs of a served request
	least  float64 // what most falls back to

	wanted          int // percent of the states that should be complete now
	complete, seen  int // steps since weight changed: those that ended complete, all
	incompleteSteps int // steps since the last complete state
}

func newPenalty(temperature float64) penalty {
	return penalty{weight: startWeight * temperature, most: weightLeast, least: weightLeast}
}

// tighten sets what depends on the share of the cooling that is done; percent of
// the states should be complete when that is 0.
func (p *penalty) tighten(percent int, cooled float64) {
	p.wanted = percent + int(float64(coldPercent-percent)*cooled*cooled)
	p.least = weightLeast + (weightMost-weightLeast)*cooled*cooled
	p.most = max(p.most, p.least)
}

// note counts a step and moves the weight to where as many states are complete as
// should be. A served request costs mean on average.
func (p *penalty) note(complete bool, temperature, mean float64) {
	p.seen++
	if p.incompleteSteps++; complete {
		p.complete++
		p.incompleteSteps = 0
	}
	if p.seen < adaptEvery {
		return
	}
	if p.complete*100 < p.wanted*p.seen {
		p.weight = min(p.weight*adaptFactor, p.most*mean)
	} else {
		p.weight /= adaptFactor
	}
	p.weight = max(p.weight, temperature)
	p.complete, p.seen = 0, 0
}

// repaired says how an attempt to complete the solution ended.
func (p *penalty) repaired(ok bool) {
	p.incompleteSteps = 0
	if ok {
		p.most = max(p.least, p.most/weightGrowth)
		return
	}
	if p.most *= weightGrowth; p.most > weightMost {
		p.most = p.least
	}
}
