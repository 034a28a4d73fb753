package planner

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/model"
)

// highAtRisk is how little time to spare makes a HIGH order at risk.
const highAtRisk = 6 * time.Minute

// anyTime is a deadline for an order that is to be delivered at all.
const anyTime = 24 * time.Hour

// planUrgent is the urgent stage, for CRITICAL orders that can be in time. They
// are planned nearly as if each flew alone. If drones are then too few, they share
// routes up to their deadlines. If that is not enough either, they may take the
// drones at advance positions, and at last all are planned again with all drones.
func (l *lookAhead) planUrgent(ctx context.Context) error {
	orders := l.urgentOrders()
	plan, err := l.solveOrders(ctx, orders, l.ordinary(), nil, urgentUntil)
	if err != nil {
		return err
	}
	left := l.fix(l.inTimeOnly(plan, orders), orders, urgentDetour)
	if len(left) == 0 {
		return nil
	}
	l.restoreDeadlines(left)
	if left, err = l.refix(ctx, orders, left, l.ordinary(), sharedUntil); err != nil || len(left) == 0 {
		return err
	}
	// First the orders left: the routes of the others stay as they are.
	plan, err = l.solveOrders(ctx, left, l.unused(l.work.Drones), nil, advanceUntil)
	if err != nil {
		return err
	}
	if left = l.fix(l.inTimeOnly(plan, left), left, urgentDetour); len(left) == 0 {
		return nil
	}
	l.restoreDeadlines(orders)
	_, err = l.refix(ctx, orders, left, l.work.Drones, allDronesUntil)
	return err
}

// refix plans all urgent orders again with the given drones, and fixes the new routes if they
// leave out fewer orders. It returns those left out.
func (l *lookAhead) refix(ctx context.Context, orders, left []int, drones []solver.Drone, until float64) ([]int, error) {
	warm := l.fixedPlan()
	plan, err := l.solveOrders(ctx, orders, drones, &warm, until)
	if err != nil {
		return left, err
	}
	if plan = l.inTimeOnly(plan, orders); len(plan.Unserved) >= len(left) {
		return left, nil
	}
	clear(l.fixed)
	return l.fix(plan, orders, urgentDetour), nil
}

// urgentOrders lists the CRITICAL orders that some free drone can deliver in time. It tightens
// their deadlines so that each flies nearly alone. It releases a drone at an advance position if
// only that one can serve a CRITICAL order in time, or another order at all.
func (l *lookAhead) urgentOrders() (orders []int) {
	ordinary, advance := l.byAdvance()
	for i := range l.work.Orders {
		o := &l.work.Orders[i]
		critical := o.Priority == solver.Critical
		if l.invalid[i] || !critical && (len(advance) == 0 || !l.outOfDepotRange(o)) {
			continue
		}
		enough := func(took time.Duration) bool { return took != never && (!critical || l.inTime(o, took)) }
		took, _ := l.earliest(o, ordinary)
		if !enough(took) && len(advance) > 0 {
			alone, drone := l.earliest(o, advance)
			if enough(alone) {
				took = alone
				delete(l.advance, drone)
				ordinary, advance = l.byAdvance()
			}
		}
		if critical && enough(took) {
			orders, l.urgent[i] = append(orders, i), true
			l.tightenDeadline(o, l.work.Now.Add(took+urgentDetour))
		}
	}
	return orders
}

// outOfDepotRange reports whether no drone could ever deliver the order from the
// depot.
func (l *lookAhead) outOfDepotRange(o *solver.Order) bool {
	took, _ := l.tryOne(l.demand.typical, o)
	return took == never
}

