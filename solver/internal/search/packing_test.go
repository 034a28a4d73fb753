package search

import (
	"math"
	"math/bits"
	"slices"
	"testing"
)

// withoutWaiting is a random instance in which all windows are open from the
// start and every service takes as long, with weights of which each outweighs all smaller ones.
func withoutWaiting(seed uint64, requests, vehicles int) *Instance {
	in := random(seed, requests, vehicles)
	clear(in.Early)
	for v := range in.Service {
		in.Service[v] = 2
	}
	for r, w := range in.Weight {
		in.Weight[r] = int64(math.Pow(100, float64(w-1)))
	}
	return in
}

// shortestOfAll tries every order of the set's visits.
func shortestOfAll(in *Instance, ro int, set uint32) float64 {
	best := inf
	var visits []int32
	var proceed func(waiting, aboard uint32)
	proceed = func(waiting, aboard uint32) {
		if waiting|aboard == 0 {
			best = min(best, replay(in, ro, visits))
			return
		}
		for r := range int32(in.Requests) {
			slots, nextWaiting, nextAboard := []int32{DeliverySlot}, waiting, aboard&^(1<<r)
			switch {
			case waiting>>r&1 != 0:
				slots, nextWaiting, nextAboard = slots[:0], waiting&^(1<<r), aboard|1<<r
				for alt := range int32(in.Alts[r]) {
					slots = append(slots, alt)
				}
			case aboard>>r&1 == 0:
				continue
			}
			for _, slot := range slots {
				visits = append(visits, r*Slots+slot)
				proceed(nextWaiting, nextAboard)
				visits = visits[:len(visits)-1]
			}
		}
	}
	proceed(set, 0)
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
				if d := replay(in, ro, visits); math.Abs(d-want) > 1e-9 {
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

// exhaust returns what the best packing misses and costs, and a collection of the
// shortest routes of all sets.
func exhaust(in *Instance) (missed int64, cost float64, all *Collection) {
	all = NewCollection(in)
	seq := newSequencer(in)
	seq.most = math.MaxInt
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
	missed = math.MaxInt64
	for set, c := range best {
		if c == inf {
			continue
		}
		m := int64(0)
		for r, w := range in.Weight {
			if set>>r&1 == 0 {
				m += w
			}
		}
		if m < missed || m == missed && c < cost {
			missed, cost = m, c
		}
	}
	return missed, cost, all
}

func always() float64 { return 1 }

// packed checks what Pack left in the chain.
func packed(t *testing.T, c *Chain) {
	t.Helper()
	served, cost := uint32(0), 0.0
	for ro, visits := range c.Best.Routes {
		cost += replay(c.in, ro, visits)
		for _, v := range visits {
			if v%Slots == DeliverySlot {
				if served>>(v/Slots)&1 != 0 {
					t.Fatalf("request %d is served twice", v/Slots)
				}
				served |= 1 << (v / Slots)
			}
		}
	}
	missed := int64(0)
	for r, w := range c.in.Weight {
		if served>>r&1 == 0 {
			missed += w
		}
	}
	if missed != c.Best.BankValue || math.Abs(cost-c.Best.Cost) > 1e-6 {
		t.Fatalf("misses %d at %v, said to miss %d at %v", missed, cost, c.Best.BankValue, c.Best.Cost)
	}
}

// Of all routes, the best combination is found, whatever the weights.
func TestPack_FindsTheBestCombination(t *testing.T) {
	for seed := range uint64(60) {
		in := withoutWaiting(seed, 6, 3)
		if seed%3 == 0 { // weights of which some add up to larger ones
			in.Weight = random(seed, 6, 3).Weight
		}
		missed, cost, all := exhaust(in)
		c := NewChain(in, testTuning, seed)
		c.Construct(ints(in.Requests), never)
		before := *c.Best
		better := c.Pack(all, 100_000_000, 1, always)
		if c.Best.BankValue != missed || math.Abs(c.Best.Cost-cost) > 1e-5 {
			t.Fatalf("seed %d: misses %d at %v, the best %d at %v", seed, c.Best.BankValue, c.Best.Cost, missed, cost)
		}
		if better != (missed < before.BankValue || cost < before.Cost-1e-5) {
			t.Fatalf("seed %d: Pack says %v", seed, better)
		}
		packed(t, c)
	}
}

// Where one request weighs as much as some smaller ones, the value that the best packing
// leaves out does not tell how many of each weight that are: a quota could be wrong.
func TestLeaveOut_HasQuotasOnlyWhereTheyAreCertain(t *testing.T) {
	for _, c := range []struct {
		weights []int64
		counts  []int // of the value 2, the weightiest first; nil if there are several
	}{
		{[]int64{2, 1, 1}, nil},
		{[]int64{1, 1, 1, 2}, nil},
		{[]int64{3, 1, 1}, []int{0, 2}},
		{[]int64{2, 1}, []int{1, 0}},
		{[]int64{1, 1, 1}, []int{2}},
	} {
		in := withoutWaiting(1, len(c.weights), 1)
		copy(in.Weight, c.weights)
		p := packer{state: &NewChain(in, testTuning, 1).state, missed: 2}
		p.leaveOut()
		var counts []int
		for _, q := range p.quotas {
			counts = append(counts, q.count)
		}
		if !slices.Equal(counts, c.counts) {
			t.Errorf("of weights %v it leaves out %v, want %v", c.weights, counts, c.counts)
		}
	}
}

// The routes of a short search lead to the others that the best combination needs:
// always where that leaves out less, at whatever cost, mostly where it only costs less.
func TestPack_WidensTheCollection(t *testing.T) {
	const problems = 120
	alone, packedToo := 0, 0
	for seed := range uint64(problems) {
		in := withoutWaiting(seed, 7, 1+int(seed%3))
		missed, cost, _ := exhaust(in)
		c := NewChain(in, testTuning, seed)
		c.Tried = NewCollection(in)
		c.Construct(ints(in.Requests), never)
		c.Anneal(Schedule{To: 1, Cooling: [2]float64{0, 1}, Fraction: func(s int64) float64 { return float64(s) / 20 }})
		best := func() int {
			if c.Best.BankValue == missed && c.Best.Cost < cost+1e-5 {
				return 1
			}
			return 0
		}
		alone += best()
		c.Pack(c.Tried, 100_000_000, 2, always)
		packed(t, c)
		packedToo += best()
		if c.Best.BankValue > missed {
			t.Errorf("seed %d: leaves out %d instead of %d", seed, c.Best.BankValue, missed)
		}
	}
	t.Logf("the best of %d problems: %d by the search, %d with the packing", problems, alone, packedToo)
	if missing := problems - alone; missing < 30 || packedToo-alone < missing*2/3 {
		t.Error("the packing does not lead from the search to the best")
	}
}

// A collection keeps the cheapest route of each vehicle and set.
func TestCollection_KeepsTheCheapest(t *testing.T) {
	in := withoutWaiting(1, 8, 3)
	c := NewChain(in, testTuning, 1)
	c.Tried = NewCollection(in)
	c.Construct(ints(in.Requests), never)
	c.Anneal(Schedule{To: 1, Cooling: [2]float64{0, 1}, Fraction: func(s int64) float64 { return float64(s) / 2000 }})
	half, rest := NewCollection(in), NewCollection(in)
	var visits []int32
	for at, key := range c.Tried.keys {
		if key == 0 {
			continue
		}
		visits = c.Tried.route(at, visits[:0])
		ro, set := int(key>>32), uint32(key)
		if len(visits) != 2*bits.OnesCount32(set) {
			t.Fatalf("set %b has the visits %v", set, visits)
		}
		if d := replay(in, ro, visits); math.Abs(d-c.Tried.cost[at]) > 1e-6 {
			t.Fatalf("a route of %v costs %v", d, c.Tried.cost[at])
		}
		if half.claim(key, c.Tried.cost[at]+float64(at%2)) >= 0 {
			half.store(half.place(key), visits)
		}
		if rest.claim(key, c.Tried.cost[at]+float64(1-at%2)) >= 0 {
			rest.store(rest.place(key), visits)
		}
	}
	half.Merge(rest)
	if half.filled != c.Tried.filled || half.filled < 30 {
		t.Fatalf("%d of %d routes", half.filled, c.Tried.filled)
	}
	for at, key := range c.Tried.keys {
		if cost, ok := half.costOf(key); key != 0 && (!ok || cost != c.Tried.cost[at]) {
			t.Fatalf("route %x costs %v, not %v", key, cost, c.Tried.cost[at])
		}
	}
}

// A full collection takes no more routes, only cheaper ones.
func TestCollection_Full(t *testing.T) {
	l := NewCollection(random(1, 4, 2))
	for i := range uint64(collectionSize) {
		l.claim(i+1, 10)
	}
	if l.filled != collectionSize*3/4 {
		t.Fatalf("%d of %d places are taken", l.filled, collectionSize)
	}
	if at := l.claim(collectionSize+7, 1); at >= 0 {
		t.Error("a full collection took one more")
	}
	if at := l.claim(1, 1); at < 0 || l.cost[at] != 1 {
		t.Error("a full collection refused a cheaper route")
	}
}
