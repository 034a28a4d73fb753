package search

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"sync"
)

// column is a collected route as a choice of a packing.
type column struct {
	set     uint32 // of requests; from arrange on, of positions
	vehicle int32
	cost    float64
	excess  float64 // cost less the prices of the requests
	at      int32   // in the collection
}

// packer looks for the best combination of columns: each vehicle has one or none,
// each request is in one or left out. The search is depth first. The requests have
// positions, the weightiest first; at each either a column that begins there is
// taken, or the request is left out.
type packer struct {
	*state
	routes  *Collection
	columns []column
	group   []int32   // columns[group[k]:group[k+1]] begin at position k
	weight  []int64   // per position
	price   []float64 // per position
	// What the columns of a vehicle achieve that begin at a position or later: the
	// most weight and, at least 0 below, the least excess. Position x vehicle.
	most   []int64
	least  []float64
	quotas []quota
	// margin is the least excess of each vehicle's columns at the prices found, at
	// least 0 below.
	margin []float64

	vehicles int
	nodes    int // left
	left     func() float64
	workers  int

	missed  int64 // of the best packing
	cost    float64
	keys    []uint64
	packing []int32 // its places in the collection; nil until one is found
	taken   []int32
}

// quota is how many of the requests of one weight the best packing leaves out.
type quota struct {
	requests []int32
	count    int
}

// clockNodes is how many nodes of a packing pass between two looks at the clock,
// firstNodes the share, as its reciprocal, of a choice after which there is more to
// choose from.
const (
	clockNodes = 1024
	firstNodes = 32
)

// Pack makes the chain's best solution the best combination of the collected
// routes and their kin, if that is better. It stops after the given number of
// nodes, or when nothing is left of its time, which it may ask the share of, and
// reports whether it has found a better one.
func (c *Chain) Pack(l *Collection, nodes, workers int, left func() float64) bool {
	p := packer{
		state: &c.state, routes: l, left: left, workers: max(1, workers),
		vehicles: len(c.in.Vehicles), missed: c.Best.BankValue, cost: c.Best.Cost - costGrain,
	}
	p.list()
	price := p.shares(c.Best)
	bound := p.ascend(price, ascents)
	p.choose(price, bound, nodes/firstNodes)
	for range widenings {
		widened := false
		for _, widen := range []func([]float64, float64) bool{p.grow, p.resequence} {
			if widen(price, p.cost-bound) {
				p.list()
				bound = p.ascend(price, ascents/3)
				p.choose(price, bound, nodes/firstNodes)
				widened = true
			}
		}
		if !widened || p.left() <= toChoose {
			break
		}
	}
	if p.nodes <= 0 { // the last one has not come to its end
		p.list()
		p.choose(price, bound, nodes)
	}
	if p.packing == nil {
		return false
	}
	best := c.Best
	for ro := range best.Routes {
		best.Routes[ro] = best.Routes[ro][:0]
	}
	best.BankValue, best.Cost, best.Used = p.missed, 0, len(p.packing)
	for _, at := range p.packing {
		ro := l.keys[at] >> 32
		best.Routes[ro] = l.route(int(at), best.Routes[ro])
		best.Cost += l.cost[at]
	}
	return true
}

// choose looks for a better packing of the columns, at no more than so many nodes.
// No packing that leaves out as much as the best costs less than bound.
func (p *packer) choose(price []float64, bound float64, nodes int) {
	p.arrange(price, p.cost-bound)
	p.nodes = nodes
	p.descend(0, 0, 0, 0, 0)
}

