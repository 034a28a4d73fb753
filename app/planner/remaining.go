package planner

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/model"
)

// remainingRoute is the part of a mission under way that the drone has not flown yet, with the
// orders that were added to it and without those that were taken away. Times are in seconds
// from now.
type remainingRoute struct {
	flight          *solver.Flight
	params          solver.Params
	now             time.Time
	stops           []solver.Stop // the last one is the way home
	orders          map[string]solver.Order
	added, released []string

	// By stop: the leg to it in metres, when the drone arrives and leaves, and the weight
	// aboard on leaving.
	legs, arrives, leaves, loads []float64
	ready, load                  float64 // on leaving the place where the drone is predicted to be
	metres                       float64
}

func newRemainingRoute(f *solver.Flight, now time.Time, params solver.Params) *remainingRoute {
	r := &remainingRoute{flight: f, params: params, now: now, stops: slices.Clone(f.Stops), orders: map[string]solver.Order{}}
	for _, o := range f.Orders {
		r.orders[o.ID] = o
	}
	for _, o := range f.Aboard() {
		r.load += o.WeightKg
	}
	r.ready = max(0, f.Ready.Sub(now).Seconds())
	r.schedule()
	return r
}

// schedule computes the figures of the stops.
func (r *remainingRoute) schedule() {
	n := len(r.stops)
	r.legs, r.arrives, r.leaves, r.loads = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	at, clock, load := r.flight.Drone.At, r.ready, r.load
	r.metres = 0
	for i, s := range r.stops {
		r.legs[i] = metres(at, s.At)
		r.metres += r.legs[i]
		r.arrives[i] = clock + r.seconds(r.legs[i])
		r.leaves[i] = r.arrives[i] + r.service(s.Kind)
		switch s.Kind {
		case solver.WarehousePickup:
			load += r.orders[s.OrderID].WeightKg
		case solver.Delivery:
			load -= r.orders[s.OrderID].WeightKg
		case solver.DepotStart, solver.DepotReturn, solver.Charge, solver.Wait:
		}
		at, clock, r.loads[i] = s.At, r.leaves[i], load
	}
}

func (r *remainingRoute) seconds(metres float64) float64 {
	return metres / r.flight.Drone.Speed() * 3.6
}

func (r *remainingRoute) service(kind solver.StopKind) float64 {
	return serviceTime(kind, r.params).Seconds()
}

// departure is the place, the time and the load with which the drone sets out for a stop.
func (r *remainingRoute) departure(i int) (at solver.Location, leaves, load float64) {
	if i == 0 {
		return r.flight.Drone.At, r.ready, r.load
	}
	return r.stops[i-1].At, r.leaves[i-1], r.loads[i-1]
}

// arrival is when the drone delivers an order.
func (r *remainingRoute) arrival(order string) float64 {
	k := slices.IndexFunc(r.stops, func(s solver.Stop) bool { return s.Kind == solver.Delivery && s.OrderID == order })
	return r.arrives[k]
}

// end is when the drone is home.
func (r *remainingRoute) end() float64 { return r.leaves[len(r.leaves)-1] }

// due is an order's deadline.
func (r *remainingRoute) due(o *solver.Order) float64 { return o.Due(r.now).Sub(r.now).Seconds() }

// spare is how many metres and seconds longer the route may become.
func (r *remainingRoute) spare() (metres, seconds float64) {
	d := &r.flight.Drone
	// Which leg a detour makes longer, and with what aboard, is not known here.
	heaviest := max(d.CapacityKg, r.load, slices.Max(r.loads))
	metres = (d.BatteryPercent-r.params.ReservePercent-chargeMargin)/d.ConsumptionWith(heaviest)*1000 - r.metres
	if d.MaxFlight == 0 {
		return metres, math.Inf(1)
	}
	return metres, d.MaxFlight.Seconds() - r.end()
}

// flyable reports whether the drone can still fly the route and land with its reserve: a mission
// may take longer than planned.
func (r *remainingRoute) flyable() bool {
	metres, seconds := r.spare()
	return metres >= 0 && seconds >= 0
}

// canCarry reports whether the drone can have a weight aboard.
func (r *remainingRoute) canCarry(kg float64) bool {
	return r.flight.Drone.CapacityKg == 0 || kg <= r.flight.Drone.CapacityKg
}

