package dispatch

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/model"
)

// How much later than by a flight of its own an order may come when it shares
// the flight with others.
const (
	urgentDetour   = 2 * time.Minute
	pressingDetour = 3 * time.Minute
)

// patience is how long an order that would come late may wait for a drone that
// would be in time.
const patience = time.Minute

// highAlarm is how little time a HIGH order has left when it becomes pressing.
const highAlarm = 3 * time.Minute

// longOverdue is by how many aging steps a STANDARD order is overdue when it
// becomes pressing.
const longOverdue = 3

// eternity is more than anything waits: what is overdue for longer has a wrong
// deadline.
const eternity = 365 * 24 * time.Hour

// anytime is a deadline for what is only to be delivered at all.
const anytime = 24 * time.Hour

// What share of the cycle's time may have passed at the end of each round.
const (
	untilUrgent   = 0.2
	untilShared   = 0.3 // urgent orders that share flights
	untilPressing = 0.4
	untilJoint    = 0.8
	untilShorter  = 1 // without what shall wait
)

// leastShare of the cycle's time, as one in so many, is what a round gets even
// on a machine so busy that all was spent before. All rounds together must not
// take much longer than the cycle may.
const leastShare = 20

// cycle is the planning of one cycle with what is to come in mind. A plan of
// the instant uses every drone that is free, so that the next CRITICAL order,
// with fifteen minutes from call to delivery, finds none. So orders are planned
// in rounds, each with more orders and fewer drones:
//
//  1. urgent: CRITICAL orders that can be in time may take any drone, an
//     outpost only if no other will do;
//  2. pressing: CRITICAL and HIGH orders that are too late anyway, HIGH orders
//     about to be and whatever is long overdue may take what is above half the
//     reserve;
//  3. all others join those flights, or take what is above the whole reserve.
//
// Whatever the load, every Params.AgingStep some drone flies for the others, so
// nothing feasible waits without end.
type cycle struct {
	*Planner
	flights
	// work is the problem with orders as they shall be served: urgent ones with
	// nearer deadlines, those too late with new ones. Indices are the problem's.
	work     solver.Problem
	outposts map[string]bool
	reserve  int
	flying   map[string]solver.Route // of earlier rounds, by drone
	urgent   map[string]bool         // orders that the first round is about
	alone    solver.Plan             // says what no drone at all can do, and what is left out
	invalid  map[int]bool            // orders that are none
	began    time.Time               // machine time
}

func (p *Planner) lookAhead(ctx context.Context, whole solver.Problem) (Round, error) {
	began := time.Now()
	alone, err := solver.Solve(ctx, whole, solver.Options{Strategy: solver.NearestFirst})
	if err != nil {
		return Round{}, err
	}
	// What the solver leaves out is not there: a drone, kept in reserve or offered,
	// would stand for one that could fly, a warehouse make flights seem shorter than
	// they are.
	problem := whole
	problem.Drones = withoutIgnored(whole.Drones, "drone", alone.Ignored)
	problem.Warehouses = withoutIgnored(whole.Warehouses, "warehouse", alone.Ignored)
	f := flightsOf(&problem)
	p.demand.observe(f)
	c := &cycle{
		Planner: p, flights: f, work: problem, alone: alone,
		outposts: p.demand.outposts(f), reserve: p.demand.reserve(problem.Now),
		flying: map[string]solver.Route{}, urgent: map[string]bool{}, invalid: map[int]bool{}, began: began,
	}
	for _, u := range alone.Unserved {
		c.invalid[u.Index] = u.Reason == solver.InvalidInput
	}
	c.work.Orders = slices.Clone(problem.Orders)
	starved := problem.Now.Sub(p.demand.other) >= c.params.AgingStep
	if starved {
		c.outposts = nil
	}
	if err := c.planUrgent(ctx); err != nil {
		return Round{}, err
	}
	rest := c.release(c.byUse(), starved)
	if starved {
		c.reserve = max(0, min(c.reserve, len(rest)-1))
	}
	if err := c.planPressing(ctx, rest[min(len(rest), (c.reserve+1)/2):]); err != nil {
		return Round{}, err
	}
	rest = c.idle(rest)
	offered := append(only(c.work.Drones, c.flies), rest[min(len(rest), c.reserve):]...)
	plan, err := c.planJointly(ctx, offered)
	if err != nil {
		return Round{}, err
	}
	p.last = &plan
	p.demand.launched(problem.Now, plan, c.urgent)
	return Round{Problem: whole, Plan: plan, Reserve: c.reserve, Kept: len(problem.Drones) - len(offered)}, nil
}

