package search

import "github.com/dronefleet/dronefleet/solver/internal/pdp"

// routes stores the route of every vehicle and where each request is in them.
// Only a route that serves something occupies a slab of its own: fleets are
// large and most routes are empty.
type routes struct {
	in     *pdp.Instance
	stride int // length of a slab

	positions []pdp.Position // the two positions of every vehicle's empty route, then the slabs
	start     []int          // where a route begins in positions
	free      []int          // where the unused slabs begin
	size      []int32        // positions of a route, including both ends
	length    []float64      // distance, 0 for an empty route
	version   []uint32       // changes with the route; equal versions are equal routes

	emptyVersion []uint32
	lastVersion  uint32

	vehicles  []int32 // those in use first
	vehicleAt []int32 // index of a vehicle in vehicles
	used      int     // routes that serve something
	limit     int     // routes that may be in use

	routeOf    []int32 // route of a request, -1 when in the bank
	pickupAt   []int32 // position of a routed request's pickup
	deliveryAt []int32
}

func newRoutes(in *pdp.Instance) routes {
	r, v, s := in.Requests, len(in.Vehicles), in.MaxPositions()
	most := min(v, 2*r) // routes in use, also while one solution replaces another
	rs := routes{
		in: in, stride: s,
		positions: make([]pdp.Position, 2*v+most*s), start: make([]int, v), free: make([]int, 0, most),
		size: make([]int32, v), length: make([]float64, v), version: make([]uint32, v), emptyVersion: make([]uint32, v),
		vehicles: make([]int32, v), vehicleAt: make([]int32, v), limit: v,
		routeOf: make([]int32, r), pickupAt: make([]int32, r), deliveryAt: make([]int32, r),
	}
	for i := range most {
		rs.free = append(rs.free, 2*v+i*s)
	}
	for i := range in.Vehicles {
		veh := &in.Vehicles[i]
		rs.emptyVersion[i] = uint32(i + 1)
		rs.vehicles[i], rs.vehicleAt[i] = int32(i), int32(i)
		rs.start[i], rs.size[i] = 2*i, 2
		copy(rs.empty(i), []pdp.Position{veh.StartPosition(), veh.EndPosition()})
		rs.refresh(int32(i))
	}
	rs.lastVersion = uint32(v + 1)
	for i := range rs.routeOf {
		rs.routeOf[i] = -1
	}
	return rs
}

// empty returns the positions of a vehicle's empty route.
func (rs *routes) empty(v int) []pdp.Position { return rs.positions[2*v : 2*v+2 : 2*v+2] }

// of returns the positions of a route.
func (rs *routes) of(ro int32) []pdp.Position {
	at, n := rs.start[ro], int(rs.size[ro])
	return rs.positions[at : at+n : at+n]
}

// inUse lists the routes that serve something.
func (rs *routes) inUse() []int32 { return rs.vehicles[:rs.used] }

// idle lists the vehicles whose routes are empty.
func (rs *routes) idle() []int32 { return rs.vehicles[rs.used:] }

// mayUseOneMore reports whether a vehicle may leave the idle ones.
func (rs *routes) mayUseOneMore() bool { return rs.used < len(rs.vehicles) && rs.used < rs.limit }

// appendVisits appends the visits of a route to a slice.
func (rs *routes) appendVisits(visits []int32, ro int32) []int32 {
	positions := rs.of(ro)
	for i := 1; i < len(positions)-1; i++ {
		visits = append(visits, positions[i].Visit)
	}
	return visits
}

// resize sets the number of positions of a route and keeps the lists of used and
// idle vehicles. A route that comes into use has its two ends; the caller writes
// the positions that are new.
func (rs *routes) resize(ro int32, size int) {
	was, is := rs.size[ro] > 2, size > 2
	rs.size[ro] = int32(size)
	if was == is {
		return
	}
	border := rs.used // index of the first idle vehicle
	if is {
		rs.used++
		last := len(rs.free) - 1
		rs.start[ro], rs.free = rs.free[last], rs.free[:last]
		copy(rs.positions[rs.start[ro]:], rs.empty(int(ro)))
	} else {
		rs.used--
		border = rs.used
		rs.free = append(rs.free, rs.start[ro])
		rs.start[ro] = 2 * int(ro)
	}
	at, other := rs.vehicleAt[ro], rs.vehicles[border]
	rs.vehicles[at], rs.vehicles[border] = other, ro
	rs.vehicleAt[other], rs.vehicleAt[ro] = at, int32(border)
}

// refresh recomputes a route from its visits: timetable, length, version and
// where its requests are.
func (rs *routes) refresh(ro int32) {
	positions := rs.of(ro)
	n := len(positions)
	rs.length[ro] = rs.in.Timetable(positions, &rs.in.Vehicles[ro])
	if n == 2 {
		rs.length[ro] = 0 // a vehicle without requests stays where it is
		rs.version[ro] = rs.emptyVersion[ro]
		return
	}
	for i := 1; i < n-1; i++ {
		if v := positions[i].Visit; pdp.IsDelivery(v) {
			rs.deliveryAt[pdp.Request(v)] = int32(i)
		} else {
			rs.pickupAt[pdp.Request(v)] = int32(i)
		}
	}
	rs.lastVersion++
	rs.version[ro] = rs.lastVersion
}

// claim makes a route the one of all requests in it.
func (rs *routes) claim(ro int32) {
	positions := rs.of(ro)
	for i := 1; i < len(positions)-1; i++ {
		v := positions[i].Visit
		r := pdp.Request(v)
		if pdp.IsDelivery(v) {
			rs.deliveryAt[r] = int32(i)
		} else {
			rs.pickupAt[r] = int32(i)
			rs.routeOf[r] = ro
		}
	}
}
