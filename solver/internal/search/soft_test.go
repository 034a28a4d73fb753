package search

import "testing"

func TestToll_RisesWhereTooFewStatesAreComplete(t *testing.T) {
	const want, temperature, mean = 50, 1, 10
	window := func(p *toll, complete int) float64 {
		for i := range tollWindow {
			p.note(i < complete, temperature, mean)
		}
		return p.unit
	}
	p := toll{unit: 10, want: want, most: tollLeast}
	if got := window(&p, want-1); got <= 10 {
		t.Errorf("%d of %d complete: the price goes from 10 to %v", want-1, tollWindow, got)
	}
	p.unit = 10
	if got := window(&p, want); got >= 10 {
		t.Errorf("%d of %d complete: the price goes from 10 to %v", want, tollWindow, got)
	}
	p.astray = 0
	for range 100 {
		window(&p, 0)
	}
	if got := p.unit; got != tollLeast*mean {
		t.Errorf("never complete: %v, want the most, %v", got, tollLeast*mean)
	}
	if p.astray != 100*tollWindow {
		t.Errorf("astray for %d steps, want %d", p.astray, 100*tollWindow)
	}
	for range 100 {
		window(&p, tollWindow)
	}
	if got := p.unit; got != temperature {
		t.Errorf("always complete: %v, want the temperature, %v", got, temperature)
	}
	if p.astray != 0 {
		t.Errorf("always complete, astray for %d steps", p.astray)
	}
}

// A price at which a state is not completed is no end: it falls back to the least.
func TestToll_SwingsWhereNothingComesHome(t *testing.T) {
	p := toll{most: tollLeast, least: tollLeast}
	highest, falls := p.most, 0
	for range 100 {
		before := p.most
		p.cameHome(false)
		highest = max(highest, p.most)
		if p.most < before {
			falls++
			if p.most != tollLeast {
				t.Fatalf("fell to %v, want %v", p.most, tollLeast)
			}
		}
	}
	if highest > tollMost || highest < tollMost/tollGrowth || falls < 5 {
		t.Errorf("rose to %v (most %v), fell %d times", highest, tollMost, falls)
	}
	for range 100 {
		p.cameHome(true)
	}
	if p.most != tollLeast {
		t.Errorf("always home: %v, want %v", p.most, tollLeast)
	}
	p.tighten(50, 0.5)
	half := p.most
	p.tighten(50, 1)
	if half <= tollLeast || half >= tollMost || p.most != tollMost || p.want != tightShare {
		t.Errorf("half cool: %v, cold: %v and %d %%, want between %v and %v, and the latter and %d %%", half, p.most, p.want, tollLeast, tollMost, tightShare)
	}
	p.cameHome(false)
	p.cameHome(true)
	if p.most != tollMost {
		t.Errorf("cold: fell to %v", p.most)
	}
	p.tighten(50, 0)
	p.cameHome(true)
	if p.most >= tollMost {
		t.Errorf("hot again, and home: still %v", p.most)
	}
}

func TestComeHome_CompletesASoftChain(t *testing.T) {
	home := 0
	for seed := range uint64(10) {
		in := randomFleet(seed, 60, 30)
		c := NewChain(in, testTuning, seed)
		c.Construct(ints(in.Requests), never)
		c.SaveVehicles(Schedule{To: 1, Fraction: func(steps int64) float64 { return float64(steps) / 4000 }})
		c.returnToBest()
		c.soft = true
		c.begin()
		for r := range int32(5) {
			ro := c.routeOf[r]
			c.throwOut(r)
			c.compact(ro)
		}
		c.commit()
		c.toll.astray = astrayMost - 1
		now := 0.0
		s := Schedule{To: 1, Fraction: func(int64) float64 { return now }}
		c.comeHome(s)
		if len(c.bank) != 5 || c.toll.astray != astrayMost-1 {
			t.Fatalf("seed %d: brought home before it is time", seed)
		}
		now, c.toll.astray = 1, astrayMost
		c.comeHome(s)
		if len(c.bank) != 5 {
			t.Fatalf("seed %d: brought home when the time was over", seed)
		}
		now, c.toll.astray = 0, astrayMost
		c.comeHome(s)
		consistent(t, c)
		switch {
		case c.toll.astray != 0 || !c.soft || c.Tuning.Mean != testTuning.Mean:
			t.Fatalf("seed %d: astray %d, soft %v, mean %v after coming home", seed, c.toll.astray, c.soft, c.Tuning.Mean)
		case c.Best.BankValue != 0:
			t.Fatalf("seed %d: the best leaves requests out", seed)
		case len(c.bank) == 0:
			home++
		}
	}
	if home < 5 {
		t.Errorf("%d of 10 came home", home)
	}
}

// Where complete states are rare, an annealing returns to them again and again.
func TestAnneal_IsNeverAstrayForLong(t *testing.T) {
	for seed := range uint64(5) {
		in := randomFleet(seed, 60, 30)
		c := NewChain(in, testTuning, seed)
		c.Construct(ints(in.Requests), never)
		budget := func(steps int64) float64 { return float64(steps) / 8000 }
		c.SaveVehicles(Schedule{To: 0.5, Fraction: budget})
		c.returnToBest()
		c.Tuning.Soft, c.Tuning.Share = true, 1
		longest := 0
		c.Anneal(Schedule{To: 1, Cooling: [2]float64{0.5, 2}, Fraction: func(steps int64) float64 {
			longest = max(longest, c.toll.astray)
			return budget(steps)
		}})
		consistent(t, c)
		if longest >= astrayMost+clockEvery {
			t.Errorf("seed %d: astray for %d steps", seed, longest)
		}
	}
}
