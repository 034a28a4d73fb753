package setpart

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
	"github.com/dronefleet/dronefleet/solver/internal/pdp/pdptest"
	"github.com/dronefleet/dronefleet/solver/internal/search"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

var testTuning = search.Tuning{
	InitialTemperature: 20, FinalTemperature: 0.1, MeanRemoved: 8, MaxString: 8, RegretPercent: 10,
	BankTries: 4, TwoOptStarPercent: 20, AbsenceShare: 0.5, Sorts: search.SortWeights{4, 1, 1, 1, 1, 1, 1, 1},
}

// withoutWaiting is a random instance in which all windows are open from the
// start and every service takes as long, with prizes of which each outweighs all
// smaller ones.
func withoutWaiting(seed uint64, requests, vehicles int) *pdp.Instance {
	in := pdptest.Random(seed, requests, vehicles)
	clear(in.Early)
	for v := range in.Service {
		in.Service[v] = 2
	}
	for r, prize := range in.Prize {
		in.Prize[r] = int64(math.Pow(100, float64(prize-1)))
	}
	return in
}

// constructed is a chain that has inserted what it can, and the pool of what its
// steps will try.
func constructed(in *pdp.Instance, seed uint64) (*search.Chain, *Pool) {
	c, pool := search.NewChain(in, testTuning, seed), NewPool(in)
	c.OnRoute = pool.Add
	c.Construct(pdptest.Numbers(in.Requests), func() bool { return false })
	return c, pool
}

func anneal(c *search.Chain, steps int) {
	c.Anneal(search.Schedule{To: 1, Cooling: [2]float64{0, 1}, Fraction: func(done int64) float64 { return float64(done) / float64(steps) }})
}

// shortestOfAll tries every order of the set's visits.
func shortestOfAll(in *pdp.Instance, ro int, set uint32) float64 {
	best := inf
	var visits []int32
	var extend func(waiting, aboard uint32)
	extend = func(waiting, aboard uint32) {
		if waiting|aboard == 0 {
			best = min(best, pdptest.Replay(in, ro, visits))
			return
		}
		for r := range int32(in.Requests) {
			slots, nextWaiting, nextAboard := []int32{pdp.DeliverySlot}, waiting, aboard&^(1<<r)
			switch {
			case waiting>>r&1 != 0:
				slots, nextWaiting, nextAboard = slots[:0], waiting&^(1<<r), aboard|1<<r
				for pickup := range int32(in.Pickups[r]) {
					slots = append(slots, pickup)
				}
			case aboard>>r&1 == 0:
				continue
			}
			for _, slot := range slots {
				visits = append(visits, r*pdp.Slots+slot)
				extend(nextWaiting, nextAboard)
				visits = visits[:len(visits)-1]
			}
		}
	}
	extend(set, 0)
	return best
}

func TestSequencer_FindsTheShortestRoute(t *testing.T) {
	possible := 0
	for seed := range uint64(60) {
		in := withoutWaiting(seed, 3, 2)
		seq := newSequencer(in)
		for ro := range in.Vehicles {
			for set := uint32(1); set < 8; set++ {
				want := shortestOfAll(in, ro, set)
				visits, got, ok := seq.shortest(ro, set, inf)
				if ok != (want < inf) || ok && math.Abs(got-want) > 1e-9 {
					t.Fatalf("seed %d, vehicle %d, set %b: %v %v, want %v", seed, ro, set, got, ok, want)
				}
				if !ok {
					continue
				}
				possible++
				if d := pdptest.Replay(in, ro, visits); math.Abs(d-want) > 1e-9 {
					t.Fatalf("seed %d: the route is %v long, not %v", seed, d, want)
				}
				if _, _, ok := seq.shortest(ro, set, want-1e-9); ok {
					t.Fatalf("seed %d: a route below the shortest", seed)
				}
			}
		}
	}
	if possible < 200 {
		t.Fatalf("only %d sets could be served", possible)
	}
}

