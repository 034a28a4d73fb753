package planner

import (
	"math"
	"slices"

	"github.com/dronefleet/dronefleet/solver"
)

const (
	// resequenceGain is how much of a drone's time another sequence of stops must save if the
	// mission does not change otherwise.
	resequenceGain = otherGain
	// maxResequenced bounds the stops that are put in another order.
	maxResequenced = 24
)

// resequence puts the stops ahead into a better sequence where that saves enough. It looks at each
// revision of a mission once: what remains of a good sequence is good.
func (f *amender) resequence() {
	for k, r := range f.routes {
		least := resequenceGain.Seconds()
		if r.changed() {
			least = 1
		} else if !f.resequenced.add(routeRevision{r.flight.MissionID, r.flight.Revision}, f.problem.Now) {
			continue
		}
		if better := r.resequenced(); better != nil && r.cost()-better.cost() >= least {
			f.routes[k] = better
		}
	}
}

// sequence is a sequence of a route's stops that are not committed, for local search. Points are
// numbered: 0 is where the drone sets out, then the stops follow, then home.
type sequence struct {
	*remainingRoute
	first    int         // index of the first of the stops
	metres   [][]float64 // from one place to another
	pickupOf []int       // of the delivery at a place: the place of its pickup; 0 if there is none ahead
	at       []int       // the order of places
	cost     float64

	mostMetres, latest float64 // that the drone can fly, and when it must be home
}

// resequenced is the route with its stops in a better order; nil if none is found.
func (r *remainingRoute) resequenced() *remainingRoute {
	n := len(r.stops) - 1 - r.flight.Committed // without the way home
	if n < 2 || n > maxResequenced {
		return nil
	}
	s := r.sequence()
	before := s.cost
	for s.improve() {
	}
	if s.cost == before {
		return nil
	}
	c := r.clone()
	for i, stop := range s.at {
		c.stops[s.first+i] = r.stops[s.first+stop-1]
	}
	c.schedule()
	return c
}

// sequence is the route's present one.
func (r *remainingRoute) sequence() *sequence {
	s := &sequence{remainingRoute: r, first: r.flight.Committed}
	start, _, _ := r.departure(s.first)
	points := []solver.Location{start}
	s.pickupOf = []int{0}
	for i, stop := range r.stops[s.first:] {
		points = append(points, stop.At)
		pickup := slices.IndexFunc(r.stops[s.first:], func(p solver.Stop) bool {
			return stop.Kind == solver.Delivery && p.Kind == solver.WarehousePickup && p.OrderID == stop.OrderID
		})
		s.pickupOf = append(s.pickupOf, pickup+1)
		s.at = append(s.at, i+1)
	}
	s.at = s.at[:len(s.at)-1] // home comes last
	for _, from := range points {
		row := make([]float64, len(points))
		for i, to := range points {
			row[i] = metres(from, to)
		}
		s.metres = append(s.metres, row)
	}
	spareMetres, spareSeconds := r.spare()
	s.mostMetres, s.latest = spareMetres, r.end()+spareSeconds
	for _, leg := range r.legs[s.first:] {
		s.mostMetres += leg
	}
	s.cost = s.costOf(s.at)
	return s
}

// improve makes the best single change: one stop relocated, or a part of the order reversed
// (2-opt). It returns false if no change saves a second.
func (s *sequence) improve() bool {
	best, cost := []int(nil), s.cost-1
	try := func(at []int) {
		if c := s.costOf(at); c < cost {
			best, cost = slices.Clone(at), c
		}
	}
	for i := range s.at {
		for j := range s.at {
			try(moved(s.at, i, j))
			if j > i+1 {
				try(reversed(s.at, i, j))
			}
		}
	}
	if best == nil {
		return false
	}
	s.at, s.cost = best, cost
	return true
}

// moved is a list with the element at one place moved to another.
func moved(list []int, from, to int) []int {
	rest := slices.Delete(slices.Clone(list), from, from+1)
	return slices.Insert(rest, to, list[from])
}

// reversed is a list with a part of it reversed, both ends included.
func reversed(list []int, from, to int) []int {
	list = slices.Clone(list)
	slices.Reverse(list[from : to+1])
	return list
}

// costOf is the cost of the route with its stops in an order; +Inf if the drone cannot fly it
// or a CRITICAL order would be made late.
func (s *sequence) costOf(order []int) float64 {
	_, clock, load := s.departure(s.first)
	sum, flown, last := 0.0, 0.0, 0
	var done [maxResequenced + 1]bool
	for _, at := range order {
		flown += s.metres[last][at]
		clock += s.seconds(s.metres[last][at])
		i := s.first + at - 1
		stop := &s.stops[i]
		o := s.orders[stop.OrderID]
		switch stop.Kind {
		case solver.WarehousePickup:
			load += o.WeightKg
		case solver.Delivery:
			if pickup := s.pickupOf[at]; pickup > 0 && !done[pickup] {
				return math.Inf(1)
			}
			load -= o.WeightKg
			sum += s.arrivalCost(&o, s.arrives[i]) + s.delayCost(&o, s.arrives[i], clock)
		case solver.DepotStart, solver.DepotReturn, solver.Charge, solver.Wait:
		}
		if !s.canCarry(load) {
			return math.Inf(1)
		}
		clock += s.service(stop.Kind)
		done[at], last = true, at
	}
	home := len(s.metres) - 1
	flown += s.metres[last][home]
	clock += s.seconds(s.metres[last][home])
	if flown > s.mostMetres || clock > s.latest {
		return math.Inf(1)
	}
	return sum + clock
}
