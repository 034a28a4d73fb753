package setpart

import (
	"cmp"
	"math/bits"
	"slices"
	"sync"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
)

const (
	// maxAdded bounds the columns that one round adds, maxLabels the labels of all
	// its exact sequences, so that enough time is left to choose among the columns.
	maxAdded  = 2000
	maxLabels = 300_000
	// nearGap: the neighbours of a column are looked at if its reduced cost is too high for a
	// better combination by at most this share of the incumbent's cost.
	nearGap = 0.05
	// clockEvery is how many columns are looked at between two looks at the clock.
	clockEvery = 16
)

// generator adds columns to the pool that can be in a better combination: those
// whose reduced cost is within the gap between bound and incumbent.
type generator struct {
	*master
	evaluator  pdp.Evaluator
	sequencers []*sequencer // one per worker
}

func newGenerator(m *master, workers int) *generator {
	g := &generator{master: m, evaluator: pdp.NewEvaluator(m.in, pdp.NewReach(m.in))}
	for range workers {
		g.sequencers = append(g.sequencers, newSequencer(m.in))
	}
	return g
}

// promising lists the columns that can nearly be in a combination that costs less
// than gap above the bound, least reduced cost first. Reduced costs are relative
// to the vehicles' duals from here on.
func (g *generator) promising(gap float64) []column {
	g.listColumns()
	for i := range g.columns {
		col := &g.columns[i]
		col.reduced = g.duals.reducedCost(col) - g.duals.vehicle[col.vehicle]
	}
	g.columns = slices.DeleteFunc(g.columns, func(c column) bool { return c.reduced >= gap+nearGap*g.incumbent.cost })
	sortByReducedCost(g.columns)
	return g.columns
}

// addNeighbours adds the promising columns with one request more, at its cheapest place, or
// less, and the neighbours of these in turn, as long as they stay within the gap. It reports
// whether there were any.
func (g *generator) addNeighbours(gap float64) bool {
	in, pool := g.in, g.pool
	queue := g.promising(gap)
	for v := range int32(len(in.Vehicles)) {
		queue = append(queue, column{vehicle: v, reduced: -g.duals.vehicle[v], entry: -1}) // the empty route
	}
	known := len(queue)
	var positions []pdp.Position
	var visits, other []int32
	for i := 0; i < len(queue) && len(queue)-known < maxAdded && (i%clockEvery != 0 || g.left() > toChoose); i++ {
		col := queue[i]
		visits = visits[:0]
		if col.set != 0 {
			col.reduced, col.cost = col.reduced+pool.cost[col.entry]-col.cost, pool.cost[col.entry] // a cheaper route may have replaced it
			visits = pool.appendVisits(visits, int(col.entry))
		}
		positions = in.Positions(int(col.vehicle), visits, positions[:0])
		length := in.Timetable(positions, &in.Vehicles[col.vehicle])
		for r := range int32(in.Requests) {
			next := col
			next.set ^= 1 << r
			if col.set>>r&1 != 0 {
				next.reduced += g.duals.request[r]
				other = pdp.Without(append(other[:0], visits...), r)
				if cost := in.Length(int(col.vehicle), other); len(other) > 0 && next.reduced+cost-col.cost < gap {
					queue = g.add(queue, next, cost, other)
				}
				continue
			}
			if len(positions)+2 > pool.stride {
				continue
			}
			next.reduced -= g.duals.request[r]
			if more, place := g.evaluator.Cheapest(positions, col.vehicle, length, r, gap-next.reduced); place != pdp.LowerBound && next.reduced+more < gap {
				i, j, pickup := place.Unpack()
				other = slices.Insert(append(other[:0], visits...), j, pdp.Delivery(r))
				other = slices.Insert(other, i, r*pdp.Slots+int32(pickup))
				queue = g.add(queue, next, col.cost+more, other)
			}
		}
	}
	return len(queue) > known
}

// add adds a column to the pool and to a queue if it is the cheapest of its
// vehicle and requests.
func (g *generator) add(queue []column, col column, cost float64, visits []int32) []column {
	at := g.pool.claim(routeKey(int(col.vehicle), col.set), cost)
	if at < 0 {
		return queue
	}
	g.pool.store(at, visits)
	col.reduced, col.cost, col.entry = col.reduced+cost-col.cost, cost, int32(at)
	return append(queue, col)
}

// addShortest adds the shortest route for the requests of each promising column, for
// these requests and one more, and for these with one exchanged. Each new route within
// the gap is extended in the same way. It reports whether it added any.
//
// Each worker takes whole vehicles, so no two workers try the same route.
func (g *generator) addShortest(gap float64) bool {
	columns := g.promising(gap)
	rank := func(c column) int { // the routes of the incumbent come first
		if slices.Contains(g.incumbent.keys, routeKey(int(c.vehicle), c.set)) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(columns, func(a, b column) int { return cmp.Compare(rank(a), rank(b)) })
	results := make([]sequenced, len(g.sequencers))
	var wait sync.WaitGroup
	for w := range results {
		wait.Go(func() {
			var mine []column
			for _, col := range columns {
				if int(col.vehicle)%len(g.sequencers) == w {
					mine = append(mine, col)
				}
			}
			results[w] = g.sequence(g.sequencers[w], mine, gap)
		})
	}
	wait.Wait()
	added := false
	for _, f := range results {
		visits := f.visits
		for _, col := range f.columns {
			n := 2 * bits.OnesCount32(col.set)
			if at := g.pool.claim(routeKey(int(col.vehicle), col.set), col.cost); at >= 0 {
				g.pool.store(at, visits[:n])
				added = true
			}
			visits = visits[n:]
		}
	}
	return added
}

// sequenced are shortest routes, as columns and the visits of all of them in a
// row.
type sequenced struct {
	columns []column
	visits  []int32
}

// sequence is addShortest for the columns of some vehicles. It changes nothing
// that other workers read.
func (g *generator) sequence(seq *sequencer, columns []column, gap float64) (out sequenced) {
	tried := map[uint64]bool{}
	queue := columns
	try := func(col column, set uint32) bool {
		key := routeKey(int(col.vehicle), set)
		if set == 0 || tried[key] {
			return true
		}
		tried[key] = true
		col.set, col.cost = set, 0
		most := gap - g.duals.reducedCost(&col) + g.duals.vehicle[col.vehicle]
		if cost, known := g.pool.costOf(key); known {
			most = min(most, cost-costRounding)
		}
		if visits, cost, ok := seq.shortest(int(col.vehicle), set, most); ok {
			col.cost = cost
			queue, out.columns, out.visits = append(queue, col), append(out.columns, col), append(out.visits, visits...)
		}
		return seq.total < maxLabels && g.left() > toChoose
	}
	all := uint32(1)<<g.in.Requests - 1
	for i := 0; i < len(queue) && len(out.columns) < maxAdded; i++ {
		col := queue[i]
		if !try(col, col.set) {
			return out
		}
		for rest := all &^ col.set; rest != 0; rest &= rest - 1 {
			more := col.set | rest&-rest
			if !try(col, more) {
				return out
			}
			for gone := col.set; gone != 0; gone &= gone - 1 {
				if !try(col, more&^(gone&-gone)) {
					return out
				}
			}
		}
	}
	return out
}
