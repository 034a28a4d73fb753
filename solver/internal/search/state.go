package search

// node is one position of a route: 64 bytes, one cache line.
type node struct {
	depart float64 // earliest departure
	latest float64 // latest arrival that keeps the rest of the route in time
	load   float64 // payload on departure
	next   float64 // distance to the next position
	early  float64
	svc    float64
	loc    int32
	visit  int32
	late   float64
}

// cached is the best insertion of a request into a route as of one version.
type cached struct {
	version uint32
	place   uint32
	delta   float64
}

// place packs pickup position (12 bits), delivery position (12), alternative.
func packPlace(i, j, alt int) uint32 { return uint32(i) | uint32(j)<<12 | uint32(alt)<<24 }

func unpackPlace(p uint32) (i, j, alt int) {
	return int(p & 0xfff), int(p >> 12 & 0xfff), int(p >> 24)
}

// state is one solution under search with everything needed to change and
// restore it cheaply. Route r occupies nodes[at[r] : at[r]+size[r]], see route.
type state struct {
	in     *Instance
	stride int

	nodes     []node  // the two positions of every vehicle's empty route, then slabs of a stride
	at        []int   // where a route begins in nodes: in a slab only if it serves something
	slabs     []int   // where those begin that no route is in
	size      []int32 // positions including both ends
	dist      []float64
	version   []uint32
	routeOf   []int32 // -1: in the bank
	altOf     []uint8
	lastRoute []int32 // the route a request was taken from last; 0 at first
	posP      []int32 // position of the pickup in its route
	posD      []int32

	bank      []int32
	bankIndex []int32 // place in bank, -1 when routed
	absence   []int64 // steps that left a request out while they were counted
	tally
	spanFree float64 // length of a route that costs no span

	emptyVersion []uint32
	lastVersion  uint32
	cache        []cached // requests x vehicles
	able         []uint8  // requests x vehicles: see alternatives; nil if all vehicles are alike
	servers      bitset   // of each request, one set after the other: those that are able
	clashes      clashes  // none unless all vehicles are alike

	alone, bound []float64 // scratch of cheapestPair

	// Undo log of the current step.
	touched  []int32
	isTouch  []bool
	saved    []node  // what the touched routes were, one after the other
	savedAt  []int32 // where a route begins in saved
	savedLen []int32
	savedVer []uint32
	savedDst []float64
	before   tally
	moved    []int32 // requests whose bank membership may have changed
	wasBank  []bool
	isMoved  []bool

	// changed since the last time best was copied
	stale   []int32
	isStale []bool

	fleet   []int32 // all vehicles, those in use first
	fleetAt []int32 // a vehicle's place in fleet
	used    int     // routes that serve something

	favourite     []int32 // requests x favourites: vehicles by what they alone cost
	ranked        []bool  // requests whose favourites are known
	favourites    int
	favouriteCost []float64 // scratch of rankFavourites
}

// tally is what a solution comes to.
type tally struct {
	bankValue   int64   // Σ Weight of what is left out
	bankAbsence int64   // Σ absence
	bankPrice   float64 // Σ Price
	cost        float64 // of the routes
}

// leaveOut counts a request as left out.
func (t *tally) leaveOut(st *state, r int32) {
	t.bankValue += st.in.Weight[r]
	t.bankAbsence += st.absence[r]
	t.bankPrice += st.in.Price[r]
}

// takeIn counts it as served.
func (t *tally) takeIn(st *state, r int32) {
	t.bankValue -= st.in.Weight[r]
	t.bankAbsence -= st.absence[r]
	t.bankPrice -= st.in.Price[r]
}

func newState(in *Instance) *state {
	r, v, s := in.Requests, len(in.Vehicles), in.stride()
	most := min(v, 2*r) // routes in use, also between two solutions
	st := &state{
		in: in, stride: s, spanFree: inf,
		nodes: make([]node, 2*v+most*s), at: make([]int, v), slabs: make([]int, 0, most), size: make([]int32, v), dist: make([]float64, v), version: make([]uint32, v),
		routeOf: make([]int32, r), altOf: make([]uint8, r), lastRoute: make([]int32, r), posP: make([]int32, r), posD: make([]int32, r),
		absence: make([]int64, r), bank: make([]int32, 0, r), bankIndex: make([]int32, r),
		emptyVersion: make([]uint32, v), cache: make([]cached, r*v),
		alone: make([]float64, s+1), bound: make([]float64, s+1),
		touched: make([]int32, 0, v), isTouch: make([]bool, v),
		saved: make([]node, 0, 2*(r+v)), savedAt: make([]int32, v), savedLen: make([]int32, v), savedVer: make([]uint32, v), savedDst: make([]float64, v),
		moved: make([]int32, 0, r), wasBank: make([]bool, r), isMoved: make([]bool, r),
		stale: make([]int32, 0, v), isStale: make([]bool, v),
		fleet: make([]int32, v), fleetAt: make([]int32, v),
		favourites: min(v, mostFavourites), ranked: make([]bool, r),
	}
	if in.Uniform {
		st.favourites = 0
		st.findClashes()
	} else {
		st.enable()
	}
	st.findServers()
	st.favouriteCost = make([]float64, 0, st.favourites)
	st.favourite = make([]int32, r*st.favourites)
	for i := range st.routeOf {
		st.routeOf[i], st.bankIndex[i] = -1, -1
		st.deposit(int32(i))
	}
	for i := range most {
		st.slabs = append(st.slabs, 2*v+i*s)
	}
	for i := range in.Vehicles {
		veh := &in.Vehicles[i]
		st.emptyVersion[i] = uint32(i + 1)
		st.fleet[i], st.fleetAt[i] = int32(i), int32(i)
		st.at[i], st.size[i] = 2*i, 2
		copy(st.blank(i), []node{{loc: veh.Start, visit: startVisit, late: inf}, {loc: veh.End, visit: endVisit}})
		st.refresh(int32(i))
	}
	st.lastVersion = uint32(v + 1)
	return st
}

