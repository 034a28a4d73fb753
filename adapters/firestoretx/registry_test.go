package firestoretx_test

import (
	"errors"
	"fmt"
	"slices"
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

// registry is a fleet with a depot whose drones are registered.
type registry struct {
	*firestoretx.Store
	t      *testing.T
	client *firestore.Client
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	client := emutest.Clients(t).Firestore
	r := &registry{firestoretx.New(client, firestoretx.Config{}), t, client}
	r.must(r.Setup(t.Context(), []domain.Depot{depot}, nil, nil))
	return r
}

func (r *registry) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// own are the properties that every registered drone needs.
var own = domain.DroneProperties{PayloadCapacityKg: 3, ConsumptionPerKm: 2, MaxFlightTimeMinutes: 40}

func registration(id domain.DroneID) domain.DroneRegistration {
	return domain.DroneRegistration{ID: id, HomeDepotID: depot.ID, Own: own}
}

var ann = firestoretx.Change{By: "ann", Why: "new drones"}

// apply applies a registration, and wants what it does.
func (r *registry) apply(reg domain.DroneRegistration, want domain.PlaceAction) domain.PlaceChange {
	r.t.Helper()
	done, err := r.ApplyDrone(r.t.Context(), reg, ann)
	r.must(err)
	if done.Action != want {
		r.t.Errorf("drone %s: %s %q, want %s", reg.ID, done.Action, done.Fields, want)
	}
	return done
}

func (r *registry) drone(id domain.DroneID) domain.Drone {
	r.t.Helper()
	d, err := r.Drone(r.t.Context(), id)
	r.must(err)
	return d
}

func (r *registry) report(reports ...domain.Telemetry) {
	r.t.Helper()
	for _, err := range r.NewTelemetryApplier().Apply(r.t.Context(), reports) {
		r.must(err)
	}
}

// refusedFor wants a rejection, and returns its text.
func refusedFor(t *testing.T, err error, want policy.Reason) string {
	t.Helper()
	if reason, _ := policy.ReasonOf(err); reason != want {
		t.Errorf("%v, want %s", err, want)
		return ""
	}
	return err.Error()
}

// F-REG-01 F-REG-03 F-REG-16: a drone is created, changed and left alone, with an event and a
// row of the values before and after; a dry run writes nothing.
func TestStore_AppliesDrones(t *testing.T) {
	r := newRegistry(t)
	reg := registration("D1")
	dry := ann
	dry.DryRun = true
	if done, err := r.ApplyDrone(t.Context(), reg, dry); err != nil || done.Action != domain.PlaceCreated {
		t.Errorf("dry run: %+v, %v", done, err)
	}
	if _, err := r.Drone(t.Context(), "D1"); err == nil {
		t.Error("a dry run created the drone")
	}
	r.apply(reg, domain.PlaceCreated)
	r.apply(reg, domain.PlaceUnchanged)
	reg.Own.ColdBox, reg.SerialNumber = &domain.ColdBox{MinCelsius: 2, MaxCelsius: 8}, "1596A1234567890"
	reg.Own.Due = []domain.DueItem{{Item: "props", EveryLandings: 200, DueLimits: domain.DueLimits{At: time.Date(2027, 1, 2, 3, 4, 5, 6, time.UTC)}}}
	changed := r.apply(reg, domain.PlaceChanged)
	if text := strings.Join(changed.Fields, "\n"); !strings.Contains(text, "coldBox: none -> {maxCelsius: 8, minCelsius: 2}") ||
		!strings.Contains(text, "due: none -> [{at: 2027-01-02T03:04:05Z, everyLandings: 200, item: \"props\"}]") || strings.Contains(text, "revision") {
		t.Errorf("fields:\n%s", text)
	}
	r.apply(reg, domain.PlaceUnchanged)
	d := r.drone("D1")
	if d.RegisteredAt.IsZero() || d.RegisteredBy != "ann" || d.Unregistered || d.Status != domain.DroneUnknown || d.PayloadCapacityKg != 3 || *d.ColdBox != *reg.Own.ColdBox {
		t.Errorf("%+v", d)
	}
	rows, err := r.ChangesOf(t.Context(), domain.PlaceDrone, "D1")
	r.must(err)
	if len(rows.Items) != 2 || rows.Items[0].Action != domain.PlaceCreated || rows.Items[1].ChangedBy != "ann" || rows.Items[1].Why != "new drones" {
		t.Errorf("rows %+v", rows.Items)
	}
	listed, err := r.EventsOf(t.Context(), "droneId", "D1")
	r.must(err)
	if events := listed.Items; len(events) != 2 || events[0].By != "ann" || events[0].Cause != domain.CauseOperator || events[1].State["dueAt"] != time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC) {
		t.Errorf("events %+v", events)
	}
}

