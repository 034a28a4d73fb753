package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// random is a seeded instance on a plane with windows, payloads, distance caps
// and alternative pickups.
func random(seed uint64, requests, vehicles int) *Instance {
	rng := rand.New(rand.NewPCG(seed, 1))
	n := 2*requests + 2*vehicles + 3
	xs, ys := make([]float64, n), make([]float64, n)
	for i := range xs {
		xs[i], ys[i] = rng.Float64()*100, rng.Float64()*100
	}
	in := NewInstance(n, 0, requests, vehicles)
	for a := range n {
		for b := range n {
			in.Dist[a][b] = math.Hypot(xs[a]-xs[b], ys[a]-ys[b])
		}
	}
	var anchors []int32
	for r := range requests {
		in.Demand[r], in.Weight[r], in.Price[r] = rng.Float64()*5, 1+int64(rng.IntN(3)), 1
		if rng.IntN(4) == 0 {
			in.Demand[r] = 0
		}
		in.Alts[r] = uint8(1 + rng.IntN(3))
		for slot := range Slots {
			v := r*Slots + slot
			in.Loc[v] = int32(rng.IntN(n))
			in.Early[v] = float64(rng.IntN(2)) * rng.Float64() * 200
			in.Late[v] = in.Early[v] + 100 + rng.Float64()*300
			in.Service[v] = rng.Float64() * 5
		}
		anchors = append(anchors, int32(r*Slots+DeliverySlot))
	}
	for i := range in.Vehicles {
		in.Vehicles[i] = Vehicle{Start: int32(rng.IntN(n)), End: int32(rng.IntN(n)), Due: 600, Pace: 0.7 + rng.Float64()*0.6,
			Capacity: 6 + rng.Float64()*6, MaxDist: 200 + rng.Float64()*400}
	}
	in.LinkAnchors(anchors, 30, func(a, b int32) float64 { return in.Dist[in.Loc[a]][in.Loc[b]] })
	return in
}

var testTuning = Tuning{Hot: 20, Cold: 0.1, Mean: 8, MaxString: 8, BankTries: 4, Share: 50, Cross: 20, Restless: 0.5, Keys: [keyCount]int{4, 1, 1, 1, 1, 1, 1, 1}}

// replay drives the visits from first principles and returns the distance, or
// +Inf if a rule is broken.
func replay(in *Instance, ro int, visits []int32) float64 {
	if len(visits) == 0 {
		return 0
	}
	veh := in.Vehicles[ro]
	at, clock, load, total := int(veh.Start), veh.Depart, 0.0, 0.0
	aboard := map[int32]bool{}
	for _, v := range visits {
		leg := in.Dist[at][in.Loc[v]]
		total += leg
		clock = max(clock+veh.Pace*leg, in.Early[v])
		if clock > in.Late[v]+1e-7 {
			return inf
		}
		clock += in.Service[v]
		r := v / Slots
		if v%Slots == DeliverySlot {
			if !aboard[r] {
				return inf
			}
			delete(aboard, r)
			load -= in.Demand[r]
		} else {
			aboard[r] = true
			load += in.Demand[r]
		}
		if load > veh.Capacity+1e-7 {
			return inf
		}
		at = int(in.Loc[v])
	}
	leg := in.Dist[at][veh.End]
	total += leg
	if len(aboard) > 0 || clock+veh.Pace*leg > veh.Due+1e-7 || total > veh.MaxDist+1e-7 {
		return inf
	}
	return total
}

// slowest tries every insertion by replaying the whole route.
func slowest(in *Instance, ro int, visits []int32, r int32) float64 {
	best, before := inf, replay(in, ro, visits)
	for alt := range int32(in.Alts[r]) {
		for i := 0; i <= len(visits); i++ {
			for j := i; j <= len(visits); j++ {
				with := slices.Clone(visits[:i])
				with = append(with, r*Slots+alt)
				with = append(with, visits[i:j]...)
				with = append(with, r*Slots+DeliverySlot)
				with = append(with, visits[j:]...)
				best = min(best, replay(in, ro, with)-before)
			}
		}
	}
	return best
}

func (st *state) visits(ro int) []int32 {
	var out []int32
	for i := 1; i < int(st.size[ro])-1; i++ {
		out = append(out, st.route(int32(ro))[i].visit)
	}
	return out
}

