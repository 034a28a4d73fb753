package plannersim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// Planner plans the cycles of one area. A planner.Planner is one.
type Planner interface {
	PlanSnapshot(ctx context.Context, snap domain.Snapshot, start time.Time) (planner.Result, error)
}

// Run replays the scenario. Each area's cycles use one planner, made by newPlanner. The
// cycles of all areas begin at once, so the second of two decisions about one order is
// refused. Run fails if the scenario is invalid, the planner fails, or a decision names a
// drone or an order that was not in its snapshot.
func Run[P Planner](ctx context.Context, s Scenario, newPlanner func() P) (Result, error) {
	if err := s.Validate(); err != nil {
		return Result{}, fmt.Errorf("scenario: %w", err)
	}
	s = s.withDefaults()
	w, orders, err := s.day()
	if err != nil {
		return Result{}, err
	}
	r, err := newReplay(w, s)
	if err != nil {
		return Result{}, err
	}
	areas := policy.AreasOf(w.Depots, s.AreaRadius)
	planners := make([]Planner, len(areas))
	for i := range planners {
		planners[i] = newPlanner()
	}
	result := Result{Scenario: s}
	failures, arrived := s.failures(), 0
	for r.now.Sub(Begin) < s.Duration {
		for arrived < len(orders) && !orders[arrived].CreatedAt.After(r.now) {
			o := &orders[arrived]
			o.PlanningDepotID = policy.PlanningDepot(w.Depots, o.Delivery)
			r.orders[o.ID] = o
			r.pending = append(r.pending, o)
			arrived++
		}
		for len(failures) > 0 && !failures[0].at.After(r.now) {
			r.breakDown(failures[0])
			failures = failures[1:]
		}
		if r.now.Sub(Begin)%s.Interval == 0 {
			snaps := make([]domain.Snapshot, len(areas))
			for i, area := range areas {
				snaps[i] = r.snapshot(area)
			}
			for i, snap := range snaps {
				if err := r.runCycle(ctx, &result, planners[i], snap, s.Latency); err != nil {
					return result, fmt.Errorf("%s: %w", r.now.Sub(Begin), err)
				}
			}
			r.pending = slices.DeleteFunc(r.pending, func(o *domain.Order) bool { return o.Status != domain.OrderPending })
			r.sweep()
		}
		if err := r.step(); err != nil {
			return result, fmt.Errorf("%s: %w", r.now.Sub(Begin), err)
		}
	}
	result.score(r, orders[:arrived])
	return result, nil
}

func (r *replay) runCycle(ctx context.Context, result *Result, p Planner, snap domain.Snapshot, latency time.Duration) error {
	result.Cycles++
	snap.CycleID = domain.CycleID(fmt.Sprintf("%s-%d", snap.Depot.ID, result.Cycles))
	began := time.Now()
	planned, err := p.PlanSnapshot(ctx, snap, r.now.Add(latency))
	result.Slowest = max(result.Slowest, time.Since(began))
	if err != nil {
		return err
	}
	result.observe(snap)
	defer func() { result.HandedOver += r.handOver(planned, snap) }()
	for _, d := range planner.DecisionsOf(planned.Plan, snap) {
		if err := r.decide(d); err != nil {
			return err
		}
	}
	return nil
}
