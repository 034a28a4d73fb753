package solver

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/solver/model"
)

// plannedStop is a pickup (source >= 0) or a delivery (source < 0).
type plannedStop struct {
	order  int32 // in prepared.orders
	source int8  // in readyOrder.sources, -1 for the delivery
}

// plannedRoute is a route in terms of the prepared problem.
type plannedRoute struct {
	drone int32 // in prepared.drones
	stops []plannedStop
}

// assemble turns routes into a plan and accounts for every order.
func (pr *prepared) assemble(routes []plannedRoute) Plan {
	plan := Plan{Ignored: pr.ignored, Unserved: slices.Clone(pr.unserved)}
	served := make([]bool, len(pr.orders))
	late := make([]bool, len(pr.orders))
	routes = slices.Clone(routes)
	slices.SortFunc(routes, func(a, b plannedRoute) int { return cmp.Compare(a.drone, b.drone) })
	for _, route := range routes {
		r := pr.timetable(route, served, late)
		plan.Routes = append(plan.Routes, r)
		plan.Objective.DistanceKm += r.DistanceKm
		plan.Objective.LongestKm = math.Max(plan.Objective.LongestKm, r.DistanceKm)
	}
	for i := range pr.orders {
		o := &pr.orders[i]
		order := pr.problem.Orders[o.index]
		tooLate := math.IsInf(o.due, 1) // for every drone
		switch {
		case !served[i]:
			reason := NoDroneFree
			if tooLate {
				reason = DeadlineUnreachable
			}
			plan.Unserved = append(plan.Unserved, Unserved{OrderID: order.ID, Index: o.index, Reason: reason})
			plan.Objective.MissedByRank[o.rank]++
		case late[i]:
			plan.Objective.Late[order.Priority]++
			if !tooLate {
				plan.Objective.MissedByRank[o.rank]++
			}
		}
	}
	slices.SortStableFunc(plan.Unserved, func(a, b Unserved) int { return cmp.Compare(a.Index, b.Index) })
	for _, u := range plan.Unserved {
		if u.Reason != InvalidInput {
			plan.Objective.Unserved[pr.problem.Orders[u.Index].Priority]++
		}
	}
	return plan
}

// timetable computes the stops of a route and marks what it serves, and what of
// that late.
func (pr *prepared) timetable(route plannedRoute, served, late []bool) Route {
	d := &pr.drones[route.drone]
	drone := pr.problem.Drones[d.index]
	out := Route{DroneID: drone.ID, Stops: make([]Stop, 0, len(route.stops)+2)}
	var metres, clock, load, used float64
	at := d.at
	add := func(s Stop, to vec) {
		leg := at.metres(to)
		metres += leg
		used += leg / 1000 * drone.ConsumptionWith(load)
		clock += leg * d.pace
		at = to
		s.ETA = pr.problem.Now.Add(seconds(clock))
		s.DistanceKm = metres / 1000
		s.BatteryPercent = drone.BatteryPercent - used
		out.Stops = append(out.Stops, s)
	}
	add(Stop{Kind: DepotStart, At: drone.At}, d.at)
	for _, stop := range route.stops {
		o := &pr.orders[stop.order]
		order := pr.problem.Orders[o.index]
		if stop.source >= 0 {
			src := o.sources[stop.source]
			s := Stop{Kind: WarehousePickup, OrderID: order.ID}
			if src.warehouse >= 0 {
				w := pr.problem.Warehouses[src.warehouse]
				s.WarehouseID, s.At = w.ID, w.At
			} else {
				s.At = *order.Pickup
			}
			add(s, src.at)
			clock += pr.params.PickupService.Seconds()
			load += order.WeightKg
			continue
		}
		add(Stop{Kind: Delivery, OrderID: order.ID, At: order.Delivery}, o.delivery)
		load -= order.WeightKg
		eta := out.Stops[len(out.Stops)-1].ETA
		served[stop.order] = true
		late[stop.order] = eta.After(order.Due(pr.problem.Now).Add(model.LateTolerance))
		clock += pr.params.DeliveryService.Seconds()
	}
	add(Stop{Kind: DepotReturn, At: pr.problem.Depots[d.depot].At}, d.home)
	out.DistanceKm = metres / 1000
	out.BatteryUsePercent = used
	out.Duration = seconds(clock)
	return out
}

// seconds converts a number of seconds to a duration, rounded to nanoseconds.
func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
