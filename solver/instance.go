package solver

import (
	"math"

	"github.com/dronefleet/dronefleet/solver/internal/search"
)

// part is a subset of the drones and orders as one instance of the engine.
type part struct {
	in     *search.Instance
	orders []int32 // request -> prepared.orders
	drones []int32 // vehicle -> prepared.drones
}

// build makes the instance of some orders and drones.
func (pr *prepared) build(orders, drones []int32) *part {
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
	type altRef struct{ locs [search.MaxAlts]int32 }
	alts := make([]altRef, n)
	for i, o := range orders {
		for k, s := range pr.orders[o].sources[:min(len(pr.orders[o].sources), search.MaxAlts)] {
			alts[i].locs[k] = locate(s.at)
		}
	}
	starts, ends := make([]int32, len(drones)), make([]int32, len(drones))
	for i, d := range drones {
		starts[i], ends[i] = locate(pr.drones[d].at), locate(pr.drones[d].home)
	}

	in := search.NewInstance(len(points), n, len(drones))
	pt.in = in
	for i := range points {
		row := in.Dist[i*in.N : (i+1)*in.N]
		for j := 0; j < i; j++ {
			d := points[i].metres(points[j])
			row[j] = d
			in.Dist[j*in.N+i] = d
		}
	}
	in.MaxRequests = min(n, pr.params.MaxOrdersPerRoute)
	weights := pr.rankWeights(orders)
	for i, o := range orders {
		or := &pr.orders[o]
		in.Demand[i] = or.weight
		in.Weight[i] = weights[or.rank]
		count := min(len(or.sources), search.MaxAlts)
		in.Alts[i] = uint8(count)
		for k := 0; k < count; k++ {
			v := i*search.Slots + k
			in.Loc[v], in.Late[v], in.Service[v] = alts[i].locs[k], math.Inf(1), pr.params.PickupService.Seconds()
		}
		v := i*search.Slots + search.DeliverySlot
		in.Loc[v], in.Late[v], in.Service[v] = delivery[i], or.due, pr.params.DeliveryService.Seconds()
	}
	for i, d := range drones {
		dr := &pr.drones[d]
		in.Vehicles[i] = search.Vehicle{
			Start: starts[i], End: ends[i], Due: dr.maxTime, Pace: dr.pace, Capacity: dr.capacity, MaxDist: dr.reach,
		}
	}
	return pt
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
