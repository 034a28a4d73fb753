package planner

import (
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/solver"
)

const (
	// applyMargin is how much later than planned an amendment may be applied and still find
	// the drone where it can turn.
	applyMargin = 5 * time.Second
	// chargeMargin, in percent, is what a drone in flight may use before its amendment is applied,
	// so that this is not refused.
	chargeMargin = 1
	// landingMargin is how long before its landing a drone can still get its next mission. Later
	// the drone may land before the decision is applied, which would be refused.
	landingMargin = 10 * time.Second
	// farAhead is longer than any flight: a drone that is ready only then has a wrong time.
	farAhead = 24 * time.Hour
)

// addFlights adds the drones on missions with orders, as they will be at the problem's time. It
// leaves out those whose missions are about to end.
func (p *Planner) addFlights(problem *solver.Problem, flights []domain.Flight) {
	params := problem.Params.WithDefaults()
	for _, f := range flights {
		if g, ok := p.predictFlight(f, problem.Now, params); ok {
			problem.Flights = append(problem.Flights, g)
		}
	}
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

// homebound reports whether a drone in flight has served its mission; orders added to its way home
// become its next mission. It is not planned like an idle drone, which would spend its charge on
// orders that can wait for a full drone.
func homebound(f domain.Flight) bool { return f.Mission.Status == domain.MissionCompleted }

// predictFlight predicts where a drone in flight will be at the given time, and what it will
// have left to do. It assumes the learned speed, or else cruise speed, and the service times of
// the parameters. It returns false if the mission will be over, or will not end at a depot.
func (p *Planner) predictFlight(f domain.Flight, now time.Time, params solver.Params) (solver.Flight, bool) {
	drone, stops := droneOf(f.Drone, p.learned), stopsOf(f.Mission.Route)
	n := len(stops)
	if n == 0 || stops[n-1].Kind != solver.DepotReturn || f.Mission.Standby() && !homebound(f) {
		return solver.Flight{}, false
	}
	if drone.MaxFlight > 0 {
		if drone.MaxFlight -= now.Sub(f.Mission.StartTime); drone.MaxFlight <= 0 {
			return solver.Flight{}, false
		}
	}
	next := min(f.Mission.ReachedStops, n)
	at, clock := drone.At, f.Drone.SeenAt
	aboard := cargoOf(f, stops[next:])
	if next > 0 && servesOrder(stops[next-1]) {
		at, clock = leaveStop(f, stops[next-1], drone, params, p.cfg.Limits.StopRadiusMetres)
		drone.BatteryPercent -= metres(drone.At, at) / 1000 * drone.ConsumptionWith(aboard.weightBefore(stops[next-1]))
	}
	for clock.Before(now) && next < n {
		stop := stops[next]
		leg := metres(at, stop.At)
		arrives := clock.Add(flightTime(&drone, leg))
		if arrives.After(now) {
			halfway := towards(at, stop.At, leg*now.Sub(clock).Seconds()/arrives.Sub(clock).Seconds())
			drone.BatteryPercent -= metres(at, halfway) / 1000 * drone.ConsumptionWith(aboard.kg)
			at, clock = halfway, now
			break
		}
		drone.BatteryPercent -= leg / 1000 * drone.ConsumptionWith(aboard.kg)
		at, clock = stop.At, arrives.Add(serviceTime(stop.Kind, params))
		aboard.serve(stop)
		next++
	}
	drone.At, drone.BatteryPercent = at, max(0, drone.BatteryPercent)
	g := solver.Flight{
		Drone: drone, MissionID: string(f.Mission.ID), Revision: f.Mission.RouteRevision, Ready: later(clock, now),
		StopsBehind: next, Stops: stops[next:],
	}
	for _, s := range g.Stops {
		if i := slices.IndexFunc(f.Orders, func(o domain.Order) bool { return string(o.ID) == s.OrderID }); i >= 0 && s.Kind == solver.Delivery {
			g.Orders = append(g.Orders, orderOf(f.Orders[i]))
		}
	}
	g.OrdersDelivered = len(f.Mission.OrderIDs) - len(g.Orders)
	ready := commit(&g, now, params, p.cfg.Limits)
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

// cargoOf is what the drone carries on the way to the first of the stops: what it delivers and
// does not pick up first.
func cargoOf(f domain.Flight, stops []solver.Stop) cargo {
	c := cargo{flight: f}
	pickedUp := map[string]bool{}
	for _, s := range stops {
		if s.Kind == solver.WarehousePickup {
			pickedUp[s.OrderID] = true
		} else if s.Kind == solver.Delivery && !pickedUp[s.OrderID] {
			c.kg += c.weight(s.OrderID)
		}
	}
	return c
}

// weight of an order's parcel. One of an unknown order, such as that of the latest delivery,
// counts as a full load.
func (c *cargo) weight(order string) float64 {
	if i := slices.IndexFunc(c.flight.Orders, func(o domain.Order) bool { return string(o.ID) == order }); i >= 0 {
		return c.flight.Orders[i].WeightKg
	}
	return max(0, c.flight.Drone.PayloadCapacityKg-c.kg)
}

// weightBefore is the weight aboard on the way to a stop after which this is aboard.
func (c *cargo) weightBefore(s solver.Stop) float64 {
	if s.Kind == solver.Delivery {
		return c.kg + c.weight(s.OrderID)
	}
	return c.kg // a pickup had less
}

func (c *cargo) serve(s solver.Stop) {
	switch s.Kind {
	case solver.WarehousePickup:
		c.kg += c.weight(s.OrderID)
	case solver.Delivery:
		c.kg = max(0, c.kg-c.weight(s.OrderID)) // a rounding must not leave less than nothing
	case solver.DepotStart, solver.DepotReturn, solver.Charge, solver.Wait:
	}
}

// leaveStop is where and when a drone leaves its latest stop, if it is still there;
// otherwise where and when it was last seen.
func leaveStop(f domain.Flight, stop solver.Stop, drone solver.Drone, params solver.Params, radius float64) (solver.Location, time.Time) {
	if metres(drone.At, stop.At) > radius {
		return drone.At, f.Drone.SeenAt
	}
	reached := f.ReachedAt
	if reached.IsZero() {
		reached = f.Drone.SeenAt
	}
	// A stop counts as reached up to its radius before it.
	leaves := reached.Add(flightTime(&drone, radius) + serviceTime(stop.Kind, params))
	if !leaves.After(f.Drone.SeenAt) {
		return drone.At, f.Drone.SeenAt
	}
	return stop.At, leaves
}

// serviceTime is how long a drone stays at a stop for an order.
func serviceTime(kind solver.StopKind, params solver.Params) time.Duration {
	switch kind {
	case solver.WarehousePickup:
		return params.PickupService
	case solver.Delivery:
		return params.DeliveryService
	case solver.DepotStart, solver.DepotReturn, solver.Charge, solver.Wait:
	}
	return 0
}

func servesOrder(s solver.Stop) bool {
	return s.Kind == solver.WarehousePickup || s.Kind == solver.Delivery
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func towards(from, to solver.Location, metres float64) solver.Location {
	return location(domain.Position(from).Towards(domain.Position(to), metres))
}

var stopKinds = map[domain.WaypointType]solver.StopKind{
	domain.WaypointDepotStart: solver.DepotStart, domain.WaypointWarehousePickup: solver.WarehousePickup,
	domain.WaypointHospitalDelivery: solver.Delivery, domain.WaypointDepotReturn: solver.DepotReturn,
	domain.WaypointCharge: solver.Charge, domain.WaypointWait: solver.Wait,
}

func stopsOf(route []domain.Waypoint) []solver.Stop {
	stops := make([]solver.Stop, len(route))
	for i, w := range route {
		stops[i] = solver.Stop{
			Kind: stopKinds[w.Type], At: location(w.Position), OrderID: string(w.OrderID), WarehouseID: string(w.WarehouseID),
			ChargeToPercent: w.ChargeToPercent, Until: w.WaitUntil,
		}
	}
	return stops
}

// wellFormed reports whether the rest of a mission is one that planners write: each known order is
// fetched, unless it is aboard, and delivered, and then the drone flies home. It never carries
// more than the drone can. A record that was edited by hand must not stop the planning of others.
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
		case !known || !servesOrder(s):
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

// commit counts the stops that can no longer be changed: those reached within the turning time,
// and those at the same point. It returns false if no order stop is left that the drone reaches
// late enough for an amendment to find the mission ACTIVE.
func commit(g *solver.Flight, now time.Time, params solver.Params, limits policy.Limits) bool {
	clock, at, alive := g.Ready, g.Drone.At, false
	if len(g.Stops) == 0 {
		return false
	}
	for i, s := range g.Stops {
		clock = clock.Add(flightTime(&g.Drone, metres(at, s.At)))
		if i == g.Committed && (clock.Sub(now) <= limits.TurnTime+applyMargin || i > 0 && metres(at, s.At) <= limits.StopRadiusMetres) && s.Kind != solver.DepotReturn {
			g.Committed = i + 1
		}
		alive = alive || s.OrderID != "" && clock.Sub(now) > applyMargin
		clock = clock.Add(serviceTime(s.Kind, params))
		at = s.At
	}
	return alive
}

// onStandby reports whether a drone is on a mission without orders.
func onStandby(f domain.Flight) bool {
	return f.Mission.Standby() && f.Mission.Status == domain.MissionActive
}

// addStandbyMissions adds the drones on missions without orders to the free ones, because such a
// mission gives way at once. It leaves out missions about to end, which may be over when an
// amendment comes.
func (p *Planner) addStandbyMissions(problem *solver.Problem, flights []domain.Flight) {
	for _, f := range flights {
		if !onStandby(f) {
			continue
		}
		if d, m, ok := predictStandby(f, droneOf(f.Drone, p.learned), problem.Now); ok {
			problem.Drones, problem.StandbyMissions = append(problem.Drones, d), append(problem.StandbyMissions, m)
		}
	}
}

// predictStandby predicts where a drone on a mission without orders will be at the given time.
// What it charges until then does not count.
func predictStandby(f domain.Flight, d solver.Drone, now time.Time) (solver.Drone, solver.StandbyMission, bool) {
	if d.MaxFlight > 0 {
		// On the ground it uses no flight time, so what it has flown follows from its charge.
		if d.MaxFlight -= flightTime(&d, (100-d.BatteryPercent)/d.ConsumptionWith(0)*1000); d.MaxFlight <= 0 {
			return d, solver.StandbyMission{}, false
		}
	}
	stops := stopsOf(f.Mission.Route[min(f.Mission.ReachedStops, len(f.Mission.Route)):])
	for len(stops) > 0 && stops[0].Kind == solver.DepotStart {
		stops = stops[1:]
	}
	m := solver.StandbyMission{DroneID: d.ID, MissionID: string(f.Mission.ID), Revision: f.Mission.RouteRevision, Stops: stops}
	if len(stops) == 0 || stops[0].Kind != solver.Charge && stops[0].Kind != solver.Wait {
		return d, m, false
	}
	to := stops[0]
	leg := metres(d.At, to.At)
	flown := min(leg, max(0, now.Sub(f.Drone.SeenAt).Hours())*d.Speed()*1000)
	d.At = towards(d.At, to.At, flown)
	d.BatteryPercent = max(0, d.BatteryPercent-flown/1000*d.ConsumptionWith(0))
	arrived := flown >= leg
	if !arrived {
		d.BatteryPercent = max(0, d.BatteryPercent-chargeMargin)
	}
	switch {
	case to.Kind == solver.Wait:
		return d, m, to.Until.Sub(now) > applyMargin
	case !arrived: // it has yet to charge
		return d, m, true
	}
	charged := f.Drone.SeenAt.Add(time.Duration((to.ChargeToPercent - f.Drone.Battery) / f.Drone.ChargePerMinute() * float64(time.Minute)))
	return d, m, charged.Sub(now) > applyMargin
}
