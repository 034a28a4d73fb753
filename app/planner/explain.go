package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/model"
)

// Moment is one area's fleet at one time.
type Moment struct {
	// Snapshot is what a cycle sees: the idle drones, those in flight whose missions can be
	// changed, and the pending orders.
	Snapshot domain.Snapshot
	// Drones are all of the area, whatever they do.
	Drones []domain.Drone
	// Missions are the active ones.
	Missions []domain.Mission
	// Assigned, if set, is the order to explain: one of a mission, which its drone has not
	// picked up. The other drones are compared with that one.
	Assigned *domain.Order
	// List is how many of the nearest drones an explanation lists; 0 means maxNearest.
	List int
}

// MaxAdded is how many drones or slots a WhatIf may add: the plan of the changed moment
// takes longer the more there are.
const MaxAdded = 100

// WhatIf changes a moment for a second plan.
type WhatIf struct {
	AddDrones   int  // that wait at the area's first depot, fully charged
	AddSlots    int  // at each depot where slots are limited, since the waiting drones landed
	DropReserve bool // keep no drone for CRITICAL orders to come
	// PinTo lets only this drone take the order; "" for any.
	PinTo domain.DroneID
}

// Explanation says with numbers why an order waited, or was late.
type Explanation struct {
	// Plan is what a new planner, which remembers no demand, does with the order; for an assigned
	// one, what its mission does.
	Plan Outcome `json:"plan"`
	// Nearest are the drones that would have been there soonest, whatever they lacked.
	Nearest []Candidate `json:"nearest"`
	// Instead is the plan that gives the order to the first of them that lacks nothing;
	// absent if there is none, or if the order has it already.
	Instead *Alternative `json:"instead,omitempty"`
	// WhatIf is the plan of the changed moment; absent if nothing was changed.
	WhatIf *Alternative `json:"whatIf,omitempty"`
}

// Outcome is what a plan does with one order.
type Outcome struct {
	DroneID domain.DroneID `json:"droneId,omitempty"` // absent if it waits
	// MissionID is the mission under way that it joins.
	MissionID domain.MissionID `json:"missionId,omitempty"`
	Arrival   *time.Time       `json:"arrival,omitempty"`
	// LateMinutes is how late it arrives; 0 if it is in time or waits.
	LateMinutes float64 `json:"lateMinutes"`
	// Reason is why it waits, as a cycle would record it.
	Reason    string           `json:"reason,omitempty"`
	Obstacles domain.Obstacles `json:"-"`
	// Drones says in numbers of drones why it waits.
	Drones string `json:"drones,omitempty"`
}

// Candidate is one drone and what it lacked.
type Candidate struct {
	DroneID domain.DroneID `json:"droneId"`
	// Doing is what it was doing, such as idle, CHARGING or on a mission.
	Doing string `json:"doing"`
	// PlannedFor are the other orders that the plan gives it.
	PlannedFor []domain.OrderID `json:"plannedFor,omitempty"`

	Km      float64   `json:"km"`      // from where it begins over the pickup to the delivery
	Arrival time.Time `json:"arrival"` // with a flight for this order alone, once it is free
	// JoinArrival is when it could deliver the order on the mission that it flies, which
	// would become longer by JoinMinutes; absent if it could not.
	JoinArrival *time.Time `json:"joinArrival,omitempty"`
	JoinMinutes float64    `json:"joinMinutes,omitempty"`
	// Lacks says what keeps the drone from the order; the numbers follow. A drone that lacks
	// nothing could have delivered it in time.
	Lacks          []string `json:"lacks"`
	ChargePercent  float64  `json:"lacksChargePercent"`
	ChargeKm       float64  `json:"lacksChargeKm"` // that this charge flies
	PayloadKg      float64  `json:"lacksPayloadKg"`
	LateMinutes    float64  `json:"lacksMinutes"`
	BusyForMinutes float64  `json:"busyForMinutes"` // until it has landed, by its route
}

// Alternative is another plan of the same moment.
type Alternative struct {
	Plan Outcome `json:"plan"`
	// Worse and Better are the other orders that this plan serves later or not at all, or
	// earlier, than the first plan; the most urgent first.
	Worse       []Change `json:"worse"`
	Better      []Change `json:"better"`
	WorseCount  int      `json:"worseCount"`
	BetterCount int      `json:"betterCount"`
}

