package pdp

// Value is what a solution is worth.
type Value struct {
	LostPrize int64   // sum of the prizes of the requests left out
	Used      int     // routes that serve something
	Cost      float64 // what the search minimises after the prizes: mostly distance
}

// Less reports whether v is better than w: less prize lost, then lower cost.
func (v Value) Less(w Value) bool {
	if v.LostPrize != w.LostPrize {
		return v.LostPrize < w.LostPrize
	}
	return v.Cost < w.Cost
}

// Solution is the visits of every vehicle and what they are worth.
type Solution struct {
	Routes [][]int32 // visits in order, one slice per vehicle
	Value
}

// NewSolution returns an empty solution with room for the instance.
func NewSolution(in *Instance) *Solution {
	s := &Solution{Routes: make([][]int32, len(in.Vehicles))}
	for i := range s.Routes {
		s.Routes[i] = make([]int32, 0, in.MaxPositions())
	}
	for r, prize := range in.Prize {
		if in.SpanCost > 0 {
			s.Cost += in.Penalty[r]
		} else {
			s.LostPrize += prize
		}
	}
	return s
}
