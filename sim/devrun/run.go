package devrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/httpapi/ratelimit"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/fleetlink"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/solver"
)

// Run runs a fleet until ctx ends or the duration is over, and reports. An error
// means that it could not be run, or not to its end. Then there is a summary only of
// a run that left messages unsettled, or that could no longer print or write its
// data directory. Broken invariants are in the summary.
func Run(ctx context.Context, cfg Config) (Summary, error) {
	if err := cfg.Validate(); err != nil {
		return Summary{}, err
	}
	cfg.DrainTimeout = cmp.Or(cfg.DrainTimeout, defaultDrainTimeout)
	var api *httpapi.Listener
	if cfg.HTTPAddr != "" {
		var err error
		if api, err = httpapi.Listen(cfg.HTTPAddr); err != nil {
			return Summary{}, fmt.Errorf("--http-addr: %w", err)
		}
		defer api.Close()
	}
	var linkAt net.Listener
	if cfg.LinkAddr != "" {
		var err error
		if linkAt, err = net.Listen("tcp", cfg.LinkAddr); err != nil {
			return Summary{}, fmt.Errorf("--link: %w; give another address or stop the process that uses it", err)
		}
		defer linkAt.Close()
	}
	began := time.Now()
	clock, err := simclock.New(simclock.Rate{Epoch: began, Speed: cfg.Speed})
	if err != nil {
		return Summary{}, err
	}
	faults := fault.New(cfg.Seed)
	run := &devRun{
		cfg: cfg, api: api, linkAt: linkAt, clock: clock, faults: faults, began: began, simBegan: clock.Now(),
		console: &console{out: cfg.Out, terminal: cfg.Terminal}, failed: make(chan struct{}), failures: map[string]int{}, deaths: make(chan chan struct{}),
	}
	run.console.failed = func(err error) { run.fail(&mutedError{err}) }
	if run.servers, err = run.startServers(); err != nil {
		return Summary{}, err
	}
	err = run.open(ctx)
	if err == nil && linkAt != nil {
		run.link, err = run.openLink(ctx, linkAt)
	}
	if ctx.Err() != nil && endedBy(err) {
		err = errors.New("interrupted before the fleet ran")
	}
	if err == nil {
		err = run.run(ctx)
	}
	var summary Summary
	if err == nil || run.unsettled > 0 || run.muted() {
		var unread error
		if summary, unread = run.summary(context.WithoutCancel(ctx)); unread != nil {
			summary = Summary{} // half a summary would say that all invariants hold
		}
		err = errors.Join(err, unread)
	}
	return summary, errors.Join(err, run.close())
}

// retention is how long the embedded Firestore keeps superseded versions of
// documents. In production it is an hour at least. Each position of a drone is a
// version, so an hour would take more memory than everything else.
const retention = 10 * time.Minute

func (run *devRun) startServers() (servers, error) {
	cfg := run.cfg
	unwritable := func(err error) { run.fail(&unkeptError{err}) }
	fs, err := firestoreemu.Start(firestoreemu.Options{
		Addr: cfg.FirestoreAddr, Clock: run.clock, Indexes: deploy.FirestoreIndexes, DataDir: subdirectory(cfg.DataDir, "firestore"),
		Retention: retention, Faults: run.faults, Logger: cfg.Log, OnUnwritable: unwritable,
	})
	if err != nil {
		return servers{}, Unserved("--firestore-addr", err)
	}
	ps, err := pubsubemu.Start(pubsubemu.Options{
		Addr: cfg.PubSubAddr, PublishTime: run.clock.Now, HTTPHint: run.httpHint(),
		DataDir: subdirectory(cfg.DataDir, "pubsub"), Logger: cfg.Log, OnUnwritable: unwritable,
	})
	if err != nil {
		return servers{}, errors.Join(Unserved("--pubsub-addr", err), fs.Close())
	}
	return servers{fs, ps}, nil
}

