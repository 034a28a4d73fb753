package firestoretx_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// following returns a store that follows the places until the test ends, and what its connection
// counts.
func following(t *testing.T, f *fleet, clients interface{ FirestoreTotals() meter.Firestore }) func() meter.Firestore {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.FollowPlaces(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err == nil {
			t.Error("the listeners ended without an error")
		}
	})
	emutest.Eventually(t, "the places", func() error {
		if !f.FollowsPlaces() {
			return errors.New("not seen")
		}
		_, err := f.KnownDepots(t.Context()) // which checks
		return err
	})
	return clients.FirestoreTotals
}

func spent(total func() meter.Firestore, do func()) meter.Firestore {
	before := total()
	do()
	after := total()
	return meter.Firestore{RPCs: after.RPCs - before.RPCs, Reads: after.Reads - before.Reads}
}

// F-OWN-05: where places are followed, a cycle and a hand-over read those that they depend on, however
// many there are.
func TestStore_ReadsOnlyThePlacesThatMatter(t *testing.T) {
	clients := emutest.Clients(t)
	f := &fleet{client: clients.Firestore, now: time.Now().UTC().Truncate(time.Microsecond)}
	f.noteOffers()
	emutest.IssueFences(t, f.client, "000000000000001", depot.ID)
	depots := []domain.Depot{depot, far}
	var warehouses []domain.Warehouse
	for i := range 20 {
		depots = append(depots, domain.Depot{ID: domain.DepotID(fmt.Sprintf("Z-%02d", i)), Position: domain.Position{Lat: float64(i)}})
		warehouses = append(warehouses, domain.Warehouse{ID: domain.WarehouseID(fmt.Sprintf("W-%02d", i)), Position: domain.Position{Lat: float64(i)}})
	}
	if err := f.Setup(t.Context(), depots, warehouses, nil); err != nil {
		t.Fatal(err)
	}
	f.mustOrder(t, "O1")
	f.mustOrder(t, "O2")
	snapshot := func() {
		if snap := f.snapshot(t, wanted); len(snap.Beyond) != 21 || len(snap.Warehouses) != 20 || len(snap.Orders) == 0 {
			t.Errorf("%d other depots, %d warehouses, %d orders", len(snap.Beyond), len(snap.Warehouses), len(snap.Orders))
		}
	}
	handOver := func(order domain.OrderID) func() {
		return func() {
			if refusals, err := f.HandOver(t.Context(), handOvers("000000000000001", order)); err != nil || refusals[0] != nil {
				t.Error(refusals, err)
			}
		}
	}
	unfollowed := [2]meter.Firestore{spent(clients.Meter.FirestoreTotals, snapshot), spent(clients.Meter.FirestoreTotals, handOver("O1"))}
	total := following(t, f, clients.Meter)
	followed := [2]meter.Firestore{spent(total, snapshot), spent(total, handOver("O2"))}
	for i, what := range []string{"a snapshot", "a hand-over"} {
		if now, before := followed[i], unfollowed[i]; now.RPCs >= before.RPCs || now.Reads > 6 || before.Reads < 22 {
			t.Errorf("%s takes %d RPCs and %d reads, without listeners %d and %d", what, now.RPCs, now.Reads, before.RPCs, before.Reads)
		}
	}
	if n := spent(total, func() {
		if known, err := f.KnownDepots(t.Context()); err != nil || len(known.Items) != len(depots) {
			t.Error(known, err)
		}
		f.mustOrder(t, "O3")
	}); n.Reads > 1 {
		t.Errorf("a new order reads %d documents, and depots that are known", n.Reads)
	}
}

// F-OWN-05: whatever happens to places, a snapshot soon has them as a reading of all at its read time,
// and at once those of its area, and warehouses that were deleted or moved.
func TestStore_FollowedPlacesAreThoseOfTheStore(t *testing.T) {
	clients := emutest.Clients(t)
	f := &fleet{client: clients.Firestore, now: time.Now().UTC().Truncate(time.Microsecond)}
	f.noteOffers()
	if err := f.Setup(t.Context(), []domain.Depot{depot}, nil, nil); err != nil {
		t.Fatal(err)
	}
	following(t, f, clients.Meter)
	random := rand.New(rand.NewPCG(1, 2))
	by := firestoretx.Change{By: "ann", Why: "test"}
	read := func() (now, full domain.Snapshot, left [2]int) {
		t.Helper()
		req := firestoretx.SnapshotRequest{Depot: depot.ID, AreaRadius: 3, Limits: policy.Limits{MaxSilence: time.Hour}}
		req.OnMalformed = func(error) { left[0]++ }
		now = f.snapshot(t, req)
		req.At, req.OnMalformed = now.ReadTime, func(error) { left[1]++ }
		full = f.snapshot(t, req)
		now.Time, full.Time, now.ReadTime, full.ReadTime = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		return now, full, left
	}
	for step := range 60 {
		n := random.IntN(4)
		at := domain.Position{Lat: depot.Position.Lat + float64(random.IntN(3))*0.02, Lon: depot.Position.Lon}
		d, w := domain.Depot{ID: domain.DepotID(fmt.Sprint("N-", n)), Position: at, Capacity: random.IntN(9)}, domain.Warehouse{ID: domain.WarehouseID(fmt.Sprint("W-", n)), Position: at}
		what, exact := "", false
		var err error
		switch random.IntN(7) {
		case 0:
			what = "apply depot"
			_, err = f.ApplyDepot(t.Context(), d, by)
		case 1:
			what = "apply warehouse"
			_, err = f.ApplyWarehouse(t.Context(), w, by)
		case 2:
			what = "delete depot"
			_, err = f.DeleteDepot(t.Context(), d.ID, by)
		case 3:
			what, exact = "delete warehouse", true
			_, err = f.DeleteWarehouse(t.Context(), w.ID, by)
		case 4:
			what = "malformed depot"
			_, err = f.client.Doc("depots/"+string(d.ID)).Set(t.Context(), map[string]any{"position": "nowhere"})
		case 5:
			what = "malformed warehouse"
			_, err = f.client.Doc("warehouses/"+string(w.ID)).Set(t.Context(), map[string]any{"position": "nowhere"})
		case 6:
			what, exact = "the area's own depot", true
			_, err = f.ApplyDepot(t.Context(), domain.Depot{ID: depot.ID, Position: depot.Position, Capacity: step}, by)
		}
		if reason, refused := policy.ReasonOf(err); err != nil && (!refused || reason != policy.ReasonNotFound) {
			t.Fatalf("%s: %v", what, err)
		}
		if now, full, _ := read(); exact && err == nil {
			if now.Depot != full.Depot || slices.ContainsFunc(now.Warehouses, func(was domain.Warehouse) bool { return what == "delete warehouse" && was.ID == w.ID }) {
				t.Fatalf("step %d, %s: %+v, want %+v", step, what, now, full)
			}
		}
		emutest.Eventually(t, "the places of all readings after "+what, func() error {
			if now, full, left := read(); !reflect.DeepEqual(now, full) || left[0] != left[1] {
				return fmt.Errorf("%+v, %d left out; want %+v, %d", now, left[0], full, left[1])
			}
			return nil
		})
	}
}