func FuzzCheapestPair_MatchesFullRecomputation(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		in := random(seed, 14, 3)
		c := NewChain(in, testTuning, seed)
		c.Construct(ints(in.Requests), never)
		c.Anneal(Schedule{To: 1, Cooling: [2]float64{0, 1}, Fraction: func(s int64) float64 { return float64(s) / 100 }})
		for _, r := range c.bank {
			for ro := range in.Vehicles {
				got, place := c.evaluate(r, int32(ro), inf)
				want := slowest(in, ro, c.visits(ro), r)
				if math.Abs(got-want) > 1e-6 && !(got == inf && want == inf) {
					t.Fatalf("request %d route %d: delta %v, recomputed %v", r, ro, got, want)
				}
				for _, share := range []float64{0.5, 0.999, 1.001, 2} {
					cutoff := min(want, 1e3) * share
					bounded, place := c.evaluate(r, int32(ro), cutoff)
					if c.size[ro] > 2 && want < cutoff-1e-6 && (place == atLeast || math.Abs(bounded-want) > 1e-6) ||
						bounded < want-1e-6 && (place != atLeast || bounded != cutoff || cutoff > want+1e-6) {
						t.Fatalf("request %d route %d: %v with cutoff %v, recomputed %v", r, ro, bounded, cutoff, want)
					}
				}
				if got == inf {
					continue
				}
				i, j, alt := unpackPlace(place)
				v := c.visits(ro)
				with := slices.Concat(v[:i], []int32{r*Slots + int32(alt)}, v[i:j], []int32{r*Slots + DeliverySlot}, v[j:])
				if d := replay(in, ro, with) - replay(in, ro, v); math.Abs(d-got) > 1e-6 {
					t.Fatalf("request %d route %d: place costs %v, said %v", r, ro, d, got)
				}
			}
		}
	})
}

// consistent compares every derived value of the state with its definition.
func consistent(t *testing.T, c *Chain) {
	t.Helper()
	in := c.in
	seen := make([]int, in.Requests)
	var cost, price float64
	var value, absence int64
	used := 0
	slabs := slices.Clone(c.slabs)
	for ro := range in.Vehicles {
		v := c.visits(ro)
		if len(v) > 0 {
			slabs = append(slabs, c.at[ro])
		} else if c.at[ro] != 2*ro {
			t.Fatalf("idle route %d is in a slab", ro)
		}
		d := replay(in, ro, v)
		if d == inf || math.Abs(d-c.dist[ro]) > 1e-6 {
			t.Fatalf("route %d: stored %v, replay %v", ro, c.dist[ro], d)
		}
		cost += d
		if len(v) > 0 {
			used++
		}
		for i, x := range v {
			r := x / Slots
			seen[r]++
			if c.routeOf[r] != int32(ro) || x%Slots == DeliverySlot && c.posD[r] != int32(i+1) ||
				x%Slots != DeliverySlot && (c.posP[r] != int32(i+1) || c.altOf[r] != uint8(x%Slots)) {
				t.Fatalf("request %d: books disagree with route %d", r, ro)
			}
		}
	}
	slices.Sort(slabs)
	for i, at := range slabs {
		if at != 2*len(in.Vehicles)+i*c.stride || len(slabs) != cap(c.slabs) {
			t.Fatalf("of %d slabs %d are at %v", cap(c.slabs), len(slabs), slabs)
		}
	}
	for r := range in.Requests {
		if inBank := c.bankIndex[r] >= 0; inBank != (seen[r] == 0) || seen[r]%2 != 0 || seen[r] > 2 {
			t.Fatalf("request %d: %d visits, in bank %v", r, seen[r], inBank)
		} else if inBank {
			value += in.Weight[r]
			price += in.Price[r]
			absence += c.absence[r]
		}
	}
	if absence != c.bankAbsence {
		t.Fatalf("absences of the bank: %d, counted %d", absence, c.bankAbsence)
	}
	if value != c.bankValue || math.Abs(price-c.bankPrice) > 1e-6 || used != c.used || math.Abs(cost-c.cost) > 1e-5 {
		t.Fatalf("totals: value %d/%d price %v/%v used %d/%d cost %v/%v", c.bankValue, value, c.bankPrice, price, c.used, used, c.cost, cost)
	}
}

