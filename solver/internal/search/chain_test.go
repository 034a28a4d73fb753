package search

import (
	"math"
	"slices"
	"testing"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
	"github.com/dronefleet/dronefleet/solver/internal/pdp/pdptest"
)

var testTuning = Tuning{
	InitialTemperature: 20, FinalTemperature: 0.1, MeanRemoved: 8, MaxString: 8, RegretPercent: 10,
	BankTries: 4, TwoOptStarPercent: 20, AbsenceShare: 0.5, Sorts: SortWeights{4, 1, 1, 1, 1, 1, 1, 1},
}

func never() bool { return false }

// steps is a schedule of so many steps.
func steps(n int) Schedule {
	return Schedule{To: 1, Cooling: [2]float64{0, 1}, Fraction: func(done int64) float64 { return float64(done) / float64(n) }}
}

// constructed is a chain that has inserted what it can.
func constructed(in *pdp.Instance, seed uint64) *Chain {
	c := NewChain(in, testTuning, seed)
	c.Construct(pdptest.Numbers(in.Requests), never)
	return c
}

func (c *Chain) visitsOf(ro int) []int32 { return c.Current.routes.appendVisits(nil, int32(ro)) }

// consistent compares every derived value of the current solution with its
// definition.
func consistent(t *testing.T, c *Chain) {
	t.Helper()
	in, cur, rs := c.in, &c.Current, &c.Current.routes
	seen := make([]int, in.Requests)
	var want Score
	used := 0
	slabs := slices.Clone(rs.free)
	for ro := range in.Vehicles {
		v := c.visitsOf(ro)
		if len(v) > 0 {
			slabs = append(slabs, rs.start[ro])
			used++
		} else if rs.start[ro] != 2*ro {
			t.Fatalf("idle route %d is in a slab", ro)
		}
		d := pdptest.Replay(in, ro, v)
		if d == inf || math.Abs(d-rs.length[ro]) > 1e-6 {
			t.Fatalf("route %d: stored %v, replay %v", ro, rs.length[ro], d)
		}
		want.Cost += d
		for i, x := range v {
			r := x / pdp.Slots
			seen[r]++
			if rs.routeOf[r] != int32(ro) || pdp.IsDelivery(x) && rs.deliveryAt[r] != int32(i+1) ||
				!pdp.IsDelivery(x) && rs.pickupAt[r] != int32(i+1) {
				t.Fatalf("request %d is in route %d, but not where it is said to be", r, ro)
			}
		}
	}
	slices.Sort(slabs)
	for i, at := range slabs {
		if at != 2*len(in.Vehicles)+i*rs.stride || len(slabs) != cap(rs.free) {
			t.Fatalf("of %d slabs %d are at %v", cap(rs.free), len(slabs), slabs)
		}
	}
	for r := range in.Requests {
		if inBank := cur.InBank(int32(r)); inBank != (seen[r] == 0) || seen[r]%2 != 0 || seen[r] > 2 {
			t.Fatalf("request %d: %d visits, in bank %v", r, seen[r], inBank)
		} else if inBank {
			want.leaveOut(&cur.bank, int32(r))
		}
	}
	got := cur.Score
	if got.LostPrize != want.LostPrize || got.Absences != want.Absences || used != rs.used ||
		math.Abs(got.Penalty-want.Penalty) > 1e-6 || math.Abs(got.Cost-want.Cost) > 1e-5 {
		t.Fatalf("%d routes in use and a score of %+v, want %d and %+v", rs.used, got, used, want)
	}
}

func TestChain_EveryStepLeavesTheSolutionConsistent(t *testing.T) {
	for seed := range uint64(20) {
		in := pdptest.Random(seed, 25, 4+int(seed%3)*30)
		c := constructed(in, seed)
		if seed%2 == 0 {
			c.Penalise(10 * testTuning.InitialTemperature)
			c.Tuning.AllBankTries = true
		} else {
			c.accept.countAbsences = true
		}
		for range 400 {
			c.Step(10)
			consistent(t, c)
		}
		best := *c.Best
		c.Load(&best)
		consistent(t, c)
		if c.Current.LostPrize != best.LostPrize || math.Abs(c.Current.Cost-best.Cost) > 1e-6 {
			t.Fatalf("seed %d: best is worth %+v, loaded %+v", seed, best.Value, c.Current.Score)
		}
	}
}

func TestChain_StepsDoNotAllocate(t *testing.T) {
	c := constructed(pdptest.Random(3, 60, 8), 3)
	if n := testing.AllocsPerRun(2000, func() { c.Step(5) }); n != 0 {
		t.Fatalf("%v allocations per step", n)
	}
}

func BenchmarkStep(b *testing.B) {
	c := constructed(pdptest.Random(3, 200, 30), 3)
	b.ReportAllocs()
	for b.Loop() {
		c.Step(5)
	}
}