// Change is how another plan treats one order.
type Change struct {
	OrderID  domain.OrderID `json:"orderId"`
	Priority string         `json:"priority"`
	Before   Outcome        `json:"before"`
	After    Outcome        `json:"after"`
}

const (
	// maxNearest and maxChanges bound what an explanation lists.
	maxNearest = 5
	maxChanges = 10
	// leastChange is by how much an arrival differs at least to count as a change.
	leastChange = time.Minute
)

// ErrNotPlanned says that the moment's snapshot does not have the order.
var ErrNotPlanned = errors.New("the order is not pending at that time")

// explainer plans one moment in several ways.
type explainer struct {
	cfg    Config
	clock  func() time.Time
	moment Moment
	now    time.Time
	id     domain.OrderID
}

// Explain says why an order of the moment waits, or is late: what a cycle would plan at the
// snapshot's read time, which drones were nearest, what each lacked, and which orders would
// have paid for serving this one. Of an assigned order it says which other drones were nearest,
// and who would have paid for giving it to the next best. It plans up to three times.
func Explain(ctx context.Context, cfg Config, clock func() time.Time, m Moment, id domain.OrderID, what WhatIf) (Explanation, error) {
	if m.Assigned != nil { // neither plan changes its mission
		m.Snapshot.Flights = slices.DeleteFunc(slices.Clone(m.Snapshot.Flights), func(f domain.Flight) bool { return f.Drone.ID == m.Assigned.AssignedDroneID })
	}
	x := explainer{cfg, clock, m, m.Snapshot.ReadTime, id}
	problem := New(cfg, clock).ProblemOf(m.Snapshot, x.now)
	present := problem
	if m.Assigned != nil {
		problem.Orders = append(slices.Clone(problem.Orders), orderOf(*m.Assigned))
	}
	at := slices.IndexFunc(problem.Orders, func(o solver.Order) bool { return o.ID == string(id) })
	if at < 0 {
		return Explanation{}, ErrNotPlanned
	}
	first, err := x.plan(ctx, cfg, present)
	if err != nil {
		return Explanation{}, err
	}
	if m.Assigned != nil {
		first.outcomes[id] = x.committed(problem.Orders[at].Due(x.now))
	}
	e := Explanation{Plan: first.outcomes[id], Nearest: x.nearest(problem, at, first)}
	dissatisfied := m.Assigned != nil || e.Plan.DroneID == "" || e.Plan.LateMinutes > 0
	if i := slices.IndexFunc(e.Nearest, func(c Candidate) bool { return len(c.Lacks) == 0 && c.DroneID != e.Plan.DroneID }); i >= 0 && dissatisfied {
		forced := problem
		forced.Orders = slices.Clone(problem.Orders)
		forced.Orders[at].PinnedDroneID, forced.Orders[at].Priority = string(e.Nearest[i].DroneID), solver.Critical
		forced.Orders[at].Deadline = problem.Orders[at].Due(x.now) // that of its own priority
		if e.Instead, err = x.instead(ctx, cfg, forced, first); err != nil {
			return e, err
		}
	}
	if what == (WhatIf{}) {
		return e, nil
	}
	changed := problem
	changed.Drones = append(slices.Clone(problem.Drones), x.added(what.AddDrones)...)
	x.charge(&changed, what.AddSlots)
	cfg.Immediate = cfg.Immediate || what.DropReserve
	if what.PinTo != "" {
		changed.Orders = slices.Clone(problem.Orders)
		changed.Orders[at].PinnedDroneID = string(what.PinTo)
	}
	e.WhatIf, err = x.instead(ctx, cfg, changed, first)
	return e, err
}

// committed is what the mission of the assigned order does with it.
func (x explainer) committed(due time.Time) Outcome {
	o := x.moment.Assigned
	does := Outcome{DroneID: o.AssignedDroneID, MissionID: o.AssignedMissionID}
	for _, m := range x.moment.Missions {
		for _, stop := range m.Route {
			if m.ID == o.AssignedMissionID && stop.OrderID == o.ID && stop.Type == domain.WaypointHospitalDelivery && !stop.ETA.IsZero() {
				does.Arrival, does.LateMinutes = &stop.ETA, late(stop.ETA, due)
			}
		}
	}
	return does
}

