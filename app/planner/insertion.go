package planner

import (
	"math"
	"slices"

	"github.com/dronefleet/dronefleet/solver"
)

// insertion is a way to add one order to a remaining route: pickup before one stop and delivery
// before the same or a later one. Times and costs are in seconds.
type insertion struct {
	route            *remainingRoute
	from             solver.Stop // the pickup
	pickup, delivery int         // indices of stops before which they come
	detour           float64     // by which the route becomes longer
	delayCost        float64     // of the other orders
	arrives          float64     // from now
}

func (i insertion) cost() float64 { return i.detour + i.delayCost + arrivalPrice*i.arrives }

// insert finds the cheapest way to add an order from one of the sources that arrives in time and
// costs less than a limit.
func (r *remainingRoute) insert(o *solver.Order, sources []solver.Stop, by, cheaper float64) (best insertion, ok bool) {
	if !r.accepts(o) {
		return best, false
	}
	s := r.searchFor(o, by, cheaper)
	if (1-distanceError)*s.leastDetour > s.spareMetres {
		return best, false
	}
	for _, from := range sources {
		s.tryPickupsAt(from)
	}
	return s.best, s.best.route != nil
}

// insertionSearch looks for the cheapest way to add one order to a remaining route.
type insertionSearch struct {
	*remainingRoute
	order                     *solver.Order
	by, cheaper               float64
	spareMetres, spareSeconds float64
	// By stop, in metres: from the stop before it to the delivery point, and from there to
	// the stop.
	toDelivery, fromDelivery []float64
	leastDetour              float64 // metres by which the delivery alone makes the route longer

	best insertion
}

func (r *remainingRoute) searchFor(o *solver.Order, by, cheaper float64) *insertionSearch {
	n := len(r.stops)
	s := &insertionSearch{remainingRoute: r, order: o, by: by, cheaper: cheaper, toDelivery: make([]float64, n), fromDelivery: make([]float64, n), leastDetour: math.Inf(1)}
	s.spareMetres, s.spareSeconds = r.spare()
	for i := r.flight.Committed; i < n; i++ {
		at, _, _ := r.departure(i)
		s.toDelivery[i], s.fromDelivery[i] = metres(at, o.Delivery), metres(o.Delivery, r.stops[i].At)
		s.leastDetour = min(s.leastDetour, s.toDelivery[i]+s.fromDelivery[i]-r.legs[i])
	}
	return s
}

// pickup is a way to fetch the order: at a new stop before one of the route.
type pickup struct {
	from        solver.Stop
	before      int     // index of a stop
	to, direct  float64 // metres to it, and on to the delivery point
	leaves      float64 // with the parcel
	extraMetres float64 // if the drone then flies to the stop
	delay       float64 // of that stop
}

// tryPickupsAt tries to fetch the order at a source, before each stop that is not committed.
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

// consider keeps an insertion if it is the best one so far. It makes the route longer by metres
// and delivers the order at arrives.
func (s *insertionSearch) consider(p pickup, delivery int, metres, arrives float64) {
	detour := s.seconds(metres) + s.service(solver.WarehousePickup) + s.service(solver.Delivery)
	i := insertion{s.remainingRoute, p.from, p.before, delivery, detour, 0, arrives}
	if arrives > s.by || metres > s.spareMetres || detour > s.spareSeconds || i.cost() >= s.cheaper {
		return
	}
	if i.delayCost = s.insertionDelayCost(p.before, delivery, p.delay, detour); i.cost() < s.cheaper {
		s.best, s.cheaper = i, i.cost()
	}
}

// insertionDelayCost is the cost of delaying the stops from the pickup on by delay, and those from
// the delivery on by detour.
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
