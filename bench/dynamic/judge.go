package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/plannersim"
	"github.com/dronefleet/dronefleet/solver"
)

// judgeFlags are the flags of judged runs.
type judgeFlags struct {
	Set           string        `help:"Judge the planner beside its rivals on the cities and seeds of this set: tuning or judging. Planning rules must never be tuned on the judging set." enum:",tuning,judging" default:""`
	Cities        []string      `help:"With --set: only these cities of the set." placeholder:"NAME,..."`
	Runs          int           `help:"With --set: seeds for each city and load." default:"10" check:"min 1 max 100000"`
	Load          []float64     `help:"With --set: loads in turn, as shares of the city's capacity, instead of --orders-per-minute. The capacity is measured first: what the fleet delivers a minute when orders never run out." placeholder:"SHARE,..."`
	Judged        string        `help:"With --set: what is compared with the others: planner, or idle only, which never changes missions under way." enum:"planner,idle only" default:"planner"`
	Rivals        []string      `help:"With --set: only these rivals." placeholder:"NAME,..."`
	Shock         int           `help:"With --set: a mass casualty after an hour, of about this many orders from one hospital within five minutes." default:"0" check:"min 0 max 10000"`
	Failures      float64       `help:"With --set: drones of the fleet that fall out, for each hour." default:"0" check:"min 0 max 3600"`
	FailedFor     time.Duration `help:"With --failures: how long a drone is out of order; 0 means for good." default:"0s" check:"min 0s"`
	Slots         int           `help:"With --set: how many drones can charge at once at each depot; 0 means all." default:"0" check:"min 0 max 100000"`
	Pace          float64       `help:"With --set: how fast drones fly, as a share of the speed that plans assume. The rival learned is a planner that knows it." default:"1" check:"over 0 max 2"`
	PositionError float64       `help:"With --set: how many metres a drone may be from where cycles foretell it, as the flag of statemanager serve; 0 shows them every report." default:"0" check:"min 0 max 1000"`
	BoundSteps    int           `help:"With --set: steps of the clairvoyant search." default:"3000" check:"min 1"`
	Parallel      int           `help:"With --set: runs at a time; 0 means one for each core. It does not change the result." default:"0" check:"min 0 max 1000"`
	Format        string        `help:"With --set: ${enum}. CSV has one row for each run." enum:"text,csv,json" default:"text"`
}

// check refuses what judged runs cannot use.
func (f *judgeFlags) check(r *config.Refuser) {
	for _, load := range f.Load {
		if !(load > 0 && load <= 100) {
			r.Refuse("load", "has %v; give shares of the capacity above 0, such as 0.5,1,2", load)
		}
	}
	for _, name := range f.Rivals {
		if !slices.ContainsFunc(rivals, func(v rival) bool { return v.name == name }) {
			r.Refuse("rivals", "has %q; there are %s", name, strings.Join(rivalNames(), ", "))
		}
	}
	if f.Set == "" {
		if len(f.Load)+len(f.Cities)+len(f.Rivals) > 0 {
			r.Refuse("set", "is missing; --load, --cities and --rivals need --set tuning or --set judging")
		}
		return
	}
	if _, err := runSets[f.Set].choose(f.Cities); err != nil {
		r.Refuse("cities", "%v", err)
	}
}

func rivalNames() (names []string) {
	for _, v := range rivals {
		names = append(names, v.name)
	}
	return names
}

// chosenRivals lists the rivals to run, the judged one among them.
func (f *judgeFlags) chosenRivals() (list []rival) {
	for _, v := range rivals {
		if v.name == learnedName && f.Pace == 1 {
			continue // it is the planner
		}
		if len(f.Rivals) == 0 || v.name == f.Judged || slices.Contains(f.Rivals, v.name) {
			list = append(list, v)
		}
	}
	return list
}

// drain is how long a judged run goes on after the last order, so that every order is
// delivered or late in the end.
const drain = time.Hour

// A shock begins after shockAt and lasts shockLasts.
const (
	shockAt    = time.Hour
	shockLasts = 5 * time.Minute
)

// cell is one city at one load.
type cell struct {
	city      city
	load      float64 // share of the capacity; 0 if not measured
	perMinute float64
}