// withoutIgnored lists those of a kind that the solver has not left out.
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

// solveUntil solves a round within what is left until a share of the cycle's
// time has passed.
func (c *cycle) solveUntil(ctx context.Context, p solver.Problem, warm *solver.Plan, until float64) (solver.Plan, error) {
	return c.solve(ctx, p, warm, roundLimit(c.cfg.Options.TimeLimit, time.Since(c.began), until))
}

// roundLimit is how long a round may take that begins when so much of the
// cycle's limit is spent and is to end when a share of it is.
func roundLimit(limit, spent time.Duration, until float64) time.Duration {
	return max(time.Duration(until*float64(limit))-spent, limit/leastShare)
}

func (c *cycle) flies(drone string) bool {
	_, ok := c.flying[drone]
	return ok
}

// only lists the drones that pass.
func only(drones []solver.Drone, pass func(id string) bool) []solver.Drone {
	return slices.DeleteFunc(slices.Clone(drones), func(d solver.Drone) bool { return !pass(d.ID) })
}

func (c *cycle) idle(drones []solver.Drone) []solver.Drone {
	return only(drones, func(id string) bool { return !c.flies(id) })
}

// planUrgent is the first round. Orders are planned nearly as if each flew
// alone; only if then drones are too few they share flights up to their
// deadlines.
func (c *cycle) planUrgent(ctx context.Context) error {
	now := c.work.Now
	regular, posts := c.byPost()
	var orders []int
	for i := range c.work.Orders {
		o := &c.work.Orders[i]
		if o.Priority != solver.Critical && (len(posts) == 0 || !c.beyondDepot(o)) {
			continue
		}
		took, _ := c.earliest(o, regular)
		if len(posts) > 0 && (o.Priority != solver.Critical && took == never || o.Priority == solver.Critical && !c.inTime(o, took)) {
			// Only an outpost can, be it in time or at all.
			alone, drone := c.earliest(o, posts)
			if o.Priority != solver.Critical && alone != never || c.inTime(o, alone) {
				delete(c.outposts, drone)
				regular, posts = c.byPost()
				took = min(took, alone)
			}
		}
		if o.Priority == solver.Critical && c.inTime(o, took) {
			orders = append(orders, i)
			c.urgent[o.ID] = true
			c.promise(o, now.Add(took+urgentDetour))
		}
	}
	unserved, err := c.commit(ctx, orders, regular, untilUrgent, urgentDetour)
	if err != nil || len(unserved) == 0 {
		return err
	}
	for _, i := range unserved {
		c.work.Orders[i].Deadline = c.problem.Orders[i].Due(now)
	}
	clear(c.flying)
	_, err = c.commit(ctx, orders, regular, untilShared, urgentDetour)
	return err
}

// byPost parts the drones into those of which it does not matter which flies
// and the outposts.
func (c *cycle) byPost() (regular, posts []solver.Drone) {
	return only(c.work.Drones, func(id string) bool { return !c.outposts[id] }),
		only(c.work.Drones, func(id string) bool { return c.outposts[id] })
}

// beyondDepot reports whether no drone could ever deliver the order from the
// depot.
func (c *cycle) beyondDepot(o *solver.Order) bool {
	took, _ := c.arrival(c.demand.usual, o)
	return took == never
}

