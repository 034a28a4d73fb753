package planner

import (
	"context"
	"time"

	"github.com/dronefleet/dronefleet/solver"
)

// highAtRisk is how little time to spare makes a HIGH order at risk.
const highAtRisk = 3 * time.Minute

// anyTime is a deadline for an order that is to be delivered at all.
const anyTime = 24 * time.Hour

// planAtRisk is the at-risk stage with the drones that it may take.
func (l *lookAhead) planAtRisk(ctx context.Context, drones []solver.Drone) error {
	now := l.work.Now
	first, ok := l.longestOverdue(drones, longOverdue*l.params.AgingStep)
	if ok {
		// The longest overdue order gets a flight of its own, however far.
		o := &l.work.Orders[first]
		o.Priority, o.Deadline = solver.Critical, now.Add(anyTime)
		if _, err := l.fixRoutes(ctx, []int{first}, drones, atRiskUntil, atRiskDetour); err != nil {
			return err
		}
		drones = l.unused(drones)
	}
	var orders []int
	for i := range l.work.Orders {
		o := &l.work.Orders[i]
		overdue := now.Sub(o.Due(now))
		if ok && i == first || l.urgent[o.ID] || o.Priority == solver.Standard && overdue < longOverdue*l.params.AgingStep {
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
			o.Deadline = now.Add(took + atRiskDetour)
			if o.Priority != solver.High {
				o.Priority = solver.Critical
			}
		}
		orders = append(orders, i)
	}
	unserved, err := l.fixRoutes(ctx, orders, drones, atRiskUntil, atRiskDetour)
	// Orders with a route keep it in the joint stage. Orders without one must not
	// displace an urgent order there.
	for _, i := range orders {
		l.work.Orders[i].Priority = solver.Critical
	}
	for _, i := range unserved {
		l.work.Orders[i].Priority = solver.High
	}
	return err
}
