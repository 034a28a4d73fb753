// Command dynamic runs hours of orders through the real system in fast-forward.
// It compares the dispatcher with greedy insertion and with one order per drone,
// nearest first. Telemetry, transactions, locks and cycles are those of
// "dronefleet dev"; only the planning method differs. The searches are bounded in
// steps, not in time, so that the result does not depend on the machine's load.
//
//	go run ./bench/dynamic --seeds 1,2,3
//
// With --offline the same methods plan for the same simulated drones without
// servers, two hours in seconds. A fourth row shows the search alone, without
// looking ahead:
//
//	go run ./bench/dynamic --offline --seeds 1,2,3,4,5,6,7,8,9,10 --orders-per-minute 6
//	go run ./bench/dynamic --offline --place city --burst 3
//	go run ./bench/dynamic --offline --away 0.33
//
// With --orders each seed is one cycle, with half of the drones away from the
// depot. It fails if looking ahead brings fewer CRITICAL orders in time than the
// search alone:
//
//	go run ./bench/dynamic --drones 100 --orders 500
//	go run ./bench/dynamic --drones 1000 --orders 5000 --solve-limit 8s
//
// With --depots it compares fleets of several depots with a fleet of one depot and the
// same drones, without servers, and counts the decisions that were refused:
//
//	go run ./bench/dynamic --depots 2,3 --apart 1,6 --seeds 1,2,3,4,5
//	go run ./bench/dynamic --depots 3 --apart 12 --area-radius 0,50 --no-amend
//
// With --set it judges the planner beside all its rivals on the same orders, without
// servers, and compares them run by run; see docs/dispatch-judge.md. Planning rules are
// tuned on the cities and seeds of the tuning set only:
//
//	go run ./bench/dynamic --set tuning --load 0.5,1,1.5,2 --runs 10
//	go run ./bench/dynamic --set judging --cities paris --orders-per-minute 6
//	go run ./bench/dynamic --set judging --shock 30 --failures 4 --failed-for 1h
//
// The other runs fail if, with some seed, the dispatcher delivered a CRITICAL order late and
// a baseline delivered as many in time, or if an invariant broke.
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
	Iterations      int           `help:"Search steps of each cycle." default:"300" check:"min 1"`
	JSON            string        `help:"Also write the outcome of every run to this file." name:"json" placeholder:"FILE"`
	Offline         bool          `help:"Run the planning methods on simulated drones, without servers."`
	Place           string        `help:"Offline: ${enum}." enum:"paris,city" default:"paris"`
	Orders          int           `help:"Plan one cycle of this many orders for each seed instead of hours, with half of the drones away from the depot." default:"0" check:"min 0 max 100000"`
	SolveLimit      time.Duration `help:"With --orders: bound the search by this machine time instead of by steps." default:"0s" check:"min 0s"`
	Away            float64       `help:"Offline: share of the drones that wait at hospitals instead of at their depot." default:"0" check:"min 0 max 1"`
	Depots          []int         `help:"Compare fleets of this many depots in a row with one depot that has the same drones, without servers." placeholder:"N,..."`
	Apart           []float64     `help:"With --depots: kilometres from one depot to the next." default:"1,6"`
	AreaRadius      []float64     `help:"With --depots: the optimizer's --area-radius in turn, in km." default:"0,10"`
	Amend           bool          `help:"Offline and with --depots: let the dispatcher change missions under way." default:"true" negatable:""`
	Position        bool          `help:"Let idle drones wait where CRITICAL orders are expected. Offline and with --depots it needs --amend." default:"true" negatable:""`
	Burst           float64       `help:"Offline: factor by which orders are denser in 6 of every 30 minutes." default:"1" check:"min 1"`

	judgeFlags `embed:""`
}

// method is one way to plan.
type method struct {
	name      string
	strategy  solver.Strategy
	immediate bool // without looking ahead
}

// dispatcher is the method under test.
const dispatcher = "dispatcher"

var methods = []method{
	{dispatcher, solver.SISR, false},
	{"greedy", solver.Greedy, true},
	{"nearest", solver.NearestFirst, true},
}

// searchAlone is the search without looking ahead.
var searchAlone = method{"search", solver.SISR, true}

func main() {
	cli.Main(&command{}, "Compares planning methods over simulated hours of the whole system.")
}