// httpHint says where clients of HTTP/1 can go that try to publish at the embedded Pub/Sub.
func (run *devRun) httpHint() string {
	var hints []string
	if run.api != nil {
		hints = append(hints, "Orders and the rest of the HTTP API are at "+run.api.URL()+"/api/v1/.")
	}
	if run.linkAt != nil {
		hints = append(hints, "Drones connect to the drone link at "+run.linkAt.Addr().String()+".")
	}
	return strings.Join(hints, " ")
}

// Unserved names the flag that keeps an embedded server from starting: that of its
// address, or --data-dir.
func Unserved(address string, err error) error {
	if _, listening := errors.AsType[*net.OpError](err); listening {
		return fmt.Errorf("%s: %w", address, err)
	}
	return fmt.Errorf("--data-dir: %w", err)
}

// devRun is everything that runs.
type devRun struct {
	cfg      Config
	clock    *simclock.Clock
	servers  servers
	faults   *fault.Injector   // of Firestore
	api      *httpapi.Listener // nil for none
	linkAt   net.Listener      // of the drone link; nil for none
	keys     []string          // of the API, in the order of demoRoles
	console  *console
	began    time.Time
	simBegan time.Time

	product   *connect.Clients // of the State Manager and the optimizer
	outside   *outside         // the drones and hospitals
	manager   *manager.Manager
	cycles    *dispatch.Runner
	publish   *pubsubio.Publisher // the optimizer's
	deaths    chan chan struct{}  // of the optimizer, each with what is closed when it revives
	desk      *incidentDesk
	practised atomic.Bool // something was made to go wrong
	link      *link       // nil for none
	drill     *drill      // nil for none

	firstTelemetry time.Duration
	unsettled      int // messages that the end did not wait for
	observed       observed
	resumed        resumed // what an earlier run in the data directory left

	failed chan struct{} // closed by fail

	mu       sync.Mutex
	err      error          // see fail
	failures map[string]int // of cycles, by cause
}

// open connects everything, creates topics and stores the fleet.
func (run *devRun) open(ctx context.Context) error {
	hosts := connect.Config{FirestoreHost: run.servers.firestore.Addr(), PubSubHost: run.servers.pubsub.Addr()}
	var err error
	if run.product, err = connect.Open(ctx, hosts, meter.New()); err != nil {
		return err
	}
	clients, err := connect.Open(ctx, hosts, meter.New())
	if err != nil {
		return err
	}
	run.outside = &outside{clients: clients, clock: run.clock, log: run.cfg.Log, subscription: fleetlink.Missions, confirmations: fleetsim.NewConfirmations()}
	if err := fleetlink.Prepare(ctx, clients.PubSub); err != nil {
		return err
	}
	world, err := fleetsim.NewWorld(fleetsim.WorldConfig{
		Depots: run.cfg.Depots, Warehouses: run.cfg.Warehouses,
		Drones: run.cfg.Drones, Seed: run.cfg.Seed, ChargingSlots: run.cfg.ChargingSlots, ChargeRate: run.cfg.ChargeRate, Payload: true,
	})
	if err != nil {
		return err
	}
	setup := run.outside.store()
	before, err := run.resume(ctx, setup, world)
	if err != nil {
		return fmt.Errorf("resume from %s: %w", run.cfg.DataDir, err)
	}
	run.simBegan = run.clock.Now()
	if err := clients.ShareClock(ctx, run.clock.Shared()); err != nil {
		return err
	}
	clock, err := run.productClock()
	if err != nil {
		return err
	}
	tracing, err := run.cfg.tracing(ctx, run.product.Meter)
	if err != nil {
		return err
	}
	if run.manager, err = manager.New(run.product, clock, manager.Config{
		Tracing: tracing, Worker: pubsubio.Config{TraceTelemetry: run.cfg.TraceTelemetry}, Foretelling: policy.DefaultForetelling(),
	}, run.cfg.Log); err != nil {
		return err
	}
	if run.api != nil {
		if err := run.makeKeys(ctx); err != nil {
			return err
		}
	}
	if err := setup.Setup(ctx, world.Depots, world.Warehouses, nil); err != nil {
		return err
	}
	if err := run.outside.register(ctx, "dronefleet dev", world.Drones); err != nil {
		return err
	}
	run.publish = pubsubio.NewPublisher(run.product.PubSub)
	run.cycles = dispatch.NewRunner(run.manager.Store, run.manager.Locks, fleetlink.Confirming(dispatch.PublishDecisions(run.publish, wire.Protobuf), run.outside.confirmations), uuid.NewString, clock,
		dispatch.Config{
			SolveLimit: run.cfg.SolveLimit, Iterations: run.cfg.Iterations, Strategy: run.cfg.Strategy, Seed: run.cfg.Seed,
			Params: solver.Params{PickupService: fleetsim.Dwell, DeliveryService: fleetsim.Dwell}, Holder: "dev", Tracing: tracing,
			OnFailure: run.cycleFailed, NoLearning: run.cfg.NoLearning, NoAdvance: run.cfg.NoAdvance,
		}, run.cfg.Log, run.product.Meter)
	if run.cfg.Drill.Gateways > 0 {
		if run.drill, err = newDrill(run, world.Drones); err != nil {
			return err
		}
		run.outside.link = run.drill.linked
	}
	return run.outside.populate(world, tracing, before, fleetsim.NetworkFaults{},
		fleetsim.FleetConfig{Hz: run.cfg.Hz, Pace: run.cfg.Pace, Seed: run.cfg.Seed},
		fleetsim.OrderConfig{PerMinute: run.cfg.OrdersPerMinute, NoOpening: run.resumed.drones > 0 || run.cfg.OrdersPerMinute == 0 || len(run.cfg.Depots) > 0, Seed: run.cfg.Seed, IDPrefix: "O-" + uuid.NewString()[:8]})
}