// planLongestOverdue gives the longest overdue order a flight of its own, however
// far, if it is overdue for long.
func (l *lookAhead) planLongestOverdue(ctx context.Context, drones []solver.Drone) error {
	i, ok := l.longestOverdue(drones, longOverdue*l.params.AgingStep)
	if !ok {
		return nil
	}
	o := &l.work.Orders[i]
	o.Priority, o.Deadline = solver.Critical, l.work.Now.Add(anyTime)
	plan, err := l.solveOrders(ctx, []int{i}, drones, nil, overdueUntil)
	if err == nil {
		l.fix(plan, []int{i}, lateDetour)
	}
	return err
}

// longestOverdue is the order that is longest past its deadline, by at least the
// given time, of those the drones can serve. Time counts faster for urgent
// orders: one hour of CRITICAL is three of STANDARD.
func (l *lookAhead) longestOverdue(drones []solver.Drone, least time.Duration) (longest int, ok bool) {
	most := least
	for i := range l.work.Orders {
		o := &l.work.Orders[i]
		overdue := l.work.Now.Sub(o.Due(l.work.Now))
		if overdue > 0 {
			overdue = time.Duration(1+o.Priority) * min(overdue, maxOverdue)
		}
		if overdue < most || l.urgent[i] || l.invalid[i] {
			continue
		}
		if took, _ := l.earliest(o, drones); took != never {
			longest, most, ok = i, overdue, true
		}
	}
	return longest, ok
}

// planLateCritical is the stage for CRITICAL orders that no drone can deliver in time any more,
// and for those whose drones are taken by other urgent orders. It runs with the drones that
// at-risk orders may take, then with all that are left: a late CRITICAL order does not wait for
// the benefit of orders to come.
func (l *lookAhead) planLateCritical(ctx context.Context, drones []solver.Drone) error {
	now := l.work.Now
	var orders []int
	for i := range l.work.Orders {
		o := &l.work.Orders[i]
		if l.problem.Orders[i].Priority != solver.Critical || l.invalid[i] || l.routed[i] {
			continue
		}
		if took, _ := l.earliest(o, drones); took != never {
			if soon := now.Add(took + lateDetour); soon.After(o.Due(now)) {
				o.Deadline = soon
			}
			o.Priority = solver.Critical
			orders = append(orders, i)
		}
	}
	plan, err := l.solveOrders(ctx, orders, drones, nil, lateCriticalUntil)
	if err != nil {
		return err
	}
	for _, i := range l.fix(plan, orders, lateDetour) {
		if l.urgent[i] {
			l.restoreDeadlines([]int{i})
		} else {
			l.work.Orders[i].Priority = solver.High // must not displace an urgent order in the joint stage
		}
	}
	return nil
}

// planAtRisk is the at-risk stage with the drones that it may take. CRITICAL
// orders are not in it: they had all drones to choose from before.
func (l *lookAhead) planAtRisk(ctx context.Context, drones []solver.Drone) error {
	now := l.work.Now
	var orders, inTime []int
	for i := range l.work.Orders {
		o := &l.work.Orders[i]
		overdue := now.Sub(o.Due(now))
		if l.routed[i] || l.problem.Orders[i].Priority == solver.Critical ||
			o.Priority == solver.Standard && overdue < longOverdue*l.params.AgingStep {
			continue
		}
		took, _ := l.earliest(o, drones)
		if took == never {
			continue
		}
		spare := o.Due(now).Sub(now.Add(took)) // saturates, whatever the deadline
		if spare >= highAtRisk {
			continue
		}
		if spare < 0 {
			// Late anyway: as soon as possible.
			o.Deadline = now.Add(took + lateDetour)
			if o.Priority == solver.Standard {
				o.Priority = solver.Critical
			}
		} else {
			inTime = append(inTime, i)
		}
		orders = append(orders, i)
	}
	plan, err := l.solveOrders(ctx, orders, drones, nil, atRiskUntil)
	if err != nil {
		return err
	}
	left := l.fix(l.inTimeOnly(plan, inTime), orders, lateDetour)
	// Orders with a route keep it in the joint stage. Orders without one must not
	// displace an urgent order there.
	for _, i := range orders {
		l.work.Orders[i].Priority = solver.Critical
	}
	for _, i := range left {
		l.work.Orders[i].Priority = solver.High
	}
	return nil
}

