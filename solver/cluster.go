package solver

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// A problem above singlePart orders is cut into clusters of at most clusterSize: the
// workers then share the work instead of each doing all of it. The reference's
// scalar minds the longest route of all, so it is cut only above spanPart.
const (
	singlePart  = 300
	spanPart    = 800
	clusterSize = 400
)

// cuttable tells whether so many orders are searched in clusters.
func (pr *prepared) cuttable(orders int) bool {
	if pr.scalarGoal {
		return orders > spanPart
	}
	return orders > singlePart
}

// item is what a cut must not separate: a route with its drone and orders, or an
// unserved order.
type item struct {
	lat, lon float64 // see prepared.meridian
	orders   []int32
	drone    int32 // -1: none
	route    int32 // -1: not a route
}

// cluster is a set of items that is searched on its own, with some idle drones.
type cluster struct {
	orders, drones []int32
	routes         []plannedRoute

	low, high Location // of the items
	unserved  int
	missed    int     // of the unserved, those that could be in time
	effort    float64 // share of the search that it is worth
}

// cut divides the orders, the current routes and the other drones into clusters
// by recursive bisection. Orders for which no drone is left are in none. The shift
// in [0,1) moves the borders, so that what met at a border in one round is inside a
// cluster in another.
func (pr *prepared) cut(routes []plannedRoute, orders []int32, shift float64) []cluster {
	var out []cluster
	var split func(items []item, depth int)
	split = func(items []item, depth int) {
		count := 0
		for i := range items {
			count += len(items[i].orders)
		}
		if depth == 0 && !pr.cuttable(count) || depth > 0 && count <= clusterSize || len(items) < 2 {
			out = append(out, gather(items, routes))
			return
		}
		at := bisect(items, count, shift)
		split(items[:at], depth+1)
		split(items[at:], depth+1)
	}
	split(pr.items(routes, orders), 0)
	pr.deal(routes, out)
	out = slices.DeleteFunc(out, func(c cluster) bool { return len(c.drones) == 0 })
	pr.allot(out, hopeful)
	for i := range out {
		slices.Sort(out[i].orders)
		slices.Sort(out[i].drones)
	}
	return out
}

// around returns a longitude as one within 180 degrees of another, beyond the
// antimeridian if that is nearer.
func around(meridian, lon float64) float64 {
	switch {
	case lon-meridian > 180:
		return lon - 360
	case lon-meridian < -180:
		return lon + 360
	}
	return lon
}

// meridian is the longitude around which those of all items are.
func (pr *prepared) meridian() float64 {
	return pr.problem.Orders[pr.orders[0].index].Delivery.Lon
}

// spot is where an order belongs in a cut. Where it can be fetched at warehouses, one of
// them is near: that is its delivery. Otherwise it is its own pickup point, where a
// drone must come first; orders of one such point are told apart by their deliveries.
func (pr *prepared) spot(o int32) Location {
	order := &pr.problem.Orders[pr.orders[o].index]
	if order.Pickup == nil {
		return order.Delivery
	}
	const aside = 0.1
	lat, lon := order.Pickup.Lat, order.Pickup.Lon
	return Location{
		Lat: lat + aside*(order.Delivery.Lat-lat),
		Lon: lon + aside*(around(lon, order.Delivery.Lon)-lon),
	}
}

func (pr *prepared) items(routes []plannedRoute, orders []int32) []item {
	var items []item
	served := make([]bool, len(pr.orders))
	meridian := pr.meridian()
	for k, route := range routes {
		it := item{drone: route.drone, route: int32(k)}
		first := pr.spot(route.stops[0].order).Lon
		for _, s := range route.stops {
			if s.source >= 0 {
				continue
			}
			served[s.order] = true
			at := pr.spot(s.order)
			it.orders = append(it.orders, s.order)
			it.lat += at.Lat
			it.lon += around(first, at.Lon)
		}
		it.lat /= float64(len(it.orders))
		it.lon = around(meridian, it.lon/float64(len(it.orders)))
		items = append(items, it)
	}
	for _, o := range orders {
		if !served[o] {
			at := pr.spot(o)
			items = append(items, item{lat: at.Lat, lon: around(meridian, at.Lon), orders: []int32{o}, drone: -1, route: -1})
		}
	}
	return items
}

// dealKm is the detour at which a drone goes to a cluster that has none instead
// of one that has its share.
const dealKm = 20

