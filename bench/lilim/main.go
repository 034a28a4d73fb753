// Command lilim runs the solver's engine on the Li & Lim benchmark and prints
// vehicles and distances against the best known.
//
//	go run ./bench/lilim --dir DIR [--instances GLOB] --time 8s --seed N [--json FILE]
//
// Every solution is replayed by a checker that shares no formula with the engine;
// an invalid one makes the command fail. Nothing imports this package.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/bench/measure"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/solver/lilim"
)

type flags struct {
	Dir        string        `required:"" help:"Folder of NAME.txt instances, with NAME.sol best-known solutions beside them."`
	Instances  string        `default:"*" help:"Glob of instance names, several separated by commas."`
	Time       time.Duration `default:"8s" help:"Wall time per instance." check:"over 0s"`
	Iterations int           `help:"Deterministic mode: steps per worker instead of a time limit." check:"min 0"`
	Seed       uint64        `default:"1" help:"First seed."`
	Seeds      int           `default:"1" help:"Number of seeds to run, from --seed upward." check:"min 1"`
	Workers    int           `default:"2" help:"Search goroutines." check:"min 1"`
	JSON       string        `name:"json" help:"Write one JSON row per instance and seed to this file."`
	Rows       []string      `help:"Instead of solving, check the rows of these files (written by this command or bench/peers) and print them, one column per file." type:"existingfile"`
	Quiet      bool          `help:"Print only the summary."`
	CPU        bool          `name:"cpu" help:"Count processor time divided by --workers instead of wall time, for busy machines."`
	Target     float64       `default:"1" help:"Print when each run came within this many percent of the best known distance, with no more vehicles." check:"min 0"`
}

// row is one solved instance. Its routes are task ids, so that anyone can check
// them.
type row struct {
	Instance     string  `json:"instance"`
	Seed         uint64  `json:"seed"`
	Vehicles     int     `json:"vehicles"`
	Distance     float64 `json:"distance"`
	BestVehicles int     `json:"bestVehicles"`
	BestDistance float64 `json:"bestDistance"`
	ElapsedMs    int64   `json:"elapsedMs"`
	// FleetMs and TargetMs are when the best known number of vehicles was reached
	// and when the distance came within the target; absent if never.
	FleetMs  *int64  `json:"fleetMs,omitempty"`
	Steps    int64   `json:"steps"`
	TargetMs *int64  `json:"targetMs,omitempty"`
	Routes   [][]int `json:"routes"`
	Error    string  `json:"error,omitempty"`
}

func main() {
	cli.Main(&flags{}, "Li & Lim pickup-and-delivery benchmark of the solver's engine.")
}

// Run runs the benchmark.
func (f *flags) Run(ctx context.Context) error { return run(ctx, *f) }

func run(ctx context.Context, f flags) error {
	if len(f.Rows) > 0 {
		return compare(f)
	}
	names, err := instances(f)
	if err != nil {
		return err
	}
	return measure.WriteRows("--json", f.JSON, func(write func(any) error) error {
		var all seeds
		for k := range uint64(f.Seeds) {
			var sum summary
			for _, path := range names {
				r, err := solve(ctx, path, f, f.Seed+k)
				if err = cmp.Or(ctx.Err(), err); err != nil {
					return err
				}
				sum.add(r, !f.Quiet)
				if err := write(r); err != nil {
					return err
				}
			}
			sum.print(f.Seed + k)
			all = append(all, sum)
		}
		all.print()
		return all.invalid()
	})
}

// load reads an instance.
func load(path, name string) (*lilim.Instance, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return lilim.Parse(name, file)
}

// check replays the routes and sets what they come to, or the rule they break.
func (r *row) check(in *lilim.Instance) {
	var err error
	if r.Vehicles, r.Distance, err = lilim.Check(in, r.Routes); err != nil {
		r.Error = err.Error()
	}
}

// instances lists the files that match.
func instances(f flags) ([]string, error) {
	var names []string
	for _, glob := range strings.Split(f.Instances, ",") {
		found, err := filepath.Glob(filepath.Join(f.Dir, glob+".txt"))
		if err != nil {
			return nil, fmt.Errorf("--instances %q: %w", glob, err)
		}
		names = append(names, found...)
	}
	sort.Strings(names)
	if len(names) == 0 {
		return nil, fmt.Errorf("--dir %s has no instance %s.txt; check --dir and --instances", f.Dir, f.Instances)
	}
	return names, nil
}

