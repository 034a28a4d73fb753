package devrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/deploy"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/solver"
)

// missionsSubscription carries commands to the simulated drones.
const missionsSubscription = "missions-simulated-fleet"

// Run runs the fleet until ctx ends or the duration is over, and reports. An
// error means that it could not be run, or not to its end: then there is a
// report only of a run that left messages unsettled or could not keep what it
// had. Broken invariants are in the report.
func Run(ctx context.Context, cfg Config) (Report, error) {
	if err := cfg.Validate(); err != nil {
		return Report{}, err
	}
	cfg.Out = &output{to: cfg.Out}
	cfg.DrainTimeout = cmp.Or(cfg.DrainTimeout, defaultDrainTimeout)
	var api *httpapi.Listener
	if cfg.HTTPAddr != "" {
		var err error
		if api, err = httpapi.Listen(cfg.HTTPAddr); err != nil {
			return Report{}, fmt.Errorf("--http-addr: %w", err)
		}
		defer api.Close()
	}
	began := time.Now()
	clock, err := simclock.New(simclock.Rate{Epoch: began, Speed: cfg.Speed})
	if err != nil {
		return Report{}, err
	}
	faults := fault.New(cfg.Seed)
	srv, err := startServers(cfg, clock, faults)
	if err != nil {
		return Report{}, err
	}
	f := &fleet{cfg: cfg, api: api, clock: clock, servers: srv, faults: faults, began: began, simBegan: clock.Now()}
	err = f.open(ctx)
	if ctx.Err() != nil && endedBy(err) {
		err = errors.New("interrupted before the fleet ran")
	}
	if err == nil {
		err = f.run(ctx)
	}
	var report Report
	if err == nil || f.unsettled > 0 {
		var unread error
		if report, unread = f.report(context.WithoutCancel(ctx)); unread != nil {
			report = Report{} // half a report would say that all invariants hold
		}
		err = errors.Join(err, unread)
	}
	return report, errors.Join(err, f.close())
}

func startServers(cfg Config, clock *simclock.Clock, faults *fault.Injector) (servers, error) {
	fs, err := firestoreemu.Start(firestoreemu.Options{
		Addr: cfg.FirestoreAddr, Clock: clock, Indexes: deploy.FirestoreIndexes, DataDir: subdirectory(cfg.DataDir, "firestore"), Faults: faults, Logger: cfg.Log,
	})
	if err != nil {
		return servers{}, Unserved("--firestore-addr", err)
	}
	ps, err := pubsubemu.Start(pubsubemu.Options{
		Addr: cfg.PubSubAddr, PublishTime: clock.Now, DataDir: subdirectory(cfg.DataDir, "pubsub"), Logger: cfg.Log,
	})
	if err != nil {
		return servers{}, errors.Join(Unserved("--pubsub-addr", err), fs.Close())
	}
	return servers{fs, ps}, nil
}

// Unserved names the flag that keeps an embedded server from starting: that of its
// address, or --data-dir.
func Unserved(address string, err error) error {
	if _, listening := errors.AsType[*net.OpError](err); listening {
		return fmt.Errorf("%s: %w", address, err)
	}
	return fmt.Errorf("--data-dir: %w", err)
}

// fleet is everything that runs.
type fleet struct {
	cfg      Config
	clock    *simclock.Clock
	servers  servers
	faults   *fault.Injector   // of Firestore
	api      *httpapi.Listener // nil for none
	began    time.Time
	simBegan time.Time

	product       *connect.Clients // of the State Manager and the optimizer
	world         *connect.Clients // of the drones and hospitals
	manager       *manager.Manager
	runner        *dispatch.Runner
	drones        *fleetsim.Fleet
	orders        *fleetsim.OrderSource
	confirmations *fleetsim.Confirmations
	publish       *pubsubio.Publisher // the optimizer's
	outside       *pubsubio.Publisher // the world's

	firstTelemetry time.Duration
	unsettled      int // messages that the end did not wait for
	observed       observed
	resumed        bool // an earlier run's fleet goes on
}

