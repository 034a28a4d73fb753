package capacity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

// Trial is a fleet to fly in simulated time: every drone reports once a second, and is written as by default.
type Trial struct {
	Areas, Drones     int // of all areas
	Duration          time.Duration
	OrdersPerDroneDay float64
	Batch             int // drones whose reports come together
	Iterations        int // steps of each search
	Seed              uint64
}

// Works are the names of what is counted. The product's own names are used where it has some.
const (
	workTelemetry = pubsubio.TopicTelemetry
	workOrders    = pubsubio.TopicOrders
	workDecisions = pubsubio.TopicDecisions
	workOutbox    = "outbox"
	workSweep     = "sweep"
	workSweepAll  = "sweep of everything"
	workCycle     = "cycle"
	workLearn     = "learn"
	workCensus    = "census"
	workDepots    = "depots" // a State Manager looks for depots without cycles
	workPlaces    = "places" // a process checks that it has seen all changes of places
	workLost      = "lost"   // a try for a lock that another process holds
	workProbes    = "probes" // of /readyz
	workMembers   = "members"
)

// Sample is what a trial counted.
type Sample struct {
	Trial  Trial
	Work   Work
	Counts map[Kind]Count
	// Times are writes of fields that hold a time, by "collection.field", and of ranges of indexes, by
	// "collection.fields/values".
	Times map[string]float64
	// PubSub are the bytes of a message with its attributes, by topic.
	PubSub map[string]float64
	// LargestRequest is in bytes; Hottest is the writes a second of the document of each
	// collection that has the most.
	LargestRequest int
	Hottest        map[string]float64
	// PerRead is the seconds that a document of a query takes, with the embedded server's share.
	PerRead float64
}

// begin is when every trial begins.
var begin = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

// trial is a fleet in the air.
type trial struct {
	Trial
	clock   *clockwork.FakeClock
	store   *firestoretx.Store
	locks   lock.Backend
	tally   *Tally
	work    Work
	sweeper *firestoretx.Sweeper
	drones  []flyer
	byID    map[domain.DroneID]int
	shards  []*firestoretx.TelemetryApplier
	depots  []domain.DepotID
	owed    []domain.Mission
	open    int // orders
	decided []domain.Decision
	sizes   map[string][]float64 // of messages
}

// flyer is a simulated drone and the commands on their way to it.
type flyer struct {
	fleetsim.Drone
	bound    bool              // it says so
	route    []domain.Waypoint // of the mission that it was sent
	commands []domain.Command
}

