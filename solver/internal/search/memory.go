package search

import "github.com/dronefleet/dronefleet/solver/internal/pdp"

const (
	// memorySize is how many routes are remembered.
	memorySize = 256
	// reinstatePercent of the steps reinstate a remembered route.
	reinstatePercent = 3
)

// routeMemory remembers the routes of the best solutions that a chain has met. Some steps
// put one of them back in place of its vehicle's present route and repair the rest. This
// recombines good routes of different solutions, as the adaptive memory of Rochat and
// Taillard (1995), but one route at a time and with the usual acceptance.
type routeMemory struct {
	cur  *Current
	rng  *rng
	ruin *ruiner

	slab   int     // length of a slab
	visits []int32 // memorySize slabs
	length []int32 // visits in each slab
	route  []int32 // where they were
	next   int     // slab to write to
	filled int     // slabs in use
}

func newRouteMemory(in *pdp.Instance) routeMemory {
	return routeMemory{
		slab: in.MaxPositions(), visits: make([]int32, memorySize*in.MaxPositions()),
		length: make([]int32, memorySize), route: make([]int32, memorySize),
	}
}

// rememberChanged stores the changed routes of a new best solution over the
// oldest ones.
func (m *routeMemory) rememberChanged() {
	for _, ro := range m.cur.changed.list {
		visits := m.cur.routes.appendVisits(m.visits[m.next*m.slab:][:0:m.slab], ro)
		if len(visits) == 0 {
			continue
		}
		m.length[m.next], m.route[m.next] = int32(len(visits)), ro
		m.next = (m.next + 1) % memorySize
		m.filled = min(m.filled+1, memorySize)
	}
}

// reinstate is a ruin that ends with a remembered route in place.
func (m *routeMemory) reinstate() {
	cur, rs := m.cur, &m.cur.routes
	k := m.rng.intn(m.filled)
	visits := m.visits[k*m.slab:][:m.length[k]]
	ro := m.route[k]
	if cur.in.Identical { // any vehicle will do: take the one of the first request
		if of := rs.routeOf[pdp.Request(visits[0])]; of >= 0 {
			ro = of
		}
	}
	if rs.size[ro] == 2 && rs.used >= rs.limit {
		return
	}
	m.ruin.removeAll(ro)
	for _, v := range visits {
		if r := pdp.Request(v); rs.routeOf[r] >= 0 {
			m.ruin.remove(r)
		} else {
			m.ruin.pending.add(r)
		}
	}
	m.ruin.close()

	cur.undo.saveRoute(rs, ro)
	cur.Cost -= cur.routeCost(ro)
	cur.setVisits(ro, visits)
	cur.Cost += cur.routeCost(ro)
}