// blank is the empty route of a vehicle.
func (st *state) blank(v int) []node { return st.nodes[2*v : 2*v+2 : 2*v+2] }

// route is the positions of a route.
func (st *state) route(ro int32) []node {
	at, n := st.at[ro], int(st.size[ro])
	return st.nodes[at : at+n : at+n]
}

// refresh recomputes a route from its visits.
func (st *state) refresh(ro int32) {
	nodes := st.route(ro)
	n := len(nodes)
	st.dist[ro] = st.in.timetable(nodes, &st.in.Vehicles[ro])
	if n == 2 {
		st.dist[ro] = 0 // a vehicle without requests stays where it is
		st.version[ro] = st.emptyVersion[ro]
		return
	}
	for i := 1; i < n-1; i++ {
		if v := nodes[i].visit; v%Slots == DeliverySlot {
			st.posD[v/Slots] = int32(i)
		} else {
			st.posP[v/Slots] = int32(i)
		}
	}
	st.lastVersion++
	st.version[ro] = st.lastVersion
}

// timetable computes times, loads and distances of positions from their visits,
// in one pass each way, and returns the distance.
func (in *Instance) timetable(nodes []node, veh *Vehicle) (total float64) {
	n := len(nodes)
	prev := &nodes[0]
	prev.depart, prev.load = veh.Depart, 0
	load := 0.0
	for i := 1; i < n; i++ {
		cur := &nodes[i]
		d := in.row(prev.loc)[cur.loc]
		prev.next = d
		total += d
		t := prev.depart + veh.Pace*d
		if t < cur.early {
			t = cur.early
		}
		if v := cur.visit; v >= 0 {
			if v%Slots == DeliverySlot {
				load -= in.Demand[v/Slots]
			} else {
				load += in.Demand[v/Slots]
			}
		}
		cur.depart, cur.load = t+cur.svc, load
		prev = cur
	}
	prev.next = 0
	late := veh.Due + Slack
	prev.latest = late
	for i := n - 2; i >= 0; i-- {
		cur := &nodes[i]
		late -= veh.Pace*cur.next + cur.svc
		if late > cur.late {
			late = cur.late
		}
		cur.latest = late
	}
	return total
}

// routeCost prices a route in use; an unused one costs nothing.
func (st *state) routeCost(ro int32) float64 {
	if st.size[ro] == 2 {
		return 0
	}
	d := st.dist[ro]
	return d + st.in.SpanPrice*max(0, d-st.spanFree)
}

// resize sets a route's number of positions and keeps count of routes in use. One that
// comes into use has both its ends then; one that grows is written to afterwards.
func (st *state) resize(ro int32, size int) {
	was, is := st.size[ro] > 2, size > 2
	st.size[ro] = int32(size)
	if was == is {
		return
	}
	border := st.used // the first idle place
	if is {
		st.used++
		last := len(st.slabs) - 1
		st.at[ro], st.slabs = st.slabs[last], st.slabs[:last]
		copy(st.nodes[st.at[ro]:], st.blank(int(ro)))
	} else {
		st.used--
		border = st.used
		st.slabs = append(st.slabs, st.at[ro])
		st.at[ro] = 2 * int(ro)
	}
	at, other := st.fleetAt[ro], st.fleet[border]
	st.fleet[at], st.fleet[border] = other, ro
	st.fleetAt[other], st.fleetAt[ro] = at, int32(border)
}

// touch saves a route the first time a step changes it.
func (st *state) touch(ro int32) {
	if st.isTouch[ro] {
		return
	}
	st.isTouch[ro] = true
	st.touched = append(st.touched, ro)
	st.savedAt[ro] = int32(len(st.saved))
	st.saved = append(st.saved, st.route(ro)...)
	st.savedLen[ro], st.savedVer[ro], st.savedDst[ro] = st.size[ro], st.version[ro], st.dist[ro]
}

