package search

import "github.com/dronefleet/dronefleet/solver/internal/pdp"

// insertion is the cheapest insertion of a request into one version of a route.
type insertion struct {
	version uint32
	place   pdp.Place // pdp.LowerBound: the delta is only a bound
	delta   float64
}

// insertionCache remembers the cheapest insertion of every request into every
// route. An entry holds until the route changes: most routes do not change in a
// step.
type insertionCache struct {
	routes    *routes
	evaluator *pdp.Evaluator
	conflicts *routeConflicts // nil: none known
	entries   []insertion     // requests x vehicles
}

func newInsertionCache(rs *routes, e *pdp.Evaluator, c *routeConflicts) insertionCache {
	return insertionCache{routes: rs, evaluator: e, conflicts: c, entries: make([]insertion, rs.in.Requests*len(rs.size))}
}

// of returns the entries of a request, one per vehicle.
func (c *insertionCache) of(r int32) []insertion {
	n := len(c.routes.size)
	return c.entries[int(r)*n:][:n]
}

// cheapest returns the cheapest insertion of a request into a route, or that
// there is none below the cutoff.
func (c *insertionCache) cheapest(r, ro int32, cutoff float64) *insertion {
	e := &c.entries[int(r)*len(c.routes.size)+int(ro)]
	if v := c.routes.version[ro]; e.version != v || e.place == pdp.LowerBound && e.delta < cutoff {
		e.delta, e.place = c.evaluate(r, ro, cutoff)
		e.version = v
	}
	return e
}

// evaluate is cheapest without memory. An empty route is evaluated to the end
// whatever the cutoff.
func (c *insertionCache) evaluate(r, ro int32, cutoff float64) (float64, pdp.Place) {
	rs := c.routes
	n := int(rs.size[ro])
	if n+2 > rs.stride || c.conflicts != nil && c.conflicts.block(r, ro) {
		return inf, 0
	}
	positions, length := rs.of(ro), rs.length[ro]
	if n == 2 {
		length, cutoff = positions[0].Next, inf
	}
	return c.evaluator.Cheapest(positions, ro, length, r, cutoff)
}
