package operator_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

func placeCommands(o *office) operator.Commands {
	return operator.Commands{Store: o.desk.Store, By: o.desk.By}
}

// F-API-05, F-DOC-02: applying shows and records what changes, keeps the fields of other
// tools, repairs a malformed document, and does nothing the second time.
func TestCommands_ApplyPlacesOnce(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	apply := func(reason string, dryRun bool, depots ...domain.Depot) string {
		t.Helper()
		done, err := placeCommands(o).ApplyDepots(ctx, depots, reason, dryRun)
		if err != nil {
			t.Fatal(err)
		}
		return o.says(o.desk.PrintPlaceChanges(done, dryRun, nil))
	}
	records := func() []domain.PlaceChange {
		t.Helper()
		changes, err := o.desk.Store.PlaceChanges(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return changes
	}
	north := domain.Depot{ID: "NORTH", Name: "North", Position: home, Capacity: 10}
	o.expect(o.says(o.desk.ListDepots(ctx, firestoretx.Page{})), "No depots yet", "depots apply -f FILE")
	o.expect(apply("first", true, north), "depot NORTH: new", `name: none -> "North"`, "position: none -> ", "capacity: none -> 10", "1 would change")
	if n := len(records()); n != 0 {
		t.Fatalf("%d records of a dry run", n)
	}
	o.expect(apply("first", false, north), "depot NORTH: new", "1 changed, 0 unchanged")
	first := records()
	if len(first) != 1 || first[0].Action != domain.PlaceCreated || first[0].ID != "NORTH" || first[0].Kind != domain.PlaceDepot ||
		first[0].ChangedBy != o.desk.By || first[0].Why != "first" || first[0].ChangedAt.IsZero() || len(first[0].Fields) < 3 {
		t.Errorf("on record: %+v", first)
	}
	o.expect(apply("again", false, north), "depot NORTH: unchanged", "0 changed, 1 unchanged")
	if again := records(); !reflect.DeepEqual(again, first) {
		t.Errorf("on record after the same again: %+v", again)
	}
	doc := o.clients.Firestore.Doc("depots/NORTH")
	if _, err := doc.Set(ctx, map[string]any{"crew": "ann", "name": "North", "capacity": "ten", "position": 3}); err != nil {
		t.Fatal(err)
	}
	o.expect(o.says(o.desk.ListDepots(ctx, firestoretx.Page{})), "Left out: document", "position")
	north.Capacity = 12
	o.expect(apply("repair", false, north), "depot NORTH: changed", "malformed before: document", "position: unreadable -> ")
	snap, err := doc.Get(ctx)
	if err != nil || snap.Data()["crew"] != "ann" || snap.Data()["capacity"] != int64(12) {
		t.Errorf("repaired: %v, %v", snap.Data(), err)
	}
	o.expect(o.says(o.desk.ListDepots(ctx, firestoretx.Page{})), "NORTH", "North", "12")
	o.desk.By = ""
	if _, err := placeCommands(o).ApplyDepots(ctx, []domain.Depot{north}, "x", false); err == nil {
		t.Error("a change by nobody")
	}
}

// F-API-05: the preview warns of a place that would be near the others with its
// coordinates swapped, be they in the file or stored.
func TestCommands_ApplyWarnsOfSwappedCoordinates(t *testing.T) {
	o := openOffice(t)
	preview := func(depots ...domain.Depot) string {
		t.Helper()
		done, err := placeCommands(o).ApplyDepots(t.Context(), depots, "x", true)
		if err != nil {
			t.Fatal(err)
		}
		return o.says(o.desk.PrintPlaceChanges(done, true, nil))
	}
	paris, lyon := domain.Position{Lat: 48.85, Lon: 2.35}, domain.Position{Lat: 45.76, Lon: 4.83}
	const warning = "are they swapped?"
	if out := preview(domain.Depot{ID: "A", Position: paris}, domain.Depot{ID: "B", Position: lyon}); strings.Contains(out, warning) {
		t.Error(out)
	}
	out := preview(domain.Depot{ID: "A", Position: paris}, domain.Depot{ID: "B", Position: lyon}, domain.Depot{ID: "C", Position: domain.Position{Lat: 2.36, Lon: 48.86}})
	if strings.Count(out, warning) != 1 || !strings.Contains(out, "depot C: new\n  position: none -> 2.360000,48.860000\n  warning: position is ") {
		t.Error(out)
	}
	if _, err := placeCommands(o).ApplyWarehouses(t.Context(), []domain.Warehouse{{ID: "W", Position: paris}}, "x", false); err != nil {
		t.Fatal(err)
	}
	if out := preview(domain.Depot{ID: "C", Position: domain.Position{Lat: 2.36, Lon: 48.86}}); !strings.Contains(out, warning) {
		t.Error(out)
	}
	if out := preview(domain.Depot{ID: "C", Position: domain.Position{Lat: 35.68, Lon: 139.69}}); strings.Contains(out, warning) {
		t.Error(out)
	}
}

// F-API-05: what is in use is not deleted, and the refusal names the users.
func TestCommands_DeletePlacesThatNothingUses(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	at := time.Now()
	err := o.desk.Store.Setup(ctx, []domain.Depot{{ID: "DEPOT-1", Position: home}}, []domain.Warehouse{{ID: "W1", Position: home}}, []domain.Drone{
		{ID: "D1", HomeDepotID: "DEPOT-1", ConsumptionPerKm: 2.5, PayloadCapacityKg: 5, MaxFlightTimeMinutes: 38, BatteryCapacityMah: 16_000},
	})
	if err != nil {
		t.Fatal(err)
	}
	o.report(domain.Telemetry{DroneID: "D1", Timestamp: at, Position: home, Battery: 90, Status: domain.DroneIdle})
	o.order("O1")
	if entry := o.decide("DEC-1", "D1", "O1"); entry.Outcome != domain.OutcomeApplied {
		t.Fatalf("%+v", entry)
	}
	refused := func(err error, users ...string) {
		t.Helper()
		if reason, _ := policy.ReasonOf(err); reason != policy.ReasonInUse {
			t.Fatalf("error %v, want IN_USE", err)
		}
		o.expect(err.Error(), users...)
	}
	commands := placeCommands(o)
	_, err = commands.DeleteWarehouse(ctx, "W1", "closed", false)
	refused(err, "mission M-DEC-1", "order O1", "drone D1")
	_, err = commands.DeleteDepot(ctx, "DEPOT-1", "closed", false)
	refused(err, "drone D1")
	_, err = commands.DeleteWarehouse(ctx, "W9", "closed", false)
	o.refused(err, policy.ReasonNotFound)
	_, err = commands.DeleteDepot(ctx, "LAST", "closed", false)
	refused(err, "order O1") // as if it were the last depot
	setup := []domain.Depot{{ID: "DEPOT-2", Position: home}}
	if err := o.desk.Store.Setup(ctx, setup, []domain.Warehouse{{ID: "W-2", Position: home}}, nil); err != nil {
		t.Fatal(err)
	}
	for _, dryRun := range []bool{true, false} {
		done, err := commands.DeleteWarehouse(ctx, "W-2", "closed", dryRun)
		o.expect(fmt.Sprint(done, err), "W-2 DELETED")
		done, err = commands.DeleteDepot(ctx, "DEPOT-2", "closed", dryRun)
		o.expect(fmt.Sprint(done, err), "DEPOT-2 DELETED")
	}
	if changes, err := o.desk.Store.PlaceChanges(ctx); err != nil || len(changes) != 2 {
		t.Errorf("on record: %+v, %v", changes, err)
	}
	if l, err := o.desk.Store.ListDepots(ctx, firestoretx.Page{}); err != nil || len(l.Items) != 1 {
		t.Errorf("left: %+v, %v", l, err)
	}
}
