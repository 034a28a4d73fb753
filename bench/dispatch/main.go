// Command dispatch runs the solver on generated dispatch problems and prints what
// it leaves out, how far the drones fly and how long it takes.
//
//	go run ./bench/dispatch [--drones 100 --orders 500] --instances 10 --time 8s --seed N [--json FILE]
//
// Every plan passes solver/check; an invalid one makes the command fail. Nothing
// imports this package.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/bench/dispatch/scenario"
	"github.com/dronefleet/dronefleet/bench/measure"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/check"
)

type flags struct {
	Drones     int           `default:"100" help:"Drones per instance." check:"min 1"`
	Orders     int           `default:"500" help:"Orders per instance." check:"min 1"`
	Cities     int           `default:"0" help:"Towns per instance; 0 draws the number." check:"min 0"`
	Geography  string        `default:"" enum:",accra,berlin,towns,uniform" help:"Geography: uniform is one wide area with many depots; accra and berlin are the hospitals of one city, for one town; towns, for one town too, is synthetic. By default that of one town is drawn from the seed."`
	Instances  int           `default:"5" help:"Instances, seeded 1, 2, ... from --first." check:"min 1"`
	First      uint64        `default:"1" help:"Seed of the first instance."`
	Time       time.Duration `default:"8s" help:"Time limit per instance." check:"over 0s"`
	Iterations int           `help:"Deterministic mode: steps per worker instead of a time limit." check:"min 0"`
	Long       time.Duration `help:"Also run for this long and print the gap to that run; instances of up to 20 orders run 200 000 steps instead." check:"min 0s"`
	Seed       uint64        `default:"1" help:"First seed of the search."`
	Seeds      int           `default:"1" help:"Number of search seeds." check:"min 1"`
	Workers    int           `default:"2" help:"Search goroutines." check:"min 1"`
	Reference  bool          `help:"Minimise the reference optimizer's scalar instead."`
	Rivals     []string      `help:"Rows of other solvers for the same instances (written by this command or bench/peers): check their routes and print what they miss and how far they fly; without routes, print when each run passes theirs on the reference scalar, and by how much it is better in the end." type:"existingfile"`
	SameOrders bool          `name:"same-orders" help:"With one file of --rivals that has routes: serve exactly the orders that it serves, to compare distances."`
	Strategy   string        `default:"sisr" enum:"sisr,greedy,nearest" help:"How to plan: ${enum}."`
	JSON       string        `name:"json" help:"Write one JSON row per run to this file."`
	Dump       string        `help:"Write the instances as JSON into this folder and stop."`
	Quiet      bool          `help:"Print only the summary."`
	CPU        bool          `name:"cpu" help:"Count processor time divided by --workers instead of wall time, for busy machines."`
}

// row is one run.
type row struct {
	problem
	Seed      uint64           `json:"seed"`
	Objective solver.Objective `json:"objective"`
	Scalar    float64          `json:"referenceScalar"`
	FirstMs   float64          `json:"firstPlanMs"`
	ElapsedMs float64          `json:"elapsedMs"`
	Steps     int64            `json:"iterations"`
	Violation string           `json:"violation,omitempty"`
	Plan      *solver.Plan     `json:"plan,omitempty"`

	progress []solver.Progress
}

func main() {
	cli.Main(&flags{}, "Dispatch benchmark on generated problems.")
}

// Run runs the benchmark.
func (f *flags) Run(ctx context.Context) error { return run(ctx, *f) }

func run(ctx context.Context, f flags) error {
	if f.Dump != "" {
		return dump(ctx, f)
	}
	rivals, err := readRivals(f.Rivals)
	if err != nil {
		return err
	}
	return measure.WriteRows("--json", f.JSON, func(write func(any) error) error {
		sum := summary{rivals: rivals}
		for k := range uint64(f.Instances) {
			i := f.First + k
			p := scenario.Generate(f.params(i))
			if f.SameOrders {
				if p, err = sameOrders(p, rivals, f.problem(i)); err != nil {
					return err
				}
			}
			var best *row
			if f.Long > 0 {
				long := f
				if f.Orders <= 20 {
					long.Iterations = 200_000
				}
				r := solve(ctx, long, p, i, f.Seed+1000, f.Long)
				best = &r
			}
			for k := range uint64(f.Seeds) {
				r := solve(ctx, f, p, i, f.Seed+k, f.Time)
				if err := ctx.Err(); err != nil {
					return err
				}
				sum.add(r, p, best, !f.Quiet)
				if err := write(r); err != nil {
					return err
				}
			}
		}
		sum.print()
		return sum.invalid()
	})
}

// params returns the parameters of an instance.
func (f flags) params(i uint64) scenario.Params {
	return scenario.Params{Drones: f.Drones, Orders: f.Orders, Cities: f.Cities, Geography: f.Geography, Seed: i}
}

// problem names an instance.
func (f flags) problem(i uint64) problem {
	return problem{Instance: i, Drones: f.Drones, Orders: f.Orders, Geography: f.Geography}
}

// dump writes the instances for other solvers.
func dump(ctx context.Context, f flags) error {
	if err := os.MkdirAll(f.Dump, 0o755); err != nil {
		return err
	}
	for k := range uint64(f.Instances) {
		i := f.First + k
		if err := ctx.Err(); err != nil {
			return err
		}
		data, err := json.MarshalIndent(scenario.Generate(f.params(i)), "", " ")
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%dx%d-%03d.json", f.Drones, f.Orders, i)
		if f.Geography != "" {
			name = fmt.Sprintf("%dx%d-%s-%03d.json", f.Drones, f.Orders, f.Geography, i)
		}
		if err := cli.WriteFile(filepath.Join(f.Dump, name), data); err != nil {
			return err
		}
	}
	return nil
}

