package search

// Collectable is the number of requests up to which a Collection can be kept.
const Collectable = 20

// A Collection holds every route that chains of one instance have tried: of each
// vehicle and set of requests the cheapest. Where a problem is small these are so
// few that the best combination of them can be found exactly; see Chain.Pack.
type Collection struct {
	keys   []uint64 // hash table of vehicle<<32 and set; 0: free
	cost   []float64
	length []uint8
	visits []uint8 // a stride for each
	stride int
	filled int
}

// collectionSize is the size of the table, of which three quarters are used: more
// routes than a tiny problem has, or than a packing could look at in time.
const (
	collectionBits = 14
	collectionSize = 1 << collectionBits
)

// NewCollection returns an empty collection for an instance of at most
// Collectable requests.
func NewCollection(in *Instance) *Collection {
	return &Collection{
		keys: make([]uint64, collectionSize), cost: make([]float64, collectionSize), length: make([]uint8, collectionSize),
		visits: make([]uint8, collectionSize*in.stride()), stride: in.stride(),
	}
}

func routeKey(vehicle int, set uint32) uint64 { return uint64(vehicle)<<32 | uint64(set) }

// place is where a key is, or belongs.
func (l *Collection) place(key uint64) int {
	at := int(key * 0x9e3779b97f4a7c15 >> (64 - collectionBits))
	for l.keys[at] != key && l.keys[at] != 0 {
		at = (at + 1) % collectionSize
	}
	return at
}

// costOf returns the cost of the cheapest route of a key.
func (l *Collection) costOf(key uint64) (float64, bool) {
	at := l.place(key)
	return l.cost[at], l.keys[at] != 0
}

// claim returns where a route belongs if it is the cheapest of its key so far, or
// -1; its visits must then be stored there.
func (l *Collection) claim(key uint64, cost float64) int {
	at := l.place(key)
	switch {
	case l.keys[at] != 0:
		if cost >= l.cost[at]-costGrain {
			return -1
		}
	case l.filled == collectionSize*3/4:
		return -1
	default:
		l.filled++
	}
	l.keys[at], l.cost[at] = key, cost
	return at
}

// costGrain is a difference of costs that means nothing.
const costGrain = 1e-6

func (l *Collection) store(at int, visits []int32) {
	l.length[at] = uint8(len(visits))
	for i, v := range visits {
		l.visits[at*l.stride+i] = uint8(v)
	}
}

// route appends the visits of a place to a slice.
func (l *Collection) route(at int, visits []int32) []int32 {
	for _, v := range l.visits[at*l.stride:][:l.length[at]] {
		visits = append(visits, int32(v))
	}
	return visits
}

// Merge adds another collection of the same instance.
func (l *Collection) Merge(m *Collection) {
	var visits []int32
	for from, key := range m.keys {
		if key == 0 {
			continue
		}
		if at := l.claim(key, m.cost[from]); at >= 0 {
			visits = m.route(from, visits[:0])
			l.store(at, visits)
		}
	}
}

// collect adds the routes that a step has changed.
func (c *Chain) collect() {
	for _, ro := range c.touched {
		nodes := c.route(ro)
		if len(nodes) == 2 {
			continue
		}
		var set uint32
		c.scratch = c.scratch[:0]
		for i := 1; i < len(nodes)-1; i++ {
			v := nodes[i].visit
			c.scratch = append(c.scratch, v)
			set |= 1 << (v / Slots)
		}
		if at := c.Tried.claim(routeKey(int(ro), set), c.dist[ro]); at >= 0 {
			c.Tried.store(at, c.scratch)
		}
	}
}
