package firestoretx_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// fleet is a store with a drone D1 at its depot, ready for missions, and its clock.
type fleet struct {
	*firestoretx.Store
	applier *firestoretx.TelemetryApplier
	client  *firestore.Client
	now     time.Time
	offered []domain.Mission // by noteOffers
}

var depot = domain.Depot{ID: "DEPOT-1", Name: "Main", Position: domain.Position{Lat: 48.8566, Lon: 2.3522}}

// atOnce lets drones be at their stops at once.
var atOnce = policy.Limits{TopSpeedKmh: 1e9}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{client: emutest.Clients(t).Firestore, now: time.Now().UTC().Truncate(time.Microsecond)}
	f.Store = firestoretx.New(f.client, firestoretx.Config{PlanUnregistered: true, Limits: atOnce, Now: func() time.Time { return f.now }})
	f.applier = f.NewTelemetryApplier()
	emutest.IssueFences(t, f.client, "000000000000099", depot.ID, "", "_")
	drones := []domain.Drone{{ID: "D1", HomeDepotID: depot.ID, PayloadCapacityKg: 5}, {ID: "D2", HomeDepotID: depot.ID, PayloadCapacityKg: 5}}
	if err := f.Setup(t.Context(), []domain.Depot{depot}, nil, drones); err != nil {
		t.Fatal(err)
	}
	return f
}

// noteOffers replaces the store by one that records every mission passed to Config.Owed.
func (f *fleet) noteOffers() {
	f.Store = firestoretx.New(f.client, firestoretx.Config{
		PlanUnregistered: true,
		Limits:           atOnce,
		Now:              func() time.Time { return f.now },
		Owed:             func(_ context.Context, m domain.Mission) { f.offered = append(f.offered, m) },
	})
	f.applier = f.NewTelemetryApplier()
}

// report applies one report and returns its error.
func (f *fleet) report(t *testing.T, tm domain.Telemetry) error {
	t.Helper()
	return f.applier.Apply(t.Context(), []domain.Telemetry{tm})[0]
}

func idle(id domain.DroneID, at time.Time) domain.Telemetry {
	return domain.Telemetry{DroneID: id, Timestamp: at, Position: depot.Position, Battery: 90, Status: domain.DroneIdle}
}

func (f *fleet) mustReport(t *testing.T, tm domain.Telemetry) {
	t.Helper()
	if err := f.report(t, tm); err != nil {
		t.Fatalf("report of %s: %v", tm.DroneID, err)
	}
}

// collected is where the parcels of mustOrder wait.
var collected = domain.Position{Lat: 48.858, Lon: 2.354}

func (f *fleet) mustOrder(t *testing.T, id domain.OrderID) domain.OrderRequest {
	t.Helper()
	req := domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{
		Priority: domain.PriorityHigh, ProductType: "BLOOD", Pickup: &collected, Delivery: domain.Position{Lat: 48.86, Lon: 2.36}, WeightKg: 1,
	}}
	if err := f.IngestOrder(t.Context(), req, f.now); err != nil {
		t.Fatal(err)
	}
	return req
}

func (f *fleet) decision(id domain.DecisionID, drone domain.DroneID, orders ...domain.OrderID) domain.Decision {
	d := domain.Decision{ID: id, CycleID: "C1", Fence: "000000000000001", DroneID: drone, OrderIDs: orders, SnapshotTime: f.later(), PayloadHash: string(id), EstimatedBatteryConsumption: 10, EstimatedDurationMinutes: 5}
	for _, o := range orders {
		d.Route = append(d.Route,
			domain.Waypoint{Type: domain.WaypointWarehousePickup, OrderID: o, Position: collected},
			domain.Waypoint{Type: domain.WaypointHospitalDelivery, OrderID: o, Position: domain.Position{Lat: 48.86, Lon: 2.36}})
	}
	return d
}

// later returns a time after every commit so far, even on a slow machine.
func (f *fleet) later() time.Time { return f.now.Add(time.Hour) }