// open connects everything, creates topics and introduces the fleet.
func (f *fleet) open(ctx context.Context) error {
	hosts := connect.Config{FirestoreHost: f.servers.firestore.Addr(), PubSubHost: f.servers.pubsub.Addr()}
	var err error
	if f.product, err = connect.Open(ctx, hosts, meter.New()); err != nil {
		return err
	}
	if f.world, err = connect.Open(ctx, hosts, meter.New()); err != nil {
		return err
	}
	if err := pubsubio.Ensure(ctx, f.world.PubSub); err != nil {
		return err
	}
	if err := pubsubio.EnsureSubscription(ctx, f.world.PubSub, missionsSubscription, pubsubio.TopicMissions, true); err != nil {
		return err
	}
	world, err := fleetsim.NewWorld(fleetsim.WorldConfig{Drones: f.cfg.Drones, Seed: f.cfg.Seed})
	if err != nil {
		return err
	}
	setup := firestoretx.New(f.world.Firestore, firestoretx.Config{Now: f.clock.Now})
	missions, err := f.resume(ctx, setup, world)
	if err != nil {
		return fmt.Errorf("resume from %s: %w", f.cfg.DataDir, err)
	}
	f.simBegan = f.clock.Now()
	if err := f.world.ShareClock(ctx, f.clock.Shared()); err != nil {
		return err
	}
	clock, err := f.productClock()
	if err != nil {
		return err
	}
	tracing, err := f.cfg.tracing(ctx, f.product.Meter)
	if err != nil {
		return err
	}
	if f.manager, err = manager.New(f.product, clock, manager.Config{
		Tracing: tracing, Worker: pubsubio.Config{TraceTelemetry: f.cfg.TraceTelemetry},
	}, f.cfg.Log); err != nil {
		return err
	}
	if err := setup.Setup(ctx, world.Depots, world.Warehouses, world.Drones); err != nil {
		return err
	}
	f.publish, f.outside = pubsubio.NewPublisher(f.product.PubSub), pubsubio.NewPublisher(f.world.PubSub)
	f.confirmations = fleetsim.NewConfirmations()
	f.runner = dispatch.NewRunner(f.manager.Store, f.manager.Locks, confirming(dispatch.PublishDecisions(f.publish, wire.Protobuf), f.confirmations), uuid.NewString, clock,
		dispatch.Config{
			SolveLimit: f.cfg.SolveLimit, Iterations: f.cfg.Iterations, Strategy: f.cfg.Strategy, Seed: f.cfg.Seed,
			Params: solver.Params{PickupService: fleetsim.Dwell, DeliveryService: fleetsim.Dwell}, Holder: "dev", Tracing: tracing,
		}, f.cfg.Log, f.product.Meter)
	f.drones, err = fleetsim.NewFleet(world, fleetsim.FleetConfig{Hz: f.cfg.Hz, Seed: f.cfg.Seed}, f.clock, simulated{f.outside, tracing}, f.confirmations)
	if err != nil {
		return err
	}
	for _, m := range missions {
		f.drones.Deliver(m)
	}
	f.orders, err = fleetsim.NewOrderSource(world, fleetsim.OrderConfig{PerMinute: f.cfg.OrdersPerMinute, NoOpening: f.resumed, Seed: f.cfg.Seed, IDPrefix: "O-" + uuid.NewString()[:8]}, f.clock, simulated{f.outside, tracing}, f.confirmations)
	return err
}

// simulated lets the simulated world publish. An order is the beginning of a
// trace; whether a report is, the State Manager draws.
type simulated struct {
	*pubsubio.Publisher
	tracing trace.TracerProvider
}

func (s simulated) Publish(ctx context.Context, topic string, data []byte, attrs map[string]string, orderingKey string) fleetsim.Result {
	if topic == pubsubio.TopicOrders {
		var span trace.Span
		ctx, span = s.tracing.Tracer("github.com/dronefleet/dronefleet/sim/devrun").Start(ctx, "order")
		defer span.End()
	}
	return result{s.Publisher.Publish(ctx, topic, data, attrs, orderingKey)}
}

type result struct{ pubsubio.Published }

func (r result) Get(ctx context.Context) (string, error) { return r.Wait(ctx) }

// run runs all parts until ctx ends, the duration is over or one of them fails;
// then the world stops first, the backlog is worked off, and the State Manager
// stops last.
func (f *fleet) run(ctx context.Context) error {
	if f.cfg.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.cfg.Duration)
		defer cancel()
	}
	f.announce()

	background := context.WithoutCancel(ctx)
	ctx, end := context.WithCancel(ctx)
	defer end()
	// A fleet without one of its parts shows nothing, however long it goes on.
	start := func(g *errgroup.Group, part func() error) {
		g.Go(func() error {
			err := part()
			if err != nil {
				end()
			}
			return err
		})
	}
	managerCtx, stopManager := context.WithCancel(background)
	defer stopManager()
	settling, stopSettling := context.WithCancel(background)
	var managing errgroup.Group
	start(&managing, func() error {
		defer stopSettling()
		return httpapi.ServeManager(managerCtx, f.manager, httpapi.Access{AnyHost: f.cfg.InsecureHTTP}, f.api)
	})
	start(&managing, func() error { return f.watchSubscriptions(managerCtx) })
	commandCtx, stopCommands := context.WithCancel(background)
	defer stopCommands()
	start(&managing, func() error { return f.receiveCommands(commandCtx) })

	var world errgroup.Group
	start(&world, func() error { f.drones.Run(ctx); return nil })
	start(&world, func() error { f.orders.Run(ctx); return nil })
	start(&world, func() error {
		f.awaitTelemetry(ctx)
		if f.cfg.GameDay.WithoutOptimizer {
			return nil
		}
		return f.runner.Run(ctx)
	})
	start(&world, func() error { f.outage(ctx); return nil })
	start(&world, func() error { f.status(ctx); return nil })
	start(&world, func() error { f.observe(ctx); return nil })
	err := world.Wait()
	if ctx.Err() != nil && endedBy(err) {
		err = nil
	}
	within(f.cfg.DrainTimeout, func() {
		f.outside.Stop()
		f.publish.Stop()
	})
	f.drain(settling)
	stopManager()
	stopCommands()
	err = errors.Join(err, managing.Wait())
	if f.unsettled > 0 {
		err = errors.Join(err, fmt.Errorf("%d messages were unsettled at the end; lower the load, or mend what kept the servers from working", f.unsettled))
	}
	return err
}

