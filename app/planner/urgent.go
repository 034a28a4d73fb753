package planner

import (
	"context"
	"time"

	"github.com/dronefleet/dronefleet/solver"
)

// planUrgent is the urgent stage, for CRITICAL orders that can be in time. They
// are planned nearly as if each flew alone. If drones are then too few, they share
// routes up to their deadlines. If that is not enough either, they may take the
// drones at advance positions, and at last all are planned anew with all drones.
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

// refix plans all urgent orders once more, with the drones given, and fixes the
// new routes if they leave fewer orders out than are left now. It returns those
// left out.
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

// urgentOrders lists the CRITICAL orders that some free drone can deliver in time.
// It tightens their deadlines so that each flies nearly alone, and releases the
// drones at advance positions that are the only ones to serve an order: a CRITICAL
// one in time, another one at all.
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

// planLateCritical is the stage for CRITICAL orders that no drone can deliver in
// time any more, and for those whose drones are taken by other urgent orders. It
// runs with the drones that at-risk orders may take, then with all that are left:
// a late CRITICAL order does not wait for the sake of orders to come.
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