// leaveOut splits what the best packing leaves out by weight. That needs weights of
// which each is above the sum of all smaller ones; with others there are no quotas.
func (p *packer) leaveOut() {
	byWeight := map[int64][]int32{}
	for r, w := range p.in.Weight {
		byWeight[w] = append(byWeight[w], int32(r))
	}
	weights := slices.Sorted(maps.Keys(byWeight))
	smaller := int64(0)
	for _, w := range weights {
		if w <= smaller {
			return
		}
		smaller += w * int64(len(byWeight[w]))
	}
	value := p.missed
	p.quotas = p.quotas[:0]
	for _, w := range slices.Backward(weights) {
		p.quotas = append(p.quotas, quota{requests: byWeight[w], count: int(value / w)})
		value %= w
	}
}

// list makes columns of the collection.
func (p *packer) list() {
	p.columns = p.columns[:0]
	for at, key := range p.routes.keys {
		if key != 0 {
			p.columns = append(p.columns, column{set: uint32(key), vehicle: int32(key >> 32), cost: p.routes.cost[at], at: int32(at)})
		}
	}
}

// shares divides the cost of every route of the best solution among its requests.
func (p *packer) shares(s *Solution) []float64 {
	price := make([]float64, p.in.Requests)
	for ro, visits := range s.Routes {
		var set uint32
		for _, v := range visits {
			price[v/Slots] = p.in.length(ro, visits) / float64(len(visits)/2)
			set |= 1 << (v / Slots)
		}
		if set != 0 {
			p.keys = append(p.keys, routeKey(ro, set))
		}
	}
	return price
}

// ascents is how many steps improve the prices, patience how many without effect
// halve their length.
const (
	ascents  = 300
	patience = 10
)

// ascend moves the prices of the requests to where all of them together, less what
// the quotas leave out, are as near as possible to what the best packing costs, and
// returns how much that is: no packing that leaves out as much costs less. This is
// subgradient ascent on the Lagrangian dual (Held and Karp 1971), in which each
// vehicle has the column that costs least above the prices of its requests, if that
// is below 0.
func (p *packer) ascend(price []float64, steps int) float64 {
	const half = Collectable / 2
	var low, high [1 << half]float64 // prices of sets
	least, cheapest := make([]float64, p.vehicles), make([]int, p.vehicles)
	surplus, kept := make([]float64, len(price)), make([]float64, len(price))
	p.margin = make([]float64, p.vehicles)
	p.leaveOut()
	top, pace, stale := -inf, 1.0, 0
	for range steps {
		sums(low[:], price[:min(len(price), half)])
		sums(high[:], price[min(len(price), half):])
		for v := range least {
			least[v], cheapest[v] = 0, -1
		}
		for i := range p.columns {
			col := &p.columns[i]
			if d := col.cost - low[col.set&(1<<half-1)] - high[col.set>>half]; d < least[col.vehicle] {
				least[col.vehicle], cheapest[col.vehicle] = d, i
			}
		}
		total := 0.0
		for r, x := range price {
			total += x
			surplus[r] = 1
		}
		for v, i := range cheapest {
			total += least[v]
			if i >= 0 {
				for set := p.columns[i].set; set != 0; set &= set - 1 {
					surplus[bits.TrailingZeros32(set)]--
				}
			}
		}
		for _, q := range p.quotas {
			slices.SortFunc(q.requests, func(a, b int32) int { return cmp.Or(cmp.Compare(price[b], price[a]), cmp.Compare(a, b)) })
			for _, r := range q.requests[:q.count] {
				total -= price[r]
				surplus[r]--
			}
		}
		if total > top {
			top, stale = total, 0
			copy(kept, price)
			copy(p.margin, least)
		} else if stale++; stale == patience {
			pace, stale = pace/2, 0
		}
		norm := 0.0
		for _, x := range surplus {
			norm += x * x
		}
		if top >= p.cost || norm == 0 {
			break
		}
		for r := range price {
			price[r] = max(0, price[r]+pace*(p.cost-total)/norm*surplus[r])
		}
	}
	copy(price, kept)
	return top
}

// sums fills in the sums over all subsets of some values.
func sums(out, values []float64) {
	out[0] = 0
	for k, x := range values {
		for i := range 1 << k {
			out[1<<k|i] = out[i] + x
		}
	}
}

