package faultsim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	fsfault "github.com/dronefleet/dronefleet/emulator/firestore/fault"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	psfault "github.com/dronefleet/dronefleet/emulator/pubsub/fault"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/shutdown"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/fleetlink"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/sim/invariant"
	"github.com/dronefleet/dronefleet/solver"
)

// Config says what to run.
type Config struct {
	Seed       uint64
	Duration   time.Duration // machine time with faults; draining comes after it
	Speed      float64       // simulated seconds per second; default 40
	Managers   int           // State Managers in this process; -1 for none; default 2 to 4, by seed
	Optimizers int           // default 2
	Interval   time.Duration // between the cycles of a depot; default the product's
	// Offsets are by how much the clocks of the first optimizers are ahead of
	// Firestore's. Locks trust the server's clock only at speed 1.
	Offsets []time.Duration
	Drones  int // default 12
	// OrdersPerDrone is the mean number of orders per simulated minute and drone. The
	// default is more than the drones can deliver.
	OrdersPerDrone float64
	// Depots share the drones, each an area of its own until its border moves; default 1, at most 2.
	Depots int
	// RequireSender has the State Managers refuse messages of other senders.
	RequireSender bool
	// Manager, if set, changes how the State Managers are configured; it makes broken variants.
	Manager func(*manager.Config)
	// Plan, if not nil, replaces the seed's plan.
	Plan []plannedFault
	// Until, if set, says whether the run has shown what it is for. Until then the plan is
	// carried out again, twice as slowly each time and with nothing new from drones and
	// hospitals, so that a slow machine gets something done between two faults. It gets
	// Faults, HandedOver and the history's Readings.
	Until func(soFar Result) bool
	Log   *slog.Logger
	// Interceptors are installed on every connection of the product; they make
	// broken variants of it.
	Interceptors []grpc.DialOption
	// During, if set, replaces the plan: the run lasts until it returns. It gets
	// the servers' addresses.
	During func(ctx context.Context, hosts connect.Config) error
}

// withDefaults fills what was left out and does not depend on the seed.
func (c Config) withDefaults() Config {
	c.Speed = cmp.Or(c.Speed, 40)
	c.Optimizers = cmp.Or(c.Optimizers, 2)
	c.Drones = cmp.Or(c.Drones, 12)
	c.OrdersPerDrone = cmp.Or(c.OrdersPerDrone, 1.2)
	c.Depots = cmp.Or(c.Depots, 1)
	return c
}

// length is the simulated time with faults.
func (c Config) length() time.Duration {
	return time.Duration(float64(c.Duration) * c.withDefaults().Speed)
}

// planned is the plan of the run.
func (c Config) planned() []plannedFault {
	if c.Plan != nil {
		return c.Plan
	}
	return newPlan(c.Seed, c.length())
}

// Result is what a run left behind and what the checks found.
type Result struct {
	History invariant.History
	Verdict invariant.Result
	// Complaints are mistakes of the product that no invariant covers.
	Complaints []string

	Faults      map[string]int // how often each kind of fault occurred
	Amendments  Amendments
	DeadLetters map[string]int // by reason
	Orders      map[domain.OrderStatus]int
	Applied     int // decisions
	Rejected    map[string]int
	Events      int
	Decided     []int  // decisions published by each optimizer
	HandedOver  int    // orders, from one area to another
	Late        int    // orders whose delivery late evidence proved or dated back
	Starts      int    // processes of the product started
	MaxHeap     uint64 // bytes, of everything in this process
	Drained     time.Duration
}

// pubsubSpeed is the speed of the clock of message leases: fast enough that what a
// dead process held is redelivered within a run, slow enough that a live process
// can hold a message.
const pubsubSpeed = 15

// maxSkew is how far a manager's clock may be off, either way.
const maxSkew = 5 * time.Second