// was is what a touched route was before the step.
func (st *state) was(ro int32) []node {
	return st.saved[st.savedAt[ro]:][:st.savedLen[ro]]
}

// note remembers where a request was before the step.
func (st *state) note(r int32) {
	if st.isMoved[r] {
		return
	}
	st.isMoved[r] = true
	st.wasBank[r] = st.bankIndex[r] >= 0
	st.moved = append(st.moved, r)
}

func (st *state) deposit(r int32) {
	if st.bankIndex[r] >= 0 {
		return
	}
	st.bankIndex[r] = int32(len(st.bank))
	st.bank = append(st.bank, r)
	st.leaveOut(st, r)
}

func (st *state) withdraw(r int32) {
	i := st.bankIndex[r]
	if i < 0 {
		return
	}
	last := st.bank[len(st.bank)-1]
	st.bank[i] = last
	st.bankIndex[last] = i
	st.bank = st.bank[:len(st.bank)-1]
	st.bankIndex[r] = -1
	st.takeIn(st, r)
}

// begin opens a step.
func (st *state) begin() {
	st.before = st.tally
}

// countAbsences counts a step for all requests that it left out.
func (st *state) countAbsences() {
	for _, r := range st.bank {
		st.absence[r]++
	}
	st.bankAbsence += int64(len(st.bank))
}

// commit keeps the step.
func (st *state) commit() {
	for _, ro := range st.touched {
		st.isTouch[ro] = false
		if !st.isStale[ro] {
			st.isStale[ro] = true
			st.stale = append(st.stale, ro)
		}
	}
	for _, r := range st.moved {
		st.isMoved[r] = false
	}
	st.touched, st.saved, st.moved = st.touched[:0], st.saved[:0], st.moved[:0]
}

// rollback restores the state at begin.
func (st *state) rollback() {
	for _, r := range st.moved {
		st.isMoved[r] = false
		if st.wasBank[r] {
			st.routeOf[r] = -1
			st.deposit(r)
		} else {
			st.withdraw(r)
		}
	}
	for _, ro := range st.touched {
		st.isTouch[ro] = false
		was := st.was(ro)
		st.resize(ro, len(was))
		copy(st.route(ro), was)
		st.version[ro], st.dist[ro] = st.savedVer[ro], st.savedDst[ro]
		st.claim(ro)
	}
	st.touched, st.saved, st.moved = st.touched[:0], st.saved[:0], st.moved[:0]
	st.tally = st.before
}

// claim derives the requests' places from a route's visits.
func (st *state) claim(ro int32) {
	nodes := st.route(ro)
	for i := 1; i < len(nodes)-1; i++ {
		v := nodes[i].visit
		r := v / Slots
		if v%Slots == DeliverySlot {
			st.posD[r] = int32(i)
		} else {
			st.posP[r] = int32(i)
			st.altOf[r] = uint8(v % Slots)
			st.routeOf[r] = ro
		}
	}
}

// compact drops from a route every visit whose request left it.
func (st *state) compact(ro int32) {
	nodes := st.route(ro)
	w := 1
	for i := 1; i < len(nodes); i++ {
		if v := nodes[i].visit; v >= 0 && st.routeOf[v/Slots] != ro {
			continue
		}
		if w != i {
			nodes[w] = nodes[i]
		}
		w++
	}
	st.cost -= st.routeCost(ro)
	st.resize(ro, w)
	st.refresh(ro)
	st.cost += st.routeCost(ro)
}

// insert places request r into route ro at the packed place.
func (st *state) insert(r, ro int32, place uint32) {
	in := st.in
	i, j, alt := unpackPlace(place)
	n := int(st.size[ro])
	st.cost -= st.routeCost(ro)
	st.resize(ro, n+2)
	nodes := st.route(ro)
	// delivery goes after position j, pickup after i <= j
	copy(nodes[j+3:], nodes[j+1:n])
	nodes[j+2] = in.node(r*Slots + DeliverySlot)
	copy(nodes[i+2:j+2], nodes[i+1:j+1])
	nodes[i+1] = in.node(r*Slots + int32(alt))
	st.routeOf[r], st.altOf[r] = ro, uint8(alt)
	st.refresh(ro)
	st.cost += st.routeCost(ro)
}

func (in *Instance) node(v int32) node {
	return node{visit: v, loc: in.Loc[v], early: in.Early[v], late: in.Late[v] + Slack, svc: in.Service[v]}
}

// take removes a request from its route's books; the route must be compacted
// before it is read again.
func (st *state) take(r int32) {
	st.note(r)
	st.touch(st.routeOf[r])
	st.lastRoute[r] = st.routeOf[r]
	st.routeOf[r] = -1
}
