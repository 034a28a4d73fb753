package planner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/check"
	"github.com/dronefleet/dronefleet/solver/model"
)

// How much later an order may arrive when it shares a flight than with a flight of its own.
const (
	urgentDetour = 2 * time.Minute
	lateDetour   = 3 * time.Minute
)

// longOverdue is by how many aging steps a STANDARD order is overdue when the
// at-risk stage takes it up.
const longOverdue = 3

// maxOverdue bounds how overdue an order can be; beyond it the deadline is wrong.
const maxOverdue = 365 * 24 * time.Hour

// The share of the cycle's time that may have passed at the end of each stage.
const (
	urgentUntil       = 0.2
	sharedUntil       = 0.3  // the urgent stage again, with shared routes
	advanceUntil      = 0.35 // what is left of it, with drones at advance positions
	allDronesUntil    = 0.5  // the urgent stage again, with all drones
	overdueUntil      = 0.5  // the longest overdue order
	lateCriticalUntil = 0.5
	atRiskUntil       = 0.6
	jointUntil        = 0.85
	reducedUntil      = 0.95 // the joint stage again, without the orders for which waiting is better
	completeUntil     = 1
)

// minStageShare: a stage gets at least a twentieth of the cycle's time, however late it begins.
// All stages together must not take much longer than the cycle may.
const minStageShare = 20

// planIdle assigns orders to idle drones. If that breaks a rule, it assigns them greedily.
func (p *Planner) planIdle(ctx context.Context, problem solver.Problem) (Result, error) {
	if p.cfg.Immediate || p.cfg.Options.Strategy != solver.SISR {
		plan, err := p.solve(ctx, problem, p.last, p.cfg.Options.TimeLimit)
		p.last = &plan
		result := Result{Problem: problem, Plan: plan}
		if err == nil {
			p.demand.observeDrones(result.Usable().Drones, problem.Now)
		}
		return result, err
	}
	result, err := p.lookAhead(ctx, problem)
	if err != nil || p.passes(problem, result.Plan) {
		return result, err
	}
	greedy := p.cfg.Options
	greedy.Strategy = solver.Greedy
	result.Plan, err = SolveChecked(ctx, problem, greedy, p.cfg.Refused)
	result.Kept = nil
	return result, err
}

// lookAhead assigns orders to idle drones with future orders in mind. A plan that uses every
// drone at once leaves none for the next CRITICAL order, which has fifteen minutes from creation
// to delivery. So orders are planned in stages:
//
//  1. Urgent: CRITICAL orders that can be in time may take any drone, one at an
//     advance position only if no other can serve them or the others are taken.
//  2. Longest overdue: the order that has been overdue for longest, if that is
//     long, may take a drone beyond half the reserve.
//  3. Late CRITICAL: CRITICAL orders that will be late may take any drone left.
//  4. At risk: HIGH orders that are late or about to be, and STANDARD orders that
//     are long overdue, may take the drones beyond half the reserve.
//  5. Joint: all other orders join these flights or take the drones beyond the
//     whole reserve.
//
// Whatever the load, a drone flies for the other orders once every Params.AgingStep, so that no
// feasible order waits for ever. The reserve never makes a CRITICAL order wait.
type lookAhead struct {
	*Planner
	directFlights
	// work is the problem with orders as the stages restate them: tighter
	// deadlines for urgent orders, new ones for late orders. Indices are those of
	// the problem.
	work    solver.Problem
	advance map[string]bool                   // drones kept at advance positions
	standby map[string]*solver.StandbyMission // by drone
	reserve int
	fixed   map[string]solver.Route // routes of earlier stages, by drone
	routed  map[int]bool            // orders of these routes, by index
	urgent  map[int]bool            // orders of the urgent stage, by index
	screen  solver.Plan             // what each drone alone could do, and what the solver leaves out
	invalid map[int]bool            // orders that the solver refuses, by index
	began   time.Time               // of planning
}

func (p *Planner) lookAhead(ctx context.Context, whole solver.Problem) (Result, error) {
	began := p.clock()
	screen := solver.Screen(whole)
	// Drones and warehouses that the solver ignores must not count here either.
	problem := whole
	problem.Drones = withoutIgnored(whole.Drones, "drone", screen.Ignored)
	problem.Warehouses = withoutIgnored(whole.Warehouses, "warehouse", screen.Ignored)
	f := newDirectFlights(&problem)
	p.demand.observe(f)
	l := &lookAhead{
		Planner: p, directFlights: f, work: problem, screen: screen,
		advance: p.demand.advanceDrones(f), reserve: p.demand.reserve(problem.Now), standby: standbyByDrone(&problem),
		fixed: map[string]solver.Route{}, routed: map[int]bool{}, urgent: map[int]bool{}, invalid: map[int]bool{}, began: began,
	}
	l.reserve = l.beside(l.reserve)
	for _, u := range screen.Unserved {
		l.invalid[u.Index] = u.Reason == solver.InvalidInput
	}
	l.work.Orders = slices.Clone(problem.Orders)
	plan, kept, err := l.plan(ctx)
	if err != nil {
		return Result{}, err
	}
	p.last = &plan
	p.demand.launched(&problem, plan)
	return Result{Problem: whole, Plan: plan, Reserve: l.reserve, Kept: kept}, nil
}

