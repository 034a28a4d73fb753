package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
	"github.com/dronefleet/dronefleet/solver/internal/pdp/pdptest"
)

// withEjector gives a chain its ejector.
func withEjector(c *Chain) *Chain {
	c.ejector = newEjector(&c.Current, &c.rng, &c.evaluator, c.conflicts)
	return c
}

// searched is a chain of identical vehicles that has searched routes with narrow
// windows for a while.
func searched(seed uint64) *Chain {
	c := withEjector(constructed(pdptest.Narrow(pdptest.IdenticalFleet(seed, 40, 6), seed), seed))
	c.Tuning.BankTries, c.Tuning.RetryBank = 0, true
	for range 300 {
		c.Step(50)
	}
	return c
}

// A request has no place in a route with which it conflicts, and none there either
// while something with which it conflicts stays.
func TestConflicts_LeaveNoPlace(t *testing.T) {
	conflicts, blocked := 0, 0
	for seed := range uint64(20) {
		c := searched(seed)
		in, rs, x := c.in, &c.Current.routes, c.ejector
		for r := range int32(in.Requests) {
			for ro := range int32(len(in.Vehicles)) {
				positions := rs.of(ro)
				if rs.routeOf[r] == ro || len(positions) == 2 {
					continue
				}
				delta, _ := c.evaluator.Cheapest(positions, ro, rs.length[ro], r, inf)
				if c.conflicts.block(r, ro) {
					if conflicts++; delta != inf {
						t.Fatalf("seed %d: request %d conflicts with route %d and has a place there", seed, r, ro)
					}
				}
				x.listMembers(ro, r)
				for _, a := range x.members {
					best := ejection{sum: 3, route: -1}
					x.out = append(x.out[:0], a)
					x.tryWithout(r, ro, 2, &best)
					if !x.blockersAreOut() {
						if blocked++; best.route >= 0 {
							t.Fatalf("seed %d: request %d conflicts with another than %d in route %d and has a place there", seed, r, a, ro)
						}
					}
				}
			}
		}
	}
	if conflicts == 0 || blocked == 0 {
		t.Errorf("%d conflicts, %d of them with others than the one gone: nothing was compared", conflicts, blocked)
	}
}

// The ejection found is the one with the least weight of up to three requests.
func TestEjector_FindsTheLeastWeight(t *testing.T) {
	triples := 0
	for seed := range uint64(20) {
		c := searched(seed)
		in, x, weight := c.in, c.ejector, weights(c, seed)
		for _, r := range c.Current.Bank() {
			least, count := weight[r], 0
			for ro := range int32(len(in.Vehicles)) {
				x.listMembers(ro, r)
				for _, set := range subsets(x.members, maxEjected) {
					sum := int64(0)
					for _, out := range set {
						sum += weight[out]
					}
					if sum < least && fitsInstead(c, r, ro, set) {
						least, count = sum, len(set)
					}
				}
			}
			got := x.cheapest(r, weight)
			if got.sum != least {
				t.Fatalf("seed %d: request %d fits for a weight of %d; it does for %d", seed, r, got.sum, least)
			}
			if count == maxEjected {
				triples++
			}
		}
	}
	if triples == 0 {
		t.Error("no three requests were ejected: little was compared")
	}
}

// weights are large for what is in the bank.
func weights(c *Chain, seed uint64) []int64 {
	rng := rand.New(rand.NewPCG(seed, 18))
	weight := make([]int64, c.in.Requests)
	for r := range weight {
		weight[r] = 1 + rng.Int64N(20)
		if c.Current.InBank(int32(r)) {
			weight[r] += 50
		}
	}
	return weight
}

// subsets are those of at least one member and at most the given number.
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

// fitsInstead reports whether r fits into a route in place of others.
func fitsInstead(c *Chain, r, ro int32, others []int32) bool {
	var visits []int32
	for _, v := range c.visitsOf(int(ro)) {
		if !slices.Contains(others, pdp.Request(v)) {
			visits = append(visits, v)
		}
	}
	positions := c.in.Positions(int(ro), visits, nil)
	delta, _ := c.evaluator.Cheapest(positions, ro, c.in.Timetable(positions, &c.in.Vehicles[ro]), r, inf)
	return delta != inf
}

// Of a long route only some requests may be ejected in pairs or threes; what is
// found among them makes room.
func TestEjector_MakesRoomInLongRoutes(t *testing.T) {
	several := 0
	for seed := range uint64(20) {
		in := pdptest.Narrow(pdptest.IdenticalFleet(seed, 120, 3), seed)
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
		c := withEjector(constructed(in, seed))
		long := false
		for ro := range int32(len(in.Vehicles)) {
			c.ejector.listMembers(ro, 0)
			long = long || len(c.ejector.members) > maxMembers
		}
		if !long {
			t.Fatalf("seed %d: no route is long", seed)
		}
		weight := weights(c, seed)
		for _, r := range c.Current.Bank() {
			x := c.ejector.cheapest(r, weight)
			if x.route < 0 {
				continue
			}
			for _, out := range x.ejected() {
				x.sum -= weight[out]
			}
			if x.sum != 0 {
				t.Fatalf("seed %d: the weight of %v is wrong by %d", seed, x.ejected(), x.sum)
			}
			if !fitsInstead(c, r, x.route, x.ejected()) {
				t.Fatalf("seed %d: no room for request %d in route %d without %v", seed, r, x.route, x.ejected())
			}
			if x.count > 1 {
				several++
			}
		}
	}
	if several == 0 {
		t.Error("several requests were never ejected at once")
	}
}

