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
}

func flightsOf(p *solver.Problem) flights { return flights{p, p.Params.WithDefaults()} }

// arrival is how long the drone takes to the order's delivery point when it
// flies there directly, from the source that is best; never if it cannot carry
// the order and come home with its reserve. The second result is the charge,
// in percent, with which it would have to start.
func (f flights) arrival(d solver.Drone, o *solver.Order) (time.Duration, float64) {
	best, need := never, math.Inf(1)
	if d.CapacityKg > 0 && o.WeightKg > d.CapacityKg {
		return best, need
	}
	back := metres(o.Delivery, f.home(d))
	try := func(source solver.Location) {
		out := metres(d.At, source) + metres(source, o.Delivery)
		charge := f.params.ReservePercent + (out+back)/1000*d.Consumption()
		took := flightTime(d, out) + f.params.PickupService
		if !(charge <= d.BatteryPercent) || took >= best || // not a number is no flight
			d.MaxFlight > 0 && took+f.params.DeliveryService+flightTime(d, back) > d.MaxFlight {
			return
		}
		best, need = took, charge
	}
	if o.Pickup != nil {
		try(*o.Pickup)
		return best, need
	}
	for _, w := range f.problem.Warehouses {
		if w.Supplies(*o) {
			try(w.At)
		}
	}
	return best, need
}

// roundTrip is how long the drone is away with the order and nothing else; 0 if
// it cannot take it.
func (f flights) roundTrip(d solver.Drone, o *solver.Order) time.Duration {
	took, _ := f.arrival(d, o)
	if took == never {
		return 0
	}
	return took + f.params.DeliveryService + flightTime(d, metres(o.Delivery, f.home(d)))
}

// inTime reports whether an arrival after took keeps the order's deadline.
func (f flights) inTime(o *solver.Order, took time.Duration) bool {
	return took != never && !f.problem.Now.Add(took).After(o.Due(f.problem.Now))
}

// home is where the drone lands: its depot, or the nearest one.
func (f flights) home(d solver.Drone) solver.Location {
	nearest, at := math.Inf(1), d.At
	for _, depot := range f.problem.Depots {
		if d.HomeDepotID == depot.ID {
			return depot.At
		}
		if m := metres(d.At, depot.At); m < nearest {
			nearest, at = m, depot.At
		}
	}
	return at
}

func flightTime(d solver.Drone, metres float64) time.Duration {
	return time.Duration(metres / 1000 / d.Speed() * float64(time.Hour))
}

func metres(a, b solver.Location) float64 {
	return domain.Position(a).DistanceMetres(domain.Position(b))
}