// plan runs the stages. Each offers the solver only the drones beyond the reserve. It also
// returns the drones that are kept.
func (l *lookAhead) plan(ctx context.Context) (_ solver.Plan, kept []solver.Drone, _ error) {
	starved := l.work.Now.Sub(l.demand.othersServed) >= l.params.AgingStep
	if starved {
		l.advance = nil
	}
	held := map[string]bool{} // drones for the starved
	if err := l.planUrgent(ctx); err != nil {
		return solver.Plan{}, nil, err
	}
	free := l.release(l.inReserveOrder(), starved)
	if starved {
		l.reserve = max(0, min(l.reserve, len(free)-1))
	}
	if err := l.planLongestOverdue(ctx, beyond(free, (l.reserve+1)/2)); err != nil {
		return solver.Plan{}, nil, err
	}
	free = l.unused(free)
	if starved && len(free) > 0 {
		held[free[len(free)-1].ID] = true
	}
	notHeld := func(id string) bool { return !held[id] }
	if err := l.planLateCritical(ctx, selectDrones(beyond(free, (l.reserve+1)/2), notHeld)); err != nil {
		return solver.Plan{}, nil, err
	}
	// What these cannot carry may take the reserve and the advance positions, too.
	if err := l.planLateCritical(ctx, selectDrones(l.unused(l.work.Drones), notHeld)); err != nil {
		return solver.Plan{}, nil, err
	}
	free = l.unused(free)
	if starved {
		l.reserve = max(0, min(l.reserve, len(free)-1))
	}
	if err := l.planAtRisk(ctx, beyond(free, (l.reserve+1)/2)); err != nil {
		return solver.Plan{}, nil, err
	}
	offered := append(selectDrones(l.work.Drones, l.hasRoute), beyond(l.unused(free), l.reserve)...)
	plan, err := l.planJointly(ctx, offered)
	if err == nil {
		err = l.completeCritical(ctx, &plan)
	}
	if err != nil {
		return plan, nil, err
	}
	kept = l.keptDrones(plan, offered)
	return l.restate(plan, kept), kept, nil
}

// beyond lists the drones after the first n.
func beyond(drones []solver.Drone, n int) []solver.Drone { return drones[min(len(drones), n):] }

// withoutIgnored lists those of a kind that the solver did not ignore.
func withoutIgnored[T any](all []T, kind string, ignored []solver.Ignored) []T {
	out := map[int]bool{}
	for _, i := range ignored {
		if i.Kind == kind {
			out[i.Index] = true
		}
	}
	kept := make([]T, 0, len(all))
	for i, v := range all {
		if !out[i] {
			kept = append(kept, v)
		}
	}
	return kept
}

// solveUntil solves a stage's problem within what is left until a share of the
// cycle's time has passed.
func (l *lookAhead) solveUntil(ctx context.Context, p solver.Problem, warm *solver.Plan, until float64) (solver.Plan, error) {
	return l.solve(ctx, p, warm, stageLimit(l.cfg.Options.TimeLimit, l.clock().Sub(l.began), until))
}

// stageLimit is how long a stage may take that begins after the time spent and is to end when a
// share of the limit has passed.
func stageLimit(limit, spent time.Duration, until float64) time.Duration {
	return max(time.Duration(until*float64(limit))-spent, limit/minStageShare)
}

func (l *lookAhead) hasRoute(drone string) bool {
	_, ok := l.fixed[drone]
	return ok
}

// selectDrones lists the drones whose id passes.
func selectDrones(drones []solver.Drone, pass func(id string) bool) []solver.Drone {
	return slices.DeleteFunc(slices.Clone(drones), func(d solver.Drone) bool { return !pass(d.ID) })
}

func (l *lookAhead) unused(drones []solver.Drone) []solver.Drone {
	return selectDrones(drones, func(id string) bool { return !l.hasRoute(id) })
}

// solveOrders solves the work for some of its orders, by index, and some drones.
// The plan's indices are those of the work.
func (l *lookAhead) solveOrders(ctx context.Context, orders []int, drones []solver.Drone, warm *solver.Plan, until float64) (solver.Plan, error) {
	if len(orders) == 0 || len(drones) == 0 {
		var none solver.Plan
		for _, i := range orders {
			none.Unserved = append(none.Unserved, solver.Unserved{OrderID: l.work.Orders[i].ID, Index: i, Reason: solver.NoDroneFree})
		}
		return none, nil
	}
	part := l.work
	part.Drones, part.Orders = drones, make([]solver.Order, len(orders))
	for k, i := range orders {
		part.Orders[k] = l.work.Orders[i]
	}
	plan, err := l.solveUntil(ctx, part, warm, until)
	reindex(plan.Unserved, orders)
	return plan, err
}

