package faultsim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	fsfault "github.com/dronefleet/dronefleet/emulator/firestore/fault"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	psfault "github.com/dronefleet/dronefleet/emulator/pubsub/fault"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/shutdown"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/sim/invariant"
	"github.com/dronefleet/dronefleet/solver"
)

// Config says what to run.
type Config struct {
	Seed       uint64
	Duration   time.Duration // machine time under fire; draining comes after it
	Speed      float64       // simulated seconds per second; default 40
	Managers   int           // State Managers in this process; default 2 to 4, by seed; -1 for none
	Optimizers int           // default 2
	Drones     int           // default 12
	// Strikes, if not nil, are carried out in the place of the seed's plan.
	Strikes []strike
	Log     *slog.Logger
	// Sabotage, if set, goes into every connection of the product: how broken
	// variants are made.
	Sabotage []grpc.DialOption
	// During, if set, runs in the place of the plan's end: the fire lasts until
	// it returns. It gets the servers' addresses.
	During func(ctx context.Context, hosts connect.Config) error
}

// Result is what a run left behind and what the judge says of it.
type Result struct {
	History invariant.History
	Verdict invariant.Report
	// Complaints are faults that no invariant covers.
	Complaints []string

	Faults      map[string]int // how often each kind of fault struck
	DeadLetters map[string]int // by reason
	Orders      map[domain.OrderStatus]int
	Applied     int // decisions
	Rejected    map[string]int
	Events      int
	Starts      int    // processes of the product started
	MaxHeap     uint64 // bytes, of everything in this process
	Drained     time.Duration
}

// pubsubSpeed is how fast leases run: fast enough that what a dead process held
// comes again within a run, slow enough that a live one can hold it.
const pubsubSpeed = 15

// missionsSubscription carries commands to the simulated drones.
const missionsSubscription = "missions-simulated-fleet"

// maxSkew is how far a manager's clock may be off, either way.
const maxSkew = 5 * time.Second