// widenings is how often more columns are sought at most: new ones change the prices,
// at which others are worth having.
const widenings = 6

// mostGrown bounds the columns that are added, mostSequenced the nodes of all their
// sequences, so that enough time is left to choose among them: toChoose is its
// share.
const (
	mostGrown     = 2000
	mostSequenced = 1_000_000
	toChoose      = 0.25
)

// nearly is the share of the best packing's cost by which a column's excess may be
// too much for a packing and its kin still be looked at.
const nearly = 0.05

// byExcess lists the columns that can nearly be in a packing which costs less than
// gap above the bound, those of the least excess, in that sense, first.
func (p *packer) byExcess(price []float64, gap float64) []column {
	p.list()
	for i := range p.columns {
		col := &p.columns[i]
		col.excess = p.excess(col, price) - p.margin[col.vehicle]
	}
	p.columns = slices.DeleteFunc(p.columns, func(c column) bool { return c.excess >= gap+nearly*p.cost })
	slices.SortFunc(p.columns, func(a, b column) int { return cmp.Or(cmp.Compare(a.excess, b.excess), cmp.Compare(a.at, b.at)) })
	return p.columns
}

// add adds a column to the collection and to a queue if it is the cheapest of its
// vehicle and set.
func (p *packer) add(queue []column, col column, cost float64, visits []int32) []column {
	at := p.routes.claim(routeKey(int(col.vehicle), col.set), cost)
	if at < 0 {
		return queue
	}
	p.routes.store(at, visits)
	col.excess, col.cost, col.at = col.excess+cost-col.cost, cost, int32(at)
	return append(queue, col)
}

// grow adds to the collection what its routes become by one request more or less,
// and again what these do, as long as they can be in a packing that costs less than
// gap above the bound. It reports whether there were any.
func (p *packer) grow(price []float64, gap float64) bool {
	l, in := p.routes, p.in
	queue := p.byExcess(price, gap)
	known := len(queue)
	var nodes []node
	var visits, other []int32
	for i := 0; i < len(queue) && len(queue)-known < mostGrown && (i%clockEvery != 0 || p.left() > toChoose); i++ {
		col := queue[i]
		col.excess, col.cost = col.excess+l.cost[col.at]-col.cost, l.cost[col.at] // it may have been found anew
		veh := &in.Vehicles[col.vehicle]
		visits = l.route(int(col.at), visits[:0])
		nodes = in.positions(int(col.vehicle), visits, nodes[:0])
		in.timetable(nodes, veh)
		for r := range int32(in.Requests) {
			kin := col
			kin.set ^= 1 << r
			if col.set>>r&1 != 0 {
				kin.excess += price[r]
				other = Without(append(other[:0], visits...), r)
				if cost := in.length(int(col.vehicle), other); len(other) > 0 && kin.excess+cost-col.cost < gap {
					queue = p.add(queue, kin, cost, other)
				}
				continue
			}
			if len(nodes)+2 > l.stride {
				continue
			}
			kin.excess -= price[r]
			if more, place := p.cheapestPair(nodes, col.vehicle, col.cost, r, gap-kin.excess); place != atLeast && kin.excess+more < gap {
				i, j, alt := unpackPlace(place)
				other = slices.Insert(append(other[:0], visits...), j, r*Slots+DeliverySlot)
				other = slices.Insert(other, i, r*Slots+int32(alt))
				queue = p.add(queue, kin, col.cost+more, other)
			}
		}
	}
	return len(queue) > known
}