func TestChain_EveryStepLeavesTheBooksRight(t *testing.T) {
	for seed := range uint64(20) {
		in := random(seed, 25, 4+int(seed%3)*30)
		tuning := testTuning
		tuning.Soft = seed%2 == 0
		c := NewChain(in, tuning, seed)
		c.soft, c.restless = tuning.Soft, !tuning.Soft
		c.Construct(ints(in.Requests), never)
		for range 400 {
			c.step(10)
			consistent(t, c)
		}
		best := *c.Best
		c.Load(&best)
		consistent(t, c)
		if c.bankValue != best.BankValue || math.Abs(c.cost-best.Cost) > 1e-6 {
			t.Fatalf("seed %d: best says %d %v, loaded %d %v", seed, best.BankValue, best.Cost, c.bankValue, c.cost)
		}
	}
}

// Where more anchors are at one place than are linked, each is near others all the same,
// or no step would ruin around it.
func TestLinkAnchors_OfOnePlaceAreAllLinked(t *testing.T) {
	const anchors, places, k = 200, 2, 30
	in := NewInstance(places, 0, anchors, 1)
	list := ints(anchors)
	for i := range list {
		list[i] = list[i]*Slots + DeliverySlot
	}
	in.LinkAnchors(list, k, func(a, b int32) float64 { return float64((a/Slots + b/Slots) % places) })
	near := map[int32]int{}
	for _, a := range list {
		seen := map[int32]bool{}
		for i, b := range in.Near[a] {
			if (b == a) != (i == 0) || seen[b] || (a/Slots+b/Slots)%places != 0 {
				t.Fatalf("anchor %d is near %v", a, in.Near[a])
			}
			seen[b] = true
			near[b]++
		}
	}
	for _, a := range list {
		if near[a] != k+1 {
			t.Errorf("anchor %d is near %d anchors, want %d", a, near[a], k+1)
		}
	}
}

// What is ranked has the three routes that are cheapest, one of them idle at most.
func TestSeek_RanksTheThreeCheapest(t *testing.T) {
	ranked := 0
	for seed := range uint64(40) {
		in := random(seed, 30, 9)
		c := NewChain(in, testTuning, seed)
		c.Construct(ints(20), never)
		for r := int32(20); r < 30; r++ {
			idle, costs := inf, []float64{inf, inf, inf}
			for ro := range int32(len(in.Vehicles)) {
				d, _ := c.evaluate(r, ro, inf)
				if c.size[ro] == 2 {
					idle = min(idle, d)
				} else {
					costs = append(costs, d)
				}
			}
			costs = append(costs, idle)
			slices.Sort(costs)
			o := c.seek(r, inf, true, false)
			if o.cost != costs[0] || o.second != costs[1] || o.limit != costs[2] {
				t.Fatalf("seed %d, request %d: %v %v %v, want %v", seed, r, o.cost, o.second, o.limit, costs[:3])
			}
			if o.limit < inf {
				ranked++
			}
			if first := c.seek(r, inf, false, false); first.cost != o.cost || first.route != o.route || first.place != o.place {
				t.Fatalf("seed %d, request %d: %+v, ranked %+v", seed, r, first, o)
			}
		}
	}
	if ranked < 50 {
		t.Errorf("only %d requests had three places", ranked)
	}
}

// F-OPT-03: of a large fleet that is idle the cheapest vehicle answers for all: where
// it costs too much, no other is looked at.
func TestSeek_LooksAtOneIdleVehicleOnly(t *testing.T) {
	in := random(1, 20, 2*mostFavourites)
	c := NewChain(in, testTuning, 1)
	for r := range int32(in.Requests) {
		least := inf
		for v := range int32(len(in.Vehicles)) {
			d, _ := c.evaluate(r, v, inf)
			least = min(least, d)
		}
		if o := c.seek(r, least, false, false); o.route >= 0 {
			t.Fatalf("request %d: an offer of %v, but the least is %v", r, o.cost, least)
		}
		looks := 0
		for v, e := range c.cache[int(r)*len(in.Vehicles):][:len(in.Vehicles)] {
			if e.version == c.version[v] {
				looks++
			}
		}
		if looks > 1 {
			t.Fatalf("request %d: %d idle vehicles looked at", r, looks)
		}
		if o := c.seek(r, inf, false, false); o.cost != least {
			t.Fatalf("request %d: the best offer is %v, want %v", r, o.cost, least)
		}
	}
}

