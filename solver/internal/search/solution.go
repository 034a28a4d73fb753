package search

// Solution is a copy of the routes: visits only.
type Solution struct {
	Routes    [][]int32 // visits in order, one slice per vehicle
	BankValue int64
	Cost      float64 // Σ routeCost, summed afresh
	Used      int     // routes that serve something

	fewer bool // Used counts before Cost
}

// NewSolution returns an empty solution with room for the instance.
func NewSolution(in *Instance) *Solution {
	s := &Solution{Routes: make([][]int32, len(in.Vehicles)), fewer: in.Uniform}
	for i := range s.Routes {
		s.Routes[i] = make([]int32, 0, in.stride())
	}
	for r, w := range in.Weight {
		if in.SpanPrice > 0 {
			s.Cost += in.Price[r]
		} else {
			s.BankValue += w
		}
	}
	return s
}

// Less reports whether s is better: bank first, then cost.
func (s *Solution) Less(t *Solution) bool {
	if s.BankValue != t.BankValue {
		return s.BankValue < t.BankValue
	}
	if s.fewer && s.Used != t.Used {
		return s.Used < t.Used
	}
	return s.Cost < t.Cost
}

// capture copies what changed since the last capture into s.
func (st *state) capture(s *Solution) {
	for _, ro := range st.stale {
		st.isStale[ro] = false
		nodes := st.route(ro)
		out := s.Routes[ro][:0]
		for i := 1; i < len(nodes)-1; i++ {
			out = append(out, nodes[i].visit)
		}
		s.Routes[ro] = out
	}
	st.stale = st.stale[:0]
	st.recount()
	s.BankValue, s.Cost, s.Used = st.bankValue, st.cost, st.used
	if st.in.SpanPrice > 0 {
		s.BankValue, s.Cost = 0, st.scalar()
	}
}

// copyTo makes s equal to the current solution.
func (st *state) copyTo(s *Solution) {
	for ro := range st.size {
		nodes := st.route(int32(ro))
		s.Routes[ro] = s.Routes[ro][:0]
		for i := 1; i < len(nodes)-1; i++ {
			s.Routes[ro] = append(s.Routes[ro], nodes[i].visit)
		}
	}
	s.BankValue, s.Cost, s.Used = st.bankValue, st.cost, st.used
}

// scalar is the objective under SpanPrice.
func (st *state) scalar() float64 {
	total, longest := 0.0, 0.0
	for _, d := range st.dist {
		total += d
		longest = max(longest, d)
	}
	return total + st.in.SpanPrice*longest + st.bankPrice
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
	for i, visits := range s.Routes {
		ro := int32(i)
		st.resize(ro, len(visits)+2)
		nodes := st.route(ro)
		for i, v := range visits {
			nodes[1+i] = st.in.node(v)
			if v%Slots != DeliverySlot {
				r := v / Slots
				st.withdraw(r)
				st.routeOf[r], st.altOf[r] = ro, uint8(v%Slots)
			}
		}
		nodes[1+len(visits)] = node{loc: st.in.Vehicles[ro].End, visit: endVisit}
		st.refresh(ro)
	}
	st.recount()
}

// Fits reports whether vehicle ro can drive the visits.
func (in *Instance) Fits(ro int, visits []int32) bool {
	if len(visits) == 0 {
		return true
	}
	if len(visits)+2 > in.stride() {
		return false
	}
	veh := &in.Vehicles[ro]
	nodes := in.positions(ro, visits, make([]node, 0, len(visits)+2))
	return in.timetable(nodes, veh) <= veh.MaxDist && veh.bears(nodes)
}

// positions appends the positions of a route, without their timetable.
func (in *Instance) positions(ro int, visits []int32, nodes []node) []node {
	veh := &in.Vehicles[ro]
	nodes = append(nodes, node{loc: veh.Start, visit: startVisit, late: inf})
	for _, v := range visits {
		nodes = append(nodes, in.node(v))
	}
	return append(nodes, node{loc: veh.End, visit: endVisit})
}

// bears reports whether the loads and times of positions, their timetable
// computed, keep within the bounds.
func (veh *Vehicle) bears(nodes []node) bool {
	for i := range nodes {
		n := &nodes[i]
		if n.load > veh.Capacity+Slack || n.depart-n.svc > n.latest {
			return false
		}
	}
	return true
}

// length is the distance of a route.
func (in *Instance) length(ro int, visits []int32) float64 {
	at, total := in.Vehicles[ro].Start, 0.0
	for _, v := range visits {
		total += in.row(at)[in.Loc[v]]
		at = in.Loc[v]
	}
	return total + in.row(at)[in.Vehicles[ro].End]
}

// Without returns the visits less those of one request, in place.
func Without(visits []int32, request int32) []int32 {
	out := visits[:0]
	for _, v := range visits {
		if v/Slots != request {
			out = append(out, v)
		}
	}
	return out
}