// resequence adds to the collection the shortest routes through its sets, and
// through those of one request more, less or other, and again those of these, as
// long as they can be in a packing that costs less than gap above the bound. It
// reports whether there were any.
func (p *packer) resequence(price []float64, gap float64) bool {
	columns := p.byExcess(price, gap)
	turn := func(c column) int { // the routes of the best packing come first
		if slices.Contains(p.keys, routeKey(int(c.vehicle), c.set)) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(columns, func(a, b column) int { return cmp.Compare(turn(a), turn(b)) })
	found := make([]found, p.workers)
	var wait sync.WaitGroup
	for w := range found {
		wait.Go(func() {
			var mine []column
			for _, col := range columns {
				if int(col.vehicle)%p.workers == w {
					mine = append(mine, col)
				}
			}
			found[w] = p.askFor(mine, price, gap)
		})
	}
	wait.Wait()
	added := false
	for _, f := range found {
		visits := f.visits
		for _, col := range f.columns {
			n := 2 * bits.OnesCount32(col.set)
			if at := p.routes.claim(routeKey(int(col.vehicle), col.set), col.cost); at >= 0 {
				p.routes.store(at, visits[:n])
				added = true
			}
			visits = visits[n:]
		}
	}
	return added
}

// found are columns with the visits of all of them.
type found struct {
	columns []column
	visits  []int32
}

// askFor is resequence for the columns of some vehicles.
func (p *packer) askFor(columns []column, price []float64, gap float64) (f found) {
	seq := newSequencer(p.in)
	asked := map[uint64]bool{}
	queue := columns
	ask := func(col column, set uint32) bool {
		key := routeKey(int(col.vehicle), set)
		if set == 0 || asked[key] {
			return true
		}
		asked[key] = true
		col.set, col.cost = set, 0
		most := gap - p.excess(&col, price) + p.margin[col.vehicle]
		if cost, known := p.routes.costOf(key); known {
			most = min(most, cost-costGrain)
		}
		if visits, cost, ok := seq.shortest(int(col.vehicle), set, most); ok {
			col.cost = cost
			queue, f.columns, f.visits = append(queue, col), append(f.columns, col), append(f.visits, visits...)
		}
		return seq.spent < mostSequenced && p.left() > toChoose
	}
	all := uint32(1)<<p.in.Requests - 1
	for i := 0; i < len(queue) && len(f.columns) < mostGrown; i++ {
		col := queue[i]
		if !ask(col, col.set) {
			return f
		}
		for rest := all &^ col.set; rest != 0; rest &= rest - 1 {
			more := col.set | rest&-rest
			if !ask(col, more) {
				return f
			}
			for out := col.set; out != 0; out &= out - 1 {
				if !ask(col, more&^(out&-out)) {
					return f
				}
			}
		}
	}
	return f
}

// arrange gives the requests their positions and sorts the columns by where they
// begin, those of the least excess first. Where nothing is left out, columns that
// only a packing could have that costs gap above the bound are dropped.
func (p *packer) arrange(price []float64, gap float64) {
	in := p.in
	for i := range p.columns {
		p.columns[i].excess = p.excess(&p.columns[i], price)
	}
	if p.missed == 0 {
		p.columns = slices.DeleteFunc(p.columns, func(c column) bool { return c.excess >= gap+p.margin[c.vehicle] })
	}
	p.weight, p.price = p.weight[:0], p.price[:0]
	order := make([]int32, in.Requests)
	for r := range order {
		order[r] = int32(r)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(in.Weight[b], in.Weight[a]), cmp.Compare(price[b], price[a]), cmp.Compare(a, b))
	})
	position := make([]int, in.Requests)
	for k, r := range order {
		position[r] = k
		p.weight, p.price = append(p.weight, in.Weight[r]), append(p.price, price[r])
	}
	p.group = make([]int32, in.Requests+1)
	p.most, p.least = make([]int64, (in.Requests+1)*p.vehicles), make([]float64, (in.Requests+1)*p.vehicles)
	for i := range p.columns {
		col := &p.columns[i]
		requests, weight := col.set, int64(0)
		col.set = 0
		for ; requests != 0; requests &= requests - 1 {
			r := bits.TrailingZeros32(requests)
			col.set |= 1 << position[r]
			weight += in.Weight[r]
		}
		p.group[col.begin()+1]++
		at := col.begin()*p.vehicles + int(col.vehicle)
		p.most[at], p.least[at] = max(p.most[at], weight), min(p.least[at], col.excess)
	}
	for k := range in.Requests {
		p.group[k+1] += p.group[k]
	}
	for at := in.Requests*p.vehicles - 1; at >= 0; at-- {
		later := at + p.vehicles
		p.most[at], p.least[at] = max(p.most[at], p.most[later]), min(p.least[at], p.least[later])
	}
	slices.SortFunc(p.columns, func(a, b column) int {
		return cmp.Or(cmp.Compare(a.begin(), b.begin()), cmp.Compare(a.excess, b.excess), cmp.Compare(a.at, b.at))
	})
}

