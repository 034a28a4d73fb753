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
	"strconv"
	"time"

	"github.com/mattn/go-isatty"
	"go.opentelemetry.io/otel/trace"

	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/sim/devrun"
	"github.com/dronefleet/dronefleet/solver"
)

type devCommand struct {
	Duration        time.Duration  `help:"End with a summary after this long, in real time; 0 runs until interrupted." default:"0" check:"min 0s"`
	Drones          int            `help:"Number of simulated drones; 0 leaves the orders to drones that join." default:"40" check:"min 0 max 100000"`
	Hz              float64        `help:"Reports per drone and simulated second." default:"1" check:"over 0 max 100"`
	ChargingSlots   slots          `help:"How many drones can charge at once." default:"all" accepts:"1 to 1000000, or all"`
	ChargeRate      float64        `help:"What a drone gains in a charging slot, in percent of a full charge per simulated minute." default:"10" check:"over 0 max 100000"`
	Pace            float64        `help:"How fast drones fly, as a share of the speed that plans assume until they have learned the real one." default:"1" check:"over 0 max 2"`
	Position        bool           `help:"Send idle drones to wait where CRITICAL orders are expected, and to charge." default:"true" negatable:""`
	Learn           bool           `help:"Learn speeds, stays, delays and demand from the past, and plan with them." default:"true" negatable:""`
	OrdersPerMinute float64        `help:"Mean rate of new orders, in simulated time. The summary says how many the fleet could carry." default:"3" check:"min 0 max 60000"`
	Speed           float64        `help:"Simulated seconds per second." default:"1" check:"min 1 max 1000"`
	Seed            uint64         `help:"Seed of the simulated world; the same seed gives the same fleet and orders." default:"1"`
	Solver          string         `help:"Planner: sisr, greedy or nearest." enum:"sisr,greedy,nearest" default:"sisr"`
	SolveLimit      time.Duration  `help:"Search time of one cycle, in real time." default:"1s" check:"over 0s max 100s"`
	Places          string         `help:"File with the depots and warehouses of the fleet, such as examples/nearby.yaml; default places around Paris." placeholder:"FILE" type:"path"`
	DataDir         string         `help:"Keep the fleet in this directory, and resume the fleet that is there." placeholder:"DIR" type:"path"`
	Report          string         `help:"Also write the summary to this file, as JSON." placeholder:"FILE" type:"path"`
	FirestoreAddr   string         `help:"Address of the embedded Firestore; default a free port." placeholder:"HOST:PORT" check:"listen on loopback"`
	PubsubAddr      string         `help:"Address of the embedded Pub/Sub; default a free port." placeholder:"HOST:PORT" check:"listen on loopback"`
	HTTPAddr        string         `help:"Address of the HTTP API; default a free port, \"\" or off for none." default:"127.0.0.1:0" placeholder:"HOST:PORT" name:"http-addr" env:"HTTP_ADDR" check:"listen or off"`
	LinkAddr        string         `help:"Address at which drones of your own connect, over gRPC and WebSocket, with certificates whose files are printed; \"\" for none." placeholder:"HOST:PORT" name:"link-addr" aliases:"link" check:"listen"`
	InsecureHTTP    bool           `help:"Let other machines read the HTTP API, without credentials." name:"insecure-http"`
	HTTPHosts       []httpapi.Host `help:"Host names, besides localhost, by which the HTTP API may be reached." placeholder:"HOST" name:"http-hosts"`
	LogLevel        slog.Level     `help:"Lowest severity that is logged to standard error: debug, info, warn, error." default:"error" env:"LOG_LEVEL" accepts:"debug, info, warn or error"`
	cli.Watching
	httpapi.MapFlags
	TraceTelemetry float64           `help:"Share of telemetry that is traced, unless the sender decided." default:"0.01" check:"min 0 max 1"`
	NoOptimizer    bool              `help:"Game day: run no optimizer; optimizers that join do the planning."`
	ClockSkew      time.Duration     `help:"Game day: how far the clock of State Manager and optimizer is ahead of all others, in simulated time." default:"0"`
	Operator       bool              `help:"Let this machine's user act on the fleet at the console, without credentials, and start incidents: there, at a terminal by their number, and over HTTP."`
	Incident       []devrun.Incident `help:"Game day: let something go wrong at a simulated time after the start, by default after a minute; may be repeated. One of mass-casualty, depot-closed, drone-lost, optimizer-dead, wind, firestore-down." placeholder:"NAME[@TIME]"`
}

func (c *devCommand) gameDay() devrun.GameDay {
	return devrun.GameDay{WithoutOptimizer: c.NoOptimizer, Incidents: c.Incident, ClockSkew: c.ClockSkew}
}

