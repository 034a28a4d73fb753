package firestoretx_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// visiting is a fleet whose decisions visit a warehouse.
type visiting struct {
	*firestoretx.Store
	t         *testing.T
	client    *firestore.Client
	decisions int
}

func newVisiting(t *testing.T) *visiting {
	t.Helper()
	client := emutest.Clients(t).Firestore
	v := &visiting{Store: firestoretx.New(client, firestoretx.Config{}), t: t, client: client}
	emutest.IssueFences(t, client, "000000000000099", depot.ID)
	v.must(v.Setup(t.Context(), []domain.Depot{depot}, nil, nil))
	return v
}

func (v *visiting) must(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
}

// decide makes a decision for a new drone and a new order. Its snapshot has the warehouse.
func (v *visiting) decide(w domain.WarehouseID) domain.Decision {
	v.t.Helper()
	v.decisions++
	drone, order := domain.DroneID(fmt.Sprint("D", v.decisions)), domain.OrderID(fmt.Sprint("O", v.decisions))
	v.must(v.Setup(v.t.Context(), nil, nil, []domain.Drone{{ID: drone, HomeDepotID: depot.ID, PayloadCapacityKg: 5}}))
	v.must(v.NewTelemetryApplier().Apply(v.t.Context(), []domain.Telemetry{idle(drone, time.Now())})[0])
	v.must(v.IngestOrder(v.t.Context(), domain.OrderRequest{ID: order, OrderContent: domain.OrderContent{
		Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: domain.Position{Lat: 48.86, Lon: 2.36}, WeightKg: 1,
	}}, time.Now()))
	id := fmt.Sprint("DEC-", v.decisions)
	return domain.Decision{
		ID: domain.DecisionID(id), CycleID: "C1", DepotID: depot.ID, Fence: "000000000000001", DroneID: drone, OrderIDs: []domain.OrderID{order},
		SnapshotTime: time.Now(), PayloadHash: id, EstimatedBatteryConsumption: 10, EstimatedDurationMinutes: 5,
		Route: []domain.Waypoint{
			{Type: domain.WaypointWarehousePickup, OrderID: order, WarehouseID: w, Position: depot.Position},
			{Type: domain.WaypointHospitalDelivery, OrderID: order, Position: domain.Position{Lat: 48.86, Lon: 2.36}},
		},
	}
}

func (v *visiting) assign(d domain.Decision) domain.LedgerEntry {
	v.t.Helper()
	entry, err := v.AssignMission(v.t.Context(), d, policy.Delivery{MessageID: string(d.ID), PublishedAt: time.Now()})
	v.must(err)
	return entry
}

var closing = firestoretx.Change{By: "ann", Why: "closed"}

// F-API-05: whatever decisions are applied while a warehouse is deleted, no active mission
// visits a warehouse that does not exist.
func TestStore_DeletesNoWarehouseThatAMissionVisits(t *testing.T) {
	t.Parallel()
	v := newVisiting(t)
	refused := 0
	for round := range 8 {
		w := domain.WarehouseID(fmt.Sprint("W", round))
		v.must(v.Setup(t.Context(), nil, []domain.Warehouse{{ID: w, Position: depot.Position, ProductTypes: []string{"BLOOD"}}}, nil))
		var decisions []domain.Decision
		for range 4 {
			decisions = append(decisions, v.decide(w))
		}
		var at sync.WaitGroup
		for i, d := range decisions {
			at.Go(func() {
				time.Sleep(time.Duration(i*round) * 300 * time.Microsecond)
				v.assign(d)
			})
		}
		var deleted error
		at.Go(func() { _, deleted = v.DeleteWarehouse(t.Context(), w, closing) })
		at.Wait()
		if reason, is := policy.ReasonOf(deleted); is && reason == policy.ReasonInUse {
			refused++
			deleted = nil
		}
		v.must(deleted)
		_, err := v.Warehouse(t.Context(), w)
		users, failed := v.WarehouseUsers(t.Context(), w)
		v.must(failed)
		if gone := errors.Is(err, firestoretx.ErrNotFound); gone && len(users) > 0 || !gone && len(users) == 0 {
			t.Errorf("round %d: warehouse gone: %t; visited by %q", round, gone, users)
		}
	}
	t.Logf("%d of 8 deletions refused", refused)
}