func (f *fleet) assign(t *testing.T, d domain.Decision) domain.LedgerEntry {
	t.Helper()
	entry, err := f.AssignMission(t.Context(), d, policy.Delivery{MessageID: "m-" + string(d.ID)})
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

func (f *fleet) drone(t *testing.T, id domain.DroneID) domain.Drone {
	t.Helper()
	d, err := f.Store.Drone(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (f *fleet) order(t *testing.T, id domain.OrderID) domain.Order {
	t.Helper()
	o, err := f.Store.Order(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// spoil makes a mission's document malformed.
func (f *fleet) spoil(t *testing.T, id domain.MissionID) {
	t.Helper()
	if _, err := f.client.Doc("missions/"+string(id)).Set(t.Context(), map[string]any{"orderIds": "all"}, firestore.MergeAll); err != nil {
		t.Fatal(err)
	}
}

func wantReason(t *testing.T, err error, want policy.Reason) {
	t.Helper()
	if got, _ := policy.ReasonOf(err); got != want {
		t.Fatalf("error %v, want reason %s", err, want)
	}
}

func TestStore_DeliversAnOrderFromRequestToArrival(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustOrder(t, "O1")
	d := f.decision("DEC-1", "D1", "O1")
	entry := f.assign(t, d)
	if entry.Outcome != domain.OutcomeApplied {
		t.Fatalf("decision %s: %s %s", entry.Outcome, entry.Reason, entry.Detail)
	}
	mission := entry.MissionID
	if d := f.drone(t, "D1"); d.Status != domain.DroneMoving || d.CurrentMissionID != mission || d.MissionAcked {
		t.Fatalf("after the assignment the drone is %+v", d)
	}

	// F-TEL-07: pickup, then delivery, as the drone passes by.
	for i, step := range []struct {
		at   domain.Position
		want domain.OrderStatus
	}{
		{depot.Position, domain.OrderAssigned},
		{domain.Position{Lat: 48.858, Lon: 2.354}, domain.OrderInDelivery},
		{domain.Position{Lat: 48.86, Lon: 2.36}, domain.OrderDelivered},
	} {
		f.mustReport(t, domain.Telemetry{
			DroneID: "D1", Timestamp: f.now.Add(time.Duration(i+1) * time.Second), Position: step.at,
			Battery: 80, Status: domain.DroneMoving, MissionID: mission,
		})
		if got := f.order(t, "O1").Status; got != step.want {
			t.Errorf("step %d: order is %s, want %s", i, got, step.want)
		}
	}
	m, err := f.Mission(t.Context(), mission)
	if err != nil || m.Status != domain.MissionCompleted || m.ReachedStops != 2 {
		t.Errorf("mission %+v, %v", m, err)
	}
	if d := f.drone(t, "D1"); d.Status != domain.DroneMoving || d.CurrentMissionID != mission {
		t.Errorf("before it reports idle the drone is %s on %q", d.Status, d.CurrentMissionID)
	}
	f.mustReport(t, idle("D1", f.now.Add(4*time.Second)))
	if d := f.drone(t, "D1"); d.Status != domain.DroneIdle || d.Bound() {
		t.Errorf("after its report the drone is %s on %q", d.Status, d.CurrentMissionID)
	}
}

// F-TEL-06: the report was measured after the assignment but before the drone
// knew of it. Applied naively it would free the drone for a second mission.
func TestStore_ReportFromBeforeTheCommandDoesNotFreeTheDrone(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustOrder(t, "O1")
	f.mustOrder(t, "O2")
	mission := f.assign(t, f.decision("DEC-1", "D1", "O1")).MissionID

	f.mustReport(t, idle("D1", f.now.Add(time.Second)))
	d := f.drone(t, "D1")
	if d.Status != domain.DroneMoving || d.CurrentMissionID != mission {
		t.Fatalf("the report freed the drone: %s on %q", d.Status, d.CurrentMissionID)
	}
	if !d.LastUpdate.Equal(f.now.Add(time.Second)) {
		t.Errorf("the report's position was not applied: last update %s", d.LastUpdate)
	}
	if entry := f.assign(t, f.decision("DEC-2", "D1", "O2")); entry.Reason != string(policy.ReasonDroneNotIdle) {
		t.Errorf("a second decision got %s %s, want %s", entry.Outcome, entry.Reason, policy.ReasonDroneNotIdle)
	}
}

// F-DEC-01: T0-T7. Cycle A assigns D1 to O1, the overlapping cycle B D1 to O2;
// A's commit wins, B is rejected, O2 stays PENDING and the next cycle serves it.
func TestStore_OverlappingCyclesNeverAssignADroneTwice(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustReport(t, idle("D2", f.now))
	f.mustOrder(t, "O1")
	f.mustOrder(t, "O2")
	a, b := f.decision("A-1", "D1", "O1"), f.decision("B-1", "D1", "O2")
	if entry := f.assign(t, a); entry.Outcome != domain.OutcomeApplied {
		t.Fatalf("A: %+v", entry)
	}
	entry := f.assign(t, b)
	if entry.Outcome != domain.OutcomeRejected || entry.Reason != string(policy.ReasonDroneNotIdle) {
		t.Fatalf("B: %+v", entry)
	}
	if o := f.order(t, "O2"); o.Status != domain.OrderPending || o.AssignedDroneID != "" {
		t.Fatalf("O2 is %+v", o)
	}
	if entry := f.assign(t, f.decision("C-1", "D2", "O2")); entry.Outcome != domain.OutcomeApplied {
		t.Fatalf("the next cycle: %+v", entry)
	}
}

// F-TEL-02: an equal or older timestamp changes nothing, whether the applier
// remembers the drone or reads it.
func TestStore_StaleTelemetryChangesNothing(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustReport(t, idle("D1", f.now.Add(time.Second)))
	before := f.drone(t, "D1")
	for name, applier := range map[string]*firestoretx.TelemetryApplier{"knows the drone": f.applier, "knows nothing": f.NewTelemetryApplier()} {
		for _, at := range []time.Time{f.now, f.now.Add(time.Second), f.now.Add(time.Second + 300*time.Nanosecond)} {
			stale := idle("D1", at)
			stale.Battery = 1
			wantReason(t, applier.Apply(t.Context(), []domain.Telemetry{stale})[0], policy.ReasonStaleTelemetry)
		}
		if diff := cmp.Diff(before, f.drone(t, "D1")); diff != "" {
			t.Errorf("%s: the drone changed:\n%s", name, diff)
		}
	}
}

// F-TEL-03
func TestStore_FutureTelemetryIsRefused(t *testing.T) {
	f := newFleet(t)
	wantReason(t, f.report(t, idle("D1", f.now.Add(time.Minute))), policy.ReasonFutureTimestamp)
}

// F-TEL-04
func TestStore_UnknownDroneIsRegistered(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, domain.Telemetry{DroneID: "STRAY", Timestamp: f.now, Position: depot.Position, Battery: 50})
	if d := f.drone(t, "STRAY"); d.Status != domain.DroneUnknown || d.Battery != 50 {
		t.Errorf("%+v", d)
	}
	f.mustReport(t, idle("STRAY", f.now.Add(time.Second)))
	if d := f.drone(t, "STRAY"); d.Status != domain.DroneIdle || d.ReportedStatus != domain.DroneIdle {
		t.Errorf("after IDLE: %s, reported %s", d.Status, d.ReportedStatus)
	}
}

// F-ORD-01: if a requester's clock is ahead, its order counts as created when it was
// published, and its deadline follows from that.
func TestStore_OrderIsCreatedNoLaterThanPublished(t *testing.T) {
	f := newFleet(t)
	for id, created := range map[domain.OrderID]time.Time{
		"an hour ahead": f.now.Add(time.Hour), "the last second": time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	} {
		req := domain.OrderRequest{ID: id, CreatedAt: created, OrderContent: domain.OrderContent{Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: depot.Position}}
		if err := f.IngestOrder(t.Context(), req, f.now); err != nil {
			t.Fatal(err)
		}
		if o := f.order(t, id); !o.CreatedAt.Equal(f.now) || !o.Deadline.Equal(f.now.Add(30*time.Minute)) {
			t.Errorf("%s: created %s, due %s", id, o.CreatedAt, o.Deadline)
		}
		wantReason(t, f.IngestOrder(t.Context(), req, f.now), policy.ReasonDuplicateOrder)
	}
}

// F-ORD-02: a redelivery, before or after the assignment, writes nothing.
func TestStore_RedeliveredOrderNeverResetsIt(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	req := f.mustOrder(t, "O1")
	wantReason(t, f.IngestOrder(t.Context(), req, f.now.Add(time.Minute)), policy.ReasonDuplicateOrder)
	f.assign(t, f.decision("DEC-1", "D1", "O1"))
	before, err := f.client.Doc("orders/O1").Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantReason(t, f.IngestOrder(t.Context(), req, f.now.Add(time.Hour)), policy.ReasonDuplicateOrder)
	other := req
	other.ProductType = "VACCINE"
	wantReason(t, f.IngestOrder(t.Context(), other, f.now), policy.ReasonOrderConflict)
	after, err := f.client.Doc("orders/O1").Get(t.Context())
	if err != nil || !after.UpdateTime.Equal(before.UpdateTime) {
		t.Errorf("the order was written (%v):\n%s", err, cmp.Diff(before.Data(), after.Data()))
	}
	events, err := f.EventsOf(t.Context(), "orderId", "O1")
	if err != nil {
		t.Fatal(err)
	}
	note := events.Items[len(events.Items)-1]
	if note.Reason != string(policy.ReasonOrderConflict) || !cmp.Equal(note.State, domain.RefusedState(other)) {
		t.Errorf("the conflict is not recorded: %+v", events)
	}
}

// F-DEC-03: one bad order rejects the whole mission.
func TestStore_OneBadOrderRejectsTheWholeMission(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustOrder(t, "O1")
	f.mustOrder(t, "O3")
	entry := f.assign(t, f.decision("DEC-1", "D1", "O1", "NO-SUCH", "O3"))
	if entry.Outcome != domain.OutcomeRejected || entry.Reason != string(policy.ReasonOrderUnknown) {
		t.Fatalf("%+v", entry)
	}
	if d := f.drone(t, "D1"); d.Status != domain.DroneIdle || d.Bound() {
		t.Errorf("drone is %s on %q", d.Status, d.CurrentMissionID)
	}
	for _, id := range []domain.OrderID{"O1", "O3"} {
		if o := f.order(t, id); o.Status != domain.OrderPending {
			t.Errorf("order %s is %s", id, o.Status)
		}
	}
	stored, err := f.LedgerEntry(t.Context(), "DEC-1")
	if err != nil || stored.Reason != entry.Reason || stored.MessageID != "m-DEC-1" {
		t.Errorf("the ledger says %+v, %v", stored, err)
	}
}

// F-DEC-02, F-DEC-04: a repeated decision gets its recorded outcome; a different
// decision with the same id is rejected.
func TestStore_RepeatedDecisionHasOneOutcome(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustOrder(t, "O1")
	d := f.decision("DEC-1", "D1", "O1")
	first := f.assign(t, d)
	again := f.assign(t, d)
	if diff := cmp.Diff(first, again, cmp.Comparer(func(a, b time.Time) bool { return a.Sub(b).Abs() < time.Millisecond })); diff != "" {
		t.Errorf("the replay differs:\n%s", diff)
	}
	d.PayloadHash = "another"
	_, err := f.AssignMission(t.Context(), d, policy.Delivery{})
	wantReason(t, err, policy.ReasonDecisionConflict)
}

// F-DEC-02: equal fences pass, higher ones are stored, lower ones are refused.
func TestStore_FencesOnlyRise(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustReport(t, idle("D2", f.now))
	for _, id := range []domain.OrderID{"O1", "O2", "O3"} {
		f.mustOrder(t, id)
	}
	d := f.decision("DEC-1", "D1", "O1")
	d.Fence = "000000000000007"
	if e := f.assign(t, d); e.Outcome != domain.OutcomeApplied {
		t.Fatalf("%+v", e)
	}
	low := f.decision("DEC-2", "D2", "O2")
	low.Fence = "000000000000006"
	if e := f.assign(t, low); e.Reason != string(policy.ReasonStaleFence) {
		t.Fatalf("%+v", e)
	}
	equal := f.decision("DEC-3", "D2", "O2")
	equal.Fence = d.Fence
	if e := f.assign(t, equal); e.Outcome != domain.OutcomeApplied {
		t.Fatalf("%+v", e)
	}
	fences, err := f.Fences(t.Context())
	if err != nil || fences[depot.ID] != d.Fence {
		t.Errorf("stored %v, %v", fences, err)
	}
}

// F-DEC-02: malformed fences do not count as absent, or a cycle that lost its lock could
// still decide.
func TestStore_MalformedFencesBlockDecisions(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustOrder(t, "O1")
	for _, tt := range []struct {
		doc    string
		stored map[string]any
	}{
		{"control/DEPOT-1", map[string]any{"fence": int64(7)}},
		{"control/DEPOT-1", map[string]any{"fence": ""}},
		{"control/DEPOT-1", map[string]any{"fence": "-7"}},
		{"control/DEPOT-1", map[string]any{"other": "000000000000007"}},
		{"control/decisions", map[string]any{"fences": "000000000000007"}},
		{"control/decisions", map[string]any{"fences": int64(7)}},
		{"control/decisions", map[string]any{"fences": map[string]any{string(depot.ID): int64(7)}}},
		{"control/decisions", map[string]any{"fences": map[string]any{string(depot.ID): "seven"}}},
		{"fence_counters/fence:optimizer:cycle:DEPOT-1", map[string]any{"fence": "seven"}},
		{"fence_counters/fence:optimizer:cycle:DEPOT-1", map[string]any{}},
	} {
		f.set(t, tt.doc, tt.stored)
		var malformed *firestoretx.MalformedError
		if entry, err := f.AssignMission(t.Context(), f.decision("DEC-1", "D1", "O1"), policy.Delivery{}); !errors.As(err, &malformed) {
			t.Errorf("%s %v: %+v, error %v; want a *MalformedError", tt.doc, tt.stored, entry, err)
		}
		if _, err := f.Fences(t.Context()); strings.HasPrefix(tt.doc, "control") && !errors.As(err, &malformed) {
			t.Errorf("%s %v: error %v, want a *MalformedError", tt.doc, tt.stored, err)
		}
		if _, err := f.client.Doc(tt.doc).Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func (f *fleet) set(t *testing.T, doc string, fields map[string]any) {
	t.Helper()
	if _, err := f.client.Doc(doc).Set(t.Context(), fields); err != nil {
		t.Fatal(err)
	}
}

// F-DEC-02: a malformed drone is not judged by the fields that can be decoded.
func TestStore_MalformedDroneIsAssignedNothing(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustOrder(t, "O1")
	if _, err := f.client.Doc("drones/D1").Set(t.Context(), map[string]any{"payloadCapacityKg": "five"}, firestore.MergeAll); err != nil {
		t.Fatal(err)
	}
	entry, err := f.AssignMission(t.Context(), f.decision("DEC-1", "D1", "O1"), policy.Delivery{})
	if malformed := new(firestoretx.MalformedError); !errors.As(err, &malformed) {
		t.Errorf("%+v, %v; want an error that names the document", entry, err)
	}
	if o := f.order(t, "O1"); o.Status != domain.OrderPending {
		t.Errorf("O1 is %s", o.Status)
	}
}

// A mission whose counts of stops were edited to less than 0 is malformed, and reports of its
// drone say so. No route is cut there.
func TestStore_RefusesStopsBelowZero(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustOrder(t, "O1")
	mission := f.assign(t, f.decision("DEC-1", "D1", "O1")).MissionID
	inFlight := func() domain.Telemetry {
		f.now = f.now.Add(time.Second)
		tm := idle("D1", f.now)
		tm.Status, tm.MissionID = domain.DroneMoving, mission
		return tm
	}
	for field, value := range map[string]any{
		"reachedStops":  -1,
		"droppedStops":  []any{2, -1},
		"sightings":     []any{map[string]any{"stop": -1, "at": f.now, "claimed": false}},
		"earlierRoutes": []any{map[string]any{"revision": 1, "shared": -1}},
	} {
		doc := f.client.Doc("missions/" + string(mission))
		if _, err := doc.Set(t.Context(), map[string]any{field: value}, firestore.MergeAll); err != nil {
			t.Fatal(err)
		}
		err := f.report(t, inFlight())
		if malformed := new(firestoretx.MalformedError); !errors.As(err, &malformed) || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), "is -1; give 0 or more") {
			t.Errorf("%s: %v, want an error that names the field and the fix", field, err)
		}
		if _, err := doc.Update(t.Context(), []firestore.Update{{Path: field, Value: firestore.Delete}}); err != nil {
			t.Fatal(err)
		}
	}
	f.mustReport(t, inFlight()) // repaired
}

// F-DEC-02: drones without a home depot share a fence of their own.
func TestStore_FencesOfDronesWithoutAHome(t *testing.T) {
	f := newFleet(t)
	for _, id := range []domain.DroneID{"D1", "STRAY-1", "STRAY-2"} {
		f.mustReport(t, idle(id, f.now))
		f.mustOrder(t, domain.OrderID("O-"+id))
	}
	for _, tt := range []struct {
		drone domain.DroneID
		fence string
		want  policy.Reason
	}{
		{"STRAY-1", "000000000000007", ""},
		{"STRAY-2", "000000000000006", policy.ReasonStaleFence},
		{"D1", "000000000000001", ""},
	} {
		d := f.decision(domain.DecisionID("DEC-"+tt.drone), tt.drone, domain.OrderID("O-"+tt.drone))
		d.Fence = tt.fence
		if e := f.assign(t, d); e.Reason != string(tt.want) {
			t.Errorf("%s with fence %s: %+v", tt.drone, tt.fence, e)
		}
	}
	want := map[string]string{"~none": "000000000000007", string(depot.ID): "000000000000001"} // Firestore takes no empty id
	if diff := cmp.Diff(want, f.control(t)); diff != "" {
		t.Error(diff)
	}
}

// control returns the fence of each document in the collection control.
func (f *fleet) control(t *testing.T) map[string]string {
	t.Helper()
	docs, err := f.client.Collection("control").Documents(t.Context()).GetAll()
	if err != nil {
		t.Fatal(err)
	}
	fences := map[string]string{}
	for _, doc := range docs {
		fences[doc.Ref.ID] = fmt.Sprint(doc.Data()["fence"])
	}
	return fences
}

// F-DEC-02, F-DEC-08: a depot whose id equals that of another document in the
// collection control still has a fence document of its own.
func TestStore_FencesOfDepotsNamedLikeOtherDocuments(t *testing.T) {
	f := newFleet(t)
	want, ids := policy.Fences{}, []domain.DepotID{"", "decisions", "clock", "none", "~none", "~", "_", "~decisions", "~~none"}
	emutest.IssueFences(t, f.client, "000000000000099", ids...)
	f.set(t, "control/clock", map[string]any{"speed": 1})
	for i, id := range ids {
		for step, tt := range []struct {
			fence int
			want  policy.Reason
		}{{10 + i, ""}, {9 + i, policy.ReasonStaleFence}} {
			drone := domain.DroneID(fmt.Sprint("D-", i, "-", step))
			if id != "" {
				if err := f.Setup(t.Context(), nil, nil, []domain.Drone{{ID: drone, HomeDepotID: id}}); err != nil {
					t.Fatal(err)
				}
			}
			f.mustReport(t, idle(drone, f.now))
			f.mustOrder(t, domain.OrderID("O-"+drone))
			d := f.decision(domain.DecisionID("DEC-"+drone), drone, domain.OrderID("O-"+drone))
			d.Fence = fmt.Sprintf("%015d", tt.fence)
			if e := f.assign(t, d); e.Reason != string(tt.want) {
				t.Errorf("depot %q, fence %d: %+v", id, tt.fence, e)
			}
		}
		want[id] = fmt.Sprintf("%015d", 10+i)
	}
	if fences, err := f.Fences(t.Context()); err != nil || !maps.Equal(fences, want) {
		t.Errorf("stored %v, %v; want %v", fences, err, want)
	}
	if control := f.control(t); len(control) != len(ids)+1 {
		t.Errorf("documents %v, want one for each of %d depots and the clock", control, len(ids))
	}
}

// F-ORD-03
func TestStore_CancellationOfAnAssignedOrderWithdrawsIt(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustOrder(t, "O1")
	f.mustOrder(t, "O2")
	mission := f.assign(t, f.decision("DEC-1", "D1", "O1", "O2")).MissionID
	cancel := func(id domain.OrderID) error {
		return f.IngestOrder(t.Context(), domain.OrderRequest{ID: id, Cancel: true}, f.now)
	}
	if err := cancel("O1"); err != nil {
		t.Fatal(err)
	}
	m, err := f.Mission(t.Context(), mission)
	if err != nil || m.Status != domain.MissionActive || len(m.OrderIDs) != 1 || len(m.Route) != 2 {
		t.Fatalf("mission %+v, %v", m, err)
	}
	if err := cancel("O2"); err != nil {
		t.Fatal(err)
	}
	m, err = f.Mission(t.Context(), mission)
	if err != nil || m.Status != domain.MissionFailed || m.FailureReason != domain.FailureWithdrawn || !m.RevokePending {
		t.Fatalf("mission %+v, %v", m, err)
	}
	if d := f.drone(t, "D1"); d.Bound() {
		t.Errorf("drone still bound to %s", d.CurrentMissionID)
	}
	wantReason(t, cancel("O2"), policy.ReasonAlreadyCancelled)
	if err := cancel("LATER"); err != nil {
		t.Fatal(err)
	}
	if err := f.IngestOrder(t.Context(), domain.OrderRequest{ID: "LATER"}, f.now); !errors.Is(err, &policy.Rejection{Reason: policy.ReasonAlreadyCancelled}) {
		t.Errorf("an order after its cancellation: %v", err)
	}
}

// F-ORD-03, F-DOC-01: an order is not cancelled while its mission's document is
// malformed and the mission could not be changed with it.
func TestStore_CancellationWaitsUntilTheMissionCanBeRead(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustOrder(t, "O1")
	mission := f.assign(t, f.decision("DEC-1", "D1", "O1")).MissionID
	f.spoil(t, mission)
	var malformed *firestoretx.MalformedError
	if err := f.CancelOrder(firestoretx.By(t.Context(), "ann"), "O1", "obsolete"); !errors.As(err, &malformed) {
		t.Errorf("cancelled with error %v, want one that names the malformed mission", err)
	}
	if o := f.order(t, "O1"); o.Status != domain.OrderAssigned || o.AssignedMissionID != mission {
		t.Errorf("order %+v", o)
	}
}

// F-DOC-02
func TestStore_ForeignFieldsSurvive(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	ref := f.client.Doc("drones/D1")
	if _, err := ref.Set(t.Context(), map[string]any{"painted": "red"}, firestore.MergeAll); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		moved := idle("D1", f.now.Add(time.Duration(i+1)*time.Second))
		moved.Position.Lat += float64(i) / 1000
		f.mustReport(t, moved)
	}
	snap, err := ref.Get(t.Context())
	if err != nil || snap.Data()["painted"] != "red" {
		t.Errorf("%v, %v", snap.Data(), err)
	}
}

// F-TEL-09: a clock that is set forward between the choice of what to sweep and its
// transaction changes nothing.
func TestStore_SweepsNothingByAClockThatWasSet(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustOrder(t, "O1")
	f.mustOrder(t, "O2")
	mission := f.assign(t, f.decision("DEC-1", "D1", "O1")).MissionID
	f.now = f.now.Add(2 * time.Hour)
	result, err := f.Sweep(t.Context(), func() bool { return false })
	if !errors.Is(err, firestoretx.ErrClockSet) || result != (firestoretx.SweepResult{}) {
		t.Errorf("swept %+v, %v", result, err)
	}
	if m, err := f.Mission(t.Context(), mission); err != nil || m.Status != domain.MissionActive {
		t.Errorf("mission %+v, %v", m, err)
	}
	if o := f.order(t, "O2"); o.Late {
		t.Errorf("order %+v", o)
	}
}

// F-ORD-02, F-OPT-02, F-TEL-09: an order document that another tool created lacks the
// flags that the snapshot and the sweeper query. Its order is served like any other.
func TestStore_OrderCreatedByAnotherToolIsOfferedAndSwept(t *testing.T) {
	f := newFleet(t)
	ref := f.client.Doc("orders/O1")
	if _, err := ref.Set(t.Context(), map[string]any{"invoice": "2026-17"}); err != nil {
		t.Fatal(err)
	}
	f.mustOrder(t, "O1")
	snap, err := f.Snapshot(t.Context(), firestoretx.SnapshotRequest{Depot: depot.ID, Limits: policy.Limits{MaxSilence: time.Hour}})
	if err != nil || len(snap.Orders) != 1 {
		t.Errorf("offered %+v, %v", snap.Orders, err)
	}
	f.now = f.now.Add(time.Hour)
	if result, err := f.Sweep(t.Context(), nil); err != nil || result.OrdersLate != 1 {
		t.Errorf("swept %+v, %v", result, err)
	}
	stored, err := ref.Get(t.Context())
	if err != nil || stored.Data()["invoice"] != "2026-17" {
		t.Errorf("%v, %v", stored.Data(), err)
	}
}

// A malformed document fails alone and says what to correct.
func TestStore_MalformedDroneDoesNotAffectOthers(t *testing.T) {
	f := newFleet(t)
	if _, err := f.client.Doc("drones/D1").Set(t.Context(), map[string]any{"batteryPercentage": "full"}); err != nil {
		t.Fatal(err)
	}
	errs := f.applier.Apply(t.Context(), []domain.Telemetry{idle("D1", f.now), idle("D2", f.now)})
	var malformed *firestoretx.MalformedError
	if !errors.As(errs[0], &malformed) || errs[1] != nil {
		t.Errorf("errors %v", errs)
	}
}

// F-BAT-01: a batch that cannot commit is split until the malformed document is alone.
func TestStore_MalformedMissionDoesNotAffectOthers(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustOrder(t, "O1")
	f.spoil(t, f.assign(t, f.decision("DEC-1", "D1", "O1")).MissionID)
	at := f.now.Add(time.Second)
	errs := f.applier.Apply(t.Context(), []domain.Telemetry{idle("D2", at), idle("D1", at), idle("D3", at)})
	var malformed *firestoretx.MalformedError
	if errs[0] != nil || !errors.As(errs[1], &malformed) || errs[2] != nil {
		t.Errorf("errors %v", errs)
	}
	if d := f.drone(t, "D2"); !d.LastUpdate.Equal(at) {
		t.Errorf("D2's report has no effect: %+v", d)
	}
}

// F-BAT-01: only reports that change nothing but the position may wait for a batch.
func TestStore_ReportsThatChangeMoreThanPositionAreUrgent(t *testing.T) {
	f := newFleet(t)
	says := func(seconds int, status domain.DroneStatus, mission domain.MissionID, lat, lon float64) domain.Telemetry {
		return domain.Telemetry{
			DroneID: "D1", Timestamp: f.now.Add(time.Duration(seconds) * time.Second), Battery: 90,
			Status: status, MissionID: mission, Position: domain.Position{Lat: lat, Lon: lon},
		}
	}
	expect := func(name string, report domain.Telemetry, want bool) {
		t.Helper()
		if got := f.applier.Urgent(report); got != want {
			t.Errorf("%s: urgent %t, want %t", name, got, want)
		}
	}
	expect("a drone that is not known", says(0, domain.DroneIdle, "", 48.85, 2.35), true)
	f.mustReport(t, says(0, domain.DroneIdle, "", 48.85, 2.35))
	expect("another place", says(1, domain.DroneIdle, "", 48.851, 2.35), false)
	expect("the same again", says(0, domain.DroneIdle, "", 48.85, 2.35), false)
	expect("too far ahead", says(3600, domain.DroneCharging, "", 48.85, 2.35), false)
	expect("another status", says(1, domain.DroneCharging, "", 48.85, 2.35), true)

	f.mustOrder(t, "O1")
	mission := f.assign(t, f.decision("DEC-1", "D1", "O1")).MissionID
	f.mustReport(t, says(2, domain.DroneMoving, mission, 48.851, 2.35))
	expect("under way", says(3, domain.DroneMoving, mission, 48.852, 2.35), false)
	expect("a stop", says(3, domain.DroneMoving, mission, 48.858, 2.354), true)
}

// F-ACK-01: only errors that a retry can fix are retried.
func TestRetryable_AcceptsOnlyTransientErrors(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":                        {nil, false},
		"deadline exceeded":              {fmt.Errorf("order O1: %w", context.DeadlineExceeded), true},
		"unavailable":                    {fmt.Errorf("order O1: %w", status.Error(codes.Unavailable, "")), true},
		"contended":                      {status.Error(codes.Aborted, ""), true},
		"quota":                          {status.Error(codes.ResourceExhausted, ""), true},
		"credentials":                    {status.Error(codes.Unauthenticated, ""), true},
		"permission":                     {status.Error(codes.PermissionDenied, ""), true},
		"created by another":             {status.Error(codes.AlreadyExists, ""), true},
		"written by another":             {status.Error(codes.FailedPrecondition, ""), true},
		"deleted by another":             {status.Error(codes.NotFound, ""), true},
		"the transaction is over":        {status.Error(codes.InvalidArgument, "The referenced transaction has expired or is no longer valid."), true},
		"a transaction nobody can run":   {status.Error(codes.InvalidArgument, "Transaction too big."), false},
		"a document nobody can write":    {status.Error(codes.InvalidArgument, "The document has expired fields."), false},
		"not implemented":                {status.Error(codes.Unimplemented, ""), false},
		"a malformed document":           {fmt.Errorf("order O1: %w", &firestoretx.MalformedError{Err: errors.New("field status")}), false},
		"a rejection, whatever it wraps": {errors.Join(&policy.Rejection{Reason: policy.ReasonStaleFence}, context.DeadlineExceeded), false},
	} {
		if got := firestoretx.Retryable(row.err); got != row.want {
			t.Errorf("%s: %t, want %t", name, got, row.want)
		}
	}
}

// F-DOC-01, F-DEC-03, F-DLQ-01, F-REC-01: events, ledger entries, cycles and discards expire after
// the configured retention.
func TestStore_KeepsRecordsForTheRetention(t *testing.T) {
	f := newFleet(t)
	f.Store = firestoretx.New(f.client, firestoretx.Config{PlanUnregistered: true, Now: f.later, Retention: domain.Retention{Of: map[string]time.Duration{"events": time.Hour, "decisions": time.Hour, "cycles": time.Hour, "discards": time.Hour}}}) // ahead of the server
	f.mustOrder(t, "O1")
	f.assign(t, f.decision("DEC-1", "D1", "O1"))
	if err := f.RecordCycle(t.Context(), domain.Cycle{ID: "C1", DepotID: depot.ID, EndedAt: f.later()}); err != nil {
		t.Fatal(err)
	}
	if err := f.RecordDiscard(t.Context(), domain.Discard{ID: "orders-1", Topic: "orders"}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []struct{ collection, field, value, since string }{
		{firestoretx.Events, "orderId", "O1", "time"},
		{firestoretx.Decisions, "droneId", "D1", "appliedAt"},
		{firestoretx.Cycles, "depotId", string(depot.ID), "endedAt"},
		{firestoretx.Discards, "topic", "orders", "discardedAt"},
	} {
		docs, err := f.client.Collection(kind.collection).Where(kind.field, "==", kind.value).Documents(t.Context()).GetAll()
		if err != nil || len(docs) != 1 {
			t.Fatalf("%d of %s, %v", len(docs), kind.collection, err)
		}
		expires, _ := docs[0].Data()["expireAt"].(time.Time)
		if kept := expires.Sub(docs[0].Data()[kind.since].(time.Time)); kept != time.Hour {
			t.Errorf("%s: retention %s, want an hour", kind.collection, kept)
		}
	}
}

// F-REC-01: with a retention, orders and missions are kept that long after their end, and not
// ended ones for ever; without one all are kept for ever.
func TestStore_KeepsEndedOrdersAndMissionsForTheirRetention(t *testing.T) {
	f := newFleet(t)
	f.Store = firestoretx.New(f.client, firestoretx.Config{Retention: domain.Retention{Of: map[string]time.Duration{"orders": time.Hour, "missions": 2 * time.Hour}}})
	f.mustReport(t, idle("D1", f.now))
	for _, id := range []domain.OrderID{"O1", "O2", "O3"} {
		f.mustOrder(t, id)
	}
	d := f.decision("DEC-1", "D1", "O1")
	d.SnapshotTime = time.Now()
	f.assign(t, d)
	ann := firestoretx.By(t.Context(), "ann")
	if err := errors.Join(f.CancelOrder(ann, "O1", "obsolete"), f.CancelOrder(ann, "O2", "obsolete")); err != nil {
		t.Fatal(err)
	}
	f.Store = firestoretx.New(f.client, firestoretx.Config{})
	f.mustOrder(t, "O4")
	if err := f.CancelOrder(ann, "O4", "obsolete"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]time.Duration{"orders/O1": time.Hour, "orders/O2": time.Hour, "orders/O3": 0, "orders/O4": 0, "missions/M-DEC-1": 2 * time.Hour} {
		doc, err := f.client.Doc(path).Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		expires, has := doc.Data()["expireAt"].(time.Time)
		if kept := time.Until(expires); has != (want > 0) || has && (kept > want || kept < want-time.Minute) {
			t.Errorf("%s (%s) expires in %s (%t), want %s after its end", path, doc.Data()["status"], kept, has, want)
		}
	}
}

// F-OPT-02
func TestStore_SnapshotOffersOnlyWhatCanBeAssigned(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	low := idle("D2", f.now)
	low.Battery = 20
	f.mustReport(t, low)
	f.mustOrder(t, "O1")
	f.mustOrder(t, "O2")
	if err := f.HoldOrder(firestoretx.By(t.Context(), "ann"), "O2", "ask the ward"); err != nil {
		t.Fatal(err)
	}
	snap, err := f.Snapshot(context.Background(), firestoretx.SnapshotRequest{Depot: depot.ID})
	if err != nil {
		t.Fatal(err)
	}
	if len(snap.Drones) != 1 || snap.Drones[0].ID != "D1" || len(snap.Orders) != 1 || snap.Orders[0].ID != "O1" || snap.Depot != depot {
		t.Errorf("%+v", snap)
	}
}

// F-OPT-05
func TestStore_PastSnapshotShowsThatTime(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustOrder(t, "O1")
	req := firestoretx.SnapshotRequest{Depot: depot.ID, Limits: policy.Limits{MaxSilence: time.Hour}}
	then, err := f.Snapshot(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	f.mustOrder(t, "O2")
	f.assign(t, f.decision("DEC-1", "D1", "O1"))
	req.At = then.ReadTime
	past, err := f.Snapshot(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if len(past.Orders) != 1 || past.Orders[0].ID != "O1" || len(past.Drones) != 1 || !past.ReadTime.Equal(then.ReadTime.Truncate(time.Microsecond)) {
		t.Errorf("%+v, want %+v", past, then)
	}
}

// F-OPT-02: operators write depots and warehouses by hand. One whose position field is
// misspelled is reported, not placed at latitude and longitude 0.
func TestStore_PlaceWithoutAPositionIsMalformed(t *testing.T) {
	f := newFleet(t)
	for path, doc := range map[string]map[string]any{
		"depots/UNPLACED":     {"name": "Depot of the north", "location": depot.Name},
		"warehouses/UNPLACED": {"authorizedProductTypes": []string{"BLOOD"}, "position": nil},
	} {
		if _, err := f.client.Doc(path).Set(t.Context(), doc); err != nil {
			t.Fatal(err)
		}
	}
	depots, err := f.Depots(t.Context())
	if err != nil || len(depots.Items) != 1 || len(depots.Malformed) != 1 || !strings.Contains(depots.Malformed[0].Error(), "depots/UNPLACED: field position is missing") {
		t.Errorf("depots %+v, %v", depots, err)
	}
	var left []error
	request := firestoretx.SnapshotRequest{Depot: depot.ID, Limits: policy.Limits{MaxSilence: time.Hour}, OnMalformed: func(err error) { left = append(left, err) }}
	snap, err := f.Snapshot(t.Context(), request)
	if err != nil || len(snap.Warehouses) != 0 || len(left) != 1 || !strings.Contains(left[0].Error(), "warehouses/UNPLACED: field position is missing") {
		t.Errorf("warehouses %+v, left out %v, %v", snap.Warehouses, left, err)
	}
	request.Depot = "UNPLACED"
	var malformed *firestoretx.MalformedError
	if _, err := f.Snapshot(t.Context(), request); !errors.As(err, &malformed) {
		t.Errorf("snapshot of a depot without a position: %v", err)
	}
}

// F-OPT-02: the only depot plans for all drones; one of several plans for its own.
func TestStore_SnapshotOffersDronesWithoutAHomeToTheOnlyDepot(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustReport(t, idle("STRAY", f.now))
	offered := func() int {
		snap, err := f.Snapshot(t.Context(), firestoretx.SnapshotRequest{Depot: depot.ID, Limits: policy.Limits{MaxSilence: time.Hour}})
		if err != nil {
			t.Fatal(err)
		}
		return len(snap.Drones)
	}
	if n := offered(); n != 2 {
		t.Errorf("the only depot is offered %d drones, want 2", n)
	}
	other := domain.Depot{ID: "DEPOT-2", Position: domain.Position{Lat: 45.76, Lon: 4.84}}
	if err := f.Setup(t.Context(), []domain.Depot{other}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if n := offered(); n != 1 {
		t.Errorf("one of two depots is offered %d drones, want its own", n)
	}
	if _, err := f.Snapshot(t.Context(), firestoretx.SnapshotRequest{Depot: "NOWHERE"}); !errors.Is(err, firestoretx.ErrNotFound) {
		t.Errorf("snapshot of an unknown depot: %v", err)
	}
}

// F-TEL-09: silence ends a mission and frees its orders; the sweeper skips malformed
// documents.
func TestStore_SweepFailsSilentAndStalledMissions(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustReport(t, idle("D2", f.now))
	f.mustOrder(t, "O1")
	f.mustOrder(t, "O2")
	mission := f.assign(t, f.decision("DEC-1", "D1", "O1")).MissionID
	for id, broken := range map[string]map[string]any{
		"missions/ALONE": {"status": "ACTIVE", "droneId": "HURT"}, "drones/HURT": {"status": "PROBLEM", "currentMissionId": "ALONE", "position": "here"},
		"missions/BROKEN": {"status": "ACTIVE", "droneId": 7}, "drones/BROKEN": {"status": "IDLE", "position": "here"}, "orders/BROKEN": {"status": "PENDING", "late": false, "attempts": "many"},
	} {
		if _, err := f.client.Doc(id).Set(t.Context(), broken); err != nil {
			t.Fatal(err)
		}
	}
	f.now = f.now.Add(2 * time.Hour)
	result, err := f.Sweep(t.Context(), nil)
	var malformed *firestoretx.MalformedError
	if !errors.As(err, &malformed) {
		t.Errorf("error %v, want one that names the malformed documents", err)
	}
	for _, id := range []string{"missions/BROKEN", "drones/HURT", "drones/BROKEN", "orders/BROKEN"} {
		if err != nil && !strings.Contains(err.Error(), id) {
			t.Errorf("%s is not named in %v", id, err)
		}
	}
	// O1 returned to PENDING early enough that the same sweep marks it late with O2.
	if want := (firestoretx.SweepResult{MissionsFailed: 1, DronesUnknown: 1, OrdersLate: 2}); result != want {
		t.Errorf("swept %+v, want %+v", result, want)
	}
	m, err := f.Mission(t.Context(), mission)
	if err != nil || m.Status != domain.MissionFailed || m.FailureReason != domain.FailureContactLost {
		t.Errorf("mission %+v, %v", m, err)
	}
	if o := f.order(t, "O1"); o.Status != domain.OrderPending || o.Attempts != 1 || !o.Late {
		t.Errorf("order %+v", o)
	}
	if d := f.drone(t, "D1"); d.Status != domain.DroneUnknown || d.Bound() {
		t.Errorf("drone %+v", d)
	}
}

// F-TEL-09: a drone lost on its way home is released, whatever it reported last.
func TestStore_SweepFindsDronesSilentAfterTheirMission(t *testing.T) {
	//exhaustive:ignore
	flying := map[domain.DroneStatus]domain.DroneStatus{
		domain.DroneMoving: domain.DroneUnknown, domain.DroneDelivering: domain.DroneUnknown,
		domain.DroneProblem: domain.DroneUnknown, domain.DroneEmergency: domain.DroneEmergency, // latched
	}
	for last, lost := range flying {
		t.Run(string(last), func(t *testing.T) {
			f := newFleet(t)
			f.mustReport(t, idle("D1", f.now))
			f.mustOrder(t, "O1")
			mission := f.assign(t, f.decision("DEC-1", "D1", "O1")).MissionID
			for i, at := range []domain.Position{{Lat: 48.858, Lon: 2.354}, {Lat: 48.86, Lon: 2.36}} {
				f.mustReport(t, domain.Telemetry{DroneID: "D1", Timestamp: f.now.Add(time.Duration(i+1) * time.Second), Position: at, Battery: 80, Status: domain.DroneMoving, MissionID: mission})
			}
			f.mustReport(t, domain.Telemetry{DroneID: "D1", Timestamp: f.now.Add(3 * time.Second), Position: domain.Position{Lat: 48.86, Lon: 2.36}, Battery: 80, Status: last, MissionID: mission})
			f.now = f.now.Add(time.Hour)
			if result, err := f.Sweep(t.Context(), nil); err != nil || result != (firestoretx.SweepResult{DronesUnknown: 1}) {
				t.Errorf("swept %+v, %v", result, err)
			}
			if d := f.drone(t, "D1"); d.Status != lost || d.Bound() {
				t.Errorf("drone is %s on %q", d.Status, d.CurrentMissionID)
			}
			if m := f.mission(t, mission); m.Status != domain.MissionCompleted {
				t.Errorf("mission %+v", m)
			}
		})
	}
}

// F-TEL-09: an order becomes late when its deadline passes, whatever its status.
func TestStore_SweepFindsLateOrdersUnderway(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	for _, id := range []domain.OrderID{"ABOARD", "ASSIGNED", "PENDING", "SOLVING"} {
		from := collected
		if id == "ASSIGNED" {
			from.Lat++
		}
		req := domain.OrderRequest{ID: id, Deadline: f.now.Add(time.Minute), OrderContent: domain.OrderContent{
			ProductType: "BLOOD", Pickup: &from, Delivery: domain.Position{Lat: 48.86, Lon: 2.36},
		}}
		if err := f.IngestOrder(t.Context(), req, f.now); err != nil {
			t.Fatal(err)
		}
	}
	d := f.decision("DEC-1", "D1", "ABOARD", "ASSIGNED")
	d.Route[2].Position.Lat++
	mission := f.assign(t, d).MissionID
	aboard := domain.Telemetry{DroneID: "D1", Timestamp: f.now.Add(time.Second), Position: d.Route[0].Position, Battery: 80, Status: domain.DroneMoving, MissionID: mission}
	f.mustReport(t, aboard)
	foreign := []firestore.Update{{Path: "status", Value: string(domain.OrderSolving)}} // no version of ours writes it
	if _, err := f.client.Doc("orders/SOLVING").Update(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	f.now = f.now.Add(70 * time.Second)
	if result, err := f.Sweep(t.Context(), nil); err != nil || result != (firestoretx.SweepResult{OrdersLate: 4}) {
		t.Errorf("swept %+v, %v", result, err)
	}
	for id, status := range map[domain.OrderID]domain.OrderStatus{"ABOARD": domain.OrderInDelivery, "ASSIGNED": domain.OrderAssigned, "PENDING": domain.OrderPending, "SOLVING": domain.OrderSolving} {
		if o := f.order(t, id); !o.Late || o.Status != status {
			t.Errorf("order %s is %s, late %t", id, o.Status, o.Late)
		}
	}
}

// F-ORD-02: a redelivered older request does not undo a newer one.
func TestStore_OlderOrderContentNeverReturns(t *testing.T) {
	f := newFleet(t)
	first := f.mustOrder(t, "O1")
	second := first
	second.ProductType = "VACCINE"
	if err := f.IngestOrder(t.Context(), second, f.now.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	wantReason(t, f.IngestOrder(t.Context(), first, f.now), policy.ReasonOrderSuperseded)
	third := first
	third.ProductType = "PLASMA"
	if err := f.IngestOrder(t.Context(), third, f.now.Add(2*time.Second)); err != nil {
		t.Fatal(err)
	}
	wantReason(t, f.IngestOrder(t.Context(), second, f.now.Add(time.Second)), policy.ReasonOrderSuperseded)
	if o := f.order(t, "O1"); o.ProductType != "PLASMA" {
		t.Errorf("the order asks for %s", o.ProductType)
	}
}

// F-BAT-01, F-DOC-01: for a cached drone the applier writes the new status and its event
// in one call without a read. After another writer changed the drone, it uses a
// transaction.
func TestStore_KnownDroneChangesWithoutARead(t *testing.T) {
	clients := emutest.Clients(t)
	now := time.Now().UTC().Truncate(time.Microsecond)
	store := firestoretx.New(clients.Firestore, firestoretx.Config{PlanUnregistered: true, Now: func() time.Time { return now }})
	applier := store.NewTelemetryApplier()
	report := func(second int, status domain.DroneStatus) {
		t.Helper()
		tm := idle("D1", now.Add(time.Duration(second)*time.Second))
		tm.Status = status
		if err := applier.Apply(t.Context(), []domain.Telemetry{tm})[0]; err != nil {
			t.Fatal(err)
		}
	}
	cost := func(f func()) meter.Firestore {
		before := clients.Meter.FirestoreTotals()
		f()
		after := clients.Meter.FirestoreTotals()
		return meter.Firestore{RPCs: after.RPCs - before.RPCs, Reads: after.Reads - before.Reads, Writes: after.Writes - before.Writes}
	}
	report(0, domain.DroneIdle)
	if got := cost(func() { report(1, domain.DroneCharging) }); got != (meter.Firestore{RPCs: 1, Writes: 2}) {
		t.Errorf("a change of status cost %+v", got)
	}
	if got := cost(func() { report(2, domain.DroneCharging) }); got != (meter.Firestore{RPCs: 1, Writes: 1}) {
		t.Errorf("a new position cost %+v", got)
	}
	// Another writer: the precondition fails, and the transaction reads the new state.
	if _, err := clients.Firestore.Doc("drones/D1").Update(t.Context(), []firestore.Update{{Path: "painted", Value: "red"}}); err != nil {
		t.Fatal(err)
	}
	if got := cost(func() { report(3, domain.DroneMoving) }); got != (meter.Firestore{RPCs: 4, Reads: 1, Writes: 2}) {
		t.Errorf("after another writer the change cost %+v", got)
	}
	events, err := store.EventsOf(t.Context(), "droneId", "D1")
	if err != nil {
		t.Fatal(err)
	}
	var path []string
	for _, e := range events.Items {
		path = append(path, e.To)
	}
	if want := []string{"UNKNOWN", "IDLE", "CHARGING", "MOVING"}; !slices.Equal(path, want) {
		t.Errorf("events record the statuses %v, want %v", path, want)
	}
}

// deliverFirst lets D1 fly a mission of O1 and O2 up to O1's delivery, as if its
// command had been published.
func (f *fleet) deliverFirst(t *testing.T) domain.MissionID {
	t.Helper()
	f.mustReport(t, idle("D1", f.now))
	f.mustOrder(t, "O1")
	f.mustOrder(t, "O2")
	mission := f.assign(t, f.decision("DEC-1", "D1", "O1", "O2")).MissionID
	f.mark(t, f.mission(t, mission))
	for i, at := range []domain.Position{{Lat: 48.858, Lon: 2.354}, {Lat: 48.86, Lon: 2.36}} {
		f.mustReport(t, domain.Telemetry{DroneID: "D1", Timestamp: f.now.Add(time.Duration(i+1) * time.Second), Position: at, Battery: 80, Status: domain.DroneMoving, MissionID: mission})
	}
	return mission
}

func (f *fleet) mission(t *testing.T, id domain.MissionID) domain.Mission {
	t.Helper()
	m, err := f.Mission(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (f *fleet) mark(t *testing.T, missions ...domain.Mission) {
	t.Helper()
	if err := f.MarkCommandsPublished(t.Context(), missions); err != nil {
		t.Fatal(err)
	}
}

// owed lists all owed commands, whoever assigned the mission and when.
func (f *fleet) owed(t *testing.T) []domain.Mission {
	t.Helper()
	owed, err := f.OwedCommands(t.Context(), -time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return owed
}

// F-DEC-05, F-ORD-03: the command to fly home is owed after its mission has ended. It is
// found even if the manager that cancelled the order never sends it.
func TestStore_CommandToFlyHomeIsFoundUntilItIsSent(t *testing.T) {
	f := newFleet(t)
	mission := f.deliverFirst(t)
	if owed := f.owed(t); len(owed) != 0 {
		t.Fatalf("owed before the cancellation: %+v", owed)
	}
	if err := f.CancelOrder(firestoretx.By(t.Context(), "ann"), "O2", "obsolete"); err != nil {
		t.Fatal(err)
	}
	owed := f.owed(t)
	if len(owed) != 1 || owed[0].ID != mission || owed[0].Status != domain.MissionCompleted || len(owed[0].Route) != 2 {
		t.Fatalf("owed: %+v", owed)
	}
	f.mark(t, owed...)
	if owed := f.owed(t); len(owed) != 0 {
		t.Errorf("owed after it was sent: %+v", owed)
	}
	if m := f.mission(t, mission); m.CommandPending || m.CommandPublishedAt.IsZero() {
		t.Errorf("the mission is not marked: %+v", m)
	}
}

// F-DEC-05: an order is cancelled or the mission fails while an earlier command is being
// sent. The newer command stays owed, whichever way the outbox got the earlier one.
func TestStore_MarksOnlyTheCommandThatWasSent(t *testing.T) {
	for name, sent := range map[string]func(f *fleet) domain.Mission{
		"offered by the commit": func(f *fleet) domain.Mission { return f.offered[0] },
		"collected by a sweep":  func(f *fleet) domain.Mission { return f.owed(t)[0] },
		"of an unknown version": func(f *fleet) domain.Mission { return f.mission(t, "M-DEC-1") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			f.noteOffers()
			f.mustReport(t, idle("D1", f.now))
			f.mustOrder(t, "O1")
			f.mustOrder(t, "O2")
			f.assign(t, f.decision("DEC-1", "D1", "O1", "O2"))
			long := sent(f)
			if err := f.CancelOrder(firestoretx.By(t.Context(), "ann"), "O2", "obsolete"); err != nil {
				t.Fatal(err)
			}
			if last := f.offered[len(f.offered)-1]; len(last.Route) != 2 {
				t.Errorf("offered %+v, want the shorter route", last)
			}
			f.mark(t, long)
			owed := f.owed(t)
			if len(owed) != 1 || len(owed[0].Route) != 2 {
				t.Fatalf("the shorter route is not owed: %+v", owed)
			}
			if !owed[0].CommandExpiresAt.After(long.CommandExpiresAt) { // the drone tells commands apart by their expiry
				t.Errorf("the shorter route expires %s, want later than %s", owed[0].CommandExpiresAt, long.CommandExpiresAt)
			}
			if err := f.CancelOrder(firestoretx.By(t.Context(), "ann"), "O1", "obsolete"); err != nil {
				t.Fatal(err)
			}
			f.mark(t, long, owed[0])
			owed = f.owed(t)
			if len(owed) != 1 || !owed[0].Command().Revoke {
				t.Fatalf("the revocation is not owed: %+v", owed)
			}
			if last := f.offered[len(f.offered)-1]; !last.RevokePending {
				t.Errorf("offered %+v, want the revocation", last)
			}
			f.mark(t, long, owed[0])
			if owed := f.owed(t); len(owed) != 0 {
				t.Errorf("still owed: %+v", owed)
			}
		})
	}
}

// F-DEC-05: a sent command is marked even if its mission was written since, and although
// its times in memory are more precise than in the document.
func TestStore_MarksACommandDatedInNanoseconds(t *testing.T) {
	f := newFleet(t)
	reported := f.now
	f.now = f.now.Add(10*time.Second + 123*time.Nanosecond) // later than the server's time, which has only microseconds
	f.noteOffers()
	f.mustReport(t, idle("D1", reported))
	f.mustOrder(t, "O1")
	f.assign(t, f.decision("DEC-1", "D1", "O1"))
	if _, err := f.client.Doc("missions/M-DEC-1").Update(t.Context(), []firestore.Update{{Path: "note", Value: "seen"}}); err != nil {
		t.Fatal(err)
	}
	f.mark(t, f.offered...)
	if owed := f.owed(t); len(owed) != 0 {
		t.Errorf("still owed: %+v", owed)
	}
}

// F-DEC-05: the manager that assigned a mission has a grace period to send its command;
// after that every manager finds it. Revocations have no grace period.
func TestStore_LeavesANewCommandToItsAssigner(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustOrder(t, "O1")
	mission := f.mission(t, f.assign(t, f.decision("DEC-1", "D1", "O1")).MissionID)
	found := func(after time.Duration) int {
		t.Helper()
		f.now = mission.StartTime.Add(after)
		owed, err := f.OwedCommands(t.Context(), 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return len(owed)
	}
	if early, late := found(5*time.Second-time.Microsecond), found(5*time.Second); early != 0 || late != 1 {
		t.Errorf("%d owed before the grace is over, %d after", early, late)
	}
	if err := f.CancelOrder(firestoretx.By(t.Context(), "ann"), "O1", "obsolete"); err != nil {
		t.Fatal(err)
	}
	if n := found(0); n != 1 {
		t.Errorf("%d revocations owed", n)
	}
}

// F-DEC-05: commands of two missions that are sent together are marked independently.
func TestStore_MarksEachMissionSeparately(t *testing.T) {
	f := newFleet(t)
	for _, id := range []string{"1", "2"} {
		f.mustReport(t, idle(domain.DroneID("D"+id), f.now))
		f.mustOrder(t, domain.OrderID("O"+id))
		f.assign(t, f.decision(domain.DecisionID("DEC-"+id), domain.DroneID("D"+id), domain.OrderID("O"+id)))
	}
	if err := f.CancelOrder(firestoretx.By(t.Context(), "ann"), "O1", "obsolete"); err != nil {
		t.Fatal(err)
	}
	sent := f.owed(t) // the revocation of the one, the command of the other
	if err := f.CancelOrder(firestoretx.By(t.Context(), "ann"), "O2", "obsolete"); err != nil {
		t.Fatal(err)
	}
	f.mark(t, sent...)
	if owed := f.owed(t); len(owed) != 1 || owed[0].ID != "M-DEC-2" || !owed[0].Command().Revoke {
		t.Errorf("owed: %+v", owed)
	}
}

// F-DEC-05: marking costs one call if nobody else writes the missions. A deleted mission
// does not prevent the others from being marked.
func TestStore_MarkingCostsOneCall(t *testing.T) {
	clients := emutest.Clients(t)
	f := &fleet{client: clients.Firestore, now: time.Now().UTC()}
	f.noteOffers()
	emutest.IssueFences(t, f.client, "000000000000001", "")
	for _, id := range []string{"1", "2", "3"} {
		f.mustReport(t, idle(domain.DroneID("D"+id), f.now))
		f.mustOrder(t, domain.OrderID("O"+id))
		f.assign(t, f.decision(domain.DecisionID("DEC-"+id), domain.DroneID("D"+id), domain.OrderID("O"+id)))
	}
	cost := func(missions ...domain.Mission) meter.Firestore {
		before := clients.Meter.FirestoreTotals()
		f.mark(t, missions...)
		after := clients.Meter.FirestoreTotals()
		return meter.Firestore{RPCs: after.RPCs - before.RPCs, Reads: after.Reads - before.Reads, Writes: after.Writes - before.Writes}
	}
	if got := cost(f.offered[:2]...); got != (meter.Firestore{RPCs: 1, Writes: 2}) {
		t.Errorf("marking two missions cost %+v", got)
	}
	gone := domain.Mission{ID: "M-gone", Version: f.now.Truncate(time.Microsecond)}
	if got := cost(gone, f.offered[2]); got != (meter.Firestore{RPCs: 4, Reads: 2, Writes: 1}) {
		t.Errorf("with one mission deleted it cost %+v", got)
	}
	if owed := f.owed(t); len(owed) != 0 {
		t.Errorf("still owed: %+v", owed)
	}
}

// F-DEC-05, F-TEL-09: a drone would ignore a shorter route that was not sent before it
// expired. The sweeper extends its expiry and changes nothing else.
func TestStore_SweepRenewsACommandThatExpiredUnsent(t *testing.T) {
	f := newFleet(t)
	mission := f.deliverFirst(t)
	if err := f.CancelOrder(firestoretx.By(t.Context(), "ann"), "O2", "obsolete"); err != nil {
		t.Fatal(err)
	}
	before := f.mission(t, mission)
	f.now = f.now.Add(time.Minute)
	result, err := f.Sweep(t.Context(), nil)
	if err != nil || result.MissionsFailed != 0 {
		t.Fatalf("swept %+v, %v", result, err)
	}
	after := f.mission(t, mission)
	if want := f.now.Add(20 * time.Second); !after.CommandExpiresAt.Equal(want) {
		t.Errorf("the command expires %s, want %s", after.CommandExpiresAt, want)
	}
	after.CommandExpiresAt = before.CommandExpiresAt
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("something else changed:\n%s", diff)
	}
}

// F-DEC-05: during a rollout, missions written by a version without commandPending are
// handled exactly once: one that it failed before the command was sent, and one that it
// assigned without sending the command.
func TestStore_FindsCommandsOwedByAnOlderVersion(t *testing.T) {
	f := newFleet(t)
	write := func(id domain.MissionID, us ...firestore.Update) {
		t.Helper()
		if _, err := f.client.Collection(firestoretx.Missions).Doc(string(id)).Update(t.Context(), us); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []string{"1", "2"} {
		f.mustReport(t, idle(domain.DroneID("D"+n), f.now))
		f.mustOrder(t, domain.OrderID("O"+n))
		f.assign(t, f.decision(domain.DecisionID("DEC-"+n), domain.DroneID("D"+n), domain.OrderID("O"+n)))
	}
	if err := f.CancelOrder(firestoretx.By(t.Context(), "ann"), "O1", "obsolete"); err != nil {
		t.Fatal(err)
	}
	write("M-DEC-1", firestore.Update{Path: "commandPending", Value: true})
	write("M-DEC-2", firestore.Update{Path: "commandPending", Value: firestore.Delete})
	if _, err := f.Sweep(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var told []domain.MissionID
	for _, m := range f.owed(t) {
		told = append(told, m.ID)
	}
	slices.Sort(told)
	if told = slices.Compact(told); !slices.Equal(told, []domain.MissionID{"M-DEC-1", "M-DEC-2"}) {
		t.Errorf("owed: %v", told)
	}
	for _, guarded := range []bool{true, false} {
		owed := f.owed(t)
		for i := range owed {
			if !guarded {
				owed[i].Version = time.Time{}
			}
		}
		f.mark(t, owed...)
		if owed := f.owed(t); len(owed) != 0 {
			t.Errorf("after it was sent, guarded %t: still owed %+v", guarded, owed)
		}
		write("M-DEC-1", firestore.Update{Path: "commandPending", Value: true})
		write("M-DEC-2", firestore.Update{Path: "commandPending", Value: true})
	}
}

// F-TEL-10: a ghost's revocation is owed again until the outbox has sent it, even if its
// mission's document was deleted.
func TestStore_SendsAGhostItsRevocationAgain(t *testing.T) {
	for name, gone := range map[string]bool{"mission on record": false, "mission gone": true} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			f.noteOffers()
			f.mustReport(t, idle("D1", f.now))
			f.mustOrder(t, "O1")
			mission := f.assign(t, f.decision("DEC-1", "D1", "O1")).MissionID
			if err := f.CancelOrder(firestoretx.By(t.Context(), "ann"), "O1", "obsolete"); err != nil {
				t.Fatal(err)
			}
			f.mark(t, f.owed(t)...)
			if gone {
				if _, err := f.client.Doc("missions/" + string(mission)).Delete(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			f.offered = nil
			f.mustReport(t, domain.Telemetry{DroneID: "D1", Timestamp: f.now.Add(time.Second), Position: depot.Position, Battery: 80, Status: domain.DroneMoving, MissionID: mission})
			if len(f.offered) != 1 || f.offered[0].ID != mission || f.offered[0].DroneID != "D1" || !f.offered[0].Command().Revoke {
				t.Errorf("offered %+v", f.offered)
			}
			owed := f.owed(t)
			if len(owed) != 1 || owed[0].ID != mission || owed[0].DroneID != "D1" || !owed[0].Command().Revoke {
				t.Errorf("owed %+v", owed)
			}
			f.mark(t, f.offered...)
			if owed := f.owed(t); len(owed) != 0 {
				t.Errorf("still owed: %+v", owed)
			}
		})
	}
}

// F-BAT-01, F-TEL-07, F-ORD-03: an applier notices that the mission of a cached drone has
// changed, and with it the next stop, even if the drone itself has not.
func TestStore_KnownDroneReachesTheNextStopOfAShorterRoute(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	f.mustOrder(t, "O1")
	d := f.decision("DEC-1", "D1", "O2", "O1")
	for i := range d.Route[:2] {
		d.Route[i].Position.Lat++ // O2's stops are elsewhere
	}
	err := f.IngestOrder(t.Context(), domain.OrderRequest{ID: "O2", OrderContent: domain.OrderContent{
		ProductType: "BLOOD", Pickup: &d.Route[0].Position, Delivery: d.Route[1].Position,
	}}, f.now)
	if err != nil {
		t.Fatal(err)
	}
	mission := f.assign(t, d).MissionID
	for i, at := range []domain.Position{depot.Position, {Lat: 48.858, Lon: 2.354}, {Lat: 48.86, Lon: 2.36}} {
		f.mustReport(t, domain.Telemetry{DroneID: "D1", Timestamp: f.now.Add(time.Duration(i+1) * time.Second), Position: at, Battery: 80, Status: domain.DroneMoving, MissionID: mission})
		if i > 0 {
			continue
		}
		if err := f.CancelOrder(firestoretx.By(t.Context(), "ann"), "O2", "obsolete"); err != nil {
			t.Fatal(err)
		}
	}
	if o := f.order(t, "O1"); o.Status != domain.OrderDelivered {
		t.Errorf("O1 is %s", o.Status)
	}
}

// F-DEC-05
func TestStore_MarkingNoCommandsSucceeds(t *testing.T) {
	if err := newFleet(t).MarkCommandsPublished(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// F-TEL-09: a sweep commits many changes concurrently; otherwise the first one after an
// outage would take minutes.
func TestStore_SweepsConcurrently(t *testing.T) {
	faults := fault.New(1)
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	f := newFleet(t)
	const late = 40
	for i := range late {
		req := domain.OrderRequest{ID: domain.OrderID(fmt.Sprintf("O%02d", i)), Deadline: f.now.Add(time.Minute), OrderContent: domain.OrderContent{ProductType: "BLOOD"}}
		if err := f.IngestOrder(t.Context(), req, f.now); err != nil {
			t.Fatal(err)
		}
	}
	f.now = f.now.Add(2 * time.Minute)
	gate := fault.NewGate()
	faults.Add(fault.Rule{RPC: "Commit", NamePrefix: "orders", Do: fault.Pause(gate)})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var result firestoretx.SweepResult
	var err error
	var sweep sync.WaitGroup
	sweep.Go(func() { result, err = f.Sweep(ctx, nil) })
	if err := gate.Arrived(ctx, 8); err != nil {
		t.Errorf("want at least 8 of %d commits at a time: %v", late, err)
	}
	gate.Open()
	if sweep.Wait(); err != nil || result != (firestoretx.SweepResult{OrdersLate: late}) {
		t.Errorf("swept %+v, %v", result, err)
	}
}

// F-TEL-09: a sweep starts no new work after its lease ends.
func TestStore_SweepEndsWithItsLease(t *testing.T) {
	faults := fault.New(1)
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	f := newFleet(t)
	for i := range 100 {
		req := domain.OrderRequest{ID: domain.OrderID(fmt.Sprintf("O%02d", i)), Deadline: f.now.Add(time.Minute), OrderContent: domain.OrderContent{ProductType: "BLOOD"}}
		if err := f.IngestOrder(t.Context(), req, f.now); err != nil {
			t.Fatal(err)
		}
	}
	f.now = f.now.Add(2 * time.Minute)
	lease, end := context.WithCancel(t.Context())
	defer end()
	faults.Add(fault.Rule{RPC: "Commit", NamePrefix: "orders", Do: fault.Crash(end)})
	result, err := f.Sweep(lease, nil)
	if !errors.Is(err, context.Canceled) || result.OrdersLate == 100 {
		t.Errorf("swept %+v, %v after the lease ended", result, err)
	}
	if n := failuresIn(t, err, "order O"); n >= 50 {
		t.Errorf("the error counts %d orders that were not tried: %.200s", n, err)
	}
}

// failuresIn returns how many failures an error lists or counts.
func failuresIn(t *testing.T, err error, each string) int {
	t.Helper()
	more := 0
	if _, rest, cut := strings.Cut(err.Error(), "and "); cut {
		if _, err := fmt.Sscanf(rest, "%d more", &more); err != nil {
			t.Fatal(err)
		}
	}
	return strings.Count(err.Error(), each) + more
}

// F-TEL-09: if no document can be written or decoded, the sweep's error stays small
// enough to be logged and counts the failures.
func TestStore_SweepSummarisesManyFailures(t *testing.T) {
	faults := fault.New(1)
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	f := newFleet(t)
	const many = 200
	for i := range many {
		req := domain.OrderRequest{ID: domain.OrderID(fmt.Sprintf("O%03d", i)), Deadline: f.now.Add(time.Minute), OrderContent: domain.OrderContent{ProductType: "BLOOD"}}
		if err := f.IngestOrder(t.Context(), req, f.now); err != nil {
			t.Fatal(err)
		}
	}
	f.now = f.now.Add(2 * time.Minute)
	forbidden := faults.Add(fault.Rule{RPC: "Commit", NamePrefix: "orders", Do: fault.Fail(codes.PermissionDenied)})
	tellsOf := func(each string) {
		t.Helper()
		_, _, err := f.NewSweeper().All(t.Context(), nil)
		if err == nil || len(err.Error()) > 4096 || failuresIn(t, err, each) != many {
			t.Errorf("the error reports %d failures: %.500v", many, err)
		}
	}
	tellsOf("order O")
	forbidden.Remove()
	for i := range many {
		if _, err := f.client.Doc(fmt.Sprintf("orders/O%03d", i)).Update(t.Context(), []firestore.Update{{Path: "deadline", Value: "soon"}}); err != nil {
			t.Fatal(err)
		}
	}
	tellsOf("field deadline")
}

// F-API-01: a page of large cycles ends before it exhausts the process's memory, and pages
// that end early follow one another without gap or repetition.
func TestStore_PageOfLargeCyclesEndsEarly(t *testing.T) {
	f := newFleet(t)
	why := strings.Repeat("x", 700)
	var left []domain.UnservedOrder
	for i := range 1000 {
		left = append(left, domain.UnservedOrder{OrderID: domain.OrderID(fmt.Sprintf("O%03d", i)), Reason: why})
	}
	var want, got []domain.CycleID
	for i := range 15 {
		c := domain.Cycle{ID: domain.CycleID(fmt.Sprintf("C%02d", i)), Outcome: domain.CycleEmpty, Unserved: left}
		if err := f.RecordCycle(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		want = append(want, c.ID)
	}
	pages := 0
	for page := (firestoretx.Page{Limit: 1000}); ; pages++ {
		l, err := f.ListCycles(t.Context(), "", page)
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Items) > 12 {
			t.Fatalf("%d cycles of 700 KB share a page", len(l.Items))
		}
		for _, c := range l.Items {
			got = append(got, c.ID)
		}
		if page.After = l.Next; l.Next == "" {
			break
		}
	}
	if !slices.Equal(got, want) || pages == 0 {
		t.Errorf("after the first page came %d more, with the cycles %v, want %v", pages, got, want)
	}
}
