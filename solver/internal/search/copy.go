package search

import "github.com/dronefleet/dronefleet/solver/internal/pdp"

// value is what the solution is worth.
func (cur *Current) value() pdp.Value {
	if cur.in.SpanCost > 0 {
		return pdp.Value{Used: cur.routes.used, Cost: cur.spanObjective()}
	}
	return pdp.Value{LostPrize: cur.LostPrize, Used: cur.routes.used, Cost: cur.Cost}
}

// spanObjective is the objective under SpanCost. Unlike Score.Cost it counts the
// longest route only.
func (cur *Current) spanObjective() float64 {
	total, longest := 0.0, 0.0
	for _, d := range cur.routes.length {
		total += d
		longest = max(longest, d)
	}
	return total + cur.in.SpanCost*longest + cur.Penalty
}

// Recount sums the cost afresh, so that no rounding error accumulates.
func (cur *Current) Recount() {
	cur.Cost = 0
	for ro := range cur.routes.size {
		cur.Cost += cur.routeCost(int32(ro))
	}
}

// copyChanged copies to s the routes that changed since the last call, all of
// them into the same s.
func (cur *Current) copyChanged(s *pdp.Solution) {
	for _, ro := range cur.changed.list {
		s.Routes[ro] = cur.routes.appendVisits(s.Routes[ro][:0], ro)
	}
	cur.changed.clear()
	cur.Recount()
	s.Value = cur.value()
}

// CopyTo makes s equal to the current solution.
func (cur *Current) CopyTo(s *pdp.Solution) {
	for ro := range cur.routes.size {
		s.Routes[ro] = cur.routes.appendVisits(s.Routes[ro][:0], int32(ro))
	}
	s.Value = cur.value()
}

// Restore makes the current solution equal to s; every route counts as changed
// afterwards. The routes of s must be feasible.
func (cur *Current) Restore(s *pdp.Solution) {
	cur.changed.clear()
	for ro := range cur.routes.size {
		cur.changed.add(int32(ro))
	}
	for r := range cur.routes.routeOf {
		cur.routes.routeOf[r] = -1
		cur.toBank(int32(r))
	}
	for ro, visits := range s.Routes {
		cur.setVisits(int32(ro), visits)
	}
	cur.Recount()
}
