// Command dynamic runs hours of orders through the real system in fast-forward
// and compares how the dispatcher serves them with a greedy insertion and with
// one order per drone, nearest first. Telemetry, transactions, locks and cycles
// are those of "dronefleet dev"; only the planner differs. Searches are
// bounded in steps, not in time, so that what they find does not hang on how
// busy the machine is.
//
//	go run ./bench/dynamic --seeds 1,2,3
//
// With --offline the same planners meet the same simulated drones without any
// server, two hours in a second, and a third row shows the search alone, without
// looking ahead:
//
//	go run ./bench/dynamic --offline --seeds 1,2,3,4,5,6,7,8,9,10 --orders-per-minute 6
//	go run ./bench/dynamic --offline --place city --burst 3
//
// It fails when in some seed the dispatcher was late with a CRITICAL order and a
// baseline had as many in time, or when an invariant broke.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/sim/devrun"
	"github.com/dronefleet/dronefleet/solver"
)

type command struct {
	Seeds           []uint64      `help:"Worlds to run." default:"1,2,3"`
	Simulated       time.Duration `help:"Simulated time of each run." default:"2h" check:"min 1s"`
	Speed           float64       `help:"Simulated seconds per second." default:"60" check:"min 1 max 1000"`
	Drones          int           `help:"Size of the fleet." default:"40" check:"min 1 max 100000"`
	OrdersPerMinute float64       `help:"Mean rate of new orders." default:"4" check:"over 0 max 60000"`
	Iterations      int           `help:"Steps of each cycle's search." default:"300" check:"min 1"`
	JSON            string        `help:"Also write every run's outcome to this file." name:"json" placeholder:"FILE"`
	Offline         bool          `help:"Without servers: the planners and the simulated drones alone."`
	Place           string        `help:"Offline: ${enum}." enum:"paris,city" default:"paris"`
	Burst           float64       `help:"Offline: how many times denser orders are in 6 of every 30 minutes." default:"1" check:"min 1"`
}

// planner is one way to plan.
type planner struct {
	name      string
	strategy  solver.Strategy
	immediate bool // without looking ahead
}

// dispatcher is the one that shall lead.
const dispatcher = "dispatcher"

var planners = []planner{
	{dispatcher, solver.SISR, false},
	{"greedy", solver.Greedy, true},
	{"nearest", solver.NearestFirst, true},
}

// searchAlone shows what looking ahead adds to the search.
var searchAlone = planner{"search", solver.SISR, true}

func main() {
	cli.Main(&command{}, "Compares planners over simulated hours of the whole system.")
}

// Check implements config.Checker.
func (c *command) Check(r *config.Report) {
	if len(c.Seeds) == 0 {
		r.Refuse("seeds", "is empty, and nothing would be compared; give whole numbers, 0 or more, such as 1,2,3")
	}
}

// Run runs every planner on every seed and prints a row for each.
func (c *command) Run(ctx context.Context) error {
	compared, run := planners, c.real
	if c.Offline {
		compared, run = append(planners, searchAlone), c.offline
		fmt.Fprintf(cli.Stdout, "%s of %g orders/min, %d drones, %s, bursts x%g, without servers\n", c.Simulated, c.OrdersPerMinute, c.Drones, c.Place, max(1, c.Burst))
	} else {
		fmt.Fprintf(cli.Stdout, "%s of %g orders/min, %d drones, time x%g\n", c.Simulated, c.OrdersPerMinute, c.Drones, c.Speed)
	}
	fmt.Fprintf(cli.Stdout, "on time + late + still open in time; mean lateness of the late; churn: missions failed; oldest: the longest wait of an open order\n\n")
	fmt.Fprintln(cli.Stdout, header)
	file, err := cli.Create(c.JSON) // shall be known to be writable before hours have passed
	if err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	defer file.Close()
	var outcomes []outcome
	var lost, broken []uint64
	for _, seed := range c.Seeds {
		critical := map[string]devrun.PriorityReport{}
		for _, p := range compared {
			o, err := run(ctx, p, seed)
			if err = errors.Join(err, ctx.Err()); err != nil {
				return fmt.Errorf("%s, seed %d: %w", p.name, seed, err)
			}
			outcomes = append(outcomes, o)
			critical[p.name] = o.Priorities["CRITICAL"]
			fmt.Fprintln(cli.Stdout, o)
			if o.Violations > 0 {
				broken = append(broken, seed)
			}
		}
		for _, p := range planners[1:] {
			if ours := critical[dispatcher]; ours.Late > 0 && ours.OnTime <= critical[p.name].OnTime {
				lost = append(lost, seed)
				break
			}
		}
	}
	fmt.Fprintln(cli.Stdout)
	for _, p := range compared {
		fmt.Fprintln(cli.Stdout, total(p.name, outcomes))
	}
	var errs []error
	if len(lost) > 0 {
		errs = append(errs, fmt.Errorf("the dispatcher does not lead on CRITICAL orders with seeds %v", lost))
	}
	if len(broken) > 0 {
		errs = append(errs, fmt.Errorf("invariants broke with seeds %v", broken))
	}
	return errors.Join(append(errs, write(file, outcomes))...)
}

// real runs a planner in the whole system.
func (c *command) real(ctx context.Context, p planner, seed uint64) (outcome, error) {
	r, err := devrun.Run(ctx, devrun.Config{
		Duration: time.Duration(float64(c.Simulated) / c.Speed), Drones: c.Drones, Hz: 1, OrdersPerMinute: c.OrdersPerMinute,
		Speed: c.Speed, Seed: seed, SolveLimit: time.Second, Iterations: c.Iterations, Strategy: p.strategy,
		Out: io.Discard, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	churn := 0
	for _, n := range r.MissionsFailed {
		churn += n
	}
	return outcome{
		Planner: p.name, Seed: seed, Priorities: r.Priorities, FlownKm: r.FlownKm, Delivered: r.Orders.Delivered,
		Missions: r.Decisions.Applied, Churn: churn, Cycles: int(r.Cycles.Run), Violations: len(r.Invariants.Violations),
		Behind: r.Pace.Behind,
	}, err
}

func write(file *cli.File, outcomes []outcome) error {
	encoder := json.NewEncoder(file)
	encoder.SetIndent("", " ")
	if err := cmp.Or(encoder.Encode(outcomes), file.Close()); err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	return nil
}
