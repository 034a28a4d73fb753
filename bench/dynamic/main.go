// Command dynamic runs hours of orders through the real system in fast-forward
// and compares how the solver serves them with the greedy one and with one
// order per drone, nearest first. Telemetry, transactions, locks and cycles are
// those of "statemanager dev"; only the planner differs.
//
//	go run ./bench/dynamic --seeds 1,2,3
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/devrun"
	"github.com/dronefleet/dronefleet/solver"
)

type command struct {
	Seeds           []uint64      `help:"Worlds to run." default:"1,2,3"`
	Simulated       time.Duration `help:"Simulated time of each run." default:"2h"`
	Speed           float64       `help:"Simulated seconds per second." default:"60"`
	Drones          int           `help:"Size of the fleet." default:"40"`
	OrdersPerMinute float64       `help:"Mean rate of new orders." default:"4"`
	SolveLimit      time.Duration `help:"Real time of each cycle's search." default:"80ms"`
	JSON            string        `help:"Also write every run's report to this file." name:"json" placeholder:"FILE"`
}

type run struct {
	Solver string        `json:"solver"`
	Seed   uint64        `json:"seed"`
	Report devrun.Report `json:"report"`
}

func main() {
	cli.Main(&command{}, "Compares planners over simulated hours of the whole system.")
}

// Run runs every planner on every seed and prints a row for each.
func (c *command) Run(ctx context.Context) error {
	planners := []struct {
		name     string
		strategy solver.Strategy
	}{{"sisr", solver.SISR}, {"greedy", solver.Greedy}, {"nearest", solver.NearestFirst}}
	fmt.Printf("%s of %g orders/min, %d drones, time x%g\n", c.Simulated, c.OrdersPerMinute, c.Drones, c.Speed)
	fmt.Printf("on time / created, mean lateness of the late; churn: missions failed\n\n")
	fmt.Printf("%-5s %-8s %22s %22s %22s %8s %7s %10s %10s\n", "seed", "planner", "CRITICAL", "HIGH", "STANDARD", "km/del.", "churn", "oldest min", "violations")
	var runs []run
	for _, seed := range c.Seeds {
		critical := map[string]int{}
		for _, p := range planners {
			report, err := devrun.Run(ctx, devrun.Config{
				Duration: time.Duration(float64(c.Simulated) / c.Speed), Drones: c.Drones, Hz: 1, OrdersPerMinute: c.OrdersPerMinute,
				Speed: c.Speed, Seed: seed, SolveLimit: c.SolveLimit, Strategy: p.strategy,
				Out: io.Discard, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
			})
			if err != nil || ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
			runs = append(runs, run{p.name, seed, report})
			critical[p.name] = report.Priorities["CRITICAL"].OnTime
			row(p.name, seed, report)
		}
		if critical["sisr"] <= critical["greedy"] || critical["sisr"] <= critical["nearest"] {
			fmt.Printf("      seed %d: sisr does not lead on CRITICAL orders\n", seed)
		}
	}
	if c.JSON == "" {
		return nil
	}
	text, err := json.MarshalIndent(runs, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(c.JSON, append(text, '\n'), 0o644)
}

func row(name string, seed uint64, r devrun.Report) {
	class := func(priority string) string {
		p := r.Priorities[priority]
		return fmt.Sprintf("%d/%d, %.1f min", p.OnTime, p.Created, p.MeanLatenessSeconds/60)
	}
	oldest := 0.0
	for _, p := range r.Priorities {
		oldest = max(oldest, p.OldestSeconds/60)
	}
	failed := 0
	for _, n := range r.MissionsFailed {
		failed += n
	}
	fmt.Printf("%-5d %-8s %22s %22s %22s %8.1f %7d %10.0f %10d\n", seed, name, class("CRITICAL"), class("HIGH"), class("STANDARD"),
		r.FlownKm/float64(max(r.Orders.Delivered, 1)), failed, oldest, len(r.Invariants.Violations))
}