// Run flies a trial over an embedded Firestore.
func Run(ctx context.Context, cfg Trial) (_ Sample, err error) {
	t := &trial{Trial: cfg, clock: clockwork.NewFakeClockAt(begin), tally: NewTally(), byID: map[domain.DroneID]int{}, sizes: map[string][]float64{}}
	server, err := firestoreemu.Start(firestoreemu.Options{InProcess: true, Clock: t.clock, Indexes: deploy.FirestoreIndexes, Retention: time.Minute})
	if err != nil {
		return Sample{}, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	client, err := server.Client(ctx, "capacity", append(t.tally.DialOptions(), firestorelock.DialOption())...)
	if err != nil {
		return Sample{}, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := t.fly(ctx, client); err != nil {
		return Sample{}, err
	}
	s := t.sample()
	s.PerRead, err = t.perRead(ctx)
	return s, err
}

// perRead times queries of all drones.
func (t *trial) perRead(ctx context.Context) (float64, error) {
	fastest := math.Inf(1)
	for range 5 {
		began := time.Now()
		drones, err := t.store.Drones(ctx, "", firestoretx.Page{})
		if err != nil {
			return 0, err
		}
		fastest = min(fastest, time.Since(began).Seconds()/float64(len(drones)))
	}
	return fastest, nil
}

func (t *trial) fly(ctx context.Context, client *firestore.Client) error {
	clock := simclock.ByHand(t.clock)
	quiet := slog.New(slog.DiscardHandler)
	var err error
	if t.locks, err = firestorelock.New(client, firestorelock.Config{Clock: clock.ForLocks(), Logger: quiet}); err != nil {
		return err
	}
	t.store = firestoretx.New(client, firestoretx.Config{
		Now: t.clock.Now, PlanUnregistered: true, Foretelling: policy.DefaultForetelling(),
		Owed:      func(_ context.Context, m domain.Mission) { t.owed = append(t.owed, m) },
		Delivered: func(context.Context, domain.Order) { t.open-- },
	})
	t.sweeper = t.store.NewSweeper()
	world, err := t.world()
	if err != nil {
		return err
	}
	if err := t.store.Setup(ctx, world.Depots, world.Warehouses, world.Drones); err != nil {
		return err
	}
	source, err := fleetsim.NewOrderSource(world, fleetsim.OrderConfig{PerMinute: t.OrdersPerDroneDay * float64(t.Drones) / (24 * 60), Seed: t.Seed}, t.clock, nil, nil)
	if err != nil {
		return err
	}
	for _, d := range world.Depots {
		t.depots = append(t.depots, d.ID)
	}
	for i, d := range world.Drones {
		t.drones = append(t.drones, flyer{Drone: fleetsim.NewDrone(d, world.Depots[i%len(world.Depots)].Position)})
		t.byID[d.ID] = i
	}
	for range shards {
		t.shards = append(t.shards, t.store.NewTelemetryApplier())
	}
	random := rand.New(rand.NewPCG(t.Seed, 0))
	runner := dispatch.NewRunner(learning{t.store, &t.work}, contended{t.locks, &t.work}, t.publish, func() string { return fmt.Sprintf("%016x", random.Uint64()) }, clock,
		dispatch.Config{LockEachCycle: true, Iterations: t.Iterations, Seed: t.Seed, Holder: "capacity"}, quiet, meter.New())
	memories := map[domain.DepotID]*dispatch.Memory{}
	for _, id := range t.depots {
		memories[id] = runner.NewMemory()
	}
	// A drone's first report makes it idle; it does not count towards the day. They begin one after the other: so
	// their heartbeats come.
	beat := int(policy.DefaultForetelling().Heartbeat.Seconds())
	for phase := range beat {
		t.clock.Advance(time.Second)
		if err := t.report(ctx, func(i int) bool { return i%beat <= phase }); err != nil {
			return err
		}
	}
	defer t.followPlaces(ctx)()
	t.work, t.tally.counts, t.tally.times, t.tally.documents = Work{}, map[Kind]Count{}, map[string]float64{}, map[string]float64{}
	next := t.clock.Now().Add(source.Pause())
	for second := 1; second <= int(t.Duration.Seconds()); second++ {
		t.clock.Advance(time.Second)
		if err := t.report(ctx, func(int) bool { return true }); err != nil {
			return err
		}
		for ; !next.After(t.clock.Now()); next = next.Add(source.Pause()) {
			if err := t.order(ctx, source.Next()); err != nil {
				return err
			}
		}
		if err := t.periodic(ctx, second, runner, memories); err != nil {
			return err
		}
		if err := t.decide(ctx); err != nil {
			return err
		}
	}
	return nil
}

// followPlaces follows the places, and returns what ends it once they are known.
func (t *trial) followPlaces(ctx context.Context) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = t.store.FollowPlaces(meter.WithOperation(ctx, workPlaces)) // until it is told to stop
	}()
	for !t.store.FollowsPlaces() {
		select {
		case <-ended:
			return stop // the counts will tell
		case <-time.After(time.Millisecond):
		}
	}
	return func() { stop(); <-ended }
}

// world has areas far from each other, each with a depot and five warehouses that stock everything.
func (t *trial) world() (*fleetsim.World, error) {
	var cfg fleetsim.WorldConfig
	cfg.Drones, cfg.Seed = t.Drones, t.Seed
	for i := range t.Areas {
		at := domain.Position{Lat: 10 + float64(i%20)*2, Lon: float64(i/20) * 2}
		id := fmt.Sprintf("DEPOT-%03d", i)
		cfg.Depots = append(cfg.Depots, domain.Depot{ID: domain.DepotID(id), Name: id, Position: at, Capacity: t.Drones})
		for k := range warehousesPerArea {
			cfg.Warehouses = append(cfg.Warehouses, domain.Warehouse{
				ID: domain.WarehouseID(fmt.Sprintf("WH-%03d-%d", i, k)), Name: "Warehouse", Position: at.Towards(domain.Position{Lat: at.Lat + 1, Lon: at.Lon + float64(k) - 2}, 1500),
				ProductTypes: []string{"BLOOD", "MEDICINE", "VACCINE", "MEDICAL_DEVICE"}, ColdStorage: true,
			})
		}
	}
	return fleetsim.NewWorld(cfg)
}

