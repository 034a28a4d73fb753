package pdp

import (
	"math"
	"math/bits"
)

// Place is where an insertion goes: the pickup after position i and the delivery
// after position j of the route as it is, and the pickup alternative.
type Place uint32

// LowerBound marks a delta as a lower bound: the place was not searched for
// because it cannot beat the cutoff.
const LowerBound Place = math.MaxUint32

// NewPlace packs i and j, of 12 bits each, and the pickup alternative.
func NewPlace(i, j, pickup int) Place { return Place(i) | Place(j)<<12 | Place(pickup)<<24 }

// Unpack returns what NewPlace packed.
func (p Place) Unpack() (i, j, pickup int) {
	return int(p & 0xfff), int(p >> 12 & 0xfff), int(p >> 24)
}

// Evaluator finds the cheapest insertion of a request into a route. It keeps
// scratch space and serves one goroutine.
type Evaluator struct {
	in    *Instance
	reach *Reach

	alone, bound []float64 // see Cheapest
}

// NewEvaluator returns an evaluator that skips the pickups out of reach.
func NewEvaluator(in *Instance, reach *Reach) Evaluator {
	n := in.MaxPositions() + 1
	return Evaluator{in: in, reach: reach, alone: make([]float64, n), bound: make([]float64, n)}
}

// Cheapest tries every pair of positions and every pickup alternative of a request in a
// vehicle's timetabled route of the given length, and returns what the best one adds to the
// length, and its place. The delta is +Inf if the request fits nowhere; if nothing costs
// less than the cutoff, it is the cutoff and the place is LowerBound.
//
// Each pair costs O(1): for a pickup after position i the time is carried
// forward over the delivery positions j >= i, and the search in j ends at the
// first position that would be reached too late or too heavy, as all later ones
// would be.
//
// By the triangle inequality neither half of the pair costs more alone than in the pair, nor
// comes earlier. So the delivery is tried alone first, in O(n): where it does not fit, no
// pair does, and its cheapest places to the right of i bound what a pickup at i can still
// achieve.
func (e *Evaluator) Cheapest(positions []Position, vehicle int32, length float64, request int32, cutoff float64) (delta float64, place Place) {
	in := e.in
	inf := math.Inf(1)
	veh, pickups := &in.Vehicles[vehicle], e.reach.Pickups(request, vehicle)
	n := len(positions)
	pace := veh.Pace
	room := veh.Capacity + Tolerance - in.Demand[request]
	if room < 0 || pickups == 0 {
		return inf, 0
	}
	best := veh.MaxDistance - length
	none, place := inf, Place(0) // the answer if nothing cheaper than best is found
	if cutoff < best {
		best, none, place = cutoff, cutoff, LowerBound
	}
	found := false

	vd := int(request)*Slots + DeliverySlot
	locD := in.Loc[vd]
	rowD := in.row(locD)
	earlyD, lateD, serviceD := in.Early[vd], in.Late[vd]+Tolerance, in.Service[vd]

	// alone[j]: detour of the delivery by itself after j; bound[j]: the least of
	// alone[j:]; both +Inf where it cannot be. They are filled from where the first
	// visit may be.
	alone, bound := e.alone[:n], e.bound[:n]
	readyD := earlyD + serviceD
	filled, last := firstPosition(positions, readyD), -1
	for j := filled; j < n-1; j++ {
		a, b := &positions[j], &positions[j+1]
		alone[j] = inf
		jd := rowD[a.Loc]
		td := a.Depart + pace*jd
		if td > lateD {
			break
		}
		dn := rowD[b.Loc]
		if td < earlyD {
			td = earlyD
		}
		if c := jd + dn - a.Next; c < best && td+serviceD+pace*dn <= b.Latest {
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

	for ; pickups != 0; pickups &= pickups - 1 {
		pickup := bits.TrailingZeros8(pickups)
		vp := int(request)*Slots + pickup
		rowP := in.row(in.Loc[vp])
		earlyP, lateP, serviceP := in.Early[vp], in.Late[vp]+Tolerance, in.Service[vp]
		direct := rowP[locD]
		begin := firstPosition(positions, earlyP+serviceP)
		for ; filled > begin; filled-- {
			alone[filled-1], bound[filled-1] = inf, low
		}
		for i := begin; i <= last && bound[i] < best; i++ {
			a, b := &positions[i], &positions[i+1]
			if a.Load > room {
				continue
			}
			toP := rowP[a.Loc]
			tp := a.Depart + pace*toP
			if tp > lateP {
				break
			}
			base, bp := toP-a.Next, rowP[b.Loc]
			if base+bp >= best {
				continue
			}
			if tp < earlyP {
				tp = earlyP
			}
			tp += serviceP
			if alone[i] != inf {
				bd := rowD[b.Loc]
				if c := base + direct + bd; c < best {
					if td := tp + pace*direct; td <= lateD {
						if td < earlyD {
							td = earlyD
						}
						if td+serviceD+pace*bd <= b.Latest {
							best, place, found = c, NewPlace(i, i, pickup), true
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
				cur := &positions[j]
				if t > cur.Latest || cur.Load > room || base+bound[j] >= best {
					break
				}
				if t < cur.Early {
					t = cur.Early
				}
				t += cur.Service
				if c := base + alone[j]; c < best {
					next := &positions[j+1]
					td := t + pace*rowD[cur.Loc]
					if td > lateD {
						break
					}
					if td < earlyD {
						td = earlyD
					}
					if td+serviceD+pace*rowD[next.Loc] <= next.Latest {
						best, place, found = c, NewPlace(i, j, pickup), true
					}
				}
				t += pace * cur.Next
			}
		}
	}
	if !found {
		return none, place
	}
	if n == 2 {
		best += length // an empty route is not driven: its first request pays for all of it
	}
	return best, place
}

// firstPosition returns the first position after which a visit that ends at
// ready, at the earliest, is not too late for what follows.
func firstPosition(positions []Position, ready float64) int {
	if positions[1].Latest >= ready {
		return 0
	}
	low, high := 1, len(positions)-1 // the latest arrivals ascend
	for low < high {
		if mid := (low + high) / 2; positions[mid+1].Latest < ready {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}
