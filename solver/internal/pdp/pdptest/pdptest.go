package pdptest

import (
	"math"
	"math/rand/v2"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
)

// Random returns a seeded instance on a plane with windows, payloads, distance
// limits and alternative pickups.
func Random(seed uint64, requests, vehicles int) *pdp.Instance {
	rng := rand.New(rand.NewPCG(seed, 1))
	n := 2*requests + 2*vehicles + 3
	xs, ys := make([]float64, n), make([]float64, n)
	for i := range xs {
		xs[i], ys[i] = rng.Float64()*100, rng.Float64()*100
	}
	in := pdp.NewInstance(n, 0, requests, vehicles)
	for a := range n {
		for b := range n {
			in.Dist[a][b] = math.Hypot(xs[a]-xs[b], ys[a]-ys[b])
		}
	}
	var anchors []int32
	for r := range requests {
		in.Demand[r], in.Prize[r], in.Penalty[r] = rng.Float64()*5, 1+int64(rng.IntN(3)), 1
		if rng.IntN(4) == 0 {
			in.Demand[r] = 0
		}
		in.Pickups[r] = uint8(1 + rng.IntN(3))
		for slot := range pdp.Slots {
			v := r*pdp.Slots + slot
			in.Loc[v] = int32(rng.IntN(n))
			in.Early[v] = float64(rng.IntN(2)) * rng.Float64() * 200
			in.Late[v] = in.Early[v] + 100 + rng.Float64()*300
			in.Service[v] = rng.Float64() * 5
		}
		anchors = append(anchors, int32(r*pdp.Slots+pdp.DeliverySlot))
	}
	for i := range in.Vehicles {
		in.Vehicles[i] = pdp.Vehicle{Start: int32(rng.IntN(n)), End: int32(rng.IntN(n)), Due: 600, Pace: 0.7 + rng.Float64()*0.6,
			Capacity: 6 + rng.Float64()*6, MaxDistance: 200 + rng.Float64()*400}
	}
	in.LinkAnchors(anchors, 30, func(a, b int32) float64 { return in.Dist[in.Loc[a]][in.Loc[b]] })
	return in
}

// IdenticalFleet returns a seeded instance whose vehicles are alike, with wide
// windows.
func IdenticalFleet(seed uint64, requests, vehicles int) *pdp.Instance {
	in := Random(seed, requests, vehicles)
	in.Identical = true
	for i := range in.Vehicles {
		in.Vehicles[i] = pdp.Vehicle{Due: 2000, Pace: 1, Capacity: 20, MaxDistance: pdp.Unlimited}
	}
	for v := range in.Late {
		in.Late[v] = 1500
	}
	return in
}

// Narrow gives most visits of an instance a narrow window, and the vehicles an
// early end.
func Narrow(in *pdp.Instance, seed uint64) *pdp.Instance {
	rng := rand.New(rand.NewPCG(seed, 17))
	for i := range in.Vehicles {
		in.Vehicles[i].Due = 600
	}
	for v := range in.Late {
		if rng.IntN(4) > 0 {
			in.Early[v] = 400 * rng.Float64()
			in.Late[v] = in.Early[v] + 150*rng.Float64()
		}
	}
	for r := range in.Demand {
		in.Demand[r] = 15 * rng.Float64()
	}
	return in
}

// Replay drives the visits and returns the distance, or +Inf if a rule is broken.
func Replay(in *pdp.Instance, ro int, visits []int32) float64 {
	if len(visits) == 0 {
		return 0
	}
	veh := in.Vehicles[ro]
	at, clock, load, total := int(veh.Start), veh.Depart, 0.0, 0.0
	aboard := map[int32]bool{}
	for _, v := range visits {
		leg := in.Dist[at][in.Loc[v]]
		total += leg
		clock = max(clock+veh.Pace*leg, in.Early[v])
		if clock > in.Late[v]+1e-7 {
			return math.Inf(1)
		}
		clock += in.Service[v]
		r := v / pdp.Slots
		if v%pdp.Slots == pdp.DeliverySlot {
			if !aboard[r] {
				return math.Inf(1)
			}
			delete(aboard, r)
			load -= in.Demand[r]
		} else {
			aboard[r] = true
			load += in.Demand[r]
		}
		if load > veh.Capacity+1e-7 {
			return math.Inf(1)
		}
		at = int(in.Loc[v])
	}
	leg := in.Dist[at][veh.End]
	total += leg
	if len(aboard) > 0 || clock+veh.Pace*leg > veh.Due+1e-7 || total > veh.MaxDistance+1e-7 {
		return math.Inf(1)
	}
	return total
}

// Numbers returns 0 to n-1.
func Numbers(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}