// A route's positions without some requests are those of a route that never had
// them.
func TestEjector_WithoutMatchesTheTimetable(t *testing.T) {
	for seed := range uint64(20) {
		c := searched(seed)
		in, x := c.in, c.ejector
		rng := rand.New(rand.NewPCG(seed, 19))
		for range 200 {
			ro := rng.Int32N(int32(len(in.Vehicles)))
			x.listMembers(ro, 0)
			x.out = x.out[:0]
			for _, m := range x.members {
				if rng.IntN(3) == 0 {
					x.out = append(x.out, m)
				}
			}
			rng.Shuffle(len(x.out), func(i, j int) { x.out[i], x.out[j] = x.out[j], x.out[i] })
			got, length := x.without(ro)
			var visits []int32
			for _, p := range got[1 : len(got)-1] {
				if slices.Contains(x.out, pdp.Request(p.Visit)) {
					t.Fatalf("seed %d: request %d has not left", seed, pdp.Request(p.Visit))
				}
				visits = append(visits, p.Visit)
			}
			if want := c.Current.VisitCount(ro) + 2 - 2*len(x.out); len(got) != want {
				t.Fatalf("seed %d: %d positions without %d of %d requests", seed, len(got), len(x.out), len(x.members))
			}
			if len(visits) == 0 {
				continue
			}
			want := in.Positions(int(ro), visits, nil)
			if total := in.Timetable(want, &in.Vehicles[ro]); math.Abs(total-length) > 1e-9 {
				t.Fatalf("seed %d: length %v, want %v", seed, length, total)
			}
			for i, w := range want {
				g := got[i]
				for _, d := range []float64{g.Depart - w.Depart, g.Latest - w.Latest, g.Load - w.Load, g.Next - w.Next} {
					if math.Abs(d) > 1e-9 {
						t.Fatalf("seed %d: position %d is %+v, want %+v", seed, i, g, w)
					}
				}
			}
		}
	}
}

// Ejecting, inserting and moving to the bank leave the solution consistent.
func TestChain_BankMovesLeaveTheSolutionConsistent(t *testing.T) {
	ejections := 0
	for seed := range uint64(10) {
		c := searched(seed)
		weight := weights(c, seed)
		for r := range int32(c.in.Requests) {
			if ro := c.Current.routes.routeOf[r]; ro >= 0 {
				c.Current.MoveToBank(ro, []int32{r})
				consistent(t, c)
			}
			if !c.Insert(r) {
				if ejected, ok := c.Eject(r, weight); ok {
					ejections++
					for _, out := range ejected {
						if !c.Current.InBank(out) {
							t.Fatalf("seed %d: request %d was ejected and is in a route", seed, out)
						}
					}
				}
			}
			consistent(t, c)
		}
		c.Rebuild()
		consistent(t, c)
	}
	if ejections == 0 {
		t.Error("nothing was ejected: little was compared")
	}
}

// F-OPT-04: where there is time to promote one request, it is the one with the
// greatest prize.
func TestPromote_BeginsWithTheGreatestPrize(t *testing.T) {
	// All is at one place; the pickup takes so long that a vehicle serves one request.
	for seed := range uint64(10) {
		in := pdp.NewInstance(1, 0, 4, 1)
		in.Vehicles[0] = pdp.Vehicle{Due: 100, Pace: 1, Capacity: 10, MaxDistance: pdp.Unlimited}
		copy(in.Prize, []int64{1, 2, 8, 4})
		for v := range in.Late {
			in.Late[v] = 15
			if v%pdp.Slots != pdp.DeliverySlot {
				in.Service[v] = 10
			}
		}
		for r := range in.Pickups {
			in.Pickups[r] = 1
		}
		in.LinkAnchors([]int32{pdp.Delivery(0), pdp.Delivery(1), pdp.Delivery(2), pdp.Delivery(3)}, 4, func(_, _ int32) float64 { return 0 })
		c := constructed(in, seed)
		looks := 0
		c.Promote(Schedule{To: 1, Fraction: func(int64) float64 { // the second look is before the first request
			looks++
			return float64(looks / 3)
		}})
		consistent(t, c)
		if len(c.Current.Bank()) != 3 || c.Current.InBank(2) {
			t.Fatalf("seed %d: in the bank are %v", seed, c.Current.Bank())
		}
	}
}
