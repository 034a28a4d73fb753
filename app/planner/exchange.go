package planner

import (
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/solver"
)

// An order whose parcel is not picked up can be taken from its drone, to make room for a
// CRITICAL order or because another drone serves it much better. It stays with the drone
// until the drone names the new revision (F-AMD-04); then it waits, and a later cycle plans
// it like any other. It is not reserved for another drone meanwhile, so an order is taken
// away only if it can wait: never a CRITICAL order that its drone would deliver in time.
const (
	// exchangeTime is the delay until the order's next drone can begin: for the first drone's
	// report, the next cycle, and some seconds for both.
	exchangeTime = 30 * time.Second
	// exchangeGain is how much of a drone's time an exchange must save.
	exchangeGain = otherGain
	// maxExchangesTried bounds the orders for which a cycle looks for a better drone.
	maxExchangesTried = 200
)

// releasable lists the orders that can be taken from a rest: those of the mission whose
// pickup can still be left out, except CRITICAL ones in time and what was moved lately.
func (f *inFlight) releasable(r *rest) (list []solver.Order) {
	for _, s := range r.stops[min(r.flight.Committed, len(r.stops)):] {
		if s.Kind != solver.WarehousePickup || slices.Contains(r.added, s.OrderID) || f.exchanged.has(s.OrderID) {
			continue
		}
		if o := r.orders[s.OrderID]; o.Priority != solver.Critical || r.arrival(o.ID) > r.due(&o) {
			list = append(list, o)
		}
	}
	return list
}

// arrival is when the rest delivers an order, in seconds from now.
func (r *rest) arrival(order string) float64 {
	k := slices.IndexFunc(r.stops, func(s solver.Stop) bool { return s.Kind == solver.Delivery && s.OrderID == order })
	return r.arrives[k]
}

// without is the rest when an order is taken away.
func (r *rest) without(order string) *rest {
	c := r.clone()
	c.stops = slices.DeleteFunc(c.stops, func(s solver.Stop) bool { return s.OrderID == order })
	delete(c.orders, order)
	c.released = append(c.released, order)
	c.time()
	return c
}

// makeRoom takes one order from a flight so that a CRITICAL order can be in time there. What
// is taken away is priced as if a drone from the depot served it alone.
func (f *inFlight) makeRoom(o *solver.Order, due float64) bool {
	sources, cheaper := f.sourcesOf(o), float64(criticalMadeLate)
	var best insertion
	var giver int
	for k, r := range f.rests {
		for _, other := range f.releasable(r) {
			without := r.without(other.ID)
			price := without.value() - r.value() + f.alone(r, &other)
			if found, ok := without.insert(o, sources, due, cheaper-price); ok {
				best, giver, cheaper = found, k, price+found.cost()
			}
		}
	}
	if best.rest == nil {
		return false
	}
	f.rests[giver] = best.rest
	best.rest.apply(best, o)
	return true
}

// alone is what it costs that a drone from the depot serves an order after an exchange;
// +Inf if it cannot.
func (f *inFlight) alone(r *rest, o *solver.Order) float64 {
	request := f.request(unrestricted(o))
	took, _ := f.try(&f.typical, request)
	if took == never {
		return math.Inf(1)
	}
	return f.roundTrip(&f.typical, request).Seconds() + r.price(o, (took+exchangeTime).Seconds())
}

// exchange takes orders from drones in flight that others serve much better. A flight gives
// or gets one order in a cycle, and none that this cycle gave a CRITICAL order. The plan is
// that of the idle drones.
func (f *inFlight) exchange(plan solver.Plan) {
	idle := selectDrones(f.problem.Drones, func(id string) bool {
		return !slices.ContainsFunc(plan.Routes, func(r solver.Route) bool { return r.DroneID == id })
	})
	tried, busy := 0, map[*rest]bool{}
	for k, giver := range f.rests {
		if busy[giver] || giver.changed() || giver.flight.OrdersDelivered+len(giver.orders) == 1 {
			continue // a mission keeps an order
		}
		for _, o := range f.releasable(giver) {
			if tried++; tried > maxExchangesTried {
				return
			}
			without := giver.without(o.ID)
			if !without.flyable() {
				continue
			}
			saved := giver.value() - without.value() - exchangeGain.Seconds()
			if saved <= 0 {
				continue
			}
			getter, drone := f.successor(giver, &o, saved, busy, idle)
			if getter == nil && drone == "" {
				continue
			}
			f.rests[k], busy[without] = without, true
			if getter != nil {
				busy[getter] = true
			}
			idle = selectDrones(idle, func(id string) bool { return id != drone })
			break
		}
	}
}

// successor finds who serves an order that is taken away, at less than the given cost: a
// flight that the next cycle would add it to, or an idle drone if it is CRITICAL.
func (f *inFlight) successor(giver *rest, o *solver.Order, cheaper float64, busy map[*rest]bool, idle []solver.Drone) (getter *rest, drone string) {
	if o.Priority == solver.Critical {
		if took, id := f.earliest(o, idle); took != never {
			if cost := f.roundTrip(f.droneByID(id), f.request(o)).Seconds() + giver.price(o, (took+exchangeTime).Seconds()); cost < cheaper {
				drone, cheaper = id, cost
			}
		}
	}
	by := giver.due(o) - exchangeTime.Seconds()
	if by < 0 {
		by = math.Inf(1)
	}
	limit := math.Inf(1)
	if o.Priority != solver.Critical {
		limit = f.worth(o)
	}
	sources := f.sourcesOf(o)
	for _, r := range f.rests {
		if r == giver || busy[r] || !r.takes(o) {
			continue
		}
		found, ok := r.in(exchangeTime+f.turn).insert(o, sources, by, limit)
		if !ok {
			continue
		}
		if cost := found.detour + found.harm + giver.price(o, found.arrives+exchangeTime.Seconds()); cost < cheaper {
			getter, drone, cheaper = r, "", cost
		}
	}
	return getter, drone
}

// in is the rest as far as it can still be changed after a while.
func (r *rest) in(while time.Duration) *rest {
	c, f := *r, *r.flight
	for f.Committed < len(r.stops)-1 && r.arrives[f.Committed] <= while.Seconds() {
		f.Committed++
	}
	c.flight = &f
	return &c
}
