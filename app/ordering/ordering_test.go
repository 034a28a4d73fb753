package ordering

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

var (
	paris = domain.Position{Lat: 48.85, Lon: 2.35}
	start = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
)

func blood(id string) domain.OrderRequest {
	return domain.OrderRequest{ID: domain.OrderID(id), OrderContent: domain.OrderContent{
		Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: domain.Position{Lat: 48.86, Lon: 2.36}, WeightKg: 1, RequesterID: "H1",
	}}
}

// F-INT-01: an order that is known is the same by its first content, or by what it is now.
func TestConflict_NamesWhatDiffers(t *testing.T) {
	req := blood("O1")
	known := domain.Order{ID: "O1", Status: domain.OrderPending, OrderContent: req.OrderContent, ContentHash: req.Hash(), CreatedAt: start, Deadline: start.Add(time.Hour)}
	changed := known
	changed.Priority, changed.WeightKg = domain.PriorityCritical, 2
	same := func(r *domain.OrderRequest) {}
	for _, c := range []struct {
		name   string
		known  domain.Order
		change func(*domain.OrderRequest)
		fields []string // nil: the same order
		why    string
	}{
		{"the same", known, same, nil, ""},
		{"the first again, after a change", changed, same, nil, ""},
		{"as it is now", changed, func(r *domain.OrderRequest) { r.Priority, r.WeightKg = domain.PriorityCritical, 2 }, nil, ""},
		{"with the times that the order has", known, func(r *domain.OrderRequest) { r.CreatedAt, r.Deadline = start, start.Add(time.Hour) }, nil, ""},
		{"other fields", known, func(r *domain.OrderRequest) {
			r.Priority, r.ProductType, r.Pickup, r.Delivery, r.ColdChain, r.CreatedAt, r.Deadline = domain.PriorityStandard, "PLASMA", &paris, paris, true, start.Add(1), start
		}, []string{"priority", "productType", "pickupLocation", "deliveryLocation", "requiresColdChain", "createdAt", "deadline"}, ""},
		{"another requester's", known, func(r *domain.OrderRequest) { r.RequesterID = "H2" }, nil, "the id is taken"},
		{"cancelled before it came", domain.Order{ID: "O1", Status: domain.OrderCancelled}, same, nil, "it was cancelled before it arrived"},
	} {
		r := req
		c.change(&r)
		err := conflict(c.known, r)
		found, is := errors.AsType[*ConflictError](err)
		if c.fields == nil && c.why == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if !is || found.Why != c.why {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var fields []string
		for _, f := range found.Fields {
			fields = append(fields, f.Field)
		}
		if !slices.Equal(fields, c.fields) {
			t.Errorf("%s: fields %q, want %q", c.name, fields, c.fields)
		}
	}
}

// F-INT-01: what was sent lately is remembered, and only so much of it.
func TestRecent_ForgetsWhatIsOld(t *testing.T) {
	now := start
	r := recent{now: func() time.Time { return now }}
	if _, known := r.begin("O1", "a"); known || r.has("O1") {
		t.Error("known before it was sent")
	}
	r.published("O1", "a")
	if before, known := r.begin("O1", "b"); !known || before != (sent{"a", true}) || !r.has("O1") {
		t.Errorf("sent %+v", before)
	}
	for _, id := range []domain.OrderID{"O2", "O3"} {
		now = now.Add(recentFor + time.Second)
		r.begin(id, "c")
	}
	if r.has("O1") {
		t.Error("remembers it for ever")
	}
	for n := range 3 * recentMost {
		r.begin(domain.OrderID(fmt.Sprint("X", n)), "d")
	}
	if n := len(r.young) + len(r.old); n > 2*recentMost {
		t.Errorf("remembers %d orders", n)
	}
}

// F-INT-02: places and drones are not read for every order, but again before an order is refused by
// what is old.
func TestReach_ReadsRarely(t *testing.T) {
	clients := emutest.Clients(t)
	store := firestoretx.New(clients.Firestore, firestoretx.Config{})
	ctx, by := meter.WithOperation(t.Context(), "reach"), firestoretx.Change{By: "ann", Why: "test"}
	if err := store.Setup(t.Context(), []domain.Depot{{ID: "DEPOT-1", Position: paris}}, []domain.Warehouse{{ID: "W1", Position: paris, ProductTypes: []string{"BLOOD"}}}, nil); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		drone := domain.DroneRegistration{ID: domain.DroneID(fmt.Sprint("D", n)), HomeDepotID: "DEPOT-1", Own: domain.DroneProperties{PayloadCapacityKg: 5, ConsumptionPerKm: 2, MaxFlightTimeMinutes: 60}}
		if _, err := store.ApplyDrone(t.Context(), drone, by); err != nil {
			t.Fatal(err)
		}
	}
	now := start
	r := NewReach(store)
	r.now = func() time.Time { return now }
	heavy := blood("O2")
	heavy.WeightKg = 6
	judge := func(req domain.OrderRequest, barriers int, rpcs, reads int64) {
		t.Helper()
		before := clients.Meter.FirestoreByOperation()["reach"]
		list, err := r.Barriers(ctx, req)
		after := clients.Meter.FirestoreByOperation()["reach"]
		if err != nil || len(list) != barriers {
			t.Errorf("%+v, %v; want %d", list, err, barriers)
		}
		if after.RPCs-before.RPCs != rpcs || after.Reads-before.Reads != reads {
			t.Errorf("%d RPCs and %d reads, want %d and %d", after.RPCs-before.RPCs, after.Reads-before.Reads, rpcs, reads)
		}
	}
	judge(blood("O1"), 0, 3, 1+1+5)
	for range 10 {
		judge(blood("O1"), 0, 0, 0)
		judge(heavy, 1, 0, 0)
	}
	if len(r.last.drones) != 1 || r.last.count != 5 {
		t.Errorf("keeps %d of %d drones", len(r.last.drones), r.last.count)
	}
	stronger := domain.DroneRegistration{ID: "D9", HomeDepotID: "DEPOT-1", Own: domain.DroneProperties{PayloadCapacityKg: 7, ConsumptionPerKm: 2, MaxFlightTimeMinutes: 60}}
	if _, err := store.ApplyDrone(t.Context(), stronger, by); err != nil {
		t.Fatal(err)
	}
	now = now.Add(refuseFor + 6*perDrone)
	judge(blood("O1"), 0, 0, 0)
	judge(heavy, 0, 3, 1+1+6)
	now = now.Add(takeFor + time.Second)
	judge(blood("O1"), 0, 3, 1+1+6)
}
