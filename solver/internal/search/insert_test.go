package search

import (
	"math"
	"slices"
	"testing"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
	"github.com/dronefleet/dronefleet/solver/internal/pdp/pdptest"
)

// cheapestByReplay tries every insertion by replaying the whole route.
func cheapestByReplay(in *pdp.Instance, ro int, visits []int32, r int32) float64 {
	best, before := inf, pdptest.Replay(in, ro, visits)
	for pickup := range int32(in.Pickups[r]) {
		for i := 0; i <= len(visits); i++ {
			for j := i; j <= len(visits); j++ {
				with := slices.Clone(visits[:i])
				with = append(with, r*pdp.Slots+pickup)
				with = append(with, visits[i:j]...)
				with = append(with, pdp.Delivery(r))
				with = append(with, visits[j:]...)
				best = min(best, pdptest.Replay(in, ro, with)-before)
			}
		}
	}
	return best
}

func FuzzCheapestInsertion_MatchesFullRecomputation(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		in := pdptest.Random(seed, 14, 3)
		c := constructed(in, seed)
		c.Anneal(steps(100))
		for _, r := range c.Current.Bank() {
			for ro := range in.Vehicles {
				got, place := c.insert.cache.evaluate(r, int32(ro), inf)
				want := cheapestByReplay(in, ro, c.visitsOf(ro), r)
				if math.Abs(got-want) > 1e-6 && !(got == inf && want == inf) {
					t.Fatalf("request %d route %d: delta %v, recomputed %v", r, ro, got, want)
				}
				for _, share := range []float64{0.5, 0.999, 1.001, 2} {
					cutoff := min(want, 1e3) * share
					bounded, place := c.insert.cache.evaluate(r, int32(ro), cutoff)
					if c.Current.VisitCount(int32(ro)) > 0 && want < cutoff-1e-6 && (place == pdp.LowerBound || math.Abs(bounded-want) > 1e-6) ||
						bounded < want-1e-6 && (place != pdp.LowerBound || bounded != cutoff || cutoff > want+1e-6) {
						t.Fatalf("request %d route %d: %v with cutoff %v, recomputed %v", r, ro, bounded, cutoff, want)
					}
				}
				if got == inf {
					continue
				}
				i, j, pickup := place.Unpack()
				v := c.visitsOf(ro)
				with := slices.Concat(v[:i], []int32{r*pdp.Slots + int32(pickup)}, v[i:j], []int32{pdp.Delivery(r)}, v[j:])
				if d := pdptest.Replay(in, ro, with) - pdptest.Replay(in, ro, v); math.Abs(d-got) > 1e-6 {
					t.Fatalf("request %d route %d: the place costs %v, said to cost %v", r, ro, d, got)
				}
			}
		}
	})
}

// For regret insertion a candidate has the three cheapest routes, at most one of
// them empty.
func TestInserter_RanksTheThreeCheapestForRegret(t *testing.T) {
	ranked := 0
	for seed := range uint64(40) {
		in := pdptest.Random(seed, 30, 9)
		c := NewChain(in, testTuning, seed)
		c.Construct(pdptest.Numbers(20), never)
		for r := int32(20); r < 30; r++ {
			idle, costs := inf, []float64{inf, inf, inf}
			for ro := range int32(len(in.Vehicles)) {
				d, _ := c.insert.cache.evaluate(r, ro, inf)
				if c.Current.VisitCount(ro) == 0 {
					idle = min(idle, d)
				} else {
					costs = append(costs, d)
				}
			}
			costs = append(costs, idle)
			slices.Sort(costs)
			x := c.insert.best(r, inf, true, false)
			if x.cost != costs[0] || x.second != costs[1] || x.limit != costs[2] {
				t.Fatalf("seed %d, request %d: %v %v %v, want %v", seed, r, x.cost, x.second, x.limit, costs[:3])
			}
			if x.limit < inf {
				ranked++
			}
			if greedy := c.insert.best(r, inf, false, false); greedy.cost != x.cost || greedy.route != x.route || greedy.place != x.place {
				t.Fatalf("seed %d, request %d: greedy %+v, by regret %+v", seed, r, greedy, x)
			}
		}
	}
	if ranked < 50 {
		t.Errorf("only %d requests had three places", ranked)
	}
}

// F-OPT-03: of a large idle fleet the cheapest vehicle answers for all: where it
// costs too much, no other is looked at.
func TestInserter_LooksAtOneIdleVehicleOnly(t *testing.T) {
	in := pdptest.Random(1, 20, 2*mostRanked)
	c := NewChain(in, testTuning, 1)
	for r := range int32(in.Requests) {
		least := inf
		for v := range int32(len(in.Vehicles)) {
			d, _ := c.insert.cache.evaluate(r, v, inf)
			least = min(least, d)
		}
		if x := c.insert.best(r, least, false, false); x.route >= 0 {
			t.Fatalf("request %d: a place at %v, but the least is %v", r, x.cost, least)
		}
		looks := 0
		for v, e := range c.insert.cache.of(r) {
			if e.version == c.Current.routes.version[v] {
				looks++
			}
		}
		if looks > 1 {
			t.Fatalf("request %d: %d idle vehicles looked at", r, looks)
		}
		if x := c.insert.best(r, inf, false, false); x.cost != least {
			t.Fatalf("request %d: the best place costs %v, want %v", r, x.cost, least)
		}
	}
}
