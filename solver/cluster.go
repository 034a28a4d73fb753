package solver

import (
	"cmp"
	"slices"
)

// A problem above singlePart orders is cut into clusters of about clusterSize.
const (
	singlePart  = 800
	clusterSize = 400
)

// item is what a cut must not separate: a route with its drone and orders, an
// unserved order or an idle drone.
type item struct {
	lat, lon float64
	orders   []int32
	drone    int32 // -1: none
	route    int32 // -1: not a route
}

// cluster is a set of items that is searched on its own.
type cluster struct {
	orders, drones []int32
	routes         []plannedRoute
}

// cut divides orders, drones and current routes into clusters by recursive
// bisection. The shift in [0,1) moves the borders, so that what met at a border
// in one round is inside a cluster in another.
func (pr *prepared) cut(routes []plannedRoute, shift float64) []cluster {
	items := pr.items(routes)
	var out []cluster
	var split func(items []item, depth int)
	split = func(items []item, depth int) {
		count := 0
		for i := range items {
			count += len(items[i].orders)
		}
		limit := clusterSize
		if depth == 0 {
			limit = singlePart
		}
		if count <= limit || len(items) < 2 {
			out = append(out, gather(items, routes))
			return
		}
		at := bisect(items, count, shift)
		split(items[:at], depth+1)
		split(items[at:], depth+1)
	}
	split(items, 0)
	return out
}

func (pr *prepared) items(routes []plannedRoute) []item {
	var items []item
	served := make([]bool, len(pr.orders))
	flying := make([]bool, len(pr.drones))
	for k, route := range routes {
		it := item{drone: route.drone, route: int32(k)}
		flying[route.drone] = true
		for _, s := range route.stops {
			if s.source >= 0 {
				continue
			}
			served[s.order] = true
			it.orders = append(it.orders, s.order)
			at := pr.problem.Orders[pr.orders[s.order].index].Delivery
			it.lat += at.Lat
			it.lon += at.Lon
		}
		it.lat /= float64(len(it.orders))
		it.lon /= float64(len(it.orders))
		items = append(items, it)
	}
	for o := range pr.orders {
		if !served[o] {
			at := pr.problem.Orders[pr.orders[o].index].Delivery
			items = append(items, item{lat: at.Lat, lon: at.Lon, orders: []int32{int32(o)}, drone: -1, route: -1})
		}
	}
	for d := range pr.drones {
		if !flying[d] {
			at := pr.problem.Drones[pr.drones[d].index].At
			items = append(items, item{lat: at.Lat, lon: at.Lon, drone: int32(d), route: -1})
		}
	}
	return items
}

// bisect sorts the items along their longer side and returns where to cut: at
// the widest gap near the shifted middle, so that towns stay whole.
func bisect(items []item, count int, shift float64) int {
	loLat, hiLat, loLon, hiLon := items[0].lat, items[0].lat, items[0].lon, items[0].lon
	for i := range items {
		loLat, hiLat = min(loLat, items[i].lat), max(hiLat, items[i].lat)
		loLon, hiLon = min(loLon, items[i].lon), max(hiLon, items[i].lon)
	}
	key := func(it *item) float64 { return it.lon }
	if hiLat-loLat > hiLon-loLon {
		key = func(it *item) float64 { return it.lat }
	}
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(key(&a), key(&b)) })
	low, high := (0.35+0.1*shift)*float64(count), (0.55+0.1*shift)*float64(count)
	seen, at, widest := 0, len(items)/2, -1.0
	for i := 0; i+1 < len(items); i++ {
		seen += len(items[i].orders)
		if float64(seen) < low {
			continue
		}
		if float64(seen) > high && widest >= 0 {
			break
		}
		if gap := key(&items[i+1]) - key(&items[i]); gap > widest {
			widest, at = gap, i+1
		}
	}
	return at
}

func gather(items []item, routes []plannedRoute) cluster {
	var c cluster
	for i := range items {
		c.orders = append(c.orders, items[i].orders...)
		if items[i].drone >= 0 {
			c.drones = append(c.drones, items[i].drone)
		}
		if items[i].route >= 0 {
			c.routes = append(c.routes, routes[items[i].route])
		}
	}
	slices.Sort(c.orders)
	slices.Sort(c.drones)
	return c
}
