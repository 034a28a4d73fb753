package dispatch

import (
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

// never is an arrival that does not happen.
const never = time.Duration(math.MaxInt64)

// flights answers what one drone can do with one order and nothing else. All orders
// ask about all drones, several times in a cycle, so it remembers what they have in
// common.
type flights struct {
	problem *solver.Problem
	params  solver.Params // defaults applied
	// reach is what is known of the places asked about so far. No two drones are at
	// quite the same place, be they at one depot.
	reach map[solver.Location]reach
	stock map[goods][]int // warehouses that supply them
	legs  map[shipment]legs
	homes map[berth]int // of the problem's depots; see depot
}

func flightsOf(p *solver.Problem) flights {
	return flights{p, p.Params.WithDefaults(), map[solver.Location]reach{}, map[goods][]int{}, map[shipment]legs{}, map[berth]int{}}
}

// berth is what decides where a drone lands.
type berth struct {
	depotID string
	at      solver.Location
}

// reach is the metres from a place to each warehouse, and to the nearest.
type reach struct {
	metres  []float64
	nearest float64
}

// goods are what warehouses can supply or not.
type goods struct {
	productType string
	coldChain   bool
}

// shipment is what orders have in common that come from the same warehouses to the
// same place.
type shipment struct {
	goods
	to solver.Location
}

// legs is the metres from each of some warehouses to a place, and from the nearest.
type legs struct {
	metres   []float64
	shortest float64
}

func (f flights) reachOf(at solver.Location) reach {
	r, known := f.reach[at]
	if !known {
		r = reach{make([]float64, len(f.problem.Warehouses)), math.Inf(1)}
		for i, w := range f.problem.Warehouses {
			r.metres[i] = metres(at, w.At)
			r.nearest = min(r.nearest, r.metres[i])
		}
		f.reach[at] = r
	}
	return r
}

// suppliersOf lists the warehouses from which an order can come.
func (f flights) suppliersOf(o *solver.Order) []int {
	g := goods{o.ProductType, o.ColdChain}
	list, known := f.stock[g]
	if !known {
		for i, w := range f.problem.Warehouses {
			if w.Supplies(*o) {
				list = append(list, i)
			}
		}
		f.stock[g] = list
	}
	return list
}

func (f flights) legsOf(o *solver.Order, suppliers []int) legs {
	s := shipment{goods{o.ProductType, o.ColdChain}, o.Delivery}
	l, known := f.legs[s]
	if !known {
		l = legs{make([]float64, len(suppliers)), math.Inf(1)}
		for i, w := range suppliers {
			l.metres[i] = metres(f.problem.Warehouses[w].At, o.Delivery)
			l.shortest = min(l.shortest, l.metres[i])
		}
		f.legs[s] = l
	}
	return l
}

// errand is one order to be asked about for many drones. It remembers the ways home, and
// the last way out: drones that stand at one depot follow each other.
type errand struct {
	order     *solver.Order
	suppliers []int     // of the problem's warehouses; none if the order has its own pickup point
	legs      legs      // from these to the delivery point
	backs     []float64 // metres from the delivery point to each depot; negative if not known yet
	from      solver.Location
	out       float64 // the way from there; negative if none is known yet
}

func (f flights) errand(o *solver.Order) *errand {
	e := &errand{order: o, out: -1, backs: slices.Repeat([]float64{-1}, len(f.problem.Depots))}
	if o.Pickup == nil {
		e.suppliers = f.suppliersOf(o)
		e.legs = f.legsOf(o, e.suppliers)
	}
	return e
}

// knows tells whether the way from a place is the last one.
func (e *errand) knows(at solver.Location) bool { return e.out >= 0 && at == e.from }

// wayBack is the metres from the delivery point to where a drone lands.
func (f flights) wayBack(e *errand, d *solver.Drone) float64 {
	depot := f.depot(d)
	if depot < 0 {
		return metres(e.order.Delivery, d.At)
	}
	if e.backs[depot] < 0 {
		e.backs[depot] = metres(e.order.Delivery, f.problem.Depots[depot].At)
	}
	return e.backs[depot]
}

// measured is what may be wrong with a distance, as a share of it, and then some.
const measured = 1e-7

// metresPerDegree of latitude there are at least.
const metresPerDegree = 111_000

// least is what the way from a place over a source to the delivery point is at least.
// It looks at no source by itself, and no further once it is above enough.
func (f flights) least(e *errand, at solver.Location, enough float64) float64 {
	if e.knows(at) {
		return (1 - measured) * e.out
	}
	to := e.order.Delivery
	way := metresPerDegree * math.Abs(at.Lat-to.Lat)
	if way <= enough && e.order.Pickup == nil {
		way = (1 - measured) * (f.reachOf(at).nearest + e.legs.shortest)
	}
	if way <= enough {
		way = (1 - measured) * metres(at, to)
	}
	return way
}

// way is the metres from a place over the source that is best to the delivery point;
// +Inf if there is none.
func (f flights) way(e *errand, at solver.Location) float64 {
	if p := e.order.Pickup; p != nil {
		return metres(at, *p) + metres(*p, e.order.Delivery)
	}
	if e.knows(at) {
		return e.out
	}
	r, way := f.reachOf(at), math.Inf(1)
	for i, w := range e.suppliers {
		if via := r.metres[w] + e.legs.metres[i]; via < way { // not a number is no flight
			way = via
		}
	}
	e.from, e.out = at, way
	return way
}

// fly is how long the drone takes to the delivery point when it flies there
// directly, from the source that is best; never if it cannot carry the order
// and come home with its reserve. The second result is the charge, in percent,
// with which it would have to start.
func (f flights) fly(d *solver.Drone, e *errand) (time.Duration, float64) {
	return f.flySooner(d, e, never)
}

// flySooner is fly, but an arrival that is not sooner than another may be told as
// never.
func (f flights) flySooner(d *solver.Drone, e *errand, than time.Duration) (time.Duration, float64) {
	if d.CapacityKg > 0 && e.order.WeightKg > d.CapacityKg {
		return never, math.Inf(1)
	}
	reach := (d.BatteryPercent - f.params.ReservePercent) / d.Consumption() * 1000
	enough := reach
	if than != never {
		enough = min(enough, (than-f.params.PickupService).Hours()*d.Speed()*1000)
	}
	least := f.least(e, d.At, enough)
	if least > enough {
		return never, math.Inf(1)
	}
	back := f.wayBack(e, d)
	if (1-measured)*(least+back) > reach {
		return never, math.Inf(1)
	}
	out := f.way(e, d.At)
	charge := f.params.ReservePercent + (out+back)/1000*d.Consumption()
	if math.IsInf(out, 1) || !(charge <= d.BatteryPercent) {
		return never, math.Inf(1)
	}
	took := flightTime(d, out) + f.params.PickupService
	if d.MaxFlight != 0 && took+f.params.DeliveryService+flightTime(d, back) > d.MaxFlight {
		return never, math.Inf(1)
	}
	return took, charge
}

// arrival is fly for one drone.
func (f flights) arrival(d solver.Drone, o *solver.Order) (time.Duration, float64) {
	return f.fly(&d, f.errand(o))
}

// earliest is the soonest arrival of the order with one of the drones.
func (f flights) earliest(o *solver.Order, drones []solver.Drone) (soonest time.Duration, drone string) {
	soonest = never
	if len(drones) == 0 {
		return soonest, ""
	}
	e := f.errand(o)
	for i := range drones {
		if took, _ := f.flySooner(&drones[i], e, soonest); took < soonest {
			soonest, drone = took, drones[i].ID
		}
	}
	return soonest, drone
}

// roundTrip is how long the drone is away with the order and nothing else; 0 if
// it cannot take it.
func (f flights) roundTrip(d *solver.Drone, e *errand) time.Duration {
	took, _ := f.fly(d, e)
	if took == never {
		return 0
	}
	return took + f.params.DeliveryService + flightTime(d, f.wayBack(e, d))
}

// charged is the drone as it will be when it is back: at its depot, with all its
// charge.
func (f flights) charged(d solver.Drone) solver.Drone {
	d.At, d.BatteryPercent = f.home(&d), 100
	return d
}

// inTime reports whether an arrival after took keeps the order's deadline.
func (f flights) inTime(o *solver.Order, took time.Duration) bool {
	return took != never && !f.problem.Now.Add(took).After(o.Due(f.problem.Now))
}

// home is where the drone lands: its depot, or the nearest one.
func (f flights) home(d *solver.Drone) solver.Location {
	if depot := f.depot(d); depot >= 0 {
		return f.problem.Depots[depot].At
	}
	return d.At
}

// depot is where the drone lands, of the problem's; -1 if there is none.
func (f flights) depot(d *solver.Drone) int {
	key := berth{d.HomeDepotID, d.At}
	depot, known := f.homes[key]
	if !known {
		depot = f.findDepot(d)
		f.homes[key] = depot
	}
	return depot
}

func (f flights) findDepot(d *solver.Drone) int {
	near, nearest := -1, math.Inf(1)
	for i, depot := range f.problem.Depots {
		if depot.ID == d.HomeDepotID {
			return i
		}
		if m := metres(d.At, depot.At); m < nearest {
			near, nearest = i, m
		}
	}
	return near
}

func flightTime(d *solver.Drone, metres float64) time.Duration {
	return time.Duration(metres / 1000 / d.Speed() * float64(time.Hour))
}

func metres(a, b solver.Location) float64 {
	return domain.Position(a).DistanceMetres(domain.Position(b))
}