// run runs all parts until ctx ends, the duration is over or one of them fails. Then
// the simulated world stops first, the backlog is drained, and the State Manager
// stops last.
func (run *devRun) run(ctx context.Context) error {
	if run.cfg.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, run.cfg.Duration)
		defer cancel()
	}
	run.announce()

	background := context.WithoutCancel(ctx)
	ctx, end := context.WithCancel(ctx)
	defer end()
	// A run that has lost a part proves nothing, so the first part to fail ends it.
	start := func(g *errgroup.Group, part func() error) {
		g.Go(func() error {
			err := part()
			if err != nil {
				end()
			}
			return err
		})
	}
	run.desk = newIncidentDesk(ctx, run)
	managerCtx, stopManager := context.WithCancel(background)
	defer stopManager()
	linkCtx, stopLink := context.WithCancel(background)
	defer stopLink()
	settling, stopSettling := context.WithCancel(background)
	var managing errgroup.Group
	start(&managing, func() error {
		defer stopSettling()
		return httpapi.ServeManager(managerCtx, run.manager, run.site(), run.api)
	})
	start(&managing, func() error { return run.watchSubscriptions(managerCtx) })
	if run.link != nil {
		start(&managing, func() error { return run.link.serve(linkCtx) })
	}
	commandCtx, stopCommands := context.WithCancel(background)
	defer stopCommands()
	receive := run.outside.receiveCommands
	if run.drill != nil {
		receive = run.drill.fly
	}
	start(&managing, func() error { return receive(commandCtx) })

	var world errgroup.Group
	start(&world, func() error { run.outside.drones.Run(ctx); return nil })
	start(&world, func() error { run.outside.orders.Run(ctx); return nil })
	start(&world, func() error {
		run.awaitTelemetry(ctx)
		if run.cfg.GameDay.WithoutOptimizer {
			return nil
		}
		return run.plan(ctx)
	})
	start(&world, func() error {
		select {
		case <-run.failed:
			return run.cause()
		case <-ctx.Done():
			return nil
		}
	})
	start(&world, func() error { run.desk.work(); return nil })
	start(&world, func() error { run.status(ctx); return nil })
	start(&world, func() error { run.observe(ctx); return nil })
	err := world.Wait()
	if ctx.Err() != nil && endedBy(err) {
		err = nil
	}
	if run.unkept() { // what still waits for an answer ends with the connections
		return run.cause()
	}
	within(run.cfg.DrainTimeout, func() {
		run.outside.publisher.Stop()
		run.publish.Stop()
	})
	stopLink()
	run.drain(settling)
	stopManager()
	stopCommands()
	err = errors.Join(err, managing.Wait())
	if cause := run.cause(); cause != nil && !errors.Is(err, cause) { // while it ended
		err = errors.Join(err, cause)
	}
	if run.unsettled > 0 {
		err = errors.Join(err, fmt.Errorf("%d messages were unsettled at the end; lower the load, or repair what kept the servers from working", run.unsettled))
	}
	return err
}

