package search

import (
	"cmp"
	"math"
	"slices"
)

// A visit is one stop of a request: request*Slots + slot. Slots below
// DeliverySlot are its pickup alternatives.
const (
	Slots        = 8
	DeliverySlot = Slots - 1
	MaxAlts      = Slots - 1
	// startVisit and endVisit mark the ends of a route.
	startVisit = -1
	endVisit   = -2
)

// Slack absorbs rounding between forward and backward sums; it is added to
// every late bound and to payloads by the search itself.
const Slack = 1e-9

// Vehicle is one route that may be driven.
type Vehicle struct {
	Start, End int32   // locations
	Depart     float64 // earliest start
	Due        float64 // latest arrival at End
	Pace       float64 // time per distance
	Capacity   float64
	MaxDist    float64
}

// Instance is a problem in flat form. Distances obey the triangle inequality.
type Instance struct {
	// Dist is symmetric. Locations where vehicles start and nothing else happens come
	// last; between them are no distances.
	Dist [][]float64

	Requests int
	Alts     []uint8   // pickup alternatives per request, at least 1
	Demand   []float64 // per request
	Weight   []int64   // what leaving the request out costs, lexicographic
	Price    []float64 // what it costs soft chains, and under SpanPrice
	// Per visit; unused slots are ignored.
	Loc                  []int32
	Early, Late, Service []float64

	Vehicles []Vehicle
	// Uniform says that all vehicles are alike, so that one empty route stands
	// for all, and that fewer vehicles are better than any distance.
	Uniform bool
	// MaxRequests bounds one route.
	MaxRequests int

	// Near lists, for each visit that is an anchor, the anchors around it,
	// nearest first; nil for visits that are none.
	Near    [][]int32
	Anchors []int32

	// SpanPrice, when positive, replaces the lexicographic objective by one sum:
	// distance + SpanPrice x the longest route + the Price of the bank.
	SpanPrice float64
}

// NewInstance returns an instance with room for the given sizes; starts are the
// locations where vehicles start and nothing else happens.
func NewInstance(places, starts, requests, vehicles int) *Instance {
	visits := requests * Slots
	dist, room := make([][]float64, places+starts), make([]float64, places*(places+2*starts))
	for i := range dist {
		width := places
		if i < places {
			width += starts
		}
		dist[i], room = room[:width:width], room[width:]
	}
	return &Instance{
		Dist:     dist,
		Requests: requests,
		Alts:     make([]uint8, requests), Demand: make([]float64, requests), Weight: make([]int64, requests), Price: make([]float64, requests),
		Loc: make([]int32, visits), Early: make([]float64, visits), Late: make([]float64, visits), Service: make([]float64, visits),
		Vehicles:    make([]Vehicle, vehicles),
		MaxRequests: requests,
		Near:        make([][]int32, visits),
	}
}

// LinkAnchors fills Near: for each anchor the k nearest other anchors by the
// given metric, of equals those that follow it. So where more than k are at one place,
// each is near others.
func (in *Instance) LinkAnchors(anchors []int32, k int, metric func(a, b int32) float64) {
	in.Anchors = anchors
	links := make([]link, 0, len(anchors))
	for i, a := range anchors {
		links = links[:0]
		for k := 1; k < len(anchors); k++ {
			links = append(links, link{int32(k), metric(a, anchors[(i+k)%len(anchors)])})
		}
		n := min(k, len(links))
		nearestFirst(links, n)
		near := make([]int32, 0, n+1)
		near = append(near, a)
		for _, l := range links[:n] {
			near = append(near, anchors[(i+int(l.v))%len(anchors)])
		}
		in.Near[a] = near
	}
}

// link is an anchor at a distance, by how many anchors after another it comes.
type link struct {
	v int32
	d float64
}

func (x link) before(y link) bool { return x.d < y.d || x.d == y.d && x.v < y.v }

// nearestFirst brings the n nearest links to the front, in order: quickselect
// around the middle one of three, then a sort of the front.
func nearestFirst(links []link, n int) {
	for low, high := 0, len(links); high-low > 16 && low < n; {
		a, b, c := links[low], links[(low+high)/2], links[high-1]
		if b.before(a) {
			a, b = b, a
		}
		if c.before(b) {
			if b = c; b.before(a) {
				b = a
			}
		}
		i, j := low, high-1
		for i <= j {
			for links[i].before(b) {
				i++
			}
			for b.before(links[j]) {
				j--
			}
			if i <= j {
				links[i], links[j] = links[j], links[i]
				i++
				j--
			}
		}
		switch { // links[low:j+1] <= b <= links[i:high]
		case n <= j:
			high = j + 1
		case n > i:
			low = i
		default:
			low = high
		}
	}
	slices.SortFunc(links[:min(len(links), n+16)], func(x, y link) int {
		return cmp.Or(cmp.Compare(x.d, y.d), cmp.Compare(x.v, y.v))
	})
}

// row is the distances from a location to all.
func (in *Instance) row(loc int32) []float64 { return in.Dist[loc] }

// stride is the number of positions a route slab needs.
func (in *Instance) stride() int {
	return 2*min(in.MaxRequests, in.Requests) + 2
}

// Unlimited is the distance cap of a vehicle without one.
var Unlimited = math.Inf(1)

var inf = Unlimited
