package setpart

import (
	"cmp"
	"math/bits"
	"slices"
)

// brancher looks for a better combination of the columns by depth-first branch
// and bound.
type brancher struct {
	*master
	order  []int32  // the requests, greatest prize first, then greatest dual
	stack  []column // those compatible with what is decided, level by level
	limits []limit  // of each vehicle; scratch of prune
	chosen []int32  // pool entries of the columns chosen so far
	budget int      // columns that may still be looked at
}

// limit is what the open columns of one vehicle can achieve: the most prize and,
// at least 0 below, the least reduced cost.
type limit struct {
	prize   int64
	reduced float64
}

// branch looks for a better combination of the columns than the incumbent, and
// reports whether it finished within the budget and the time.
func (m *master) branch(budget int) (finished bool) {
	b := brancher{master: m, limits: make([]limit, len(m.in.Vehicles)), budget: budget}
	for i := range m.columns {
		col := &m.columns[i]
		col.reduced, col.prize = m.duals.reducedCost(col), m.prizeOf(col.set)
	}
	sortByReducedCost(m.columns)
	for r := range int32(m.in.Requests) {
		b.order = append(b.order, r)
	}
	slices.SortFunc(b.order, func(x, y int32) int {
		return cmp.Or(cmp.Compare(m.in.Prize[y], m.in.Prize[x]), cmp.Compare(m.duals.request[y], m.duals.request[x]), cmp.Compare(x, y))
	})
	b.stack = append(b.stack, m.columns...)
	b.descend(0, 1<<m.in.Requests-1, 0, 0)
	return b.budget > 0
}

func sortByReducedCost(columns []column) {
	slices.SortFunc(columns, func(a, b column) int {
		return cmp.Or(cmp.Compare(a.reduced, b.reduced), cmp.Compare(a.entry, b.entry))
	})
}

// descend completes a partial combination in all ways that can be better than the
// incumbent. Undecided are the open requests; the columns on the stack from first
// on are those that can still be chosen. Each level decides one request.
func (b *brancher) descend(first int, open uint32, lost int64, cost float64) {
	if b.left() <= 0 {
		b.budget = 0
	}
	if b.budget <= 0 {
		return
	}
	columns, ok := b.prune(first, open, lost, cost)
	if !ok {
		return
	}
	r := b.branchOn(columns, open, lost)
	if r < 0 {
		b.record(open, lost, cost)
		return
	}
	end := len(b.stack)
	for i := range columns {
		col := &columns[i]
		if col.set>>r&1 == 0 {
			continue
		}
		b.budget -= len(columns)
		for k := range columns {
			if c := &columns[k]; c.set&col.set == 0 && c.vehicle != col.vehicle {
				b.stack = append(b.stack, *c)
			}
		}
		b.chosen = append(b.chosen, col.entry)
		b.descend(end, open&^col.set, lost, cost+col.cost)
		b.chosen = b.chosen[:len(b.chosen)-1]
		b.stack = b.stack[:end]
		if b.budget <= 0 {
			return
		}
	}
	if lost += b.in.Prize[r]; lost > b.incumbent.lostPrize {
		return
	}
	b.budget -= len(columns)
	for k := range columns {
		if c := &columns[k]; c.set>>r&1 == 0 {
			b.stack = append(b.stack, *c)
		}
	}
	b.descend(end, open&^(1<<r), lost, cost)
	b.stack = b.stack[:end]
}

// record makes the combination the incumbent if it is better; what is open is
// left out.
func (b *brancher) record(open uint32, lost int64, cost float64) {
	best := &b.incumbent
	lost += b.prizeOf(open)
	if lost > best.lostPrize || lost == best.lostPrize && cost >= best.cost {
		return
	}
	best.lostPrize, best.cost = lost, cost
	best.entries = append(best.entries[:0], b.chosen...)
	best.keys = best.keys[:0]
	for _, at := range best.entries {
		best.keys = append(best.keys, b.pool.keys[at])
	}
}

// prune removes from the top of the stack the columns that no better combination has, and
// returns the others; ok is false if no combination is better. A vehicle serves at
// most the prize of its best column, and costs at least its requests' duals plus its least
// reduced cost.
func (b *brancher) prune(first int, open uint32, lost int64, cost float64) (columns []column, ok bool) {
	limits := b.limits
	clear(limits)
	columns = b.stack[first:]
	b.budget -= len(columns)
	for i := range columns {
		col := &columns[i]
		l := &limits[col.vehicle]
		l.prize, l.reduced = max(l.prize, col.prize), min(l.reduced, col.reduced)
	}
	leastLost := lost + b.prizeOf(open)
	for set := open; set != 0; set &= set - 1 {
		cost += b.duals.request[bits.TrailingZeros32(set)]
	}
	for _, l := range limits {
		leastLost -= l.prize
		cost += l.reduced
	}
	cost -= b.savings(open, b.incumbent.lostPrize-lost)
	noBetter := func(leastLost int64, cost float64) bool {
		leastLost = max(leastLost, lost)
		return leastLost > b.incumbent.lostPrize || leastLost == b.incumbent.lostPrize && cost >= b.incumbent.cost
	}
	if noBetter(leastLost, cost) {
		return nil, false
	}
	kept := b.stack[:first]
	for _, col := range columns {
		if l := &limits[col.vehicle]; !noBetter(leastLost+l.prize-col.prize, cost-l.reduced+col.reduced) {
			kept = append(kept, col)
		}
	}
	b.stack = kept
	return kept[first:], true
}

// branchOn returns the request to decide next, -1 if no column has any. It is the
// one with the fewest columns among those that cannot be left out any more, as in
// Knuth's exact covers (2000), or else the one with the greatest prize.
func (b *brancher) branchOn(columns []column, open uint32, lost int64) int32 {
	var count [MaxRequests]int32
	for i := range columns {
		for set := columns[i].set; set != 0; set &= set - 1 {
			count[bits.TrailingZeros32(set)]++
		}
	}
	best := int32(-1)
	for _, r := range b.order {
		if open>>r&1 == 0 {
			continue
		}
		if lost+b.in.Prize[r] <= b.incumbent.lostPrize { // so may all that follow
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

// savings is the most that leaving out open requests worth the given prize takes
// from the sum of their duals.
func (b *brancher) savings(open uint32, prize int64) float64 {
	sum := 0.0
	for _, r := range b.order {
		if open>>r&1 != 0 && b.in.Prize[r] <= prize {
			sum += b.duals.request[r]
			if b.quotas != nil { // the greatest dual of each prize comes first
				prize -= b.in.Prize[r]
			}
		}
	}
	return sum
}
