package search

import (
	"math"
	"math/bits"
)

// atLeast is the place of an insertion that was not found because it costs at
// least its delta: a bound, not a value.
const atLeast = math.MaxUint32

// evaluate tries every pair of positions and every pickup alternative. An
// insertion that costs cutoff or more is not searched for: the answer is then
// cutoff with the place atLeast, or +Inf if it is known that there is none.
func (st *state) evaluate(r, ro int32, cutoff float64) (float64, uint32) {
	n := int(st.size[ro])
	if n+2 > st.stride || st.clash(r, ro) {
		return inf, 0
	}
	nodes, used := st.route(ro), st.dist[ro]
	if n == 2 {
		used, cutoff = nodes[0].next, inf
	}
	return st.cheapestPair(nodes, ro, used, r, cutoff)
}

// alternatives are those pickups, one bit each, from which vehicle ro could serve
// request r, were it the only one. By the triangle inequality no other can be in any
// of its routes.
func (st *state) alternatives(r, ro int32) uint8 {
	if st.in.Uniform {
		return st.in.allAlts(r)
	}
	return st.able[int(r)*len(st.size)+int(ro)]
}

// allAlts are all pickup alternatives of a request, one bit each.
func (in *Instance) allAlts(r int32) uint8 { return 1<<in.Alts[r] - 1 }

// enable computes the alternatives of every request and vehicle.
func (st *state) enable() {
	in := st.in
	st.able = make([]uint8, in.Requests*len(in.Vehicles))
	for r := range int32(in.Requests) {
		row := st.able[int(r)*len(in.Vehicles):][:len(in.Vehicles)]
		vd := r*Slots + DeliverySlot
		toEnd := in.row(in.Loc[vd])
		for alt := range int32(in.Alts[r]) {
			vp := r*Slots + alt
			toStart := in.row(in.Loc[vp])
			leg := toStart[in.Loc[vd]]
			for v := range in.Vehicles {
				veh := &in.Vehicles[v]
				approach, back := toStart[veh.Start], toEnd[veh.End]
				if in.Demand[r] > veh.Capacity+Slack || approach+leg+back > veh.MaxDist+Slack {
					continue
				}
				clock := max(veh.Depart+veh.Pace*approach, in.Early[vp])
				if clock > in.Late[vp]+Slack {
					continue
				}
				clock = max(clock+in.Service[vp]+veh.Pace*leg, in.Early[vd])
				if clock <= in.Late[vd]+Slack && clock+in.Service[vd]+veh.Pace*back <= veh.Due+2*Slack {
					row[v] |= 1 << alt
				}
			}
		}
	}
}

// findServers lists which vehicles are able to serve each request.
func (st *state) findServers() {
	width := len(newBitset(len(st.size)))
	st.servers = make(bitset, st.in.Requests*width)
	for r := range int32(st.in.Requests) {
		set := st.servers[int(r)*width:][:width]
		for v := range int32(len(st.size)) {
			if st.alternatives(r, v) != 0 {
				set.add(v)
			}
		}
	}
}