// watchSubscriptions fails once the State Manager cannot consume a subscription.
// A real one waits until an operator creates it again; here nobody would.
func (f *fleet) watchSubscriptions(ctx context.Context) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := errors.Join(f.manager.Faults()...); err != nil {
			return err
		}
	}
}

// within returns when stop does, or after d: a server that refuses every
// message keeps its publishers trying with one after the other.
func within(d time.Duration, stop func()) {
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(d):
	}
}

// endedBy reports whether err says no more than that a context ended, in Go's
// words or gRPC's.
func endedBy(err error) bool {
	code := grpcstatus.Code(err)
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || code == codes.Canceled || code == codes.DeadlineExceeded
}

func (f *fleet) announce() {
	hosts := f.product.Config
	fmt.Fprintf(f.cfg.Out, "DroneFleet: %d drones around Paris, telemetry %g/s each, %g orders/min, time x%g, seed %d\n",
		f.cfg.Drones, f.cfg.Hz, f.cfg.OrdersPerMinute, f.cfg.Speed, f.cfg.Seed)
	// The first line matters where a shell, such as Cloud Shell's, is set up for a
	// project: in another project of these servers there is no fleet.
	fmt.Fprintf(f.cfg.Out, "Other State Managers and optimizers can join from another terminal with\n  export DRONEFLEET_PROJECT=%s DRONEFLEET_DATABASE=%q\n  export %s=%s\n  export %s=%s\n",
		hosts.Project, hosts.Database, connect.FirestoreHost, hosts.FirestoreHost, connect.PubSubHost, hosts.PubSubHost)
	if f.api != nil {
		fmt.Fprintf(f.cfg.Out, "HTTP API on %s\n", f.api.URL())
	}
	fmt.Fprintln(f.cfg.Out, "Ctrl-C ends the run with a report.")
}

// awaitTelemetry waits until the first report is applied, so that the first
// cycle sees drones.
func (f *fleet) awaitTelemetry(ctx context.Context) {
	applied := meter.Settlement{Kind: pubsubio.TopicTelemetry, Outcome: meter.Applied}
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		n := f.product.Meter.Settled()[applied]
		if n > 0 && f.firstTelemetry == 0 {
			f.firstTelemetry = time.Since(f.began)
		}
		// The whole fleet reports within one simulated second and a bit.
		if n >= int64(f.cfg.Drones) || n > 0 && time.Since(f.began) > f.firstTelemetry+2*time.Second {
			return
		}
	}
}

// defaultDrainTimeout is how long a run that is over waits for the backlog.
const defaultDrainTimeout = 30 * time.Second

// drain waits until every message has been settled, or ctx ends because nobody
// settles any more.
func (f *fleet) drain(ctx context.Context) {
	timeout := time.NewTimer(f.cfg.DrainTimeout)
	defer timeout.Stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for backlog := f.backlog(); backlog > 0; backlog = f.backlog() {
		select {
		case <-ctx.Done():
			return
		case <-timeout.C:
			f.unsettled = backlog
			fmt.Fprintf(f.cfg.Out, "%d messages are still unsettled after %s; reporting without them\n", backlog, f.cfg.DrainTimeout)
			return
		case <-ticker.C:
		}
	}
}

// backlog counts the messages that the State Managers have not settled.
func (f *fleet) backlog() int {
	var n int
	for name, s := range f.servers.pubsub.Counters().Subscriptions {
		for _, topic := range pubsubio.InboundTopics {
			if lastSegment(name) == pubsubio.Subscription(topic) {
				n += int(s.Backlog)
			}
		}
	}
	return n
}