// A step is broken off where hope says that it cannot pass, and an insertion is refused
// for want of room, only if that is so whatever comes next: here it always comes.
func TestRecreate_IsBrokenOffOnlyWhereTheStepCannotPass(t *testing.T) {
	for _, mode := range []string{"hard", "restless", "soft", "span"} {
		hopeless, passed := 0, 0
		for seed := range uint64(20) {
			in := random(seed, 30, 5)
			if mode == "span" {
				in.SpanPrice = 5
				for r := range in.Price {
					in.Price[r] = 150
				}
			}
			c := NewChain(in, testTuning, seed)
			c.Construct(ints(in.Requests), never)
			c.Anneal(Schedule{To: 1, Cooling: [2]float64{0, 1}, Fraction: func(s int64) float64 { return float64(s) / 200 }})
			c.soft, c.restless = mode == "soft", mode == "restless"
			for range 100 {
				c.begin()
				c.threshold = c.cost - 5*c.rng.logFloat()
				c.ruin()
				c.closeRuin()
				c.sortPending(keyRandom)
				hoped, lost := c.hope(), false
				for _, r := range c.pending {
					room, before := c.room(r, hoped), c.cost
					if c.settle(r, inf, true) {
						lost = lost || c.cost-before > room+1e-6
					} else {
						hoped.leaveOut(&c.state, r)
						lost = lost || room < inf
					}
					hoped.cost = c.cost
					lost = lost || !c.passes(hoped)
				}
				c.clearPending()
				ok := c.passes(c.tally)
				if lost && ok {
					t.Fatalf("%s, seed %d: a step that was said not to pass has passed", mode, seed)
				}
				if lost {
					hopeless++
				}
				if ok {
					passed++
					c.commit()
				} else {
					c.rollback()
				}
				if c.restless {
					c.countAbsences()
				}
			}
		}
		if hopeless < 300 || passed < 100 {
			t.Errorf("%s: %d steps without hope and %d that passed are too few to tell", mode, hopeless, passed)
		}
	}
}

func TestFits_AgreesWithReplay(t *testing.T) {
	fits := 0
	for seed := range uint64(3000) {
		in := random(seed, 6, 2)
		rng := rand.New(rand.NewPCG(seed, 2))
		var visits []int32
		for _, r := range rng.Perm(in.Requests)[:1+rng.IntN(3)] {
			i := rng.IntN(len(visits) + 1)
			j := i + rng.IntN(len(visits)-i+1)
			visits = slices.Concat(visits[:i], []int32{int32(r * Slots)}, visits[i:j], []int32{int32(r*Slots + DeliverySlot)}, visits[j:])
		}
		want := replay(in, 1, visits) < inf
		if got := in.Fits(1, visits); got != want {
			t.Fatalf("seed %d, %v: fits %v, replay %v", seed, visits, got, want)
		}
		if want {
			fits++
		}
	}
	if fits < 100 || fits > 2900 {
		t.Fatalf("%d of 3000 fit: the instances decide nothing", fits)
	}
}

func TestChain_StepsDoNotAllocate(t *testing.T) {
	in := random(3, 60, 8)
	c := NewChain(in, testTuning, 3)
	c.Construct(ints(in.Requests), never)
	if n := testing.AllocsPerRun(2000, func() { c.step(5) }); n != 0 {
		t.Fatalf("%v allocations per step", n)
	}
}

// randomFleet returns an instance whose vehicles are alike.
func randomFleet(seed uint64, requests, vehicles int) *Instance {
	in := random(seed, requests, vehicles)
	in.Uniform = true
	for i := range in.Vehicles {
		in.Vehicles[i] = Vehicle{Due: 2000, Pace: 1, Capacity: 20, MaxDist: Unlimited}
	}
	for v := range in.Late {
		in.Late[v] = 1500
	}
	return in
}

