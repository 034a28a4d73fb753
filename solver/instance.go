package solver

import (
	"cmp"
	"math"
	"slices"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
)

// part is a subset of the drones and orders as one instance of the engine.
type part struct {
	in     *pdp.Instance
	orders []int32 // request -> prepared.orders
	drones []int32 // vehicle -> prepared.drones
}

// The reference optimizer's prices, in metres.
const (
	referenceSpan = 100
	referenceDrop = 200_000
)

// build makes the instance of some orders and drones. With lateAllowed, orders
// that none of the kept routes serves may be delivered at any time.
func (pr *prepared) build(orders, drones []int32, lateAllowed bool, kept ...plannedRoute) *part {
	var inTime map[int32]bool
	if lateAllowed {
		inTime = servedBy(kept)
	}
	var points []vec
	place := map[vec]int32{} // co-located stops share a row
	locate := func(v vec) int32 {
		if i, ok := place[v]; ok {
			return i
		}
		i := int32(len(points))
		place[v] = i
		points = append(points, v)
		return i
	}
	n := len(orders)
	pt := &part{orders: orders, drones: drones}
	delivery := make([]int32, n)
	for i, o := range orders {
		delivery[i] = locate(pr.orders[o].delivery)
	}
	type altRef struct{ locs [pdp.MaxPickups]int32 }
	alts := make([]altRef, n)
	for i, o := range orders {
		for k, s := range pr.orders[o].sources {
			alts[i].locs[k] = locate(s.at)
		}
	}
	starts, ends := make([]int32, len(drones)), make([]int32, len(drones))
	for i, d := range drones {
		ends[i] = locate(pr.drones[d].home)
	}
	places := len(points) // beyond them no drone comes, they only start there
	for i, d := range drones {
		starts[i] = locate(pr.drones[d].at)
	}

	// Neighbours on the ground are neighbours in memory.
	byPlace := indices(len(points))
	for _, list := range [][]int32{byPlace[:places], byPlace[places:]} {
		slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(points[a].morton(), points[b].morton()) })
	}
	sorted, seat := make([]vec, len(points)), make([]int32, len(points))
	for i, k := range byPlace {
		sorted[i], seat[k] = points[k], int32(i)
	}
	points = sorted
	for _, list := range [][]int32{delivery, starts, ends} {
		for i, k := range list {
			list[i] = seat[k]
		}
	}
	for i, o := range orders {
		for k := range pr.orders[o].sources {
			alts[i].locs[k] = seat[alts[i].locs[k]]
		}
	}

	in := pdp.NewInstance(places, len(points)-places, n, len(drones))
	pt.in = in
	for i := range points {
		for j := range min(i, places) {
			d := points[i].metres(points[j])
			in.Dist[i][j], in.Dist[j][i] = d, d
		}
	}
	if pr.scalarGoal {
		in.SpanCost = referenceSpan
	}
	in.MaxRequests = min(n, pr.params.MaxOrdersPerRoute)
	weights := pr.rankWeights(orders)
	for i, o := range orders {
		or := &pr.orders[o]
		in.Demand[i] = or.weight
		in.Prize[i] = weights[or.rank] * int64(1+or.extra)
		if pr.scalarGoal {
			in.Penalty[i] = referenceDrop
		}
		in.Pickups[i] = uint8(len(or.sources))
		for k := range or.sources {
			v := i*pdp.Slots + k
			in.Loc[v], in.Late[v], in.Service[v] = alts[i].locs[k], math.Inf(1), pr.params.PickupService.Seconds()
		}
		v := i*pdp.Slots + pdp.DeliverySlot
		due := or.due
		if lateAllowed && !inTime[o] {
			due = math.Inf(1)
		}
		in.Loc[v], in.Late[v], in.Service[v] = delivery[i], due, pr.params.DeliveryService.Seconds()
	}
	for i, d := range drones {
		dr := &pr.drones[d]
		in.Vehicles[i] = pdp.Vehicle{
			Start: starts[i], End: ends[i], Due: dr.maxTime, Pace: dr.pace, Capacity: payload(dr.capacity), MaxDistance: dr.reach,
		}
	}
	return pt
}

// payload is the engine's form of a capacity. The engine goes beyond what it is given
// by pdp.Tolerance, which is all that the checker forgives; half of that, and what a sum
// of as many weights as a route has can be wrong by, is kept from it.
func payload(capacity float64) float64 {
	const sumError = 1e-13 // of the sum: above 2 x 64 half last bits
	return capacity*(1-sumError) - pdp.Tolerance/2
}

// rankWeights returns for each rank a weight above the sum of all lower ones,
// so that the bank's value compares as the tuple of its counts.
func (pr *prepared) rankWeights(orders []int32) [rankCount]int64 {
	var counts [rankCount]int64
	for _, o := range orders {
		counts[pr.orders[o].rank]++
	}
	var weights [rankCount]int64
	unit := int64(1)
	for r := rankCount - 1; r >= 0; r-- {
		weights[r] = unit
		if unit < math.MaxInt64/4/(counts[r]+1) {
			unit *= counts[r] + 1
		}
	}
	return weights
}

// neighbours is how many deliveries around each other one a ruin can reach.
const neighbours = 60

// link computes which deliveries are near each other; fetching from places far
// apart counts too.
func (pt *part) link(pr *prepared) {
	in := pt.in
	anchors := make([]int32, len(pt.orders))
	for r := range anchors {
		anchors[r] = int32(r*pdp.Slots + pdp.DeliverySlot)
	}
	in.LinkAnchors(anchors, neighbours, func(a, b int32) float64 {
		pickupA, pickupB := in.Loc[a-pdp.DeliverySlot], in.Loc[b-pdp.DeliverySlot]
		return in.Dist[in.Loc[a]][in.Loc[b]] + 0.3*in.Dist[pickupA][pickupB]
	})
}

// importRoutes is the engine's form of routes. Orders that do not fit where they
// are (the deadline has come closer since) are left out.
func (pt *part) importRoutes(routes []plannedRoute) *pdp.Solution {
	s := pdp.NewSolution(pt.in)
	vehicle := make(map[int32]int32, len(pt.drones))
	for v, d := range pt.drones {
		vehicle[d] = int32(v)
	}
	request := make(map[int32]int32, len(pt.orders))
	for r, o := range pt.orders {
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
		for !pt.in.Fits(int(v), s.Routes[v]) {
			s.Routes[v] = pdp.Without(s.Routes[v], s.Routes[v][len(s.Routes[v])-1]/pdp.Slots)
		}
	}
	return s
}
