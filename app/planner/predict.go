package planner

import (
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/model"
)

const (
	// DefaultTurnTime is how long before its arrival at a stop a drone can no longer be
	// sent elsewhere (F-AMD-02).
	DefaultTurnTime = 30 * time.Second
	// applyMargin is how much later than planned an amendment may be applied and still find
	// the drone where it can turn.
	applyMargin = 5 * time.Second
	// chargeMargin, in percent, is what a drone in flight may use before its amendment is
	// applied: it must not be refused for that.
	chargeMargin = 1
	// atStopMetres is how near its latest stop a drone may still be serving it, as the
	// State Manager judges.
	atStopMetres = 75
	// landingMargin is how long before its landing a drone can be given its next mission. Later
	// it may have landed when the decision is applied, which is then refused.
	landingMargin = 10 * time.Second
	// farAhead is longer than any flight: a drone that is ready only then has a wrong time.
	farAhead = 24 * time.Hour
)

// flightsOf predicts the drones in flight of a snapshot at the given time, when drones begin
// what is planned. It leaves out those whose missions are about to end.
func flightsOf(flights []domain.Flight, now time.Time, params solver.Params, turn time.Duration, learned learning.Estimates) []solver.Flight {
	params = params.WithDefaults()
	var list []solver.Flight
	for _, f := range flights {
		if g, ok := predictFlight(f, now, params, turn, learned); ok {
			list = append(list, g)
		}
	}
	return list
}

