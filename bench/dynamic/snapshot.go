package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/bench/dispatch/scenario"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/solver"
)

// snapshots plans one cycle for each seed, with and without looking ahead. Half of
// the drones are away from their depot.
func (c *command) snapshots(ctx context.Context) error {
	fmt.Fprintf(cli.Stdout, "one cycle of %d drones and %d orders, half of the drones away from the depot\n", c.Drones, c.Orders)
	fmt.Fprintln(cli.Stdout, "CRITICAL: orders that some drone could deliver in time, and of these not delivered in time; kept: drones in reserve")
	fmt.Fprintf(cli.Stdout, "\n%-5s %-10s %8s %8s %8s %5s %6s %8s\n", "seed", "planner", "CRITICAL", "missed", "unserved", "kept", "idle", "seconds")
	var worse []uint64
	for _, seed := range c.Seeds {
		problem := scenario.Generate(scenario.Params{Drones: c.Drones, Orders: c.Orders, Cities: 1, Seed: seed})
		reachable := criticalInReach(ctx, problem)
		missed := map[string]int{}
		for _, m := range []method{methods[0], searchAlone} {
			cfg := planner.Config{Options: solver.Options{Iterations: c.Iterations, Seed: seed}, Immediate: m.immediate}
			if c.SolveLimit > 0 {
				cfg.Options.Iterations, cfg.Options.TimeLimit = 0, c.SolveLimit
			}
			began := time.Now()
			r, err := planner.New(cfg, time.Now).Plan(ctx, problem)
			if err != nil {
				return fmt.Errorf("%s, seed %d: %w", m.name, seed, err)
			}
			inTime := 0
			for _, route := range r.Plan.Routes {
				for _, s := range route.Stops {
					if due, ok := reachable[s.OrderID]; ok && s.Kind == solver.Delivery && !s.ETA.After(due) {
						inTime++
					}
				}
			}
			missed[m.name] = len(reachable) - inTime
			fmt.Fprintf(cli.Stdout, "%-5d %-10s %8d %8d %8d %5d %6d %8.1f\n", seed, m.name, len(reachable), missed[m.name],
				r.Plan.Objective.Unserved[solver.Critical], len(r.Kept), len(problem.Drones)-len(r.Plan.Routes), time.Since(began).Seconds())
		}
		if missed[dispatcher] > missed[searchAlone.name] {
			worse = append(worse, seed)
		}
	}
	if len(worse) > 0 {
		return fmt.Errorf("looking ahead misses more CRITICAL orders than the search alone with seeds %v", worse)
	}
	return nil
}

// criticalInReach are the CRITICAL orders that some drone could deliver in time,
// with their deadlines.
func criticalInReach(ctx context.Context, p solver.Problem) map[string]time.Time {
	reachable := map[string]time.Time{}
	for _, o := range p.Orders {
		if o.Priority != solver.Critical {
			continue
		}
		one := p
		one.Orders = []solver.Order{o}
		plan, err := solver.Solve(ctx, one, solver.Options{Strategy: solver.Greedy})
		if err == nil && len(plan.Routes) == 1 && plan.Objective.Late == [3]int{} {
			reachable[o.ID] = o.Due(p.Now)
		}
	}
	return reachable
}
