package solver_test

import (
	"fmt"
	"math"

	"github.com/dronefleet/dronefleet/solver/model"
)

// Tests compare the solver with the optimum of tiny problems. The enumeration shares no
// formula with it: it imports the plain values of solver/model only.

// Limits of what can be enumerated.
const (
	mostOrders = 5
	mostDrones = 3
)

// optimum is the optimum of a problem in which an order that some drone could
// deliver in time is delivered in time or not at all.
type optimum struct {
	MissedByRank [model.RankCount]int
	Served       int
	DistanceKm   float64
}

// enumerate tries every sequence, source and assignment. The input must be
// valid: ids unique, numbers in range, home depots named.
func enumerate(p model.Problem) (optimum, error) {
	if len(p.Orders) > mostOrders || len(p.Drones) > mostDrones {
		return optimum{}, fmt.Errorf("cannot enumerate %d orders and %d drones: the limits are %d and %d",
			len(p.Orders), len(p.Drones), mostOrders, mostDrones)
	}
	e := enumeration{problem: p, params: p.Params.WithDefaults()}
	for _, o := range p.Orders {
		e.due = append(e.due, o.Due(p.Now).Sub(p.Now).Hours())
	}
	e.classify()
	return e.assign(), nil
}

type enumeration struct {
	problem  model.Problem
	params   model.Params
	due      []float64 // hours from now, +Inf when too late for every drone
	rank     []int
	feasible []bool

	drone model.Drone
	home  model.Location
	best  []float64 // per set of orders: least km for the drone, +Inf if none
	only  int       // 1 + the one order that may be served, or 0 for all
}

// classify finds for each order alone whether any drone can serve it, in time
// or late, and its rank.
func (e *enumeration) classify() {
	n := len(e.problem.Orders)
	e.rank, e.feasible = make([]int, n), make([]bool, n)
	for o, order := range e.problem.Orders {
		inTime := e.aloneByAny(o)
		due := e.due[o]
		e.due[o] = math.Inf(1)
		possible := e.aloneByAny(o)
		e.rank[o] = model.PriorityCount - 1 - int(order.Priority)
		e.feasible[o] = possible
		if inTime {
			e.due[o] = due
			continue
		}
		e.rank[o] += model.PriorityCount
		if due < 0 {
			e.rank[o] = max(0, e.rank[o]-int(-due/e.params.AgingStep.Hours()))
		}
	}
}

// aloneByAny reports whether some drone can serve an order and nothing else.
func (e *enumeration) aloneByAny(o int) bool {
	e.only = o + 1
	defer func() { e.only = 0 }()
	for d := range e.problem.Drones {
		if e.routes(d)[1<<o] < math.Inf(1) {
			return true
		}
	}
	return false
}

// routes returns, per set of orders, the length of a drone's shortest feasible
// route.
func (e *enumeration) routes(d int) []float64 {
	e.drone = e.problem.Drones[d]
	e.best = make([]float64, 1<<len(e.problem.Orders))
	for i := range e.best {
		e.best[i] = math.Inf(1)
	}
	e.best[0] = 0
	for _, depot := range e.problem.Depots {
		if depot.ID == e.drone.HomeDepotID {
			e.home = depot.At
		}
	}
	e.extend(e.drone.At, 0, 0, 0, 0, 0)
	return e.best
}

// extend continues a partial route in every possible way.
func (e *enumeration) extend(at model.Location, hours, km, load float64, aboard, done int) {
	reach := (e.drone.BatteryPercent - e.params.ReservePercent) / e.drone.Consumption()
	back := km + distanceKm(at, e.home)
	if back > reach {
		return
	}
	if aboard == 0 && done != 0 {
		total := hours + distanceKm(at, e.home)/e.drone.Speed()
		if e.drone.MaxFlight == 0 || total <= e.drone.MaxFlight.Hours() {
			e.best[done] = min(e.best[done], back)
		}
	}
	for o, order := range e.problem.Orders {
		bit := 1 << o
		switch {
		case done&bit != 0, !order.MayGoBy(&e.drone), e.only != 0 && e.only != o+1:
		case aboard&bit != 0:
			leg := distanceKm(at, order.Delivery)
			arrival := hours + leg/e.drone.Speed()
			if arrival <= e.due[o] {
				e.extend(order.Delivery, arrival+e.params.DeliveryService.Hours(), km+leg, load-order.WeightKg, aboard&^bit, done|bit)
			}
		case e.drone.CapacityKg == 0 || load+order.WeightKg <= e.drone.CapacityKg:
			for _, from := range e.sources(order) {
				leg := distanceKm(at, from)
				e.extend(from, hours+leg/e.drone.Speed()+e.params.PickupService.Hours(), km+leg, load+order.WeightKg, aboard|bit, done)
			}
		}
	}
}

// sources lists where an order can be fetched.
func (e *enumeration) sources(o model.Order) []model.Location {
	if o.Pickup != nil {
		return []model.Location{*o.Pickup}
	}
	var out []model.Location
	for _, w := range e.problem.Warehouses {
		if w.Supplies(o) {
			out = append(out, w.At)
		}
	}
	return out
}

// assign tries every assignment of sets of orders to drones and returns the best.
func (e *enumeration) assign() optimum {
	km := map[int]float64{0: 0} // set served so far -> least km
	for d := range e.problem.Drones {
		routes := e.routes(d)
		next := map[int]float64{}
		for served, so := range km {
			for set, more := range routes {
				if set&served == 0 && more < math.Inf(1) {
					if old, seen := next[served|set]; !seen || so+more < old {
						next[served|set] = so + more
					}
				}
			}
		}
		km = next
	}
	var best optimum
	found := false
	for served, total := range km {
		a := optimum{DistanceKm: total}
		for o := range e.problem.Orders {
			switch {
			case served&(1<<o) != 0:
				a.Served++
			case e.feasible[o]:
				a.MissedByRank[e.rank[o]]++
			}
		}
		if !found || a.less(best) {
			best, found = a, true
		}
	}
	return best
}

func (a optimum) less(b optimum) bool {
	for r := range a.MissedByRank {
		if a.MissedByRank[r] != b.MissedByRank[r] {
			return a.MissedByRank[r] < b.MissedByRank[r]
		}
	}
	return a.DistanceKm < b.DistanceKm
}

// distanceKm is the great-circle distance by the spherical law of haversines.
func distanceKm(a, b model.Location) float64 {
	const rad = math.Pi / 180
	hav := func(x float64) float64 { s := math.Sin(x / 2); return s * s }
	h := hav((b.Lat-a.Lat)*rad) + math.Cos(a.Lat*rad)*math.Cos(b.Lat*rad)*hav((b.Lon-a.Lon)*rad)
	return 2 * 6371 * math.Asin(math.Sqrt(min(1, h)))
}