// amendable are the flights of a snapshot whose missions an amendment can repeat: each order is
// listed once and does not wait, no stop charges or waits, and the wire accepts all ids.
func amendable(snap domain.Snapshot) []domain.Flight {
	waits := map[domain.OrderID]bool{}
	for _, o := range snap.Orders {
		waits[o.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(snap.Flights), func(f domain.Flight) bool {
		listed := map[domain.OrderID]bool{}
		bad := slices.ContainsFunc(f.Mission.OrderIDs, func(id domain.OrderID) bool {
			again := listed[id]
			listed[id] = true
			return again || waits[id] || domain.CheckID(string(id)) != nil
		})
		return !homebound(f) && (bad || slices.ContainsFunc(f.Mission.Route, unlistable))
	})
}

func unlistable(w domain.Waypoint) bool {
	bad := func(id string) bool { return id != "" && domain.CheckID(id) != nil }
	return w.Duty() || bad(string(w.OrderID)) || bad(string(w.WarehouseID))
}

// homebound reports whether a drone in flight has served its mission. What is added to the
// rest of it, the way home, is its next mission. Such a drone is not planned like an idle
// one: that would use up its charge on orders that can wait for a full drone.
func homebound(f domain.Flight) bool { return f.Mission.Status == domain.MissionCompleted }

// predictFlight predicts where a drone in flight will be at the given time, and what it will have
// left to do. It assumes the learned speed, or else cruise speed, and the service times of the
// parameters. It returns false if the mission will be over, or will not end at a depot.
func predictFlight(f domain.Flight, now time.Time, params solver.Params, turn time.Duration, learned learning.Estimates) (solver.Flight, bool) {
	drone := dronesOf([]domain.Drone{f.Drone})[0]
	drone.SpeedKmh = learned.SpeedOf(f.Drone.ID)
	route := f.Mission.Route
	n := len(route)
	if f.Mission.Standby() && !homebound(f) {
		return solver.Flight{}, false // see predictStandby
	}
	if n == 0 || route[n-1].Type != domain.WaypointDepotReturn {
		return solver.Flight{}, false
	}
	if flown := now.Sub(f.Mission.StartTime); drone.MaxFlight > 0 {
		if drone.MaxFlight -= flown; drone.MaxFlight <= 0 {
			return solver.Flight{}, false
		}
	}
	next := min(f.Mission.ReachedStops, n)
	at, clock := f.Drone.Position, f.Drone.SeenAt
	aboard := cargoOf(f, next)
	if next > 0 && route[next-1].ForOrder() {
		at, clock = leaveStop(f, route[next-1], drone, params)
		drone.BatteryPercent -= f.Drone.Position.DistanceMetres(at) / 1000 * drone.ConsumptionWith(aboard.weightBefore(route[next-1]))
	}
	for clock.Before(now) && next < n {
		leg := at.DistanceMetres(route[next].Position)
		arrives := clock.Add(flightTime(&drone, leg))
		if arrives.After(now) {
			halfway := at.Towards(route[next].Position, leg*now.Sub(clock).Seconds()/arrives.Sub(clock).Seconds())
			drone.BatteryPercent -= at.DistanceMetres(halfway) / 1000 * drone.ConsumptionWith(aboard.kg)
			at, clock = halfway, now
			break
		}
		drone.BatteryPercent -= leg / 1000 * drone.ConsumptionWith(aboard.kg)
		at, clock = route[next].Position, arrives.Add(service(route[next], params))
		aboard.serve(route[next])
		next++
	}
	drone.At = location(at)
	drone.BatteryPercent = max(0, drone.BatteryPercent)
	g := solver.Flight{
		Drone: drone, MissionID: string(f.Mission.ID), Revision: f.Mission.RouteRevision, Ready: later(clock, now),
		StopsBehind: next,
	}
	for _, w := range route[next:] {
		if w.Type == domain.WaypointDepotStart {
			return g, false
		}
		g.Stops = append(g.Stops, stopOf(w))
	}
	g.Orders, g.OrdersDelivered = ordersAhead(f, g.Stops)
	ready := commit(&g, now, params, turn)
	if homebound(f) {
		g.StopsBehind, g.OrdersDelivered = 0, 0 // of the next mission
		ready = len(g.Stops) == 1 && flightTime(&drone, metres(drone.At, g.Stops[0].At)) > landingMargin
	}
	return g, ready && wellFormed(g, now)
}

// cargo is what a drone in flight carries, stop by stop.
type cargo struct {
	kg     float64
	flight domain.Flight
}

// cargoOf is what the drone carries on the way to the stop of its route with the given
// index: what it delivers from there on and does not pick up first.
func cargoOf(f domain.Flight, next int) cargo {
	c := cargo{flight: f}
	fetched := map[domain.OrderID]bool{}
	for _, w := range f.Mission.Route[next:] {
		switch {
		case w.Type == domain.WaypointWarehousePickup:
			fetched[w.OrderID] = true
		case w.Type == domain.WaypointHospitalDelivery && !fetched[w.OrderID]:
			c.kg += c.weight(w.OrderID)
		}
	}
	return c
}

// weight of an order's parcel. One whose order is not known, as that of the latest delivery,
// may fill the drone.
func (c *cargo) weight(id domain.OrderID) float64 {
	if i := slices.IndexFunc(c.flight.Orders, func(o domain.Order) bool { return o.ID == id }); i >= 0 {
		return c.flight.Orders[i].WeightKg
	}
	return max(0, c.flight.Drone.PayloadCapacityKg-c.kg)
}

// weightBefore is the weight aboard on the way to a stop after which this is.
func (c *cargo) weightBefore(w domain.Waypoint) float64 {
	if w.Type == domain.WaypointHospitalDelivery {
		return c.kg + c.weight(w.OrderID)
	}
	return c.kg // a pickup had less
}

func (c *cargo) serve(w domain.Waypoint) {
	switch w.Type {
	case domain.WaypointWarehousePickup:
		c.kg += c.weight(w.OrderID)
	case domain.WaypointHospitalDelivery:
		c.kg = max(0, c.kg-c.weight(w.OrderID)) // a rounding must not leave less than nothing
	case domain.WaypointDepotStart, domain.WaypointDepotReturn, domain.WaypointCharge, domain.WaypointWait:
	}
}

// leaveStop is where and when a drone leaves its latest stop, if it is still there;
// otherwise where and when it was last seen.
func leaveStop(f domain.Flight, stop domain.Waypoint, drone solver.Drone, params solver.Params) (domain.Position, time.Time) {
	seen, away := f.Drone.SeenAt, f.Drone.Position.DistanceMetres(stop.Position)
	if away > atStopMetres {
		return f.Drone.Position, seen
	}
	reached := f.ReachedAt
	if reached.IsZero() {
		reached = seen
	}
	// A stop counts as reached up to atStopMetres before it.
	leaves := reached.Add(flightTime(&drone, atStopMetres) + service(stop, params))
	if !leaves.After(seen) {
		return f.Drone.Position, seen
	}
	return stop.Position, leaves
}

func service(w domain.Waypoint, params solver.Params) time.Duration {
	switch w.Type {
	case domain.WaypointWarehousePickup:
		return params.PickupService
	case domain.WaypointHospitalDelivery:
		return params.DeliveryService
	case domain.WaypointDepotStart, domain.WaypointDepotReturn, domain.WaypointCharge, domain.WaypointWait:
	}
	return 0
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func stopOf(w domain.Waypoint) solver.Stop {
	kinds := map[domain.WaypointType]solver.StopKind{
		domain.WaypointDepotStart: solver.DepotStart, domain.WaypointWarehousePickup: solver.WarehousePickup,
		domain.WaypointHospitalDelivery: solver.Delivery, domain.WaypointDepotReturn: solver.DepotReturn,
		domain.WaypointCharge: solver.Charge, domain.WaypointWait: solver.Wait,
	}
	return solver.Stop{
		Kind: kinds[w.Type], At: location(w.Position), OrderID: string(w.OrderID), WarehouseID: string(w.WarehouseID),
		ChargeToPercent: w.ChargeToPercent, Until: w.WaitUntil,
	}
}

// ordersAhead are the orders of a flight that are still to be delivered along the stops,
// and how many of the mission are not.
func ordersAhead(f domain.Flight, stops []solver.Stop) (ahead []solver.Order, delivered int) {
	for _, s := range stops {
		if s.Kind != solver.Delivery {
			continue
		}
		if i := slices.IndexFunc(f.Orders, func(o domain.Order) bool { return string(o.ID) == s.OrderID }); i >= 0 {
			ahead = append(ahead, orderOf(f.Orders[i]))
		}
	}
	return ahead, len(f.Mission.OrderIDs) - len(ahead)
}

// wellFormed reports whether the rest of a mission is one that planners write: each known
// order is fetched, unless it is aboard, and brought to its place, and then the drone flies
// home. It never carries more than the drone can. One record that was edited by hand must
// not end the planning of the others.
func wellFormed(g solver.Flight, now time.Time) bool {
	if g.Ready.Sub(now) > farAhead {
		return false
	}
	left, aboard, load := map[string]solver.Order{}, map[string]bool{}, 0.0
	for _, o := range g.Orders {
		left[o.ID] = o
	}
	for _, o := range g.Aboard() {
		aboard[o.ID] = true
		load += o.WeightKg
	}
	for i, s := range g.Stops {
		last := i == len(g.Stops)-1
		o, known := left[s.OrderID]
		switch {
		case last != (s.Kind == solver.DepotReturn) || !valid(s.At) || g.Drone.CapacityKg > 0 && load > g.Drone.CapacityKg:
			return false
		case last:
		case !known || s.Kind != solver.WarehousePickup && s.Kind != solver.Delivery:
			return false
		case aboard[o.ID] != (s.Kind == solver.Delivery):
			return false
		case s.Kind == solver.WarehousePickup:
			aboard[o.ID] = true
			load += o.WeightKg
		case s.At != o.Delivery:
			return false
		default:
			delete(left, o.ID)
			load -= o.WeightKg
		}
	}
	return true
}

func valid(at solver.Location) bool { return math.Abs(at.Lat) <= 90 && math.Abs(at.Lon) <= 180 }

// commit counts the stops that can no longer be changed: those that are reached within
// the turning time, and those at the same place. It returns false if no order stop is
// left that the drone reaches late enough for an amendment to find the mission ACTIVE.
func commit(g *solver.Flight, now time.Time, params solver.Params, turn time.Duration) bool {
	clock, at, alive := g.Ready, g.Drone.At, false
	if len(g.Stops) == 0 {
		return false
	}
	for i, s := range g.Stops {
		clock = clock.Add(flightTime(&g.Drone, metres(at, s.At)))
		if i == g.Committed && (clock.Sub(now) <= turn+applyMargin || i > 0 && metres(at, s.At) <= atStopMetres) && s.Kind != solver.DepotReturn {
			g.Committed = i + 1
		}
		alive = alive || s.OrderID != "" && clock.Sub(now) > applyMargin
		switch s.Kind {
		case solver.WarehousePickup:
			clock = clock.Add(params.PickupService)
		case solver.Delivery:
			clock = clock.Add(params.DeliveryService)
		case model.DepotStart, solver.DepotReturn:
		}
		at = s.At
	}
	return alive
}

// addStandby adds the drones on missions without orders to the drones that are free: such a
// mission gives way at once. Their position is predicted for the problem's time.
// One whose mission is about to end is left out: it may be over when an amendment comes.
func (p *Planner) addStandby(problem *solver.Problem, flights []domain.Flight) {
	for _, f := range flights {
		if !f.Mission.Standby() || f.Mission.Status != domain.MissionActive {
			continue
		}
		d := dronesOf([]domain.Drone{f.Drone})[0]
		d.SpeedKmh = p.learned.SpeedOf(f.Drone.ID)
		if d, s, ok := predictStandby(f, d, problem.Now); ok {
			problem.Drones, problem.Standing = append(problem.Drones, d), append(problem.Standing, s)
		}
	}
}

// predictStandby predicts where a drone on a mission without orders will be at the given time.
// What it charges until then does not count.
func predictStandby(f domain.Flight, d solver.Drone, now time.Time) (solver.Drone, solver.Standing, bool) {
	if d.MaxFlight > 0 {
		// On the ground it uses no flight time, so what it has flown follows from its charge.
		if d.MaxFlight -= flightTime(&d, (100-d.BatteryPercent)/d.ConsumptionWith(0)*1000); d.MaxFlight <= 0 {
			return d, solver.Standing{}, false
		}
	}
	s := solver.Standing{DroneID: d.ID, MissionID: string(f.Mission.ID), Revision: f.Mission.RouteRevision}
	ahead := f.Mission.Route[min(f.Mission.ReachedStops, len(f.Mission.Route)):]
	for len(ahead) > 0 && ahead[0].Type == domain.WaypointDepotStart {
		ahead = ahead[1:]
	}
	if len(ahead) == 0 || !ahead[0].Duty() {
		return d, s, false
	}
	for _, w := range ahead {
		s.Stops = append(s.Stops, stopOf(w))
	}
	to := ahead[0]
	leg := f.Drone.Position.DistanceMetres(to.Position)
	flown := min(leg, max(0, now.Sub(f.Drone.SeenAt).Hours())*d.Speed()*1000)
	d.At = location(f.Drone.Position.Towards(to.Position, flown))
	if flown >= leg {
		d.At = location(to.Position)
	}
	d.BatteryPercent = max(0, d.BatteryPercent-flown/1000*d.ConsumptionWith(0))
	if flown < leg {
		d.BatteryPercent = max(0, d.BatteryPercent-chargeMargin)
	}
	ends := to.WaitUntil
	if to.Type == domain.WaypointCharge {
		ends = f.Drone.SeenAt.Add(time.Duration((to.ChargeToPercent - f.Drone.Battery) / f.Drone.ChargePerMinute() * float64(time.Minute)))
		if flown < leg {
			ends = now.Add(time.Hour)
		}
	}
	return d, s, ends.Sub(now) > applyMargin
}

// addCharging counts the slots that drones without a mission have or wait for.
func addCharging(p *solver.Problem, snap domain.Snapshot) {
	for _, d := range snap.Charging {
		for i := range p.Depots {
			if p.Depots[i].ID == string(d.HomeDepotID) {
				p.Depots[i].SlotsTaken++
			}
		}
	}
}