// F-API-05: a decision from a snapshot that has a warehouse expires when that is deleted.
// One from a snapshot after it was created again is applied.
func TestStore_DecisionsToADeletedWarehouseExpire(t *testing.T) {
	v := newVisiting(t)
	warehouse := domain.Warehouse{ID: "W.1", Position: depot.Position, ProductTypes: []string{"BLOOD"}}
	apply := func() {
		t.Helper()
		_, err := v.ApplyWarehouse(t.Context(), warehouse, closing)
		v.must(err)
	}
	apply()
	v.must(v.Setup(t.Context(), nil, []domain.Warehouse{{ID: "W2", Position: depot.Position, ProductTypes: []string{"BLOOD"}}}, nil))
	early, elsewhere := v.decide(warehouse.ID), v.decide("W2")
	_, err := v.DeleteWarehouse(t.Context(), warehouse.ID, closing)
	v.must(err)
	if entry := v.assign(early); entry.Reason != string(policy.ReasonDecisionExpired) || !strings.Contains(entry.Detail, "warehouse W.1 was moved or deleted after its snapshot") {
		t.Errorf("%+v", entry)
	}
	if entry := v.assign(elsewhere); entry.Outcome != domain.OutcomeApplied {
		t.Errorf("to another warehouse: %+v", entry)
	}
	apply()
	if entry := v.assign(v.decide(warehouse.ID)); entry.Outcome != domain.OutcomeApplied {
		t.Errorf("after it was created again: %+v", entry)
	}
	fences, err := v.Fences(t.Context())
	v.must(err)
	if len(fences) != 1 || fences[depot.ID] != "000000000000001" {
		t.Errorf("fences %v", fences)
	}
}

// F-API-05: of two depots that are deleted at once while an order is open, one stays; and a
// drone is not registered at a depot that is deleted at the same time.
func TestStore_DeletesNoDepotThatIsNeeded(t *testing.T) {
	t.Parallel()
	v := newVisiting(t)
	v.must(v.IngestOrder(t.Context(), domain.OrderRequest{ID: "O1", OrderContent: domain.OrderContent{
		Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: domain.Position{Lat: 48.86, Lon: 2.36},
	}}, time.Now()))
	for round := range 8 {
		ids := []domain.DepotID{depot.ID, domain.DepotID(fmt.Sprint("DEPOT-1", round))}
		drone := registration(domain.DroneID(fmt.Sprint("D", round)))
		drone.HomeDepotID = ids[1]
		v.must(v.Setup(t.Context(), []domain.Depot{depot, {ID: ids[1], Position: depot.Position}}, nil, nil))
		var at sync.WaitGroup
		var registered error
		for _, id := range ids {
			at.Go(func() {
				if _, err := v.DeleteDepot(t.Context(), id, closing); err != nil {
					if reason, _ := policy.ReasonOf(err); reason != policy.ReasonInUse {
						t.Error(err)
					}
				}
			})
		}
		at.Go(func() {
			time.Sleep(time.Duration(round) * 300 * time.Microsecond)
			_, registered = v.ApplyDrone(t.Context(), drone, ann)
		})
		at.Wait()
		left, err := v.Depots(t.Context())
		v.must(err)
		exists := false
		for _, d := range left.Items {
			exists = exists || d.ID == ids[1]
		}
		if len(left.Items) == 0 {
			t.Errorf("round %d: an order is open and no depot is left", round)
		}
		if registered == nil && !exists {
			t.Errorf("round %d: the drone lives at a depot that does not exist", round)
		}
		for _, path := range []string{"drones/" + string(drone.ID), "depots/" + string(ids[1])} { // for the next round
			_, err := v.client.Doc(path).Delete(t.Context())
			v.must(err)
		}
	}
}