// Run runs one seed and checks it.
func Run(ctx context.Context, cfg Config) (Result, error) {
	random := rand.New(rand.NewPCG(cfg.Seed, 0x73657475))
	cfg = cfg.withDefaults()
	if cfg.Managers == 0 {
		cfg.Managers = 2 + random.IntN(3)
	}
	clock, err := simclock.New(simclock.Rate{Epoch: time.Now(), Speed: cfg.Speed})
	if err != nil {
		return Result{}, err
	}
	leases, err := simclock.New(simclock.Rate{Epoch: time.Now(), Speed: pubsubSpeed})
	if err != nil {
		return Result{}, err
	}
	injector := fsfault.New(cfg.Seed)
	fs, err := firestoreemu.Start(firestoreemu.Options{Clock: clock, Indexes: deploy.FirestoreIndexes, Faults: injector})
	if err != nil {
		return Result{}, err
	}
	ps, err := pubsubemu.Start(pubsubemu.Options{Clock: leases, PublishTime: clock.Now, Seed: cfg.Seed})
	if err != nil {
		return Result{}, errors.Join(err, fs.Close())
	}
	sim := &simulation{
		cfg: cfg, clock: clock, random: random, injector: injector, pubsub: ps,
		hosts:         connect.Config{Project: connect.EmulatorProject, FirestoreHost: fs.Addr(), PubSubHost: ps.Addr()},
		confirmations: fleetsim.NewConfirmations(), injected: map[string]int{}, impostors: newImpostors(cfg.Seed),
	}
	result, err := sim.run(ctx)
	return result, errors.Join(err, sim.close(), fs.Close(), ps.Close())
}

// simulation is one run.
type simulation struct {
	cfg           Config
	clock         *simclock.Clock
	random        *rand.Rand
	injector      *fsfault.Injector
	pubsub        *pubsubemu.Server
	hosts         connect.Config
	confirmations *fleetsim.Confirmations

	reliable  *connections // of the simulated world and the checker; no faults
	publisher *pubsubio.Publisher
	reader    *connections       // reads as the product does; no faults
	store     *firestoretx.Store // the checker's
	depots    []domain.Depot
	acks      *ackChecker
	drones    *fleetsim.Fleet
	hospitals *hospitals
	impostors *impostors

	managers   []*supervisor
	optimizers []*supervisor

	mu           sync.Mutex
	injected     map[string]int
	observations []invariant.Observation
	readings     []invariant.Reading
	decided      []int // decisions that each optimizer published
	maxHeap      uint64
}

func (sim *simulation) close() error {
	if sim.reliable == nil {
		return nil
	}
	if sim.reader == nil {
		return sim.reliable.close()
	}
	return errors.Join(sim.reader.close(), sim.reliable.close())
}

// open starts the simulated world. Nothing of the product runs yet.
func (sim *simulation) open(ctx context.Context) error {
	var err error
	if sim.reliable, err = dial(ctx, sim.hosts, "world"); err != nil {
		return err
	}
	if err := fleetlink.Prepare(ctx, sim.reliable.PubSub); err != nil {
		return err
	}
	if err := sim.reliable.ShareClock(ctx, sim.clock.Rate); err != nil {
		return err
	}
	world, err := fleetsim.NewWorld(fleetsim.WorldConfig{Drones: sim.cfg.Drones, Seed: sim.cfg.Seed, ChargingSlots: max(1, sim.cfg.Drones/3)})
	if err != nil {
		return err
	}
	if sim.cfg.Depots > 1 {
		shareDrones(world)
	}
	sim.depots = world.Depots
	if sim.reader, err = dial(ctx, sim.hosts, "world", sim.cfg.Interceptors...); err != nil {
		return err
	}
	sim.store = firestoretx.New(sim.reliable.Firestore, firestoretx.Config{Now: sim.clock.Now})
	if err := sim.store.Setup(ctx, world.Depots, world.Warehouses, world.Drones); err != nil {
		return err
	}
	sim.acks = newAckChecker(sim.store)
	sim.publisher = pubsubio.NewPublisher(sim.reliable.PubSub)
	sim.drones, err = fleetsim.NewFleet(world, fleetsim.FleetConfig{Hz: 0.5, Seed: sim.cfg.Seed, ClockError: 2 * time.Second},
		sim.clock, keyless{fleetlink.Publisher{Publisher: sim.publisher}}, sim.confirmations)
	if err != nil {
		return err
	}
	source, err := fleetsim.NewOrderSource(world, fleetsim.OrderConfig{Seed: sim.cfg.Seed}, sim.clock, fleetlink.Publisher{Publisher: sim.publisher}, sim.confirmations)
	if err != nil {
		return err
	}
	sim.hospitals = &hospitals{
		source: source, publisher: sim.publisher, confirmations: sim.confirmations, clock: sim.clock,
		random: rand.New(rand.NewPCG(sim.cfg.Seed, 0x6f726465)), perMinute: sim.cfg.OrdersPerDrone * float64(sim.cfg.Drones),
	}
	for i := range max(sim.cfg.Managers, 0) {
		skew := time.Duration((2*sim.random.Float64() - 1) * float64(maxSkew))
		clock, err := skewed(sim.clock.Rate, skew)
		if err != nil {
			return err
		}
		sim.managers = append(sim.managers, sim.supervise(fmt.Sprintf("manager %d", i), clock, sim.manage))
	}
	for i := range sim.cfg.Optimizers {
		s := sim.supervise(fmt.Sprintf("optimizer %d", i), sim.clock, func(ctx context.Context, c *connections, clock *simclock.Clock) error {
			return sim.optimize(ctx, i, c, clock)
		})
		if i < len(sim.cfg.Offsets) {
			s.extra = append(s.extra, clockOffset(sim.cfg.Offsets[i]).dialOptions()...)
		}
		sim.optimizers = append(sim.optimizers, s)
	}
	sim.decided = make([]int, sim.cfg.Optimizers)
	return nil
}

