package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/app/planview"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/terminal"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/solver"
)

// solveCommand plans a snapshot and publishes nothing.
type solveCommand struct {
	cli.Connection
	stopFlags
	In    string    `help:"Snapshot to plan: an OptimizationSnapshot as JSON or protobuf, - for standard input." xor:"source" placeholder:"FILE"`
	At    time.Time `help:"Plan what Firestore held at this time instead (RFC 3339): within the last hour or, with point-in-time recovery, at a whole minute of the last seven days." xor:"source" placeholder:"TIME"`
	Depot string    `help:"With --at: depot whose area to plan; default the only area." placeholder:"ID"`
	areaFlags
	amendFlags
	confidenceFlag
	Learn      bool          `help:"With --at: plan with the speeds, stays, delays and demand that were learned by now." default:"true" negatable:""`
	Immediate  bool          `help:"Use every free drone at once, instead of keeping some for CRITICAL orders to come as cycles do."`
	Out        string        `help:"Write the plan to this file, as JSON, - for standard output, instead of the table." placeholder:"FILE"`
	GeoJSON    string        `help:"Write routes and stops to this file, as GeoJSON for a map, - for standard output, instead of the table." name:"geojson" placeholder:"FILE"`
	SolveLimit time.Duration `help:"How long to search." default:"8s" check:"over 0s"`
	Strategy   string        `help:"How to plan: sisr, greedy or nearest." enum:"sisr,greedy,nearest" default:"sisr"`
	Seed       uint64        `help:"Seed of the search." default:"1"`
	Iterations int           `help:"Search for this many steps instead of a time, so that the same seed gives the same plan." check:"min 0"`
}

// Check implements config.Checker.
func (c *solveCommand) Check(r *config.Refuser) {
	switch {
	case c.In == "" && !r.Given("at"):
		r.Refuse("in", "is empty; give --in=FILE or --at=TIME")
	case c.In == "":
		c.CheckConnection(r)
		if c.At.Year() < 1970 {
			r.Refuse("at", "is before 1970; give %s", readableTimes)
		}
	}
	if c.In != "" && c.Depot != "" {
		r.Refuse("depot", "requires --at; a snapshot file has only one depot")
	}
	c.checkFiles(r.Refuse)
}

