package main

import (
	"context"
	"fmt"

	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/devrun"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/sim/plannersim"
	"github.com/dronefleet/dronefleet/solver"
)

// offline runs a planner on simulated drones alone.
func (c *command) offline(ctx context.Context, p planner, seed uint64) (outcome, error) {
	day := plannersim.Scenario{Duration: c.Simulated, Drones: c.Drones, PerMinute: c.OrdersPerMinute, Burst: c.Burst, Seed: seed}
	if c.Place == "city" {
		day.World = plannersim.City
	}
	var refused error
	cfg := dispatch.PlannerConfig{
		Options:   solver.Options{Iterations: c.Iterations, Strategy: p.strategy, Seed: seed},
		Params:    solver.Params{PickupService: fleetsim.Dwell, DeliveryService: fleetsim.Dwell},
		Immediate: p.immediate,
	}
	r, err := plannersim.Run(ctx, day, func() *dispatch.Planner {
		return dispatch.NewPlanner(cfg, func(_ solver.Problem, fault error) { refused = fault })
	})
	if err == nil && refused != nil {
		err = fmt.Errorf("a plan broke the rules: %w", refused)
	}
	o := outcome{
		Planner: p.name, Seed: seed, Priorities: map[string]devrun.PriorityReport{}, FlownKm: r.FlownKm, Delivered: r.Delivered,
		Missions: r.Missions, Cycles: r.Cycles,
	}
	for _, priority := range domain.Priorities {
		k := r.Priorities[priority]
		o.Priorities[priority.String()] = devrun.PriorityReport{
			Created: k.Created, Delivered: k.Delivered, OnTime: k.OnTime, Late: k.Late,
			MeanWaitSeconds: k.Wait.Seconds(), MeanLatenessSeconds: k.Lateness.Seconds(), OldestSeconds: k.Oldest.Seconds(),
		}
	}
	return o, err
}
