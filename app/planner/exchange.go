package planner

import (
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/solver"
)

// An order whose parcel is not picked up can be taken from its drone, to make room for a
// CRITICAL order or because another drone serves it much better. It waits once its drone names
// the new revision (F-AMD-04), and a later cycle plans it like any other. No drone is reserved
// for it, so a CRITICAL order that its drone would deliver in time is never taken away.
const (
	// exchangeTime is the delay until the order's next drone can begin: the first drone must
	// report, and the next cycle must plan.
	exchangeTime = 30 * time.Second
	// exchangeGain is how much of a drone's time an exchange must save.
	exchangeGain = otherGain
	// maxExchangesTried bounds the orders for which a cycle looks for a better drone.
	maxExchangesTried = 200
)

// releasable lists the orders that can be taken from a drone: those whose pickup can still be
// left out, except CRITICAL ones in time and those that were exchanged recently.
func (f *amender) releasable(r *remainingRoute) (list []solver.Order) {
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

// makeRoom takes one order from a flight so that a CRITICAL order can be in time there. The
// order taken away costs as much as if a drone from the depot served it alone.
func (f *amender) makeRoom(o *solver.Order, due float64) bool {
	sources, cheaper := f.sourcesOf(o), lateCosts[solver.Critical].once
	var best insertion
	var at int
	for k, r := range f.routes {
		for _, other := range f.releasable(r) {
			without := r.without(other.ID)
			price := without.cost() - r.cost() + f.costAlone(r, &other)
			if found, ok := without.insert(o, sources, due, cheaper-price); ok {
				best, at, cheaper = found, k, price+found.cost()
			}
		}
	}
	if best.route == nil {
		return false
	}
	f.routes[at] = best.route
	best.route.apply(best, o)
	return true
}

// costAlone is the cost of serving an order from the depot after an exchange; +Inf if no drone
// can.
func (f *amender) costAlone(r *remainingRoute, o *solver.Order) float64 {
	request := f.request(unrestricted(o))
	took, _ := f.try(&f.typical, request)
	if took == never {
		return math.Inf(1)
	}
	return f.roundTrip(&f.typical, request).Seconds() + r.arrivalCost(o, (took+exchangeTime).Seconds())
}

// exchange takes orders from drones in flight that other drones serve much better. In a cycle a
// flight gives or gets at most one order, none if it got a CRITICAL one. The plan is that of the
// idle drones.
func (f *amender) exchange(plan solver.Plan) {
	idle := selectDrones(f.problem.Drones, func(id string) bool {
		return !slices.ContainsFunc(plan.Routes, func(r solver.Route) bool { return r.DroneID == id })
	})
	tried, busy := 0, map[*remainingRoute]bool{}
	for k, from := range f.routes {
		if busy[from] || from.changed() || from.flight.OrdersDelivered+len(from.orders) == 1 {
			continue // a mission keeps an order
		}
		for _, o := range f.releasable(from) {
			if tried++; tried > maxExchangesTried {
				return
			}
			without := from.without(o.ID)
			if !without.flyable() {
				continue
			}
			saved := from.cost() - without.cost() - exchangeGain.Seconds()
			if saved <= 0 {
				continue
			}
			to, drone := f.replacement(from, &o, saved, busy, idle)
			if to == nil && drone == "" {
				continue
			}
			f.routes[k], busy[without] = without, true
			if to != nil {
				busy[to] = true
			}
			idle = selectDrones(idle, func(id string) bool { return id != drone })
			break
		}
	}
}

// replacement finds a flight that the next cycle would add a removed order to, or an idle drone if
// it is CRITICAL, at less than the given cost.
func (f *amender) replacement(from *remainingRoute, o *solver.Order, cheaper float64, busy map[*remainingRoute]bool, idle []solver.Drone) (to *remainingRoute, drone string) {
	if o.Priority == solver.Critical {
		if took, id := f.earliest(o, idle); took != never {
			if cost := f.roundTrip(f.droneByID(id), f.request(o)).Seconds() + from.arrivalCost(o, (took+exchangeTime).Seconds()); cost < cheaper {
				drone, cheaper = id, cost
			}
		}
	}
	by, limit := anyTimeIfPast(from.due(o)-exchangeTime.Seconds()), math.Inf(1)
	if o.Priority != solver.Critical {
		limit = f.maxInsertionCost(o)
	}
	sources := f.sourcesOf(o)
	for _, r := range f.routes {
		if r == from || busy[r] || !r.shouldServe(o) {
			continue
		}
		found, ok := r.after(exchangeTime+f.turn).insert(o, sources, by, limit)
		if !ok {
			continue
		}
		if cost := found.detour + found.delayCost + from.arrivalCost(o, found.arrives+exchangeTime.Seconds()); cost < cheaper {
			to, drone, cheaper = r, "", cost
		}
	}
	return to, drone
}

// rememberedFor is how long the planner remembers what it did, so that an order that was
// taken from one drone is not moved back and forth.
const rememberedFor = 30 * time.Minute

// recentChanges are what was done in the last rememberedFor, and when.
type recentChanges[K comparable] map[K]time.Time

// add notes a change, and forgets old ones. It returns false if the change is not new.
func (l *recentChanges[K]) add(what K, now time.Time) bool {
	if *l == nil {
		*l = recentChanges[K]{}
	}
	for k, at := range *l {
		if now.Sub(at) > rememberedFor {
			delete(*l, k)
		}
	}
	if l.has(what) {
		return false
	}
	(*l)[what] = now
	return true
}

// has reports whether something was done recently.
func (l *recentChanges[K]) has(what K) bool {
	_, done := (*l)[what]
	return done
}