// added are new drones like the first of the fleet, if it has any.
func (x explainer) added(n int) (drones []solver.Drone) {
	like := domain.Drone{}
	if len(x.moment.Drones) > 0 {
		like = x.moment.Drones[0]
	}
	depot := x.moment.Snapshot.Depots()[0]
	like.Battery, like.Position, like.HomeDepotID = 100, depot.Position, depot.ID
	for i := range n {
		like.ID = domain.DroneID(fmt.Sprintf("ADDED-%d", i+1))
		drones = append(drones, droneOf(like, x.cfg.Learned))
	}
	return drones
}

// charge gives idle drones the charge they would have if each depot with limited slots had n more,
// used since landing by the drones that have waited longest.
func (x explainer) charge(p *solver.Problem, n int) {
	waiting := slices.Clone(x.moment.Drones)
	slices.SortStableFunc(waiting, func(a, b domain.Drone) int { return a.IdleSince.Compare(b.IdleSince) })
	for _, depot := range x.moment.Snapshot.Depots() {
		left := n
		for _, d := range waiting {
			here := d.HomeDepotID == depot.ID && d.Position.DistanceMetres(depot.Position) < samePointMetres
			if left == 0 || depot.ChargingSlots <= 0 || !here || d.Status != domain.DroneIdle || d.Bound() || d.Grounded || d.IdleSince.IsZero() || d.Battery >= 100 {
				continue
			}
			left--
			d.Battery = min(100, d.Battery+d.ChargePerMinute()*x.now.Sub(d.IdleSince).Minutes())
			charged := droneOf(d, x.cfg.Learned)
			if i := slices.IndexFunc(p.Drones, func(o solver.Drone) bool { return o.ID == charged.ID }); i >= 0 {
				p.Drones[i].BatteryPercent = charged.BatteryPercent
			} else { // it had too little to be offered
				p.Drones = append(p.Drones, charged)
			}
		}
	}
}

// planned is a plan and what it does with every order.
type planned struct {
	outcomes map[domain.OrderID]Outcome
	// taken are the orders of each drone that begins a mission.
	taken map[domain.DroneID][]string
	kept  int
}

func (x explainer) plan(ctx context.Context, cfg Config, p solver.Problem) (planned, error) {
	r, err := New(cfg, x.clock).Plan(ctx, p)
	out := planned{map[domain.OrderID]Outcome{}, map[domain.DroneID][]string{}, len(r.Kept)}
	if err != nil {
		return out, err
	}
	due := map[string]time.Time{}
	for _, o := range p.Orders {
		due[o.ID] = o.Due(p.Now)
	}
	serve := func(route solver.Route, mission domain.MissionID, orders []string) {
		for _, s := range route.Stops {
			if s.Kind == solver.Delivery && slices.Contains(orders, s.OrderID) {
				out.outcomes[domain.OrderID(s.OrderID)] = Outcome{
					DroneID: domain.DroneID(route.DroneID), MissionID: mission, Arrival: &s.ETA, LateMinutes: late(s.ETA, due[s.OrderID]),
				}
			}
		}
	}
	for _, route := range r.Plan.Routes {
		orders := route.OrderIDs()
		out.taken[domain.DroneID(route.DroneID)] = orders
		serve(route, "", orders)
	}
	for _, a := range r.Plan.Amendments {
		serve(a.Route, domain.MissionID(a.MissionID), a.AddedIDs)
	}
	JudgeByAllDrones(r.Usable(), r.Plan.Unserved, x.remembered(), x.cfg.Learned)
	for i, u := range r.Plan.Unserved {
		f := Outcome{Reason: u.String()}
		if i < len(r.Obstacles) {
			f.Obstacles, f.Drones = r.Obstacles[i], r.Obstacles[i].String()
		}
		out.outcomes[domain.OrderID(u.OrderID)] = f
	}
	return out, nil
}

// remembered lists the drones seen within DroneMemory. A cycle uses the same ones to tell
// orders that wait for a busy drone from those that no drone can carry.
func (x explainer) remembered() (drones []domain.Drone) {
	for _, d := range x.moment.Drones {
		if x.now.Sub(d.SeenAt) <= DroneMemory {
			drones = append(drones, d)
		}
	}
	return drones
}

// late is by how many minutes an arrival misses a deadline.
func late(arrival, due time.Time) float64 {
	if by := arrival.Sub(due); by > model.LateTolerance {
		return by.Minutes()
	}
	return 0
}

