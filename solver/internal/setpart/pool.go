package setpart

import "github.com/dronefleet/dronefleet/solver/internal/pdp"

// MaxRequests is the number of requests up to which an instance can have a Pool.
const MaxRequests = 20

// Pool holds routes of one instance: for each vehicle and set of requests the
// shortest one known.
type Pool struct {
	keys   []uint64 // hash table of routeKey; 0: free
	cost   []float64
	length []uint8
	visits []uint8 // a stride for each
	stride int
	filled int
}

// poolSize is the size of the table, of which three quarters are used: more
// routes than a tiny problem has, or than branch and bound could look at in time.
const (
	poolBits = 14
	poolSize = 1 << poolBits
)

// costRounding is a difference of costs that means nothing.
const costRounding = 1e-6

// NewPool returns an empty pool for an instance of at most MaxRequests requests.
func NewPool(in *pdp.Instance) *Pool {
	return &Pool{
		keys: make([]uint64, poolSize), cost: make([]float64, poolSize), length: make([]uint8, poolSize),
		visits: make([]uint8, poolSize*in.MaxPositions()), stride: in.MaxPositions(),
	}
}

// routeKey names a vehicle and the set of requests that it serves, one bit each.
// It is not 0, as no route is empty.
func routeKey(vehicle int, set uint32) uint64 { return uint64(vehicle)<<32 | uint64(set) }

// Add adds a route of the given length, if it is the shortest of its vehicle and
// requests so far and there is room.
func (p *Pool) Add(vehicle int32, visits []int32, length float64) {
	var set uint32
	for _, v := range visits {
		set |= 1 << pdp.Request(v)
	}
	if at := p.claim(routeKey(int(vehicle), set), length); at >= 0 {
		p.store(at, visits)
	}
}

// Merge adds the routes of another pool of the same instance.
func (p *Pool) Merge(q *Pool) {
	var visits []int32
	for from, key := range q.keys {
		if key == 0 {
			continue
		}
		if at := p.claim(key, q.cost[from]); at >= 0 {
			visits = q.appendVisits(visits[:0], from)
			p.store(at, visits)
		}
	}
}

// find returns where a key is, or belongs.
func (p *Pool) find(key uint64) int {
	at := int(key * 0x9e3779b97f4a7c15 >> (64 - poolBits))
	for p.keys[at] != key && p.keys[at] != 0 {
		at = (at + 1) % poolSize
	}
	return at
}

// costOf returns the cost of the route of a key, if there is one.
func (p *Pool) costOf(key uint64) (float64, bool) {
	at := p.find(key)
	return p.cost[at], p.keys[at] != 0
}

// claim returns where a route belongs if it is the cheapest of its key so far, or
// -1. The caller must then store its visits there.
func (p *Pool) claim(key uint64, cost float64) int {
	at := p.find(key)
	switch {
	case p.keys[at] != 0:
		if cost >= p.cost[at]-costRounding {
			return -1
		}
	case p.filled == poolSize*3/4:
		return -1
	default:
		p.filled++
	}
	p.keys[at], p.cost[at] = key, cost
	return at
}

// store sets the visits of a claimed entry.
func (p *Pool) store(at int, visits []int32) {
	p.length[at] = uint8(len(visits))
	for i, v := range visits {
		p.visits[at*p.stride+i] = uint8(v)
	}
}

// appendVisits appends the visits of an entry to a slice.
func (p *Pool) appendVisits(visits []int32, at int) []int32 {
	for _, v := range p.visits[at*p.stride:][:p.length[at]] {
		visits = append(visits, int32(v))
	}
	return visits
}