// narrow gives most visits a window, and the vehicles an early end.
func narrow(in *Instance, seed uint64) *Instance {
	rng := rand.New(rand.NewPCG(seed, 17))
	for i := range in.Vehicles {
		in.Vehicles[i].Due = 600
	}
	for v := range in.Late {
		if rng.IntN(4) > 0 {
			in.Early[v] = 400 * rng.Float64()
			in.Late[v] = in.Early[v] + 150*rng.Float64()
		}
	}
	for r := range in.Demand {
		in.Demand[r] = 15 * rng.Float64()
	}
	return in
}

// Two requests clash if, and only if, no order of their visits makes a route.
func TestClashes_ArePairsWithoutARoute(t *testing.T) {
	found := [2]int{}
	for seed := range uint64(20) {
		in := narrow(randomFleet(seed, 20, 4), seed)
		c := NewChain(in, testTuning, seed)
		for a := range int32(in.Requests) {
			for b := range a {
				fits := false
				for alts := range int32(in.Alts[a]) * int32(in.Alts[b]) {
					pa, pb := a*Slots+alts%int32(in.Alts[a]), b*Slots+alts/int32(in.Alts[a])
					da, db := a*Slots+DeliverySlot, b*Slots+DeliverySlot
					for _, visits := range [][]int32{{pa, da, pb, db}, {pa, pb, da, db}, {pa, pb, db, da}, {pb, pa, da, db}, {pb, pa, db, da}, {pb, db, pa, da}} {
						fits = fits || in.Fits(0, visits)
					}
				}
				if c.clashesOf(a).has(b) == fits || c.clashesOf(b).has(a) == fits {
					t.Fatalf("seed %d: requests %d and %d: a route %v, clash %v", seed, a, b, fits, c.clashesOf(a).has(b))
				}
				if fits {
					found[0]++
				} else {
					found[1]++
				}
			}
		}
	}
	if found[0] == 0 || found[1] == 0 {
		t.Errorf("%d pairs fit, %d clash: nothing was compared", found[0], found[1])
	}
}

// searched is a chain that has searched routes with narrow windows for a while.
func searched(seed uint64) *Chain {
	in := narrow(randomFleet(seed, 40, 6), seed)
	c := NewChain(in, testTuning, seed)
	c.eject.prepare(in)
	c.Construct(ints(in.Requests), never)
	for range 300 {
		c.step(50)
	}
	return c
}

// A request has no place in a route with which it clashes, and none there either while
// something with which it clashes stays.
func TestClashes_LeaveNoPlace(t *testing.T) {
	clashes, blocked := 0, 0
	for seed := range uint64(20) {
		c := searched(seed)
		in := c.in
		for r := range int32(in.Requests) {
			for ro := range int32(len(in.Vehicles)) {
				nodes := c.route(ro)
				if c.routeOf[r] == ro || len(nodes) == 2 {
					continue
				}
				delta, _ := c.cheapestPair(nodes, ro, c.dist[ro], r, inf)
				if c.clash(r, ro) {
					if clashes++; delta != inf {
						t.Fatalf("seed %d: request %d clashes with route %d and has a place there", seed, r, ro)
					}
				}
				c.listMembers(ro, r)
				for _, a := range c.eject.members {
					best := ejection{sum: 3, route: -1}
					c.eject.out = append(c.eject.out[:0], a)
					c.tryWithout(r, ro, 2, &best)
					if !c.eject.isUnblocked() {
						if blocked++; best.route >= 0 {
							t.Fatalf("seed %d: request %d clashes with another than %d in route %d and has a place there", seed, r, a, ro)
						}
					}
				}
			}
		}
	}
	if clashes == 0 || blocked == 0 {
		t.Errorf("%d clashes, %d of them with others than the one gone: nothing was compared", clashes, blocked)
	}
}

// Room is made at the least penalty at which up to three requests of a route leave room.
func TestMakeRoom_FindsTheLeastPenalty(t *testing.T) {
	triples := 0
	for seed := range uint64(20) {
		c := searched(seed)
		in, penalty := c.in, penalties(c, seed)
		for _, r := range c.bank {
			least, count := penalty[r], 0
			for ro := range int32(len(in.Vehicles)) {
				c.listMembers(ro, r)
				for _, set := range subsets(c.eject.members, mostThrown) {
					sum := int64(0)
					for _, out := range set {
						sum += penalty[out]
					}
					if sum < least && fitsInstead(c, r, ro, set) {
						least, count = sum, len(set)
					}
				}
			}
			got := c.makeRoom(r, penalty)
			if got.sum != least {
				t.Fatalf("seed %d: room for request %d at a penalty of %d; there is some at %d", seed, r, got.sum, least)
			}
			if count == mostThrown {
				triples++
			}
		}
	}
	if triples == 0 {
		t.Error("no three requests were thrown out: little was compared")
	}
}