// exhaust returns what the best combination loses and costs, and a pool of the
// shortest routes of all sets.
func exhaust(in *pdp.Instance) (lost int64, cost float64, all *Pool) {
	all = NewPool(in)
	seq := newSequencer(in)
	seq.limit = math.MaxInt
	full := uint32(1)<<in.Requests - 1
	best := make([]float64, full+1) // of the vehicles so far, by what they serve
	for set := range best {
		best[set] = inf
	}
	best[0] = 0
	for ro := range in.Vehicles {
		next := slices.Clone(best)
		for set := uint32(1); set <= full; set++ {
			visits, c, ok := seq.shortest(ro, set, inf)
			if !ok {
				continue
			}
			all.store(all.claim(routeKey(ro, set), c), visits)
			for other := range best {
				if o := uint32(other); o&set == 0 && best[o]+c < next[o|set] {
					next[o|set] = best[o] + c
				}
			}
		}
		best = next
	}
	lost = math.MaxInt64
	for set, c := range best {
		if c == inf {
			continue
		}
		m := int64(0)
		for r, prize := range in.Prize {
			if set>>r&1 == 0 {
				m += prize
			}
		}
		if m < lost || m == lost && c < cost {
			lost, cost = m, c
		}
	}
	return lost, cost, all
}

func improve(in *pdp.Instance, best *pdp.Solution, pool *Pool, workers int) bool {
	return Improve(in, best, pool, Options{Budget: 100_000_000, Workers: workers, Left: func() float64 { return 1 }})
}

// sound checks a solution against its value.
func sound(t *testing.T, in *pdp.Instance, best *pdp.Solution) {
	t.Helper()
	served, cost := uint32(0), 0.0
	for ro, visits := range best.Routes {
		cost += pdptest.Replay(in, ro, visits)
		for _, v := range visits {
			if pdp.IsDelivery(v) {
				if served>>pdp.Request(v)&1 != 0 {
					t.Fatalf("request %d is served twice", pdp.Request(v))
				}
				served |= 1 << pdp.Request(v)
			}
		}
	}
	lost := int64(0)
	for r, prize := range in.Prize {
		if served>>r&1 == 0 {
			lost += prize
		}
	}
	if lost != best.LostPrize || math.Abs(cost-best.Cost) > 1e-6 {
		t.Fatalf("loses %d at %v, said to lose %d at %v", lost, cost, best.LostPrize, best.Cost)
	}
}

// Of all routes, the best combination is found, whatever the prizes.
func TestImprove_FindsTheBestCombination(t *testing.T) {
	for seed := range uint64(60) {
		in := withoutWaiting(seed, 6, 3)
		if seed%3 == 0 { // prizes of which some add up to larger ones
			in.Prize = pdptest.Random(seed, 6, 3).Prize
		}
		lost, cost, all := exhaust(in)
		c, _ := constructed(in, seed)
		before := *c.Best
		better := improve(in, c.Best, all, 1)
		if c.Best.LostPrize != lost || math.Abs(c.Best.Cost-cost) > 1e-5 {
			t.Fatalf("seed %d: loses %d at %v, the best %d at %v", seed, c.Best.LostPrize, c.Best.Cost, lost, cost)
		}
		if better != (lost < before.LostPrize || cost < before.Cost-1e-5) {
			t.Fatalf("seed %d: Improve says %v", seed, better)
		}
		sound(t, in, c.Best)
	}
}