// F-REG-01 F-REG-04: a drone is refused whose home or type does not exist, or that lacks what it needs.
func TestStore_RefusesIncompleteDrones(t *testing.T) {
	r := newRegistry(t)
	refused := func(want policy.Reason, change func(*domain.DroneRegistration)) {
		t.Helper()
		reg := registration("D1")
		change(&reg)
		_, err := r.ApplyDrone(t.Context(), reg, ann)
		refusedFor(t, err, want)
	}
	refused(policy.ReasonDepotUnknown, func(reg *domain.DroneRegistration) { reg.HomeDepotID = "NOWHERE" })
	refused(policy.ReasonDroneTypeUnknown, func(reg *domain.DroneRegistration) { reg.TypeID = "T9" })
	refused(policy.ReasonRegistrationIncomplete, func(reg *domain.DroneRegistration) { reg.Own.PayloadCapacityKg = 0 })
	if _, err := r.Drone(t.Context(), "D1"); err == nil {
		t.Error("a refused drone exists")
	}
}

// F-REG-07: of drones that are given one serial number at once, one gets it. A retired drone's
// number is free, until that drone comes back.
func TestStore_GivesASerialNumberOnce(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	for round := range 5 {
		serial := fmt.Sprintf("1596A123456789%d", round)
		var at sync.WaitGroup
		var mu sync.Mutex
		var won []domain.DroneRegistration
		for i := range 6 {
			reg := registration(domain.DroneID(fmt.Sprintf("D%d-%d", round, i)))
			reg.SerialNumber = serial
			at.Go(func() {
				_, err := r.ApplyDrone(t.Context(), reg, ann)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, reg)
				} else {
					refusedFor(t, err, policy.ReasonSerialNumberTaken)
				}
			})
		}
		at.Wait()
		if len(won) != 1 {
			t.Fatalf("round %d: %d drones have the number", round, len(won))
		}
		_, err := r.RetireDrone(t.Context(), won[0].ID, ann)
		r.must(err)
		other := registration(domain.DroneID(fmt.Sprintf("E%d", round)))
		other.SerialNumber = serial
		r.apply(other, domain.PlaceCreated)
		_, err = r.ApplyDrone(t.Context(), won[0], ann)
		refusedFor(t, err, policy.ReasonSerialNumberTaken)
	}
}

