package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/placefile"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/input"
	"github.com/dronefleet/dronefleet/sim/devrun"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

type fleetCommand struct {
	cli.Connection
	cli.Logging
	TestProject     string        `help:"On Google Cloud: repeat the id of --project to confirm that it is for tests only. Simulated drones take real orders there, and what they do stays in its Firestore." placeholder:"ID"`
	Name            string        `help:"Prefix of the drones' ids. Fleets that run at the same time need different names; a name that is used again continues with its drones where they were. Default a new name." placeholder:"NAME"`
	Places          string        `help:"First apply the depots and warehouses of this file, as \"statemanager depots apply\" does." placeholder:"FILE"`
	Duration        time.Duration `help:"Leave after this long, in real time; 0 stays until interrupted." default:"0" check:"min 0s"`
	LeaveWithin     time.Duration `help:"How long missions may continue when leaving, in the fleet's time; then they are recalled and may take as long again." default:"10m" check:"min 0s max 24h"`
	Drones          int           `help:"Number of simulated drones." default:"20" check:"min 1 max 100000"`
	Hospitals       int           `help:"Most hospitals to use; 0 for all in reach of the depots." default:"0" check:"min 0 max 100000"`
	Hz              float64       `help:"Reports per drone and second of the fleet's time." default:"1" check:"over 0 max 100"`
	OrdersPerMinute float64       `help:"Mean rate of new orders, in the fleet's time." default:"3" check:"min 0 max 60000"`
	CriticalPercent int           `help:"Share of CRITICAL orders." default:"10" check:"min 0 max 100"`
	HighPercent     int           `help:"Share of HIGH orders." default:"30" check:"min 0 max 100"`
	Seed            uint64        `help:"Seed of the drones and orders." default:"1"`
	MessageLoss     float64       `help:"Share of reports and commands that never arrive." default:"0" check:"min 0 max 1"`
	Duplicate       float64       `help:"Share of messages that arrive twice." default:"0" check:"min 0 max 1"`
	Reorder         float64       `help:"Share of messages that later ones overtake." default:"0" check:"min 0 max 1"`
	CrashesPerHour  float64       `help:"Mean rate at which a random drone falls silent and deaf for 150 s, in the fleet's time." default:"0" check:"min 0 max 100000"`
	ClockSkew       time.Duration `help:"Largest error of a drone's clock, either way." default:"0" check:"min 0s max 1h"`
	Invariants      bool          `help:"At the end, read the whole fleet's documents and check the invariants of these drones and orders." default:"true" negatable:""`
	Report          string        `help:"Also write the summary to this file, as JSON." placeholder:"FILE" type:"path"`
}

// maxFleetName leaves room for the number of a drone and the parts of other ids.
const maxFleetName = 40

// Check implements config.Checker.
func (c *fleetCommand) Check(r *config.Refuser) {
	c.CheckConnection(r)
	emulated := c.FirestoreHost != "" && c.PubsubHost != ""
	if !emulated && c.TestProject != c.Project {
		r.Refuse("test-project", "is %q and the project %q: simulated drones would take real orders there, and what they do stays in its Firestore; "+
			"if this project is for tests only, repeat its id in --test-project, or set %s and %s to use emulators", c.TestProject, c.Project, connect.FirestoreHost, connect.PubSubHost)
	}
	if c.CriticalPercent+c.HighPercent > 100 {
		r.Refuse("high-percent", "is %d and --critical-percent %d; give at most 100 together", c.HighPercent, c.CriticalPercent)
	}
	if c.Name == "" {
		return
	}
	if err := domain.CheckID(c.Name); err != nil {
		r.Refuse("name", "%q %s", c.Name, err)
	} else if len(c.Name) > maxFleetName || !fitsSubscription(c.Name) {
		r.Refuse("name", "%q cannot name a subscription; give letters, digits and hyphens, at most %d", c.Name, maxFleetName)
	}
}

func fitsSubscription(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' {
			return false
		}
	}
	return true
}

// Run runs drones and hospitals until interrupted, prints their summary, and fails if an
// invariant broke.
func (c *fleetCommand) Run(ctx context.Context) (err error) {
	out, err := cli.Create(c.Report)
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	defer out.Close()
	depots, warehouses, err := readPlaces(c.Places)
	if err != nil {
		return err
	}
	atOnce, stop := secondSignal(ctx)
	defer stop()
	clients, clock, err := c.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clients.Close()) }()
	if clients.Config.Emulated() {
		if err := pubsubio.Ensure(ctx, clients.PubSub); err != nil {
			return err
		}
	}
	summary, err := devrun.RunFleet(ctx, atOnce, clients, clock, devrun.FleetConfig{
		Name: cmp.Or(c.Name, "SIM-"+uuid.NewString()[:8]), Duration: c.Duration, LeaveWithin: c.LeaveWithin, Depots: depots, Warehouses: warehouses,
		Drones: c.Drones, Hospitals: c.Hospitals, Hz: c.Hz, OrdersPerMinute: c.OrdersPerMinute, CriticalPercent: c.CriticalPercent, HighPercent: c.HighPercent, Seed: c.Seed,
		Network:        fleetsim.NetworkFaults{Lose: c.MessageLoss, Duplicate: c.Duplicate, Reorder: c.Reorder},
		CrashesPerHour: c.CrashesPerHour, ClockError: c.ClockSkew, Check: c.Invariants,
		Out: cli.Stdout, Terminal: isTerminal(os.Stdout), Log: c.Logger(os.Stderr),
	})
	if summary.Name == "" {
		return err
	}
	err = errors.Join(err, summary.Print(cli.Stdout), writeSummary(out, summary))
	if summary.Invariants != nil && len(summary.Invariants.Violations) > 0 {
		err = errors.Join(err, errInvariants)
	}
	return err
}

// readPlaces reads the file of --places, which may hold depots, warehouses or both.
func readPlaces(name string) ([]domain.Depot, []domain.Warehouse, error) {
	if name == "" {
		return nil, nil, nil
	}
	data, err := input.File(name, placefile.MaxBytes)
	if err != nil {
		return nil, nil, fmt.Errorf("--places: %w", err)
	}
	depots, err := placefile.Depots(name, data)
	warehouses, wrong := placefile.Warehouses(name, data)
	if err := cmp.Or(err, wrong); err != nil {
		return nil, nil, fmt.Errorf("--places: %w", err)
	}
	return depots, warehouses, nil
}

// secondSignal returns a context that ends with the second interrupt or SIGTERM; the first
// ends ctx. A third one kills the process.
func secondSignal(ctx context.Context) (context.Context, func()) {
	atOnce, cancel := context.WithCancel(context.WithoutCancel(ctx))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for n := 0; n < 2; n++ {
			select {
			case <-atOnce.Done():
				return
			case <-signals:
			}
		}
		signal.Stop(signals)
		cancel()
	}()
	return atOnce, func() { signal.Stop(signals); cancel() }
}
