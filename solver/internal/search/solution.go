package search

// Solution is a copy of the routes: visits only.
type Solution struct {
	Routes    [][]int32 // visits in order, one slice per vehicle
	BankValue int64
	Cost      float64 // Σ routeCost, summed afresh
}

// NewSolution returns an empty solution with room for the instance.
func NewSolution(in *Instance) *Solution {
	s := &Solution{Routes: make([][]int32, len(in.Vehicles)), BankValue: 0, Cost: 0}
	for i := range s.Routes {
		s.Routes[i] = make([]int32, 0, in.stride())
	}
	for _, w := range in.Weight {
		s.BankValue += w
	}
	return s
}

// Less reports whether s is better: bank first, then cost.
func (s *Solution) Less(t *Solution) bool {
	if s.BankValue != t.BankValue {
		return s.BankValue < t.BankValue
	}
	return s.Cost < t.Cost
}

// CopyFrom makes s equal to t.
func (s *Solution) CopyFrom(t *Solution) {
	for i := range s.Routes {
		s.Routes[i] = append(s.Routes[i][:0], t.Routes[i]...)
	}
	s.BankValue, s.Cost = t.BankValue, t.Cost
}

// capture copies what changed since the last capture into s.
func (st *state) capture(s *Solution) {
	for _, ro := range st.stale {
		st.isStale[ro] = false
		base, n := int(ro)*st.stride, int(st.size[ro])
		out := s.Routes[ro][:0]
		for i := 1; i < n-1; i++ {
			out = append(out, st.nodes[base+i].visit)
		}
		s.Routes[ro] = out
	}
	st.stale = st.stale[:0]
	st.recount()
	s.BankValue, s.Cost = st.bankValue, st.cost
}

// recount sums the cost afresh, so that no drift accumulates.
func (st *state) recount() {
	st.cost = 0
	for ro := range st.size {
		st.cost += st.routeCost(int32(ro))
	}
}

// restore loads s; every route counts as changed afterwards. The routes must be
// feasible: they come from a state of the same instance or passed fits.
func (st *state) restore(s *Solution) {
	st.stale = st.stale[:0]
	for ro := range st.size {
		st.isStale[ro] = true
		st.stale = append(st.stale, int32(ro))
	}
	for r := range st.routeOf {
		st.routeOf[r] = -1
		st.deposit(int32(r))
	}
	for ro, visits := range s.Routes {
		base := ro * st.stride
		veh := &st.in.Vehicles[ro]
		st.nodes[base] = node{loc: veh.Start, visit: startVisit, late: inf}
		for i, v := range visits {
			st.nodes[base+1+i] = st.in.node(v)
			if v%Slots != DeliverySlot {
				r := v / Slots
				st.withdraw(r)
				st.routeOf[r], st.altOf[r] = int32(ro), uint8(v%Slots)
			}
		}
		st.nodes[base+1+len(visits)] = node{loc: veh.End, visit: endVisit}
		st.resize(int32(ro), len(visits)+2)
		st.refresh(ro)
	}
	st.recount()
}
