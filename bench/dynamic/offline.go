package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/devrun"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/sim/plannersim"
	"github.com/dronefleet/dronefleet/solver"
)

// offline runs a method on simulated drones, without servers.
func (c *command) offline(ctx context.Context, m method, seed uint64) (outcome, error) {
	day := plannersim.Scenario{Duration: c.Simulated, Drones: c.Drones, PerMinute: c.OrdersPerMinute, Burst: c.Burst, Away: c.Away, Seed: seed, Amend: c.Amend && !m.immediate}
	day.Standby = day.Amend && c.Position
	if c.Place == "city" {
		day.World = plannersim.City
	}
	var refused error
	cfg := planner.Config{
		Options:   solver.Options{Iterations: c.Iterations, Strategy: m.strategy, Seed: seed},
		Params:    solver.Params{PickupService: fleetsim.Dwell, DeliveryService: fleetsim.Dwell},
		Immediate: m.immediate,
		Advance:   day.Standby,
		Refused:   func(_ solver.Problem, broken error) { refused = broken },
	}
	r, err := plannersim.Run(ctx, day, func() *planner.Planner { return planner.New(cfg, time.Now) })
	if err == nil && refused != nil {
		err = fmt.Errorf("the checker refused a plan: %w", refused)
	}
	o := outcome{
		Planner: m.name, Seed: seed, Priorities: map[string]devrun.PrioritySummary{}, FlownKm: r.PlannedKm, Delivered: r.Delivered,
		Missions: r.Missions, Cycles: r.Cycles,
	}
	for _, priority := range domain.Priorities {
		k := r.Priorities[priority]
		o.Priorities[priority.String()] = devrun.PrioritySummary{
			Created: k.Created, Delivered: k.Delivered, OnTime: k.OnTime, Late: k.Late,
			MeanWaitSeconds: k.Wait.Seconds(), MeanLatenessSeconds: k.Lateness.Seconds(), OldestSeconds: k.Oldest.Seconds(),
		}
	}
	return o, err
}
