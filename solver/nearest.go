package solver

import (
	"cmp"
	"math"
	"slices"
)

// nearestFirst is the naive baseline: most urgent first, each order alone on the
// nearest drone that can serve it, from the nearest warehouse.
func (r *run) nearestFirst() []plannedRoute {
	used := make([]bool, len(r.drones))
	var routes []plannedRoute
	service := (r.params.PickupService + r.params.DeliveryService).Seconds()
	for _, o := range r.byUrgency(indices(len(r.orders))) {
		order := &r.orders[o]
		src := slices.MinFunc(order.sources, func(a, b source) int {
			return cmp.Compare(a.at.metres(order.delivery), b.at.metres(order.delivery))
		})
		best, nearest := -1, math.Inf(1)
		for d := range r.drones {
			dr := &r.drones[d]
			approach := dr.at.metres(src.at)
			total := approach + src.at.metres(order.delivery) + order.delivery.metres(dr.home)
			if !used[d] && order.mayCarry(int32(d)) && order.weight <= dr.capacity && approach < nearest &&
				total <= dr.reach && total*dr.pace+service <= dr.maxTime {
				best, nearest = d, approach
			}
		}
		if best < 0 {
			continue
		}
		used[best] = true
		k := slices.Index(order.sources, src)
		routes = append(routes, plannedRoute{drone: int32(best), stops: []plannedStop{{o, int8(k)}, {o, -1}}})
	}
	return routes
}
