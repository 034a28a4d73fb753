package search

import "github.com/dronefleet/dronefleet/solver/internal/pdp"

// routeConflicts tells which requests conflict with a route because of one request in it.
// With narrow windows most insertions fail because of one request; those need not be
// evaluated.
type routeConflicts struct {
	*pdp.Conflicts
	routes *routes
	served []pdp.Set // requests of each route
	asOf   []uint32  // the version of the route that served describes
}

func newRouteConflicts(rs *routes) *routeConflicts {
	c := &routeConflicts{Conflicts: pdp.NewConflicts(rs.in), routes: rs, asOf: make([]uint32, len(rs.size))}
	for range rs.size {
		c.served = append(c.served, pdp.NewSet(rs.in.Requests))
	}
	return c
}

// block reports whether a route serves a request that conflicts with r.
func (c *routeConflicts) block(r, ro int32) bool { return c.With(r).Intersects(c.servedBy(ro)) }

// servedBy returns the requests of a route.
func (c *routeConflicts) servedBy(ro int32) pdp.Set {
	set := c.served[ro]
	if c.asOf[ro] == c.routes.version[ro] {
		return set
	}
	c.asOf[ro] = c.routes.version[ro]
	clear(set)
	positions := c.routes.of(ro)
	for i := 1; i < len(positions)-1; i++ {
		set.Add(pdp.Request(positions[i].Visit))
	}
	return set
}