// report has drones report, and commits as the shards of a State Manager do: what is urgent at
// once, positions together.
func (t *trial) report(ctx context.Context, reports func(i int) bool) error {
	ctx = meter.WithOperation(ctx, workTelemetry)
	now := t.clock.Now()
	moves := make([][]domain.Telemetry, len(t.shards))
	idle, bound := 0, 0
	for i := range t.drones {
		if !reports(i) {
			continue
		}
		d := &t.drones[i]
		d.Drone = d.After(time.Second)
		for _, c := range d.commands {
			d.Drone, _ = d.Obey(c, now)
			d.route = c.Mission.Route
		}
		d.commands = nil
		var report domain.Telemetry
		d.Drone, report = d.Report(now)
		if d.bound = report.MissionID != ""; d.bound {
			bound++
			t.work.Near += d.near(report)
		}
		t.work.Reports++
		if report.Status == domain.DroneIdle {
			idle++
		}
		if i%50 == 0 {
			if err := t.measure(workTelemetry)(wire.EncodeTelemetry(report, wire.Protobuf)); err != nil {
				return err
			}
		}
		shard := i % len(t.shards)
		if t.shards[shard].Urgent(report) {
			if err := t.apply(ctx, shard, []domain.Telemetry{report}); err != nil {
				return err
			}
			continue
		}
		moves[shard] = append(moves[shard], report)
	}
	for i, reports := range moves {
		for some := range slices.Chunk(reports, t.Batch) {
			if err := t.apply(ctx, i, some); err != nil {
				return err
			}
		}
	}
	t.work.Idle, t.work.Bound, t.work.Open = float64(idle), float64(bound), float64(t.open)
	t.work.idle += float64(idle)
	t.work.bound += float64(bound)
	t.work.open += float64(t.open)
	return nil
}

// apply applies reports, and counts a commit if any was written.
func (t *trial) apply(ctx context.Context, shard int, reports []domain.Telemetry) error {
	before := t.tally.calls(workTelemetry)
	err := failed(t.shards[shard].Apply(ctx, reports))
	if t.tally.calls(workTelemetry) > before {
		t.work.Commits++
	}
	return err
}

// near is 1 if a drone reports from near a stop that it has ahead.
func (d *flyer) near(report domain.Telemetry) float64 {
	m := domain.Mission{Route: d.route}
	if report.CompletedStops != nil {
		m.ReachedStops = *report.CompletedStops
	}
	if policy.Approaches(&m, report.Position) {
		return 1
	}
	return 0
}

// failed are the failures of reports. A rejection is an answer.
func failed(errs []error) error {
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool {
		_, rejected := policy.ReasonOf(err)
		return err == nil || rejected
	})...)
}

// measure notes the size of a message.
func (t *trial) measure(topic string) func(data []byte, attrs map[string]string, err error) error {
	return func(data []byte, attrs map[string]string, err error) error {
		size := len(data) + messageOverhead
		for name, value := range attrs {
			size += len(name) + len(value)
		}
		t.sizes[topic] = append(t.sizes[topic], float64(size))
		return err
	}
}

func (t *trial) order(ctx context.Context, req domain.OrderRequest) error {
	t.work.Orders++
	t.open++
	now := t.clock.Now()
	req.CreatedAt = now
	return errors.Join(t.measure(workOrders)(wire.EncodeOrder(req, wire.Protobuf)),
		t.store.IngestOrder(meter.WithOperation(ctx, workOrders), req, now))
}

// periodic does what is done every few seconds.
func (t *trial) periodic(ctx context.Context, second int, runner *dispatch.Runner, memories map[domain.DepotID]*dispatch.Memory) error {
	var err error
	every := func(interval time.Duration, work string, do func(context.Context) error) {
		if err == nil && second%int(interval.Seconds()) == 0 {
			if err = do(meter.WithOperation(ctx, work)); err != nil {
				err = fmt.Errorf("%s: %w", work, err)
			}
		}
	}
	areas := float64(t.Areas)
	every(sweepEvery, workSweep, t.sweep)
	every(5*time.Minute, workSweepAll, t.sweepAll) // more often than the product does, to be counted
	every(cycleEvery, workDepots, func(ctx context.Context) error {
		t.work.Watches++
		t.work.WatchedAreas += areas
		_, err := t.store.IdleDepots(ctx, t.clock.Now().Add(-3*cycleEvery))
		return err
	})
	every(censusEvery, workCensus, func(ctx context.Context) error {
		t.work.Censuses++
		_, err := t.store.Census(ctx)
		return err
	})
	every(cycleEvery, workCycle, func(ctx context.Context) error {
		for _, id := range t.depots {
			c, err := runner.Once(ctx, id, memories[id])
			if err != nil {
				return err
			}
			t.work.Cycles++
			t.work.Taken++
			t.work.Searches += min(1, float64(c.Orders))
			t.work.ReadWaiting += float64(c.Orders)
		}
		t.work.ReadIdle, t.work.ReadBound = t.work.ReadIdle+t.work.Idle, t.work.ReadBound+t.work.Bound
		return nil
	})
	return err
}

