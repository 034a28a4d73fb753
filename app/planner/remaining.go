package planner

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/model"
)

// rest is what is left of a mission under way, with the orders that were added to it and
// without those that were taken away.
type remainingRoute struct {
	flight          *solver.Flight
	params          solver.Params
	now             time.Time
	stops           []solver.Stop
	orders          map[string]solver.Order
	added, released []string

	// By stop: the leg to it in metres, when the drone arrives and leaves, in seconds from
	// now, and the weight aboard on leaving. The last stop is the way home.
	legs, arrives, leaves, loads []float64
	ready, load                  float64 // on leaving the place where the drone is predicted to be
	metres                       float64
}

// onlyReturns reports whether the drone has nothing left to do but to fly home.
func (r *remainingRoute) onlyReturns() bool { return len(r.stops) == 1 }

// shouldServe reports whether the drone should take an order: one that goes home is of more use
// once it is charged, except to a CRITICAL order.
func (r *remainingRoute) shouldServe(o *solver.Order) bool {
	return !r.onlyReturns() || o.Priority == solver.Critical
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

// time computes the rest's timetable.
func (r *remainingRoute) schedule() {
	n := len(r.stops)
	r.legs, r.arrives, r.leaves, r.loads = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	at, clock, load := r.flight.Drone.At, r.ready, r.load
	r.metres = 0
	for i, s := range r.stops {
		r.legs[i] = metres(at, s.At)
		r.metres += r.legs[i]
		clock += r.seconds(r.legs[i])
		r.arrives[i] = clock
		clock += r.service(s.Kind)
		r.leaves[i] = clock
		switch s.Kind {
		case solver.WarehousePickup:
			load += r.orders[s.OrderID].WeightKg
		case solver.Delivery:
			load -= r.orders[s.OrderID].WeightKg
		case model.DepotStart, solver.DepotReturn:
		}
		r.loads[i], at = load, s.At
	}
}

func (r *remainingRoute) seconds(metres float64) float64 {
	return metres / r.flight.Drone.Speed() * 3.6
}

func (r *remainingRoute) service(kind solver.StopKind) float64 {
	switch kind {
	case solver.WarehousePickup:
		return r.params.PickupService.Seconds()
	case solver.Delivery:
		return r.params.DeliveryService.Seconds()
	case model.DepotStart, solver.DepotReturn:
	}
	return 0
}

// departure is the place, the time and the load with which the drone sets out for a stop.
func (r *remainingRoute) departure(i int) (at solver.Location, leaves, load float64) {
	if i == 0 {
		return r.flight.Drone.At, r.ready, r.load
	}
	return r.stops[i-1].At, r.leaves[i-1], r.loads[i-1]
}

// insertion is a way to add one order to a rest: pickup before one stop and delivery
// before the same or a later one.
type insertion struct {
	route            *remainingRoute
	from             solver.Stop // the pickup
	pickup, delivery int         // indices of stops before which they come
	detour           float64     // seconds that the rest becomes longer
	delayCost        float64     // cost of what the others arrive later, in seconds
	arrives          float64     // of the order, seconds from now
}

func (i insertion) cost() float64 { return i.detour + i.delayCost + arrivalPrice*i.arrives }

// What it costs, in seconds of a drone's time, that an order arrives later.
const (
	arrivalPrice = 0.05 // for each second, in time
	// Once if it is late, and for each second past the deadline.
	criticalMadeLate, criticalLatePrice = 1800, 5
	highMadeLate, highLatePrice         = 600, 2
	standardMadeLate, standardLatePrice = 300, 1
)

// arrivalCost is the cost, in seconds of a drone's time, of delivering an order at a time, given in
// seconds from now.
func (r *remainingRoute) arrivalCost(o *solver.Order, arrives float64) float64 {
	price, past := arrivalPrice*arrives, arrives-r.due(o)
	if past <= 0 {
		return price
	}
	switch o.Priority {
	case solver.Critical:
		return price + criticalMadeLate + criticalLatePrice*past
	case solver.High:
		return price + highMadeLate + highLatePrice*past
	case solver.Standard:
	}
	return price + standardMadeLate + standardLatePrice*past
}

// due is an order's deadline, in seconds from now.
func (r *remainingRoute) due(o *solver.Order) float64 { return o.Due(r.now).Sub(r.now).Seconds() }

// delayCost is the cost of the delay of an order that the drone has already; +Inf if the order is
// CRITICAL and would be made late.
func (r *remainingRoute) delayCost(o *solver.Order, was, is float64) float64 {
	if due := r.due(o); o.Priority == solver.Critical && was <= due && is > due {
		return math.Inf(1)
	}
	return r.arrivalCost(o, is) - r.arrivalCost(o, was)
}

// cost is what the rest costs: the drone's time, and that of all its deliveries.
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

// insert finds the cheapest way to add an order, fetched at one of the stops given, such
// that it arrives by the given number of seconds and the whole costs less than given.
func (r *remainingRoute) insert(o *solver.Order, sources []solver.Stop, by, cheaper float64) (best insertion, ok bool) {
	if !r.accepts(o) {
		return best, false
	}
	s := r.searchFor(o, by, cheaper)
	for _, from := range sources {
		s.tryPickupsAt(from)
	}
	return s.best, s.found
}

// accepts reports whether the drone could have one more order, this one.
func (r *remainingRoute) accepts(o *solver.Order) bool {
	f := r.flight
	return f.OrdersDelivered+len(r.orders) < r.params.MaxOrdersPerRoute && f.StopsBehind+len(r.stops)+2 <= model.MaxWaypointsPerDecision &&
		o.Allows(f.Drone.ID) && r.canCarry(o.WeightKg)
}

// canCarry reports whether the drone can have a weight aboard.
func (r *remainingRoute) canCarry(kg float64) bool {
	return r.flight.Drone.CapacityKg == 0 || kg <= r.flight.Drone.CapacityKg
}

// spare is how many metres and seconds longer the rest may become.
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

// flyable reports whether the drone can fly the rest and land with its reserve: a mission may
// take longer than it was planned to.
func (r *remainingRoute) flyable() bool {
	metres, seconds := r.spare()
	return metres >= 0 && seconds >= 0
}

// end is when the rest ends, in seconds from now.
func (r *remainingRoute) end() float64 { return r.leaves[len(r.leaves)-1] }

// insertionSearch looks for the cheapest way to add one order to a rest.
type insertionSearch struct {
	*remainingRoute
	order                     *solver.Order
	by, cheaper               float64
	spareMetres, spareSeconds float64
	// By stop, in metres: from the stop before it to the delivery point, and from there to
	// the stop.
	toDelivery, fromDelivery []float64

	best  insertion
	found bool
}

func (r *remainingRoute) searchFor(o *solver.Order, by, cheaper float64) *insertionSearch {
	n := len(r.stops)
	s := &insertionSearch{remainingRoute: r, order: o, by: by, cheaper: cheaper, toDelivery: make([]float64, n), fromDelivery: make([]float64, n)}
	s.spareMetres, s.spareSeconds = r.spare()
	for i := r.flight.Committed; i < n; i++ {
		at, _, _ := r.departure(i)
		s.toDelivery[i], s.fromDelivery[i] = metres(at, o.Delivery), metres(o.Delivery, r.stops[i].At)
	}
	return s
}

// pickup is a way to fetch the order: at a stop of its own before one of the rest.
type pickup struct {
	from        solver.Stop
	before      int     // index of a stop
	to, direct  float64 // metres to it, and on to the delivery point
	leaves      float64 // with the parcel, in seconds from now
	extraMetres float64 // if the drone then flies to the stop
	delay       float64 // of that stop, in seconds
}

// tryPickupsAt tries to fetch the order there, before each stop that is not committed.
func (s *insertionSearch) tryPickupsAt(from solver.Stop) {
	direct := metres(from.At, s.order.Delivery)
	for i := s.flight.Committed; i < len(s.stops); i++ {
		at, leaves, load := s.departure(i)
		if !s.canCarry(load + s.order.WeightKg) {
			continue
		}
		p := pickup{from: from, before: i, to: metres(at, from.At), direct: direct}
		p.leaves = leaves + s.seconds(p.to) + s.service(solver.WarehousePickup)
		if p.leaves+s.seconds(direct) > s.by {
			continue
		}
		p.extraMetres = p.to + metres(from.At, s.stops[i].At) - s.legs[i]
		p.delay = s.seconds(p.extraMetres) + s.service(solver.WarehousePickup)
		s.tryDeliveriesAfter(p)
	}
}

// tryDeliveriesAfter tries to deliver before the stop that follows the pickup, and before
// each later one, as far as the drone can carry the parcel.
func (s *insertionSearch) tryDeliveriesAfter(p pickup) {
	s.consider(p, p.before, p.to+p.direct+s.fromDelivery[p.before]-s.legs[p.before], p.leaves+s.seconds(p.direct))
	for j := p.before + 1; j < len(s.stops) && s.canCarry(s.loads[j-1]+s.order.WeightKg); j++ {
		s.consider(p, j, p.extraMetres+s.toDelivery[j]+s.fromDelivery[j]-s.legs[j], s.leaves[j-1]+p.delay+s.seconds(s.toDelivery[j]))
	}
}

// consider keeps an insertion if it is the best one so far. metres is how much longer it makes
// the rest, arrives when it delivers the order, in seconds from now.
func (s *insertionSearch) consider(p pickup, delivery int, metres, arrives float64) {
	detour := s.seconds(metres) + s.service(solver.WarehousePickup) + s.service(solver.Delivery)
	i := insertion{s.remainingRoute, p.from, p.before, delivery, detour, 0, arrives}
	if arrives > s.by || metres > s.spareMetres || detour > s.spareSeconds || i.cost() >= s.cheaper {
		return
	}
	if i.delayCost = s.insertionDelayCost(p.before, delivery, p.delay, detour); i.cost() < s.cheaper {
		s.best, s.found, s.cheaper = i, true, i.cost()
	}
}

// insertionDelayCost prices that the stops from one on arrive later by delay, and those from a later
// one on by detour.
func (r *remainingRoute) insertionDelayCost(pickup, delivery int, delay, detour float64) (sum float64) {
	for k := pickup; k < len(r.stops); k++ {
		if k >= delivery {
			delay = detour
		}
		if s := &r.stops[k]; s.Kind == solver.Delivery {
			o := r.orders[s.OrderID]
			sum += r.delayCost(&o, r.arrives[k], r.arrives[k]+delay)
		}
	}
	return sum
}

// apply adds an order.
func (r *remainingRoute) apply(i insertion, o *solver.Order) {
	i.from.OrderID = o.ID
	stops := slices.Insert(slices.Clone(r.stops), i.delivery, solver.Stop{Kind: solver.Delivery, At: o.Delivery, OrderID: o.ID})
	r.stops = slices.Insert(stops, i.pickup, i.from)
	r.orders[o.ID] = *o
	r.added = append(r.added, o.ID)
	r.schedule()
}

// changed reports whether the rest is another one than the drone flies.
func (r *remainingRoute) changed() bool {
	return len(r.added)+len(r.released) > 0 ||
		!slices.EqualFunc(r.stops, r.flight.Stops, func(a, b solver.Stop) bool { return a.Kind == b.Kind && a.OrderID == b.OrderID })
}

// clone is a rest that can be changed without changing this one.
func (r *remainingRoute) clone() *remainingRoute {
	c := *r
	c.stops, c.orders = slices.Clone(r.stops), maps.Clone(r.orders)
	c.added, c.released = slices.Clone(r.added), slices.Clone(r.released)
	return &c
}

// amendment is the rest as a plan has it.
func (r *remainingRoute) amendment() solver.Amendment {
	before := newRemainingRoute(r.flight, r.now, r.params)
	d := &r.flight.Drone
	a := solver.Amendment{
		MissionID: r.flight.MissionID, Revision: r.flight.Revision, AddedIDs: r.added, ReleasedIDs: r.released,
		Detour: secondsOf(r.end() - before.end()), DetourKm: (r.metres - before.metres) / 1000,
	}
	a.DroneID, a.DistanceKm, a.Duration = d.ID, r.metres/1000, secondsOf(r.end())
	km, load := 0.0, 0.0
	for _, o := range r.flight.Aboard() {
		load += o.WeightKg
	}
	for i, s := range r.stops {
		leg := r.legs[i] / 1000
		km, a.BatteryUsePercent = km+leg, a.BatteryUsePercent+leg*d.ConsumptionWith(load)
		s.ETA, s.DistanceKm, s.BatteryPercent = r.now.Add(secondsOf(r.arrives[i])), km, d.BatteryPercent-a.BatteryUsePercent
		a.Stops = append(a.Stops, s)
		switch s.Kind {
		case solver.WarehousePickup:
			load += r.orders[s.OrderID].WeightKg
		case solver.Delivery:
			load -= r.orders[s.OrderID].WeightKg
		case solver.DepotStart, solver.DepotReturn, solver.Charge, solver.Wait:
		}
	}
	return a
}

func secondsOf(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
