package search

// noPlace is what a request is taken to cost in a second or third route where
// that has no place for it.
const noPlace = 1e6

// recreator inserts the pending requests of a step. It ends as soon as the step
// could not pass even if all that is still pending cost nothing.
type recreator struct {
	cur     *Current
	rng     *rng
	tuning  *Tuning
	accept  *acceptance
	insert  *inserter
	sorter  sorter
	pending *indexSet
}

// run inserts the pending requests and clears the list.
func (x *recreator) run() {
	x.dismissRefused()
	if p := x.tuning.RegretPercent; p > 0 && x.rng.intn(100) < p {
		x.insertByRegret()
	} else {
		x.insertSorted()
	}
	x.pending.clear()
}

// dismissRefused drops the requests of the bank that fit no route even now, when the routes
// are as empty as they will be in this step.
func (x *recreator) dismissRefused() {
	kept := x.pending.list[:0]
	for _, r := range x.pending.list {
		if x.insert.refused(r) && !x.insert.hasRoom(r) {
			x.pending.has[r] = false
			continue
		}
		kept = append(kept, r)
	}
	x.pending.list = kept
}

// insertSorted inserts the pending requests greedily with blinks, in the order
// of a random sort: the recreate of SISR.
func (x *recreator) insertSorted() {
	x.sorter.sort(x.pending.list, x.tuning.Sorts.draw(x.rng), x.rng)
	atBest := x.bestCase()
	for _, r := range x.pending.list {
		if !x.cur.bank.has(r) { // reinstating a route has placed it
			continue
		}
		if !x.insert.insertBest(r, x.accept.room(x.cur.in.Penalty[r], atBest), true) {
			atBest.leaveOut(&x.cur.bank, r)
		}
		if atBest.Cost = x.cur.Cost; !x.accept.passes(atBest) {
			return
		}
	}
}

// insertByRegret inserts next what would lose most by waiting: regret-3 (Ropke
// and Pisinger 2006).
func (x *recreator) insertByRegret() {
	for atBest := x.bestCase(); x.accept.passes(atBest); atBest.Cost = x.cur.Cost {
		r, best := x.mostRegretted(&atBest)
		if r < 0 {
			return
		}
		x.cur.assign(r, best.route, best.place)
	}
}

// mostRegretted returns the pending request whose second and third best routes
// cost most above the best, and its best place; r is -1 if there is none. A
// request that has no place is no longer pending and is left out of atBest.
func (x *recreator) mostRegretted(atBest *Score) (r int32, best candidate) {
	r, most := -1, 0.0
	kept := x.pending.list[:0]
	for _, p := range x.pending.list {
		if !x.cur.bank.has(p) {
			x.pending.has[p] = false
			continue
		}
		c := x.insert.best(p, inf, true, true)
		if c.route < 0 || c.cost >= x.accept.room(x.cur.in.Penalty[p], *atBest) {
			atBest.leaveOut(&x.cur.bank, p)
			x.pending.has[p] = false
			continue
		}
		kept = append(kept, p)
		regret := min(c.second, noPlace) + min(c.limit, noPlace) - 2*c.cost
		if r < 0 || regret > most {
			r, best, most = p, c, regret
		}
	}
	x.pending.list = kept
	return r, best
}

// bestCase is what the step comes to if all that is pending finds a place at no
// cost; it cannot come to less.
func (x *recreator) bestCase() Score {
	s := x.cur.Score
	for _, r := range x.pending.list {
		if x.cur.bank.has(r) {
			s.takeIn(&x.cur.bank, r)
		}
	}
	return s
}