func (sim *simulation) supervise(name string, clock *simclock.Clock, work func(context.Context, *connections, *simclock.Clock) error) *supervisor {
	extra := slices.Concat(sim.cfg.Interceptors, sim.acks.dialOptions(name))
	return &supervisor{name: name, hosts: sim.hosts, clock: clock, log: sim.cfg.Log, work: work, extra: extra}
}

// skewed returns a clock that is ahead of rate.
func skewed(rate simclock.Rate, ahead time.Duration) (*simclock.Clock, error) {
	rate.Ahead += ahead
	return simclock.New(rate)
}

// workerConfig shortens the timeouts that run on machine time, because simulated
// outages are short on that clock too.
func workerConfig() pubsubio.Config {
	return pubsubio.Config{Lease: 400 * time.Millisecond, Shutdown: shutdown.StateManager(500 * time.Millisecond), MaxOutstanding: 2000}
}

// manage runs a State Manager until ctx ends.
func (sim *simulation) manage(ctx context.Context, c *connections, clock *simclock.Clock) error {
	cfg := manager.Config{Worker: workerConfig(), Foretelling: policy.DefaultForetelling()}
	cfg.Worker.RequireSender = sim.cfg.RequireSender
	if sim.cfg.Manager != nil {
		sim.cfg.Manager(&cfg)
	}
	m, err := manager.New(c.Clients, clock, cfg, sim.cfg.Log)
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// optimize runs optimizer number i until ctx ends.
func (sim *simulation) optimize(ctx context.Context, i int, c *connections, clock *simclock.Clock) error {
	locks, err := c.Clients.Locks(clock, sim.cfg.Log)
	if err != nil {
		return err
	}
	publisher := pubsubio.NewPublisher(c.PubSub)
	publish := fleetlink.Confirming(dispatch.PublishDecisions(publisher, wire.Protobuf), sim.confirmations)
	counted := func(ctx context.Context, decisions []domain.Decision) []error {
		errs := publish(ctx, decisions)
		sim.mu.Lock()
		sim.decided[i] += len(decisions)
		sim.mu.Unlock()
		return errs
	}
	store := firestoretx.New(c.Firestore, firestoretx.Config{Now: clock.Now})
	runner := dispatch.NewRunner(store, locks, counted, uuid.NewString, clock,
		dispatch.Config{AreaRadius: areaRadius, Interval: sim.cfg.Interval, SolveLimit: 20 * time.Millisecond, Strategy: solver.Greedy, Seed: sim.cfg.Seed, Holder: "faultsim"}, sim.cfg.Log, c.Meter)
	err = runner.Run(ctx)
	publisher.Stop()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return errors.Join(err, locks.Close(closing))
}

// keyless publishes the reports of every second drone without an ordering key, so
// that they may overtake each other. Nothing may depend on keys.
type keyless struct{ fleetsim.Publisher }

func (k keyless) Publish(ctx context.Context, topic string, data []byte, attrs map[string]string, orderingKey string) fleetsim.Result {
	if n := len(orderingKey); n > 0 && orderingKey[n-1]%2 == 0 {
		orderingKey = ""
	}
	return k.Publisher.Publish(ctx, topic, data, attrs, orderingKey)
}

// run starts everything, ends the faults after the duration, drains the backlog
// and checks the result.
func (sim *simulation) run(ctx context.Context) (Result, error) {
	if err := sim.open(ctx); err != nil {
		return Result{}, err
	}
	productCtx, stopManagers := context.WithCancel(ctx)
	defer stopManagers()
	optimizerCtx, stopOptimizers := context.WithCancel(ctx)
	defer stopOptimizers()
	worldCtx, stopWorld := context.WithCancel(ctx)
	defer stopWorld()
	watchCtx, stopWatching := context.WithCancel(ctx)
	defer stopWatching()

	var managers, optimizers, world, watchers errgroup.Group
	for _, s := range sim.managers {
		managers.Go(func() error { return s.run(productCtx) })
	}
	for _, s := range sim.optimizers {
		optimizers.Go(func() error { return s.run(optimizerCtx) })
	}
	world.Go(func() error { sim.drones.Run(worldCtx); return nil })
	world.Go(func() error { sim.hospitals.run(worldCtx); return nil })
	world.Go(func() error { sim.amend(worldCtx); return nil })
	watchers.Go(func() error { return sim.receiveCommands(watchCtx) })
	watchers.Go(func() error { sim.watch(watchCtx); return nil })

	var during errgroup.Group
	if sim.cfg.During != nil {
		during.Go(func() error { return sim.cfg.During(ctx, sim.hosts) })
	} else {
		during.Go(func() error { sim.carryOutPlan(ctx, stopWorld); return nil })
	}
	err := during.Wait()

	stopWorld()
	stopOptimizers()
	err = errors.Join(err, world.Wait(), optimizers.Wait())
	sim.publisher.Stop()
	began := time.Now()
	var complaints []string
	if sim.cfg.Managers < 0 { // During ran the managers and has stopped them: start one to drain
		s := sim.supervise("drain", sim.clock, sim.manage)
		managers.Go(func() error { return s.run(productCtx) })
	}
	if left := sim.drain(ctx); left > 0 {
		complaints = append(complaints, fmt.Sprintf("%d messages are unsettled after the last fault, and the backlog has not fallen for %s", left, drainPatience))
	}
	drained := time.Since(began)
	stopManagers()
	err = errors.Join(err, managers.Wait())
	stopWatching()
	err = errors.Join(err, watchers.Wait())
	if err != nil {
		return Result{}, err
	}
	r, err := sim.check(ctx)
	r.Complaints = append(r.Complaints, complaints...)
	r.Drained = drained
	return r, err
}

// slowest is how much more slowly than planned faults are injected at most.
const slowest = 8

// carryOutPlan injects the planned faults until the run has shown what it is for.
func (sim *simulation) carryOutPlan(ctx context.Context, stopWorld func()) {
	sim.carryOut(ctx, 1)
	if !sim.shown(ctx) {
		stopWorld() // or the backlog grows where a machine cannot keep up
	}
	for slower := time.Duration(2); slower <= slowest && ctx.Err() == nil && !sim.shown(ctx); slower *= 2 {
		sim.carryOut(ctx, slower)
	}
	sim.endPubSubFaults()
}

// shown reports whether the run has shown what it is for.
func (sim *simulation) shown(ctx context.Context) bool {
	if sim.cfg.Until == nil {
		return true
	}
	orders, err := sim.store.ListOrders(ctx, firestoretx.OrderFilter{}, firestoretx.Page{})
	if err != nil {
		return false
	}
	var soFar Result
	for _, o := range orders.Items {
		soFar.HandedOver += len(o.HandedOverBy)
	}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	soFar.Faults, soFar.History.Readings = maps.Clone(sim.injected), slices.Clone(sim.readings)
	return sim.cfg.Until(soFar)
}

// carryOut injects the planned faults and ends all of them after the duration, both slowed
// down by a factor. A repetition ends as soon as the run has shown what it is for.
func (sim *simulation) carryOut(ctx context.Context, slower time.Duration) {
	begun := sim.clock.Now()
	end := begun.Add(slower * sim.cfg.length())
	faulty, endFaults := context.WithCancel(ctx)
	var injecting sync.WaitGroup
	for _, s := range sim.cfg.planned() {
		s.at, s.lasts = slower*s.at, slower*s.lasts
		injecting.Go(func() {
			if sim.wait(faulty, begun.Add(s.at)) {
				sim.inject(faulty, ctx, s)
			}
		})
	}
	if slower == 1 {
		sim.wait(ctx, end)
	} else {
		sim.waitUntilShown(ctx, end)
	}
	endFaults()
	injecting.Wait()
}

// waitUntilShown waits until the run has shown what it is for, at most until end.
func (sim *simulation) waitUntilShown(ctx context.Context, end time.Time) {
	const pause = 5 * time.Second
	for sim.clock.Until(end) > 0 && !sim.shown(ctx) {
		if !sim.wait(ctx, sim.clock.Now().Add(pause)) {
			return
		}
	}
}

func (sim *simulation) wait(ctx context.Context, until time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-sim.clock.After(sim.clock.Until(until)):
		return true
	}
}

