// Command optimizer plans the fleet's missions: every ten seconds it takes a snapshot of
// idle drones and pending orders, solves it and publishes decisions. The State Manager
// turns each into a mission or rejects it.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/observe"
	"github.com/dronefleet/dronefleet/internal/shutdown"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/solver"
)

type grammar struct {
	Run     runCommand       `cmd:"" serves:"" settings:"" help:"Run a solve cycle of every planning area every interval."`
	Once    onceCommand      `cmd:"" settings:"" help:"Run one solve cycle of every planning area and end, for a scheduler."`
	Solve   solveCommand     `cmd:"" help:"Plan a snapshot from a file (--in) or from the past (--at); publishes nothing."`
	Explain explainCommand   `cmd:"" help:"Say why an order waited or was late, and what would have helped; publishes nothing."`
	Learned learnedCommand   `cmd:"" help:"Show what was learned from flights and orders, or forget it."`
	Version kong.VersionFlag `help:"Print the version."`
}

func main() {
	cli.Main(&grammar{}, "Plans the missions of a medical drone fleet.")
}

// stopFlags holds the flags about stops, which every planning command has.
type stopFlags struct {
	Service time.Duration `help:"How long a drone stays at each pickup and each delivery." default:"0s" check:"min 0s max 1h"`
}

func (r stopFlags) params() solver.Params {
	return solver.Params{PickupService: r.Service, DeliveryService: r.Service}
}

// areaFlags holds the flag that groups depots.
type areaFlags struct {
	AreaRadius float64 `help:"Depots at most this many km apart are planned by one cycle; 0 plans each depot alone. Use the same value for all optimizers." default:"13" placeholder:"KM" check:"min 0 max 100"`
}

// amendFlags holds the flags about missions under way.
type amendFlags struct {
	Amend    bool `help:"Change missions under way, so that a drone in flight serves an order that waits." default:"true" negatable:""`
	Position bool `help:"Send idle drones to wait where CRITICAL orders are expected, and to charge. Only drones that support missions without orders are sent. Needs --amend." default:"true" negatable:""`
	strangerFlags
	TurnTime time.Duration `help:"Do not turn a drone away from a stop that it reaches within this time. Must not be less than the State Managers' --turn-time." default:"30s" check:"min 1s max 10m"`
}

// strangerFlags holds the flag about drones that nobody registered.
type strangerFlags struct {
	UnregisteredDrones string `help:"What to do with drones that report and that nobody has registered: refuse missions for them, or plan them as registered ones. Must be as the State Managers' --unregistered-drones." default:"refuse" enum:"refuse,plan"`
}

func (s strangerFlags) planUnregistered() bool { return s.UnregisteredDrones == "plan" }

// learnFlags holds the flags about what was learned.
type learnFlags struct {
	Learn bool `help:"Learn speeds, stays, delays and demand from the past, and plan with them." default:"true" negatable:""`
	confidenceFlag
}

// confidenceFlag holds the flag about how surely deadlines are met.
type confidenceFlag struct {
	Confidence float64 `help:"Share of deliveries that should be in time if delays are like those of the past. Use the same value for all optimizers." default:"0.8" check:"min 0.5 max 0.99"`
}

// cycles holds the flags of the commands that run cycles.
type cycles struct {
	cli.Connection
	cli.Keeping
	cli.Locks
	cli.Logging
	cli.Watching
	stopFlags
	Depot []string `help:"Depots to plan for, with their areas; default all." placeholder:"ID" check:"id"`
	areaFlags
	amendFlags
	learnFlags
	SolveLimit time.Duration `help:"How long one cycle may search. Decisions from a snapshot older than two minutes are refused." default:"8s" check:"over 0s max 100s"`
	LockTTL    time.Duration `help:"How long a process that died blocks its areas. A living one extends its locks." default:"15s" name:"lock-ttl" check:"min 1s max 5m"`
	Searches   int           `help:"How many cycles of this process may search at once; 0: processors / 1.6, at least 1. The others wait." default:"0" check:"min 0 max 1000"`
	Format     wire.Format   `help:"Form of published messages: protobuf or json." default:"protobuf" enum:"protobuf,json"`
}

// Check implements config.Checker.
func (c *cycles) Check(r *config.Refuser) {
	c.CheckConnection(r)
	c.CheckLocks(r)
	c.CheckWatching(r)
}

