package firestoretx_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-SWP-01: with the indexes of production a sweep reads what is due and nothing else, whatever the
// number of depots. Later ones find nothing.
func TestSweeper_ReadsOnlyWhatIsDue(t *testing.T) {
	for name, c := range map[string]struct {
		indexes          []byte
		depots, rpcs     int
		silent, reporter string
	}{
		"a depot":  {deploy.FirestoreIndexes, 1, 2, "DEPOT-00", "DEPOT-00"},
		"40":       {deploy.FirestoreIndexes, 40, 4, "DEPOT-33", "DEPOT-02"},
		"no homes": {deploy.ShardedFirestoreIndexes, 1, 2, "", "DEPOT-00"},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clockwork.NewFakeClockAt(time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC))
			emutest.ServeFirestore(t, firestoreemu.Options{Indexes: c.indexes, Clock: clock})
			clients := emutest.Clients(t)
			s := firestoretx.New(clients.Firestore, firestoretx.Config{PlanUnregistered: true, Now: clock.Now})
			var depots []domain.Depot
			for i := range c.depots {
				depots = append(depots, domain.Depot{ID: domain.DepotID(fmt.Sprintf("DEPOT-%02d", i)), Position: domain.Position{Lat: float64(i)}})
			}
			drones := []domain.Drone{{ID: "SILENT", HomeDepotID: domain.DepotID(c.silent)}, {ID: "REPORTS", HomeDepotID: domain.DepotID(c.reporter)}}
			if err := s.Setup(t.Context(), depots, nil, drones); err != nil {
				t.Fatal(err)
			}
			for i, at := range []time.Duration{time.Minute, time.Hour} {
				req := domain.OrderRequest{ID: domain.OrderID(fmt.Sprint("O", i)), Deadline: clock.Now().Add(at), OrderContent: domain.OrderContent{ProductType: "BLOOD"}}
				if err := s.IngestOrder(t.Context(), req, clock.Now()); err != nil {
					t.Fatal(err)
				}
			}
			reports := s.NewTelemetryApplier()
			report := func(id domain.DroneID) {
				if err := reports.Apply(t.Context(), []domain.Telemetry{idle(id, clock.Now())})[0]; err != nil {
					t.Fatal(err)
				}
			}
			report("SILENT")
			w := s.NewSweeper()
			if _, _, err := w.All(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			clock.Advance(2 * time.Minute) // the depots count as settled
			report("REPORTS")
			if result, err := w.Due(t.Context(), nil, nil); err != nil || result != (firestoretx.SweepResult{DronesUnknown: 1, OrdersLate: 1}) {
				t.Errorf("swept %+v, %v", result, err)
			}
			clock.Advance(2 * time.Second)
			if _, err := w.Due(t.Context(), nil, nil); err != nil { // the last that looks for orders without a depot
				t.Error(err)
			}
			clock.Advance(time.Minute)
			report("REPORTS")
			before := clients.Meter.FirestoreTotals()
			if result, err := w.Due(t.Context(), nil, nil); err != nil || result != (firestoretx.SweepResult{}) {
				t.Errorf("swept %+v, %v", result, err)
			}
			after := clients.Meter.FirestoreTotals()
			if rpcs, reads := after.RPCs-before.RPCs, after.Reads-before.Reads; rpcs != int64(c.rpcs) || reads != 0 {
				t.Errorf("%d RPCs and %d reads, want %d and none", rpcs, reads, c.rpcs)
			}
		})
	}
}

// F-SWP-01: a sweep goes through more than a page, past a document that nobody can decode. What it
// did is not due again, so another sweeper goes on where it ended.
func TestSweeper_GoesOnFromPageToPage(t *testing.T) {
	f := newFleet(t)
	const late = 320
	due := f.now.Add(-time.Minute)
	//lint:ignore SA1019 one commit for all
	batch := f.client.Batch()
	for i := range late {
		batch.Set(f.client.Doc(fmt.Sprintf("orders/O%03d", i)), map[string]any{
			"status": "PENDING", "late": false, "deadline": due, "planningDepotId": string(depot.ID), "revision": 1, "dueAt": due, "dueArea": string(depot.ID),
		})
	}
	batch.Set(f.client.Doc("orders/BROKEN"), map[string]any{"status": "PENDING", "attempts": "many", "dueAt": due.Add(-time.Hour), "dueArea": string(depot.ID)})
	if _, err := batch.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{late, 0} {
		result, err := f.NewSweeper().Due(t.Context(), nil, nil)
		if err == nil || !strings.Contains(err.Error(), "orders/BROKEN") || result.OrdersLate != want {
			t.Errorf("sweep %d: %+v, want %d late orders; %v", i, result, want, err)
		}
	}
}