// operatorName is the name of the person at the console, for the audit.
const operatorName = "operator (dev)"

// site is how the HTTP API is served.
func (run *devRun) site() httpapi.Site {
	site := httpapi.Site{Access: httpapi.Access{Hosts: run.cfg.HTTPHosts, Limiter: ratelimit.New(ratelimit.Default, time.Now)}, BaseMap: run.cfg.BaseMap}
	if run.cfg.Operator {
		site.Access.Local, site.Incidents = operatorName, run.desk
	}
	return site
}

// watchSubscriptions fails once the State Manager cannot consume a subscription.
// In production it waits until an operator creates the subscription again.
func (run *devRun) watchSubscriptions(ctx context.Context) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := errors.Join(run.manager.Outages()...); err != nil {
			return err
		}
	}
}

// fail ends the run early with err.
func (run *devRun) fail(err error) {
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.err == nil {
		run.err = err
		close(run.failed)
	}
}

// cause is the first error that fail was given.
func (run *devRun) cause() error {
	run.mu.Lock()
	defer run.mu.Unlock()
	return run.err
}

// mutedError says that nothing can be printed any more. Everything else works, so
// the run ends as usual and has a summary.
type mutedError struct{ error }

func (e *mutedError) Error() string { return "print: " + e.error.Error() }
func (e *mutedError) Unwrap() error { return e.error }

func (run *devRun) muted() bool {
	_, muted := errors.AsType[*mutedError](run.cause())
	return muted
}

// unkeptError says that the data directory cannot be written. The servers refuse
// everything from then on, so there is nothing to wait for and nothing to report.
type unkeptError struct{ error }

func (e *unkeptError) Error() string {
	return fmt.Sprintf("--data-dir: nothing more can be stored: %s; free space or choose another directory, then start again", e.error)
}
func (e *unkeptError) Unwrap() error { return e.error }

func (run *devRun) unkept() bool {
	_, unkept := errors.AsType[*unkeptError](run.cause())
	return unkept
}

// maxCauses bounds how many different causes of failed cycles are kept.
const maxCauses = 10

// cycleFailed counts a cycle that failed.
func (run *devRun) cycleFailed(err error) {
	run.mu.Lock()
	defer run.mu.Unlock()
	cause := err.Error()
	if _, known := run.failures[cause]; !known && len(run.failures) >= maxCauses {
		cause = "for other causes"
	}
	run.failures[cause]++
}

// within returns when stop does, or after d: publishers retry every message that a
// server refuses, one after the other.
func within(d time.Duration, stop func()) {
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(d):
	}
}

// endedBy reports whether err only says that a context ended, as an error of Go or
// of gRPC.
func endedBy(err error) bool {
	code := grpcstatus.Code(err)
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || code == codes.Canceled || code == codes.DeadlineExceeded
}

// demoRequester is the requester whose key a run prints.
const demoRequester = "HOSPITAL-DEMO"

// demoRoles are the roles of the keys that a run prints.
var demoRoles = []domain.KeyRole{domain.KeyViewer, domain.KeyOperator, domain.KeyRequester}

// makeKeys makes keys for trials of the API. Those of earlier runs in the same directory keep
// working: their documents are there.
func (run *devRun) makeKeys(ctx context.Context) error {
	for _, role := range demoRoles {
		// Simulated time may be a thousand times as fast.
		use := operator.KeyUse{Role: role, ExpiresAt: run.manager.Store.Now().Add(domain.MaxKeyLifetime)}
		if role == domain.KeyRequester {
			use.Requester = demoRequester
		}
		text, _, err := operator.Commands{Store: run.manager.Store, By: "dronefleet dev"}.CreateKey(ctx, use, "trials of the HTTP API")
		if err != nil {
			return err
		}
		run.keys = append(run.keys, text)
	}
	return nil
}