// instead plans another problem and compares.
func (x explainer) instead(ctx context.Context, cfg Config, p solver.Problem, first planned) (*Alternative, error) {
	second, err := x.plan(ctx, cfg, p)
	if err != nil {
		return nil, err
	}
	in := &Alternative{Plan: second.outcomes[x.id], Worse: []Change{}, Better: []Change{}}
	orders := slices.Clone(x.moment.Snapshot.Orders)
	slices.SortStableFunc(orders, func(a, b domain.Order) int { return cmp.Compare(b.Priority, a.Priority) })
	for _, o := range orders {
		c := Change{o.ID, o.Priority.String(), first.outcomes[o.ID], second.outcomes[o.ID]}
		if o.ID == x.id {
			continue
		}
		switch d := delay(c.Before, c.After); {
		case d >= leastChange:
			if in.WorseCount++; in.WorseCount <= maxChanges {
				in.Worse = append(in.Worse, c)
			}
		case d <= -leastChange:
			if in.BetterCount++; in.BetterCount <= maxChanges {
				in.Better = append(in.Better, c)
			}
		}
	}
	return in, nil
}

// delay is how much later an order arrives in another plan; one that waits never does.
func delay(before, after Outcome) time.Duration {
	switch {
	case before.Arrival == nil && after.Arrival == nil:
		return 0
	case after.Arrival == nil:
		return never
	case before.Arrival == nil:
		return -never
	}
	return after.Arrival.Sub(*before.Arrival)
}

// nearest lists the drones that would deliver the order soonest, and what each lacked.
func (x explainer) nearest(p solver.Problem, order int, plan planned) []Candidate {
	f := newDirectFlights(&p)
	o := &p.Orders[order]
	free := map[domain.DroneID]bool{}
	for _, d := range x.moment.Snapshot.Drones {
		free[d.ID] = true
	}
	for _, s := range p.StandbyMissions {
		free[domain.DroneID(s.DroneID)] = true
	}
	missions := map[domain.DroneID]*domain.Mission{}
	for i := range x.moment.Missions {
		missions[x.moment.Missions[i].DroneID] = &x.moment.Missions[i]
	}
	list := []Candidate{}
	r := f.request(o)
	joins := x.joins(p, o)
	for _, d := range x.moment.Drones {
		c, ok := x.candidate(f, r, d, missions[d.ID], free[d.ID])
		if !ok || x.moment.Assigned != nil && d.ID == x.moment.Assigned.AssignedDroneID {
			continue
		}
		if others := plan.taken[d.ID]; free[d.ID] && len(others) > 0 && !slices.Contains(others, o.ID) {
			c.Doing = fmt.Sprintf("idle, planned for %s", listed(others))
			for _, id := range others {
				c.PlannedFor = append(c.PlannedFor, domain.OrderID(id))
			}
		} else if free[d.ID] && len(others) == 0 && plan.kept > 0 && strings.HasPrefix(plan.outcomes[x.id].Reason, string(solver.KeptForCritical)) {
			c.Doing = "idle, kept for CRITICAL orders to come"
		}
		if j, can := joins[d.ID]; can {
			arrival := x.now.Add(secondsOf(j.arrives))
			c.JoinArrival, c.JoinMinutes = &arrival, j.detour/60
		}
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b Candidate) int { return a.soonest().Compare(b.soonest()) })
	return list[:min(len(list), cmp.Or(x.moment.List, maxNearest))]
}

// soonest is when the drone could deliver the order at the earliest.
func (c Candidate) soonest() time.Time {
	if c.JoinArrival != nil && c.JoinArrival.Before(c.Arrival) {
		return *c.JoinArrival
	}
	return c.Arrival
}

// joins is the cheapest way, for each drone in flight, to deliver an order on its present mission.
func (x explainer) joins(p solver.Problem, o *solver.Order) map[domain.DroneID]insertion {
	f := amender{directFlights: newDirectFlights(&p)}
	found := map[domain.DroneID]insertion{}
	for i := range p.Flights {
		if way, ok := newRemainingRoute(&p.Flights[i], p.Now, f.params).insert(o, f.sourcesOf(o), math.Inf(1), math.Inf(1)); ok {
			found[domain.DroneID(p.Flights[i].Drone.ID)] = way
		}
	}
	return found
}

