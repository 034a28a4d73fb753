package planner

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/solver"
)

// Fleet is the drones of all areas at one time, with what decides how soon they could serve an order.
type Fleet struct {
	Now        time.Time
	Drones     []domain.Drone
	Missions   []domain.Mission // the active ones
	Orders     []domain.Order   // the open ones, which tell what drones carry
	Depots     []domain.Depot
	Warehouses []domain.Warehouse
}

// Arrival is how soon an order could be delivered, and by which drone. It is zero if no drone can
// deliver the order, however long it waits.
type Arrival struct {
	DroneID domain.DroneID
	At      time.Time
}

// maxJoins is how many missions under way are tried for one order, the most promising ones.
const maxJoins = 40

// Arrivals tells how soon a drone could deliver each order of a fleet, if no other order waited. It
// counts drones that are idle, charging, or on a mission, as soon as they could begin. It does not
// count the time until the next cycle. It is not safe for concurrent use.
type Arrivals struct {
	amender
	now    time.Time
	starts []start // the soonest first
	joins  []join
}

// start is a place and a time at which a drone can begin a mission.
type start struct {
	drone domain.DroneID
	model solver.Drone // as it is there and then
	at    time.Duration
	full  time.Duration // when it has charged there; never if it cannot
	depot int           // where it lands; see directFlights.depot
	near  approach
}

// join is a mission under way that an order can join, where and when its drone sets out for the first stop that is not committed.
type join struct {
	route *remainingRoute
	at    solver.Location
	ready float64 // seconds from now, with a pickup
	near  approach
}

// NewArrivals looks at a fleet. Of cfg it uses the parameters, the limits and what was learned.
// offered says which drones are given missions; how long a drone has been silent does not count,
// because it is UNKNOWN once that matters.
func NewArrivals(cfg Config, offered policy.DronePolicy, fleet Fleet) *Arrivals {
	offered.MaxSilence = math.MaxInt64
	p := New(cfg, func() time.Time { return fleet.Now })
	snap := domain.Snapshot{ReadTime: fleet.Now, Warehouses: fleet.Warehouses}
	if len(fleet.Depots) > 0 {
		snap.Depot, snap.Neighbours = fleet.Depots[0], fleet.Depots[1:]
	}
	missions, carried := make(map[domain.MissionID]*domain.Mission, len(fleet.Missions)), make(map[domain.OrderID]domain.Order, len(fleet.Orders))
	for i := range fleet.Missions {
		missions[fleet.Missions[i].ID] = &fleet.Missions[i]
	}
	for _, o := range fleet.Orders {
		if !o.Waits() {
			carried[o.ID] = o
		}
	}
	var able []*domain.Drone
	for i := range fleet.Drones {
		d := &fleet.Drones[i]
		if !offered.InService(*d, fleet.Now) || !canFly(*d) {
			continue
		}
		able = append(able, d)
		if m := missions[d.CurrentMissionID]; m != nil && offered.Amendable(*d, *m, fleet.Now) {
			snap.Flights = append(snap.Flights, FlightOf(*d, *m, carried))
		}
	}
	problem := p.ProblemOf(snap, fleet.Now)
	if len(fleet.Depots) == 0 {
		problem.Depots = nil
	}
	a := &Arrivals{amender: amender{directFlights: newDirectFlights(&problem)}, now: fleet.Now}
	for _, d := range problem.Drones { // those on missions without orders, which give way at once
		a.begin(domain.DroneID(d.ID), d, 0, never)
	}
	for i := range problem.Flights {
		f := &problem.Flights[i]
		route := newRemainingRoute(f, fleet.Now, a.params)
		if !route.flyable() { // it cannot become longer
			continue
		}
		at, leaves, _ := route.departure(f.Committed)
		a.joins = append(a.joins, join{route, at, leaves + route.service(solver.WarehousePickup), a.approachFrom(at)})
	}
	for _, d := range able {
		a.addStarts(d, missions[d.CurrentMissionID], droneOf(*d, p.learned))
	}
	slices.SortStableFunc(a.starts, func(s, t start) int { return cmp.Compare(s.at, t.at) })
	return a
}

// canFly reports whether a drone does what a drone does that is given missions, now or soon.
func canFly(d domain.Drone) bool {
	switch d.Status {
	case domain.DroneIdle, domain.DroneMoving, domain.DroneDelivering, domain.DroneCharging:
		return d.Heard() && !d.EmergencyLatched && d.FaultSince.IsZero() && d.GhostMissionID == "" && d.Battery >= 0 // not NaN
	case domain.DroneReserved, domain.DroneMaintenance, domain.DroneProblem, domain.DroneEmergency, domain.DroneUnknown:
	}
	return false
}