// announce prints what runs and how others can join.
func (run *devRun) announce() {
	cfg, hosts := run.cfg, run.product.Config
	lines := []string{
		fmt.Sprintf("DroneFleet: %d drones, telemetry %g/s each, %g orders/min, time x%g, seed %d",
			cfg.Drones, cfg.Hz, cfg.OrdersPerMinute, cfg.Speed, cfg.Seed),
	}
	if cfg.DataDir != "" {
		lines = append(lines, run.resumed.print(cfg.DataDir, cfg.Drones))
	}
	if cfg.Drones == 0 {
		lines = append(lines, "No simulated drones: register yours with \"statemanager drones apply\", then let them report.")
	}
	lines = append(lines,
		"Other State Managers and optimizers can join from another terminal with",
	)
	for _, line := range hosts.Exports() {
		lines = append(lines, "  "+line)
	}
	if run.api != nil {
		lines = slices.Insert(lines, 0, "Console and HTTP API on "+run.api.URL())
		lines = append(lines, fmt.Sprintf("Keys of the HTTP API, the last one for requester %s, as in curl -H \"Authorization: Bearer $VIEWER_KEY\":", demoRequester))
		for i, role := range demoRoles {
			lines = append(lines, fmt.Sprintf("  export %s_KEY=%s", strings.ToUpper(string(role)), run.keys[i]))
		}
	}
	if run.link != nil {
		lines = append(lines, run.link.lines()...)
	}
	lines = append(lines, run.operatorLines()...)
	run.console.print(2, append(lines, "Ctrl-C ends the run with a summary.")...)
}

// operatorLines say who acts at the console, and how to practise incidents.
func (run *devRun) operatorLines() []string {
	switch {
	case run.api == nil:
		return nil
	case !run.cfg.Operator:
		return []string{"The console is read-only: start with --operator to act on the fleet and to practise incidents."}
	}
	lines := []string{fmt.Sprintf("At the console you are %s, without credentials: only this machine reaches it.", operatorName)}
	if run.cfg.In != nil {
		return append(lines, menuLines()...)
	}
	return append(lines, fmt.Sprintf("Incidents, to start at the console or with a POST to /api/v1/dev/incidents/NAME: %s.", strings.Join(incidentNames(), ", ")))
}

// awaitTelemetry waits until the first report is applied, so that the first
// cycle sees drones.
func (run *devRun) awaitTelemetry(ctx context.Context) {
	applied := meter.Settlement{Kind: pubsubio.TopicTelemetry, Outcome: meter.Applied}
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		n := run.product.Meter.Settled()[applied]
		if n > 0 && run.firstTelemetry == 0 {
			run.firstTelemetry = time.Since(run.began)
		}
		// The whole fleet reports within little more than one simulated second.
		if n >= int64(run.cfg.Drones) || n > 0 && time.Since(run.began) > run.firstTelemetry+2*time.Second {
			return
		}
	}
}

// defaultDrainTimeout is how long a run that is over waits for the backlog.
const defaultDrainTimeout = 30 * time.Second

// drain waits until every message is settled, or ctx ends because the State Manager
// has stopped.
func (run *devRun) drain(ctx context.Context) {
	timeout := time.NewTimer(run.cfg.DrainTimeout)
	defer timeout.Stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for backlog := run.backlog(); backlog > 0; backlog = run.backlog() {
		select {
		case <-ctx.Done():
			return
		case <-timeout.C:
			run.unsettled = backlog
			run.console.print(2, fmt.Sprintf("%d messages are still unsettled after %s; the summary leaves them out", backlog, run.cfg.DrainTimeout))
			return
		case <-ticker.C:
		}
	}
}

// backlog counts the messages that the State Managers have not settled.
func (run *devRun) backlog() int { return fleetlink.Backlog(run.servers.pubsub) }
