package pdp

import (
	"math"
	"slices"
)

// Position is one stop of a route with its timetable: 64 bytes, one cache line.
type Position struct {
	Depart  float64 // earliest departure
	Latest  float64 // latest arrival that keeps the rest of the route in time
	Load    float64 // payload on departure
	Next    float64 // distance to the next position
	Early   float64
	Service float64
	Loc     int32
	Visit   int32
	Late    float64
}

// Position returns a visit as a position without its timetable.
func (in *Instance) Position(visit int32) Position {
	return Position{Visit: visit, Loc: in.Loc[visit], Early: in.Early[visit], Late: in.Late[visit] + Tolerance, Service: in.Service[visit]}
}

// EndPosition returns the last position of a vehicle's route, without its
// timetable.
func (veh *Vehicle) EndPosition() Position { return Position{Loc: veh.End, Visit: EndVisit} }

// StartPosition returns the first position of a vehicle's route, without its
// timetable.
func (veh *Vehicle) StartPosition() Position {
	return Position{Loc: veh.Start, Visit: StartVisit, Late: math.Inf(1)}
}

// Positions appends the positions of a route to a slice, without their
// timetable.
func (in *Instance) Positions(vehicle int, visits []int32, positions []Position) []Position {
	veh := &in.Vehicles[vehicle]
	positions = append(positions, veh.StartPosition())
	for _, v := range visits {
		positions = append(positions, in.Position(v))
	}
	return append(positions, veh.EndPosition())
}

// Timetable computes times, loads and distances of the positions of a whole
// route, in one pass each way, and returns the route's length.
func (in *Instance) Timetable(positions []Position, veh *Vehicle) (length float64) {
	n := len(positions)
	prev := &positions[0]
	prev.Depart, prev.Load = veh.Depart, 0
	load := 0.0
	for i := 1; i < n; i++ {
		cur := &positions[i]
		d := in.row(prev.Loc)[cur.Loc]
		prev.Next = d
		length += d
		t := prev.Depart + veh.Pace*d
		if t < cur.Early {
			t = cur.Early
		}
		if v := cur.Visit; v >= 0 {
			if IsDelivery(v) {
				load -= in.Demand[Request(v)]
			} else {
				load += in.Demand[Request(v)]
			}
		}
		cur.Depart, cur.Load = t+cur.Service, load
		prev = cur
	}
	prev.Next = 0
	late := veh.Due + Tolerance
	prev.Latest = late
	for i := n - 2; i >= 0; i-- {
		cur := &positions[i]
		late -= veh.Pace*cur.Next + cur.Service
		if late > cur.Late {
			late = cur.Late
		}
		cur.Latest = late
	}
	return length
}

// Retime is Timetable after whole requests were cut out of a timetabled route, all of them
// between the positions before first and rest. It stops where nothing changes any more: for
// departures where a wait absorbs the gained time, for latest arrivals where a window is
// tighter than what follows.
func (in *Instance) Retime(positions []Position, veh *Vehicle, first, rest int) (length float64) {
	for i := first; i < len(positions); i++ {
		prev, cur := &positions[i-1], &positions[i]
		if i <= rest {
			prev.Next = in.row(prev.Loc)[cur.Loc]
		}
		depart := prev.Depart + veh.Pace*prev.Next
		if depart < cur.Early {
			depart = cur.Early
		}
		depart += cur.Service
		if i >= rest {
			if depart == cur.Depart {
				break
			}
		} else if v := cur.Visit; IsDelivery(v) {
			cur.Load = prev.Load - in.Demand[Request(v)]
		} else {
			cur.Load = prev.Load + in.Demand[Request(v)]
		}
		cur.Depart = depart
	}
	late := positions[rest].Latest
	for i := rest - 1; i >= 0; i-- {
		cur := &positions[i]
		late -= veh.Pace*cur.Next + cur.Service
		if late > cur.Late {
			late = cur.Late
		}
		if i < first-1 && late == cur.Latest {
			break
		}
		cur.Latest = late
	}
	for i := range positions {
		length += positions[i].Next
	}
	return length
}

// Feasible reports whether a vehicle can drive a route of the given length whose
// timetable is computed: within its distance, its capacity and all windows, and
// without a request that it must not serve.
func (in *Instance) Feasible(vehicle int32, positions []Position, length float64) bool {
	veh := &in.Vehicles[vehicle]
	if length > veh.MaxDistance {
		return false
	}
	for i := range positions {
		p := &positions[i]
		if p.Load > veh.Capacity+Tolerance || p.Depart-p.Service > p.Latest {
			return false
		}
	}
	if in.Excluded == nil {
		return true
	}
	return !slices.ContainsFunc(positions, func(p Position) bool { return p.Visit >= 0 && in.Excludes(Request(p.Visit), vehicle) })
}

// Fits reports whether a vehicle can drive the visits.
func (in *Instance) Fits(vehicle int, visits []int32) bool {
	if len(visits) == 0 {
		return true
	}
	if len(visits)+2 > in.MaxPositions() {
		return false
	}
	veh := &in.Vehicles[vehicle]
	positions := in.Positions(vehicle, visits, make([]Position, 0, len(visits)+2))
	return in.Feasible(int32(vehicle), positions, in.Timetable(positions, veh))
}

// Length returns the distance that a vehicle drives for the visits.
func (in *Instance) Length(vehicle int, visits []int32) float64 {
	at, total := in.Vehicles[vehicle].Start, 0.0
	for _, v := range visits {
		total += in.row(at)[in.Loc[v]]
		at = in.Loc[v]
	}
	return total + in.row(at)[in.Vehicles[vehicle].End]
}

// Without removes the visits of one request from a route, in place.
func Without(visits []int32, request int32) []int32 {
	out := visits[:0]
	for _, v := range visits {
		if Request(v) != request {
			out = append(out, v)
		}
	}
	return out
}