// addStarts adds where a drone can begin a mission of its own: where it is if it is idle, or flies
// home without orders, and otherwise at its depot, when it has landed or charged.
func (a *Arrivals) addStarts(d *domain.Drone, m *domain.Mission, here solver.Drone) {
	toFull := func(battery float64) time.Duration {
		return time.Duration(min(max(0, 100-battery)/d.ChargePerMinute(), farAhead.Minutes()) * float64(time.Minute))
	}
	parked := !d.Bound() && metres(here.At, a.home(&here)) < samePointMetres
	switch {
	case parked && d.Status == domain.DroneIdle:
		a.begin(d.ID, here, 0, toFull(here.BatteryPercent))
		return
	case parked && d.Status == domain.DroneCharging: // it takes no mission before
		full := toFull(here.BatteryPercent)
		here.BatteryPercent = 100
		a.begin(d.ID, here, full, full)
		return
	case !d.Bound() && d.Status == domain.DroneIdle:
		a.begin(d.ID, here, 0, never)
	case d.Homebound && d.SupportsAmendments && d.MissionAcked:
		flying, flown := here, flightTime(&here, (100-here.BatteryPercent)/here.ConsumptionWith(0)*1000)
		if flying.MaxFlight -= flown; here.MaxFlight == 0 {
			flying.MaxFlight = 0
		}
		if here.MaxFlight == 0 || flying.MaxFlight > 0 {
			a.begin(d.ID, flying, 0, never)
		}
	}
	landed := here
	at := a.land(&landed, m)
	landed.BatteryPercent = max(0, landed.BatteryPercent)
	a.begin(d.ID, landed, at, at+toFull(landed.BatteryPercent))
}

func (a *Arrivals) begin(id domain.DroneID, d solver.Drone, at, full time.Duration) {
	if at < 0 || at > farAhead { // a spoiled record
		return
	}
	a.starts = append(a.starts, start{id, d, at, full, a.depot(&d), a.approachFrom(d.At)})
}

// Earliest is how soon a drone could deliver an order that waits.
func (a *Arrivals) Earliest(o domain.Order) Arrival {
	order := orderOf(o)
	r := a.request(&order)
	soonest, drone := never, domain.DroneID("")
	for i := range a.starts {
		s := &a.starts[i]
		if s.at >= soonest {
			break
		}
		if took := a.reach(s, r, soonest); took < soonest {
			soonest, drone = took, s.drone
		}
	}
	if took, by := a.soonestJoin(r, soonest); took < soonest {
		soonest, drone = took, by
	}
	if drone == "" {
		return Arrival{}
	}
	return Arrival{drone, a.now.Add(soonest)}
}

// reach is when a drone that begins at a start delivers the order: now plus this. It is never if the
// drone cannot, and may be if that is not sooner than the given time.
func (a *Arrivals) reach(s *start, r *request, sooner time.Duration) time.Duration {
	d := &s.model
	if d.CapacityKg > 0 && r.order.WeightKg > d.CapacityKg || !r.order.MayGoBy(d) {
		return never
	}
	if least := a.leastMetres(s.near, d.At, r); !(least < math.Inf(1)) || s.at+flightTime(d, least) >= sooner {
		return never
	}
	out := a.outward(s.near, d.At, r)
	took, charge := a.needFor(d, out, a.homewardTo(r, s.depot, d))
	switch {
	case charge <= d.BatteryPercent:
		return s.at + took
	case charge <= 100 && s.full != never:
		return s.full + took
	}
	return never
}

// leastMetres is a lower bound for outward that is cheap.
func (a *Arrivals) leastMetres(near approach, at solver.Location, r *request) float64 {
	if p := r.order.Pickup; p != nil {
		return metresPerDegree*math.Abs(at.Lat-p.Lat) + r.legs.shortest
	}
	return (1 - distanceError) * (near.nearest + r.legs.shortest)
}

// outward is outwardMetres for a place whose approach is known.
func (a *Arrivals) outward(near approach, at solver.Location, r *request) float64 {
	if r.order.Pickup != nil {
		return a.outwardMetres(r, at)
	}
	return r.viaSupplier(near)
}

// soonestJoin is when a mission under way delivers the order if it joins: now plus this. It is never
// if none does so sooner than the given time.
func (a *Arrivals) soonestJoin(r *request, sooner time.Duration) (soonest time.Duration, drone domain.DroneID) {
	type promise struct {
		join *join
		at   float64 // seconds from now, a lower bound
	}
	limit := sooner.Seconds()
	promises := make([]promise, 0, maxJoins+1)
	for i := range a.joins {
		j := &a.joins[i]
		at := j.ready + j.route.seconds(a.leastMetres(j.near, j.at, r))
		if !(at < limit) || len(promises) == maxJoins && at >= promises[maxJoins-1].at || !j.route.accepts(r.order) {
			continue
		}
		k, _ := slices.BinarySearchFunc(promises, at, func(p promise, at float64) int { return cmp.Compare(p.at, at) })
		promises = slices.Insert(promises, k, promise{j, at})
		promises = promises[:min(len(promises), maxJoins)]
	}
	soonest = never
	sources := a.sourcesOf(r.order)
	for _, p := range promises {
		// The search looks for the cheapest way. It ends when there is none that is sooner.
		for p.at < limit {
			way, ok := p.join.route.insert(r.order, sources, limit-1, math.Inf(1))
			if !ok {
				break
			}
			soonest, drone, limit = secondsOf(way.arrives), domain.DroneID(p.join.route.flight.Drone.ID), way.arrives
		}
	}
	return soonest, drone
}

// FlightOf is a drone in flight with its mission and those of its orders that are open.
func FlightOf(d domain.Drone, m domain.Mission, open map[domain.OrderID]domain.Order) domain.Flight {
	f := domain.Flight{Drone: d, Mission: m, ReachedAt: policy.LastReachedAt(m)}
	for _, id := range m.OrderIDs {
		if o, is := open[id]; is {
			f.Orders = append(f.Orders, o)
		}
	}
	return f
}