// Check implements config.Checker.
func (c *devCommand) Check(r *config.Refuser) {
	c.CheckWatching(r)
	c.CheckMap(r)
	c.gameDay().Check(time.Duration(float64(c.Duration)*c.Speed), r.Refuse)
	if c.Operator {
		if err := devrun.CheckOperator(cli.ListenAddr(c.HTTPAddr), c.HTTPHosts); err != nil {
			r.Refuse("operator", "%s", err)
		}
	}
	if c.Places != "" && c.ChargingSlots.limit > 0 {
		r.Refuse("charging-slots", "is for the depot in Paris; give chargingSlots in the file of --places")
	}
	if err := httpapi.CheckOpenAddress(c.HTTPAddr); err != nil && !c.InsecureHTTP {
		r.Refuse("http-addr", "%s", err)
	}
}

// errInvariants is the error of a run that broke an invariant.
var errInvariants = errors.New("invariants were violated; see the summary")

// Run runs the fleet, prints its summary, and fails if an invariant broke.
func (c *devCommand) Run(ctx context.Context) error {
	// A file that cannot be written must fail before the run, not after it.
	out, err := cli.Create(c.Report)
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	defer out.Close()
	depots, warehouses, err := readPlaces(c.Places)
	if err != nil {
		return err
	}
	below, err := c.OpenMap()
	if err != nil {
		return err
	}
	defer below.Close()
	console := os.Stdout
	if closed(os.Stdout) {
		if closed(os.Stderr) {
			return errors.New("standard output and standard error are closed: nobody would see the run or its summary")
		}
		console = os.Stderr
		fmt.Fprintln(console, "Standard output is closed; printing to standard error.")
	}
	log := cli.Logging{LogLevel: c.LogLevel}.Logger(os.Stderr)
	stopWatch := func(context.Context) {}
	defer func() { stopWatch(context.WithoutCancel(ctx)) }()
	summary, err := devrun.Run(ctx, devrun.Config{
		TraceTelemetry: c.TraceTelemetry, Watch: func(ctx context.Context, m *meter.Meter) (trace.TracerProvider, error) {
			tracing, stop, err := c.Watch(ctx, "dronefleet-dev", m, log)
			if err == nil {
				stopWatch = stop
			}
			return tracing, err
		},
		Depots: depots, Warehouses: warehouses, ChargingSlots: c.ChargingSlots.limit, ChargeRate: c.ChargeRate, Pace: c.Pace, NoLearning: !c.Learn, NoAdvance: !c.Position,
		Duration: c.Duration, Drones: c.Drones, Hz: c.Hz, OrdersPerMinute: c.OrdersPerMinute,
		Speed: c.Speed, Seed: c.Seed, SolveLimit: c.SolveLimit, Strategy: solver.Strategies[c.Solver],
		LinkAddr: c.LinkAddr, DataDir: c.DataDir, FirestoreAddr: c.FirestoreAddr, PubSubAddr: c.PubsubAddr, HTTPAddr: cli.ListenAddr(c.HTTPAddr), HTTPHosts: c.HTTPHosts, BaseMap: below, GameDay: c.gameDay(),
		Operator: c.Operator, In: menuInput(c.Operator, console),
		Out: console, Terminal: isTerminal(console), Log: log,
	})
	if err != nil && summary.ElapsedSeconds == 0 {
		return err
	}
	if unwritten := summary.Print(console); unwritten != nil && err == nil {
		err = errors.Join(err, fmt.Errorf("print the summary: %w", unwritten))
	}
	err = errors.Join(err, writeSummary(out, summary))
	if len(summary.Invariants.Violations) > 0 {
		err = errors.Join(err, errInvariants)
	}
	return err
}

// writeSummary writes a summary to the file of --report.
func writeSummary(out *cli.File, summary any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := cmp.Or(encoder.Encode(summary), out.Close()); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}

// isTerminal reports whether a status can be redrawn in place on a file.
func isTerminal(f *os.File) bool {
	return isatty.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb"
}

// menuInput is where a person chooses incidents; nil if nobody would see the menu.
func menuInput(operator bool, console *os.File) io.Reader {
	if !operator || !isTerminal(console) || !isatty.IsTerminal(os.Stdin.Fd()) {
		return nil
	}
	return os.Stdin
}

// slots is a number of charging slots; zero means one for each drone.
type slots struct{ limit int }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *slots) UnmarshalText(text []byte) error {
	if string(text) == "all" {
		s.limit = 0
		return nil
	}
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 || n > 1_000_000 {
		return errors.New("not a number of slots")
	}
	s.limit = n
	return nil
}
