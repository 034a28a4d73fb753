package planner

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/solver"
)

// How much of a drone's time an amendment must save. Saving a few seconds is not worth the
// messages, or the risk that the drone misses the command.
const (
	criticalGain = time.Minute
	otherGain    = 2 * time.Minute
	// otherShare is what an order that is not CRITICAL may cost at most, as a share of a flight for
	// it alone: on a new mission it would share the flight with others, too.
	otherShare = 0.3
)

// maxInsertions bounds the orders that one cycle tries to add to flights beside the
// CRITICAL ones.
const maxInsertions = 200

// amender changes the missions of drones in flight: it adds waiting orders, takes away orders
// that are not picked up yet and that another drone serves better, and reorders stops.
type amender struct {
	directFlights
	whole   solver.Problem // without the flights that cannot be changed
	routes  []*remainingRoute
	idle    []solver.Drone          // not promised to an order yet
	invalid map[int]solver.Unserved // orders, by index
	added   map[int]bool            // orders that joined a flight, by index
	turn    time.Duration           // see policy.Limits
	typical solver.Drone            // one that starts from the depot
	// As in Planner.
	exchanged   *recentChanges[string]
	resequenced *recentChanges[routeRevision]
}

// routeRevision is one revision of a mission's route.
type routeRevision struct {
	missionID string
	revision  int
}

// newAmender leaves out what the solver cannot read: broken warehouses and orders, and flights
// with a broken record or order, or with an order that also waits.
func (p *Planner) newAmender(whole solver.Problem) *amender {
	all := whole
	all.Drones, all.Orders = nil, slices.Clone(whole.Orders)
	var carriers []string // of the orders after those that wait
	for _, f := range whole.Flights {
		all.Drones, all.Orders = append(all.Drones, f.Drone), append(all.Orders, f.Orders...)
		carriers = append(carriers, slices.Repeat([]string{f.Drone.ID}, len(f.Orders))...)
	}
	screen := solver.Screen(all)
	broken, invalid := map[string]bool{}, map[int]solver.Unserved{}
	for _, u := range screen.Unserved {
		if u.Reason != solver.InvalidInput {
			continue
		}
		if i := u.Index - len(whole.Orders); i >= 0 {
			broken[carriers[i]] = true
		} else {
			invalid[u.Index] = u
		}
	}
	whole.Flights = slices.DeleteFunc(withoutIgnored(whole.Flights, "drone", screen.Ignored), func(f solver.Flight) bool { return broken[f.Drone.ID] })
	usable := whole
	usable.Warehouses = withoutIgnored(whole.Warehouses, "warehouse", screen.Ignored)
	f := &amender{
		directFlights: newDirectFlights(&usable), whole: whole, idle: slices.Clone(whole.Drones), invalid: invalid, added: map[int]bool{},
		turn: p.cfg.Limits.TurnTime, typical: p.demand.typical, exchanged: &p.exchanged, resequenced: &p.resequenced,
	}
	for i := range usable.Flights {
		f.routes = append(f.routes, newRemainingRoute(&usable.Flights[i], usable.Now, f.params))
	}
	if f.typical.ID == "" && len(f.routes) > 0 {
		f.typical = f.charged(f.routes[0].flight.Drone)
	}
	return f
}

// planAmending gives CRITICAL orders to drones in flight where these serve them best, plans the
// rest for the idle drones, and adds the orders that are left to flights. Then it moves orders
// that another drone serves better, and improves the sequence of stops.
func (p *Planner) planAmending(ctx context.Context, problem solver.Problem) (Result, error) {
	f := p.newAmender(problem)
	f.addCritical()
	idle, index := f.unserved()
	result, err := p.planIdle(ctx, idle)
	if err != nil {
		return result, err
	}
	reindex(result.Plan.Unserved, index)
	f.addWaiting(result.Plan)
	f.exchange(result.Plan)
	f.resequence()
	f.amend(&result.Plan)
	result.Problem = f.whole
	return result, nil
}

// addCritical adds CRITICAL orders that a drone in flight serves best: it delivers in time where
// no idle drone does, or saves a minute of a drone's time where one does. If none is in time, the
// soonest one serves it.
func (f *amender) addCritical() {
	for _, i := range f.byDeadline(solver.Critical) {
		o := &f.problem.Orders[i]
		took, drone := f.earliest(o, f.idle)
		if f.addCriticalOrder(o, took, drone) {
			f.added[i] = true
		} else if took != never {
			f.idle = selectDrones(f.idle, func(id string) bool { return id != drone })
		}
	}
}

func (f *amender) addCriticalOrder(o *solver.Order, took time.Duration, drone string) bool {
	due := o.Due(f.problem.Now).Sub(f.problem.Now).Seconds()
	if f.inTime(o, took) {
		alone := f.roundTrip(f.droneByID(drone), f.request(o)) - criticalGain
		return f.addTo(o, due, alone.Seconds()+arrivalPrice*took.Seconds())
	}
	if f.addTo(o, due, math.Inf(1)) {
		return true
	}
	if f.makeRoom(o, due) {
		return true
	}
	by := math.Inf(1)
	if took != never {
		by = (took - criticalGain).Seconds()
	}
	return f.addTo(o, by, math.Inf(1))
}