// Run runs one seed and has it judged.
func Run(ctx context.Context, cfg Config) (Result, error) {
	random := rand.New(rand.NewPCG(cfg.Seed, 0x73657475))
	if cfg.Speed == 0 {
		cfg.Speed = 40
	}
	if cfg.Managers == 0 {
		cfg.Managers = 2 + random.IntN(3)
	}
	if cfg.Optimizers == 0 {
		cfg.Optimizers = 2
	}
	if cfg.Drones == 0 {
		cfg.Drones = 12
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
	f := &fire{
		cfg: cfg, clock: clock, random: random, injector: injector, pubsub: ps,
		hosts:   connect.Config{Project: connect.EmulatorProject, FirestoreHost: fs.Addr(), PubSubHost: ps.Addr()},
		journal: fleetsim.NewJournal(), struck: map[string]int{},
	}
	result, err := f.run(ctx)
	return result, errors.Join(err, f.close(), fs.Close(), ps.Close())
}

// fire is one run.
type fire struct {
	cfg      Config
	clock    *simclock.Clock
	random   *rand.Rand
	injector *fsfault.Injector
	pubsub   *pubsubemu.Server
	hosts    connect.Config
	journal  *fleetsim.Journal

	outside   *connections // of the world and the judge
	publish   *pubsubio.Publisher
	store     *firestoretx.Store // the judge's
	witness   *witness
	drones    *fleetsim.Fleet
	hospitals *hospitals

	managers   []*slot
	optimizers []*slot

	mu           sync.Mutex
	struck       map[string]int
	observations []invariant.Observation
	maxHeap      uint64
}

func (f *fire) close() error {
	if f.outside == nil {
		return nil
	}
	return f.outside.close()
}

// open brings up the world. Nothing of the product runs yet.
func (f *fire) open(ctx context.Context) error {
	var err error
	if f.outside, err = dial(ctx, f.hosts, "world"); err != nil {
		return err
	}
	if err := pubsubio.Ensure(ctx, f.outside.PubSub); err != nil {
		return err
	}
	if err := pubsubio.EnsureSubscription(ctx, f.outside.PubSub, missionsSubscription, pubsubio.TopicMissions, true); err != nil {
		return err
	}
	if err := f.outside.ShareClock(ctx, f.clock.Rate); err != nil {
		return err
	}
	world, err := fleetsim.NewWorld(fleetsim.WorldConfig{Drones: f.cfg.Drones, Seed: f.cfg.Seed})
	if err != nil {
		return err
	}
	f.store = firestoretx.New(f.outside.Firestore, firestoretx.Config{Now: f.clock.Now})
	if err := f.store.Setup(ctx, world.Depots, world.Warehouses, world.Drones); err != nil {
		return err
	}
	f.witness = newWitness(f.store)
	f.publish = pubsubio.NewPublisher(f.outside.PubSub)
	f.drones, err = fleetsim.NewFleet(world, fleetsim.FleetConfig{Hz: 0.5, Seed: f.cfg.Seed, ClockError: 2 * time.Second},
		f.clock, simulated{f.publish}, f.journal)
	if err != nil {
		return err
	}
	source, err := fleetsim.NewOrderSource(world, fleetsim.OrderConfig{Seed: f.cfg.Seed}, f.clock, simulated{f.publish}, f.journal)
	if err != nil {
		return err
	}
	f.hospitals = &hospitals{
		source: source, publish: f.publish, journal: f.journal, clock: f.clock,
		random: rand.New(rand.NewPCG(f.cfg.Seed, 0x6f726465)), drones: f.cfg.Drones,
	}
	for i := range max(f.cfg.Managers, 0) {
		skew := time.Duration((2*f.random.Float64() - 1) * float64(maxSkew))
		clock, err := skewed(f.clock.Rate, skew)
		if err != nil {
			return err
		}
		f.managers = append(f.managers, f.slot(fmt.Sprintf("manager %d", i), clock, f.manage))
	}
	for i := range f.cfg.Optimizers {
		f.optimizers = append(f.optimizers, f.slot(fmt.Sprintf("optimizer %d", i), f.clock, f.optimize))
	}
	return nil
}

func (f *fire) slot(name string, clock *simclock.Clock, work func(context.Context, *connections, *simclock.Clock) error) *slot {
	extra := slices.Concat(f.cfg.Sabotage, f.witness.dialOptions())
	return &slot{name: name, hosts: f.hosts, clock: clock, log: f.cfg.Log, work: work, extra: extra}
}

// skewed is a clock that is ahead of rate by so much.
func skewed(rate simclock.Rate, ahead time.Duration) (*simclock.Clock, error) {
	rate.Epoch = rate.Epoch.Add(-time.Duration(float64(ahead) / (rate.Speed - 1)))
	return simclock.New(rate)
}

// workerConfig shortens what the machine's clock times, as the simulated outages
// are short on that clock too.
func workerConfig() pubsubio.Config {
	return pubsubio.Config{Lease: 400 * time.Millisecond, Shutdown: shutdown.StateManager(500 * time.Millisecond), MaxOutstanding: 2000}
}

// manage is the life of a State Manager.
func (f *fire) manage(ctx context.Context, c *connections, clock *simclock.Clock) error {
	m, err := manager.New(c.Clients, clock, manager.Config{Worker: workerConfig()}, f.cfg.Log)
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// optimize is the life of an optimizer.
func (f *fire) optimize(ctx context.Context, c *connections, clock *simclock.Clock) error {
	locks, err := c.Clients.Locks(clock, f.cfg.Log)
	if err != nil {
		return err
	}
	publisher := pubsubio.NewPublisher(c.PubSub)
	publish := dispatch.PublishDecisions(publisher, wire.Protobuf)
	confirmed := func(ctx context.Context, decisions []domain.Decision) []error {
		errs := publish(ctx, decisions)
		for i, d := range decisions {
			if errs[i] == nil {
				f.journal.Confirm(invariant.Message{Topic: pubsubio.TopicDecisions, DecisionID: d.ID, Timestamp: d.SnapshotTime})
			}
		}
		return errs
	}
	store := firestoretx.New(c.Firestore, firestoretx.Config{Now: clock.Now})
	runner := dispatch.NewRunner(store, locks, confirmed, uuid.NewString, clock,
		dispatch.Config{SolveLimit: 20 * time.Millisecond, Strategy: solver.Greedy, Seed: f.cfg.Seed, Holder: "underfire"}, f.cfg.Log, c.Meter)
	err = runner.Run(ctx)
	publisher.Stop()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return errors.Join(err, locks.Close(closing))
}

// simulated lets the simulated world publish.
type simulated struct{ *pubsubio.Publisher }

func (s simulated) Publish(ctx context.Context, topic string, data []byte, attrs map[string]string, orderingKey string) fleetsim.Result {
	return answer{s.Publisher.Publish(ctx, topic, data, attrs, orderingKey)}
}

type answer struct{ pubsubio.Published }

func (a answer) Get(ctx context.Context) (string, error) { return a.Wait(ctx) }

// run lets everything loose, heals it after the duration, drains it and has it
// judged.
func (f *fire) run(ctx context.Context) (Result, error) {
	if err := f.open(ctx); err != nil {
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
	for _, s := range f.managers {
		managers.Go(func() error { return s.run(productCtx) })
	}
	for _, s := range f.optimizers {
		optimizers.Go(func() error { return s.run(optimizerCtx) })
	}
	world.Go(func() error { f.drones.Run(worldCtx); return nil })
	world.Go(func() error { f.hospitals.run(worldCtx); return nil })
	watchers.Go(func() error { return f.receiveCommands(watchCtx) })
	watchers.Go(func() error { f.watch(watchCtx); return nil })

	var during errgroup.Group
	if f.cfg.During != nil {
		during.Go(func() error { return f.cfg.During(ctx, f.hosts) })
	} else {
		during.Go(func() error { f.burn(ctx); return nil })
	}
	err := during.Wait()

	stopWorld()
	stopOptimizers()
	err = errors.Join(err, world.Wait(), optimizers.Wait())
	f.publish.Stop()
	began := time.Now()
	var complaints []string
	if f.cfg.Managers < 0 { // whoever ran the managers has stopped them: one of ours drains
		s := f.slot("drain", f.clock, f.manage)
		managers.Go(func() error { return s.run(productCtx) })
	}
	if left := f.drain(ctx); left > 0 {
		complaints = append(complaints, fmt.Sprintf("%d messages are still unsettled %s after everything was healed", left, drainTimeout))
	}
	drained := time.Since(began)
	stopManagers()
	err = errors.Join(err, managers.Wait())
	stopWatching()
	err = errors.Join(err, watchers.Wait())
	if err != nil {
		return Result{}, err
	}
	r, err := f.judge(ctx)
	r.Complaints = append(r.Complaints, complaints...)
	r.Drained = drained
	return r, err
}

// burn carries out the plan, and heals everything at the end of the duration.
func (f *fire) burn(ctx context.Context) {
	length := time.Duration(float64(f.cfg.Duration) * f.cfg.Speed)
	end := f.clock.Now().Add(length)
	begun := f.clock.Now()
	healed, heal := context.WithCancel(ctx)
	var striking sync.WaitGroup
	plan := f.cfg.Strikes
	if plan == nil {
		plan = newPlan(f.cfg.Seed, length)
	}
	for _, s := range plan {
		striking.Go(func() {
			if f.wait(healed, begun.Add(s.at)) {
				f.strike(healed, ctx, s)
			}
		})
	}
	f.wait(ctx, end)
	heal()
	striking.Wait()
	f.injectorCalm()
}

func (f *fire) wait(ctx context.Context, until time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-f.clock.After(f.clock.Until(until)):
		return true
	}
}

func (f *fire) injectorCalm() {
	f.pubsub.Faults().Set(psfault.Plan{})
	f.pubsub.Faults().EndOutage()
	for kind, n := range f.pubsub.Faults().Counts() {
		f.count("pubsub "+string(kind), n)
	}
}

func (f *fire) count(what string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.struck[what] += n
}

// strike carries out one strike; it ends early when everything is healed.
func (f *fire) strike(healed, ctx context.Context, s strike) {
	f.cfg.Log.DebugContext(ctx, "strike", slog.String("what", s.String()))
	last := func() { f.wait(healed, f.clock.Now().Add(s.lasts)) }
	drone := domain.DroneID(fmt.Sprintf("DRONE-%03d", s.target%f.cfg.Drones+1))
	inject := func(fault fleetsim.Fault) {
		if f.drones.Inject(drone, fault) == nil {
			f.count(s.what, 1)
		}
	}
	switch {
	case s.rule != nil:
		rule := f.injector.Add(*s.rule)
		last()
		rule.Remove()
		f.count(s.what, rule.Fired())
		return
	case s.pubsub != nil:
		f.pubsub.Faults().Set(*s.pubsub)
		f.count(s.what, 1)
		return // until the next one
	}
	switch s.what {
	case strikePubSubOutage:
		f.count(s.what, 1)
		f.pubsub.Faults().BeginOutage()
		last()
		f.pubsub.Faults().EndOutage()
	case strikeKillManager:
		if n := len(f.managers); n > 0 {
			f.managers[s.target%n].kill()
			f.count(s.what, 1)
		}
	case strikeRestartManager:
		if n := len(f.managers); n > 0 {
			f.managers[s.target%n].restart()
			f.count(s.what, 1)
		}
	case strikeKillOptimizer:
		f.optimizers[s.target%len(f.optimizers)].kill()
		f.count(s.what, 1)
	case strikeDroneSilent:
		inject(fleetsim.Fault{Silent: 8 * s.lasts}) // long enough to lose contact
	case strikeDroneDeaf:
		inject(fleetsim.Fault{Deaf: 3 * s.lasts})
	case strikeDroneBroken:
		inject(fleetsim.Fault{Broken: 4 * s.lasts})
	case strikeDroneBattery:
		low := float64(s.target % 25)
		inject(fleetsim.Fault{Battery: &low})
	case strikePoison:
		f.hospitals.poison(ctx, s.target)
		f.count(s.what, 1)
	}
}

// receiveCommands hands mission commands to the simulated drones.
func (f *fire) receiveCommands(ctx context.Context) error {
	for ctx.Err() == nil {
		// Outages end Receive; the drones try again.
		_ = f.outside.PubSub.Subscriber(missionsSubscription).Receive(ctx, func(_ context.Context, msg *pubsub.Message) {
			if command, err := wire.DecodeCommand(msg.Data, msg.Attributes); err == nil {
				f.drones.Deliver(command)
			}
			msg.Ack()
		})
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// watch samples the drones' documents and the size of the heap until ctx ends.
func (f *fire) watch(ctx context.Context) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		drones, err := f.store.Drones(ctx, "", firestoretx.Page{})
		f.mu.Lock()
		f.maxHeap = max(f.maxHeap, mem.HeapAlloc)
		if err == nil {
			for _, d := range drones {
				f.observations = append(f.observations, invariant.Observation{DroneID: d.ID, LastUpdate: d.LastUpdate})
			}
		}
		f.mu.Unlock()
	}
}