// maxListed is how many orders a candidate's text names.
const maxListed = 3

func listed(ids []string) string {
	text := ids[0]
	for _, id := range ids[1:min(len(ids), maxListed)] {
		text += ", " + id
	}
	if more := len(ids) - maxListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// candidate is what a drone lacks for a flight of its own with the order. A busy drone begins at
// its depot, when it has flown its route, with the charge that it then has. It returns false if
// nothing supplies the parcel, or if the drone's record is spoiled.
func (x explainer) candidate(f directFlights, r *request, d domain.Drone, m *domain.Mission, free bool) (Candidate, bool) {
	drone := droneOf(d, x.cfg.Learned)
	c := Candidate{DroneID: d.ID, Doing: string(d.Status), Lacks: []string{}}
	lacks := func(format string, args ...any) { c.Lacks = append(c.Lacks, fmt.Sprintf(format, args...)) }
	switch {
	case free:
		c.Doing = "idle"
		if m != nil && m.ID == d.CurrentMissionID {
			c.Doing = "waits on mission " + string(m.ID)
		}
	case m != nil && m.ID == d.CurrentMissionID:
		c.Doing = "flies mission " + string(m.ID)
		busy := f.land(&drone, m)
		c.BusyForMinutes = busy.Minutes()
		lacks("%.1f min until it has landed", c.BusyForMinutes)
	case d.Grounded:
		c.Doing = "grounded"
		lacks("a release: it is grounded")
	default:
		lacks("readiness: it is %s", d.Status)
	}
	if !r.order.Allows(string(d.ID)) {
		lacks("permission: the order is pinned to another drone, or forbidden to this one")
	}
	if r.order.ColdChain && drone.NoColdBox {
		lacks("a cold box")
	}
	if over := r.order.WeightKg - drone.CapacityKg; drone.CapacityKg > 0 && over > 0 {
		c.PayloadKg = over
		lacks("%.1f kg of payload", over)
	}
	out, back := f.outwardMetres(r, drone.At), f.homewardMetres(r, &drone)
	if math.IsInf(out, 1) || math.IsNaN(out+back) {
		return c, false
	}
	c.Km = out / 1000
	if need := f.params.ReservePercent + (out+back)/1000*drone.Consumption(); need > drone.BatteryPercent {
		c.ChargePercent, c.ChargeKm = need-drone.BatteryPercent, (need-drone.BatteryPercent)/drone.Consumption()
		lacks("%.1f %% of charge (%.1f km)", c.ChargePercent, c.ChargeKm)
	}
	took := time.Duration(c.BusyForMinutes*float64(time.Minute)) + flightTime(&drone, out) + f.params.PickupService
	if alone := flightTime(&drone, out+back) + f.params.PickupService + f.params.DeliveryService; drone.MaxFlight > 0 && alone > drone.MaxFlight {
		lacks("%.1f min of flight time", (alone - drone.MaxFlight).Minutes())
	}
	c.Arrival = x.now.Add(took)
	if c.LateMinutes = late(c.Arrival, r.order.Due(x.now)); c.LateMinutes > 0 {
		lacks("%.1f min: it would be late", c.LateMinutes)
	}
	return c, c.finite()
}

// finite reports whether all numbers are finite: a spoiled record, such as one with an infinite
// capacity, gives others, and JSON cannot hold them.
func (c Candidate) finite() bool {
	sum := 0.0
	for _, x := range []float64{c.Km, c.ChargePercent, c.ChargeKm, c.PayloadKg, c.LateMinutes, c.BusyForMinutes} {
		sum += 0 * x // 0, or NaN
	}
	return sum == 0
}

// land flies a drone home, with the rest of its mission if it has one, and says how long that takes.
func (f directFlights) land(d *solver.Drone, m *domain.Mission) (took time.Duration) {
	left, at := 0.0, d.At
	if m != nil {
		for _, s := range m.Route[min(m.ReachedStops, len(m.Route)):] {
			left += metres(at, location(s.Position))
			at = location(s.Position)
			took += serviceTime(stopKinds[s.Type], f.params)
		}
	}
	home := f.home(d)
	left += metres(at, home)
	d.BatteryPercent -= left / 1000 * d.Consumption()
	d.At = home
	return took + flightTime(d, left)
}
