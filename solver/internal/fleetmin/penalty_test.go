package fleetmin

import (
	"testing"

	"github.com/dronefleet/dronefleet/solver/internal/pdp/pdptest"
	"github.com/dronefleet/dronefleet/solver/internal/search"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

func TestPenalty_RisesWhereTooFewStatesAreComplete(t *testing.T) {
	const wanted, temperature, mean = 50, 1, 10
	window := func(p *penalty, complete int) float64 {
		for i := range adaptEvery {
			p.note(i < complete, temperature, mean)
		}
		return p.weight
	}
	p := penalty{weight: 10, wanted: wanted, most: weightLeast}
	if got := window(&p, wanted-1); got <= 10 {
		t.Errorf("%d of %d complete: the weight goes from 10 to %v", wanted-1, adaptEvery, got)
	}
	p.weight = 10
	if got := window(&p, wanted); got >= 10 {
		t.Errorf("%d of %d complete: the weight goes from 10 to %v", wanted, adaptEvery, got)
	}
	p.incompleteSteps = 0
	for range 100 {
		window(&p, 0)
	}
	if got := p.weight; got != weightLeast*mean {
		t.Errorf("never complete: %v, want the most, %v", got, weightLeast*mean)
	}
	if p.incompleteSteps != 100*adaptEvery {
		t.Errorf("incomplete for %d steps, want %d", p.incompleteSteps, 100*adaptEvery)
	}
	for range 100 {
		window(&p, adaptEvery)
	}
	if got := p.weight; got != temperature {
		t.Errorf("always complete: %v, want the temperature, %v", got, temperature)
	}
	if p.incompleteSteps != 0 {
		t.Errorf("always complete, incomplete for %d steps", p.incompleteSteps)
	}
}

// A weight at which a state is not completed is no end: it falls back to the
// least.
func TestPenalty_SwingsWhereRepairsFail(t *testing.T) {
	p := penalty{most: weightLeast, least: weightLeast}
	highest, falls := p.most, 0
	for range 100 {
		before := p.most
		p.repaired(false)
		highest = max(highest, p.most)
		if p.most < before {
			falls++
			if p.most != weightLeast {
				t.Fatalf("fell to %v, want %v", p.most, weightLeast)
			}
		}
	}
	if highest > weightMost || highest < weightMost/weightGrowth || falls < 5 {
		t.Errorf("rose to %v (most %v), fell %d times", highest, weightMost, falls)
	}
	for range 100 {
		p.repaired(true)
	}
	if p.most != weightLeast {
		t.Errorf("always repaired: %v, want %v", p.most, weightLeast)
	}
	p.tighten(50, 0.5)
	half := p.most
	p.tighten(50, 1)
	if half <= weightLeast || half >= weightMost || p.most != weightMost || p.wanted != coldPercent {
		t.Errorf("half cool: %v, cold: %v and %d %%, want between %v and %v, and the latter and %d %%", half, p.most, p.wanted, weightLeast, weightMost, coldPercent)
	}
	p.repaired(false)
	p.repaired(true)
	if p.most != weightMost {
		t.Errorf("cold: fell to %v", p.most)
	}
	p.tighten(50, 0)
	p.repaired(true)
	if p.most >= weightMost {
		t.Errorf("hot again, and repaired: still %v", p.most)
	}
}

func TestWorker_RepairCompletesAPenalisedSearch(t *testing.T) {
	repaired := 0
	for seed := range uint64(10) {
		w := newTestWorker(pdptest.IdenticalFleet(seed, 60, 30), seed)
		c := w.chain
		w.saveVehicles(search.Schedule{To: 1, Fraction: budget(4000)})
		w.returnToBest()
		w.allowIncomplete()
		for ro := range int32(len(w.in.Vehicles)) {
			for _, r := range c.Current.AppendRequests(nil, ro) {
				if r < 5 {
					c.Current.MoveToBank(ro, []int32{r})
				}
			}
		}
		w.penalty.incompleteSteps = incompleteLimit - 1
		now := 0.0
		s := search.Schedule{To: 1, Fraction: func(int64) float64 { return now }}
		w.repair(s)
		if len(c.Current.Bank()) != 5 || w.penalty.incompleteSteps != incompleteLimit-1 {
			t.Fatalf("seed %d: repaired before it is time", seed)
		}
		now, w.penalty.incompleteSteps = 1, incompleteLimit
		w.repair(s)
		if len(c.Current.Bank()) != 5 {
			t.Fatalf("seed %d: repaired when the time was over", seed)
		}
		now, w.penalty.incompleteSteps = 0, incompleteLimit
		w.repair(s)
		consistent(t, w)
		switch {
		case w.penalty.incompleteSteps != 0 || c.Tuning.BankTries != testTuning.BankTries || c.Tuning.MeanRemoved != testTuning.MeanRemoved:
			t.Fatalf("seed %d: incompleteSteps %d, tuning %+v after a repair", seed, w.penalty.incompleteSteps, c.Tuning)
		case c.Best.LostPrize != 0:
			t.Fatalf("seed %d: the best leaves requests out", seed)
		case len(c.Current.Bank()) == 0:
			repaired++
		}
	}
	if repaired < 5 {
		t.Errorf("%d of 10 were repaired", repaired)
	}
}

// Where complete states are rare, an annealing returns to them again and again.
func TestWorker_AnnealIsNeverAstrayForLong(t *testing.T) {
	longtest.Only(t, "searches for seconds")
	for seed := range uint64(5) {
		w := newTestWorker(pdptest.IdenticalFleet(seed, 60, 30), seed)
		spent := budget(8000)
		w.saveVehicles(search.Schedule{To: 0.5, Fraction: spent})
		w.returnToBest()
		w.tuning.Penalised, w.tuning.CompletePercent = true, 1
		longest := 0
		w.anneal(search.Schedule{To: 1, Cooling: [2]float64{0.5, 2}, Fraction: func(steps int64) float64 {
			longest = max(longest, w.penalty.incompleteSteps)
			return spent(steps)
		}})
		consistent(t, w)
		if longest >= incompleteLimit+search.ClockEvery {
			t.Errorf("seed %d: incomplete for %d steps", seed, longest)
		}
	}
}