// deal gives every idle drone to a cluster near it that has few for the orders it
// does not serve yet. Drones that stand at one depot are thus divided among the
// clusters around it.
func (pr *prepared) deal(routes []plannedRoute, clusters []cluster) {
	if len(clusters) == 0 {
		return
	}
	flying := make([]bool, len(pr.drones))
	for _, route := range routes {
		flying[route.drone] = true
	}
	unserved := 0
	for i := range clusters {
		unserved += clusters[i].unserved
	}
	idle, meridian := len(pr.drones)-len(routes), pr.meridian()
	dealt := make([]float64, len(clusters))
	for d := range pr.drones {
		if flying[d] {
			continue
		}
		at := pr.problem.Drones[pr.drones[d].index].At
		at.Lon = around(meridian, at.Lon)
		best, cost := 0, math.Inf(1)
		for i := range clusters {
			c := &clusters[i]
			share := float64(idle) * float64(c.unserved+1) / float64(unserved+len(clusters))
			if x := c.kmTo(at) + dealKm*dealt[i]/share; x < cost {
				best, cost = i, x
			}
		}
		dealt[best]++
		clusters[best].drones = append(clusters[best].drones, int32(d))
	}
}

// hopeful is the part of the search that goes where orders are left out that could
// be in time; more steps find a place for some of them, elsewhere only shorter ways.
const hopeful = 0.5

// allot shares the search among the clusters: a part of it by the orders left out
// that could be in time, the rest by all. What is worth most comes first, so that the
// last to be searched are short.
func (pr *prepared) allot(clusters []cluster, part float64) {
	orders, missed := 0, 0
	for i := range clusters {
		clusters[i].missed = pr.missedBy(&clusters[i])
		missed += clusters[i].missed
		orders += len(clusters[i].orders)
	}
	for i := range clusters {
		c := &clusters[i]
		if c.effort = float64(len(c.orders)) / float64(orders); missed > 0 {
			c.effort += part * (float64(c.missed)/float64(missed) - c.effort)
		}
	}
	slices.SortStableFunc(clusters, func(a, b cluster) int { return cmp.Compare(b.effort, a.effort) })
}

// missedBy is how many orders a cluster leaves out that could be in time.
func (pr *prepared) missedBy(c *cluster) int {
	served := servedBy(c.routes)
	n := 0
	for _, o := range c.orders {
		if !served[o] && !math.IsInf(pr.orders[o].due, 1) {
			n++
		}
	}
	return n
}

// kmTo is about how far a point is outside the cluster's bounds.
func (c *cluster) kmTo(at Location) float64 {
	const kmPerDegree = 111.2
	lat := max(0, c.low.Lat-at.Lat, at.Lat-c.high.Lat)
	lon := max(0, c.low.Lon-at.Lon, at.Lon-c.high.Lon)
	return kmPerDegree * math.Hypot(lat, lon*math.Cos(at.Lat*math.Pi/180))
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
	c := cluster{low: Location{Lat: math.Inf(1), Lon: math.Inf(1)}, high: Location{Lat: math.Inf(-1), Lon: math.Inf(-1)}}
	for i := range items {
		it := &items[i]
		c.orders = append(c.orders, it.orders...)
		c.low = Location{Lat: min(c.low.Lat, it.lat), Lon: min(c.low.Lon, it.lon)}
		c.high = Location{Lat: max(c.high.Lat, it.lat), Lon: max(c.high.Lon, it.lon)}
		if it.route < 0 {
			c.unserved += len(it.orders)
			continue
		}
		c.drones = append(c.drones, it.drone)
		c.routes = append(c.routes, routes[it.route])
	}
	return c
}

// eachCluster has the workers take clusters from one queue and returns the routes
// that f makes of them all. f also learns the share of the effort that was handed
// out before.
func (r *run) eachCluster(clusters []cluster, f func(c *cluster, i int, done float64) []plannedRoute) []plannedRoute {
	var mu sync.Mutex
	next, handed := 0, 0.0
	take := func() (i int, done float64) {
		mu.Lock()
		defer mu.Unlock()
		i, done = next, handed
		if i < len(clusters) {
			next++
			handed += clusters[i].effort
		}
		return i, done
	}
	out := make([][]plannedRoute, len(clusters))
	var wait sync.WaitGroup
	for range min(r.opts.Workers, len(clusters)) {
		wait.Go(func() {
			for i, done := take(); i < len(clusters); i, done = take() {
				out[i] = f(&clusters[i], i, done)
			}
		})
	}
	wait.Wait()
	return slices.Concat(out...)
}