func (c cell) String() string {
	if c.load == 0 {
		return fmt.Sprintf("%s, %.3g orders/min", c.city.name, c.perMinute)
	}
	return fmt.Sprintf("%s, load %g = %.3g orders/min", c.city.name, c.load, c.perMinute)
}

// judgedRun is how one rival served one day.
type judgedRun struct {
	City      string  `json:"city"`
	Load      float64 `json:"load,omitempty"`
	PerMinute float64 `json:"ordersPerMinute"`
	Seed      uint64  `json:"seed"`
	Rival     string  `json:"rival"`
	Created   [3]int  `json:"created"` // CRITICAL, HIGH, STANDARD
	OnTime    [3]int  `json:"onTime"`
	Delivered int     `json:"delivered"`
	Held      int     `json:"held"`
	FlownKm   float64 `json:"flownKm"`
}

// byUrgency is the order of a judgedRun's figures.
var byUrgency = [3]domain.Priority{domain.PriorityCritical, domain.PriorityHigh, domain.PriorityStandard}

// share is the percentage of the created orders of a priority that were in time; 100 if
// there were none.
func (r judgedRun) share(k int) float64 {
	if r.Created[k] == 0 {
		return 100
	}
	return 100 * float64(r.OnTime[k]) / float64(r.Created[k])
}

// judge runs every rival on the same days and compares them.
func (c *command) judge(ctx context.Context) error {
	cells, err := c.cells(ctx)
	if err != nil {
		return err
	}
	runs, err := c.judgeAll(ctx, cells)
	if err != nil {
		return err
	}
	switch c.Format {
	case "csv":
		return writeRuns(cli.Stdout, runs)
	case "json":
		encoder := json.NewEncoder(cli.Stdout)
		encoder.SetIndent("", " ")
		return encoder.Encode(map[string]any{"runs": runs, "comparisons": c.comparisons(cells, runs)})
	}
	c.printJudgement(cells, runs)
	return nil
}

// progressLines is how many lines the progress of judged runs takes at most.
const progressLines = 20

// judgeAll runs every rival in every cell with every seed. It lists the runs by cell, seed
// and rival.
func (c *command) judgeAll(ctx context.Context, cells []cell) ([]judgedRun, error) {
	chosen, first := c.chosenRivals(), runSets[c.Set].firstSeed
	runs := make([]judgedRun, len(cells)*c.Runs*len(chosen))
	var done atomic.Int64
	err := c.inParallel(ctx, len(runs), func(ctx context.Context, i int) error {
		day, v := i/len(chosen), chosen[i%len(chosen)]
		in, seed := cells[day/c.Runs], first+uint64(day%c.Runs)
		var err error
		if runs[i], err = c.judgeOne(ctx, in, seed, v); err != nil {
			return fmt.Errorf("%s, %s, seed %d: %w", v.name, in, seed, err)
		}
		if n := int(done.Add(1)); n*progressLines/len(runs) > (n-1)*progressLines/len(runs) {
			fmt.Fprintf(os.Stderr, "%d of %d runs\n", n, len(runs))
		}
		return nil
	})
	return runs, err
}

// inParallel runs some number of tasks, several at a time.
func (c *command) inParallel(ctx context.Context, tasks int, run func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.Parallel)
	if c.Parallel == 0 {
		group.SetLimit(runtime.NumCPU())
	}
	for i := range tasks {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return run(ctx, i)
		})
	}
	return group.Wait()
}

// day is the scenario that all rivals of a cell serve with a seed.
func (c *command) day(in cell, seed uint64) plannersim.Scenario {
	s := plannersim.Scenario{
		Duration: c.Simulated + drain, Quiet: drain, Drones: c.Drones, PerMinute: in.perMinute, Burst: c.Burst, Away: c.Away, Seed: seed,
		World: in.city.world, AreaRadius: in.city.areaRadius, Pace: c.Pace, Slots: c.Slots, Failures: plannersim.Failures{PerHour: c.judgeFlags.Failures, Lasts: c.FailedFor},
	}
	if c.PositionError > 0 {
		s.Foretelling = policy.DefaultForetelling()
		s.Foretelling.ErrorMetres = c.PositionError
	}
	if c.Shock > 0 {
		s.Shocks = []plannersim.Shock{{At: shockAt, Lasts: shockLasts, Orders: c.Shock}}
	}
	return s
}