// penalties are large for what is in the bank.
func penalties(c *Chain, seed uint64) []int64 {
	rng := rand.New(rand.NewPCG(seed, 18))
	penalty := make([]int64, c.in.Requests)
	for r := range penalty {
		penalty[r] = 1 + rng.Int64N(20)
		if c.bankIndex[r] >= 0 {
			penalty[r] += 50
		}
	}
	return penalty
}

// subsets are those of one member at least and most at most.
func subsets(members []int32, most int) (all [][]int32) {
	for i, m := range members {
		all = append(all, []int32{m})
		if most > 1 {
			for _, rest := range subsets(members[i+1:], most-1) {
				all = append(all, append([]int32{m}, rest...))
			}
		}
	}
	return all
}

// fitsInstead tells whether r fits into a route in place of others.
func fitsInstead(c *Chain, r, ro int32, others []int32) bool {
	var visits []int32
	for _, x := range c.route(ro)[1 : c.size[ro]-1] {
		if !slices.Contains(others, x.visit/Slots) {
			visits = append(visits, x.visit)
		}
	}
	nodes := c.in.positions(int(ro), visits, nil)
	delta, _ := c.cheapestPair(nodes, ro, c.in.timetable(nodes, &c.in.Vehicles[ro]), r, inf)
	return delta != inf
}

// Of a long route only some are eligible to be thrown out in pairs or threes; what is
// found there is room.
func TestMakeRoom_InLongRoutes(t *testing.T) {
	several := 0
	for seed := range uint64(20) {
		in := narrow(randomFleet(seed, 120, 3), seed)
		for i := range in.Vehicles {
			in.Vehicles[i].Due = 5000
		}
		for v := range in.Late {
			if in.Early[v] > 0 {
				in.Late[v] += 10 * in.Early[v]
				in.Early[v] *= 11
			} else {
				in.Late[v] = 4500
			}
		}
		c := NewChain(in, testTuning, seed)
		c.Construct(ints(in.Requests), never)
		c.eject.prepare(in)
		long := false
		for ro := range int32(len(in.Vehicles)) {
			c.listMembers(ro, 0)
			long = long || len(c.eject.members) > eligible
		}
		if !long {
			t.Fatalf("seed %d: no route is long", seed)
		}
		penalty := penalties(c, seed)
		for _, r := range c.bank {
			x := c.makeRoom(r, penalty)
			if x.route < 0 {
				continue
			}
			for _, out := range x.thrown() {
				x.sum -= penalty[out]
			}
			if x.sum != 0 {
				t.Fatalf("seed %d: the penalty of %v is wrong by %d", seed, x.thrown(), x.sum)
			}
			if !fitsInstead(c, r, x.route, x.thrown()) {
				t.Fatalf("seed %d: no room for request %d in route %d without %v", seed, r, x.route, x.thrown())
			}
			if x.count > 1 {
				several++
			}
		}
	}
	if several == 0 {
		t.Error("several were never thrown out")
	}
}