// sweep sweeps what is due and lists the owed commands.
func (t *trial) sweep(ctx context.Context) error {
	t.work.Sweeps++
	_, unsent := t.store.OwedCommands(ctx, 5*time.Second)
	_, err := t.sweeper.Due(ctx, nil, nil)
	return errors.Join(err, unsent)
}

// sweepAll sweeps everything.
func (t *trial) sweepAll(ctx context.Context) error {
	t.work.SweepsAll++
	t.work.SweptIdle += t.work.Idle
	t.work.SweptBound += t.work.Bound
	t.work.SweptOpen += t.work.Open
	t.work.SweptAreas += float64(t.Areas)
	_, corrected, err := t.sweeper.All(ctx, nil)
	if corrected > 0 {
		err = errors.Join(err, fmt.Errorf("dueAt of %d documents was wrong", corrected))
	}
	return err
}

// publish takes a cycle's decisions, as Pub/Sub does.
func (t *trial) publish(_ context.Context, decisions []domain.Decision) []error {
	errs := make([]error, len(decisions))
	for i, d := range decisions {
		errs[i] = t.measure(workDecisions)(wire.EncodeDecision(d, wire.Protobuf))
	}
	t.decided = append(t.decided, decisions...)
	return errs
}

// decide applies decisions and sends their commands, which arrive with the next report.
func (t *trial) decide(ctx context.Context) error {
	for _, d := range t.decided {
		t.work.Decisions++
		if _, err := t.store.AssignMission(meter.WithOperation(ctx, workDecisions), d, policy.Delivery{MessageID: string(d.ID)}); err != nil {
			return err
		}
	}
	t.decided = nil
	if len(t.owed) == 0 {
		return nil
	}
	for _, m := range t.owed {
		c := m.Command()
		if err := t.measure(pubsubio.TopicMissions)(wire.EncodeCommand(c, wire.Protobuf)); err != nil {
			return err
		}
		i := t.byID[m.DroneID]
		t.drones[i].commands = append(t.drones[i].commands, c)
	}
	owed := t.owed
	t.owed = nil
	return t.store.MarkCommandsPublished(meter.WithOperation(ctx, workOutbox), owed)
}

// contended are locks that another process wants as well: while one holds a lock, another tries.
type contended struct {
	lock.Backend
	work *Work
}

// Acquire implements lock.Backend.
func (c contended) Acquire(ctx context.Context, req lock.AcquireRequest) (lock.AcquireResult, error) {
	res, err := c.Backend.Acquire(ctx, req)
	if err != nil || !res.OK {
		return res, err
	}
	c.work.LostTries++
	req.LockID = lock.NewLockID()
	if again, err := c.Backend.Acquire(meter.WithOperation(ctx, workLost), req); err != nil || again.OK {
		return res, errors.Join(err, errors.New("two processes hold a lock"))
	}
	return res, nil
}

// learning is a store that counts how often it is asked for what was learned.
type learning struct {
	*firestoretx.Store
	work *Work
}

// LearnedIn implements dispatch.Store.
func (s learning) LearnedIn(ctx context.Context, scope domain.LearningScope) (domain.Learned, []error, error) {
	l, malformed, err := s.Store.LearnedIn(ctx, scope)
	s.work.Looks++
	return l, malformed, err
}

func (t *trial) sample() Sample {
	seconds := t.Duration.Seconds()
	w := &t.work
	w.Seconds = seconds
	w.Idle, w.Bound, w.Open = w.idle/seconds, w.bound/seconds, w.open/seconds
	w.Checks = t.tally.counts[Kind{workPlaces, ""}].Calls
	s := Sample{Trial: t.Trial, Work: *w, Counts: maps.Clone(t.tally.counts), Times: maps.Clone(t.tally.times), PubSub: map[string]float64{}, LargestRequest: t.tally.largest, Hottest: map[string]float64{}}
	for topic, sizes := range t.sizes {
		for _, size := range sizes {
			s.PubSub[topic] += size / float64(len(sizes))
		}
	}
	for name, n := range t.tally.documents {
		c := collectionOf(name)
		s.Hottest[c] = max(s.Hottest[c], n/seconds)
	}
	return s
}
