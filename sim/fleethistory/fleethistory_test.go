package fleethistory_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/fleethistory"
	"github.com/dronefleet/dronefleet/sim/invariant"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// I3, F-DLQ-01: an order that was dead-lettered and then discarded is not lost.
func TestDocuments_HoldDiscardedDeadLetters(t *testing.T) {
	store := firestoretx.New(emutest.Clients(t).Firestore, firestoretx.Config{})
	refused := invariant.Message{ID: "17", Topic: "orders", OrderID: "O1"}
	for _, lost := range []bool{true, false} {
		h, err := fleethistory.Documents(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		h.Confirmed = []invariant.Message{refused}
		if v := invariant.Check(h).Violations; len(v) > 0 != lost {
			t.Errorf("violations %v, want some: %t", v, lost)
		}
		if err := store.RecordDiscard(t.Context(), domain.Discard{ID: "orders-17", Topic: "orders", MessageID: "17", Reason: "INVALID"}); err != nil {
			t.Fatal(err)
		}
	}
}

// I1 to I12: a part that is not read would never break a rule.
func TestDocuments_HoldEveryPart(t *testing.T) {
	client, ctx, now := emutest.Clients(t).Firestore, t.Context(), time.Now()
	store := firestoretx.New(client, firestoretx.Config{})
	emutest.IssueFences(t, client, "7", "DEPOT")
	home, hospital := domain.Position{Lat: 48.8566, Lon: 2.3522}, domain.Position{Lat: 48.86, Lon: 2.36}
	err := errors.Join(
		store.Setup(ctx, []domain.Depot{{ID: "DEPOT", Position: home}}, nil, []domain.Drone{{ID: "D1", HomeDepotID: "DEPOT"}}),
		store.IngestOrder(ctx, domain.OrderRequest{ID: "O1", OrderContent: domain.OrderContent{
			Priority: domain.PriorityHigh, ProductType: "BLOOD", Pickup: &home, Delivery: hospital,
		}}, now),
		store.NewTelemetryApplier().Apply(ctx, []domain.Telemetry{{DroneID: "D1", Timestamp: now, Position: home, Battery: 90, Status: domain.DroneIdle}})[0],
		store.RecordDiscard(ctx, domain.Discard{ID: "orders-17", Topic: "orders", MessageID: "17", Reason: "INVALID"}),
	)
	if err != nil {
		t.Fatal(err)
	}
	seen := time.Now()
	d := domain.Decision{
		ID: "DEC", DepotID: "DEPOT", CycleID: "C1", Fence: "7", SnapshotTime: seen, DroneID: "D1", OrderIDs: []domain.OrderID{"O1"},
		Route: []domain.Waypoint{
			{Type: domain.WaypointWarehousePickup, OrderID: "O1", Position: home},
			{Type: domain.WaypointHospitalDelivery, OrderID: "O1", Position: hospital},
		},
		EstimatedBatteryConsumption: 5, EstimatedDurationMinutes: 3,
	}
	d.PayloadHash = wire.DecisionHash(d)
	applied, err := store.AssignMission(ctx, d, policy.Delivery{MessageID: "18", PublishedAt: seen, ReceivedAt: seen})
	if err != nil || applied.Outcome != domain.OutcomeApplied {
		t.Fatalf("decision %+v, %v", applied, err)
	}
	h, err := fleethistory.Documents(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	events := make(map[domain.EntityKind]bool)
	for _, e := range h.Events {
		events[e.Entity] = true
	}
	for part, read := range map[string]bool{
		"drones":       len(h.Drones) == 1 && h.Drones[0].CurrentMissionID == applied.MissionID,
		"orders":       len(h.Orders) == 1 && h.Orders[0].AssignedMissionID == applied.MissionID,
		"missions":     len(h.Missions) == 1 && h.Missions[0].ID == applied.MissionID,
		"ledger":       len(h.Ledger) == 1 && h.Ledger[0].MissionID == applied.MissionID,
		"events":       events[domain.EntityDrone] && events[domain.EntityOrder] && events[domain.EntityMission],
		"fences":       maps.Equal(h.Fences, map[domain.DepotID]string{"DEPOT": "7"}),
		"dead letters": slices.Equal(h.DeadLetters, []invariant.DeadLetter{{MessageID: "17", Reason: "INVALID"}}),
	} {
		if !read {
			t.Errorf("%s: not what is stored: %+v", part, h)
		}
	}
}

// I9: an unread dead letter would look like a lost message.
func TestDeadLetters_AreAllRead(t *testing.T) {
	clients := emutest.Clients(t)
	store, c := firestoretx.New(clients.Firestore, firestoretx.Config{}), clients.PubSub
	if err := pubsubio.Ensure(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	const letters = 10_500 // more than one review holds
	topic := c.Publisher(pubsubio.DeadLetterTopic(pubsubio.TopicTelemetry))
	defer topic.Stop()
	results := make([]*pubsub.PublishResult, letters)
	for i := range results {
		results[i] = topic.Publish(t.Context(), &pubsub.Message{Attributes: map[string]string{
			pubsubio.AttrReason: "FUTURE_TIMESTAMP", pubsubio.AttrMessageID: fmt.Sprint(i),
		}})
	}
	for _, r := range results {
		if _, err := r.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // it leaves them where they are
		h, read, err := fleethistory.Read(t.Context(), store, c)
		if err != nil {
			t.Fatal(err)
		}
		if len(h.DeadLetters) != len(read) {
			t.Errorf("the checker gets %d of %d letters", len(h.DeadLetters), len(read))
		}
		ids := map[string]bool{}
		for _, l := range read {
			ids[l.MessageID] = true
		}
		if len(ids) != letters {
			t.Errorf("read %d of %d letters", len(ids), letters)
		}
	}
}