// Run solves and prints the plan.
func (c *solveCommand) Run(ctx context.Context) error {
	snap, estimates, err := c.snapshot(ctx)
	if err != nil {
		return err
	}
	// Report a file that cannot be written before the search, not after.
	out, err := cli.Create(c.Out)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	defer out.Close()
	geoJSON, err := cli.Create(c.GeoJSON)
	if err != nil {
		return fmt.Errorf("--geojson: %w", err)
	}
	defer geoJSON.Close()
	now := snap.ReadTime
	if now.IsZero() {
		now = snap.Time
	}
	if now.IsZero() {
		now = time.Now()
	}
	if now.Year() >= lastYear {
		return fmt.Errorf("%s: read_time: is %s, and its routes would end later than a time can be; give the time when the snapshot was read", c.In, now.Format(time.RFC3339))
	}
	if !c.Amend {
		snap.Flights = nil
	}
	cfg := dispatch.Config{
		SolveLimit: c.SolveLimit, Strategy: solver.Strategies[c.Strategy], Seed: c.Seed, Iterations: c.Iterations,
		Params: c.params(), NoAmendments: !c.Amend, NoAdvance: !c.Position, Limits: policy.Limits{TurnTime: c.TurnTime}, Immediate: c.Immediate,
	}.Planner()
	cfg.Learned, cfg.Options.Progress = estimates, progress
	cfg.Refused = func(_ solver.Problem, broken error) {
		tell("plan refused by the checker; a simpler plan replaces it: %s", broken)
	}
	result, err := planner.New(cfg, time.Now).PlanSnapshot(ctx, snap, now)
	if err != nil {
		return err
	}
	problem, plan := result.Problem, result.Plan
	if c.Out != "-" && c.GeoJSON != "-" {
		if err := planview.WriteText(cli.Stdout, problem, plan); err != nil {
			return err
		}
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	return errors.Join(
		finish("--out", out, encoder.Encode(plan)),
		finish("--geojson", geoJSON, planview.WriteGeoJSON(geoJSON, problem, plan)))
}

// lastYear is that of the latest times that JSON has.
const lastYear = 9999

// finish closes a written file and adds the flag to an error.
func finish(flag string, f *cli.File, err error) error {
	if err := cmp.Or(err, f.Close()); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// checkFiles refuses outputs that would overwrite each other or the snapshot.
func (c *solveCommand) checkFiles(refuse func(setting, format string, args ...any)) {
	in := c.In
	if in == "-" {
		in = "" // no file
	}
	switch {
	case c.Out == "-" && c.GeoJSON == "-":
		refuse("geojson", "is standard output, as --out is; name a file for one")
	case sameFile(c.Out, c.GeoJSON):
		refuse("geojson", "is the file of --out, %s; name another", c.Out)
	case sameFile(in, c.Out):
		refuse("out", "would overwrite the snapshot, %s; name another file", c.In)
	case sameFile(in, c.GeoJSON):
		refuse("geojson", "would overwrite the snapshot, %s; name another file", c.In)
	}
}

// sameFile reports whether two names are the same regular file, so that writing one would
// overwrite the other. Terminals and /dev/null do not count.
func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	first, errFirst := os.Stat(a)
	second, errSecond := os.Stat(b)
	if errFirst == nil && errSecond == nil {
		return first.Mode().IsRegular() && os.SameFile(first, second)
	}
	return errFirst != nil && errSecond != nil && resolved(a) == resolved(b)
}

// resolved is the canonical name of a file that does not exist yet.
func resolved(name string) string {
	if absolute, err := filepath.Abs(name); err == nil {
		name = absolute
	}
	if folder, err := filepath.EvalSymlinks(filepath.Dir(name)); err == nil {
		name = filepath.Join(folder, filepath.Base(name))
	}
	return name
}

func progress(p solver.Progress) {
	if p.Elapsed > time.Second {
		tell("  %s: %d unserved, %.1f km", p.Elapsed.Round(time.Second), p.Objective.UnservedTotal(), p.Objective.DistanceKm)
	}
}

// snapshot reads the snapshot from the file or from Firestore, which also has what was
// learned.
func (c *solveCommand) snapshot(ctx context.Context) (snap domain.Snapshot, estimates learning.Estimates, err error) {
	if c.In != "" {
		snap, err = c.snapshotFromFile(ctx)
		return snap, estimates, err
	}
	clients, clock, err := c.Open(ctx)
	if err != nil {
		return snap, estimates, err
	}
	defer clients.Close()
	store := firestoretx.New(clients.Firestore, firestoretx.Config{Now: clock.Now, PlanUnregistered: c.planUnregistered()})
	if snap, err = c.snapshotFromFirestore(ctx, store, clock.Now()); err != nil || !c.Learn {
		return snap, estimates, err
	}
	learned, malformed, err := store.Learned(ctx)
	if err != nil {
		return snap, estimates, err
	}
	for _, what := range malformed {
		leftOut(what)
	}
	return snap, learning.Estimate(learned, planner.Assumed(c.params()), c.Confidence), nil
}

// maxSnapshot is far more than the largest area takes.
const maxSnapshot = 256 << 20

// snapshotFromFile reads a snapshot and prints what is wrong with it. The solver then
// leaves out what cannot be planned, with its reason.
func (c *solveCommand) snapshotFromFile(ctx context.Context) (domain.Snapshot, error) {
	data, err := cli.ReadFile(ctx, c.In, maxSnapshot)
	if err != nil {
		return domain.Snapshot{}, fmt.Errorf("--in: %w", err)
	}
	snap, err := wire.DecodeSnapshot(data)
	var invalid *wire.ValidationError
	// Empty input, and any foreign JSON, decodes as a message without fields.
	if errors.As(err, &invalid) && snap.Depot.ID == "" && len(snap.Drones) == 0 && len(snap.Orders) == 0 {
		return snap, fmt.Errorf("--in: %s is not a snapshot: it has neither depot nor drones nor orders; give an OptimizationSnapshot, as GET /api/v1/optimizer/snapshot returns it", c.In)
	}
	if errors.As(err, &invalid) {
		for _, p := range invalid.Problems {
			tell("%s: %s %s", c.In, p.Field, p.Complaint)
		}
		err = nil
	}
	if err != nil {
		return snap, fmt.Errorf("%s: %w", c.In, err)
	}
	snap.Drones = slices.DeleteFunc(snap.Drones, func(d domain.Drone) bool {
		return d.Status != "" && d.Status != domain.DroneIdle
	})
	snap.Orders = slices.DeleteFunc(snap.Orders, func(o domain.Order) bool {
		return o.Status != "" && o.Status != domain.OrderPending
	})
	return snap, nil
}

func (c *solveCommand) snapshotFromFirestore(ctx context.Context, store *firestoretx.Store, now time.Time) (domain.Snapshot, error) {
	depot := domain.DepotID(c.Depot)
	if depot == "" {
		depots, err := store.Depots(ctx)
		if err != nil {
			return domain.Snapshot{}, err
		}
		malformed := errors.Join(depots.Malformed...)
		switch n := len(depots.Items); {
		case n == 0 && malformed != nil:
			return domain.Snapshot{}, malformed
		case n == 0:
			return domain.Snapshot{}, errors.New("the store has no depots; add one with \"statemanager depots apply\"")
		case len(policy.AreasOf(depots.Items, c.AreaRadius)) > 1:
			return domain.Snapshot{}, fmt.Errorf("the store has %d depots; name one with --depot", n)
		}
		if malformed != nil {
			leftOut(malformed)
		}
		depot = depots.Items[0].ID
	}
	at := readable(c.At, now)
	if !at.Equal(c.At) {
		tell("only whole minutes can be read beyond the last hour; planning %s", at.Format(time.RFC3339))
	}
	snap, err := store.Snapshot(ctx, firestoretx.SnapshotRequest{Depot: depot, AreaRadius: c.AreaRadius, At: at,
		Flights: c.Amend, OnMalformed: leftOut})
	return snap, unreadable(err, depot, at)
}

const readableTimes = "a time within the last hour, or within seven days with point-in-time recovery, and not before the database was created"

// unreadable says what to give instead of a time that Firestore cannot read, or at which
// the depot did not exist.
func unreadable(err error, depot domain.DepotID, at time.Time) error {
	switch code := status.Code(err); {
	case errors.Is(err, firestoretx.ErrNotFound):
		return fmt.Errorf("--at: the store has no depot %s at %s; give a later time, or another --depot", depot, at.Format(time.RFC3339Nano))
	case code == codes.FailedPrecondition, code == codes.InvalidArgument: // too old, or in the future
		return fmt.Errorf("--at: Firestore cannot read %s; give %s: %w", at.Format(time.RFC3339Nano), readableTimes, err)
	}
	return err
}

func leftOut(err error) { tell("left out: %s", err) }

// tell writes to standard error, because standard output is for the plan.
func tell(format string, args ...any) {
	fmt.Fprintln(os.Stderr, terminal.Escape(fmt.Sprintf(format, args...), '\n'))
}

// readable returns the latest time up to at that Firestore can read: any microsecond of the
// last hour, and whole minutes of the seven days of point-in-time recovery. It uses 59
// minutes because the request takes time. https://cloud.google.com/firestore/docs/use-pitr
func readable(at, now time.Time) time.Time {
	if now.Sub(at) > 59*time.Minute {
		return at.Truncate(time.Minute)
	}
	return at
}