// cheapestPair is evaluate on bare positions whose legs sum to used. Each pair
// costs O(1): for a pickup after position i the time is carried forward over
// the delivery positions j >= i, and the search in j ends at the first position
// that would be reached too late or too heavy, as all later ones would be.
//
// By the triangle inequality neither half of the pair costs more alone than in
// the pair, nor comes earlier. So the delivery is tried alone first, in O(n):
// where it does not fit, no pair does, and its cheapest places to the right of i
// bound what a pickup at i can still achieve.
func (st *state) cheapestPair(nodes []node, ro int32, used float64, r int32, cutoff float64) (float64, uint32) {
	in := st.in
	veh, alts := &in.Vehicles[ro], st.alternatives(r, ro)
	n := len(nodes)
	pace := veh.Pace
	room := veh.Capacity + Slack - in.Demand[r]
	if room < 0 || alts == 0 {
		return inf, 0
	}
	best := veh.MaxDist - used
	none, place := inf, uint32(0) // the answer if nothing cheaper than best is found
	if cutoff < best {
		best, none, place = cutoff, cutoff, atLeast
	}
	found := false

	vd := int(r)*Slots + DeliverySlot
	locD := in.Loc[vd]
	rowD := in.row(locD)
	earlyD, lateD, svcD := in.Early[vd], in.Late[vd]+Slack, in.Service[vd]

	// alone[j]: detour of the delivery by itself after j; bound[j]: the least of
	// alone[j:]; both +Inf where it cannot be. They are filled from where the first
	// visit may be.
	alone, bound := st.alone[:n], st.bound[:n]
	readyD := earlyD + svcD
	filled, last := opening(nodes, readyD), -1
	for j := filled; j < n-1; j++ {
		a, b := &nodes[j], &nodes[j+1]
		alone[j] = inf
		jd := rowD[a.loc]
		td := a.depart + pace*jd
		if td > lateD {
			break
		}
		dn := rowD[b.loc]
		if td < earlyD {
			td = earlyD
		}
		if c := jd + dn - a.next; c < best && td+svcD+pace*dn <= b.latest {
			alone[j] = c
			last = j
		}
	}
	if last < 0 {
		return none, place
	}
	low := inf
	for j := last; j >= filled; j-- {
		if a := alone[j]; a < low {
			low = a
		}
		bound[j] = low
	}
	bound[last+1] = inf

	for ; alts != 0; alts &= alts - 1 {
		alt := bits.TrailingZeros8(alts)
		vp := int(r)*Slots + alt
		rowP := in.row(in.Loc[vp])
		earlyP, lateP, svcP := in.Early[vp], in.Late[vp]+Slack, in.Service[vp]
		direct := rowP[locD]
		begin := opening(nodes, earlyP+svcP)
		for ; filled > begin; filled-- {
			alone[filled-1], bound[filled-1] = inf, low
		}
		for i := begin; i <= last && bound[i] < best; i++ {
			a, b := &nodes[i], &nodes[i+1]
			if a.load > room {
				continue
			}
			toP := rowP[a.loc]
			tp := a.depart + pace*toP
			if tp > lateP {
				break
			}
			base, bp := toP-a.next, rowP[b.loc]
			if base+bp >= best {
				continue
			}
			if tp < earlyP {
				tp = earlyP
			}
			tp += svcP
			if alone[i] != inf {
				bd := rowD[b.loc]
				if c := base + direct + bd; c < best {
					if td := tp + pace*direct; td <= lateD {
						if td < earlyD {
							td = earlyD
						}
						if td+svcD+pace*bd <= b.latest {
							best, place, found = c, packPlace(i, i, alt), true
						}
					}
				}
			}
			base += bp
			if base+bound[i+1] >= best {
				continue
			}
			t := tp + pace*bp
			for j := i + 1; j <= last; j++ {
				cur := &nodes[j]
				if t > cur.latest || cur.load > room || base+bound[j] >= best {
					break
				}
				if t < cur.early {
					t = cur.early
				}
				t += cur.svc
				if c := base + alone[j]; c < best {
					m := &nodes[j+1]
					td := t + pace*rowD[cur.loc]
					if td > lateD {
						break
					}
					if td < earlyD {
						td = earlyD
					}
					if td+svcD+pace*rowD[m.loc] <= m.latest {
						best, place, found = c, packPlace(i, j, alt), true
					}
				}
				t += pace * cur.next
			}
		}
	}
	if !found {
		return none, place
	}
	if n == 2 {
		best += used // an empty route is not driven: its first request pays for all of it
	}
	return best, place
}

// opening is the first position after which a visit that is over at ready, at the
// earliest, is not too late for what follows.
func opening(nodes []node, ready float64) int {
	if nodes[1].latest >= ready {
		return 0
	}
	low, high := 1, len(nodes)-1 // the latest arrivals ascend
	for low < high {
		if mid := (low + high) / 2; nodes[mid+1].latest < ready {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}
