package operator_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

var courier = domain.DroneType{ID: "COURIER", DroneProperties: domain.DroneProperties{
	PayloadCapacityKg: 5, ConsumptionPerKm: 2.5, MaxFlightTimeMinutes: 38, ColdBox: &domain.ColdBox{MinCelsius: 2, MaxCelsius: 8},
	Due: []domain.DueItem{{Item: "propellers", EveryFlightHours: 100}},
}}

func courierAt(id domain.DroneID, depot domain.DepotID) domain.DroneRegistration {
	return domain.DroneRegistration{ID: id, HomeDepotID: depot, TypeID: courier.ID}
}

// registry is an office with a depot and the type of drones above.
func openRegistry(t *testing.T) *office {
	t.Helper()
	o := openOffice(t)
	if err := o.desk.Store.Setup(t.Context(), []domain.Depot{{ID: "DEPOT-1", Position: home}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := placeCommands(o).ApplyDroneTypes(t.Context(), []domain.DroneType{courier}, "first", false); err != nil {
		t.Fatal(err)
	}
	return o
}

// F-REG-01, F-REG-16: a file is shown, applied and on record once; what fails partway says
// what was done and what was not tried.
func TestCommands_ApplyDronesOnce(t *testing.T) {
	o := openRegistry(t)
	ctx := t.Context()
	apply := func(dryRun bool, drones ...domain.DroneRegistration) (string, error) {
		t.Helper()
		done, err := placeCommands(o).ApplyDrones(ctx, drones, "first", dryRun)
		return o.says(func() error { _ = o.desk.PrintPlaceChanges(done, dryRun, err); return nil }()), err
	}
	ok := func(out string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	fleet := []domain.DroneRegistration{courierAt("D1", "DEPOT-1"), courierAt("D2", "DEPOT-1")}
	o.expect(ok(apply(true, fleet...)), "drone D1: new", "payloadCapacityKg: none -> 5", "2 would change")
	if _, err := o.desk.Store.Drone(ctx, "D1"); !errors.Is(err, firestoretx.ErrNotFound) {
		t.Errorf("a dry run wrote: %v", err)
	}
	o.expect(ok(apply(false, fleet...)), "drone D2: new", "2 changed, 0 unchanged.")
	before, err := o.desk.Store.PlaceChanges(ctx)
	if err != nil || len(before) != 3 {
		t.Fatalf("on record: %+v, %v", before, err)
	}
	o.expect(ok(apply(false, fleet...)), "drone D1: unchanged", "0 changed, 2 unchanged.")
	if after, err := o.desk.Store.PlaceChanges(ctx); err != nil || len(after) != 3 {
		t.Errorf("a repeat is on record: %+v, %v", after, err)
	}
	fleet[0].ShortName = "Alpha"
	// What a rule refuses stops nothing, and the preview of the command finds all of it.
	fleet = []domain.DroneRegistration{fleet[0], courierAt("D3", "NOWHERE"), courierAt("D4", "DEPOT-1"), courierAt("D5", "ELSEWHERE")}
	for _, dryRun := range []bool{true, false} {
		out, err := apply(dryRun, fleet...)
		o.expect(out, "drone D1: changed", `shortName: none -> "Alpha"`, "drone D4: new", map[bool]string{true: "2 would change", false: "2 changed, 0 unchanged."}[dryRun])
		o.expect(err.Error(), "drone D3", "home depot NOWHERE does not exist; apply it first", "drone D5", "home depot ELSEWHERE does not exist",
			map[bool]string{true: "nothing was changed", false: "the other changes stay"}[dryRun])
	}
	events, err := o.desk.Store.EventsOf(ctx, "droneId", "D1")
	if err != nil || len(events.Items) == 0 {
		t.Fatal(events, err)
	}
	for _, e := range events.Items {
		if e.Cause != domain.CauseOperator || e.By != o.desk.By {
			t.Errorf("event %+v", e)
		}
	}
}

// F-REG-03: the dry run of a type says how many drones change with it.
func TestCommands_DryRunOfATypeCountsItsDrones(t *testing.T) {
	o := openRegistry(t)
	ctx, commands := t.Context(), placeCommands(o)
	own := courierAt("D3", "DEPOT-1")
	own.Own.PayloadCapacityKg = 2
	if _, err := commands.ApplyDrones(ctx, []domain.DroneRegistration{courierAt("D1", "DEPOT-1"), courierAt("D2", "DEPOT-1"), own}, "first", false); err != nil {
		t.Fatal(err)
	}
	light := courier
	light.PayloadCapacityKg = 4
	for _, dryRun := range []bool{true, false} {
		done, err := commands.ApplyDroneTypes(ctx, []domain.DroneType{light}, "lighter", dryRun)
		o.expect(o.says(o.desk.PrintPlaceChanges(done, dryRun, err)), "droneType COURIER: changed", "payloadCapacityKg: 5 -> 4", "drones of this type that change with it: 2")
	}
	for id, want := range map[domain.DroneID]float64{"D1": 4, "D2": 4, "D3": 2} {
		if d, err := o.desk.Store.Drone(ctx, id); err != nil || d.PayloadCapacityKg != want {
			t.Errorf("drone %s: %v kg, %v, want %v", id, d.PayloadCapacityKg, err, want)
		}
	}
	o.expect(o.says(o.desk.ListDroneTypes(ctx, firestoretx.Page{})), "COURIER", "4 kg", "40 km", "38 min", "2 to 8 °C", "propellers")
	_, err := commands.DeleteDroneType(ctx, "COURIER", "gone", false)
	o.refused(err, policy.ReasonInUse)
}

// F-REG-12, F-REG-15, F-REG-16: drones are shown, maintained and retired, each on record.
func TestCommands_MaintainAndRetireDrones(t *testing.T) {
	o := openRegistry(t)
	ctx, commands := t.Context(), placeCommands(o)
	if _, err := commands.ApplyDrones(ctx, []domain.DroneRegistration{courierAt("D1", "DEPOT-1")}, "first", false); err != nil {
		t.Fatal(err)
	}
	o.expect(o.says(o.desk.ListDrones(ctx, firestoretx.DroneFilter{}, firestoretx.Page{})), "D1", "never heard of") // F-REG-19
	o.expect(o.says(o.desk.ShowDrone(ctx, "D1")), "D1, registered", "by "+o.desk.By, "COURIER", "5 kg", "2.5 % a km", "2 to 8 °C", "0.0 h, 0 landings", "next propellers:", "100.0 flight hours")
	if _, err := commands.MaintainDrone(ctx, "D1", "", "x", false); err == nil {
		t.Error("maintained nothing")
	}
	_, err := commands.MaintainDrone(ctx, "D1", "motor", "x", false)
	o.refused(err, policy.ReasonItemUnknown)
	done, err := commands.MaintainDrone(ctx, "D1", "propellers", "new ones", false)
	o.expect(o.says(o.desk.PrintPlaceChanges([]domain.PlaceChange{done}, false, err)), "drone D1: changed", "maintained: none -> ")
	if records, err := o.desk.Store.MaintenanceOf(ctx, "D1"); err != nil || len(records.Items) != 1 || records.Items[0].By != o.desk.By || records.Items[0].Why != "new ones" {
		t.Errorf("on record: %+v, %v", records, err)
	}
	for _, want := range []string{"drone D1: retired", "drone D1: unchanged"} {
		done, err := commands.RetireDrone(ctx, "D1", "sold", false)
		o.expect(o.says(o.desk.PrintPlaceChanges([]domain.PlaceChange{done}, false, err)), want)
	}
	o.expect(o.says(o.desk.ListDrones(ctx, firestoretx.DroneFilter{}, firestoretx.Page{})), "retired")
	o.expect(o.says(o.desk.ShowDrone(ctx, "D1")), "D1, retired")
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectDrone, "D1")), "never heard of", "retired ", "drone D1: created because first (by "+o.desk.By+")",
		"payloadCapacityKg: none -> 5", "drone D1: changed because new ones", "maintained: none", "drone D1: retired because sold")
	changes, err := o.desk.Store.ChangesOf(ctx, domain.PlaceDrone, "D1")
	if err != nil || len(changes.Items) != 3 {
		t.Fatalf("on record: %+v, %v", changes, err)
	}
	for i, want := range []domain.PlaceAction{domain.PlaceCreated, domain.PlaceChanged, domain.PlaceDeleted} {
		if c := changes.Items[i]; c.Action != want || c.ChangedBy != o.desk.By {
			t.Errorf("change %d: %+v, want %s", i, c, want)
		}
	}
}

