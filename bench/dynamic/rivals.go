package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/bench/dynamic/clairvoyant"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/sim/plannersim"
	"github.com/dronefleet/dronefleet/solver"
)

// rival is one way to serve a day.
type rival struct {
	name string
	run  func(ctx context.Context, day plannersim.Scenario, effort effort) (plannersim.Result, error)
	// criticalOnly says that it serves CRITICAL orders alone; amends, that it may change
	// missions under way.
	criticalOnly, amends bool
	// advance says that drones may wait at advance positions.
	advance bool
}

// effort is how much a rival searches, in steps, and the seed of its search.
type effort struct {
	iterations int // of a cycle
	boundSteps int // of the clairvoyant search
	seed       uint64
}

const (
	criticalOnlyName = "critical only"
	clairvoyantName  = "clairvoyant"
	learnedName      = "learned"
)

// rivals lists all.
var rivals = []rival{
	{name: "planner", run: planned(solver.SISR, false), amends: true, advance: true},
	{name: "at the depot", run: planned(solver.SISR, false), amends: true},
	{name: learnedName, run: withLearnedPace, amends: true, advance: true},
	{name: "idle only", run: planned(solver.SISR, false)},
	{name: "search", run: planned(solver.SISR, true)},
	{name: "search with 8 kept", run: withFixedReserve},
	{name: "greedy", run: planned(solver.Greedy, true)},
	{name: "nearest", run: planned(solver.NearestFirst, true)},
	{name: criticalOnlyName, run: planned(solver.SISR, false), criticalOnly: true},
	{name: clairvoyantName, run: withForesight},
}

// planned serves a day with a planner.Planner.
func planned(strategy solver.Strategy, immediate bool) func(context.Context, plannersim.Scenario, effort) (plannersim.Result, error) {
	return plannedWith(strategy, immediate, func(plannersim.Scenario) learning.Estimates { return learning.Estimates{} })
}

// withLearnedPace serves a day with a planner that has learned how fast drones fly.
var withLearnedPace = plannedWith(solver.SISR, false, func(day plannersim.Scenario) learning.Estimates {
	return learning.Estimates{SpeedKmh: day.Pace * fleetsim.CruiseKmh, Pickup: fleetsim.Dwell, Deliver: fleetsim.Dwell}
})

func plannedWith(strategy solver.Strategy, immediate bool, learned func(plannersim.Scenario) learning.Estimates) func(context.Context, plannersim.Scenario, effort) (plannersim.Result, error) {
	return func(ctx context.Context, day plannersim.Scenario, e effort) (plannersim.Result, error) {
		var refused error
		cfg := planner.Config{
			Options: solver.Options{Iterations: e.iterations, Strategy: strategy, Seed: e.seed}, Params: service, Immediate: immediate, Advance: day.Standby,
			Learned: learned(day), Refused: func(_ solver.Problem, broken error) { refused = broken },
		}
		r, err := plannersim.Run(ctx, day, func() *planner.Planner { return planner.New(cfg, time.Now) })
		if err == nil && refused != nil {
			err = fmt.Errorf("the checker refused a plan: %w", refused)
		}
		return r, err
	}
}

// service is how long simulated drones take at a stop.
var service = solver.Params{PickupService: fleetsim.Dwell, DeliveryService: fleetsim.Dwell}

// fixedReserve is a plain search that keeps some drones for CRITICAL orders, whatever the
// demand.
type fixedReserve struct {
	keep int
	opts solver.Options
}

func withFixedReserve(ctx context.Context, day plannersim.Scenario, e effort) (plannersim.Result, error) {
	return plannersim.Run(ctx, day, func() *fixedReserve {
		return &fixedReserve{8, solver.Options{Iterations: e.iterations, Seed: e.seed, Clock: time.Now}}
	})
}

// PlanSnapshot implements plannersim.Planner. CRITICAL orders may take any drone; the
// others join them or take the drones beyond the reserve, of which the fullest are kept.
func (f *fixedReserve) PlanSnapshot(ctx context.Context, snap domain.Snapshot, start time.Time) (planner.Result, error) {
	whole := planner.ProblemOf(snap, start, service)
	urgent := whole
	urgent.Orders = slices.DeleteFunc(slices.Clone(whole.Orders), func(o solver.Order) bool { return o.Priority != solver.Critical })
	first, err := f.solve(ctx, urgent, nil)
	if err != nil {
		return planner.Result{}, err
	}
	needed := map[string]bool{}
	for _, r := range first.Routes {
		needed[r.DroneID] = true
	}
	byCharge := slices.Clone(whole.Drones)
	slices.SortStableFunc(byCharge, func(a, b solver.Drone) int { return cmp.Compare(b.BatteryPercent, a.BatteryPercent) })
	offered, kept := whole, []solver.Drone(nil)
	offered.Drones = nil
	for _, d := range byCharge {
		if !needed[d.ID] && len(kept) < f.keep {
			kept = append(kept, d)
			continue
		}
		offered.Drones = append(offered.Drones, d)
	}
	plan, err := f.solve(ctx, offered, &first)
	return planner.Result{Problem: offered, Plan: plan, Reserve: f.keep, Kept: kept}, err
}

func (f *fixedReserve) solve(ctx context.Context, p solver.Problem, warm *solver.Plan) (solver.Plan, error) {
	opts := f.opts
	opts.Warm = warm
	var refused error
	plan, err := planner.SolveChecked(ctx, p, opts, func(_ solver.Problem, broken error) { refused = broken })
	return plan, errors.Join(err, refused)
}

// withForesight serves a day whose orders are all known in advance. Its drones never fail.
func withForesight(ctx context.Context, day plannersim.Scenario, e effort) (plannersim.Result, error) {
	w, orders, err := day.Day()
	if err != nil {
		return plannersim.Result{}, err
	}
	found, err := clairvoyant.Search(ctx, w, orders, plannersim.Begin, e.seed, e.boundSteps)
	r := plannersim.Result{Scenario: day, FlownKm: found.FlownKm}
	for _, o := range orders {
		r.Priorities[o.Priority].Created++
	}
	for p, n := range found.OnTime {
		of := &r.Priorities[p]
		of.OnTime, of.Delivered, of.Late = n, n, of.Created-n
		r.Delivered += n
	}
	return r, err
}
