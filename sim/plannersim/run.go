package plannersim

import (
	"context"
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
)

// Run replays the scenario; every cycle of every depot asks the planner that
// planners makes for it.
func Run(ctx context.Context, s Scenario, planners func() *dispatch.Planner) (Result, error) {
	if err := s.Validate(); err != nil {
		return Result{}, fmt.Errorf("scenario: %w", err)
	}
	s = s.withDefaults()
	w, orders, err := s.world()
	if err != nil {
		return Result{}, err
	}
	f, err := newFleet(w)
	if err != nil {
		return Result{}, err
	}
	planner := make([]*dispatch.Planner, len(w.Depots))
	for i := range planner {
		planner[i] = planners()
	}
	result := Result{Scenario: s}
	var pending []*domain.Order
	arrived := 0
	for f.now.Sub(begin) < s.Duration {
		for arrived < len(orders) && !orders[arrived].CreatedAt.After(f.now) {
			o := &orders[arrived]
			f.orders[o.ID] = o
			pending = append(pending, o)
			arrived++
		}
		if f.now.Sub(begin)%s.Interval == 0 {
			for i, depot := range w.Depots {
				if err := f.cycle(ctx, &result, planner[i], depot, pending, s.Latency); err != nil {
					return result, fmt.Errorf("%s: %w", f.now.Sub(begin), err)
				}
			}
			pending = stillPending(pending)
		}
		f.pass()
	}
	result.score(f, orders[:arrived])
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

func (f *fleet) cycle(ctx context.Context, result *Result, planner *dispatch.Planner, depot domain.Depot, pending []*domain.Order, latency time.Duration) error {
	snap := f.snapshot(depot, pending)
	result.Cycles++
	snap.CycleID = domain.CycleID(fmt.Sprintf("%s-%d", depot.ID, result.Cycles))
	began := time.Now()
	round, err := planner.Plan(ctx, snap, f.now.Add(latency))
	result.planning(time.Since(began))
	if err != nil {
		return err
	}
	result.observe(snap, round)
	for _, d := range dispatch.DecisionsOf(round.Plan, snap) {
		if err := f.assign(d, latency); err != nil {
			return err
		}
	}
	return nil
}