// promise moves an order's deadline to an earlier time.
func (c *cycle) promise(o *solver.Order, by time.Time) {
	if by.Before(o.Due(c.work.Now)) {
		o.Deadline = by
	}
}

// planPressing is the second round. Drones are those it may take.
func (c *cycle) planPressing(ctx context.Context, drones []solver.Drone) error {
	now := c.work.Now
	first, ok := c.longestOverdue(drones, longOverdue*c.params.AgingStep)
	if ok {
		// First come, first served: a flight of its own, however far.
		o := &c.work.Orders[first]
		o.Priority, o.Deadline = solver.Critical, now.Add(anytime)
		if _, err := c.commit(ctx, []int{first}, drones, untilPressing, pressingDetour); err != nil {
			return err
		}
		drones = c.idle(drones)
	}
	var orders []int
	for i := range c.work.Orders {
		o := &c.work.Orders[i]
		overdue := now.Sub(o.Due(now))
		if ok && i == first || c.urgent[o.ID] || o.Priority == solver.Standard && overdue < longOverdue*c.params.AgingStep {
			continue
		}
		took, _ := c.earliest(o, drones)
		if took == never {
			continue
		}
		left := o.Due(now).Sub(now.Add(took)) // whatever the age: the difference saturates
		if left >= highAlarm {
			continue
		}
		if left < 0 {
			// As soon as may be, then.
			o.Deadline = now.Add(took + pressingDetour)
			if o.Priority != solver.High {
				o.Priority = solver.Critical
			}
		}
		orders = append(orders, i)
	}
	unserved, err := c.commit(ctx, orders, drones, untilPressing, pressingDetour)
	// What got a flight keeps it in the next round; what got none must not
	// take one from an urgent order there.
	for _, i := range orders {
		c.work.Orders[i].Priority = solver.Critical
	}
	for _, i := range unserved {
		c.work.Orders[i].Priority = solver.High
	}
	return err
}

// longestOverdue is the order that is longest past its deadline of those the
// drones can serve, if that is by least. The more urgent a class, the faster its
// time runs: three hours of STANDARD are one of CRITICAL.
func (c *cycle) longestOverdue(drones []solver.Drone, least time.Duration) (longest int, ok bool) {
	most := least
	for i := range c.work.Orders {
		o := &c.work.Orders[i]
		overdue := c.work.Now.Sub(o.Due(c.work.Now))
		if overdue > 0 {
			overdue = time.Duration(1+o.Priority) * min(overdue, eternity)
		}
		if overdue < most || c.urgent[o.ID] || c.invalid[i] {
			continue
		}
		if took, _ := c.earliest(o, drones); took != never {
			longest, most, ok = i, overdue, true
		}
	}
	return longest, ok
}

// release puts a drone that can fly for the order that waited longest at the
// end of those still free, where none is kept: the reserve is a number of
// drones, and no drone that an order needs is in it for ever, were it the only
// one that can carry it. An outpost is released if no other drone can. Without
// an order that waited long that is done only if starved, when the last drone
// is all that the others get.
func (c *cycle) release(rest []solver.Drone, starved bool) []solver.Drone {
	least := longOverdue * c.params.AgingStep
	if starved {
		least = math.MinInt64
	}
	_, posts := c.byPost()
	free := append(c.idle(posts), rest...)
	longest, ok := c.longestOverdue(free, least)
	if !ok {
		return rest
	}
	e := c.errand(&c.work.Orders[longest])
	for _, d := range slices.Backward(free) {
		if took, _ := c.fly(&d, e); took != never {
			delete(c.outposts, d.ID)
			return append(only(rest, func(id string) bool { return id != d.ID }), d)
		}
	}
	return rest
}

