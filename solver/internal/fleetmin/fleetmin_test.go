package fleetmin

import (
	"math"
	"testing"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
	"github.com/dronefleet/dronefleet/solver/internal/pdp/pdptest"
	"github.com/dronefleet/dronefleet/solver/internal/search"
)

var testTuning = Tuning{Tuning: search.Tuning{
	InitialTemperature: 20, FinalTemperature: 0.1, MeanRemoved: 8, MaxString: 8, RegretPercent: 10,
	BankTries: 4, TwoOptStarPercent: 20, Sorts: search.SortWeights{4, 1, 1, 1, 1, 1, 1, 1},
}, CompletePercent: 50}

func newTestWorker(in *pdp.Instance, seed uint64) *worker {
	return newWorker(in, testTuning, seed, nil)
}

// budget is a number of steps of which a fraction is spent.
func budget(steps float64) func(int64) float64 {
	return func(done int64) float64 { return float64(done) / steps }
}

// consistent replays the current solution: every request is in one route or in
// the bank.
func consistent(t *testing.T, w *worker) {
	t.Helper()
	cur, s := &w.chain.Current, pdp.NewSolution(w.in)
	cur.CopyTo(s)
	seen := make([]int, w.in.Requests)
	cost, used := 0.0, 0
	for ro, visits := range s.Routes {
		d := pdptest.Replay(w.in, ro, visits)
		if math.IsInf(d, 1) {
			t.Fatalf("route %d is infeasible: %v", ro, visits)
		}
		cost += d
		if len(visits) > 0 {
			used++
		}
		for _, v := range visits {
			seen[pdp.Request(v)]++
		}
	}
	lost := int64(0)
	for r, visits := range seen {
		if visits != 0 && visits != 2 || cur.InBank(int32(r)) != (visits == 0) {
			t.Fatalf("request %d has %d visits, in bank %v", r, visits, cur.InBank(int32(r)))
		}
		if visits == 0 {
			lost += w.in.Prize[r]
		}
	}
	if lost != s.LostPrize || used != cur.Used() || math.Abs(cost-s.Cost) > 1e-5 {
		t.Fatalf("%d routes in use, worth %+v; replayed %d, lost %d at %v", cur.Used(), s.Value, used, lost, cost)
	}
}

// An attempt to dissolve a route is worth nothing until it succeeds: one that is
// interrupted must not begin again, or large fleets never shrink.
func TestWorker_ContinuesAnInterruptedAttempt(t *testing.T) {
	saved := 0
	for seed := range uint64(10) {
		in := pdptest.IdenticalFleet(seed, 60, 30)
		fleet := func(slice float64) int {
			w := newTestWorker(in, seed)
			first := w.chain.Best.Used
			for to := slice; to <= 1; to += slice {
				w.saveVehicles(search.Schedule{To: to, Fraction: budget(4000)})
				if w.chain.Best.LostPrize != 0 {
					t.Fatalf("seed %d: the best leaves requests out", seed)
				}
			}
			saved += first - w.chain.Best.Used
			return w.chain.Best.Used
		}
		if whole, slices := fleet(1), fleet(1.0/512); slices != whole {
			t.Errorf("seed %d: %d vehicles in one go, %d in slices", seed, whole, slices)
		}
	}
	if saved == 0 {
		t.Fatal("no vehicle was saved: the instances decide nothing")
	}
}

// A request that perturbing has placed meanwhile is not placed a second time: it
// would be delivered twice, and no route would be saved any more.
func TestWorker_ForcePlacesNoRequestTwice(t *testing.T) {
	for seed := range uint64(10) {
		w := newTestWorker(pdptest.IdenticalFleet(seed, 30, 15), seed)
		for r := range int32(w.in.Requests) {
			w.unplaced = append(w.unplaced[:0], r)
			w.force()
			consistent(t, w)
		}
	}
}

func TestMinimize_KeepsEveryRequest(t *testing.T) {
	for seed := range uint64(10) {
		in := pdptest.IdenticalFleet(seed, 30, 15)
		tuning := testTuning
		tuning.Penalised = seed%2 == 0
		s, _ := Minimize(in, Options{Tuning: tuning, Seed: seed, Workers: 2, Fraction: budget(3000)})
		if s.LostPrize != 0 {
			t.Fatalf("seed %d: %d requests are left out", seed, s.LostPrize)
		}
		for ro, v := range s.Routes {
			if math.IsInf(pdptest.Replay(in, ro, v), 1) {
				t.Fatalf("seed %d: route %d is infeasible", seed, ro)
			}
		}
	}
}

func TestProspect_IsGoodOrHopeless(t *testing.T) {
	for name, tt := range map[string]struct {
		left           []int // unplaced after each insertion, over and over
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
		var p prospect
		for i := 0; len(tt.left) > 0 && i < hopelessAfter*tt.requests; i++ {
			if p.hopeless(tt.requests) {
				t.Errorf("%s: hopeless after %d insertions", name, i)
			}
			p.note(tt.left[i%len(tt.left)], tt.requests)
		}
		if p.good() != tt.good || p.hopeless(tt.requests) != tt.hopeless {
			t.Errorf("%s: good %v, hopeless %v; want %v, %v", name, p.good(), p.hopeless(tt.requests), tt.good, tt.hopeless)
		}
	}
}
