package clairvoyant

import (
	"math"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

// reservePercent is the charge with which a drone lands.
const reservePercent = 20

// seconds is a time since the beginning of the day, or a duration.
type seconds = float64

// order is one that is served in time or not at all.
type order struct {
	created, due seconds
	pickups      []int // points
	delivery     int   // point
	kg           float64
	priority     domain.Priority
}

// drone is one at the beginning of the day.
type drone struct {
	start, home   int // points
	battery       float64
	percentPerSec float64 // of flight
	capacityKg    float64
	maxFlight     seconds
}

// problem is a day in the form that the search needs. Flights between points are in
// seconds.
type problem struct {
	orders []order
	drones []drone
	flight [][]seconds

	points []domain.Position
	index  map[domain.Position]int
}

// newProblem reads a day that begins at a time.
func newProblem(w *fleetsim.World, orders []domain.Order, begin time.Time) *problem {
	p := &problem{index: map[domain.Position]int{}}
	homes := map[domain.DepotID]int{}
	for _, d := range w.Depots {
		homes[d.ID] = p.point(d.Position)
	}
	for _, d := range w.Drones {
		p.drones = append(p.drones, drone{
			start: p.point(d.Position), home: homes[d.HomeDepotID], battery: d.Battery,
			percentPerSec: d.ConsumptionPerKm * fleetsim.CruiseKmh / 3600, capacityKg: d.PayloadCapacityKg,
			maxFlight: float64(d.MaxFlightTimeMinutes) * 60,
		})
	}
	for _, o := range orders {
		list := []int(nil)
		if o.Pickup != nil {
			list = append(list, p.point(*o.Pickup))
		} else {
			for _, wh := range w.Warehouses {
				if supplies(wh, o) {
					list = append(list, p.point(wh.Position))
				}
			}
		}
		p.orders = append(p.orders, order{
			created: o.CreatedAt.Sub(begin).Seconds(), due: o.Deadline.Sub(begin).Seconds(),
			pickups: list, delivery: p.point(o.Delivery), kg: o.WeightKg, priority: o.Priority,
		})
	}
	for _, a := range p.points {
		row := make([]seconds, len(p.points))
		for j, b := range p.points {
			row[j] = a.DistanceMetres(b) / 1000 / fleetsim.CruiseKmh * 3600
		}
		p.flight = append(p.flight, row)
	}
	return p
}

func supplies(w domain.Warehouse, o domain.Order) bool {
	for _, product := range w.ProductTypes {
		if product == o.ProductType {
			return w.ColdStorage || !o.ColdChain
		}
	}
	return false
}

// point is the index of a position.
func (p *problem) point(at domain.Position) int {
	i, known := p.index[at]
	if !known {
		i = len(p.points)
		p.index[at] = i
		p.points = append(p.points, at)
	}
	return i
}

// stop is a visit at a pickup or a delivery point.
type stop struct {
	order, point int
	pickup       bool
}

// trip is a flight from a depot, or from where a drone begins the day, to its depot.
type trip []stop

// ready is when and where a drone can begin its next trip, and with which charge.
type ready struct {
	at      seconds
	point   int
	battery float64
}

// flight is a trip that was flown.
type flight struct {
	leaves, flown seconds
	landed        ready
}

// fly flies a trip so that it ends as early as possible. It fails if a delivery is late, or if charge,
// payload or flight time do not suffice.
func (p *problem) fly(d *drone, from ready, t trip) (_ flight, ok bool) {
	at, kg, flown := from.point, 0.0, 0.0
	for _, s := range t {
		flown += p.flight[at][s.point]
		at = s.point
		if kg += p.loaded(s); kg > d.capacityKg+1e-9 {
			return flight{}, false
		}
	}
	flown += p.flight[at][d.home]
	need := reservePercent + flown*d.percentPerSec
	if need > 100 {
		return flight{}, false
	}
	leaves, battery := from.at, from.battery
	if battery < need {
		if from.point != d.home {
			return flight{}, false
		}
		leaves += (need - battery) / chargePerSecond
	}
	// Nothing is won by leaving before the first parcel can be taken.
	leaves = max(leaves, p.orders[t[0].order].created-p.flight[from.point][t[0].point])
	now, at, waited := leaves, from.point, 0.0
	delay := inf // by which it may leave later and still deliver in time
	for _, s := range t {
		now += p.flight[at][s.point]
		at = s.point
		o := &p.orders[s.order]
		if s.pickup {
			waited += max(0, o.created-now)
			now = max(now, o.created)
		} else {
			if now > o.due {
				return flight{}, false
			}
			delay = min(delay, o.due-now+waited)
		}
		now += fleetsim.Dwell.Seconds()
	}
	now += p.flight[at][d.home]
	// It waits at its depot rather than on the way.
	leaves += max(0, min(delay, waited))
	if d.maxFlight > 0 && now-leaves > d.maxFlight {
		return flight{}, false
	}
	if from.point == d.home {
		battery = min(100, battery+(leaves-from.at)*chargePerSecond)
	}
	return flight{leaves, flown, ready{now, d.home, battery - flown*d.percentPerSec}}, true
}

const chargePerSecond = fleetsim.ChargePerMinute / 60

// loaded is what a stop adds to the load, in kg.
func (p *problem) loaded(s stop) float64 {
	if s.pickup {
		return p.orders[s.order].kg
	}
	return -p.orders[s.order].kg
}

// schedule is what one drone flies on the day. It is never modified.
type schedule struct {
	trips   []trip
	begins  []ready  // before each trip; one more: after the last
	flights []flight // of the trips
}

// extend is the schedule with another list of trips from trip k on; nil if it cannot be
// flown.
func (p *problem) extend(d *drone, s *schedule, k int, rest []trip) *schedule {
	next := &schedule{
		trips:   append(s.trips[:k:k], rest...),
		begins:  append(make([]ready, 0, k+len(rest)+1), s.begins[:k+1]...),
		flights: append(make([]flight, 0, k+len(rest)), s.flights[:k]...),
	}
	for _, t := range rest {
		f, ok := p.fly(d, next.begins[len(next.begins)-1], t)
		if !ok {
			return nil
		}
		next.begins, next.flights = append(next.begins, f.landed), append(next.flights, f)
	}
	return next
}

// fits reports whether the trips from k on can still be flown after the one before lands
// as given.
func (p *problem) fits(d *drone, s *schedule, k int, landed ready) bool {
	for ; k < len(s.trips); k++ {
		// Landing as early and as full as before leaves the later trips as they are.
		if b := s.begins[k]; landed.at <= b.at && landed.battery >= b.battery {
			return true
		}
		f, ok := p.fly(d, landed, s.trips[k])
		if !ok {
			return false
		}
		landed = f.landed
	}
	return true
}

// empty is the schedule of a drone that does not fly.
func (d *drone) empty() *schedule {
	return &schedule{begins: []ready{{0, d.start, d.battery}}}
}

var inf = math.Inf(1)
