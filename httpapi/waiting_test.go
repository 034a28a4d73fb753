package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/app/explain"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// cycle runs one solve cycle of the depot DEPOT-1.
func (s *served) cycle() domain.Cycle {
	s.t.Helper()
	r := dispatch.NewRunner(s.store, s.locks, nil, uuid.NewString, simclock.Real(), dispatch.Config{Iterations: 10}, emutest.Log(s.t), s.clients.Meter)
	c, err := r.Once(s.t.Context(), "DEPOT-1", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// F-ORD-05, F-ORD-06: the command line, the API and the explanation give the same reason why an
// order waits. A reason that waiting cannot remove comes before the number of busy drones.
func TestAPI_SaysWhyAnOrderWaitsAsTheCommandLineDoes(t *testing.T) {
	s := serve(t)
	ctx, now := t.Context(), time.Now()
	if err := s.store.Setup(ctx, []domain.Depot{{ID: "DEPOT-1", Position: home}}, []domain.Warehouse{{ID: "W1", Position: home, ProductTypes: []string{"BLOOD"}}},
		[]domain.Drone{{ID: "D1", HomeDepotID: "DEPOT-1"}}); err != nil {
		t.Fatal(err)
	}
	busy := domain.Telemetry{DroneID: "D1", Timestamp: now, Position: home, Battery: 40, Status: domain.DroneCharging}
	if err := s.store.NewTelemetryApplier().Apply(ctx, []domain.Telemetry{busy})[0]; err != nil {
		t.Fatal(err)
	}
	for id, content := range map[domain.OrderID]domain.OrderContent{
		"UNSTOCKED": {ProductType: "UNOBTAINIUM", Delivery: home},
		"SWAPPED":   {ProductType: "BLOOD", Delivery: domain.Position{Lat: home.Lon, Lon: home.Lat}},
		"PATIENT":   {ProductType: "BLOOD", Delivery: home},
	} {
		content.Priority = domain.PriorityHigh
		if err := s.store.IngestOrder(ctx, domain.OrderRequest{ID: id, OrderContent: content}, now); err != nil {
			t.Fatal(err)
		}
	}
	cycle := s.cycle()
	var out strings.Builder
	desk := operator.Desk{Commands: operator.Commands{Store: s.store, Locks: s.locks, PubSub: s.clients.PubSub}, Now: time.Now, Out: &out}
	said := func(err error) string {
		t.Helper()
		defer out.Reset()
		if err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	list := said(desk.ListOrders(ctx, firestoretx.OrderFilter{}, firestoretx.Page{}))
	for id, want := range map[domain.OrderID]struct{ reason, column string }{
		"UNSTOCKED": {"no_compatible_warehouse", "no compatible warehouse"},
		"SWAPPED":   {"out_of_range: its latitude and longitude look swapped; cancel it and order again", "out of range"},
		"PATIENT":   {"no_drone_free", "no drone free"},
	} {
		for line := range strings.Lines(list) {
			if strings.HasPrefix(line, string(id)+" ") && !strings.Contains(line, want.column) {
				t.Errorf("orders list: %s; want %q", line, want.column)
			}
		}
		if text := said(desk.Audit(ctx, operator.SubjectOrder, string(id))); !strings.Contains(text, "waits: depot DEPOT-1: "+want.reason) {
			t.Errorf("audit order says\n%s\nwant %q", text, want.reason)
		}
		var o entity.WaitingOrder
		if s.get("/api/v1/orders/"+string(id), http.StatusOK, &o); len(o.Waiting) != 1 || o.Waiting[0].Reason != want.reason || o.Waiting[0].CycleID != cycle.ID {
			t.Errorf("API: %s waits %+v, want %s", id, o.Waiting, want.reason)
		}
		var x explain.OrderExplanation
		s.get("/api/v1/orders/"+string(id)+"/explanation", http.StatusOK, &x)
		if x.Why == nil || x.Why.Plan.Reason != want.reason || !strings.HasPrefix(x.Recorded, want.reason) {
			t.Errorf("explanation of %s: %+v, want %s", id, x, want.reason)
		}
		if err := explain.WriteText(&out, x); err != nil || !strings.Contains(said(nil), "it waits, "+want.reason) {
			t.Errorf("explanation of %s does not say %q", id, want.reason)
		}
	}
}

// F-OPT-03, F-ORD-05: the API, the stream and the command line know cycles without orders, so they
// do not report the next order's depot as one without cycles.
func TestAPI_ShowsCyclesWithoutOrders(t *testing.T) {
	beside(t)
	s := serve(t)
	ctx := t.Context()
	if err := s.store.Setup(ctx, []domain.Depot{{ID: "DEPOT-1", Position: home}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	const quiet = "quiet-DEPOT-1"
	s.cycle()
	page := s.watch("/api/v1/stream?kinds=cycle", "")
	page.has("cycle/"+quiet, `"withoutOrders":1`)
	s.cycle()
	page.has("cycle/"+quiet, `"withoutOrders":2`)
	var list struct{ Cycles []entity.Cycle }
	if s.get("/api/v1/cycles", http.StatusOK, &list); len(list.Cycles) != 1 || list.Cycles[0].ID != quiet || list.Cycles[0].WithoutOrders != 2 {
		t.Errorf("API: cycles %+v", list.Cycles)
	}
	if err := s.store.IngestOrder(ctx, domain.OrderRequest{ID: "NEXT", OrderContent: domain.OrderContent{Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: home}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	var o entity.WaitingOrder
	if s.get("/api/v1/orders/NEXT", http.StatusOK, &o); len(o.Waiting) != 1 || o.Waiting[0].Reason != domain.WaitNotSeen || o.Waiting[0].WithoutOrders != 2 || o.Waiting[0].SnapshotTime == nil {
		t.Errorf("API: the order waits %+v", o.Waiting)
	}
	var out strings.Builder
	desk := operator.Desk{Commands: operator.Commands{Store: s.store, Locks: s.locks, PubSub: s.clients.PubSub}, Now: time.Now, Out: &out}
	for _, err := range []error{
		desk.Audit(ctx, operator.SubjectOrder, "NEXT"), desk.Audit(ctx, operator.SubjectCycle, quiet), desk.ListOrders(ctx, firestoretx.OrderFilter{}, firestoretx.Page{}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"waits: depot DEPOT-1: not_seen_yet", "the latest recorded of 2 cycles without orders", "the latest of 2 cycles without orders", "depot DEPOT-1 0s ago"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the command line does not say %q:\n%s", want, out.String())
		}
	}
}