// F-REG-08 F-REG-12: a drone is not retired while it is bound or an open order is pinned to
// it. A retired drone moves, is not revived by a report, and is back once it is applied.
func TestStore_RetiresDrones(t *testing.T) {
	r := newRegistry(t)
	reg := registration("D1")
	r.apply(reg, domain.PlaceCreated)
	_, err := r.RetireDrone(t.Context(), "D9", ann)
	refusedFor(t, err, policy.ReasonNotFound)
	r.must(r.IngestOrder(t.Context(), domain.OrderRequest{ID: "O1", OrderContent: domain.OrderContent{Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: depot.Position}}, time.Now()))
	r.must(r.PinOrder(firestoretx.By(t.Context(), "ann"), policy.Pin{Order: "O1", Drone: "D1", Why: "test"}))
	_, err = r.RetireDrone(t.Context(), "D1", ann)
	if text := refusedFor(t, err, policy.ReasonInUse); !strings.Contains(text, "order O1") {
		t.Error(text)
	}
	r.must(r.CancelOrder(firestoretx.By(t.Context(), "ann"), "O1", "test"))
	_, err = r.client.Doc("drones/D1").Update(t.Context(), []firestore.Update{{Path: "currentMissionId", Value: "M1"}})
	r.must(err)
	_, err = r.RetireDrone(t.Context(), "D1", ann)
	if text := refusedFor(t, err, policy.ReasonInUse); !strings.Contains(text, "mission M1") {
		t.Error(text)
	}
	_, err = r.client.Doc("drones/D1").Update(t.Context(), []firestore.Update{{Path: "currentMissionId", Value: firestore.Delete}})
	r.must(err)
	for _, want := range []domain.PlaceAction{domain.PlaceDeleted, domain.PlaceUnchanged} {
		done, err := r.RetireDrone(t.Context(), "D1", ann)
		r.must(err)
		if done.Action != want {
			t.Errorf("%+v, want %s", done, want)
		}
	}
	r.report(idle("D1", time.Now()))
	if d := r.drone("D1"); !d.Retired() || d.LastUpdate.IsZero() {
		t.Errorf("%+v", d)
	}
	if _, err = r.DeleteDepot(t.Context(), depot.ID, ann); err == nil {
		r.must(r.Setup(t.Context(), []domain.Depot{depot}, nil, nil))
	} else {
		t.Errorf("a retired drone keeps its depot: %v", err)
	}
	r.apply(reg, domain.PlaceChanged)
	if d := r.drone("D1"); d.Retired() || d.PayloadCapacityKg != 3 {
		t.Errorf("%+v", d)
	}
	rows, err := r.ChangesOf(t.Context(), domain.PlaceDrone, "D1")
	r.must(err)
	if len(rows.Items) != 3 || rows.Items[1].Action != domain.PlaceDeleted || !strings.Contains(strings.Join(rows.Items[1].Fields, " "), "retiredAt: none ->") {
		t.Errorf("rows %+v", rows.Items)
	}
}

// F-REG-03: a type that changes rewrites the drones of it that are in service, as far as they
// have no property of their own; a dry run says how many.
func TestStore_RewritesDronesOfATypeThatChanges(t *testing.T) {
	r := newRegistry(t)
	light := domain.DroneType{ID: "T1", DroneProperties: own}
	applyType := func(change firestoretx.Change, want domain.PlaceAction, drones int) {
		t.Helper()
		done, err := r.ApplyDroneType(t.Context(), light, change)
		r.must(err)
		if done.Action != want || done.Drones != drones {
			t.Errorf("%s, %d drones; want %s, %d", done.Action, done.Drones, want, drones)
		}
	}
	applyType(ann, domain.PlaceCreated, 0)
	const ofType = 203
	for i := range ofType {
		reg := registration(domain.DroneID(fmt.Sprintf("D%03d", i)))
		reg.TypeID, reg.Own = "T1", domain.DroneProperties{}
		switch i {
		case 0:
			reg.Own.PayloadCapacityKg = 7
		case 1:
			defer func() {
				if d := r.drone(reg.ID); d.PayloadCapacityKg != 3 {
					t.Errorf("the retired drone carries %v kg", d.PayloadCapacityKg)
				}
			}()
		}
		r.apply(reg, domain.PlaceCreated)
	}
	_, err := r.RetireDrone(t.Context(), "D001", ann)
	r.must(err)
	light.PayloadCapacityKg, light.ChargeRate = 4, 12
	dry := ann
	dry.DryRun = true
	applyType(dry, domain.PlaceChanged, ofType-1)
	applyType(ann, domain.PlaceChanged, ofType-1)
	applyType(ann, domain.PlaceUnchanged, 0)
	for id, kg := range map[domain.DroneID]float64{"D000": 7, "D002": 4, "D202": 4} {
		if d := r.drone(id); d.PayloadCapacityKg != kg || d.ChargeRate != 12 {
			t.Errorf("drone %s carries %v kg, charges %v", id, d.PayloadCapacityKg, d.ChargeRate)
		}
	}
	rows, err := r.ChangesOf(t.Context(), domain.PlaceDrone, "D202")
	r.must(err)
	if len(rows.Items) != 2 || !strings.Contains(strings.Join(rows.Items[1].Fields, " "), "payloadCapacityKg: 3 -> 4") {
		t.Errorf("rows %+v", rows.Items)
	}
	light.PayloadCapacityKg = 0
	_, err = r.ApplyDroneType(t.Context(), light, ann)
	refusedFor(t, err, policy.ReasonRegistrationIncomplete)
	_, err = r.DeleteDroneType(t.Context(), "T1", ann)
	refusedFor(t, err, policy.ReasonInUse)
}

