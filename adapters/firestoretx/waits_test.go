package firestoretx

import (
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-ORD-05: the latest cycle of each depot that came to a plan says why an order
// waits, with the indexes of production; what it costs depends on the depots alone.
func TestWaits_ReadTheLatestCycleOfEachDepot(t *testing.T) {
	for name, indexes := range map[string][]byte{"default": deploy.FirestoreIndexes, "sharded": deploy.ShardedFirestoreIndexes} {
		t.Run(name, func(t *testing.T) {
			emutest.ServeFirestore(t, firestoreemu.Options{Indexes: indexes})
			clients := emutest.Clients(t)
			s := New(clients.Firestore, Config{})
			ctx, now := t.Context(), time.Now().Truncate(time.Microsecond)
			depots := []domain.Depot{{ID: "A"}, {ID: "B"}, {ID: "NEW"}}
			if err := s.Setup(ctx, depots, nil, nil); err != nil {
				t.Fatal(err)
			}
			cycle := func(id domain.CycleID, depot domain.DepotID, ago time.Duration, outcome domain.CycleOutcome, reason string) {
				t.Helper()
				c := domain.Cycle{ID: id, DepotID: depot, Outcome: outcome, StartedAt: now.Add(-ago), SnapshotTime: now.Add(-ago), Orders: 50}
				for i := range c.Orders {
					c.Unserved = append(c.Unserved, domain.UnservedOrder{
						OrderID: domain.OrderID(fmt.Sprintf("O-%d", i)), Reason: reason, Obstacles: domain.Obstacles{Free: 3, Battery: 2, Taken: 1},
					})
				}
				if err := s.RecordCycle(ctx, c); err != nil {
					t.Fatal(err)
				}
			}
			cycle("A1", "A", 30*time.Second, domain.CycleEmpty, "old")
			cycle("A2", "A", 20*time.Second, domain.CyclePublished, "latest of A")
			cycle("A3", "A", 10*time.Second, domain.CycleFailed, "failed")
			cycle("A4", "A", 0, domain.CyclePublishing, "cut off")
			cycle("B1", "B", 40*time.Second, domain.CyclePublished, "old")
			cycle("B2", "B", 5*time.Second, domain.CycleEmpty, "latest of B")
			cycle("C1", "GONE", 0, domain.CyclePublished, "a depot that is no more")

			before := clients.Meter.FirestoreTotals()
			waits, malformed, err := s.Waits(ctx)
			after := clients.Meter.FirestoreTotals()
			if err != nil || len(malformed) > 0 {
				t.Fatal(err, malformed)
			}
			// The depot without a cycle returned no document; the service bills one.
			if rpcs, reads := after.RPCs-before.RPCs, after.Reads-before.Reads; rpcs != 1+3 || reads != 2*3-1 {
				t.Errorf("%d RPCs and %d reads, want 4 and 5", rpcs, reads)
			}
			found := map[domain.DepotID]domain.Wait{}
			for _, w := range waits.Of(domain.Order{ID: "O-7", Status: domain.OrderPending, PendingSince: now.Add(-time.Hour)}) {
				found[w.DepotID] = w
			}
			counts := domain.Obstacles{Free: 3, Battery: 2, Taken: 1}
			for id, want := range map[domain.DepotID]domain.Wait{
				"A":   {DepotID: "A", CycleID: "A2", SnapshotTime: now.Add(-20 * time.Second), Reason: "latest of A", Obstacles: counts},
				"B":   {DepotID: "B", CycleID: "B2", SnapshotTime: now.Add(-5 * time.Second), Reason: "latest of B", Obstacles: counts},
				"NEW": {DepotID: "NEW", Reason: domain.WaitNoCycle},
			} {
				got := found[id]
				if !got.SnapshotTime.Equal(want.SnapshotTime) {
					t.Errorf("depot %s: seen at %s, want %s", id, got.SnapshotTime, want.SnapshotTime)
				}
				if got.SnapshotTime = want.SnapshotTime; got != want {
					t.Errorf("depot %s: %+v, want %+v", id, got, want)
				}
			}
			if len(found) != 3 {
				t.Errorf("%d depots: %v", len(found), found)
			}

			if _, err := clients.Firestore.Collection(Cycles).Doc("B2").Update(ctx, []firestore.Update{{Path: "unserved", Value: "none"}}); err != nil {
				t.Fatal(err)
			}
			if _, malformed, err := s.Waits(ctx); err != nil || len(malformed) != 1 {
				t.Errorf("a malformed cycle: %v, %v", malformed, err)
			}
		})
	}
}
