package search

// Ruin tuning, in visits as in the slack-induction paper (Christiaens and
// Vanden Berghe 2020); the partner of every removed visit goes too.
const (
	maxStringX  = 10   // longest string removed from one route
	splitShare  = 0.5  // share of strings that spare some visits in their middle
	splitGrowth = 0.01 // chance that the spared middle grows by one more
)

// ruinStrings removes strings of visits from the routes around a seed visit.
func (c *Chain) ruinStrings(seed int32, mean float64) {
	st := &c.state
	in := st.in
	average := st.averageVisits()
	longest := min(c.Tuning.MaxString, average)
	most := 4*mean/(1+longest) - 1
	strings := int(c.rng.float()*max(most, 0) + 1)
	for _, v := range in.Near[seed] {
		if strings == 0 {
			return
		}
		r := v / Slots
		ro := st.routeOf[r]
		if ro < 0 || st.isTouch[ro] {
			continue
		}
		visits := int(st.size[ro]) - 2
		limit := min(longest, float64(visits))
		length := min(int(c.rng.float()*limit+1), visits)
		at := int(st.posD[r])
		if v%Slots != DeliverySlot {
			at = int(st.posP[r])
		}
		spare := 0
		if length > 1 && length < visits && c.rng.float() < splitShare {
			spare = 1
			for length+spare < visits && c.rng.float() < splitGrowth {
				spare++
			}
		}
		c.removeString(ro, at, length, spare)
		strings--
	}
}

// removeString takes length visits out of a window of length+spare visits that
// holds position at, sparing a run of the given size inside the window.
func (c *Chain) removeString(ro int32, at, length, spare int) {
	st := &c.state
	visits := int(st.size[ro]) - 2
	window := length + spare
	low, high := max(1, at-window+1), min(at, visits-window+1)
	first := low + c.rng.intn(high-low+1)
	spareAt := -1
	if spare > 0 {
		spareAt = first + 1 + c.rng.intn(max(1, length-1))
	}
	nodes := st.route(ro)
	for i := first; i < first+window; i++ {
		if spareAt >= 0 && i >= spareAt && i < spareAt+spare {
			continue
		}
		r := nodes[i].visit / Slots
		if st.routeOf[r] == ro {
			c.remove(r)
		}
	}
}

// ruinRelated removes single requests around the seed.
func (c *Chain) ruinRelated(seed int32, count int) {
	st := &c.state
	for _, v := range st.in.Near[seed] {
		if count == 0 {
			return
		}
		if r := v / Slots; st.routeOf[r] >= 0 && c.rng.next()&3 != 0 {
			c.remove(r)
			count--
		}
	}
}

// ruinRoute removes one whole route and some of the neighbourhood.
func (c *Chain) ruinRoute(seed int32, mean float64) {
	st := &c.state
	ro := st.routeOf[seed/Slots]
	if ro < 0 || st.size[ro] > 26 {
		c.ruinStrings(seed, mean)
		return
	}
	nodes := st.route(ro)
	for i := 1; i < len(nodes)-1; i++ {
		if r := nodes[i].visit / Slots; st.routeOf[r] == ro {
			c.remove(r)
		}
	}
	c.ruinRelated(seed, int(mean/3))
}

// ruinWorst removes the requests of the seed's neighbourhood whose absence
// saves the most, with some noise.
func (c *Chain) ruinWorst(seed int32, count int) {
	st := &c.state
	for ; count > 0; count-- {
		worst, most := int32(-1), -inf
		for k, v := range st.in.Near[seed] {
			if k > 40 {
				break
			}
			r := v / Slots
			if st.routeOf[r] < 0 || c.pendingMark[r] {
				continue
			}
			if saving := st.saving(r) * (0.6 + 0.8*c.rng.float()); saving > most {
				worst, most = r, saving
			}
		}
		if worst < 0 {
			return
		}
		c.remove(worst)
	}
}

// saving estimates the distance saved by taking a request out, as if its two
// visits were apart; positions of routes already ruined may be stale but valid.
func (st *state) saving(r int32) float64 {
	in := st.in
	nodes := st.route(st.routeOf[r])
	total := 0.0
	for _, i := range [2]int32{st.posP[r], st.posD[r]} {
		prev, next := nodes[i-1].loc, nodes[i+1].loc
		total += nodes[i-1].next + nodes[i].next - in.row(prev)[next]
	}
	return total
}

// remove takes a routed request out and queues it for insertion.
func (c *Chain) remove(r int32) {
	c.take(r)
	c.enqueue(r)
}

// enqueue adds a request to those the step will try to insert.
func (c *Chain) enqueue(r int32) {
	if c.pendingMark[r] {
		return
	}
	c.pendingMark[r] = true
	c.pending = append(c.pending, r)
}

// averageVisits is the mean number of visits of the routes in use.
func (st *state) averageVisits() float64 {
	routed := 2 * (st.in.Requests - len(st.bank))
	return float64(routed) / float64(max(1, st.used))
}

// closeRuin drops the removed visits from the routes; the removed requests are
// in the bank until inserted.
func (c *Chain) closeRuin() {
	for _, ro := range c.touched {
		c.compact(ro)
	}
	for _, r := range c.pending {
		c.note(r)
		c.deposit(r)
	}
}

// enqueueBank adds up to count bank requests near the seed, or any when the
// bank is small.
func (c *Chain) enqueueBank(seed int32, count int) {
	st := &c.state
	if len(st.bank) == 0 || count == 0 {
		return
	}
	if len(st.bank) <= count {
		for _, r := range st.bank {
			c.enqueue(r)
		}
		return
	}
	for _, v := range st.in.Near[seed] {
		if r := v / Slots; st.bankIndex[r] >= 0 && !c.pendingMark[r] {
			c.enqueue(r)
			if count--; count == 0 {
				return
			}
		}
	}
}
