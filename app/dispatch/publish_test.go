package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver/model"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-OPT-03: a decision that cannot be encoded does not keep the others from being
// published. F-OPT-01: nothing is sent after the lease is lost.
func TestPublishDecisions_SkipsUnencodableDecisions(t *testing.T) {
	clients := emutest.Clients(t)
	if err := pubsubio.Ensure(t.Context(), clients.PubSub); err != nil {
		t.Fatal(err)
	}
	publisher := pubsubio.NewPublisher(clients.PubSub)
	t.Cleanup(publisher.Stop)
	var decisions []domain.Decision
	for _, id := range []domain.DroneID{"D1", "no text: \xff", "D3"} {
		decisions = append(decisions, domain.Decision{ID: "C-" + domain.DecisionID(id), DroneID: id, OrderIDs: []domain.OrderID{"O"}, SnapshotTime: time.Now()})
	}
	publish := dispatch.PublishDecisions(publisher, wire.Protobuf)
	over, end := context.WithCancel(t.Context())
	end()
	late := domain.Decision{ID: "C-LATE", DroneID: "LATE", OrderIDs: []domain.OrderID{"O"}, SnapshotTime: time.Now()}
	if errs := publish(over, []domain.Decision{late}); len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
		t.Errorf("errors %v after the end of the lease", errs)
	}
	errs := publish(t.Context(), decisions)
	if len(errs) != 3 || errs[0] != nil || errs[1] == nil || errs[2] != nil {
		t.Errorf("errors %v", errs)
	}
	ctx, enough := context.WithTimeout(t.Context(), time.Minute)
	defer enough()
	var mu sync.Mutex
	received := map[string]bool{}
	err := clients.PubSub.Subscriber(pubsubio.Subscription(pubsubio.TopicDecisions)).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		m.Ack()
		mu.Lock()
		defer mu.Unlock()
		if received[m.OrderingKey] = true; len(received) == 2 {
			enough()
		}
	})
	if err != nil || len(received) != 2 || !received["D1"] || !received["D3"] {
		t.Errorf("received decisions on %v, %v", received, err)
	}
}

// F-OPT-03: an error for each decision that the server refuses.
func TestPublishDecisions_WaitsForAnswers(t *testing.T) {
	publisher := pubsubio.NewPublisher(emutest.Clients(t).PubSub) // the topic does not exist
	t.Cleanup(publisher.Stop)
	var decisions []domain.Decision
	for _, id := range []domain.DroneID{"D1", "D2"} {
		decisions = append(decisions, domain.Decision{ID: "C-" + domain.DecisionID(id), DroneID: id, OrderIDs: []domain.OrderID{"O"}, SnapshotTime: time.Now()})
	}
	for i, err := range dispatch.PublishDecisions(publisher, wire.Protobuf)(t.Context(), decisions) {
		if status.Code(err) != codes.NotFound {
			t.Errorf("decision %d: %v, want NotFound", i, err)
		}
	}
}

