package planner

import (
	"context"

	"github.com/dronefleet/dronefleet/solver"
)

// planUrgent is the urgent stage. Orders are planned nearly as if each flew
// alone; only if drones are then too few they share flights up to their
// deadlines.
func (l *lookAhead) planUrgent(ctx context.Context) error {
	now := l.work.Now
	ordinary, advance := l.byAdvance()
	var orders []int
	for i := range l.work.Orders {
		o := &l.work.Orders[i]
		if o.Priority != solver.Critical && (len(advance) == 0 || !l.outOfDepotRange(o)) {
			continue
		}
		took, _ := l.earliest(o, ordinary)
		if len(advance) > 0 && (o.Priority != solver.Critical && took == never || o.Priority == solver.Critical && !l.inTime(o, took)) {
			// Only a drone at an advance position can serve it, in time or at all.
			alone, drone := l.earliest(o, advance)
			if o.Priority != solver.Critical && alone != never || l.inTime(o, alone) {
				delete(l.advance, drone)
				ordinary, advance = l.byAdvance()
				took = min(took, alone)
			}
		}
		if o.Priority == solver.Critical && l.inTime(o, took) {
			orders = append(orders, i)
			l.urgent[o.ID] = true
			l.tightenDeadline(o, now.Add(took+urgentDetour))
		}
	}
	unserved, err := l.fixRoutes(ctx, orders, ordinary, urgentUntil, urgentDetour)
	if err != nil || len(unserved) == 0 {
		return err
	}
	for _, i := range unserved {
		l.work.Orders[i].Deadline = l.problem.Orders[i].Due(now)
	}
	clear(l.fixed)
	_, err = l.fixRoutes(ctx, orders, ordinary, sharedUntil, urgentDetour)
	return err
}

// outOfDepotRange reports whether no drone could ever deliver the order from the
// depot.
func (l *lookAhead) outOfDepotRange(o *solver.Order) bool {
	took, _ := l.tryOne(l.demand.typical, o)
	return took == never
}
