package search

import "github.com/dronefleet/dronefleet/solver/internal/pdp"

// undoLog holds what the current step has changed, as it was before. A step
// changes few routes, so saving those is cheaper than copying the solution.
type undoLog struct {
	before Score

	touched   indexSet       // routes that the step has changed
	positions []pdp.Position // what they were, one after the other
	start     []int32        // where a route begins in positions
	size      []int32
	version   []uint32
	length    []float64

	moved     indexSet // requests that the step has put into the bank or taken out
	wasBanked []bool
}

func newUndoLog(in *pdp.Instance) undoLog {
	r, v := in.Requests, len(in.Vehicles)
	return undoLog{
		touched: newIndexSet(v), positions: make([]pdp.Position, 0, 2*(r+v)),
		start: make([]int32, v), size: make([]int32, v), version: make([]uint32, v), length: make([]float64, v),
		moved: newIndexSet(r), wasBanked: make([]bool, r),
	}
}

// saveRoute saves a route the first time the step changes it.
func (u *undoLog) saveRoute(rs *routes, ro int32) {
	if !u.touched.add(ro) {
		return
	}
	u.start[ro] = int32(len(u.positions))
	u.positions = append(u.positions, rs.of(ro)...)
	u.size[ro], u.version[ro], u.length[ro] = rs.size[ro], rs.version[ro], rs.length[ro]
}

// route returns what a touched route was before the step.
func (u *undoLog) route(ro int32) []pdp.Position {
	return u.positions[u.start[ro]:][:u.size[ro]]
}

// saveRequest saves whether a request was in the bank before the step.
func (u *undoLog) saveRequest(b *bank, r int32) {
	if u.moved.add(r) {
		u.wasBanked[r] = b.has(r)
	}
}

// wasInBank reports whether the step has moved a request that was in the bank
// before it.
func (u *undoLog) wasInBank(r int32) bool { return u.moved.has[r] && u.wasBanked[r] }

// clear forgets the step.
func (u *undoLog) clear() {
	u.touched.clear()
	u.moved.clear()
	u.positions = u.positions[:0]
}