// F-REG-15: maintenance is on record with the counters, and the next limits count from it. A
// file that is applied again does not bring a met limit back.
func TestStore_RecordsMaintenance(t *testing.T) {
	r := newRegistry(t)
	reg := registration("D1")
	reg.Own.Due = []domain.DueItem{{Item: "props", DueLimits: domain.DueLimits{Landings: 5}, EveryLandings: 10}, {Item: "paint", EveryDays: 365}}
	r.apply(reg, domain.PlaceCreated)
	_, err := r.client.Doc("drones/D1").Update(t.Context(), []firestore.Update{{Path: "landings", Value: 6}, {Path: "flightSeconds", Value: 7200}})
	r.must(err)
	if due := policy.Due(r.drone("D1"), time.Now()); !strings.Contains(due, "item props") {
		t.Errorf("due: %q", due)
	}
	_, err = r.MaintainDrone(t.Context(), "D1", "motor", ann)
	if text := refusedFor(t, err, policy.ReasonItemUnknown); !strings.Contains(text, "props, paint") {
		t.Error(text)
	}
	done, err := r.MaintainDrone(t.Context(), "D1", "props", ann)
	r.must(err)
	if done.Action != domain.PlaceChanged || !strings.Contains(strings.Join(done.Fields, " "), "maintained: none -> [") {
		t.Errorf("%+v", done)
	}
	r.apply(reg, domain.PlaceUnchanged)
	d := r.drone("D1")
	if due, next := policy.Due(d, time.Now()), d.Limits(d.Due[0]); due != "" || next.Landings != 16 {
		t.Errorf("due: %q, next %+v", due, next)
	}
	records, err := r.MaintenanceOf(t.Context(), "D1")
	r.must(err)
	if len(records.Items) != 1 || records.Items[0].Item != "props" || records.Items[0].Landings != 6 || records.Items[0].FlightSeconds != 7200 || records.Items[0].By != "ann" || records.Items[0].At.IsZero() {
		t.Errorf("%+v", records.Items)
	}
}

// F-REG-09 F-REG-10 F-REG-12 F-REG-19: a cycle sees registered drones and those of earlier
// versions, once they have reported; strangers and retired drones are in no list of it.
func TestStore_PlansWithRegisteredDronesOnly(t *testing.T) {
	r := newRegistry(t)
	sees := func(store *firestoretx.Store, want ...domain.DroneID) {
		t.Helper()
		snap, err := store.Snapshot(t.Context(), firestoretx.SnapshotRequest{Depot: depot.ID})
		r.must(err)
		fleet, err := store.Fleet(t.Context(), nil, time.Minute)
		r.must(err)
		for _, drones := range [][]domain.Drone{snap.Drones, fleet} {
			var ids []domain.DroneID
			for _, d := range drones {
				ids = append(ids, d.ID)
			}
			if !slices.Equal(ids, want) {
				t.Errorf("%v, want %v", ids, want)
			}
		}
	}
	r.must(r.Setup(t.Context(), nil, nil, []domain.Drone{{ID: "LEGACY", HomeDepotID: depot.ID}}))
	for _, id := range []domain.DroneID{"D1", "SILENT"} {
		r.apply(registration(id), domain.PlaceCreated)
	}
	if snap, err := r.client.Doc("drones/SILENT").Get(t.Context()); err != nil || snap.Data()["position"] != nil {
		t.Errorf("a drone that never reported has the position %v, %v", snap.Data()["position"], err)
	}
	r.report(idle("LEGACY", time.Now()), idle("D1", time.Now()), idle("STRANGER", time.Now()))
	sees(r.Store, "D1", "LEGACY")
	sees(firestoretx.New(r.client, firestoretx.Config{PlanUnregistered: true}), "D1", "LEGACY", "STRANGER")
	r.apply(registration("STRANGER"), domain.PlaceChanged)
	_, err := r.RetireDrone(t.Context(), "D1", ann)
	r.must(err)
	sees(r.Store, "LEGACY", "STRANGER")
	r.apply(registration("D1"), domain.PlaceChanged)
	sees(r.Store, "D1", "LEGACY", "STRANGER")
	_, err = r.client.Doc("drones/D1").Update(t.Context(), []firestore.Update{{Path: "serialNumber", Value: "1596A1234567890"}, {Path: "reportedSerial", Value: "1596A1234567891"}})
	r.must(err)
	if idle, err := r.Idle(t.Context(), []domain.DepotID{depot.ID}, policy.DefaultLimits()); err != nil || len(idle) != 2 {
		t.Errorf("offered: %d drones, %v; want 2: one reports another serial number", len(idle), err)
	}
}