// A route's positions without some requests are those of a route that never had them.
func TestWithout_IsTheTimetable(t *testing.T) {
	for seed := range uint64(20) {
		c := searched(seed)
		in, e := c.in, &c.eject
		rng := rand.New(rand.NewPCG(seed, 19))
		for range 200 {
			ro := rng.Int32N(int32(len(in.Vehicles)))
			c.listMembers(ro, 0)
			e.out = e.out[:0]
			for _, m := range e.members {
				if rng.IntN(3) == 0 {
					e.out = append(e.out, m)
				}
			}
			rng.Shuffle(len(e.out), func(i, j int) { e.out[i], e.out[j] = e.out[j], e.out[i] })
			got, length := c.without(ro)
			var visits []int32
			for _, x := range got[1 : len(got)-1] {
				if slices.Contains(e.out, x.visit/Slots) {
					t.Fatalf("seed %d: request %d has not left", seed, x.visit/Slots)
				}
				visits = append(visits, x.visit)
			}
			if want := int(c.size[ro]) - 2*len(e.out); len(got) != want {
				t.Fatalf("seed %d: %d positions without %d of %d requests", seed, len(got), len(e.out), len(e.members))
			}
			if len(visits) == 0 {
				continue
			}
			want := in.positions(int(ro), visits, nil)
			if total := in.timetable(want, &in.Vehicles[ro]); math.Abs(total-length) > 1e-9 {
				t.Fatalf("seed %d: length %v, want %v", seed, length, total)
			}
			for i, w := range want {
				g := got[i]
				for _, d := range []float64{g.depart - w.depart, g.latest - w.latest, g.load - w.load, g.next - w.next} {
					if math.Abs(d) > 1e-9 {
						t.Fatalf("seed %d: position %d is %+v, want %+v", seed, i, g, w)
					}
				}
			}
		}
	}
}

// An attempt to dissolve a route is worth nothing until it succeeds; one that is
// interrupted must not begin again, or large fleets never shrink.
func TestSaveVehicles_GoesOnWhereItWasInterrupted(t *testing.T) {
	saved := 0
	for seed := range uint64(10) {
		in := randomFleet(seed, 60, 30)
		fleet := func(slice float64) int {
			c := NewChain(in, testTuning, seed)
			c.Construct(ints(in.Requests), never)
			first := c.Best.Used
			for to := slice; to <= 1; to += slice {
				c.SaveVehicles(Schedule{To: to, Fraction: func(steps int64) float64 { return float64(steps) / 4000 }})
				if c.Best.BankValue != 0 {
					t.Fatalf("seed %d: the best leaves requests out", seed)
				}
			}
			saved += first - c.Best.Used
			return c.Best.Used
		}
		if whole, slices := fleet(1), fleet(1.0/512); slices != whole {
			t.Errorf("seed %d: %d vehicles in one go, %d in slices", seed, whole, slices)
		}
	}
	if saved == 0 {
		t.Fatal("no vehicle was saved: the instances decide nothing")
	}
}

// A request of a dissolved route that a shake has placed meanwhile is placed no second
// time: it would be delivered twice, and no route would be saved any more.
func TestForce_PlacesNoRequestTwice(t *testing.T) {
	for seed := range uint64(10) {
		in := randomFleet(seed, 30, 15)
		c := NewChain(in, testTuning, seed)
		c.Construct(ints(in.Requests), never)
		c.eject.prepare(in)
		for r := range int32(in.Requests) {
			c.eject.pool = append(c.eject.pool[:0], r)
			c.force()
			consistent(t, c)
		}
	}
}

func TestSaveVehicles_KeepsEveryRequest(t *testing.T) {
	for seed := range uint64(10) {
		in := randomFleet(seed, 30, 15)
		budget := func(steps int64) float64 { return float64(steps) / 3000 }
		s, _ := MinimizeFleet(in, FleetOptions{Tuning: testTuning, Seed: seed, Workers: 2, Fraction: budget})
		if s.BankValue != 0 {
			t.Fatalf("seed %d: bank value %d", seed, s.BankValue)
		}
		for ro, v := range s.Routes {
			if replay(in, ro, v) == inf {
				t.Fatalf("seed %d: route %d is infeasible", seed, ro)
			}
		}
	}
}

// F-OPT-04: where there is time to promote one request, it is the weightiest.
func TestPromote_BeginsWithTheWeightiest(t *testing.T) {
	// All is at one place; the pickup takes so long that a vehicle serves one request.
	for seed := range uint64(10) {
		in := NewInstance(1, 0, 4, 1)
		in.Vehicles[0] = Vehicle{Due: 100, Pace: 1, Capacity: 10, MaxDist: Unlimited}
		copy(in.Weight, []int64{1, 2, 8, 4})
		for v := range in.Late {
			in.Late[v] = 15
			if v%Slots != DeliverySlot {
				in.Service[v] = 10
			}
		}
		for r := range in.Alts {
			in.Alts[r] = 1
		}
		in.LinkAnchors([]int32{DeliverySlot, Slots + DeliverySlot, 2*Slots + DeliverySlot, 3*Slots + DeliverySlot}, 4, func(_, _ int32) float64 { return 0 })
		c := NewChain(in, testTuning, seed)
		c.Construct(ints(in.Requests), never)
		looks := 0
		c.Promote(Schedule{To: 1, Fraction: func(int64) float64 { // the second look is before the first request
			looks++
			return float64(looks / 3)
		}})
		consistent(t, c)
		if len(c.bank) != 3 || c.bankIndex[2] >= 0 {
			t.Fatalf("seed %d: in the bank are %v", seed, c.bank)
		}
	}
}

