package dispatch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/genproto/googleapis/type/latlng"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

var depot = domain.Depot{ID: "DEPOT-1", Name: "Main", Position: domain.Position{Lat: 48.8566, Lon: 2.3522}}

// On a busy machine cycles decide the same here: the search is bounded in steps, and
// drones may be silent for long.
const (
	steps   = 100
	patient = time.Hour
)

// bench is a store with one idle drone, and the decisions that were published.
type bench struct {
	clients   *connect.Clients
	store     *firestoretx.Store
	locks     *firestorelock.Backend
	published []domain.Decision
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{clients: emutest.Clients(t)}
	b.store = firestoretx.New(b.clients.Firestore, firestoretx.Config{PlanUnregistered: true, Limits: policy.Limits{TopSpeedKmh: 1e9}}) // its drones are at their stops at once
	var err error
	if b.locks, err = firestorelock.New(b.clients.Firestore, firestorelock.Config{Logger: emutest.Log(t)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.locks.Close(context.Background()); err != nil {
			t.Errorf("close locks: %v", err)
		}
	})
	warehouse := domain.Warehouse{ID: "WH", Position: domain.Position{Lat: 48.87, Lon: 2.35}, ProductTypes: []string{"BLOOD"}, ColdStorage: true}
	if err := b.store.Setup(t.Context(), []domain.Depot{depot}, []domain.Warehouse{warehouse}, nil); err != nil {
		t.Fatal(err)
	}
	report := domain.Telemetry{DroneID: "D1", Timestamp: time.Now(), Position: depot.Position, Battery: 90, Status: domain.DroneIdle}
	if err := b.store.NewTelemetryApplier().Apply(t.Context(), []domain.Telemetry{report})[0]; err != nil {
		t.Fatal(err)
	}
	for id, product := range map[domain.OrderID]string{"SERVED": "BLOOD", "NOBODY-STOCKS-IT": "UNOBTAINIUM"} {
		req := domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{
			Priority: domain.PriorityHigh, ProductType: product, Delivery: domain.Position{Lat: 48.86, Lon: 2.36},
		}}
		if err := b.store.IngestOrder(t.Context(), req, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *bench) runner(t *testing.T, store dispatch.Store, ttl time.Duration) *dispatch.Runner {
	return b.publishing(t, store, ttl, b.collect)
}

// collect is a PublishFunc.
func (b *bench) collect(_ context.Context, decisions []domain.Decision) []error {
	b.published = append(b.published, decisions...)
	return make([]error, len(decisions))
}

// configured is runner with settings of the test's own.
func (b *bench) configured(t *testing.T, store dispatch.Store, cfg dispatch.Config) *dispatch.Runner {
	return dispatch.NewRunner(store, b.locks, b.collect, uuid.NewString, simclock.Real(), cfg, emutest.Log(t), b.clients.Meter)
}

func (b *bench) publishing(t *testing.T, store dispatch.Store, ttl time.Duration, publish dispatch.PublishFunc) *dispatch.Runner {
	cfg := dispatch.Config{Iterations: steps, LockTTL: ttl, Limits: policy.Limits{MaxSilence: patient}, Holder: "test"}
	return dispatch.NewRunner(store, b.locks, publish, uuid.NewString, simclock.Real(), cfg, emutest.Log(t), b.clients.Meter)
}

// F-OPT-03, F-OPT-04: a cycle publishes one complete decision per mission, and its
// record has the reason of every order it left.
func TestRunner_PublishesDecisionsAndRecordsTheCycle(t *testing.T) {
	b := newBench(t)
	cycle, err := b.runner(t, b.store, 15*time.Second).Once(t.Context(), depot.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.published) != 1 {
		t.Fatalf("published %+v", b.published)
	}
	d := b.published[0]
	if d.DroneID != "D1" || !slices.Equal(d.OrderIDs, []domain.OrderID{"SERVED"}) || d.CycleID != cycle.ID || d.ID == "" ||
		d.Fence != cycle.Fence || d.Fence == "" || !d.SnapshotTime.Equal(cycle.SnapshotTime) || d.SnapshotTime.IsZero() ||
		d.EstimatedBatteryConsumption <= 0 || d.EstimatedDurationMinutes <= 0 {
		t.Errorf("decision %+v of cycle %+v", d, cycle)
	}
	stored, err := b.store.Cycle(t.Context(), cycle.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := []domain.UnservedOrder{{
		OrderID: "NOBODY-STOCKS-IT", Reason: string(solver.NoCompatibleWarehouse), Obstacles: domain.Obstacles{Free: 1, Warehouse: 1},
	}}
	if stored.Outcome != domain.CyclePublished || stored.Missions != 1 || stored.Assigned != 1 || stored.Holder != "test" || !slices.Equal(stored.Unserved, want) {
		t.Errorf("recorded %+v", stored)
	}
	if locked, err := b.locks.IsLocked(t.Context(), domain.CycleLockKey(depot.ID)); err != nil || locked {
		t.Errorf("after the cycle the lock is held: %v, %v", locked, err)
	}
}

// F-OPT-04: the log and the record name a drone that cannot be planned, and why.
func TestRunner_LogsIgnoredDrones(t *testing.T) {
	b := newBench(t)
	lost := domain.Drone{ID: "D2", HomeDepotID: "GONE", Position: depot.Position}
	if err := b.store.Setup(t.Context(), nil, nil, []domain.Drone{lost}); err != nil {
		t.Fatal(err)
	}
	report := domain.Telemetry{DroneID: lost.ID, Timestamp: time.Now(), Position: depot.Position, Battery: 90, Status: domain.DroneIdle}
	if err := b.store.NewTelemetryApplier().Apply(t.Context(), []domain.Telemetry{report})[0]; err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	publish := func(_ context.Context, decisions []domain.Decision) []error { return make([]error, len(decisions)) }
	cfg := dispatch.Config{Iterations: steps, Limits: policy.Limits{MaxSilence: patient}}
	r := dispatch.NewRunner(b.store, b.locks, publish, uuid.NewString, simclock.Real(), cfg, slog.New(slog.NewTextHandler(&lines, nil)), b.clients.Meter)
	cycle, err := r.Once(t.Context(), depot.ID, nil)
	if err != nil || cycle.Drones != 2 || cycle.Missions != 1 {
		t.Fatalf("cycle %+v, %v", cycle, err)
	}
	if !strings.Contains(lines.String(), "id=D2") || !strings.Contains(lines.String(), "GONE") {
		t.Errorf("not named in the log:\n%s", &lines)
	}
	if len(cycle.LeftOut) != 1 || !strings.Contains(cycle.LeftOut[0], "drone D2") {
		t.Errorf("recorded: %q", cycle.LeftOut)
	}
}

// F-OPT-01, F-DEC-02: a fence counts for the depot whose lock issued it. If a drone
// moves to another depot while its decision is on the way, the lower fences of that
// depot do not become stale.
func TestRunner_KeepsFencesOfDepotsApartWhenADroneMoves(t *testing.T) {
	b := newBench(t)
	young := domain.Depot{ID: "DEPOT-2", Position: domain.Position{Lat: 48.86, Lon: 2.36}} // where the next order goes
	d1, d2 := domain.Drone{ID: "D1", HomeDepotID: depot.ID}, domain.Drone{ID: "D2", HomeDepotID: young.ID}
	if err := b.store.Setup(t.Context(), []domain.Depot{young}, nil, []domain.Drone{d1, d2}); err != nil {
		t.Fatal(err)
	}
	runner := b.runner(t, b.store, 15*time.Second)
	for range 3 { // so that its fence is higher
		if _, err := runner.Once(t.Context(), depot.ID, nil); err != nil {
			t.Fatal(err)
		}
	}
	d1.HomeDepotID = young.ID
	if err := b.store.Setup(t.Context(), nil, nil, []domain.Drone{d1}); err != nil {
		t.Fatal(err)
	}
	b.assignLast(t)

	b.drone(t, d2, domain.DroneIdle)
	req := domain.OrderRequest{ID: "NEXT", OrderContent: domain.OrderContent{
		Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: domain.Position{Lat: 48.86, Lon: 2.36},
	}}
	if err := b.store.IngestOrder(t.Context(), req, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := runner.Once(t.Context(), young.ID, nil); err != nil {
		t.Fatal(err)
	}
	b.assignLast(t)
	fences, err := b.store.Fences(t.Context())
	if err != nil || len(fences) != 2 || fences[depot.ID] <= fences[young.ID] {
		t.Errorf("fences %v, %v", fences, err)
	}
}

// assignLast encodes, decodes and applies the last decision.
func (b *bench) assignLast(t *testing.T) {
	t.Helper()
	data, attrs, err := wire.EncodeDecision(b.published[len(b.published)-1], wire.Protobuf)
	if err != nil {
		t.Fatal(err)
	}
	d, err := wire.DecodeDecision(data, attrs)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := b.store.AssignMission(t.Context(), d, policy.Delivery{PublishedAt: time.Now()})
	if err != nil || entry.Outcome != domain.OutcomeApplied {
		t.Fatalf("%s: %s %s, %v", d.ID, entry.Reason, entry.Detail, err)
	}
}

// F-OPT-01
func TestRunner_SkipsACycleThatAnotherProcessRuns(t *testing.T) {
	b := newBench(t)
	h, ok, err := lock.TryAcquire(t.Context(), b.locks, domain.CycleLockKey(depot.ID))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	defer h.Close()
	if _, err := b.runner(t, b.store, 15*time.Second).Once(t.Context(), depot.ID, nil); !errors.Is(err, dispatch.ErrLocked) {
		t.Errorf("error %v", err)
	}
	if n := b.clients.Meter.Cycles.Count(meter.CycleSkipped); n != 1 || len(b.published) > 0 {
		t.Errorf("%d cycles skipped, published %v", n, b.published)
	}
}

// thief deletes the lock while the cycle reads its snapshot, and returns when the
// cycle knows.
type thief struct {
	*firestoretx.Store
	clients *connect.Clients
	t       *testing.T
}

func (s thief) Snapshot(ctx context.Context, req firestoretx.SnapshotRequest) (domain.Snapshot, error) {
	snap, err := s.Store.Snapshot(ctx, req)
	if err == nil {
		s.steal(ctx, req.Depot)
	}
	return snap, err
}

func (s thief) steal(ctx context.Context, depot domain.DepotID) {
	if _, err := s.clients.Firestore.Collection("locks").Doc(domain.CycleLockKey(depot)).Delete(context.WithoutCancel(ctx)); err != nil {
		s.t.Errorf("steal the lock: %v", err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		s.t.Error("the cycle did not notice that its lease is lost")
	}
}

// lateThief deletes the lock while the cycle writes its record.
type lateThief struct{ thief }

func (s lateThief) Snapshot(ctx context.Context, req firestoretx.SnapshotRequest) (domain.Snapshot, error) {
	return s.Store.Snapshot(ctx, req)
}

func (s lateThief) RecordCycle(ctx context.Context, c domain.Cycle) error {
	err := s.Store.RecordCycle(ctx, c)
	if c.Outcome == domain.CyclePublishing {
		s.steal(ctx, c.DepotID)
	}
	return err
}

// losable is the TTL of leases that a thief takes away. A cycle notices the loss
// after a third of it; a busy machine must still be able to acquire the lock.
const losable = 6 * time.Second

// F-OPT-01: a cycle that loses its lease publishes nothing.
func TestRunner_PublishesNothingAfterItsLeaseIsLost(t *testing.T) {
	for name, store := range map[string]func(thief) dispatch.Store{
		"while it plans":       func(s thief) dispatch.Store { return s },
		"while it is recorded": func(s thief) dispatch.Store { return lateThief{s} },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			cycle, err := b.runner(t, store(thief{b.store, b.clients, t}), losable).Once(t.Context(), depot.ID, nil)
			if err == nil || cycle.Outcome != domain.CycleLeaseLost {
				t.Errorf("cycle %+v, error %v", cycle, err)
			}
			if len(b.published) > 0 {
				t.Errorf("published %+v", b.published)
			}
		})
	}
}

// F-OPT-01: a cycle that loses its lease while publishing stops.
func TestRunner_StopsPublishingWhenItsLeaseIsLost(t *testing.T) {
	b := newBench(t)
	runner := b.publishing(t, b.store, losable, func(ctx context.Context, decisions []domain.Decision) []error {
		thief{b.store, b.clients, t}.steal(ctx, depot.ID)
		return slices.Repeat([]error{context.Cause(ctx)}, len(decisions))
	})
	cycle, err := runner.Once(t.Context(), depot.ID, nil)
	if !errors.Is(err, lock.ErrOwnershipLost) || cycle.Outcome != domain.CycleLeaseLost || cycle.Missions != 0 {
		t.Errorf("cycle %+v, error %v", cycle, err)
	}
}

// F-OPT-02, F-OPT-04: a malformed document is recorded as left out, and all others
// are planned.
func TestRunner_PlansWithoutMalformedDocuments(t *testing.T) {
	b := newBench(t)
	malformed := map[string]map[string]any{
		"warehouses/BROKEN": {"position": "nowhere"},
		"drones/BROKEN":     {"status": "IDLE", "position": "nowhere"},
		"orders/BROKEN":     {"status": "PENDING", "held": false, "deliveryLocation": "nowhere", "createdAt": "today"},
	}
	for path, doc := range malformed {
		if _, err := b.clients.Firestore.Doc(path).Set(t.Context(), doc); err != nil {
			t.Fatal(err)
		}
	}
	cycle, err := b.runner(t, b.store, 15*time.Second).Once(t.Context(), depot.ID, nil)
	if err != nil || cycle.Missions != 1 || len(b.published) != 1 {
		t.Fatalf("cycle %+v, error %v, published %+v", cycle, err, b.published)
	}
	stored, err := b.store.Cycle(t.Context(), cycle.ID)
	if err != nil || len(stored.LeftOut) != len(malformed) {
		t.Fatalf("recorded %+v, %v", stored, err)
	}
	for path := range malformed {
		if !slices.ContainsFunc(stored.LeftOut, func(what string) bool { return strings.Contains(what, path) }) {
			t.Errorf("%s is not among %q", path, stored.LeftOut)
		}
	}
}

// recording is a store that keeps the records of cycles.
type recording struct {
	*firestoretx.Store
	cycles []domain.Cycle
	quiet  int // records of cycles without orders
}

func (s *recording) RecordQuietCycles(ctx context.Context, c domain.Cycle, n int) error {
	s.quiet++
	return s.Store.RecordQuietCycles(ctx, c, n)
}

func (s *recording) RecordCycle(ctx context.Context, c domain.Cycle) error {
	s.cycles = append(s.cycles, c)
	return s.Store.RecordCycle(ctx, c)
}

// withoutOrders deletes the orders of a bench. It returns a runner and the store of
// its records.
func (b *bench) withoutOrders(t *testing.T) (*recording, *dispatch.Runner) {
	t.Helper()
	for _, id := range []string{"SERVED", "NOBODY-STOCKS-IT"} {
		if _, err := b.clients.Firestore.Doc("orders/" + id).Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	store := &recording{Store: b.store}
	return store, b.runner(t, store, 15*time.Second)
}

// F-OPT-03: cycles without orders record obstacles only when they change.
func TestRunner_RecordsAnObstacleOnce(t *testing.T) {
	b := newBench(t)
	store, runner := b.withoutOrders(t)
	for _, step := range []struct {
		change  string // path of a document
		broken  bool
		records int // in all, after the change
		leftOut int // in the last record
	}{
		{"warehouses/BROKEN", false, 0, 0},
		{"warehouses/BROKEN", true, 1, 1},
		{"warehouses/WRONG", true, 2, 2},
		{"warehouses/BROKEN", false, 3, 1},
		{"warehouses/WRONG", false, 4, 0},
		{"warehouses/WRONG", true, 5, 1},
	} {
		doc := b.clients.Firestore.Doc(step.change)
		_, err := doc.Delete(t.Context())
		if step.broken {
			_, err = doc.Set(t.Context(), map[string]any{"position": "nowhere"})
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := runner.Once(t.Context(), depot.ID, nil); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(store.cycles); n != step.records || n > 0 && len(store.cycles[n-1].LeftOut) != step.leftOut {
			t.Fatalf("%+v: %d records: %+v", step, n, store.cycles)
		}
	}
}

// F-OPT-03: cycles that cannot read their snapshot record it only when the cause
// changes or is gone.
func TestRunner_RecordsAFailureOnce(t *testing.T) {
	b := newBench(t)
	store, runner := b.withoutOrders(t)
	good := map[string]any{"name": depot.Name, "position": &latlng.LatLng{Latitude: depot.Position.Lat, Longitude: depot.Position.Lon}}
	want := 0
	for _, depotIs := range []map[string]any{{"position": "nowhere"}, {"position": 7}, good, {"position": 7}, good} {
		if _, err := b.clients.Firestore.Doc("depots/"+string(depot.ID)).Set(t.Context(), depotIs); err != nil {
			t.Fatal(err)
		}
		_, well := depotIs["name"]
		for range 3 {
			if _, err := runner.Once(t.Context(), depot.ID, nil); (err == nil) != well {
				t.Fatalf("depot %v: %v", depotIs, err)
			}
		}
		want++
		if n := len(store.cycles); n != want || (store.cycles[n-1].Outcome == domain.CycleEmpty) != well {
			t.Fatalf("depot %v: %d records, want %d: %+v", depotIs, n, want, store.cycles)
		}
	}
}

// F-OPT-01: a depot with a malformed document has no cycles; the others do.
func TestRunner_SkipsMalformedDepots(t *testing.T) {
	b := newBench(t)
	if _, err := b.clients.Firestore.Doc("depots/BROKEN").Set(t.Context(), map[string]any{"position": "nowhere"}); err != nil {
		t.Fatal(err)
	}
	if ids, err := b.runner(t, b.store, 15*time.Second).Areas(t.Context()); err != nil || !slices.Equal(ids, []domain.DepotID{depot.ID}) {
		t.Errorf("depots %v, %v", ids, err)
	}
	named := dispatch.NewRunner(b.store, b.locks, nil, uuid.NewString, simclock.Real(), dispatch.Config{Depots: []domain.DepotID{"BROKEN"}}, emutest.Log(t), b.clients.Meter)
	if _, err := named.Areas(t.Context()); err == nil || !strings.Contains(err.Error(), "field position") {
		t.Errorf("error %v does not say what to correct", err)
	}
}

// F-OPT-01: a depot whose id is longer than a message can carry has no cycles, and
// the error names it.
func TestRunner_SkipsDepotsWithTooLongIDs(t *testing.T) {
	for _, long := range []int{domain.MaxIDBytes + 1, 600} {
		b := newBench(t)
		unnameable := domain.Depot{ID: domain.DepotID(strings.Repeat("d", long)), Name: "Long", Position: depot.Position}
		if err := b.store.Setup(t.Context(), []domain.Depot{unnameable}, nil, nil); err != nil {
			t.Fatal(err)
		}
		if ids, err := b.runner(t, b.store, 15*time.Second).Areas(t.Context()); err != nil || !slices.Equal(ids, []domain.DepotID{depot.ID}) {
			t.Errorf("depots %v, %v", ids, err)
		}
		cfg := dispatch.Config{Depots: []domain.DepotID{unnameable.ID}}
		named := dispatch.NewRunner(b.store, b.locks, nil, uuid.NewString, simclock.Real(), cfg, emutest.Log(t), b.clients.Meter)
		if _, err := named.Areas(t.Context()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("its id is %d bytes long; give at most 128", long)) {
			t.Errorf("error %v does not say what to correct", err)
		}
	}
}

func TestRunner_NamesAMissingDepot(t *testing.T) {
	b := newBench(t)
	r := dispatch.NewRunner(b.store, b.locks, nil, uuid.NewString, simclock.Real(), dispatch.Config{Depots: []domain.DepotID{"NOWHERE"}}, emutest.Log(t), b.clients.Meter)
	if _, err := r.Areas(t.Context()); err == nil || !strings.Contains(err.Error(), "NOWHERE") {
		t.Errorf("error %v", err)
	}
}

// F-OPT-03, F-OPT-04: plans use the server's time, as deadlines do; an error of the
// optimizer's clock makes no order late.
func TestRunner_PlansByTheServersTime(t *testing.T) {
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			b := newBench(t)
			clock, err := simclock.New(simclock.Rate{Epoch: time.Now(), Speed: 1, Ahead: off})
			if err != nil {
				t.Fatal(err)
			}
			locks, err := b.clients.Locks(clock, emutest.Log(t))
			if err != nil {
				t.Fatal(err)
			}
			defer locks.Close(context.Background())
			publish := func(_ context.Context, decisions []domain.Decision) []error {
				b.published = append(b.published, decisions...)
				return make([]error, len(decisions))
			}
			cfg := dispatch.Config{Iterations: steps, Limits: policy.Limits{MaxSilence: patient}}
			runner := dispatch.NewRunner(b.store, locks, publish, uuid.NewString, clock, cfg, emutest.Log(t), b.clients.Meter)
			memory := runner.NewMemory()
			for range 2 { // the second plans with the lead time of the first
				if _, err := runner.Once(t.Context(), depot.ID, memory); err != nil {
					t.Fatal(err)
				}
			}
			for _, d := range b.published {
				began, took := d.Route[0].ETA, time.Duration(d.EstimatedDurationMinutes*float64(time.Minute))
				if since := began.Sub(d.SnapshotTime); since < 0 || since > 5*time.Minute || took > 30*time.Minute {
					t.Errorf("the mission begins %s after the snapshot and takes %s", since, took)
				}
			}
			if len(b.published) != 2 {
				t.Errorf("published %+v", b.published)
			}
		})
	}
}

// F-OPT-04: an order counts as unserved once, and only after its area and those that it is
// handed over to had time to serve it. The cycles of other areas do not change that.
func TestRunner_CountsOrdersThatNoDepotServes(t *testing.T) {
	b := newBench(t)
	other := domain.Depot{ID: "DEPOT-2", Name: "Without drones", Position: depot.Position}
	if err := b.store.Setup(t.Context(), []domain.Depot{other}, nil, nil); err != nil {
		t.Fatal(err)
	}
	publish := func(_ context.Context, decisions []domain.Decision) []error { return make([]error, len(decisions)) }
	for interval, want := range map[time.Duration]int64{time.Hour: 0, time.Nanosecond: 2} {
		cfg := dispatch.Config{Iterations: steps, Interval: interval, Limits: policy.Limits{MaxSilence: patient}}
		r := dispatch.NewRunner(b.store, b.locks, publish, uuid.NewString, simclock.Real(), cfg, emutest.Log(t), b.clients.Meter)
		for _, id := range []domain.DepotID{depot.ID, other.ID} {
			if _, err := r.Once(t.Context(), id, nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := b.clients.Meter.Cycles.Unserved()["HIGH"]; got != want {
			t.Errorf("interval %s: %d HIGH orders unserved, want %d", interval, got, want)
		}
	}
}

// F-OWN-02: a cycle counts as remembered if this process ran the area's cycle before.
func TestRunner_CountsCyclesThatRememberTheOneBefore(t *testing.T) {
	b := newBench(t)
	one, other := b.runner(t, b.store, 15*time.Second), b.runner(t, b.store, 15*time.Second)
	ones, others := one.NewMemory(), other.NewMemory()
	for i, step := range []struct {
		runner *dispatch.Runner
		memory *dispatch.Memory
		want   int64
	}{
		{one, ones, 0}, {one, ones, 1}, {one, ones, 2}, {other, others, 2}, {one, ones, 2}, {one, ones, 3}, {one, nil, 3},
	} {
		if _, err := step.runner.Once(t.Context(), depot.ID, step.memory); err != nil {
			t.Fatal(err)
		}
		if got := b.clients.Meter.Cycles.Remembered.Value(); got != step.want {
			t.Errorf("cycle %d: %d are counted, want %d", i+1, got, step.want)
		}
	}
}
