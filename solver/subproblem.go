package solver

import (
	"cmp"
	"math"
	"slices"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
)

// subproblem is a subset of the drones and orders as an instance of the engine.
type subproblem struct {
	in     *pdp.Instance
	orders []int32 // request -> prepared.orders
	drones []int32 // vehicle -> prepared.drones
}

// The reference optimizer's costs, in metres.
const (
	referenceSpan = 100
	referenceDrop = 200_000
)

// subproblem makes the instance of some orders and drones. With lateAllowed,
// orders that none of the kept routes serves may be delivered at any time.
func (pr *prepared) subproblem(orders, drones []int32, lateAllowed bool, kept ...plannedRoute) *subproblem {
	var inTime map[int32]bool
	if lateAllowed {
		inTime = servedBy(kept)
	}
	loc := pr.locate(orders, drones)
	n := len(orders)
	in := pdp.NewInstance(loc.places, len(loc.points)-loc.places, n, len(drones))
	sp := &subproblem{in: in, orders: orders, drones: drones}
	for i := range loc.points {
		for j := range min(i, loc.places) {
			d := loc.points[i].metres(loc.points[j])
			in.Dist[i][j], in.Dist[j][i] = d, d
		}
	}
	if pr.scalarGoal {
		in.SpanCost = referenceSpan
	}
	in.MaxRequests = min(n, pr.params.MaxOrdersPerRoute)
	prizes := pr.rankPrizes(orders)
	for i, o := range orders {
		or := &pr.orders[o]
		in.Demand[i] = or.weight
		in.Prize[i] = prizes[or.rank] * int64(1+or.extra)
		if pr.scalarGoal {
			in.Penalty[i] = referenceDrop
		}
		in.Pickups[i] = uint8(len(or.sources))
		for k := range or.sources {
			v := i*pdp.Slots + k
			in.Loc[v], in.Late[v], in.Service[v] = loc.sources[i][k], math.Inf(1), pr.params.PickupService.Seconds()
		}
		v := i*pdp.Slots + pdp.DeliverySlot
		due := or.due
		if lateAllowed && !inTime[o] {
			due = math.Inf(1)
		}
		in.Loc[v], in.Late[v], in.Service[v] = loc.deliveries[i], due, pr.params.DeliveryService.Seconds()
	}
	for i, d := range drones {
		dr := &pr.drones[d]
		in.Vehicles[i] = pdp.Vehicle{
			Start: loc.starts[i], End: loc.ends[i], Due: dr.maxTime, Pace: dr.pace, Capacity: engineCapacity(dr.capacity), MaxDistance: dr.reach,
		}
	}
	sp.exclude(pr)
	return sp
}

// exclude keeps the requests from vehicles that must not serve them.
func (sp *subproblem) exclude(pr *prepared) {
	for i, o := range sp.orders {
		barred := pr.orders[o].barred
		if barred == nil {
			continue
		}
		if sp.in.Excluded == nil {
			sp.in.Excluded = make([]pdp.Set, len(sp.orders))
		}
		sp.in.Excluded[i] = pdp.NewSet(len(sp.drones))
		for v, d := range sp.drones {
			if barred.Has(d) {
				sp.in.Excluded[i].Add(int32(v))
			}
		}
	}
}

// locations are the places of a subproblem. Stops at one place share a location.
type locations struct {
	points       []vec // those where drones only start come last
	places       int   // points before those
	deliveries   []int32
	sources      [][pdp.MaxPickups]int32
	starts, ends []int32
}

// locate lists the places of some orders and drones. Neighbours on the ground are
// neighbours in the list, and so in memory.
func (pr *prepared) locate(orders, drones []int32) locations {
	n := len(orders)
	loc := locations{
		deliveries: make([]int32, n), sources: make([][pdp.MaxPickups]int32, n),
		starts: make([]int32, len(drones)), ends: make([]int32, len(drones)),
	}
	index := map[vec]int32{}
	add := func(v vec) int32 {
		if i, ok := index[v]; ok {
			return i
		}
		i := int32(len(loc.points))
		index[v] = i
		loc.points = append(loc.points, v)
		return i
	}
	for i, o := range orders {
		loc.deliveries[i] = add(pr.orders[o].delivery)
	}
	for i, o := range orders {
		for k, s := range pr.orders[o].sources {
			loc.sources[i][k] = add(s.at)
		}
	}
	for i, d := range drones {
		loc.ends[i] = add(pr.drones[d].home)
	}
	loc.places = len(loc.points)
	for i, d := range drones {
		loc.starts[i] = add(pr.drones[d].at)
	}

	sorted := indices(len(loc.points))
	for _, list := range [][]int32{sorted[:loc.places], sorted[loc.places:]} {
		slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(loc.points[a].morton(), loc.points[b].morton()) })
	}
	points, to := make([]vec, len(loc.points)), make([]int32, len(loc.points))
	for i, k := range sorted {
		points[i], to[k] = loc.points[k], int32(i)
	}
	loc.points = points
	for _, list := range [][]int32{loc.deliveries, loc.starts, loc.ends} {
		for i, k := range list {
			list[i] = to[k]
		}
	}
	for i, o := range orders {
		for k := range pr.orders[o].sources {
			loc.sources[i][k] = to[loc.sources[i][k]]
		}
	}
	return loc
}

