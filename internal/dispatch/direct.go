package dispatch

import (
	"math"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

// never is an arrival that does not happen.
const never = time.Duration(math.MaxInt64)

// flights answers what one drone can do with one order and nothing else.
type flights struct {
	problem *solver.Problem
	params  solver.Params // defaults applied
	// reach is the metres to each warehouse from the places asked about so far. All
	// orders ask about all drones, and no two drones are at quite the same place, be
	// they at one depot.
	reach map[solver.Location][]float64
}

func flightsOf(p *solver.Problem) flights {
	return flights{p, p.Params.WithDefaults(), map[solver.Location][]float64{}}
}

// reachOf lists the metres from a place to each warehouse.
func (f flights) reachOf(at solver.Location) []float64 {
	reach, known := f.reach[at]
	if !known {
		reach = make([]float64, len(f.problem.Warehouses))
		for i, w := range f.problem.Warehouses {
			reach[i] = metres(at, w.At)
		}
		f.reach[at] = reach
	}
	return reach
}

// errand is one order to be asked about for many drones. It remembers the legs
// that drones have in common: most land at the same depot.
type errand struct {
	order   *solver.Order
	sources []int           // of the problem's warehouses; 0 for the order's own pickup point
	legs    []float64       // metres from each source to the delivery point
	from    solver.Location // where the last drone stood
	reach   []float64       // metres from there to each warehouse, or to the pickup point
	home    solver.Location // of the last drone
	back    float64         // metres from the delivery point to there
}

func (f flights) errand(o *solver.Order) *errand {
	e := &errand{order: o, back: -1}
	if o.Pickup != nil {
		e.sources, e.legs = []int{0}, []float64{metres(*o.Pickup, o.Delivery)}
		return e
	}
	for i, w := range f.problem.Warehouses {
		if w.Supplies(*o) {
			e.sources, e.legs = append(e.sources, i), append(e.legs, metres(w.At, o.Delivery))
		}
	}
	return e
}

// approach brings what an errand remembers up to a drone.
func (f flights) approach(e *errand, at, home solver.Location) {
	if e.back < 0 || home != e.home {
		e.home, e.back = home, metres(e.order.Delivery, home)
	}
	if e.reach != nil && at == e.from {
		return
	}
	e.from = at
	if e.order.Pickup != nil {
		e.reach = append(e.reach[:0], metres(at, *e.order.Pickup))
	} else {
		e.reach = f.reachOf(at)
	}
}

// fly is how long the drone takes to the delivery point when it flies there
// directly, from the source that is best; never if it cannot carry the order
// and come home with its reserve. The second result is the charge, in percent,
// with which it would have to start.
func (f flights) fly(d *solver.Drone, e *errand) (time.Duration, float64) {
	if d.CapacityKg > 0 && e.order.WeightKg > d.CapacityKg {
		return never, math.Inf(1)
	}
	f.approach(e, d.At, f.home(d))
	out := math.Inf(1)
	for i, s := range e.sources {
		if way := e.reach[s] + e.legs[i]; way < out { // not a number is no flight
			out = way
		}
	}
	charge := f.params.ReservePercent + (out+e.back)/1000*d.Consumption()
	if math.IsInf(out, 1) || !(charge <= d.BatteryPercent) {
		return never, math.Inf(1)
	}
	took := flightTime(d, out) + f.params.PickupService
	if d.MaxFlight != 0 && took+f.params.DeliveryService+flightTime(d, e.back) > d.MaxFlight {
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
		if took, _ := f.fly(&drones[i], e); took < soonest {
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
	return took + f.params.DeliveryService + flightTime(d, e.back)
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
	for i := range f.problem.Depots {
		if f.problem.Depots[i].ID == d.HomeDepotID {
			return f.problem.Depots[i].At
		}
	}
	nearest, at := math.Inf(1), d.At
	for _, depot := range f.problem.Depots {
		if m := metres(d.At, depot.At); m < nearest {
			nearest, at = m, depot.At
		}
	}
	return at
}

func flightTime(d *solver.Drone, metres float64) time.Duration {
	return time.Duration(metres / 1000 / d.Speed() * float64(time.Hour))
}

func metres(a, b solver.Location) float64 {
	return domain.Position(a).DistanceMetres(domain.Position(b))
}