// F-SWP-02: a sweep of everything finds what has no dueAt, as earlier versions and other tools leave
// it, what has a wrong one, and what is of an area that no depot is. Then everything is found when
// it is due.
func TestSweeper_CorrectsDueAt(t *testing.T) {
	f := newFleet(t)
	for _, id := range []domain.DroneID{"D1", "D2"} {
		f.mustReport(t, idle(id, f.now))
	}
	f.mustOrder(t, "O1")
	f.mustOrder(t, "O2")
	for doc, change := range map[string][]firestore.Update{
		"drones/D1": {{Path: "dueAt", Value: firestore.Delete}, {Path: "dueArea", Value: firestore.Delete}}, // of an earlier version
		"drones/D2": {{Path: "homeDepotId", Value: "GONE"}},                                                 // by hand
		"orders/O1": {{Path: "dueAt", Value: f.now.Add(100 * time.Hour)}},
	} {
		if _, err := f.client.Doc(doc).Update(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	w := f.NewSweeper()
	for i, want := range []int{3, 0} {
		if result, corrected, err := w.All(t.Context(), nil); err != nil || corrected != want || result != (firestoretx.SweepResult{}) {
			t.Errorf("sweep %d: %d documents corrected, want %d; %+v, %v", i, corrected, want, result, err)
		}
	}
	f.now = f.later().Add(24 * time.Hour)
	if result, err := w.Due(t.Context(), nil, nil); err != nil || result != (firestoretx.SweepResult{DronesUnknown: 2, OrdersLate: 2}) {
		t.Errorf("swept %+v, %v", result, err)
	}
}

// F-OWN-02: a sweeper sweeps what is due in the areas that it takes, and leaves the others'.
func TestSweeper_SweepsTheAreasThatItTakes(t *testing.T) {
	f := newFleet(t)
	for _, id := range []string{"D1", "D2"} {
		drone := map[string]any{"status": "IDLE", "homeDepotId": "HOME-" + id, "revision": 1, "seenAt": f.now.Add(-time.Hour), "dueAt": f.now, "dueArea": "HOME-" + id}
		if _, err := f.client.Doc("drones/"+id).Set(t.Context(), drone); err != nil {
			t.Fatal(err)
		}
		if err := f.Setup(t.Context(), []domain.Depot{{ID: domain.DepotID("HOME-" + id), Position: depot.Position}}, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	w := f.NewSweeper()
	for range 2 {
		_, err := w.Due(t.Context(), nil, func(area domain.DepotID) bool { return area == "HOME-D2" })
		if one, two := f.drone(t, "D1").Status, f.drone(t, "D2").Status; one != domain.DroneIdle || two != domain.DroneUnknown || err != nil {
			t.Errorf("the drones are %s and %s, want the second swept: %v", one, two, err)
		}
	}
}

// F-SWP-01: an earlier version that applies reports leaves dueAt too early. The sweep that reads the
// drone for nothing corrects it.
func TestSweeper_ReadsAReportingDroneOnce(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	w := f.NewSweeper()
	f.now = f.now.Add(20 * time.Second)
	seen := f.now.Add(-time.Second)
	if _, err := f.client.Doc("drones/D1").Update(t.Context(), []firestore.Update{{Path: "seenAt", Value: seen}}); err != nil {
		t.Fatal(err)
	}
	if result, err := w.Due(t.Context(), nil, nil); err != nil || result != (firestoretx.SweepResult{}) {
		t.Errorf("swept %+v, %v", result, err)
	}
	if d := f.drone(t, "D1"); d.Status != domain.DroneIdle || !d.DueAt.Equal(seen.Add(15*time.Second)) {
		t.Errorf("it is %s, due %s after its report", d.Status, d.DueAt.Sub(seen))
	}
}