// engineCapacity is the capacity of a drone for the engine. The engine exceeds it by up to
// pdp.Tolerance, which is all that the checker accepts, so half of that and the rounding
// error of a route's sum of weights are taken off.
func engineCapacity(capacity float64) float64 {
	const sumError = 1e-13 // of the sum: above 2 x 64 half last bits
	return capacity*(1-sumError) - pdp.Tolerance/2
}

// rankPrizes returns for each rank a prize above the sum of all lower ones, so
// that lost prizes compare as the tuple of their counts.
func (pr *prepared) rankPrizes(orders []int32) [rankCount]int64 {
	var counts [rankCount]int64
	for _, o := range orders {
		counts[pr.orders[o].rank]++
	}
	var prizes [rankCount]int64
	unit := int64(1)
	for r := rankCount - 1; r >= 0; r-- {
		prizes[r] = unit
		if unit < math.MaxInt64/4/(counts[r]+1) {
			unit *= counts[r] + 1
		}
	}
	return prizes
}

const (
	// neighbours is how many deliveries around each other one a ruin can reach.
	neighbours = 60
	// pickupNearness is how much the distance between pickups counts beside that
	// between deliveries.
	pickupNearness = 0.3
)

// link computes which deliveries are near each other.
func (sp *subproblem) link() {
	in := sp.in
	anchors := make([]int32, len(sp.orders))
	for r := range anchors {
		anchors[r] = pdp.Delivery(int32(r))
	}
	in.LinkAnchors(anchors, neighbours, func(a, b int32) float64 {
		pickupA, pickupB := in.Loc[a-pdp.DeliverySlot], in.Loc[b-pdp.DeliverySlot]
		return in.Dist[in.Loc[a]][in.Loc[b]] + pickupNearness*in.Dist[pickupA][pickupB]
	})
}

// importRoutes returns routes in the engine's form. Orders that do not fit where
// they are (the deadline has come closer since) are left out.
func (sp *subproblem) importRoutes(routes []plannedRoute) *pdp.Solution {
	s := pdp.NewSolution(sp.in)
	vehicle := make(map[int32]int32, len(sp.drones))
	for v, d := range sp.drones {
		vehicle[d] = int32(v)
	}
	request := make(map[int32]int32, len(sp.orders))
	for r, o := range sp.orders {
		request[o] = int32(r)
	}
	for _, route := range routes {
		v := vehicle[route.drone]
		for _, stop := range route.stops {
			slot := int32(pdp.DeliverySlot)
			if stop.source >= 0 {
				slot = int32(stop.source)
			}
			s.Routes[v] = append(s.Routes[v], request[stop.order]*pdp.Slots+slot)
		}
		for !sp.in.Fits(int(v), s.Routes[v]) {
			s.Routes[v] = pdp.Without(s.Routes[v], pdp.Request(s.Routes[v][len(s.Routes[v])-1]))
		}
	}
	return s
}

// export lists the routes of a solution that serve something.
func (sp *subproblem) export(s *pdp.Solution) []plannedRoute {
	var out []plannedRoute
	for v, visits := range s.Routes {
		if len(visits) == 0 {
			continue
		}
		route := plannedRoute{drone: sp.drones[v], stops: make([]plannedStop, len(visits))}
		for i, visit := range visits {
			stop := plannedStop{order: sp.orders[pdp.Request(visit)], source: int8(visit % pdp.Slots)}
			if pdp.IsDelivery(visit) {
				stop.source = -1
			}
			route.stops[i] = stop
		}
		out = append(out, route)
	}
	return out
}
