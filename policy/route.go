package policy

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// countedStops is the length of the route up to its last order stop, without the way home. In a
// mission without orders it ends at the last stop to charge or wait.
func countedStops(m domain.Mission) int {
	counts := domain.Waypoint.ForOrder
	if m.Standby() {
		counts = domain.Waypoint.Duty
	}
	for i := len(m.Route); i > 0; i-- {
		if counts(m.Route[i-1]) {
			return i
		}
	}
	return 0
}

// commandedIndexes returns, for each stop of the route, its index in the route as first
// commanded.
func commandedIndexes(route []domain.Waypoint, dropped []int) []int {
	indexes := make([]int, 0, len(route))
	for i := range len(route) + len(dropped) {
		if !slices.Contains(dropped, i) {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// routeStops is how many stops a revision of the mission had, as commanded. known is false for a
// revision that is no longer kept.
func routeStops(m domain.Mission, revision int) (n int, known bool) {
	if a := m.Amendment; a != nil && revision == a.Revision {
		return len(a.Route) + len(a.DroppedStops), true
	}
	return len(m.Route) + len(m.DroppedStops), len(m.EarlierRoutes) == 0 || revision == m.RouteRevision
}

// provable is how many stops, counted as commanded, a report that names a revision can
// prove: those that its route shares with the one in force.
func provable(m domain.Mission, revision int) int {
	if len(m.EarlierRoutes) == 0 || revision == m.RouteRevision {
		return math.MaxInt
	}
	least := math.MaxInt
	for _, e := range m.EarlierRoutes {
		if e.Revision == revision {
			return e.Shared
		}
		least = min(least, e.Shared)
	}
	return least // the revision is forgotten, or the drone names none
}

// withEarlier adds a revision that is no longer, or never was, in force. Each earlier one shares at
// most as much with the route in force as the one after it.
func withEarlier(earlier []domain.EarlierRoute, revision, shared int) []domain.EarlierRoute {
	list := make([]domain.EarlierRoute, 0, len(earlier)+1)
	for _, e := range earlier {
		e.Shared = min(e.Shared, shared)
		list = append(list, e)
	}
	list = append(list, domain.EarlierRoute{Revision: revision, Shared: shared})
	if n := len(list) - domain.MaxEarlierRoutes; n > 0 { // the oldest one left stands for those before it
		least := list[n].Shared
		for _, e := range list[:n] {
			least = min(least, e.Shared)
		}
		list = list[n:]
		list[0].Shared = least
	}
	return list
}

// sharedIndexes is how many stops the route in force and the amendment begin with, counted as
// commanded. A stop of a withdrawn order ends the count, because only one of the routes may count
// it.
func sharedIndexes(m domain.Mission) int {
	from, to := commandedIndexes(m.Route, m.DroppedStops), commandedIndexes(m.Amendment.Route, m.Amendment.DroppedStops)
	for i := range sharedStops(m.Route, m.Amendment.Route) {
		if from[i] != i || to[i] != i {
			return i
		}
	}
	return sharedStops(m.Route, m.Amendment.Route)
}

// sharedStops is how many stops two routes begin with, whatever their ETAs.
func sharedStops(a, b []domain.Waypoint) (n int) {
	for n < len(a) && n < len(b) && sameStop(a[n], b[n]) {
		n++
	}
	return n
}

func sameStop(a, b domain.Waypoint) bool {
	if !a.WaitUntil.Equal(b.WaitUntil) {
		return false
	}
	a.ETA, b.ETA = time.Time{}, time.Time{}
	a.WaitUntil, b.WaitUntil = time.Time{}, time.Time{}
	return a == b
}

// isSubsequence reports whether a route is another one with stops left out.
func isSubsequence(short, long []domain.Waypoint) bool {
	for _, stop := range short {
		i := slices.IndexFunc(long, func(w domain.Waypoint) bool { return sameStop(w, stop) })
		if i < 0 {
			return false
		}
		long = long[i+1:]
	}
	return true
}

// withoutOrder is a route without an order's stops from the given stop on.
func withoutOrder(route []domain.Waypoint, dropped []int, from int, id domain.OrderID) ([]domain.Waypoint, []int) {
	indexes := commandedIndexes(route, dropped)
	from = min(from, len(route))
	rest, dropped := slices.Clone(route[:from]), slices.Clone(dropped)
	for i := from; i < len(route); i++ {
		if route[i].OrderID == id {
			dropped = append(dropped, indexes[i])
			continue
		}
		rest = append(rest, route[i])
	}
	slices.Sort(dropped)
	return rest, dropped
}

// routeProblem says what is wrong with the decision's route, "" if nothing is:
// there must be orders, each listed once, picked up once and then delivered once, and
// nothing else.
func routeProblem(d domain.Decision) string {
	const (
		missing = iota
		pickedUp
		delivered
	)
	if len(d.OrderIDs) == 0 {
		return "it lists no order"
	}
	progress := make(map[domain.OrderID]int, len(d.OrderIDs))
	for _, id := range d.OrderIDs {
		if _, twice := progress[id]; twice {
			return fmt.Sprintf("order %s is listed twice", id)
		}
		progress[id] = missing
	}
	for i, stop := range d.Route {
		if !stop.ForOrder() {
			continue
		}
		at, ours := progress[stop.OrderID]
		pickup := stop.Type == domain.WaypointWarehousePickup
		switch {
		case !ours:
			return fmt.Sprintf("stop %d is for order %q, which is not in the decision", i, stop.OrderID)
		case pickup && at != missing:
			return fmt.Sprintf("stop %d picks up order %s again", i, stop.OrderID)
		case pickup:
			progress[stop.OrderID] = pickedUp
		case at == missing:
			return fmt.Sprintf("stop %d delivers order %s before its pickup", i, stop.OrderID)
		case at == delivered:
			return fmt.Sprintf("stop %d delivers order %s again", i, stop.OrderID)
		default:
			progress[stop.OrderID] = delivered
		}
	}
	for _, id := range d.OrderIDs {
		switch progress[id] {
		case missing:
			return fmt.Sprintf("order %s has no pickup stop", id)
		case pickedUp:
			return fmt.Sprintf("order %s has no delivery stop", id)
		}
	}
	return ""
}

// peakLoad is the greatest weight aboard along the route, in kilograms.
func peakLoad(d domain.Decision, orders map[domain.OrderID]domain.Order) float64 {
	var load, peak float64
	for _, stop := range d.Route {
		switch stop.Type {
		case domain.WaypointWarehousePickup:
			load += orders[stop.OrderID].WeightKg
		case domain.WaypointHospitalDelivery:
			load -= orders[stop.OrderID].WeightKg
		case domain.WaypointDepotStart, domain.WaypointDepotReturn, domain.WaypointCharge, domain.WaypointWait:
		}
		peak = max(peak, load)
	}
	return peak
}

// waits reports whether the mission's drone is to wait past a time.
func waits(m domain.Mission, t time.Time) bool {
	for _, stop := range m.Route[min(m.ReachedStops, len(m.Route)):] {
		if stop.Type == domain.WaypointWait && stop.WaitUntil.After(t) {
			return true
		}
	}
	return false
}

// queues reports whether a drone is where it is to charge next, in a slot or waiting for one.
func (p DronePolicy) queues(d domain.Drone, m domain.Mission) bool {
	for _, stop := range m.Route[min(m.ReachedStops, len(m.Route)):] {
		if stop.Type != domain.WaypointDepotStart {
			return stop.Type == domain.WaypointCharge && d.Position.DistanceMetres(stop.Position) <= p.StopRadiusMetres
		}
	}
	return false
}
