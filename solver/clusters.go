package solver

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// A problem above wholeProblem orders is cut into clusters of at most
// clusterSize: the workers then share the work instead of each doing all of it.
// The reference's scalar depends on the longest route of all, so it is cut only
// above wholeScalar.
const (
	wholeProblem = 300
	wholeScalar  = 800
	clusterSize  = 400
)

// cuttable reports whether so many orders are searched in clusters.
func (pr *prepared) cuttable(orders int) bool {
	if pr.scalarGoal {
		return orders > wholeScalar
	}
	return orders > wholeProblem
}

// cluster is a part of the problem that is searched on its own.
type cluster struct {
	orders, drones []int32
	routes         []plannedRoute

	low, high Location // bounds of the items
	unserved  int
	missed    int     // of the unserved, those that could be in time
	effort    float64 // share of the search that it is worth
}

// cut divides the orders, the current routes and the other drones into clusters by recursive
// bisection. Orders without a drone are in no cluster. The shift in [0,1) moves the borders
// from round to round, so that orders on two sides of a border later share a cluster.
func (pr *prepared) cut(routes []plannedRoute, orders []int32, shift float64) []cluster {
	c := cutter{prepared: pr, routes: routes, meridian: pr.problem.Orders[pr.orders[0].index].Delivery.Lon}
	c.split(c.items(orders), 0, shift)
	c.assignIdleDrones()
	clusters := slices.DeleteFunc(c.clusters, func(c cluster) bool { return len(c.drones) == 0 })
	pr.shareEffort(clusters, missedEffort)
	for i := range clusters {
		slices.Sort(clusters[i].orders)
		slices.Sort(clusters[i].drones)
	}
	return clusters
}

// missedEffort is the part of the search for clusters that leave out orders which could be
// in time: more steps fit in some of them, elsewhere they only shorten routes.
const missedEffort = 0.5