// solve runs one instance with one seed.
func solve(ctx context.Context, path string, f flags, seed uint64) (row, error) {
	name := strings.TrimSuffix(filepath.Base(path), ".txt")
	r := row{Instance: name, Seed: seed}
	in, err := load(path, name)
	if err != nil {
		return r, err
	}
	if err := r.readBest(in, strings.TrimSuffix(path, ".txt")+".sol"); err != nil {
		return r, err
	}
	o := lilim.Options{TimeLimit: f.Time, Iterations: f.Iterations, Seed: seed, Workers: f.Workers, Clock: time.Now}
	if f.CPU {
		o.Clock = measure.ProcessorClock(f.Workers)
	}
	o.Improved = func(elapsed time.Duration, vehicles int, distance float64) {
		at := elapsed.Milliseconds()
		if r.FleetMs == nil && vehicles <= r.BestVehicles {
			r.FleetMs = &at
		}
		if r.TargetMs == nil && (vehicles < r.BestVehicles || vehicles == r.BestVehicles && distance <= r.BestDistance*(1+f.Target/100)) {
			r.TargetMs = &at
		}
	}
	start := o.Clock()
	s, err := lilim.Solve(ctx, in, o)
	r.ElapsedMs, r.Steps = o.Clock().Sub(start).Milliseconds(), s.Steps
	if err != nil {
		r.Error = err.Error()
		return r, nil
	}
	r.Routes = s.Routes
	r.check(in)
	return r, nil
}

// readBest reads the best known from the published solution, if there is one.
func (r *row) readBest(in *lilim.Instance, path string) error {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	routes, err := lilim.ParseSolution(path, file)
	if err != nil {
		return err
	}
	if r.BestVehicles, r.BestDistance, err = lilim.Check(in, routes); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// summary adds up one seed.
type summary struct {
	rows, exact, violations int
	vehicles, bestVehicles  int
	gap, worst              float64
	compared                int
	slowest                 int64
}

// add counts a row and, if verbose, prints it.
func (s *summary) add(r row, verbose bool) {
	s.rows++
	s.vehicles += r.Vehicles
	s.bestVehicles += r.BestVehicles
	s.slowest = max(s.slowest, r.ElapsedMs)
	gap, mark := 0.0, ""
	switch {
	case r.Error != "":
		s.violations++
		mark = r.Error
	case r.BestVehicles == 0:
	default:
		gap = 100 * (r.Distance/r.BestDistance - 1)
		if r.Vehicles != r.BestVehicles {
			mark = fmt.Sprintf("%+d vehicles", r.Vehicles-r.BestVehicles)
		} else {
			s.gap += gap
			s.compared++
			s.worst = max(s.worst, gap)
			if gap < 0.001 {
				s.exact++
				mark = "="
			}
		}
	}
	if verbose {
		fmt.Fprintf(cli.Stdout, "%-10s seed %-3d %3d/%-3d %11.2f %11.2f %8.3f %% %6d ms, fleet at %s, target at %s, %d steps %s\n",
			r.Instance, r.Seed, r.Vehicles, r.BestVehicles, r.Distance, r.BestDistance, gap, r.ElapsedMs, when(r.FleetMs), when(r.TargetMs), r.Steps, mark)
	}
}

// when formats a time that may never have come.
func when(ms *int64) string {
	if ms == nil {
		return "-"
	}
	return fmt.Sprintf("%d ms", *ms)
}

func (s *summary) meanGap() float64 { return s.gap / float64(max(1, s.compared)) }

func (s *summary) print(seed uint64) {
	fmt.Fprintf(cli.Stdout, "seed %d: %d instances, vehicles %d (best known %d), exact %d, distance gap at equal vehicles mean %.4f %%, worst %.3f %%, violations %d, slowest %d ms\n",
		seed, s.rows, s.vehicles, s.bestVehicles, s.exact, s.meanGap(), s.worst, s.violations, s.slowest)
}

// seeds are the summaries of several seeds.
type seeds []summary

// invalid returns an error if the checker refused a solution or an instance has
// none.
func (all seeds) invalid() error {
	rows, violations := 0, 0
	for _, s := range all {
		rows, violations = rows+s.rows, violations+s.violations
	}
	if violations > 0 {
		return fmt.Errorf("%d of %d solutions are missing or break a rule; the rows name the rule", violations, rows)
	}
	return nil
}

func (all seeds) print() {
	if len(all) < 2 {
		return
	}
	vehicles, gap, most := 0, 0.0, all[0].meanGap()
	worst := all[0]
	for _, s := range all {
		vehicles += s.vehicles
		gap += s.meanGap()
		worst.vehicles = max(worst.vehicles, s.vehicles)
		most = max(most, s.meanGap())
		worst.exact = min(worst.exact, s.exact)
	}
	n := float64(len(all))
	fmt.Fprintf(cli.Stdout, "%d seeds: vehicles mean %.2f worst %d, distance gap mean %.4f %% worst %.4f %%, exact at least %d\n",
		len(all), float64(vehicles)/n, worst.vehicles, gap/n, most, worst.exact)
}