// patience is how long an order that would be late may wait for a drone that
// would be in time.
const patience = time.Minute

// planJointly is the joint stage: all orders, with the drones offered.
func (l *lookAhead) planJointly(ctx context.Context, offered []solver.Drone) (solver.Plan, error) {
	joint := l.work
	joint.Drones = l.withRouteLimit(offered)
	// Long overdue orders were at risk; here they must not outweigh urgent ones.
	joint.Params.AgingStep = math.MaxInt64
	warm := l.fixedPlan()
	if l.last != nil {
		warm.Routes = append(warm.Routes, slices.DeleteFunc(slices.Clone(l.last.Routes), func(r solver.Route) bool { return l.hasRoute(r.DroneID) })...)
	}
	plan, err := l.solveUntil(ctx, joint, &warm, jointUntil)
	if err != nil {
		return plan, err
	}
	waiting := l.betterWait(plan)
	if len(waiting) == 0 {
		return plan, nil
	}
	// Again without them, so that their routes become shorter.
	var index []int
	joint.Orders = nil
	for i, o := range l.work.Orders {
		if !waiting[o.ID] {
			joint.Orders, index = append(joint.Orders, o), append(index, i)
		}
	}
	if plan, err = l.solveUntil(ctx, joint, &plan, reducedUntil); err != nil {
		return plan, err
	}
	reindex(plan.Unserved, index)
	for i, o := range l.work.Orders {
		if waiting[o.ID] {
			plan.Unserved = append(plan.Unserved, solver.Unserved{OrderID: o.ID, Index: i, Reason: solver.WaitsForBetterRoute})
		}
	}
	slices.SortFunc(plan.Unserved, func(a, b solver.Unserved) int { return cmp.Compare(a.Index, b.Index) })
	return plan, nil
}

// completeCritical adds routes for CRITICAL orders that the joint stage left out although a drone
// without a route can serve them: a search over all orders may overlook one.
func (l *lookAhead) completeCritical(ctx context.Context, plan *solver.Plan) error {
	for {
		used, left := map[string]bool{}, []int(nil)
		for _, r := range plan.Routes {
			used[r.DroneID] = true
		}
		drones := selectDrones(l.work.Drones, func(id string) bool { return !used[id] })
		for _, u := range plan.Unserved {
			o := &l.problem.Orders[u.Index]
			if o.Priority != solver.Critical || l.invalid[u.Index] || u.Reason == solver.WaitsForBetterRoute {
				continue
			}
			if took, _ := l.earliest(o, drones); took != never {
				left = append(left, u.Index)
				l.work.Orders[u.Index] = *o
			}
		}
		more, err := l.solveOrders(ctx, left, drones, nil, completeUntil)
		if err != nil || len(more.Routes) == 0 {
			return err
		}
		served := map[string]bool{}
		for _, r := range more.Routes {
			for _, id := range r.OrderIDs() {
				served[id] = true
			}
			plan.Objective.DistanceKm += r.DistanceKm
			plan.Objective.LongestKm = max(plan.Objective.LongestKm, r.DistanceKm)
		}
		plan.Routes = append(plan.Routes, more.Routes...)
		plan.Unserved = slices.DeleteFunc(plan.Unserved, func(u solver.Unserved) bool {
			return served[u.OrderID] && slices.Contains(left, u.Index)
		})
	}
}