// twoMissions is a bench with two drones and more orders than one of them can
// carry.
func twoMissions(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	light := []domain.Drone{{ID: "D1", PayloadCapacityKg: 1}, {ID: "D2", PayloadCapacityKg: 1}}
	if err := b.store.Setup(t.Context(), nil, nil, light); err != nil {
		t.Fatal(err)
	}
	report := domain.Telemetry{DroneID: "D2", Timestamp: time.Now(), Position: depot.Position, Battery: 90, Status: domain.DroneIdle}
	if err := b.store.NewTelemetryApplier().Apply(t.Context(), []domain.Telemetry{report})[0]; err != nil {
		t.Fatal(err)
	}
	for id, lat := range map[domain.OrderID]float64{"NORTH": 48.95, "SOUTH": 48.76} {
		req := domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{
			Priority: domain.PriorityCritical, ProductType: "BLOOD", WeightKg: 1, Delivery: domain.Position{Lat: lat, Lon: 2.35},
		}}
		if err := b.store.IngestOrder(t.Context(), req, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// F-OPT-03: a record counts what was published, not what was planned, and lists the
// orders of decisions that were not published.
func TestRunner_RecordsWhatWasPublished(t *testing.T) {
	b := twoMissions(t)
	var arrived, failed domain.Decision
	runner := b.publishing(t, b.store, 15*time.Second, func(_ context.Context, decisions []domain.Decision) []error {
		if len(decisions) != 2 {
			t.Fatalf("planned %+v, want two missions", decisions)
		}
		arrived, failed = decisions[1], decisions[0]
		return []error{errors.New("refused"), nil}
	})
	cycle, err := runner.Once(t.Context(), depot.ID, nil)
	if err == nil || !strings.Contains(err.Error(), "refused") || !strings.Contains(err.Error(), string(failed.DroneID)) {
		t.Errorf("error %v", err)
	}
	stored, err := b.store.Cycle(t.Context(), cycle.ID)
	if err != nil {
		t.Fatal(err)
	}
	if stored.Outcome != domain.CycleFailed || stored.Missions != 1 || stored.Assigned != len(arrived.OrderIDs) || stored.DistanceKm <= 0 || stored.EndedAt.IsZero() {
		t.Errorf("recorded %+v", stored)
	}
	for _, id := range failed.OrderIDs {
		if !slices.Contains(stored.Unserved, domain.UnservedOrder{OrderID: id, Reason: "publish_failed"}) {
			t.Errorf("order %s of an unpublished decision is not among %+v", id, stored.Unserved)
		}
	}
}

// F-OPT-03: a cycle is recorded before it publishes, so that auditors find it even if
// the optimizer dies.
func TestRunner_RecordsACycleBeforeItPublishes(t *testing.T) {
	b := newBench(t)
	var before []domain.Cycle
	runner := b.publishing(t, b.store, 15*time.Second, func(ctx context.Context, decisions []domain.Decision) []error {
		found, err := b.store.ListCycles(ctx, "", firestoretx.Page{})
		if before = found.Items; err != nil {
			t.Error(err)
		}
		return make([]error, len(decisions))
	})
	cycle, err := runner.Once(t.Context(), depot.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(before) != 1 || before[0].ID != cycle.ID || before[0].Outcome != domain.CyclePublishing || before[0].Fence != cycle.Fence ||
		before[0].Holder != "test" || before[0].Orders != 2 || before[0].Missions != 0 || !before[0].EndedAt.IsZero() {
		t.Errorf("recorded while it published: %+v", before)
	}
	after, err := b.store.Cycle(t.Context(), cycle.ID)
	if err != nil || after.Outcome != domain.CyclePublished || after.Missions != 1 || after.Detail != "" || after.EndedAt.IsZero() {
		t.Errorf("recorded afterwards: %+v, %v", after, err)
	}
}

// unrecorded is a store that cannot record a cycle.
type unrecorded struct{ *firestoretx.Store }

func (unrecorded) RecordCycle(context.Context, domain.Cycle) error { return errors.New("no record") }

// F-OPT-03: a cycle that cannot be recorded publishes nothing.
func TestRunner_PublishesNothingWithoutARecord(t *testing.T) {
	b := newBench(t)
	cycle, err := b.runner(t, unrecorded{b.store}, 15*time.Second).Once(t.Context(), depot.ID, nil)
	if err == nil || cycle.Outcome != domain.CycleFailed || cycle.Missions != 0 || len(b.published) > 0 {
		t.Errorf("cycle %+v, error %v, published %+v", cycle, err, b.published)
	}
}

// F-OPT-03: if no decision of a large plan can be published, the record still fits a
// document and lists all their orders.
func TestRunner_RecordsOrdersOfUnpublishedDecisions(t *testing.T) {
	b := newBench(t)
	const missions = 40
	now, applier := time.Now(), b.store.NewTelemetryApplier()
	drones := []domain.Drone{{ID: "D1", PayloadCapacityKg: 1}}
	var reports []domain.Telemetry
	for i := range missions {
		id := domain.DroneID(fmt.Sprint("LIGHT-", i))
		drones = append(drones, domain.Drone{ID: id, PayloadCapacityKg: 1})
		reports = append(reports, domain.Telemetry{DroneID: id, Timestamp: now, Position: depot.Position, Battery: 90, Status: domain.DroneIdle})
		req := domain.OrderRequest{ID: domain.OrderID(fmt.Sprint("O-", i)), OrderContent: domain.OrderContent{
			Priority: domain.PriorityCritical, ProductType: "BLOOD", WeightKg: 1, Delivery: domain.Position{Lat: 48.9, Lon: 2.30 + 0.002*float64(i)},
		}}
		if err := b.store.IngestOrder(t.Context(), req, now); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.store.Setup(t.Context(), nil, nil, drones); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(applier.Apply(t.Context(), reports)...); err != nil {
		t.Fatal(err)
	}
	var planned []domain.Decision
	outage := errors.New("no answer" + strings.Repeat(" from Pub/Sub", 3000))
	runner := b.publishing(t, b.store, 15*time.Second, func(_ context.Context, decisions []domain.Decision) []error {
		planned = decisions
		return slices.Repeat([]error{outage}, len(decisions))
	})
	cycle, err := runner.Once(t.Context(), depot.ID, nil)
	if err == nil || len(planned) < missions/2 {
		t.Fatalf("error %v, planned %v", err, planned)
	}
	stored, err := b.store.Cycle(t.Context(), cycle.ID)
	if err != nil || stored.Outcome != domain.CycleFailed || stored.Missions != 0 || !strings.Contains(stored.Detail, "no answer") {
		t.Fatalf("recorded %s with %d missions, detail %.99q, %v", stored.Outcome, stored.Missions, stored.Detail, err)
	}
	for _, d := range planned {
		if !slices.Contains(stored.Unserved, domain.UnservedOrder{OrderID: d.OrderIDs[0], Reason: "publish_failed"}) {
			t.Errorf("order %s is not recorded", d.OrderIDs[0])
		}
	}
}

// F-OPT-03, F-WIRE-03: the solver's limits are within those of a decision.
func TestDecisionsOf_FitTheWire(t *testing.T) {
	if model.MaxOrdersPerDecision > wire.MaxOrdersPerDecision || model.MaxWaypointsPerDecision > wire.MaxWaypointsPerDecision {
		t.Error("the solver's limits exceed the wire's")
	}
}
