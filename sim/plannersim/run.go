package plannersim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// Run replays the scenario. Each area's cycles use one planner, made by
// newPlanner. The cycles of all areas begin at once: what two of them decide about one order
// is refused the second time. It fails if the scenario is invalid, the planner fails, or a
// decision names a drone or an order that was not in its snapshot.
func Run(ctx context.Context, s Scenario, newPlanner func() *planner.Planner) (Result, error) {
	if err := s.Validate(); err != nil {
		return Result{}, fmt.Errorf("scenario: %w", err)
	}
	s = s.withDefaults()
	w, orders, err := s.world()
	if err != nil {
		return Result{}, err
	}
	r, err := newReplay(w, s)
	if err != nil {
		return Result{}, err
	}
	areas := policy.AreasOf(w.Depots, s.AreaRadius)
	planners := make([]*planner.Planner, len(areas))
	for i := range planners {
		planners[i] = newPlanner()
	}
	result := Result{Scenario: s}
	var pending []*domain.Order
	arrived := 0
	for r.now.Sub(begin) < s.Duration {
		for arrived < len(orders) && !orders[arrived].CreatedAt.After(r.now) {
			o := &orders[arrived]
			r.orders[o.ID] = o
			pending = append(pending, o)
			arrived++
		}
		if r.now.Sub(begin)%s.Interval == 0 {
			snaps := make([]domain.Snapshot, len(areas))
			for i, area := range areas {
				snaps[i] = r.snapshot(area, pending)
			}
			for i, snap := range snaps {
				if err := r.runCycle(ctx, &result, planners[i], snap, s.Latency); err != nil {
					return result, fmt.Errorf("%s: %w", r.now.Sub(begin), err)
				}
			}
			pending = stillPending(pending)
		}
		r.step()
	}
	result.score(r, orders[:arrived])
	return result, nil
}

func stillPending(orders []*domain.Order) []*domain.Order {
	kept := orders[:0]
	for _, o := range orders {
		if o.Status == domain.OrderPending {
			kept = append(kept, o)
		}
	}
	return kept
}

func (r *replay) runCycle(ctx context.Context, result *Result, p *planner.Planner, snap domain.Snapshot, latency time.Duration) error {
	result.Cycles++
	snap.CycleID = domain.CycleID(fmt.Sprintf("%s-%d", snap.Depot.ID, result.Cycles))
	began := time.Now()
	planned, err := p.PlanSnapshot(ctx, snap, r.now.Add(latency))
	result.Slowest = max(result.Slowest, time.Since(began))
	if err != nil {
		return err
	}
	result.observe(snap)
	for _, d := range planner.DecisionsOf(planned.Plan, snap) {
		err := r.assign(d, latency)
		if taken := (*takenError)(nil); errors.As(err, &taken) && slices.ContainsFunc(snap.Orders, func(o domain.Order) bool { return o.ID == taken.order }) {
			result.Refused++
			continue
		}
		if err != nil {
			return err
		}
		result.Missions++
	}
	return nil
}
