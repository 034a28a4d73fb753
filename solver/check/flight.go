package check

import (
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/solver/model"
)

// addFlights notes the flights and their orders. Of records that share an id the first
// counts, and an order that waits is not one of a flight.
func (r *replay) addFlights() {
	for _, f := range r.problem.Flights {
		if _, seen := r.flights[f.Drone.ID]; seen {
			continue
		}
		r.flights[f.Drone.ID] = f
		for _, o := range f.Orders {
			if _, seen := r.ordersByID[o.ID]; !seen {
				r.ordersByID[o.ID], r.inFlight[o.ID] = o, f.Drone.ID
			}
		}
	}
}

// amendment flies the changed rest of a mission and compares it with the rest as it was:
// committed stops are kept, and the drone still delivers all it had to deliver.
func (r *replay) amendment(a model.Amendment) {
	id := a.DroneID
	f, known := r.flights[id]
	switch {
	case !known:
		r.violation("flight", id, "", "not in flight")
		return
	case r.flown[id]:
		r.violation("drone", id, "", "has two routes")
	case a.MissionID != f.MissionID || a.Revision != f.Revision:
		r.violation("revision", id, "", "amends revision %d of %q, flies %d of %q", a.Revision, a.MissionID, f.Revision, f.MissionID)
	}
	r.flown[id] = true
	if !r.restEnds(a.Route, f) || !r.keepsCommitted(a.Route, f) {
		return
	}
	before := r.asPlanned(f)
	rest := r.inFlightNow(f)
	aboard := len(rest.aboard)
	r.fly(&rest, a.Route)
	r.keepsPromises(a, f, before)
	if n := f.OrdersDelivered + aboard + rest.orders; n > model.MaxOrdersPerDecision || f.StopsBehind+len(a.Stops) > model.MaxWaypointsPerDecision {
		r.violation("size", id, "", "%d orders, %d stops", n, f.StopsBehind+len(a.Stops))
	}
	r.landing(a.Route, f.Drone, rest.km, rest.used, rest.now.Sub(r.problem.Now))
	if diff := a.Detour - rest.now.Sub(before.now); diff > timeTolerance || diff < -timeTolerance || !(math.Abs(a.DetourKm-(rest.km-before.km)) <= kmTolerance) {
		r.violation("totals", id, "", "says a detour of %.6f km and %s, replay %.6f km and %s", a.DetourKm, a.Detour, rest.km-before.km, rest.now.Sub(before.now))
	}
	r.totalKm += rest.km - before.km
}

// inFlightNow is the drone at its predicted place, with what it carries.
func (r *replay) inFlightNow(f model.Flight) flown {
	s := flown{drone: f.Drone, now: f.Ready, at: f.Drone.At, aboard: map[string]bool{}}
	if s.now.Before(r.problem.Now) {
		s.now = r.problem.Now
	}
	for _, o := range f.Aboard() {
		s.aboard[o.ID] = true
		s.load += o.WeightKg
	}
	return s
}

// planned is the rest of a mission without an amendment: when it delivers, and how long
// it is.
type planned struct {
	arrivals map[string]time.Time
	now      time.Time
	km       float64
}

func (r *replay) asPlanned(f model.Flight) planned {
	start := r.inFlightNow(f)
	p := planned{arrivals: map[string]time.Time{}, now: start.now}
	at := start.at
	for _, stop := range f.Stops {
		leg := haversineKm(at, stop.At)
		p.km += leg
		p.now = p.now.Add(time.Duration(leg / f.Drone.Speed() * float64(time.Hour)))
		at = stop.At
		switch stop.Kind {
		case model.WarehousePickup:
			p.now = p.now.Add(r.params.PickupService)
		case model.Delivery:
			p.arrivals[stop.OrderID] = p.now
			p.now = p.now.Add(r.params.DeliveryService)
		}
	}
	return p
}

// restEnds checks the stops of an amended rest and where it ends. It returns false if
// the rest cannot be replayed.
func (r *replay) restEnds(route model.Route, f model.Flight) bool {
	n := len(route.Stops)
	if n == 0 || route.Stops[n-1].Kind != model.DepotReturn {
		r.violation("ends", route.DroneID, "", "route must end with DEPOT_RETURN")
		return false
	}
	for i, stop := range route.Stops[:n-1] {
		if stop.Kind != model.WarehousePickup && stop.Kind != model.Delivery {
			r.violation("ends", route.DroneID, "", "stop %d is a %s inside the route", i, stop.Kind)
			return false
		}
	}
	last := route.Stops[n-1].At
	home := slices.ContainsFunc(r.problem.Depots, func(d model.Depot) bool { return same(last, d.At) })
	if n := len(f.Stops); !home && !(n > 0 && same(last, f.Stops[n-1].At)) {
		r.violation("ends", route.DroneID, "", "does not end at a depot")
	}
	return true
}