// commit plans orders with drones and keeps the flights for the rounds after:
// others may join, as long as nothing comes later than by detour. It returns the
// orders left out.
func (c *cycle) commit(ctx context.Context, orders []int, drones []solver.Drone, until float64, detour time.Duration) ([]int, error) {
	if len(orders) == 0 || len(drones) == 0 {
		return orders, nil
	}
	part := c.work
	part.Drones, part.Orders = drones, make([]solver.Order, len(orders))
	for k, i := range orders {
		part.Orders[k] = c.work.Orders[i]
	}
	plan, err := c.solveUntil(ctx, part, nil, until)
	if err != nil {
		return nil, err
	}
	arrivals := map[string]time.Time{}
	for _, r := range plan.Routes {
		c.flying[r.DroneID] = r
		for _, s := range r.Stops {
			if s.Kind == solver.Delivery {
				arrivals[s.OrderID] = s.ETA
			}
		}
	}
	var unserved []int
	for _, i := range orders {
		at, served := arrivals[c.work.Orders[i].ID]
		if !served {
			unserved = append(unserved, i)
			continue
		}
		c.promise(&c.work.Orders[i], at.Add(detour))
	}
	return unserved, nil
}

// byUse lists the drones still free, those first that are best kept in reserve:
// with just the charge that CRITICAL orders need, so that the fullest are there
// for the longest flights.
func (c *cycle) byUse() []solver.Drone {
	enough := c.demand.enough(c.flights)
	rest, _ := c.byPost()
	rest = c.idle(rest)
	slices.SortStableFunc(rest, func(a, b solver.Drone) int {
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
	return rest
}

// planJointly is the last round: all orders, with the drones offered.
func (c *cycle) planJointly(ctx context.Context, offered []solver.Drone) (solver.Plan, error) {
	joint := c.work
	joint.Drones = c.withTourLimit(offered)
	// What is long overdue was pressing; it must not grow heavier than what is
	// urgent here.
	joint.Params.AgingStep = math.MaxInt64
	warm := solver.Plan{}
	for _, drone := range slices.Sorted(maps.Keys(c.flying)) {
		warm.Routes = append(warm.Routes, c.flying[drone])
	}
	if c.last != nil {
		warm.Routes = append(warm.Routes, slices.DeleteFunc(slices.Clone(c.last.Routes), func(r solver.Route) bool { return c.flies(r.DroneID) })...)
	}
	plan, err := c.solveUntil(ctx, joint, &warm, untilJoint)
	if err != nil {
		return plan, err
	}
	waiting := c.needlesslyLate(plan)
	if len(waiting) == 0 {
		return c.account(plan, offered), nil
	}
	// Without them, and their routes shortened.
	var index []int
	joint.Orders = nil
	for i, o := range c.work.Orders {
		if !waiting[o.ID] {
			joint.Orders, index = append(joint.Orders, o), append(index, i)
		}
	}
	if plan, err = c.solveUntil(ctx, joint, &plan, untilShorter); err != nil {
		return plan, err
	}
	for k := range plan.Unserved {
		plan.Unserved[k].Index = index[plan.Unserved[k].Index]
	}
	for i, o := range c.work.Orders {
		if waiting[o.ID] {
			plan.Unserved = append(plan.Unserved, solver.Unserved{OrderID: o.ID, Index: i, Reason: solver.WaitsForBetterRoute})
		}
	}
	slices.SortFunc(plan.Unserved, func(a, b solver.Unserved) int { return cmp.Compare(a.Index, b.Index) })
	return c.account(plan, offered), nil
}

// withTourLimit bounds how long the drones may be away, so that they come back
// as fast as CRITICAL orders need them: long tours save distance, and leave
// nobody for the next call. Every flight decided on and every order that waits
// and that such a drone can carry fits, be it alone. Drones elsewhere fly home
// anyway.
func (c *cycle) withTourLimit(drones []solver.Drone) []solver.Drone {
	errands := make([]*errand, len(c.work.Orders))
	for i := range c.work.Orders {
		errands[i] = c.errand(&c.work.Orders[i])
	}
	limits := map[solver.Drone]time.Duration{} // by kind of drone
	limitOf := func(d solver.Drone) time.Duration {
		kind := c.charged(d)
		kind.ID = ""
		limit, known := limits[kind]
		if known {
			return limit
		}
		limit = c.demand.tour(c.work.Now)
		for _, e := range errands {
			limit = max(limit, c.roundTrip(&kind, e))
		}
		limits[kind] = limit
		return limit
	}
	limited := slices.Clone(drones)
	for i := range limited {
		d := &limited[i]
		home := metres(d.At, c.home(d))
		if home >= awayMetres {
			continue
		}
		longest := max(limitOf(*d)+flightTime(d, home), c.flying[d.ID].Duration) + time.Second // for rounding
		if d.MaxFlight == 0 || longest < d.MaxFlight {
			d.MaxFlight = longest
		}
	}
	return limited
}

// needlesslyLate are the orders that a plan delivers late although a drone that
// starts from the depot within the next cycles would be in time. Better they
// wait for that one: once they have left, nothing can make up for it.
func (c *cycle) needlesslyLate(plan solver.Plan) map[string]bool {
	byID := c.ordersByID(&c.work)
	waiting := map[string]bool{}
	for _, r := range plan.Routes {
		for _, s := range r.Stops {
			o := byID[s.OrderID]
			if s.Kind != solver.Delivery || !s.ETA.After(o.Due(c.work.Now)) {
				continue
			}
			if took, _ := c.arrival(c.demand.usual, o); took != never && c.inTime(o, took+patience) {
				waiting[o.ID] = true
			}
		}
	}
	return waiting
}

// ordersByID are a problem's orders; of those that share an id, the first.
func (c *cycle) ordersByID(p *solver.Problem) map[string]*solver.Order {
	byID := make(map[string]*solver.Order, len(p.Orders))
	for i := range p.Orders {
		if o := &p.Orders[i]; byID[o.ID] == nil {
			byID[o.ID] = o
		}
	}
	return byID
}

// account restates a plan of the work as one of the problem.
func (c *cycle) account(plan solver.Plan, offered []solver.Drone) solver.Plan {
	now := c.problem.Now
	plan.Objective.Late, plan.Objective.Unserved = [3]int{}, [3]int{}
	byID := c.ordersByID(c.problem)
	for _, r := range plan.Routes {
		for _, s := range r.Stops {
			if o := byID[s.OrderID]; s.Kind == solver.Delivery && s.ETA.After(o.Due(now).Add(model.LateTolerance)) {
				plan.Objective.Late[o.Priority]++
			}
		}
	}
	// What no drone at all could do has other reasons than what waits for one.
	reasons := map[int]solver.Unserved{}
	for _, u := range c.alone.Unserved {
		reasons[u.Index] = u
	}
	used := map[string]bool{}
	for _, d := range offered {
		used[d.ID] = true
	}
	kept := only(c.work.Drones, func(id string) bool { return !used[id] })
	for k := range plan.Unserved {
		u := &plan.Unserved[k]
		o := &c.problem.Orders[u.Index]
		whole, left := reasons[u.Index]
		switch {
		case u.Reason == solver.WaitsForBetterRoute:
		case left:
			u.Reason, u.Detail = whole.Reason, whole.Detail
		default:
			// Some drone could take it; whether in time, the deadlines of the work
			// do not say.
			u.Reason = solver.NoDroneFree
			if took, _ := c.earliest(o, c.problem.Drones); !c.inTime(o, took) {
				u.Reason = solver.DeadlineUnreachable
			}
		}
		if u.Reason == solver.InvalidInput {
			continue
		}
		plan.Objective.Unserved[o.Priority]++
		if took, _ := c.earliest(o, kept); took != never && u.Reason != solver.WaitsForBetterRoute {
			u.Reason = solver.KeptForCritical
		}
	}
	plan.Ignored = c.alone.Ignored
	return plan
}