// Check implements config.Checker.
func (c *command) Check(r *config.Refuser) {
	if len(c.Seeds) == 0 {
		r.Refuse("seeds", "is empty; give whole numbers of 0 or more, such as 1,2,3")
	}
	for _, n := range c.Depots {
		if n < 2 || n > 100 {
			r.Refuse("depots", "has %d; give 2 to 100 depots", n)
		}
	}
	for _, km := range c.Apart {
		if !(km >= 0 && km <= 100) {
			r.Refuse("apart", "has %v; give 0 to 100 km", km)
		}
	}
	for _, km := range c.AreaRadius {
		if !(km >= 0 && km <= 100) {
			r.Refuse("area-radius", "has %v; give 0 to 100 km", km)
		}
	}
	c.check(r)
}

// Run runs every method on every seed and prints a row for each.
func (c *command) Run(ctx context.Context) error {
	if c.Set != "" {
		return c.judge(ctx)
	}
	if c.Orders > 0 {
		return c.snapshots(ctx)
	}
	if len(c.Depots) > 0 {
		return c.areas(ctx)
	}
	compared, run := methods, c.real
	if c.Offline {
		compared, run = append(methods, searchAlone), c.offline
		fmt.Fprintf(cli.Stdout, "%s of %g orders/min, %d drones of which %g %% wait at hospitals, %s, bursts x%g, without servers\n", c.Simulated, c.OrdersPerMinute, c.Drones, 100*c.Away, c.Place, max(1, c.Burst))
	} else {
		fmt.Fprintf(cli.Stdout, "%s of %g orders/min, %d drones, time x%g\n", c.Simulated, c.OrdersPerMinute, c.Drones, c.Speed)
	}
	fmt.Fprintf(cli.Stdout, "Columns by priority: orders on time + late + open and not late, then mean lateness of the late ones.\nchurn: failed missions; oldest: age of the oldest open order; broken: invariants\n\n")
	fmt.Fprintln(cli.Stdout, header)
	file, err := cli.Create(c.JSON) // fail now if it cannot be written, not at the end
	if err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	defer file.Close()
	var outcomes []outcome
	var lost, broken []uint64
	for _, seed := range c.Seeds {
		critical := map[string]devrun.PrioritySummary{}
		for _, m := range compared {
			o, err := run(ctx, m, seed)
			if err = errors.Join(err, ctx.Err()); err != nil {
				return fmt.Errorf("%s, seed %d: %w", m.name, seed, err)
			}
			outcomes = append(outcomes, o)
			critical[m.name] = o.Priorities["CRITICAL"]
			fmt.Fprintln(cli.Stdout, o)
			if o.Violations > 0 {
				broken = append(broken, seed)
			}
		}
		for _, m := range methods[1:] {
			if ours := critical[dispatcher]; ours.Late > 0 && ours.OnTime <= critical[m.name].OnTime {
				lost = append(lost, seed)
				break
			}
		}
	}
	fmt.Fprintln(cli.Stdout)
	for _, m := range compared {
		fmt.Fprintln(cli.Stdout, total(m.name, outcomes))
	}
	var errs []error
	if len(lost) > 0 {
		errs = append(errs, fmt.Errorf("the dispatcher does not lead on CRITICAL orders with seeds %v", lost))
	}
	if len(broken) > 0 {
		errs = append(errs, fmt.Errorf("invariants were violated with seeds %v", broken))
	}
	return errors.Join(append(errs, write(file, outcomes))...)
}

// real runs a method in the whole system.
func (c *command) real(ctx context.Context, m method, seed uint64) (outcome, error) {
	r, err := devrun.Run(ctx, devrun.Config{
		Duration: time.Duration(float64(c.Simulated) / c.Speed), Drones: c.Drones, Hz: 1, OrdersPerMinute: c.OrdersPerMinute,
		Speed: c.Speed, Seed: seed, SolveLimit: time.Second, Iterations: c.Iterations, Strategy: m.strategy,
		NoAdvance: !c.Position, Out: io.Discard, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	churn := 0
	for _, n := range r.MissionsFailed {
		churn += n
	}
	return outcome{
		Planner: m.name, Seed: seed, Priorities: r.Priorities, FlownKm: r.FlownKm, Delivered: r.Orders.Delivered,
		Missions: r.Decisions.Applied - r.Decisions.Amending, Churn: churn, Cycles: int(r.Cycles.Run), Violations: len(r.Invariants.Violations),
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
