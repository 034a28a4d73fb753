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
	set     uint32 // of requests
	vehicle int32
	at      int32 // in the collection
	cost    float64
	excess  float64 // cost less the prices of the requests
	weight  int64   // of the requests
}

// packer looks for the best combination of columns: each vehicle has one or none, each
// request is in one or left out.
type packer struct {
	*state
	routes  *Collection
	columns []column
	price   []float64 // of the requests, while columns are chosen
	order   []int32   // the requests, the weightiest first, then the dearest
	quotas  []quota
	stack   []column // those that are compatible with what is decided, level by level
	limits  []limit  // scratch of prune, one for each vehicle
	// margin is the least excess of each vehicle's columns at the prices found, at
	// least 0 below.
	margin []float64

	vehicles int
	looks    int // at columns, left
	left     func() float64
	seqs     []*sequencer // of each worker

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

// limit is what the columns of one vehicle can achieve: the most weight and, at least
// 0 below, the least excess.
type limit struct {
	most  int64
	least float64
}

// firstLooks is the share, as its reciprocal, of the looks at columns that a choice may
// take after which there is more to choose from.
const firstLooks = 16

// Pack makes the chain's best solution the best combination of the collected routes and
// their kin, if that is better. No choice among them takes more than so many looks at
// one, and none goes on when nothing is left of its time, which Pack may ask the share
// of. It reports whether it has found a better one.
func (c *Chain) Pack(l *Collection, looks, workers int, left func() float64) bool {
	p := packer{
		state: &c.state, routes: l, left: left,
		vehicles: len(c.in.Vehicles), missed: c.Best.BankValue, cost: c.Best.Cost - costGrain,
	}
	for range max(1, workers) {
		p.seqs = append(p.seqs, newSequencer(c.in))
	}
	p.list()
	price := p.shares(c.Best)
	bound := p.ascend(price, ascents)
	p.choose(price, looks/firstLooks)
	for range widenings {
		widened := false
		for _, widen := range []func([]float64, float64) bool{p.grow, p.resequence} {
			gap := p.cost - bound
			if p.missed > 0 {
				gap = inf // what leaves out less may cost more
			}
			if widen(price, gap) {
				p.list()
				bound = p.ascend(price, ascents/3)
				p.choose(price, looks/firstLooks)
				widened = true
			}
		}
		if !widened || p.left() <= toChoose {
			break
		}
	}
	if p.looks <= 0 { // the last one has not come to its end
		p.list()
		p.choose(price, looks)
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

// choose looks for a better packing of the columns.
func (p *packer) choose(price []float64, looks int) {
	in := p.in
	p.price = price
	for i := range p.columns {
		col := &p.columns[i]
		col.excess, col.weight = p.excess(col, price), p.weigh(col.set)
	}
	slices.SortFunc(p.columns, func(a, b column) int { return cmp.Or(cmp.Compare(a.excess, b.excess), cmp.Compare(a.at, b.at)) })
	p.order = p.order[:0]
	for r := range int32(in.Requests) {
		p.order = append(p.order, r)
	}
	slices.SortFunc(p.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(in.Weight[b], in.Weight[a]), cmp.Compare(price[b], price[a]), cmp.Compare(a, b))
	})
	p.limits = make([]limit, p.vehicles)
	p.stack = append(p.stack[:0], p.columns...)
	p.looks = looks
	p.descend(0, 1<<in.Requests-1, 0, 0)
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
	mostSequenced = 300_000
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
	for v := range int32(p.vehicles) {
		queue = append(queue, column{vehicle: v, excess: -p.margin[v], at: -1}) // what has no request yet
	}
	known := len(queue)
	var nodes []node
	var visits, other []int32
	for i := 0; i < len(queue) && len(queue)-known < mostGrown && (i%clockEvery != 0 || p.left() > toChoose); i++ {
		col := queue[i]
		visits = visits[:0]
		if col.set != 0 {
			col.excess, col.cost = col.excess+l.cost[col.at]-col.cost, l.cost[col.at] // it may have been found anew
			visits = l.route(int(col.at), visits)
		}
		nodes = in.positions(int(col.vehicle), visits, nodes[:0])
		used := in.timetable(nodes, &in.Vehicles[col.vehicle])
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
			if more, place := p.cheapestPair(nodes, col.vehicle, used, r, gap-kin.excess); place != atLeast && kin.excess+more < gap {
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
	found := make([]found, len(p.seqs))
	var wait sync.WaitGroup
	for w := range found {
		wait.Go(func() {
			var mine []column
			for _, col := range columns {
				if int(col.vehicle)%len(p.seqs) == w {
					mine = append(mine, col)
				}
			}
			found[w] = p.askFor(p.seqs[w], mine, price, gap)
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
func (p *packer) askFor(seq *sequencer, columns []column, price []float64, gap float64) (f found) {
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

// excess is what a column costs above the prices of its requests.
func (p *packer) excess(c *column, price []float64) float64 {
	x := c.cost
	for set := c.set; set != 0; set &= set - 1 {
		x -= price[bits.TrailingZeros32(set)]
	}
	return x
}

// descend completes a packing, depth first. Undecided are the open requests, and the
// columns on the stack from first on are those that can still be chosen. Every time
// one request is decided: the one of the fewest columns among those that cannot
// be left out any more, as in Knuth's exact covers, or else the weightiest.
func (p *packer) descend(first int, open uint32, missed int64, cost float64) {
	if p.left() <= 0 {
		p.looks = 0
	}
	if p.looks <= 0 {
		return
	}
	columns, ok := p.prune(first, open, missed, cost)
	if !ok {
		return
	}
	r := p.pick(columns, open, missed)
	if r < 0 {
		p.complete(open, missed, cost)
		return
	}
	end := len(p.stack)
	for i := range columns {
		col := &columns[i]
		if col.set>>r&1 == 0 {
			continue
		}
		p.looks -= len(columns)
		for k := range columns {
			if c := &columns[k]; c.set&col.set == 0 && c.vehicle != col.vehicle {
				p.stack = append(p.stack, *c)
			}
		}
		p.taken = append(p.taken, col.at)
		p.descend(end, open&^col.set, missed, cost+col.cost)
		p.taken = p.taken[:len(p.taken)-1]
		p.stack = p.stack[:end]
		if p.looks <= 0 {
			return
		}
	}
	if missed += p.in.Weight[r]; missed > p.missed {
		return
	}
	p.looks -= len(columns)
	for k := range columns {
		if c := &columns[k]; c.set>>r&1 == 0 {
			p.stack = append(p.stack, *c)
		}
	}
	p.descend(end, open&^(1<<r), missed, cost)
	p.stack = p.stack[:end]
}

// complete takes the packing if it is the best; what is open is left out.
func (p *packer) complete(open uint32, missed int64, cost float64) {
	missed += p.weigh(open)
	if missed > p.missed || missed == p.missed && cost >= p.cost {
		return
	}
	p.missed, p.cost = missed, cost
	p.packing = append(p.packing[:0], p.taken...)
	p.keys = p.keys[:0]
	for _, at := range p.packing {
		p.keys = append(p.keys, p.routes.keys[at])
	}
}

func (p *packer) weigh(set uint32) (sum int64) {
	for ; set != 0; set &= set - 1 {
		sum += p.in.Weight[bits.TrailingZeros32(set)]
	}
	return sum
}

// prune removes from the top of the stack the columns that no better packing has, and
// returns the others; ok is false if there is no better packing. Of the open requests
// no vehicle serves more than its weightiest column, nor at less than the prices and
// its least excess.
func (p *packer) prune(first int, open uint32, missed int64, cost float64) (columns []column, ok bool) {
	limits := p.limits
	clear(limits)
	columns = p.stack[first:]
	p.looks -= len(columns)
	for i := range columns {
		col := &columns[i]
		l := &limits[col.vehicle]
		l.most, l.least = max(l.most, col.weight), min(l.least, col.excess)
	}
	value := missed + p.weigh(open)
	for set := open; set != 0; set &= set - 1 {
		cost += p.price[bits.TrailingZeros32(set)]
	}
	for _, l := range limits {
		value -= l.most
		cost += l.least
	}
	cost -= p.savings(open, p.missed-missed)
	worse := func(value int64, cost float64) bool {
		value = max(value, missed)
		return value > p.missed || value == p.missed && cost >= p.cost
	}
	if worse(value, cost) {
		return nil, false
	}
	kept := p.stack[:first]
	for _, col := range columns {
		if l := &limits[col.vehicle]; !worse(value+l.most-col.weight, cost-l.least+col.excess) {
			kept = append(kept, col)
		}
	}
	p.stack = kept
	return kept[first:], true
}

// pick returns the request to decide on next, -1 if there is none that a column has.
func (p *packer) pick(columns []column, open uint32, missed int64) int32 {
	var count [Collectable]int32
	for i := range columns {
		for set := columns[i].set; set != 0; set &= set - 1 {
			count[bits.TrailingZeros32(set)]++
		}
	}
	best := int32(-1)
	for _, r := range p.order {
		if open>>r&1 == 0 {
			continue
		}
		if missed+p.in.Weight[r] <= p.missed { // so may all that follow
			if best >= 0 {
				break
			}
			if count[r] > 0 {
				return r
			}
			continue
		}
		if best < 0 || count[r] < count[best] {
			best = r
		}
	}
	return best
}

// savings is the most that leaving out open requests worth the given value takes from
// the sum of their prices.
func (p *packer) savings(open uint32, value int64) float64 {
	sum := 0.0
	for _, r := range p.order {
		if open>>r&1 != 0 && p.in.Weight[r] <= value {
			sum += p.price[r]
			if p.quotas != nil { // the dearest of each weight come first
				value -= p.in.Weight[r]
			}
		}
	}
	return sum
}
