package search

import "math"

var inf = math.Inf(1)

// Score adds up what a solution costs.
type Score struct {
	LostPrize int64   // sum of the prizes of the requests in the bank
	Absences  int64   // sum of their absence counters
	Penalty   float64 // sum of their penalties
	Cost      float64 // of the routes
}

// leaveOut counts a request as one in the bank.
func (s *Score) leaveOut(b *bank, r int32) {
	s.LostPrize += b.in.Prize[r]
	s.Absences += b.absences[r]
	s.Penalty += b.in.Penalty[r]
}

// takeIn counts a request as one in a route.
func (s *Score) takeIn(b *bank, r int32) {
	s.LostPrize -= b.in.Prize[r]
	s.Absences -= b.absences[r]
	s.Penalty -= b.in.Penalty[r]
}
