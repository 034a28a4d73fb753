package search

import "github.com/dronefleet/dronefleet/solver/internal/pdp"

// Current is the solution that a chain is at: routes, bank and score, with an
// undo log. A step changes it between begin and either commit or rollback.
type Current struct {
	Score
	in        *pdp.Instance
	routes    routes
	bank      bank
	undo      undoLog
	lastRoute []int32  // route that a request was taken from last; 0 at first
	changed   indexSet // routes that differ from the copy made last, see copyChanged
	// spanFree is the length above which a route costs span, see Chain.drawSpanFree.
	spanFree float64
}

func newCurrent(in *pdp.Instance) Current {
	cur := Current{
		in: in, routes: newRoutes(in), bank: newBank(in), undo: newUndoLog(in),
		lastRoute: make([]int32, in.Requests), changed: newIndexSet(len(in.Vehicles)), spanFree: inf,
	}
	for r := range int32(in.Requests) {
		cur.toBank(r)
	}
	return cur
}

// routeCost is what a route costs: its length and, under SpanCost, the part of
// it above spanFree. An empty route costs nothing.
func (cur *Current) routeCost(ro int32) float64 {
	if cur.routes.size[ro] == 2 {
		return 0
	}
	d := cur.routes.length[ro]
	return d + cur.in.SpanCost*max(0, d-cur.spanFree)
}

// toBank puts a request into the bank.
func (cur *Current) toBank(r int32) {
	if cur.bank.add(r) {
		cur.leaveOut(&cur.bank, r)
	}
}

// fromBank takes a request out of the bank.
func (cur *Current) fromBank(r int32) {
	if cur.bank.remove(r) {
		cur.takeIn(&cur.bank, r)
	}
}

// begin opens a step.
func (cur *Current) begin() { cur.undo.before = cur.Score }

// commit keeps the step.
func (cur *Current) commit() {
	for _, ro := range cur.undo.touched.list {
		cur.changed.add(ro)
	}
	cur.undo.clear()
}

// rollback restores the solution at begin.
func (cur *Current) rollback() {
	rs, undo := &cur.routes, &cur.undo
	for _, r := range undo.moved.list {
		if undo.wasBanked[r] {
			rs.routeOf[r] = -1
			cur.bank.add(r)
		} else {
			cur.bank.remove(r)
		}
	}
	for _, ro := range undo.touched.list {
		was := undo.route(ro)
		rs.resize(ro, len(was))
		copy(rs.of(ro), was)
		rs.version[ro], rs.length[ro] = undo.version[ro], undo.length[ro]
		rs.claim(ro)
	}
	cur.Score = undo.before
	undo.clear()
}

// unroute takes a request out of its route. The request's visits stay until the
// route is compacted; until then the route must not be evaluated.
func (cur *Current) unroute(r int32) {
	cur.undo.saveRequest(&cur.bank, r)
	ro := cur.routes.routeOf[r]
	cur.undo.saveRoute(&cur.routes, ro)
	cur.lastRoute[r] = ro
	cur.routes.routeOf[r] = -1
}

// compact drops from a route every visit whose request has left it.
func (cur *Current) compact(ro int32) {
	rs := &cur.routes
	positions := rs.of(ro)
	w := 1
	for i := 1; i < len(positions); i++ {
		if v := positions[i].Visit; v >= 0 && rs.routeOf[pdp.Request(v)] != ro {
			continue
		}
		if w != i {
			positions[w] = positions[i]
		}
		w++
	}
	cur.Cost -= cur.routeCost(ro)
	rs.resize(ro, w)
	rs.refresh(ro)
	cur.Cost += cur.routeCost(ro)
}

// assign moves a request from the bank into a route.
func (cur *Current) assign(r, ro int32, place pdp.Place) {
	in, rs := cur.in, &cur.routes
	cur.undo.saveRequest(&cur.bank, r)
	cur.fromBank(r)
	cur.undo.saveRoute(rs, ro)
	i, j, pickup := place.Unpack()
	n := int(rs.size[ro])
	cur.Cost -= cur.routeCost(ro)
	rs.resize(ro, n+2)
	positions := rs.of(ro)
	// The delivery goes after position j, the pickup after i <= j.
	copy(positions[j+3:], positions[j+1:n])
	positions[j+2] = in.Position(pdp.Delivery(r))
	copy(positions[i+2:j+2], positions[i+1:j+1])
	positions[i+1] = in.Position(r*pdp.Slots + int32(pickup))
	rs.routeOf[r] = ro
	rs.refresh(ro)
	cur.Cost += cur.routeCost(ro)
}

// setVisits replaces what a route does. All requests of the visits must be in the
// bank; those of the old visits must have left the route. The score's cost is
// left to the caller.
func (cur *Current) setVisits(ro int32, visits []int32) {
	rs := &cur.routes
	rs.resize(ro, len(visits)+2)
	positions := rs.of(ro)
	for i, v := range visits {
		positions[1+i] = cur.in.Position(v)
		if !pdp.IsDelivery(v) {
			cur.fromBank(pdp.Request(v))
			rs.routeOf[pdp.Request(v)] = ro
		}
	}
	positions[1+len(visits)] = cur.in.Vehicles[ro].EndPosition()
	rs.refresh(ro)
}

// countAbsences counts a step for all requests that it left out.
func (cur *Current) countAbsences() {
	for _, r := range cur.bank.requests {
		cur.bank.absences[r]++
	}
	cur.Absences += int64(len(cur.bank.requests))
}
