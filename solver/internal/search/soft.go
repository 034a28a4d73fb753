package search

// A soft chain may leave requests out, at a price. The price swings (the strategic
// oscillation of Glover 1977): low, and the chain crosses states between which there is
// no way of complete ones; high, and it completes them. Where steps do not find back to
// a complete state, guided ejection does.

const (
	// astrayMost steps after the last complete state, forceMost insertions are
	// forced to reach one.
	astrayMost = 100
	forceMost  = 100
	// A request left out costs tollLeast times what a served one does on average, at
	// most; tollGrowth times as much with every attempt that fails; and tollLeast again
	// once that is above tollMost: a state that is not completed at such a price is a
	// dead end. What is the least grows to tollMost while a chain cools.
	tollLeast  = 2
	tollMost   = 20
	tollGrowth = 1.2
	// tollWindow steps are between two changes of the price, by tollStep.
	tollWindow = 100
	tollStep   = 1.1
	// tightShare is what Tuning.Share grows to while a chain cools.
	tightShare = 90
)

// toll is what a soft chain pays for what it leaves out.
type toll struct {
	unit       float64 // cost per unit of Instance.Price
	most       float64 // what unit may grow to, in costs of a served request
	least      float64 // what most falls back to
	want       int     // percent of the states that should be complete now
	full, seen int     // steps since unit was set: those at a complete state, all
	astray     int     // steps since the last complete state
}

// tighten sets what depends on the share of the cooling that is done; share is
// Tuning.Share.
func (t *toll) tighten(share int, cooled float64) {
	t.want = share + int(float64(tightShare-share)*cooled*cooled)
	t.least = tollLeast + (tollMost-tollLeast)*cooled*cooled
	t.most = max(t.most, t.least)
}

// note counts a step and moves the price to where as many states are complete as
// should be. A served request costs mean on average.
func (t *toll) note(complete bool, temperature, mean float64) {
	t.seen++
	if t.astray++; complete {
		t.full++
		t.astray = 0
	}
	if t.seen < tollWindow {
		return
	}
	if t.full*100 < t.want*t.seen {
		t.unit = min(t.unit*tollStep, t.most*mean)
	} else {
		t.unit /= tollStep
	}
	t.unit = max(t.unit, temperature)
	t.full, t.seen = 0, 0
}

// cameHome says how an attempt to complete the solution ended.
func (t *toll) cameHome(ok bool) {
	t.astray = 0
	if ok {
		t.most = max(t.least, t.most/tollGrowth)
		return
	}
	if t.most *= tollGrowth; t.most > tollMost {
		t.most = t.least
	}
}

// isComplete tells whether no more is left out than by the best solution.
func (c *Chain) isComplete() bool { return c.bankValue <= c.Best.BankValue }

// comeHome completes the solution of a soft chain that has been astray for long: by
// guided ejection, which may fail.
func (c *Chain) comeHome(s Schedule) {
	if !c.soft || c.toll.astray < astrayMost {
		return
	}
	e := &c.eject
	e.prepare(c.in)
	e.pool = append(e.pool[:0], c.bank...)
	mean := c.Tuning.Mean
	c.soft, c.restless, c.Tuning.Mean = false, false, squeezeMean
	for i := 0; i < forceMost && !c.isComplete() && s.Fraction(c.Steps) < s.To; i++ {
		c.force()
	}
	c.soft, c.Tuning.Mean = true, mean
	c.toll.cameHome(c.isComplete())
	c.keep()
}