// reindex turns indices in a part of a problem's orders into those of the problem.
func reindex(unserved []solver.Unserved, index []int) {
	for k := range unserved {
		unserved[k].Index = index[unserved[k].Index]
	}
}

// inTimeOnly removes late deliveries of the given orders from a plan: another drone might still be
// in time. It keeps the other arrivals as they are, although they can only become earlier.
func (l *lookAhead) inTimeOnly(plan solver.Plan, orders []int) solver.Plan {
	index := map[string]int{}
	for _, i := range orders {
		index[l.work.Orders[i].ID] = i
	}
	late := map[string]bool{}
	for _, r := range plan.Routes {
		for _, s := range r.Stops {
			i, ok := index[s.OrderID]
			if ok && s.Kind == solver.Delivery && s.ETA.After(l.work.Orders[i].Due(l.work.Now).Add(model.LateTolerance)) {
				late[s.OrderID] = true
				plan.Unserved = append(plan.Unserved, solver.Unserved{OrderID: s.OrderID, Index: i, Reason: solver.NoDroneFree})
			}
		}
	}
	if len(late) == 0 {
		return plan
	}
	var routes []solver.Route
	for _, r := range plan.Routes {
		r.Stops = slices.DeleteFunc(slices.Clone(r.Stops), func(s solver.Stop) bool { return late[s.OrderID] })
		if len(r.OrderIDs()) > 0 {
			routes = append(routes, r)
		}
	}
	plan.Routes = routes
	return plan
}

// fix fixes the routes of a plan for the given orders, and with it their drones.
// In later stages other orders may join the routes as long as none of these
// arrives later than by the detour. It returns the orders left out.
func (l *lookAhead) fix(plan solver.Plan, orders []int, detour time.Duration) (left []int) {
	arrivals := map[string]time.Time{}
	for _, r := range plan.Routes {
		l.fixed[r.DroneID] = r
		for _, s := range r.Stops {
			if s.Kind == solver.Delivery {
				arrivals[s.OrderID] = s.ETA
			}
		}
	}
	for _, i := range orders {
		at, served := arrivals[l.work.Orders[i].ID]
		l.routed[i] = served
		if !served {
			left = append(left, i)
			continue
		}
		o := &l.work.Orders[i]
		if at.After(o.Due(l.work.Now)) { // late anyway
			o.Deadline = at.Add(detour)
		}
		l.tightenDeadline(o, at.Add(detour))
	}
	return left
}

// fixedPlan is a plan of the fixed routes alone.
func (l *lookAhead) fixedPlan() (plan solver.Plan) {
	for _, drone := range slices.Sorted(maps.Keys(l.fixed)) {
		plan.Routes = append(plan.Routes, l.fixed[drone])
	}
	return plan
}

// restoreDeadlines gives orders the deadlines of the problem.
func (l *lookAhead) restoreDeadlines(orders []int) {
	for _, i := range orders {
		l.work.Orders[i].Deadline = l.problem.Orders[i].Due(l.work.Now)
	}
}

// tightenDeadline moves an order's deadline to an earlier time.
func (l *lookAhead) tightenDeadline(o *solver.Order, to time.Time) {
	if to.Before(o.Due(l.work.Now)) {
		o.Deadline = to
	}
}

// solve solves a problem within limit, which Options.Iterations overrides.
func (p *Planner) solve(ctx context.Context, problem solver.Problem, warm *solver.Plan, limit time.Duration) (solver.Plan, error) {
	opts := p.cfg.Options
	opts.Warm, opts.TimeLimit = warm, limit
	return SolveChecked(ctx, problem, opts, p.cfg.Refused)
}

// SolveChecked solves a problem and checks the plan with code that is independent of the solver.
// If the plan breaks a rule, it calls refused and returns the greedy plan instead; if that breaks
// one too, the error says which.
func SolveChecked(ctx context.Context, p solver.Problem, opts solver.Options, refused func(p solver.Problem, broken error)) (solver.Plan, error) {
	plan, err := solver.Solve(ctx, p, opts)
	if err != nil {
		return plan, err
	}
	broken := check.Plan(p, plan)
	if broken == nil {
		return plan, nil
	}
	refused(p, broken)
	opts.Strategy = solver.Greedy
	if plan, err = solver.Solve(ctx, p, opts); err != nil {
		return plan, err
	}
	if broken := check.Plan(p, plan); broken != nil {
		return plan, fmt.Errorf("the greedy plan broke the rules too: %w", broken)
	}
	return plan, nil
}

// passes checks a plan and tells Config.Refused if it breaks a rule.
func (p *Planner) passes(problem solver.Problem, plan solver.Plan) bool {
	broken := check.Plan(problem, plan)
	if broken != nil {
		p.cfg.Refused(problem, broken)
	}
	return broken == nil
}
