package fleetmin

import "github.com/dronefleet/dronefleet/solver/internal/search"

// Guided ejection search (Nagata and Bräysy 2009; for pickups and deliveries Nagata and
// Kobayashi 2010): one route is dissolved and its requests are forced into the others,
// ejecting those that were easy to insert so far, until all have a route.
const (
	// perturbSteps of ruin and recreate perturb the other routes after each
	// ejection, each removing perturbRemoved visits.
	perturbSteps   = 3
	perturbRemoved = 10
	// perturbCooler divides the initial temperature of these steps.
	perturbCooler = 10
	// insertionsPerRequest bounds an attempt. Few are that long: to begin again is
	// to lose what the counters have learned.
	insertionsPerRequest = 100
)

// saveVehicles dissolves routes one after another until the schedule ends. An
// attempt that is under way then continues with the next call, unless another
// solution is loaded. The chain's Best is always the last complete solution.
func (w *worker) saveVehicles(s search.Schedule) {
	c := w.chain
	if c.Best.LostPrize > 0 {
		return
	}
	defer w.withSmallRuins()()
	if !w.attempting {
		c.Current.Restore(c.Best)
	}
	for c.Best.Used > 1 && s.Fraction(c.Steps) < s.To {
		if !w.attempting {
			w.dissolve()
		}
		if !w.placeAll(s) && !w.attempting {
			c.Current.Restore(c.Best)
		}
	}
}

// startAfresh replaces the current solution by a new one with as few vehicles as the best,
// or by the best itself if none is found until the schedule ends. If more is set, the rest
// of the schedule tries to save one more vehicle.
func (w *worker) startAfresh(s search.Schedule, more bool) {
	c := w.chain
	defer w.withSmallRuins()()
	c.Current.LimitRoutes(len(w.in.Vehicles))
	c.Rebuild()
	fresh := c.Best
	for ok := len(c.Current.Bank()) == 0; ok; ok = w.placeAll(s) {
		if c.Current.Used() <= c.Best.Used {
			c.Current.CopyTo(w.spare)
			fresh = w.spare
		}
		if c.Current.Used() <= 1 || !more && c.Current.Used() <= c.Best.Used {
			break
		}
		w.dissolve()
	}
	w.endAttempt()
	c.Current.Restore(fresh)
	c.Current.LimitRoutes(c.Best.Used)
}

// withSmallRuins makes ruins small until the returned function is called.
func (w *worker) withSmallRuins() (restore func()) {
	mean := w.chain.Tuning.MeanRemoved
	w.chain.Tuning.MeanRemoved = perturbRemoved
	return func() { w.chain.Tuning.MeanRemoved = mean }
}

// resetCounters makes all requests equally easy to place.
func (w *worker) resetCounters() {
	for i := range w.counter {
		w.counter[i] = 1
	}
}

// dissolve begins an attempt to do with one route less than a complete solution
// has: the requests of one route are unplaced.
func (w *worker) dissolve() {
	c := w.chain
	w.attempting, w.insertions = true, 0
	c.Tuning.RegretPercent = 0 // greedy insertion is faster, and an attempt is long
	w.resetCounters()
	ro := w.drawRoute()
	w.unplaced = c.Current.AppendRequests(w.unplaced[:0], ro)
	c.Shuffle(w.unplaced)
	c.Current.MoveToBank(ro, w.unplaced)
	c.Current.LimitRoutes(c.Current.Used())
}

// endAttempt makes recreates insert as between attempts again.
func (w *worker) endAttempt() {
	w.attempting = false
	w.chain.Tuning.RegretPercent = w.tuning.RegretPercent
}

// drawRoute draws the route to dissolve: of three random ones the shortest.
func (w *worker) drawRoute() int32 {
	cur := &w.chain.Current
	best := int32(-1)
	for range 3 {
		k := w.chain.Intn(cur.Used())
		for ro := range int32(len(w.in.Vehicles)) {
			if cur.VisitCount(ro) == 0 {
				continue
			}
			if k--; k < 0 {
				if best < 0 || cur.VisitCount(ro) < cur.VisitCount(best) {
					best = ro
				}
				break
			}
		}
	}
	return best
}

// placeAll forces the unplaced requests into the other routes and reports whether
// all of them have a place. If not, the time is over, or the attempt.
func (w *worker) placeAll(s search.Schedule) bool {
	c := w.chain
	for len(c.Current.Bank()) > 0 {
		if s.Fraction(c.Steps) >= s.To {
			return false
		}
		if w.insertions++; w.insertions > insertionsPerRequest*w.in.Requests {
			w.endAttempt()
			return false
		}
		w.force()
		w.prospect.note(len(c.Current.Bank()), w.in.Requests)
	}
	w.endAttempt()
	w.prospect = prospect{}
	c.Keep()
	return true
}

// force inserts the last of the unplaced requests. If no route has room, it ejects others
// for it if it can, and perturbs the routes.
func (w *worker) force() {
	c := w.chain
	if len(w.unplaced) == 0 { // perturbing has exchanged what is in the bank
		w.unplaced = append(w.unplaced, c.Current.Bank()...)
	}
	r := w.unplaced[len(w.unplaced)-1]
	w.unplaced = w.unplaced[:len(w.unplaced)-1]
	if !c.Current.InBank(r) || c.Insert(r) {
		return // perturbing has placed it, or there is a place
	}
	w.counter[r]++
	if ejected, ok := c.Eject(r, w.counter); ok {
		w.unplaced = append(w.unplaced, ejected...)
	} else {
		w.unplaced = append(w.unplaced, r)
	}
	for range perturbSteps {
		c.Step(c.Tuning.InitialTemperature / perturbCooler)
	}
}