// withRouteLimit bounds the duration of routes, so that drones return as fast as
// CRITICAL orders need them: long routes save distance but leave no drone for the
// next order. The limit leaves room for every fixed route and, alone, for every
// waiting order that such a drone can carry. Drones away from their depot fly
// home anyway and have no limit.
func (l *lookAhead) withRouteLimit(drones []solver.Drone) []solver.Drone {
	requests := make([]*request, len(l.work.Orders))
	for i := range l.work.Orders {
		requests[i] = l.request(unrestricted(&l.work.Orders[i]))
	}
	limits := map[solver.Drone]time.Duration{} // by kind of drone
	limitOf := func(d solver.Drone) time.Duration {
		kind := l.charged(d)
		kind.ID = ""
		limit, known := limits[kind]
		if known {
			return limit
		}
		limit = l.demand.routeDuration(l.work.Now)
		for _, r := range requests {
			limit = max(limit, l.roundTrip(&kind, r))
		}
		limits[kind] = limit
		return limit
	}
	limited := slices.Clone(drones)
	for i := range limited {
		d := &limited[i]
		home := metres(d.At, l.home(d))
		if home >= awayMetres {
			continue
		}
		longest := max(limitOf(*d)+flightTime(d, home), l.fixed[d.ID].Duration) + time.Second // for rounding
		if d.MaxFlight == 0 || longest < d.MaxFlight {
			d.MaxFlight = longest
		}
	}
	return limited
}

// betterWait lists the orders that a plan delivers late although a drone that starts from the
// depot in one of the next cycles would be in time. An order that not every drone may carry does
// not wait: the next drone may be one that must not.
func (l *lookAhead) betterWait(plan solver.Plan) map[string]bool {
	byID := ordersByID(&l.work)
	waiting := map[string]bool{}
	for _, r := range plan.Routes {
		for _, s := range r.Stops {
			o := byID[s.OrderID]
			if s.Kind != solver.Delivery || o.Restricted() || !s.ETA.After(o.Due(l.work.Now)) {
				continue
			}
			if took, _ := l.tryOne(l.demand.typical, o); took != never && l.inTime(o, took+patience) {
				waiting[o.ID] = true
			}
		}
	}
	return waiting
}

// ordersByID maps ids to a problem's orders; of those that share an id, to the
// first.
func ordersByID(p *solver.Problem) map[string]*solver.Order {
	byID := make(map[string]*solver.Order, len(p.Orders))
	for i := range p.Orders {
		if o := &p.Orders[i]; byID[o.ID] == nil {
			byID[o.ID] = o
		}
	}
	return byID
}

// countLate adds a route's late deliveries to an objective.
func countLate(sum *solver.Objective, r solver.Route, byID map[string]*solver.Order, now time.Time) {
	for _, s := range r.Stops {
		if o := byID[s.OrderID]; o != nil && s.Kind == solver.Delivery && s.ETA.After(o.Due(now).Add(model.LateTolerance)) {
			sum.Late[o.Priority]++
		}
	}
}

// restate turns a plan of the work into one of the problem: with the problem's deadlines and
// priorities, and with a reason for each waiting order.
func (l *lookAhead) restate(plan solver.Plan, kept []solver.Drone) solver.Plan {
	now := l.problem.Now
	plan.Objective.Late, plan.Objective.Unserved = [model.PriorityCount]int{}, [model.PriorityCount]int{}
	byID := ordersByID(l.problem)
	for _, r := range plan.Routes {
		countLate(&plan.Objective, r, byID, now)
	}
	// The work has other deadlines than the problem, so its reasons do not count.
	screened := make([]solver.Unserved, len(l.problem.Orders))
	for _, u := range l.screen.Unserved {
		screened[u.Index] = u
	}
	for k := range plan.Unserved {
		u := &plan.Unserved[k]
		o := &l.problem.Orders[u.Index]
		if u.Reason != solver.WaitsForBetterRoute {
			u.Reason, u.Detail = screened[u.Index].Reason, screened[u.Index].Detail
		}
		if u.Reason == solver.InvalidInput {
			continue
		}
		plan.Objective.Unserved[o.Priority]++
		if took, _ := l.earliest(o, kept); took != never && u.Reason != solver.WaitsForBetterRoute {
			u.Reason = solver.KeptForCritical
		}
	}
	plan.Ignored = l.screen.Ignored
	return plan
}
