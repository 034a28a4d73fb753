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

// patience is how long an order that would be late may wait for a drone that
// would be in time.
const patience = time.Minute

// inReserveOrder lists the free drones, those first that are best kept in
// reserve: those that wait at positions already, then those with just the charge that
// CRITICAL orders need, so that the fullest are there for the longest routes.
func (l *lookAhead) inReserveOrder() []solver.Drone {
	enough := l.demand.urgentCharge(l.directFlights)
	free, _ := l.byAdvance()
	free = l.unused(free)
	slices.SortStableFunc(free, func(a, b solver.Drone) int {
		if waits := l.waits(a.ID); waits != l.waits(b.ID) {
			if waits {
				return -1
			}
			return 1
		}
		if less := a.BatteryPercent < enough; less != (b.BatteryPercent < enough) {
			if less {
				return 1
			}
			return -1
		} else if less {
			return cmp.Compare(b.BatteryPercent, a.BatteryPercent)
		}
		return cmp.Compare(a.BatteryPercent, b.BatteryPercent)
	})
	// Another drone in reserve does as well, and an order that is pinned has no other.
	pinned := map[string]bool{}
	for i := range l.work.Orders {
		pinned[l.work.Orders[i].PinnedDroneID] = true
	}
	isPinned := func(d solver.Drone) bool { return pinned[d.ID] }
	return append(slices.DeleteFunc(slices.Clone(free), isPinned), slices.DeleteFunc(free, func(d solver.Drone) bool { return !isPinned(d) })...)
}

// waits reports whether a drone waits at a position or flies to it.
func (l *lookAhead) waits(drone string) bool {
	s := l.standby[drone]
	return s != nil && s.Stops[0].Kind == solver.Wait
}

// beside is the reserve to keep in addition to the drones that stay at positions: smaller by
// their number, but at least one drone, which replaces the next that leaves.
func (l *lookAhead) beside(reserve int) int {
	stay := 0
	for id := range l.advance {
		if l.waits(id) {
			stay++
		}
	}
	return max(min(reserve, 1), reserve-stay)
}

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
	for k := range plan.Unserved {
		plan.Unserved[k].Index = index[plan.Unserved[k].Index]
	}
	for i, o := range l.work.Orders {
		if waiting[o.ID] {
			plan.Unserved = append(plan.Unserved, solver.Unserved{OrderID: o.ID, Index: i, Reason: solver.WaitsForBetterRoute})
		}
	}
	slices.SortFunc(plan.Unserved, func(a, b solver.Unserved) int { return cmp.Compare(a.Index, b.Index) })
	return plan, nil
}

// completeCritical adds routes for CRITICAL orders that the joint stage left out
// although a drone without a route can serve them, in time or late: a search that
// weighs all orders against each other may overlook one.
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

// betterWait lists the orders that a plan delivers late although a drone that
// starts from the depot within one of the next cycles would be in time: once
// they have left, the delay cannot be made up. An order that not every drone may
// carry does not wait: the next drone may be one of the others.
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

// restate restates a plan of the work as one of the problem: with the problem's
// deadlines and priorities, and with the reason of each order that waits.
func (l *lookAhead) restate(plan solver.Plan, kept []solver.Drone) solver.Plan {
	now := l.problem.Now
	plan.Objective.Late, plan.Objective.Unserved = [model.PriorityCount]int{}, [model.PriorityCount]int{}
	byID := ordersByID(l.problem)
	for _, r := range plan.Routes {
		for _, s := range r.Stops {
			if o := byID[s.OrderID]; s.Kind == solver.Delivery && s.ETA.After(o.Due(now).Add(model.LateTolerance)) {
				plan.Objective.Late[o.Priority]++
			}
		}
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
