package firestoretx

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-OBS-01: a census counts what there is, with the indexes of production, and reads no
// document but the oldest order of each priority.
func TestStore_CensusCountsTheFleet(t *testing.T) {
	for name, indexes := range map[string][]byte{"default": deploy.FirestoreIndexes, "sharded": deploy.ShardedFirestoreIndexes} {
		t.Run(name, func(t *testing.T) {
			emutest.ServeFirestore(t, firestoreemu.Options{Indexes: indexes})
			clients := emutest.Clients(t)
			s := New(clients.Firestore, Config{Sharded: name == "sharded"})
			ctx, now := t.Context(), time.Now().Truncate(time.Microsecond)
			var drones []domain.Telemetry
			for i := range 5 {
				status := domain.DroneIdle
				if i >= 3 {
					status = domain.DroneCharging // UNKNOWN until its first fresh IDLE
				}
				drones = append(drones, domain.Telemetry{DroneID: domain.DroneID(fmt.Sprint("D", i)), Timestamp: now, Battery: 80, Status: status})
			}
			for _, err := range s.NewTelemetryApplier().Apply(ctx, drones) {
				if err != nil {
					t.Fatal(err)
				}
			}
			order := func(id domain.OrderID, p domain.Priority, ago time.Duration) {
				t.Helper()
				err := s.IngestOrder(ctx, domain.OrderRequest{
					ID: id, CreatedAt: now.Add(-ago), Deadline: now.Add(time.Hour), OrderContent: domain.OrderContent{Priority: p, ProductType: "BLOOD"},
				}, now)
				if err != nil {
					t.Fatal(err)
				}
			}
			order("held", domain.PriorityCritical, 3*time.Hour)
			order("cancelled", domain.PriorityCritical, 2*time.Hour)
			order("old", domain.PriorityCritical, 20*time.Minute)
			order("new", domain.PriorityCritical, time.Minute)
			order("other", domain.PriorityHigh, 30*time.Minute)
			if err := s.HoldOrder(By(ctx, "ann"), "held", "ask the ward"); err != nil {
				t.Fatal(err)
			}
			if err := s.CancelOrder(By(ctx, "ann"), "cancelled", "no need"); err != nil {
				t.Fatal(err)
			}

			// A sweep marked it.
			if _, err := clients.Firestore.Doc("orders/other").Update(ctx, []firestore.Update{{Path: "late", Value: true}}); err != nil {
				t.Fatal(err)
			}

			before := clients.Meter.FirestoreTotals()
			c, err := s.Census(ctx)
			if err != nil {
				t.Fatal(err)
			}
			after := clients.Meter.FirestoreTotals()
			if rpcs, reads := after.RPCs-before.RPCs, after.Reads-before.Reads; rpcs != 21 || reads != 2 {
				t.Errorf("%d RPCs and %d documents, want 21 and 2", rpcs, reads)
			}
			//exhaustive:ignore
			orders := map[domain.OrderStatus]int64{domain.OrderPending: 4, domain.OrderSolving: 0, domain.OrderAssigned: 0, domain.OrderInDelivery: 0}
			if !maps.Equal(c.Orders, orders) || c.Held != 1 {
				t.Errorf("orders %v, held %d; want %v, 1", c.Orders, c.Held, orders)
			}
			if want := map[domain.Priority]int64{domain.PriorityStandard: 0, domain.PriorityHigh: 1, domain.PriorityCritical: 0}; !maps.Equal(c.Overdue, want) {
				t.Errorf("overdue %v, want %v", c.Overdue, want)
			}
			//exhaustive:ignore
			byStatus := map[domain.DroneStatus]int64{domain.DroneIdle: 3, domain.DroneUnknown: 2}
			for _, status := range domain.DroneStatuses {
				if c.Drones[status] != byStatus[status] {
					t.Errorf("%d drones are %s, want %d", c.Drones[status], status, byStatus[status])
				}
			}
			if len(c.Waiting) != 2 || !c.Waiting[domain.PriorityCritical].Equal(now.Add(-20*time.Minute)) || !c.Waiting[domain.PriorityHigh].Equal(now.Add(-30*time.Minute)) {
				t.Errorf("the oldest orders are of %v", c.Waiting)
			}
		})
	}
}