// F-REG-10: drones of an earlier version are listed, page by page, until they are registered.
func TestDesk_ListsDronesOfAnEarlierVersion(t *testing.T) {
	o := openRegistry(t)
	ctx := t.Context()
	old := []domain.Drone{{ID: "A1", HomeDepotID: "DEPOT-1"}, {ID: "C1", HomeDepotID: "DEPOT-1"}, {ID: "E1", HomeDepotID: "DEPOT-1"}}
	if err := o.desk.Store.Setup(ctx, nil, nil, old); err != nil {
		t.Fatal(err)
	}
	if _, err := placeCommands(o).ApplyDrones(ctx, []domain.DroneRegistration{courierAt("B1", "DEPOT-1"), courierAt("F1", "DEPOT-1")}, "first", false); err != nil {
		t.Fatal(err)
	}
	o.report(domain.Telemetry{DroneID: "D1", Timestamp: time.Now(), Position: home, Battery: 90, Status: domain.DroneIdle}) // a stranger
	legacy := func(page firestoretx.Page) firestoretx.Listing[domain.Drone] {
		t.Helper()
		l, err := o.desk.Store.ListDrones(ctx, firestoretx.DroneFilter{Legacy: true}, page)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	ids := func(l firestoretx.Listing[domain.Drone]) (ids string) {
		for _, d := range l.Items {
			ids += string(d.ID) + " "
		}
		return ids
	}
	if got := ids(legacy(firestoretx.Page{})); got != "A1 C1 E1 " {
		t.Errorf("all: %s", got)
	}
	first := legacy(firestoretx.Page{Limit: 2})
	if got := ids(first); got != "A1 C1 " || first.Next == "" {
		t.Errorf("first page: %s, next %q", got, first.Next)
	}
	if got := ids(legacy(firestoretx.Page{Limit: 2, After: first.Next})); !strings.HasSuffix(got, "E1 ") {
		t.Errorf("second page: %s", got)
	}
	var all []domain.DroneRegistration
	for _, d := range old {
		all = append(all, courierAt(d.ID, "DEPOT-1"))
	}
	all = append(all, courierAt("D1", "DEPOT-1"))
	if _, err := placeCommands(o).ApplyDrones(ctx, all, "known now", false); err != nil {
		t.Fatal(err)
	}
	o.expect(o.says(o.desk.ListDrones(ctx, firestoretx.DroneFilter{Legacy: true}, firestoretx.Page{})), "Every drone is registered")
}