func (sim *simulation) endPubSubFaults() {
	sim.pubsub.Faults().Set(psfault.Plan{})
	sim.pubsub.Faults().EndOutage()
	for kind, n := range sim.pubsub.Faults().Counts() {
		sim.count("pubsub "+string(kind), n)
	}
}

func (sim *simulation) count(what string, n int) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.injected[what] += n
}

// inject carries out one planned fault; it ends early when faulty does.
func (sim *simulation) inject(faulty, ctx context.Context, s plannedFault) {
	sim.cfg.Log.DebugContext(ctx, "fault injected", slog.String("what", s.String()))
	last := func() { sim.wait(faulty, sim.clock.Now().Add(s.lasts)) }
	drone := domain.DroneID(fmt.Sprintf("DRONE-%03d", s.target%sim.cfg.Drones+1))
	injectDrone := func(fault fleetsim.Fault) {
		if sim.drones.Inject(drone, fault) == nil {
			sim.count(s.what, 1)
		}
	}
	switch {
	case s.rule != nil:
		rule := sim.injector.Add(*s.rule)
		last()
		rule.Remove()
		sim.count(s.what, rule.Fired())
		return
	case s.pubsub != nil:
		sim.pubsub.Faults().Set(*s.pubsub)
		sim.count(s.what, 1)
		return // lasts until the next one
	}
	switch s.what {
	case faultPubSubOutage:
		sim.count(s.what, 1)
		sim.pubsub.Faults().BeginOutage()
		last()
		sim.pubsub.Faults().EndOutage()
	case faultKillManager:
		if n := len(sim.managers); n > 0 {
			sim.managers[s.target%n].kill()
			sim.count(s.what, 1)
		}
	case faultFreezeManager:
		if n := len(sim.managers); n > 0 {
			thaw := sim.managers[s.target%n].freeze()
			last()
			thaw()
			sim.count(s.what, 1)
		}
	case faultFreezeOptimizer:
		thaw := sim.optimizers[s.target%len(sim.optimizers)].freeze()
		last()
		thaw()
		sim.count(s.what, 1)
	case faultRestartManager:
		if n := len(sim.managers); n > 0 {
			sim.managers[s.target%n].restart()
			sim.count(s.what, 1)
		}
	case faultKillOptimizer:
		sim.optimizers[s.target%len(sim.optimizers)].kill()
		sim.count(s.what, 1)
	case faultDroneSilent:
		injectDrone(fleetsim.Fault{Silent: 8 * s.lasts}) // long enough to lose contact
	case faultDroneDeaf:
		injectDrone(fleetsim.Fault{Deaf: 3 * s.lasts})
	case faultDroneBroken:
		injectDrone(fleetsim.Fault{Broken: 4 * s.lasts})
	case faultDroneBattery:
		low := float64(s.target % 25)
		injectDrone(fleetsim.Fault{Battery: &low})
	case faultGround:
		sim.command(ctx, s.what, func(o operator.Commands) error { return second(o.GroundDrone(ctx, drone, s.what)) })
		last()
		sim.command(ctx, s.what, func(o operator.Commands) error { return second(o.ReleaseDrone(ctx, drone, s.what)) })
	case faultRecall:
		sim.command(ctx, s.what, func(o operator.Commands) error {
			active, err := sim.store.Missions(ctx, domain.MissionActive, firestoretx.Page{})
			if err != nil || len(active) == 0 {
				return err
			}
			return second(o.RecallMission(ctx, active[s.target%len(active)].ID, s.what))
		})
	case faultMoveBorder:
		sim.moveBorder(ctx, false)
		last()
		sim.moveBorder(ctx, true)
	case faultPin:
		sim.pin(ctx, s, drone)
	case faultForgedDecisions:
		if err := sim.forge(ctx); err != nil && ctx.Err() == nil {
			sim.cfg.Log.WarnContext(ctx, "no decisions forged", slog.Any("err", err))
		}
	case faultForgedReports:
		if err := sim.forgeReports(ctx); err != nil && ctx.Err() == nil {
			sim.cfg.Log.WarnContext(ctx, "no reports forged", slog.Any("err", err))
		}
	case faultPoison:
		sim.hospitals.poison(ctx, s.target)
		sim.count(s.what, 1)
	}
}

