package planner

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/solver"
)

// How much later than with a flight of its own an order may arrive when it
// shares the flight with others.
const (
	urgentDetour = 2 * time.Minute
	atRiskDetour = 3 * time.Minute
)

// longOverdue is by how many aging steps a STANDARD order is overdue when the
// at-risk stage takes it up.
const longOverdue = 3

// maxOverdue bounds how overdue an order can be; one that is more so has a wrong
// deadline.
const maxOverdue = 365 * 24 * time.Hour

// The share of the cycle's time that may have passed at the end of each stage.
const (
	urgentUntil  = 0.2
	sharedUntil  = 0.3 // the urgent stage again, with shared flights
	atRiskUntil  = 0.4
	jointUntil   = 0.8
	reducedUntil = 1 // the joint stage again, without the orders that had better wait
)

// minStageShare of the cycle's time, as one in so many, is what a stage gets
// however late it begins. All stages together must not take much longer than
// the cycle may.
const minStageShare = 20

// lookAhead plans one cycle with future orders in mind. A plan that uses every
// free drone at once leaves none for the next CRITICAL order, which has fifteen
// minutes from creation to delivery. So orders are planned in stages, each with
// more orders and fewer drones:
//
//  1. Urgent: CRITICAL orders that can be in time may take any drone, one at an
//     advance position only if no other can serve them.
//  2. At risk: CRITICAL and HIGH orders that are late anyway, HIGH orders about
//     to be late, and whatever is long overdue may take the drones beyond half
//     the reserve.
//  3. Joint: all other orders join these flights or take the drones beyond the
//     whole reserve.
//
// Whatever the load, once every Params.AgingStep a drone flies for the others,
// so that no feasible order waits for ever.
type lookAhead struct {
	*Planner
	directFlights
	// work is the problem with orders as the stages restate them: tighter
	// deadlines for urgent orders, new ones for late orders. Indices are those of
	// the problem.
	work    solver.Problem
	advance map[string]bool // drones kept at advance positions
	reserve int
	fixed   map[string]solver.Route // routes of earlier stages, by drone
	urgent  map[string]bool         // orders of the urgent stage
	screen  solver.Plan             // what no drone can do, and what the solver leaves out
	invalid map[int]bool            // orders the solver cannot read
	began   time.Time               // of planning
}

func (p *Planner) lookAhead(ctx context.Context, whole solver.Problem) (Result, error) {
	began := p.clock()
	screen, err := solver.Solve(ctx, whole, solver.Options{Strategy: solver.NearestFirst, Clock: p.clock})
	if err != nil {
		return Result{}, err
	}
	// A drone that the solver ignores must not count as kept or offered, and a
	// warehouse that it ignores must not make flights look shorter than they are.
	problem := whole
	problem.Drones = withoutIgnored(whole.Drones, "drone", screen.Ignored)
	problem.Warehouses = withoutIgnored(whole.Warehouses, "warehouse", screen.Ignored)
	f := newDirectFlights(&problem)
	p.demand.observe(f)
	l := &lookAhead{
		Planner: p, directFlights: f, work: problem, screen: screen,
		advance: p.demand.advancePositions(f), reserve: p.demand.reserve(problem.Now),
		fixed: map[string]solver.Route{}, urgent: map[string]bool{}, invalid: map[int]bool{}, began: began,
	}
	for _, u := range screen.Unserved {
		l.invalid[u.Index] = u.Reason == solver.InvalidInput
	}
	l.work.Orders = slices.Clone(problem.Orders)
	starved := problem.Now.Sub(p.demand.othersServed) >= l.params.AgingStep
	if starved {
		l.advance = nil
	}
	if err := l.planUrgent(ctx); err != nil {
		return Result{}, err
	}
	rest := l.release(l.inReserveOrder(), starved)
	if starved {
		l.reserve = max(0, min(l.reserve, len(rest)-1))
	}
	if err := l.planAtRisk(ctx, rest[min(len(rest), (l.reserve+1)/2):]); err != nil {
		return Result{}, err
	}
	rest = l.unused(rest)
	offered := append(selectDrones(l.work.Drones, l.hasRoute), rest[min(len(rest), l.reserve):]...)
	plan, err := l.planJointly(ctx, offered)
	if err != nil {
		return Result{}, err
	}
	p.last = &plan
	p.demand.launched(problem.Now, plan, l.urgent)
	return Result{Problem: whole, Plan: plan, Reserve: l.reserve, Kept: len(problem.Drones) - len(offered)}, nil
}

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

// stageLimit is how long a stage may take that begins when the given part of the
// cycle's limit is spent and is to end when a share of the limit is.
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

// byAdvance splits the drones into the ordinary ones and those at advance
// positions.
func (l *lookAhead) byAdvance() (ordinary, advance []solver.Drone) {
	return selectDrones(l.work.Drones, func(id string) bool { return !l.advance[id] }),
		selectDrones(l.work.Drones, func(id string) bool { return l.advance[id] })
}

// tightenDeadline moves an order's deadline to an earlier time.
func (l *lookAhead) tightenDeadline(o *solver.Order, to time.Time) {
	if to.Before(o.Due(l.work.Now)) {
		o.Deadline = to
	}
}

// fixRoutes plans orders with drones and fixes the routes for later stages, in
// which other orders may join them as long as none of these arrives later than by
// the detour. It returns the orders left out.
func (l *lookAhead) fixRoutes(ctx context.Context, orders []int, drones []solver.Drone, until float64, detour time.Duration) ([]int, error) {
	if len(orders) == 0 || len(drones) == 0 {
		return orders, nil
	}
	part := l.work
	part.Drones, part.Orders = drones, make([]solver.Order, len(orders))
	for k, i := range orders {
		part.Orders[k] = l.work.Orders[i]
	}
	plan, err := l.solveUntil(ctx, part, nil, until)
	if err != nil {
		return nil, err
	}
	arrivals := map[string]time.Time{}
	for _, r := range plan.Routes {
		l.fixed[r.DroneID] = r
		for _, s := range r.Stops {
			if s.Kind == solver.Delivery {
				arrivals[s.OrderID] = s.ETA
			}
		}
	}
	var unserved []int
	for _, i := range orders {
		at, served := arrivals[l.work.Orders[i].ID]
		if !served {
			unserved = append(unserved, i)
			continue
		}
		l.tightenDeadline(&l.work.Orders[i], at.Add(detour))
	}
	return unserved, nil
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
		if overdue < most || l.urgent[o.ID] || l.invalid[i] {
			continue
		}
		if took, _ := l.earliest(o, drones); took != never {
			longest, most, ok = i, overdue, true
		}
	}
	return longest, ok
}

// release moves a drone that can serve the longest overdue order to the end of
// the drones still free, where none is kept in reserve. The reserve is a number
// of drones: no drone that an order needs stays in it for ever, even if it is
// the only one that can carry it. A drone at an advance position is released if
// no other can serve the order. When the other orders are starved, it is done for
// an order that is not long overdue, too.
func (l *lookAhead) release(rest []solver.Drone, starved bool) []solver.Drone {
	least := longOverdue * l.params.AgingStep
	if starved {
		least = math.MinInt64
	}
	_, advance := l.byAdvance()
	free := append(l.unused(advance), rest...)
	longest, ok := l.longestOverdue(free, least)
	if !ok {
		return rest
	}
	r := l.request(&l.work.Orders[longest])
	for _, d := range slices.Backward(free) {
		if took, _ := l.try(&d, r); took != never {
			delete(l.advance, d.ID)
			return append(selectDrones(rest, func(id string) bool { return id != d.ID }), d)
		}
	}
	return rest
}