// excess is what a column costs above the prices of its requests.
func (p *packer) excess(c *column, price []float64) float64 {
	x := c.cost
	for set := c.set; set != 0; set &= set - 1 {
		x -= price[bits.TrailingZeros32(set)]
	}
	return x
}

// begin is the first position of a column.
func (c *column) begin() int { return bits.TrailingZeros32(c.set) }

// descend decides on position k and all after it that are not decided, which the
// mask tells. used are the vehicles that have a column.
func (p *packer) descend(k int, mask uint32, used uint64, missed int64, cost float64) {
	for k < len(p.weight) && mask>>k&1 != 0 {
		k++
	}
	if k == len(p.weight) {
		if missed < p.missed || missed == p.missed && cost < p.cost {
			p.missed, p.cost = missed, cost
			p.packing = append(p.packing[:0], p.taken...)
			p.keys = p.keys[:0]
			for _, at := range p.packing {
				p.keys = append(p.keys, p.routes.keys[at])
			}
		}
		return
	}
	if p.nodes--; p.nodes < 0 || p.nodes%clockNodes == 0 && p.left() <= 0 {
		p.nodes = 0
		return
	}
	value, rest := p.remaining(k, mask, used)
	if value += missed; value > p.missed || value == p.missed && cost+rest-p.savings(k, mask, p.missed-missed) >= p.cost {
		return
	}
	for i := p.group[k]; i < p.group[k+1]; i++ {
		col := &p.columns[i]
		if col.set&mask != 0 || used>>col.vehicle&1 != 0 {
			continue
		}
		p.taken = append(p.taken, col.at)
		p.descend(k+1, mask|col.set, used|1<<col.vehicle, missed, cost+col.cost)
		p.taken = p.taken[:len(p.taken)-1]
	}
	if missed += p.weight[k]; missed <= p.missed {
		p.descend(k+1, mask|1<<k, used, missed, cost)
	}
}

// remaining is the least that the undecided positions add to what is missed, since
// no vehicle takes more than its weightiest column, and to the cost if all of them
// are served.
func (p *packer) remaining(k int, mask uint32, used uint64) (missed int64, cost float64) {
	for i := k; i < len(p.weight); i++ {
		if mask>>i&1 == 0 {
			missed += p.weight[i]
			cost += p.price[i]
		}
	}
	for v := range p.vehicles {
		if used>>v&1 == 0 {
			missed -= p.most[k*p.vehicles+v]
			cost += p.least[k*p.vehicles+v]
		}
	}
	return max(0, missed), cost
}

// savings is the most that leaving out undecided positions worth the given value
// takes from the sum of their prices.
func (p *packer) savings(k int, mask uint32, value int64) float64 {
	sum := 0.0
	for i := k; i < len(p.weight) && value > 0; i++ {
		if mask>>i&1 == 0 && p.weight[i] <= value {
			sum += p.price[i]
			if p.quotas != nil { // the dearest of each weight come first
				value -= p.weight[i]
			}
		}
	}
	return sum
}