func (f *amender) droneByID(id string) *solver.Drone {
	i := slices.IndexFunc(f.problem.Drones, func(d solver.Drone) bool { return d.ID == id })
	return &f.problem.Drones[i]
}

// addWaiting adds orders that a plan leaves waiting, the most urgent first. A drone in flight
// must serve an order in time, if any drone still could, and with much less of its time than a
// drone that starts from the depot. While a HIGH order waits for a drone, no STANDARD order
// joins a flight: the next drone that comes near or lands is for the HIGH one.
func (f *amender) addWaiting(plan solver.Plan) {
	waiting := map[int]bool{}
	for _, u := range plan.Unserved {
		waiting[u.Index] = true
	}
	tries := 0
	for p := solver.Critical; p >= solver.Standard; p-- {
		left := false
		for _, i := range f.byDeadline(p) {
			o := &f.problem.Orders[i]
			if !waiting[i] {
				continue
			}
			if tries++; tries > maxInsertions && p != solver.Critical {
				return
			}
			if f.addOrder(o) {
				f.added[i] = true
			} else {
				left = left || !o.Restricted() && f.maxInsertionCost(o) > 0
			}
		}
		if left && p == solver.High {
			return
		}
	}
}

func (f *amender) addOrder(o *solver.Order) bool {
	due := o.Due(f.problem.Now).Sub(f.problem.Now).Seconds()
	if o.Priority == solver.Critical {
		return f.addTo(o, due, math.Inf(1)) || f.addTo(o, math.Inf(1), math.Inf(1))
	}
	return f.addTo(o, anyTimeIfPast(due), f.maxInsertionCost(o))
}

// anyTimeIfPast is a deadline in seconds from now, or none if it has passed.
func anyTimeIfPast(due float64) float64 {
	if due < 0 {
		return math.Inf(1)
	}
	return due
}

// maxInsertionCost bounds the cost of adding an order that is not CRITICAL; 0 if no drone could
// fly it from the depot.
func (f *amender) maxInsertionCost(o *solver.Order) float64 {
	alone := f.roundTrip(&f.typical, f.request(unrestricted(o)))
	return max(0, min(otherShare*alone.Seconds(), (alone-otherGain).Seconds()))
}

// addTo adds an order to the flight where it costs least, if it arrives by a time and costs less
// than a limit.
func (f *amender) addTo(o *solver.Order, by, cheaper float64) bool {
	sources := f.sourcesOf(o)
	var best insertion
	for _, r := range f.routes {
		if !r.shouldServe(o) {
			continue
		}
		if found, ok := r.insert(o, sources, by, cheaper); ok {
			best, cheaper = found, found.cost()
		}
	}
	if best.route == nil {
		return false
	}
	best.route.apply(best, o)
	return true
}

// sourcesOf lists the stops at which an order can be fetched.
func (f *amender) sourcesOf(o *solver.Order) (stops []solver.Stop) {
	if o.Pickup != nil {
		return []solver.Stop{{Kind: solver.WarehousePickup, At: *o.Pickup}}
	}
	for _, w := range f.suppliersOf(o) {
		warehouse := &f.problem.Warehouses[w]
		stops = append(stops, solver.Stop{Kind: solver.WarehousePickup, At: warehouse.At, WarehouseID: warehouse.ID})
	}
	return stops
}

// byDeadline lists the indices of the valid orders of a priority, by deadline.
func (f *amender) byDeadline(p solver.Priority) (list []int) {
	for i := range f.problem.Orders {
		if _, bad := f.invalid[i]; !bad && f.problem.Orders[i].Priority == p {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int {
		return f.problem.Orders[a].Due(f.problem.Now).Compare(f.problem.Orders[b].Due(f.problem.Now))
	})
	return list
}

// unserved is the problem for the idle drones, with the orders that joined no flight. It also
// returns the index of each.
func (f *amender) unserved() (idle solver.Problem, index []int) {
	idle = f.whole
	idle.Orders, idle.Flights = nil, nil
	for i, o := range f.whole.Orders {
		if _, bad := f.invalid[i]; !bad && !f.added[i] {
			idle.Orders, index = append(idle.Orders, o), append(index, i)
		}
	}
	return idle, index
}

// amend adds the changed missions to a plan. The orders that they serve no longer wait.
func (f *amender) amend(plan *solver.Plan) {
	var unserved []solver.Unserved
	for _, u := range plan.Unserved {
		if f.added[u.Index] {
			plan.Objective.Unserved[f.problem.Orders[u.Index].Priority]--
		} else {
			unserved = append(unserved, u)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(f.invalid)) {
		unserved = append(unserved, f.invalid[i])
	}
	plan.Unserved = unserved
	for _, r := range f.routes {
		if r.changed() {
			plan.Amendments = append(plan.Amendments, r.amendment())
		}
	}
	slices.SortFunc(plan.Amendments, func(a, b solver.Amendment) int { return cmp.Compare(a.DroneID, b.DroneID) })
	byID := ordersByID(f.problem)
	for _, a := range plan.Amendments {
		plan.Objective.DistanceKm += a.DetourKm
		countLate(&plan.Objective, a.Route, byID, f.problem.Now)
		for _, id := range a.ReleasedIDs {
			f.exchanged.add(id, f.problem.Now)
		}
	}
}
