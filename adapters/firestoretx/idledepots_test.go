package firestoretx_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-OPT-06: a depot is idle if an order has waited since before a time, and no later cycle of that
// depot came to a plan. Held orders, orders that became PENDING again, and failed cycles do not
// count. The cost is bounded. The same holds with sharded indexes (F-HIS-03).
func TestStore_IdleDepots(t *testing.T) {
	t.Run("default", func(t *testing.T) { checkIdleDepots(t, deploy.FirestoreIndexes, false) })
	t.Run("sharded", func(t *testing.T) { checkIdleDepots(t, deploy.ShardedFirestoreIndexes, true) })
}

func checkIdleDepots(t *testing.T, indexes []byte, sharded bool) {
	emutest.ServeFirestore(t, firestoreemu.Options{Indexes: indexes})
	clients := emutest.Clients(t)
	now := time.Now().Truncate(time.Millisecond)
	store := firestoretx.New(clients.Firestore, firestoretx.Config{Sharded: sharded, PlanUnregistered: true, Now: func() time.Time { return now }})
	if err := store.Setup(t.Context(), []domain.Depot{{ID: "A"}, {ID: "B"}, {ID: "NEVER"}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := clients.Firestore.Doc("depots/MALFORMED").Set(t.Context(), map[string]any{"position": "nowhere"}); err != nil {
		t.Fatal(err)
	}
	since := now.Add(-30 * time.Second)
	look := func(what string, maxRPCs, maxReads int64, want ...domain.DepotID) {
		t.Helper()
		before := clients.Meter.FirestoreTotals()
		idle, err := store.IdleDepots(t.Context(), since)
		after := clients.Meter.FirestoreTotals()
		slices.Sort(idle)
		if err != nil || !slices.Equal(idle, want) {
			t.Errorf("%s: %v (%v), want %v", what, idle, err, want)
		}
		if rpcs, reads := after.RPCs-before.RPCs, after.Reads-before.Reads; rpcs > maxRPCs || reads > maxReads {
			t.Errorf("%s: %d RPCs and %d reads, want at most %d and %d", what, rpcs, reads, maxRPCs, maxReads)
		}
	}
	order := func(id domain.OrderID, age time.Duration, fields ...firestore.Update) {
		t.Helper()
		at := now
		defer func() { now = at }()
		now = at.Add(-age)
		req := domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: domain.Position{Lat: 5}}}
		if err := store.IngestOrder(t.Context(), req, now); err != nil {
			t.Fatal(err)
		}
		// When it became pending is by the server's clock, which cannot be set back here.
		for _, field := range append([]firestore.Update{{Path: "pendingSince", Value: now}, {Path: "planningSince", Value: now}}, fields...) {
			if _, err := clients.Firestore.Doc("orders/"+string(id)).Update(t.Context(), []firestore.Update{field}); err != nil {
				t.Fatal(err)
			}
		}
	}
	cycle := func(depot domain.DepotID, outcome domain.CycleOutcome, age time.Duration) {
		t.Helper()
		id := domain.CycleID(fmt.Sprintf("%s-%s-%s", depot, outcome, age))
		if err := store.RecordCycle(t.Context(), domain.Cycle{ID: id, DepotID: depot, Outcome: outcome, StartedAt: now.Add(-age)}); err != nil {
			t.Fatal(err)
		}
	}
	look("no orders", 1, 0)
	order("YOUNG", 29*time.Second)
	order("HELD", time.Hour, firestore.Update{Path: "held", Value: true})
	order("PENDING-AGAIN", time.Hour, firestore.Update{Path: "pendingSince", Value: now.Add(-time.Second)})
	order("DELIVERED", time.Hour, firestore.Update{Path: "status", Value: "DELIVERED"})
	look("orders that do not wait", 1, 2)
	planned := func(by domain.DepotID) firestore.Update {
		return firestore.Update{Path: "planningDepotId", Value: string(by)}
	}
	order("WAITS", time.Minute)
	look("no cycles", 3+3, 3+4+3, "A")
	order("WAITS-FOR-B", time.Minute, planned("B"))
	order("HANDED-OVER-JUST-NOW", time.Minute, planned("NEVER"), firestore.Update{Path: "planningSince", Value: now})
	look("no cycles of two", 3+3, 5+4+5, "A", "B")
	order("WAITS-FOR-NEVER", time.Minute, planned("NEVER"))
	look("no cycles of three", 3+3, 6+4+6, "A", "B", "NEVER")
	cycle("A", domain.CycleEmpty, 31*time.Second)
	cycle("A", domain.CyclePublished, 29*time.Second)
	cycle("B", domain.CyclePublished, 31*time.Second)
	cycle("B", domain.CycleFailed, time.Second)
	cycle("B", domain.CycleLeaseLost, 2*time.Second)
	cycle("B", domain.CycleAborted, 3*time.Second)
	cycle("GONE", domain.CycleEmpty, time.Second)
	look("one with cycles", 3+2, 6+4+5+3, "B", "NEVER")
	cycle("B", domain.CycleEmpty, 3*time.Second)
	cycle("NEVER", domain.CyclePublishing, time.Second)
	look("all with cycles", 3, 6+4+7)
	for i := range 100 {
		order(domain.OrderID(fmt.Sprintf("WAITS-TOO-%d", i)), time.Hour)
	}
	look("many orders", 3, 10+4+7)
}