// pin pins a waiting order to a drone, or forbids the drone. Nobody undoes it, so the
// order may wait for the rest of the run.
func (sim *simulation) pin(ctx context.Context, s plannedFault, drone domain.DroneID) {
	waiting, err := sim.store.ListOrders(ctx, firestoretx.OrderFilter{Status: domain.OrderPending}, firestoretx.Page{})
	if err != nil || len(waiting.Items) == 0 {
		return
	}
	order := waiting.Items[s.target%len(waiting.Items)].ID
	do := operator.Commands.PinOrder
	if s.target%2 == 1 {
		do = operator.Commands.ForbidDrone
	}
	sim.command(ctx, s.what, func(o operator.Commands) error { return second(do(o, ctx, order, drone, s.what)) })
}

// command carries out an operator's command, which the fleet's rules may refuse.
func (sim *simulation) command(ctx context.Context, what string, do func(operator.Commands) error) {
	err := do(operator.Commands{Store: sim.store, By: "faultsim"})
	if err != nil && ctx.Err() == nil {
		sim.cfg.Log.DebugContext(ctx, "no effect of an operator's command", slog.String("command", what), slog.Any("err", err))
		return
	}
	sim.count(what, 1)
}

func second[T any](_ T, err error) error { return err }

// receiveCommands hands mission commands to the simulated drones.
func (sim *simulation) receiveCommands(ctx context.Context) error {
	for ctx.Err() == nil {
		// Outages end Receive; the drones subscribe again.
		_ = fleetlink.ReceiveCommands(ctx, sim.reliable.PubSub, fleetlink.Missions,
			func(c domain.Command) { sim.drones.Deliver(c) }, func(error) {})
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// watch samples the drones' documents, what the areas' cycles read, and the size of the heap
// until ctx ends.
func (sim *simulation) watch(ctx context.Context) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	product := firestoretx.New(sim.reader.Firestore, firestoretx.Config{Now: sim.clock.Now})
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		drones, err := sim.store.Drones(ctx, "", firestoretx.Page{})
		sim.mu.Lock()
		sim.maxHeap = max(sim.maxHeap, mem.HeapAlloc)
		if err == nil {
			for _, d := range drones {
				sim.observations = append(sim.observations, invariant.Observation{DroneID: d.ID, LastUpdate: d.LastUpdate})
			}
		}
		sim.mu.Unlock()
		if len(sim.depots) > 1 {
			if r, err := readAreas(ctx, sim.store, product, sim.depots, areaRadius); err == nil {
				sim.mu.Lock()
				sim.readings = append(sim.readings, r)
				sim.mu.Unlock()
			}
		}
	}
}