func (c *command) judgeOne(ctx context.Context, in cell, seed uint64, v rival) (judgedRun, error) {
	day := c.day(in, seed)
	day.CriticalOnly, day.Amend, day.Standby = v.criticalOnly, v.amends, v.advance
	r, err := v.run(ctx, day, effort{c.Iterations, c.BoundSteps, seed})
	row := judgedRun{
		City: in.city.name, Load: in.load, PerMinute: in.perMinute, Seed: seed, Rival: v.name,
		Delivered: r.Delivered, Held: r.Held, FlownKm: r.FlownKm,
	}
	for k, p := range byUrgency {
		row.Created[k], row.OnTime[k] = r.Priorities[p].Created, r.Priorities[p].OnTime
	}
	return row, errors.Join(err, ctx.Err())
}

// cells lists what to run. For loads it measures each city's capacity.
func (c *command) cells(ctx context.Context) ([]cell, error) {
	cities, err := runSets[c.Set].choose(c.Cities)
	if err != nil {
		return nil, err
	}
	var list []cell
	for _, town := range cities {
		if len(c.Load) == 0 {
			list = append(list, cell{city: town, perMinute: c.OrdersPerMinute})
			continue
		}
		capacity, err := c.capacity(ctx, town)
		if err != nil {
			return nil, fmt.Errorf("capacity of %s: %w", town.name, err)
		}
		for _, load := range c.Load {
			list = append(list, cell{town, load, load * capacity})
		}
	}
	return list, nil
}

// The capacity of a city is measured with saturation orders a minute for each drone, over
// the second half of saturated.
const (
	saturation = 0.5
	saturated  = time.Hour
	// capacitySeed is of no set.
	capacitySeed = 0
)

// capacity is how many orders a minute the fleet delivers when orders never run out, with
// the search that plans all it can.
func (c *command) capacity(ctx context.Context, town city) (float64, error) {
	delivered := [2]int{}
	err := c.inParallel(ctx, 2, func(ctx context.Context, i int) error {
		day := c.day(cell{city: town, perMinute: saturation * float64(c.Drones)}, capacitySeed)
		day.Duration, day.Quiet, day.Shocks, day.Failures = saturated/time.Duration(i+1), 0, nil, plannersim.Failures{}
		day.Foretelling = policy.Foretelling{} // the same orders, however positions are written
		cfg := planner.Config{Options: solver.Options{Iterations: c.Iterations}, Params: service, Immediate: true}
		r, err := plannersim.Run(ctx, day, func() *planner.Planner { return planner.New(cfg, time.Now) })
		delivered[i] = r.Delivered
		return err
	})
	capacity := float64(delivered[0]-delivered[1]) / (saturated / 2).Minutes()
	fmt.Fprintf(os.Stderr, "%s: %d drones deliver %.1f orders a minute when saturated\n", town.name, c.Drones, capacity)
	if err == nil && capacity <= 0 {
		err = errors.New("the saturated fleet delivers nothing; give more --drones")
	}
	return capacity, err
}

// comparison is what is judged beside one rival in one cell, or in all.
type comparison struct {
	Cell   string     `json:"cell"`
	Rival  string     `json:"rival"`
	OnTime [3]float64 `json:"onTimePercent"` // of the rival: CRITICAL, HIGH, STANDARD; mean of the runs
	Ours   [3]paired  `json:"judgedMinusRival"`
	// Ratio is the judged one's CRITICAL orders in time as a percentage of the
	// rival's.
	Ratio       float64 `json:"criticalPercentOfRival"`
	KmPerOnTime float64 `json:"kmPerOrderOnTime"`
	// criticalOnly is that of the rival.
	criticalOnly bool
}

const allCells = "all"

// comparisons compares within every cell and, if there are several, over all.
func (c *command) comparisons(cells []cell, runs []judgedRun) (list []comparison) {
	size := len(runs) / len(cells)
	for i, in := range cells {
		list = append(list, c.compareRivals(in.String(), runs[i*size:(i+1)*size])...)
	}
	if len(cells) > 1 {
		list = append(list, c.compareRivals(allCells, runs)...)
	}
	return list
}

