package planner

import (
	"context"
	"time"

	"github.com/dronefleet/dronefleet/solver"
)

// highAtRisk is how little time to spare makes a HIGH order at risk.
const highAtRisk = 6 * time.Minute

// anyTime is a deadline for an order that is to be delivered at all.
const anyTime = 24 * time.Hour

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