type runCommand struct {
	cycles
	HTTPAddr string `help:"Address of /healthz, /readyz and /metrics, which require no credentials; off for none." default:"off" placeholder:"HOST:PORT" name:"http-addr" env:"HTTP_ADDR" check:"listen or off"`
	probing
	Interval  time.Duration `help:"Time between cycles." default:"10s" check:"over 0s max 1h"`
	Ownership string        `help:"Who runs the cycles of an area: members, the one optimizer that owns it; or lock, whichever takes its lock, for one cycle." enum:"members,lock" default:"members"`
}

type onceCommand struct{ cycles }

// Run runs cycles until interrupted.
func (c *runCommand) Run(ctx context.Context) error {
	listener, err := listen(c.HTTPAddr)
	if err != nil {
		return err
	}
	if listener != nil {
		defer listener.Close()
	}
	return c.with(ctx, dispatch.Config{Interval: c.Interval, LockEachCycle: c.Ownership == "lock"}, func(p *planning) error {
		err := p.serve(ctx, listener, c.access())
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
}

// Run runs one cycle of every area. It skips an area whose cycle another process runs,
// and fails if the clock of this process is wrong.
func (c *onceCommand) Run(ctx context.Context) error {
	return c.with(ctx, dispatch.Config{LockEachCycle: true}, func(p *planning) error {
		areas, err := p.runner.Areas(ctx)
		errs := []error{err}
		for _, area := range areas {
			_, err := p.runner.Once(ctx, area, nil)
			if errors.Is(err, dispatch.ErrLocked) {
				tell("depot %s: another cycle is running; skipped", area)
				err = nil
			}
			errs = append(errs, err)
			if _, clockWrong := errors.AsType[*lock.ClockSkewError](err); clockWrong {
				break // for every area
			}
		}
		return errors.Join(errs...)
	})
}

// planning is what the commands that run cycles work with.
type planning struct {
	clients *connect.Clients
	clock   *simclock.Clock
	locks   *lock.Observed
	runner  *dispatch.Runner
	log     *slog.Logger
}

// with connects, calls f and releases everything. cfg has what is the command's own.
func (c *cycles) with(ctx context.Context, cfg dispatch.Config, f func(*planning) error) error {
	log := observe.LogTraces(c.Logger(os.Stderr), c.Project)
	clients, clock, err := c.OpenWithLocks(ctx, c.Locks)
	if err != nil {
		return err
	}
	defer clients.Close()
	tracing, stopWatch, err := c.Watch(ctx, "optimizer", clients.Meter, log)
	if err != nil {
		return err
	}
	exporting, exported := shutdown.Optimizer().Context(ctx, shutdown.Export)
	defer exported()
	defer stopWatch(exporting)
	publisher := pubsubio.NewPublisher(clients.PubSub)
	defer publisher.Stop()
	locks, err := clients.Locks(clock, log)
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	releasing, released := shutdown.Optimizer().Context(working, shutdown.Locks)
	defer func() {
		defer released()
		stop() // so that a command that ends by itself has the same limit
		if err := locks.Close(releasing); err != nil {
			log.WarnContext(ctx, "a lock may be left behind; it will expire", slog.Any("err", err))
		}
	}()
	p := &planning{clients: clients, clock: clock, locks: locks, log: log}
	p.runner = c.runner(p, publisher, cfg, tracing)
	log.InfoContext(ctx, "optimizer started", slog.String("project", clients.Config.Project),
		slog.String("locks", clients.LockStore.String()), slog.Float64("speed", clock.Speed))
	return f(p)
}

func (c *cycles) runner(p *planning, publisher *pubsubio.Publisher, cfg dispatch.Config, tracing trace.TracerProvider) *dispatch.Runner {
	cfg.LockTTL, cfg.SolveLimit, cfg.Seed, cfg.Searches = c.LockTTL, c.SolveLimit, uint64(time.Now().UnixNano()), c.Searches
	cfg.NoAmendments, cfg.NoAdvance, cfg.Limits = !c.Amend, !c.Position, policy.Limits{TurnTime: c.TurnTime}
	cfg.NoLearning, cfg.Confidence, cfg.Params, cfg.AreaRadius = !c.Learn, c.Confidence, c.params(), c.AreaRadius
	cfg.Holder, cfg.Tracing = cli.Instance(), tracing
	for _, id := range c.Depot {
		cfg.Depots = append(cfg.Depots, domain.DepotID(id))
	}
	stored := firestoretx.Config{Now: p.clock.Now, Retention: c.Retention, PlanUnregistered: c.planUnregistered()}
	if p.clients.LockStore.Set() {
		stored.Counters = p.locks
	}
	store := firestoretx.New(p.clients.Firestore, stored)
	return dispatch.NewRunner(store, p.locks, dispatch.PublishDecisions(publisher, c.Format), uuid.NewString, p.clock, cfg, p.log, p.clients.Meter)
}
