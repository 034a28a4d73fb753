package search

import (
	"testing"

	"github.com/dronefleet/dronefleet/solver/internal/pdp/pdptest"
)

// A step ends early where the best case cannot pass, and an insertion is refused
// for want of room, only if the step cannot pass whatever comes next: here all
// steps are carried through.
func TestRecreator_EndsEarlyOnlyWhereTheStepCannotPass(t *testing.T) {
	for _, mode := range []string{"lexicographic", "absences", "penalised", "span"} {
		hopeless, passed := 0, 0
		for seed := range uint64(20) {
			in := pdptest.Random(seed, 30, 5)
			if mode == "span" {
				in.SpanCost = 5
				for r := range in.Penalty {
					in.Penalty[r] = 150
				}
			}
			c := constructed(in, seed)
			c.Anneal(steps(200))
			if mode == "penalised" {
				c.Penalise(10 * testTuning.InitialTemperature)
				c.Tuning.AllBankTries = true
			}
			c.accept.countAbsences = mode == "absences"
			for range 100 {
				cur := &c.Current
				cur.begin()
				c.accept.threshold = cur.Cost - 5*c.rng.logFloat()
				c.ruin.ruin(c.drawSeed())
				c.rng.shuffle(c.pending.list)
				atBest, lost := c.recreate.bestCase(), false
				for _, r := range c.pending.list {
					room, before := c.accept.room(in.Penalty[r], atBest), cur.Cost
					if c.insert.insertBest(r, inf, true) {
						lost = lost || cur.Cost-before > room+1e-6
					} else {
						atBest.leaveOut(&cur.bank, r)
						lost = lost || room < inf
					}
					atBest.Cost = cur.Cost
					lost = lost || !c.accept.passes(atBest)
				}
				c.pending.clear()
				ok := c.accept.passes(cur.Score)
				if lost && ok {
					t.Fatalf("%s, seed %d: a step that was said not to pass has passed", mode, seed)
				}
				if lost {
					hopeless++
				}
				if ok {
					passed++
					cur.commit()
				} else {
					cur.rollback()
				}
				if c.accept.countAbsences {
					cur.countAbsences()
				}
			}
		}
		if hopeless < 300 || passed < 100 {
			t.Errorf("%s: %d hopeless steps and %d that passed are too few to tell", mode, hopeless, passed)
		}
	}
}
