package search

import "math"

// Tuning is what differs between kinds of instances. Percentages are of the
// steps.
type Tuning struct {
	InitialTemperature, FinalTemperature float64 // in cost
	// MeanRemoved is how many visits a ruin removes on average, MaxString the
	// most in a row from one route.
	MeanRemoved float64
	MaxString   float64
	Sorts       SortWeights
	// RegretPercent of the recreates insert by regret.
	RegretPercent int
	// TwoOptStarPercent of the steps exchange the tails of two routes instead of
	// ruining them.
	TwoOptStarPercent int
	// BankTries requests from the bank join a step: a random number up to that, or
	// always as many if AllBankTries.
	BankTries    int
	AllBankTries bool
	// RetryBank makes requests from the bank try all routes around them. Without it
	// they try only those that the step has changed: the others refused them before.
	RetryBank bool
	// AbsenceShare is the share of the cooling during which absences count, see
	// acceptance.
	AbsenceShare float64
}

// Temperature returns the temperature when the given share of the cooling is
// done. It falls exponentially.
func (t *Tuning) Temperature(cooled float64) float64 {
	return t.InitialTemperature * math.Pow(t.FinalTemperature/t.InitialTemperature, cooled)
}

// Schedule says how far a run is. Fraction is called every few steps and returns the spent
// share of the budget; the run ends at To. Cooling is the share of the budget at which the
// whole cooling begins and ends.
type Schedule struct {
	To       float64
	Cooling  [2]float64
	Fraction func(steps int64) float64
}

// Cooled is the share of the cooling done at share f of the budget.
func (s Schedule) Cooled(f float64) float64 {
	return min(1, max(0, (f-s.Cooling[0])/(s.Cooling[1]-s.Cooling[0])))
}
