package setpart

import (
	"math"
	"math/bits"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
)

var inf = math.Inf(1)

// Options bound one Improve.
type Options struct {
	// Budget is how many columns one branch and bound may look at.
	Budget int
	// Workers is the number of goroutines that generate columns; at least 1.
	Workers int
	// Left returns the share of the time that is left. It is called now and then, and
	// the work stops when it returns 0.
	Left func() float64
}

const (
	// firstBudget is the share of the budget, as its reciprocal, of a branch and
	// bound that more columns may follow.
	firstBudget = 16
	// maxRounds is how often more columns are generated at most: new ones change the
	// duals, at which others are worth having.
	maxRounds = 6
	// toChoose is the share of the time that column generation leaves to the last
	// branch and bound.
	toChoose = 0.25
)

// Improve makes best the best combination of the routes of the pool and those
// generated from them, if that is better, and reports whether it is. Generated
// routes are added to the pool.
func Improve(in *pdp.Instance, best *pdp.Solution, pool *Pool, o Options) bool {
	m := newMaster(in, best, pool, o.Left)
	g := newGenerator(m, max(1, o.Workers))
	m.listColumns()
	m.ascend(subgradientSteps)
	finished := m.branch(o.Budget / firstBudget)
	for range maxRounds {
		added := false
		for _, generate := range []func(gap float64) bool{g.addNeighbours, g.addShortest} {
			gap := m.incumbent.cost - m.duals.bound
			if m.incumbent.lostPrize > 0 {
				gap = inf // what leaves out less may cost more
			}
			if generate(gap) {
				m.listColumns()
				m.ascend(subgradientSteps / 3)
				finished = m.branch(o.Budget / firstBudget)
				added = true
			}
		}
		if !added || m.left() <= toChoose {
			break
		}
	}
	if !finished {
		m.listColumns()
		m.branch(o.Budget)
	}
	return m.incumbent.copyTo(best, pool)
}

// column is a route of the pool as a choice.
type column struct {
	set     uint32 // requests, one bit each
	vehicle int32
	entry   int32 // in the pool
	cost    float64
	reduced float64 // reduced cost: the cost less the duals of the requests
	prize   int64   // of the requests
}

// master is the set partitioning problem over the columns known so far.
type master struct {
	in        *pdp.Instance
	pool      *Pool
	columns   []column
	duals     duals
	quotas    []quota
	incumbent incumbent
	left      func() float64
}

func newMaster(in *pdp.Instance, best *pdp.Solution, pool *Pool, left func() float64) *master {
	m := &master{
		in: in, pool: pool, left: left,
		incumbent: incumbent{lostPrize: best.LostPrize, cost: best.Cost - costRounding},
		duals:     duals{request: make([]float64, in.Requests), vehicle: make([]float64, len(in.Vehicles))},
	}
	// The duals begin as the shares of the requests in the cost of their routes.
	for vehicle, visits := range best.Routes {
		var set uint32
		for _, v := range visits {
			m.duals.request[pdp.Request(v)] = in.Length(vehicle, visits) / float64(len(visits)/2)
			set |= 1 << pdp.Request(v)
		}
		if set != 0 {
			m.incumbent.keys = append(m.incumbent.keys, routeKey(vehicle, set))
		}
	}
	return m
}

// listColumns makes columns of the pool.
func (m *master) listColumns() {
	m.columns = m.columns[:0]
	for at, key := range m.pool.keys {
		if key != 0 {
			m.columns = append(m.columns, column{set: uint32(key), vehicle: int32(key >> 32), cost: m.pool.cost[at], entry: int32(at)})
		}
	}
}

// prizeOf is the sum of the prizes of a set of requests.
func (m *master) prizeOf(set uint32) (sum int64) {
	for ; set != 0; set &= set - 1 {
		sum += m.in.Prize[bits.TrailingZeros32(set)]
	}
	return sum
}

// incumbent is the best combination found.
type incumbent struct {
	lostPrize int64
	cost      float64
	keys      []uint64 // of its routes
	entries   []int32  // its routes in the pool; nil until one better than the start is found
}

// copyTo makes best equal to the incumbent if that is better, and reports whether
// it is.
func (b *incumbent) copyTo(best *pdp.Solution, pool *Pool) bool {
	if b.entries == nil {
		return false
	}
	for ro := range best.Routes {
		best.Routes[ro] = best.Routes[ro][:0]
	}
	best.Value = pdp.Value{LostPrize: b.lostPrize, Used: len(b.entries)}
	for _, at := range b.entries {
		ro := pool.keys[at] >> 32
		best.Routes[ro] = pool.appendVisits(best.Routes[ro], int(at))
		best.Cost += pool.cost[at]
	}
	return true
}
