package plannersim

import (
	"context"
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
)

// Run replays the scenario. Each depot's cycles use one planner, made by
// newPlanner. It fails if the scenario is invalid, the planner fails, or a
// decision names a drone or an order that is not free.
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
	planners := make([]*planner.Planner, len(w.Depots))
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
			for i, depot := range w.Depots {
				if err := r.runCycle(ctx, &result, planners[i], depot, pending, s.Latency); err != nil {
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

func (r *replay) runCycle(ctx context.Context, result *Result, p *planner.Planner, depot domain.Depot, pending []*domain.Order, latency time.Duration) error {
	snap := r.snapshot(depot, pending)
	result.Cycles++
	snap.CycleID = domain.CycleID(fmt.Sprintf("%s-%d", depot.ID, result.Cycles))
	began := time.Now()
	planned, err := p.PlanSnapshot(ctx, snap, r.now.Add(latency))
	result.Slowest = max(result.Slowest, time.Since(began))
	if err != nil {
		return err
	}
	result.observe(snap, planned)
	for _, d := range planner.DecisionsOf(planned.Plan, snap) {
		if err := r.assign(d, latency); err != nil {
			return err
		}
	}
	return nil
}