// accepts reports whether the drone could have one more order, this one.
func (r *remainingRoute) accepts(o *solver.Order) bool {
	f := r.flight
	return f.OrdersDelivered+len(r.orders) < r.params.MaxOrdersPerRoute && f.StopsBehind+len(r.stops)+2 <= model.MaxWaypointsPerDecision &&
		o.MayGoBy(&f.Drone) && r.canCarry(o.WeightKg)
}

// shouldServe reports whether the drone should take an order. A homebound drone should charge
// first, unless the order is CRITICAL.
func (r *remainingRoute) shouldServe(o *solver.Order) bool {
	return len(r.stops) > 1 || o.Priority == solver.Critical
}

// arrivalPrice is the cost of each second until a delivery, in seconds of a drone's time.
const arrivalPrice = 0.05

// lateCosts are the costs of a late delivery: once, and for each second past the deadline.
var lateCosts = [model.PriorityCount]struct{ once, perSecond float64 }{
	solver.Critical: {1800, 5}, solver.High: {600, 2}, solver.Standard: {300, 1},
}

// arrivalCost is the cost of delivering an order at a time.
func (r *remainingRoute) arrivalCost(o *solver.Order, arrives float64) float64 {
	cost, past := arrivalPrice*arrives, arrives-r.due(o)
	if past <= 0 {
		return cost
	}
	late := lateCosts[o.Priority]
	return cost + late.once + late.perSecond*past
}

// delayCost is the cost of delaying an order that the drone already has; +Inf if that makes a
// CRITICAL order late.
func (r *remainingRoute) delayCost(o *solver.Order, was, is float64) float64 {
	if due := r.due(o); o.Priority == solver.Critical && was <= due && is > due {
		return math.Inf(1)
	}
	return r.arrivalCost(o, is) - r.arrivalCost(o, was)
}

// cost is the drone's time and the cost of all deliveries.
func (r *remainingRoute) cost() float64 {
	sum := r.end()
	for k, s := range r.stops {
		if s.Kind == solver.Delivery {
			o := r.orders[s.OrderID]
			sum += r.arrivalCost(&o, r.arrives[k])
		}
	}
	return sum
}

// changed reports whether the drone flies another route so far.
func (r *remainingRoute) changed() bool {
	return len(r.added)+len(r.released) > 0 ||
		!slices.EqualFunc(r.stops, r.flight.Stops, func(a, b solver.Stop) bool { return a.Kind == b.Kind && a.OrderID == b.OrderID })
}

// clone is a copy that can be changed without changing this route.
func (r *remainingRoute) clone() *remainingRoute {
	c := *r
	c.stops, c.orders = slices.Clone(r.stops), maps.Clone(r.orders)
	c.added, c.released = slices.Clone(r.added), slices.Clone(r.released)
	return &c
}

// without is a copy from which an order is taken away.
func (r *remainingRoute) without(order string) *remainingRoute {
	c := r.clone()
	c.stops = slices.DeleteFunc(c.stops, func(s solver.Stop) bool { return s.OrderID == order })
	delete(c.orders, order)
	c.released = append(c.released, order)
	c.schedule()
	return c
}

// after is the route as far as it can still be changed after a delay.
func (r *remainingRoute) after(delay time.Duration) *remainingRoute {
	c, f := *r, *r.flight
	for f.Committed < len(r.stops)-1 && r.arrives[f.Committed] <= delay.Seconds() {
		f.Committed++
	}
	c.flight = &f
	return &c
}

// amendment is the route as a plan has it.
func (r *remainingRoute) amendment() solver.Amendment {
	before, d := newRemainingRoute(r.flight, r.now, r.params), &r.flight.Drone
	a := solver.Amendment{
		Route:     solver.Route{DroneID: d.ID, DistanceKm: r.metres / 1000, Duration: secondsOf(r.end())},
		MissionID: r.flight.MissionID, Revision: r.flight.Revision, AddedIDs: r.added, ReleasedIDs: r.released,
		Detour: secondsOf(r.end() - before.end()), DetourKm: (r.metres - before.metres) / 1000,
	}
	km := 0.0
	for i, s := range r.stops {
		leg := r.legs[i] / 1000
		_, _, load := r.departure(i)
		km, a.BatteryUsePercent = km+leg, a.BatteryUsePercent+leg*d.ConsumptionWith(load)
		s.ETA, s.DistanceKm, s.BatteryPercent = r.now.Add(secondsOf(r.arrives[i])), km, d.BatteryPercent-a.BatteryUsePercent
		a.Stops = append(a.Stops, s)
	}
	return a
}

func secondsOf(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