// F-REG-11: above 1,000 unregistered drones a report of a further unknown drone is refused. Those
// of known drones are accepted, and with PlanUnregistered all are.
func TestStore_RefusesFurtherStrangers(t *testing.T) {
	r := newRegistry(t)
	r.apply(registration("D1"), domain.PlaceCreated)
	batch := r.client.BulkWriter(t.Context())
	for i := range 1001 {
		_, err := batch.Create(r.client.Doc(fmt.Sprintf("drones/S%04d", i)), map[string]any{"status": "UNKNOWN", "unregistered": true})
		r.must(err)
	}
	batch.End()
	now := time.Now()
	errs := r.NewTelemetryApplier().Apply(t.Context(), []domain.Telemetry{idle("D1", now), idle("S0000", now), idle("X1", now), idle("X1", now.Add(time.Second))})
	for i, want := range []policy.Reason{"", "", policy.ReasonDroneUnknown, policy.ReasonDroneUnknown} {
		if reason, _ := policy.ReasonOf(errs[i]); reason != want || want == "" && errs[i] != nil {
			t.Errorf("report %d: %v, want %q", i, errs[i], want)
		}
	}
	if stranger := (*firestoretx.StrangerError)(nil); !errors.As(errs[2], &stranger) {
		t.Errorf("%T is not dead-lettered", errs[2])
	}
	planning := firestoretx.New(r.client, firestoretx.Config{PlanUnregistered: true})
	r.must(planning.NewTelemetryApplier().Apply(t.Context(), []domain.Telemetry{idle("X2", now)})[0])
}

// F-REG-13: flight time and landings are written with the position, and cost no write.
func TestStore_CountsFlightInTheWriteOfTheReport(t *testing.T) {
	clients := emutest.Clients(t)
	store := firestoretx.New(clients.Firestore, firestoretx.Config{})
	if err := store.Setup(t.Context(), []domain.Depot{depot}, nil, []domain.Drone{{ID: "D1", HomeDepotID: depot.ID}}); err != nil {
		t.Fatal(err)
	}
	applier, begin := store.NewTelemetryApplier(), time.Now().Add(-time.Minute)
	tell := func(seconds int, status domain.DroneStatus) {
		t.Helper()
		report := idle("D1", begin.Add(time.Duration(seconds)*time.Second))
		report.Status = status
		if err := applier.Apply(t.Context(), []domain.Telemetry{report})[0]; err != nil {
			t.Fatal(err)
		}
	}
	tell(0, domain.DroneMoving)
	before := clients.Meter.FirestoreTotals()
	tell(10, domain.DroneMoving)
	if after := clients.Meter.FirestoreTotals(); after.RPCs-before.RPCs != 1 || after.Writes-before.Writes != 1 || after.Reads != before.Reads {
		t.Errorf("a report in flight: %+v after %+v; want 1 RPC and 1 write", after, before)
	}
	tell(20, domain.DroneIdle)
	if d, err := store.Drone(t.Context(), "D1"); err != nil || d.FlightSeconds != 10 || d.Landings != 1 {
		t.Errorf("%d s, %d landings, %v; want 10, 1", d.FlightSeconds, d.Landings, err)
	}
}