func never() bool { return false }

func ints(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

func BenchmarkStep(b *testing.B) {
	in := random(3, 200, 30)
	c := NewChain(in, testTuning, 3)
	c.Construct(ints(in.Requests), never)
	b.ReportAllocs()
	for b.Loop() {
		c.step(5)
	}
}

func TestOutlook(t *testing.T) {
	for name, tt := range map[string]struct {
		left           []int // after so many insertions, over and over
		requests       int
		good, hopeless bool
	}{
		"no attempt yet":            {nil, 100, false, false},
		"always far from it":        {[]int{30, 12, 9}, 100, false, true},
		"once not so far":           {[]int{8, 30, 30, 30}, 100, false, false},
		"near in a third":           {[]int{4, 20, 20}, 100, true, false},
		"many requests, near":       {[]int{10, 90, 90, 90}, 500, true, false},
		"many requests, not so far": {[]int{11, 90, 90, 90}, 500, false, false},
		"many requests, far":        {[]int{21, 90, 90, 90}, 500, false, true},
	} {
		var o outlook
		for i := 0; len(tt.left) > 0 && i < hopelessAfter*tt.requests; i++ {
			if o.hopeless(tt.requests) {
				t.Errorf("%s: hopeless after %d insertions", name, i)
			}
			o.note(tt.left[i%len(tt.left)], tt.requests)
		}
		if o.good() != tt.good || o.hopeless(tt.requests) != tt.hopeless {
			t.Errorf("%s: good %v, hopeless %v; want %v, %v", name, o.good(), o.hopeless(tt.requests), tt.good, tt.hopeless)
		}
	}
}

func TestNearestFirst_SortsTheFront(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		links := make([]link, rng.IntN(200))
		for i := range links {
			links[i] = link{v: int32(i), d: float64(rng.IntN(1 + rng.IntN(100)))}
		}
		sorted := slices.Clone(links)
		slices.SortFunc(sorted, func(x, y link) int {
			if x.before(y) {
				return -1
			}
			return 1
		})
		n := rng.IntN(len(links) + 1)
		nearestFirst(links, n)
		if !slices.Equal(links[:n], sorted[:n]) {
			t.Fatalf("the nearest %d of %d: got %v, want %v", n, len(links), links[:n], sorted[:n])
		}
	}
}

// A pickup is tried for a vehicle just if the vehicle could serve the request from
// there alone.
func TestAlternatives_AreWhatAVehicleCanDoAlone(t *testing.T) {
	can, cannot := 0, 0
	for seed := range uint64(20) {
		in := random(seed, 14, 5)
		for i := range in.Vehicles {
			in.Vehicles[i].MaxDist /= 2
		}
		c := NewChain(in, testTuning, seed)
		for r := range int32(in.Requests) {
			for ro := range in.Vehicles {
				for alt := range int32(in.Alts[r]) {
					fits := replay(in, ro, []int32{r*Slots + alt, r*Slots + DeliverySlot}) < inf
					if tried := c.alternatives(r, int32(ro))>>alt&1 != 0; tried != fits {
						t.Fatalf("seed %d request %d vehicle %d pickup %d: tried %v, fits %v", seed, r, ro, alt, tried, fits)
					}
					if fits {
						can++
					} else {
						cannot++
					}
				}
				able := c.servers[int(r)*len(c.open):][:len(c.open)].has(int32(ro))
				if any := c.alternatives(r, int32(ro)) != 0; able != any {
					t.Fatalf("seed %d request %d vehicle %d: a server %v, has a pickup %v", seed, r, ro, able, any)
				}
			}
		}
	}
	if can < 100 || cannot < 100 {
		t.Fatalf("%d pickups in reach and %d out of it show nothing", can, cannot)
	}
}
