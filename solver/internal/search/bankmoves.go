package search

import (
	"cmp"
	"slices"
)

// Insert moves a request from the bank to its cheapest place, with blinks, and
// reports whether there was one.
func (c *Chain) Insert(r int32) bool {
	c.Current.begin()
	ok := c.insert.insertBest(r, inf, true)
	c.Current.commit()
	return ok
}

// Eject replaces up to three requests of one route, whose weights add up to less, by a
// request from the bank. It returns the ejected ones, valid until the next call; ok is false
// if there were none. Weights are at least 1.
func (c *Chain) Eject(r int32, weight []int64) (ejected []int32, ok bool) {
	c.Current.begin()
	ejected, ok = c.ejectFor(r, weight)
	c.Current.commit()
	return ejected, ok
}

// ejectFor is Eject within a step.
func (c *Chain) ejectFor(r int32, weight []int64) (ejected []int32, ok bool) {
	if c.ejector == nil {
		c.ejector = newEjector(&c.Current, &c.rng, &c.evaluator, c.conflicts)
	}
	x := c.ejector.cheapest(r, weight)
	if x.route < 0 {
		return nil, false
	}
	c.scratch = append(c.scratch[:0], x.ejected()...)
	c.Current.expel(x.route, c.scratch)
	c.Current.assign(r, x.route, x.place)
	return c.scratch, true
}

// promoteOneIn is the share of what is left of the schedule that Promote takes at
// most, as its reciprocal.
const promoteOneIn = 10

// Promote replaces a few routed requests by one of the bank with a greater prize than theirs
// together, and reinserts them elsewhere if possible. Requests with the greatest prize come
// first. The bank only gets better.
func (c *Chain) Promote(s Schedule) {
	if c.in.SpanCost > 0 || len(c.Current.Bank()) == 0 {
		return
	}
	waiting := slices.Clone(c.Current.Bank())
	c.rng.shuffle(waiting)
	slices.SortStableFunc(waiting, func(a, b int32) int { return cmp.Compare(c.in.Prize[b], c.in.Prize[a]) })
	now := s.Fraction(c.Steps)
	stop := now + (s.To-now)/promoteOneIn
	c.Current.begin()
	for _, r := range waiting {
		if s.Fraction(c.Steps) > stop {
			break
		}
		if !c.Current.InBank(r) || c.insert.insertBest(r, inf, false) {
			continue
		}
		ejected, _ := c.ejectFor(r, c.in.Prize)
		for _, out := range ejected {
			c.insert.insertBest(out, inf, false)
		}
	}
	c.Current.commit()
	c.Keep()
}

// Rebuild moves every request to the bank and inserts them all again, whatever
// that costs.
func (c *Chain) Rebuild() {
	c.Current.begin()
	for r := range int32(c.in.Requests) {
		if c.Current.routes.routeOf[r] >= 0 {
			c.ruin.remove(r)
		}
	}
	c.ruin.close()
	c.accept.threshold = inf
	c.recreate.run()
	c.Current.commit()
}