func (c *command) compareRivals(name string, runs []judgedRun) (list []comparison) {
	of := func(rival string) (mine []judgedRun) {
		for _, r := range runs {
			if r.Rival == rival {
				mine = append(mine, r)
			}
		}
		return mine
	}
	ours := of(c.Judged)
	for _, v := range c.chosenRivals() {
		theirs := of(v.name)
		cmp := comparison{Cell: name, Rival: v.name, criticalOnly: v.criticalOnly}
		km, onTime := 0.0, [2]int{}
		for k := range byUrgency {
			a, b := make([]float64, len(ours)), make([]float64, len(ours))
			for i := range ours {
				a[i], b[i] = ours[i].share(k), theirs[i].share(k)
				cmp.OnTime[k] += b[i] / float64(len(ours))
			}
			cmp.Ours[k] = compare(a, b)
		}
		all := 0
		for i, r := range theirs {
			km += r.FlownKm
			all += r.OnTime[0] + r.OnTime[1] + r.OnTime[2]
			onTime[0], onTime[1] = onTime[0]+ours[i].OnTime[0], onTime[1]+r.OnTime[0]
		}
		cmp.Ratio = 100 * float64(onTime[0]) / float64(max(1, onTime[1]))
		cmp.KmPerOnTime = km / float64(max(1, all))
		list = append(list, cmp)
	}
	return list
}

func (c *command) printJudgement(cells []cell, runs []judgedRun) {
	out := cli.Stdout
	fmt.Fprintf(out, "%s set: %s of orders, then %s without any, %d drones, %d seeds from %d\n", c.Set, c.Simulated, drain, c.Drones, c.Runs, runSets[c.Set].firstSeed)
	if c.Shock > 0 {
		fmt.Fprintf(out, "a shock of %d orders from one hospital in %s after %s\n", c.Shock, shockLasts, shockAt)
	}
	if c.judgeFlags.Failures > 0 {
		lasting := "for good"
		if c.FailedFor > 0 {
			lasting = "for " + c.FailedFor.String()
		}
		fmt.Fprintf(out, "%g drones an hour fall out %s\n", c.judgeFlags.Failures, lasting)
	}
	fmt.Fprintf(out, "Columns by priority: orders in time, in percent, mean of the runs; then %s minus the rival, in points: mean, half of its 95 %% interval (Student), wins-losses.\n", c.Judged)
	fmt.Fprintf(out, "of rival: how many CRITICAL orders %s delivers in time, in percent of what the rival does. The clairvoyant search takes at most %d steps; it is not a proven bound.\n", c.Judged, c.BoundSteps)
	last := ""
	for _, r := range c.comparisons(cells, runs) {
		if r.Cell != last {
			fmt.Fprintf(out, "\n%s\n%-16s %28s %28s %28s %9s %8s\n", r.Cell, "", "CRITICAL", "HIGH", "STANDARD", "of rival", "km/order")
			last = r.Cell
		}
		fmt.Fprintf(out, "%-16s", r.Rival)
		for k := range byUrgency {
			text := fmt.Sprintf("%5.1f", r.OnTime[k])
			if r.Rival != c.Judged {
				text += fmt.Sprintf(" %21s", r.Ours[k])
			}
			if r.criticalOnly && k > 0 {
				text = "" // it has none
			}
			fmt.Fprintf(out, " %-28s", text)
		}
		fmt.Fprintf(out, " %7.1f %% %8.1f\n", r.Ratio, r.KmPerOnTime)
	}
}

// writeRuns writes one row for each run.
func writeRuns(out io.Writer, runs []judgedRun) error {
	w := csv.NewWriter(out)
	if err := w.Write([]string{
		"city", "load", "orders_per_minute", "seed", "rival", "critical_created", "high_created", "standard_created",
		"critical_on_time", "high_on_time", "standard_on_time", "delivered", "held", "flown_km",
	}); err != nil {
		return err
	}
	decimal := func(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }
	for _, r := range runs {
		row := []string{r.City, decimal(r.Load), decimal(r.PerMinute), strconv.FormatUint(r.Seed, 10), r.Rival}
		for _, n := range slices.Concat(r.Created[:], r.OnTime[:], []int{r.Delivered, r.Held}) {
			row = append(row, strconv.Itoa(n))
		}
		if err := w.Write(append(row, decimal(r.FlownKm))); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