// shareEffort shares the search among the clusters: a part of it by the orders left out that
// could be in time, the rest by all orders. The clusters with the most effort come first, so
// that the last searches are short.
func (pr *prepared) shareEffort(clusters []cluster, part float64) {
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

// cutter makes clusters of a problem.
type cutter struct {
	*prepared
	routes   []plannedRoute
	clusters []cluster
	// meridian is the longitude around which those of all items are, so that a
	// problem across the antimeridian is in one piece.
	meridian float64
}

// item is what a cut must not separate: a drone with its route and the unserved
// orders that only it may carry, or another unserved order.
type item struct {
	lat, lon float64 // see cutter.meridian
	orders   []int32
	unserved int   // of the orders
	drone    int32 // -1: none
	route    int32 // -1: not a route
}

// split bisects items until the parts are small enough to be clusters.
func (c *cutter) split(items []item, depth int, shift float64) {
	count := 0
	for i := range items {
		count += len(items[i].orders)
	}
	if depth == 0 && !c.cuttable(count) || depth > 0 && count <= clusterSize || len(items) < 2 {
		c.clusters = append(c.clusters, newCluster(items, c.routes))
		return
	}
	at := bisect(items, count, shift)
	c.split(items[:at], depth+1, shift)
	c.split(items[at:], depth+1, shift)
}

// items lists the routes and the orders that they leave out.
func (c *cutter) items(orders []int32) []item {
	var items []item
	ofDrone := map[int32]int{} // index of its item
	served := make([]bool, len(c.orders))
	for k, route := range c.routes {
		it := item{drone: route.drone, route: int32(k)}
		first := c.spot(route.stops[0].order).Lon
		for _, s := range route.stops {
			if s.source >= 0 {
				continue
			}
			served[s.order] = true
			at := c.spot(s.order)
			it.orders = append(it.orders, s.order)
			it.lat += at.Lat
			it.lon += nearLongitude(first, at.Lon)
		}
		it.lat /= float64(len(it.orders))
		it.lon = nearLongitude(c.meridian, it.lon/float64(len(it.orders)))
		ofDrone[route.drone] = len(items)
		items = append(items, it)
	}
	for _, o := range orders {
		if served[o] {
			continue
		}
		drone := c.orders[o].pinned
		if i, known := ofDrone[drone]; known {
			items[i].orders, items[i].unserved = append(items[i].orders, o), items[i].unserved+1
			continue
		}
		if drone >= 0 {
			ofDrone[drone] = len(items)
		}
		at := c.spot(o)
		items = append(items, item{lat: at.Lat, lon: nearLongitude(c.meridian, at.Lon), orders: []int32{o}, unserved: 1, drone: drone, route: -1})
	}
	return items
}

// spot is where an order counts in a cut: at its delivery if warehouses stock it, because
// one of them is near, and otherwise at its own pickup point, where the drone must come
// first. Deliveries tell orders of one pickup point apart.
func (c *cutter) spot(o int32) Location {
	order := &c.problem.Orders[c.orders[o].index]
	if order.Pickup == nil {
		return order.Delivery
	}
	const aside = 0.1
	lat, lon := order.Pickup.Lat, order.Pickup.Lon
	return Location{
		Lat: lat + aside*(order.Delivery.Lat-lat),
		Lon: lon + aside*(nearLongitude(lon, order.Delivery.Lon)-lon),
	}
}

// nearLongitude returns a longitude as one within 180 degrees of another, beyond
// the antimeridian if that is nearer.
func nearLongitude(meridian, lon float64) float64 {
	switch {
	case lon-meridian > 180:
		return lon - 360
	case lon-meridian < -180:
		return lon + 360
	}
	return lon
}

// surplusKm is the detour at which a drone joins a cluster that has no idle drone
// instead of one that has its share.
const surplusKm = 20

// assignIdleDrones gives every idle drone to a cluster near it that has few for
// the orders it does not serve yet. Drones at one depot are thus divided among the
// clusters around it.
func (c *cutter) assignIdleDrones() {
	if len(c.clusters) == 0 {
		return
	}
	placed := make([]bool, len(c.drones))
	unserved, idle := 0, len(c.drones)
	for i := range c.clusters {
		unserved += c.clusters[i].unserved
		idle -= len(c.clusters[i].drones)
		for _, d := range c.clusters[i].drones {
			placed[d] = true
		}
	}
	assigned := make([]float64, len(c.clusters))
	for d := range c.drones {
		if placed[d] {
			continue
		}
		at := c.problem.Drones[c.drones[d].index].At
		at.Lon = nearLongitude(c.meridian, at.Lon)
		best, cost := 0, math.Inf(1)
		for i := range c.clusters {
			cl := &c.clusters[i]
			share := float64(idle) * float64(cl.unserved+1) / float64(unserved+len(c.clusters))
			if x := cl.kmOutside(at) + surplusKm*assigned[i]/share; x < cost {
				best, cost = i, x
			}
		}
		assigned[best]++
		c.clusters[best].drones = append(c.clusters[best].drones, int32(d))
	}
}

// kmOutside is about how far a point is outside the cluster's bounds.
func (c *cluster) kmOutside(at Location) float64 {
	const kmPerDegree = 111.2
	lat := max(0, c.low.Lat-at.Lat, at.Lat-c.high.Lat)
	lon := max(0, c.low.Lon-at.Lon, at.Lon-c.high.Lon)
	return kmPerDegree * math.Hypot(lat, lon*math.Cos(at.Lat*math.Pi/180))
}

// bisect sorts the items along their longer side and returns where to cut: at the
// widest gap near the shifted middle, so that towns stay whole.
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

// newCluster makes a cluster of items, without idle drones.
func newCluster(items []item, routes []plannedRoute) cluster {
	c := cluster{low: Location{Lat: math.Inf(1), Lon: math.Inf(1)}, high: Location{Lat: math.Inf(-1), Lon: math.Inf(-1)}}
	for i := range items {
		it := &items[i]
		c.orders = append(c.orders, it.orders...)
		c.low = Location{Lat: min(c.low.Lat, it.lat), Lon: min(c.low.Lon, it.lon)}
		c.high = Location{Lat: max(c.high.Lat, it.lat), Lon: max(c.high.Lon, it.lon)}
		c.unserved += it.unserved
		if it.drone >= 0 {
			c.drones = append(c.drones, it.drone)
		}
		if it.route >= 0 {
			c.routes = append(c.routes, routes[it.route])
		}
	}
	return c
}

// eachCluster lets the workers take clusters from one queue and returns the routes that f
// makes of all. f also gets the share of the effort that was handed out before.
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
