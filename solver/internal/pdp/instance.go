package pdp

import "math"

// A visit is one stop of a request. Slots below DeliverySlot are its pickup
// alternatives, DeliverySlot is its delivery; the visit of a slot is
// request*Slots + slot.
const (
	Slots        = 8
	DeliverySlot = Slots - 1
	MaxPickups   = Slots - 1
)

// StartVisit and EndVisit mark the ends of a route; they belong to no request.
const (
	StartVisit int32 = -1
	EndVisit   int32 = -2
)

// Request returns the request that a visit belongs to.
func Request(visit int32) int32 { return visit / Slots }

// IsDelivery reports whether a visit is a delivery. It is false for the ends of
// a route.
func IsDelivery(visit int32) bool { return visit%Slots == DeliverySlot }

// Delivery returns the delivery of a request.
func Delivery(request int32) int32 { return request*Slots + DeliverySlot }

// Tolerance absorbs the rounding between forward and backward sums. The route
// arithmetic adds it to every latest time and to every capacity.
const Tolerance = 1e-9

// Unlimited is the distance limit of a vehicle without one.
var Unlimited = math.Inf(1)

// Vehicle is one vehicle and the route that it may drive.
type Vehicle struct {
	Start, End  int32   // locations
	Depart      float64 // earliest start
	Due         float64 // latest arrival at End
	Pace        float64 // time per distance
	Capacity    float64
	MaxDistance float64
}

// Instance is a problem in flat form. Distances obey the triangle inequality.
type Instance struct {
	// Dist is symmetric. Locations where vehicles start and nothing else happens
	// come last; the distances between those are left out.
	Dist [][]float64

	Requests int
	Pickups  []uint8   // per request: pickup alternatives, at least 1
	Demand   []float64 // per request
	// Prize is what serving a request is worth. Prizes compare
	// lexicographically: no distance outweighs one.
	Prize []int64
	// Penalty is what leaving a request out costs a search that adds penalties
	// to distances, as under SpanCost.
	Penalty []float64
	// Per visit; unused slots are ignored.
	Loc                  []int32
	Early, Late, Service []float64

	Vehicles []Vehicle
	// Excluded holds for each request the vehicles that must not serve it, nil for
	// none; it is nil if no request has any.
	Excluded []Set
	// Identical says that all vehicles are alike, so that one empty route stands
	// for all empty ones.
	Identical bool
	// MaxRequests bounds one route.
	MaxRequests int

	// Near lists, for each visit that is an anchor, that anchor and the ones
	// around it, nearest first; nil for all other visits.
	Near    [][]int32
	Anchors []int32

	// SpanCost, when positive, replaces the lexicographic objective by one sum:
	// distance + SpanCost x the longest route + the Penalty of what is left out.
	SpanCost float64
}

// NewInstance returns an instance with room for the given sizes; starts is the
// number of locations where vehicles start and nothing else happens.
func NewInstance(places, starts, requests, vehicles int) *Instance {
	visits := requests * Slots
	dist, cells := make([][]float64, places+starts), make([]float64, places*(places+2*starts))
	for i := range dist {
		width := places
		if i < places {
			width += starts
		}
		dist[i], cells = cells[:width:width], cells[width:]
	}
	return &Instance{
		Dist:     dist,
		Requests: requests,
		Pickups:  make([]uint8, requests), Demand: make([]float64, requests), Prize: make([]int64, requests), Penalty: make([]float64, requests),
		Loc: make([]int32, visits), Early: make([]float64, visits), Late: make([]float64, visits), Service: make([]float64, visits),
		Vehicles:    make([]Vehicle, vehicles),
		MaxRequests: requests,
		Near:        make([][]int32, visits),
	}
}

// Excludes reports whether a vehicle must not serve a request.
func (in *Instance) Excludes(request int32, vehicle int32) bool {
	return in.Excluded != nil && in.Excluded[request] != nil && in.Excluded[request].Has(vehicle)
}

// row returns the distances from a location to all others.
func (in *Instance) row(loc int32) []float64 { return in.Dist[loc] }

// MaxPositions is the greatest number of positions of a route, both ends
// included.
func (in *Instance) MaxPositions() int {
	return 2*min(in.MaxRequests, in.Requests) + 2
}