// solve runs one problem with one seed and checks the plan.
func solve(ctx context.Context, f flags, p solver.Problem, instance, seed uint64, limit time.Duration) row {
	o := solver.Options{TimeLimit: limit, Seed: seed, Workers: f.Workers, Iterations: f.Iterations, Strategy: solver.Strategies[f.Strategy]}
	if f.Reference {
		o.Goal = solver.ReferenceScalar
	}
	o.Clock = time.Now
	if f.CPU {
		o.Clock = measure.ProcessorClock(f.Workers)
	}
	var progress []solver.Progress
	o.Progress = func(p solver.Progress) { progress = append(progress, p) }
	start := o.Clock()
	plan, err := solver.Solve(ctx, p, o)
	elapsed := o.Clock().Sub(start)
	r := row{problem: f.problem(instance), Seed: seed, Objective: plan.Objective,
		Scalar: plan.Objective.ReferenceScalar(), FirstMs: ms(plan.Stats.FirstPlan), ElapsedMs: ms(elapsed),
		Steps: plan.Stats.Iterations, Plan: &plan, progress: progress}
	if err != nil {
		r.Violation = err.Error()
	}
	if err := check.Plan(p, plan); err != nil {
		r.Violation = err.Error()
	}
	return r
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// summary collects runs.
type summary struct {
	rows         []row
	rivals       []*rival
	same, behind int
	gaps         []float64
}

// add counts a run, compares it with the long run, if any, and the rivals, and
// prints it if verbose.
func (s *summary) add(r row, p solver.Problem, best *row, verbose bool) {
	s.rows = append(s.rows, r)
	note := r.Violation
	if best != nil {
		a, b := r.Objective, best.Objective
		switch {
		case a.MissedByRank == b.MissedByRank && a.Unserved == b.Unserved:
			s.same++
			gap := 100 * (a.DistanceKm/max(b.DistanceKm, 1e-9) - 1)
			s.gaps = append(s.gaps, gap)
			note += fmt.Sprintf(" long %.2f km, gap %+.3f %%", b.DistanceKm, gap)
		case b.Less(a):
			s.behind++
			note += fmt.Sprintf(" long missed %v unserved %v", b.MissedByRank, b.Unserved)
		default:
			note += fmt.Sprintf(" better than long, missed %v unserved %v", b.MissedByRank, b.Unserved)
		}
	}
	for _, rival := range s.rivals {
		note += rival.meet(r, p)
	}
	if verbose {
		o := r.Objective
		fmt.Fprintf(cli.Stdout, "instance %-3d seed %-3d missed %v unserved %v late %v %10.3f km longest %6.2f first %7.1f ms total %8.1f ms %9d steps %s\n",
			r.Instance, r.Seed, o.MissedByRank, o.Unserved, o.Late, o.DistanceKm, o.LongestKm, r.FirstMs, r.ElapsedMs, r.Steps, note)
	}
}

func (s *summary) print() {
	km, scalar := 0.0, 0.0
	var missed [len(solver.Objective{}.MissedByRank)]int
	var elapsed, first []float64
	for _, r := range s.rows {
		km += r.Objective.DistanceKm
		scalar += r.Scalar
		for k, n := range r.Objective.MissedByRank {
			missed[k] += n
		}
		elapsed, first = append(elapsed, r.ElapsedMs), append(first, r.FirstMs)
	}
	fmt.Fprintf(cli.Stdout, "%d runs: missed %v, %.3f km, reference scalar %.0f, first plan p50 %.1f max %.1f ms, total p50 %.1f p99 %.1f max %.1f ms, violations %d\n",
		len(s.rows), missed, km, scalar, quantile(first, 0.5), quantile(first, 1),
		quantile(elapsed, 0.5), quantile(elapsed, 0.99), quantile(elapsed, 1), s.violations())
	if s.same+s.behind > 0 {
		fmt.Fprintf(cli.Stdout, "against the long run: same missed and unserved %d, worse %d; distance gap mean %.3f %%, worst %.3f %%\n",
			s.same, s.behind, mean(s.gaps), quantile(s.gaps, 1))
	}
	for _, rival := range s.rivals {
		rival.print()
	}
}

func (s *summary) violations() (n int) {
	for _, rival := range s.rivals {
		n += rival.violations
	}
	for _, r := range s.rows {
		if r.Violation != "" {
			n++
		}
	}
	return n
}

// invalid returns an error if the checker refused a plan.
func (s *summary) invalid() error {
	if n := s.violations(); n > 0 {
		return fmt.Errorf("%d plans break a rule; the rows name the rule", n)
	}
	return nil
}

// quantile returns the value below which a share q of the values are; 0 if there
// are none.
func quantile(x []float64, q float64) float64 {
	if len(x) == 0 {
		return 0
	}
	x = slices.Clone(x)
	slices.SortFunc(x, cmp.Compare[float64])
	return x[min(len(x)-1, int(q*float64(len(x))))]
}

func mean(x []float64) float64 {
	total := 0.0
	for _, v := range x {
		total += v
	}
	return total / float64(max(1, len(x)))
}