// keepsCommitted checks that a rest begins with the stops that cannot be changed.
func (r *replay) keepsCommitted(route model.Route, f model.Flight) bool {
	for i := range min(f.Committed, len(f.Stops)) {
		if i >= len(route.Stops) || !sameStop(route.Stops[i], f.Stops[i]) {
			r.violation("committed", route.DroneID, f.Stops[i].OrderID, "stop %d cannot be changed any more", i)
			return false
		}
	}
	return true
}

func sameStop(a, b model.Stop) bool {
	return a.Kind == b.Kind && a.OrderID == b.OrderID && a.WarehouseID == b.WarehouseID && same(a.At, b.At)
}

// carriedOn checks the pickup of an order that a flight has yet to pick up.
func (r *replay) carriedOn(carrier, drone string, stop model.Stop) {
	switch {
	case carrier != drone:
		r.violation("carrier", drone, stop.OrderID, "is drone %q's", carrier)
	case !slices.ContainsFunc(r.flights[drone].Stops, func(s model.Stop) bool { return sameStop(s, stop) }):
		r.violation("stock", drone, stop.OrderID, "picked up elsewhere than planned")
	}
}

// keepsPromises checks that all orders of a flight are still delivered except those that it
// may take away, that no CRITICAL one of them is made late, and that the amendment adds what
// it says.
func (r *replay) keepsPromises(a model.Amendment, f model.Flight, before planned) {
	for _, o := range f.Orders {
		at, delivered := r.delivered[o.ID]
		due := o.Due(r.problem.Now).Add(model.LateTolerance)
		switch was := before.arrivals[o.ID]; {
		case !delivered && slices.Contains(a.ReleasedIDs, o.ID):
			if o.Priority == model.Critical && !was.After(due) {
				r.violation("critical", a.DroneID, o.ID, "is taken away, and the drone would deliver it in time")
			}
		case !delivered:
			r.violation("dropped", a.DroneID, o.ID, "is the drone's, and the amended route does not deliver it")
		case o.Priority == model.Critical && at.After(due) && !was.After(due):
			r.violation("critical", a.DroneID, o.ID, "is made late by %s", at.Sub(due))
		}
	}
	var added []string
	for _, id := range a.OrderIDs() {
		if _, flies := r.inFlight[id]; !flies {
			added = append(added, id)
		}
	}
	listed := slices.Clone(a.AddedIDs)
	slices.Sort(added)
	slices.Sort(listed)
	if len(added) == 0 && len(a.ReleasedIDs) == 0 && slices.EqualFunc(a.Stops, f.Stops, sameStop) {
		r.violation("empty", a.DroneID, "", "amendment changes nothing")
	}
	r.takesAway(a, f)
	if !slices.Equal(added, listed) {
		r.violation("added", a.DroneID, "", "says it adds %q, adds %q", listed, added)
	}
}

// takesAway checks what an amendment says it takes away: orders of the flight whose parcels
// are not fetched and whose pickups can still be left out.
func (r *replay) takesAway(a model.Amendment, f model.Flight) {
	left := map[string]bool{}
	for _, o := range f.Orders {
		left[o.ID] = true
	}
	for _, id := range a.ReleasedIDs {
		pickup := slices.IndexFunc(f.Stops, func(s model.Stop) bool { return s.Kind == model.WarehousePickup && s.OrderID == id })
		switch {
		case !left[id]:
			r.violation("released", a.DroneID, id, "is not the drone's, or taken away twice")
		case pickup < 0:
			r.violation("released", a.DroneID, id, "is aboard")
		case pickup < f.Committed:
			r.violation("released", a.DroneID, id, "its pickup cannot be changed any more")
		case slices.ContainsFunc(a.Stops, func(s model.Stop) bool { return s.OrderID == id }):
			r.violation("released", a.DroneID, id, "is taken away, and the amended route has it")
		}
		delete(left, id)
	}
	if len(left)+len(a.AddedIDs)+f.OrdersDelivered == 0 {
		r.violation("released", a.DroneID, "", "leaves the mission without an order")
	}
}