// Where one request is worth as much as some smaller ones, the prize that the
// incumbent loses does not tell how many of each prize that are: a quota could be
// wrong.
func TestSetQuotas_OnlyWhereTheyAreCertain(t *testing.T) {
	for _, c := range []struct {
		prizes []int64
		counts []int // of a loss of 2, the greatest prize first; nil if there are several
	}{
		{[]int64{2, 1, 1}, nil},
		{[]int64{1, 1, 1, 2}, nil},
		{[]int64{3, 1, 1}, []int{0, 2}},
		{[]int64{2, 1}, []int{1, 0}},
		{[]int64{1, 1, 1}, []int{2}},
	} {
		in := withoutWaiting(1, len(c.prizes), 1)
		copy(in.Prize, c.prizes)
		m := master{in: in, incumbent: incumbent{lostPrize: 2}}
		m.setQuotas()
		var counts []int
		for _, q := range m.quotas {
			counts = append(counts, q.count)
		}
		if !slices.Equal(counts, c.counts) {
			t.Errorf("of prizes %v it leaves out %v, want %v", c.prizes, counts, c.counts)
		}
	}
}

// The routes of a short search lead to the others that the best combination needs:
// always where that leaves out less, at whatever cost, mostly where it only costs
// less.
func TestImprove_GeneratesTheRoutesThatAreMissing(t *testing.T) {
	longtest.Only(t, "searches for seconds")
	const problems = 120
	searched, improved := 0, 0
	for seed := range uint64(problems) {
		in := withoutWaiting(seed, 7, 1+int(seed%3))
		lost, cost, _ := exhaust(in)
		c, pool := constructed(in, seed)
		anneal(c, 20)
		best := func() int {
			if c.Best.LostPrize == lost && c.Best.Cost < cost+1e-5 {
				return 1
			}
			return 0
		}
		searched += best()
		improve(in, c.Best, pool, 2)
		sound(t, in, c.Best)
		improved += best()
		if c.Best.LostPrize > lost {
			t.Errorf("seed %d: leaves out %d instead of %d", seed, c.Best.LostPrize, lost)
		}
	}
	t.Logf("the best of %d problems: %d by the search, %d with set partitioning", problems, searched, improved)
	if missing := problems - searched; missing < 30 || improved-searched < missing*2/3 {
		t.Error("set partitioning does not lead from the search to the best")
	}
}

func TestPool_KeepsTheShortestRoute(t *testing.T) {
	in := withoutWaiting(1, 8, 3)
	c, pool := constructed(in, 1)
	anneal(c, 2000)
	half, rest := NewPool(in), NewPool(in)
	var visits []int32
	for at, key := range pool.keys {
		if key == 0 {
			continue
		}
		visits = pool.appendVisits(visits[:0], at)
		ro, set := int(key>>32), uint32(key)
		if len(visits) != 2*bits.OnesCount32(set) {
			t.Fatalf("set %b has the visits %v", set, visits)
		}
		if d := pdptest.Replay(in, ro, visits); math.Abs(d-pool.cost[at]) > 1e-6 {
			t.Fatalf("a route of %v costs %v", d, pool.cost[at])
		}
		half.Add(int32(ro), visits, pool.cost[at]+float64(at%2))
		rest.Add(int32(ro), visits, pool.cost[at]+float64(1-at%2))
	}
	half.Merge(rest)
	if half.filled != pool.filled || half.filled < 30 {
		t.Fatalf("%d of %d routes", half.filled, pool.filled)
	}
	for at, key := range pool.keys {
		if cost, ok := half.costOf(key); key != 0 && (!ok || cost != pool.cost[at]) {
			t.Fatalf("route %x costs %v, not %v", key, cost, pool.cost[at])
		}
	}
}

// A full pool takes no more routes, only cheaper ones.
func TestPool_TakesOnlyCheaperRoutesWhenFull(t *testing.T) {
	p := NewPool(pdptest.Random(1, 4, 2))
	for i := range uint64(poolSize) {
		p.claim(i+1, 10)
	}
	if p.filled != poolSize*3/4 {
		t.Fatalf("%d of %d entries are taken", p.filled, poolSize)
	}
	if at := p.claim(poolSize+7, 1); at >= 0 {
		t.Error("a full pool took one more route")
	}
	if at := p.claim(1, 1); at < 0 || p.cost[at] != 1 {
		t.Error("a full pool refused a cheaper route")
	}
}
