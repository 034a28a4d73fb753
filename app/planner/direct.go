package planner

import (
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

// never is the arrival of a flight that cannot be made.
const never = time.Duration(math.MaxInt64)

// directFlights answers what one drone can do with one order and nothing else:
// fly to the best source of the parcel, to the delivery point and home. A cycle
// asks this for every order and every drone several times, so distances are
// remembered.
type directFlights struct {
	problem *solver.Problem
	params  solver.Params // defaults applied
	// approaches is by drone position. Drones rarely share one exactly, even at
	// the same depot.
	approaches map[solver.Location]approach
	suppliers  map[productNeed][]int // indices of warehouses
	supply     map[supplyKey]supplyLegs
	landings   map[landingKey]int // indices of depots; see depot
}

func newDirectFlights(p *solver.Problem) directFlights {
	return directFlights{
		p, p.Params.WithDefaults(), map[solver.Location]approach{}, map[productNeed][]int{}, map[supplyKey]supplyLegs{}, map[landingKey]int{},
	}
}

// landingKey is what decides at which depot a drone lands.
type landingKey struct {
	homeDepotID string
	at          solver.Location
}

// approach is the distance in metres from one position to each warehouse, and
// to the nearest.
type approach struct {
	metres  []float64
	nearest float64
}

// productNeed is what decides which warehouses can supply an order.
type productNeed struct {
	productType string
	coldChain   bool
}

// supplyKey is what decides the distances from an order's suppliers to its
// delivery point.
type supplyKey struct {
	productNeed
	delivery solver.Location
}

// supplyLegs is the distance in metres from each supplier to a delivery point,
// and from the nearest.
type supplyLegs struct {
	metres   []float64
	shortest float64
}

// remember returns the value of a key, which is computed once.
func remember[K comparable, V any](known map[K]V, key K, compute func() V) V {
	v, is := known[key]
	if !is {
		v = compute()
		known[key] = v
	}
	return v
}

func (f directFlights) approachFrom(at solver.Location) approach {
	return remember(f.approaches, at, func() approach {
		a := approach{make([]float64, len(f.problem.Warehouses)), math.Inf(1)}
		for i, w := range f.problem.Warehouses {
			a.metres[i] = metres(at, w.At)
			a.nearest = min(a.nearest, a.metres[i])
		}
		return a
	})
}

// suppliersOf lists the warehouses that can supply an order.
func (f directFlights) suppliersOf(o *solver.Order) []int {
	return remember(f.suppliers, productNeed{o.ProductType, o.ColdChain}, func() (list []int) {
		for i, w := range f.problem.Warehouses {
			if w.Supplies(*o) {
				list = append(list, i)
			}
		}
		return list
	})
}

func (f directFlights) supplyLegsOf(o *solver.Order, suppliers []int) supplyLegs {
	return remember(f.supply, supplyKey{productNeed{o.ProductType, o.ColdChain}, o.Delivery}, func() supplyLegs {
		legs := supplyLegs{make([]float64, len(suppliers)), math.Inf(1)}
		for i, w := range suppliers {
			legs.metres[i] = metres(f.problem.Warehouses[w].At, o.Delivery)
			legs.shortest = min(legs.shortest, legs.metres[i])
		}
		return legs
	})
}

// request is one order that many drones are tried for. It remembers the distance
// home from the delivery point, and the last distance to it: drones at one
// position often follow each other.
type request struct {
	order     *solver.Order
	suppliers []int      // indices of warehouses; none if the order has its own pickup point
	legs      supplyLegs // of its own pickup point only the shortest
	homeward  []float64  // metres from the delivery point to each depot; negative if not computed yet
	lastFrom  solver.Location
	lastOut   float64 // metres from lastFrom over the best source to the delivery point; negative if none yet
}

func (f directFlights) request(o *solver.Order) *request {
	r := &request{order: o, lastOut: -1, homeward: slices.Repeat([]float64{-1}, len(f.problem.Depots))}
	if p := o.Pickup; p != nil {
		r.legs.shortest = metres(*p, o.Delivery)
		return r
	}
	r.suppliers = f.suppliersOf(o)
	r.legs = f.supplyLegsOf(o, r.suppliers)
	return r
}

func (r *request) remembers(at solver.Location) bool { return r.lastOut >= 0 && at == r.lastFrom }

// homewardMetres is the distance from the delivery point to where the drone lands.
func (f directFlights) homewardMetres(r *request, d *solver.Drone) float64 {
	return f.homewardTo(r, f.depot(d), d)
}

// homewardTo is homewardMetres for the depot where the drone lands, by its index.
func (f directFlights) homewardTo(r *request, depot int, d *solver.Drone) float64 {
	if depot < 0 {
		return metres(r.order.Delivery, d.At)
	}
	if r.homeward[depot] < 0 {
		r.homeward[depot] = metres(r.order.Delivery, f.problem.Depots[depot].At)
	}
	return r.homeward[depot]
}

// distanceError bounds the relative rounding error of a distance, generously.
const distanceError = 1e-7

// metresPerDegree is a lower bound for one degree of latitude.
const metresPerDegree = 111_000

// outwardBound is a lower bound in metres for outwardMetres that does not look at single sources.
// It stops refining once it exceeds enough.
func (f directFlights) outwardBound(r *request, at solver.Location, enough float64) float64 {
	if r.remembers(at) {
		return (1 - distanceError) * r.lastOut
	}
	to := r.order.Delivery
	bound := metresPerDegree * math.Abs(at.Lat-to.Lat)
	if bound <= enough && r.order.Pickup == nil {
		bound = (1 - distanceError) * (f.approachFrom(at).nearest + r.legs.shortest)
	}
	if bound <= enough {
		bound = (1 - distanceError) * metres(at, to)
	}
	return bound
}

// outwardMetres is the distance from a position over the best source to the
// delivery point; +Inf if there is no source.
func (f directFlights) outwardMetres(r *request, at solver.Location) float64 {
	if p := r.order.Pickup; p != nil {
		return metres(at, *p) + r.legs.shortest
	}
	if r.remembers(at) {
		return r.lastOut
	}
	out := r.viaSupplier(f.approachFrom(at))
	r.lastFrom, r.lastOut = at, out
	return out
}

// viaSupplier is the distance over the best warehouse to the delivery point; +Inf if there is none.
func (r *request) viaSupplier(from approach) float64 {
	out := math.Inf(1)
	for i, w := range r.suppliers {
		if via := from.metres[w] + r.legs.metres[i]; via < out { // false for NaN
			out = via
		}
	}
	return out
}

// try returns how long the drone takes to the delivery point, and the charge in
// percent with which it must start. It returns never if the drone cannot carry
// the order and land with the charge it must keep.
func (f directFlights) try(d *solver.Drone, r *request) (took time.Duration, charge float64) {
	return f.trySooner(d, r, never)
}

// trySooner is try, but may return never for an arrival that is not sooner than
// the given one.
func (f directFlights) trySooner(d *solver.Drone, r *request, than time.Duration) (took time.Duration, charge float64) {
	if d.CapacityKg > 0 && r.order.WeightKg > d.CapacityKg || !r.order.MayGoBy(d) {
		return never, math.Inf(1)
	}
	reach := (d.BatteryPercent - f.params.ReservePercent) / d.Consumption() * 1000
	enough := reach
	if than != never {
		enough = min(enough, (than-f.params.PickupService).Hours()*d.Speed()*1000)
	}
	bound := f.outwardBound(r, d.At, enough)
	if bound > enough {
		return never, math.Inf(1)
	}
	back := f.homewardMetres(r, d)
	if (1-distanceError)*(bound+back) > reach {
		return never, math.Inf(1)
	}
	if took, charge = f.need(d, r); !(charge <= d.BatteryPercent) {
		return never, math.Inf(1)
	}
	return took, charge
}

// need is how long a drone takes to deliver the order, whatever its charge, and
// the charge in percent with which it must start. The charge is +Inf if the flight
// is longer than the drone's flight time or there is no source.
func (f directFlights) need(d *solver.Drone, r *request) (took time.Duration, charge float64) {
	return f.needFor(d, f.outwardMetres(r, d.At), f.homewardMetres(r, d))
}

// needFor is need for the given distances, in metres, to the delivery point and home.
func (f directFlights) needFor(d *solver.Drone, out, back float64) (took time.Duration, charge float64) {
	charge = f.params.ReservePercent + (out+back)/1000*d.Consumption()
	if math.IsInf(out, 1) || math.IsNaN(charge) {
		return never, math.Inf(1)
	}
	took = flightTime(d, out) + f.params.PickupService
	if d.MaxFlight != 0 && took+f.params.DeliveryService+flightTime(d, back) > d.MaxFlight {
		return took, math.Inf(1)
	}
	return took, charge
}

// tryOne is try for a single pair.
func (f directFlights) tryOne(d solver.Drone, o *solver.Order) (took time.Duration, charge float64) {
	return f.try(&d, f.request(o))
}

// unrestricted is an order that every drone may carry, to judge drones that stand for others.
func unrestricted(o *solver.Order) *solver.Order {
	if !o.Restricted() {
		return o
	}
	plain := *o
	plain.PinnedDroneID, plain.ForbiddenDroneIDs = "", nil
	return &plain
}

// earliest is the soonest arrival of an order with one of the drones, and the
// drone; never and "" if none can.
func (f directFlights) earliest(o *solver.Order, drones []solver.Drone) (soonest time.Duration, drone string) {
	soonest = never
	if len(drones) == 0 {
		return soonest, ""
	}
	r := f.request(o)
	for i := range drones {
		if took, _ := f.trySooner(&drones[i], r, soonest); took < soonest {
			soonest, drone = took, drones[i].ID
		}
	}
	return soonest, drone
}

// roundTrip is how long the drone is away for the order alone; 0 if it cannot
// take it.
func (f directFlights) roundTrip(d *solver.Drone, r *request) time.Duration {
	took, _ := f.try(d, r)
	if took == never {
		return 0
	}
	return took + f.params.DeliveryService + flightTime(d, f.homewardMetres(r, d))
}

// charged is the drone as it will be once it is back at its depot and full.
func (f directFlights) charged(d solver.Drone) solver.Drone {
	d.At, d.BatteryPercent = f.home(&d), 100
	return d
}

// inTime reports whether an arrival after took meets the order's deadline.
func (f directFlights) inTime(o *solver.Order, took time.Duration) bool {
	return took != never && !f.problem.Now.Add(took).After(o.Due(f.problem.Now))
}

// home is where the drone lands: its depot, or the nearest one.
func (f directFlights) home(d *solver.Drone) solver.Location {
	if depot := f.depot(d); depot >= 0 {
		return f.problem.Depots[depot].At
	}
	return d.At
}

// depot is the index of the depot where the drone lands; -1 if there is none.
func (f directFlights) depot(d *solver.Drone) int {
	return remember(f.landings, landingKey{d.HomeDepotID, d.At}, func() int {
		nearest, best := -1, math.Inf(1)
		for i, depot := range f.problem.Depots {
			if depot.ID == d.HomeDepotID {
				return i
			}
			if m := metres(d.At, depot.At); m < best {
				nearest, best = i, m
			}
		}
		return nearest
	})
}

func flightTime(d *solver.Drone, metres float64) time.Duration {
	return time.Duration(metres / 1000 / d.Speed() * float64(time.Hour))
}

func metres(a, b solver.Location) float64 {
	return domain.Position(a).DistanceMetres(domain.Position(b))
}
