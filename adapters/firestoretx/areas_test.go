package firestoretx_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// F-ARE-01, F-ARE-02: the snapshot of any depot of an area has the area's depots and their
// drones, and is named by the first of them; a depot farther away has its own.
func TestStore_SnapshotIsOfAnArea(t *testing.T) {
	f := newFleet(t)
	north := func(id domain.DepotID, metres float64) domain.Depot {
		return domain.Depot{ID: id, Position: domain.Position{Lat: depot.Position.Lat + metres/111_190, Lon: depot.Position.Lon}}
	}
	depots := []domain.Depot{north("A-NEAR", 1000), north("FAR", 20_000)}
	var drones []domain.Drone
	for i := range 5 {
		d := north(domain.DepotID(fmt.Sprintf("ROW-%02d", i)), float64(-100*i))
		depots = append(depots, d)
		drones = append(drones, domain.Drone{ID: domain.DroneID(fmt.Sprintf("OF-%s", d.ID)), HomeDepotID: d.ID, Position: d.Position})
	}
	drones = append(drones, domain.Drone{ID: "OF-NEAR", HomeDepotID: "A-NEAR"}, domain.Drone{ID: "OF-FAR", HomeDepotID: "FAR"})
	if err := f.Setup(t.Context(), depots, nil, drones); err != nil {
		t.Fatal(err)
	}
	for _, d := range drones {
		f.mustReport(t, idle(d.ID, f.now))
	}
	for asked, want := range map[domain.DepotID]struct {
		area           domain.DepotID
		depots, drones int
	}{depot.ID: {"A-NEAR", 7, 6}, "A-NEAR": {"A-NEAR", 7, 6}, "ROW-04": {"A-NEAR", 7, 6}, "FAR": {"FAR", 1, 1}} {
		snap, err := f.Snapshot(t.Context(), firestoretx.SnapshotRequest{Depot: asked, AreaRadius: 3, Limits: policy.Limits{MaxSilence: time.Hour}})
		if err != nil {
			t.Fatal(err)
		}
		if snap.Depot.ID != want.area || len(snap.Depots()) != want.depots || len(snap.Drones) != want.drones || snap.Alone {
			t.Errorf("asked for %s: area %s with %d depots and %d drones, alone %t; want %+v", asked, snap.Depot.ID, len(snap.Depots()), len(snap.Drones), snap.Alone, want)
		}
		fleet, err := f.Fleet(t.Context(), domain.Area{Depots: snap.Depots()}.DepotIDs(), time.Hour)
		if err != nil || len(fleet) != want.drones {
			t.Errorf("asked for %s: a fleet of %d, %v", asked, len(fleet), err)
		}
	}
	snap, err := f.Snapshot(t.Context(), firestoretx.SnapshotRequest{Depot: depot.ID, AreaRadius: 100, Limits: policy.Limits{MaxSilence: time.Hour}})
	if err != nil || !snap.Alone || len(snap.Drones) != len(drones) {
		t.Errorf("one area of all depots: alone %t, %d drones, %v", snap.Alone, len(snap.Drones), err)
	}
	if alone, err := f.Snapshot(t.Context(), firestoretx.SnapshotRequest{Depot: depot.ID, Limits: policy.Limits{MaxSilence: time.Hour}}); err != nil || alone.Depot != depot || len(alone.Neighbours) > 0 {
		t.Errorf("without a radius %v %v, %v", alone.Depot, alone.Neighbours, err)
	}
}

// F-ARE-03, F-OPT-06, F-ORD-05: the depots that an area's cycle planned for do not count
// as being without cycles, and the area's reasons stand once.
func TestStore_CyclesCountForAllDepotsOfTheirArea(t *testing.T) {
	f := newFleet(t)
	if err := f.Setup(t.Context(), []domain.Depot{{ID: "A"}, {ID: "B"}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	f.mustOrder(t, "O1")
	since := f.now.Add(time.Minute)
	cycle := domain.Cycle{ID: "C1", DepotID: "A", DepotIDs: []domain.DepotID{"A", "B"}, Outcome: domain.CycleEmpty, StartedAt: since.Add(time.Second), SnapshotTime: since.Add(time.Second), Orders: 1,
		Unserved: []domain.UnservedOrder{{OrderID: "O1", Reason: "no_drone_free"}}}
	for _, c := range []domain.Cycle{{ID: "C0", DepotID: "B", Outcome: domain.CycleEmpty, StartedAt: since.Add(-time.Hour)}, cycle} {
		if err := f.RecordCycle(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if stored, err := f.Cycle(t.Context(), "C1"); err != nil || !slices.Equal(stored.DepotIDs, cycle.DepotIDs) {
		t.Errorf("stored %v, %v", stored.DepotIDs, err)
	}
	idle, err := f.IdleDepots(t.Context(), since)
	if err != nil || !slices.Equal(idle, []domain.DepotID{depot.ID}) {
		t.Errorf("without cycles are %v, %v", idle, err)
	}
	waits, _, err := f.Waits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var named []domain.DepotID
	for _, w := range waits.Depots() {
		named = append(named, w.DepotID)
	}
	if slices.Sort(named); !slices.Equal(named, []domain.DepotID{"A", depot.ID}) {
		t.Errorf("areas that give reasons: %v", named)
	}
}

// planned is what the cycles of all areas would plan with at one time: how often each depot
// and each drone is in an area's snapshot, read with one of the radii in turn.
func planned(t *testing.T, f *fleet, at time.Time, depots []domain.DepotID, radii ...float64) map[string]int {
	t.Helper()
	seen, areas := map[string]int{}, map[string]bool{}
	for i, id := range depots {
		radius := radii[i%len(radii)]
		snap, err := f.Snapshot(t.Context(), firestoretx.SnapshotRequest{Depot: id, At: at, AreaRadius: radius, Limits: policy.Limits{MaxSilence: time.Hour}})
		if errors.Is(err, firestoretx.ErrNotFound) {
			continue // there was no such depot then
		}
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprint(snap.Depot.ID, radius)
		if areas[name] {
			continue
		}
		areas[name] = true
		for _, d := range snap.Depots() {
			seen["depot "+string(d.ID)]++
		}
		for _, d := range snap.Drones {
			seen["drone "+string(d.ID)]++
		}
	}
	return seen
}

// twice are those that are planned by more than one area.
func twice(seen map[string]int) (list []string) {
	for what, n := range seen {
		if n > 1 {
			list = append(list, what)
		}
	}
	return list
}

// F-ARE-02: while depots come, move and go, no depot and no drone is in two areas at one
// read time. Optimizers with different radii break that, and the check notices.
func TestStore_AreasNeverOverlapAtOneTime(t *testing.T) {
	f := newFleet(t)
	var ids []domain.DepotID
	var drones []domain.Drone
	for i := range 6 {
		id := domain.DepotID(fmt.Sprint("DEPOT-", i))
		ids = append(ids, id)
		drones = append(drones, domain.Drone{ID: domain.DroneID("OF-" + id), HomeDepotID: id})
	}
	if err := f.Setup(t.Context(), nil, nil, drones); err != nil {
		t.Fatal(err)
	}
	for _, d := range drones {
		f.mustReport(t, idle(d.ID, f.now))
	}
	var times []time.Time
	for round := range 5 {
		var writers sync.WaitGroup
		for i, id := range ids {
			writers.Go(func() {
				at := depot.Position
				at.Lat += float64((i*(round+1))%5) / 60 // kilometres apart, elsewhere in each round
				if (i+round)%4 == 3 {
					if _, err := f.client.Doc("depots/" + string(id)).Delete(t.Context()); err != nil {
						t.Error(err)
					}
				} else if err := f.Setup(t.Context(), []domain.Depot{{ID: id, Position: at}}, nil, nil); err != nil {
					t.Error(err)
				}
			})
		}
		for range 3 { // while they write
			doc, err := f.client.Doc("depots/none").Get(t.Context())
			if doc == nil {
				t.Fatal(err)
			}
			times = append(times, doc.ReadTime)
		}
		writers.Wait()
	}
	for _, at := range times {
		if list := twice(planned(t, f, at, ids, 3)); len(list) > 0 {
			t.Errorf("in two areas at %s: %v", at, list)
		}
	}
	if err := f.Setup(t.Context(), []domain.Depot{{ID: ids[0], Position: depot.Position}, {ID: ids[1], Position: depot.Position}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if list := twice(planned(t, f, time.Time{}, []domain.DepotID{ids[1], ids[0]}, 0, 3)); len(list) == 0 {
		t.Error("the check does not notice optimizers with different radii")
	}
}

// F-OWN-04: a depot's number of drones is that of its drones in service, stored when it is far from
// the stored one. A file of depots does not touch it, and a depot that was deleted is left alone.
func TestStore_CountsTheDronesOfDepots(t *testing.T) {
	f := newFleet(t)
	var drones []domain.Drone
	for i := range 40 {
		drones = append(drones, domain.Drone{ID: domain.DroneID(fmt.Sprintf("OF-%02d", i)), HomeDepotID: depot.ID})
	}
	if err := f.Setup(t.Context(), nil, nil, drones); err != nil {
		t.Fatal(err)
	}
	known := func() domain.Depot {
		t.Helper()
		depots, err := f.Depots(t.Context())
		if err != nil || len(depots.Items) != 1 {
			t.Fatal(depots, err)
		}
		return depots.Items[0]
	}
	for _, step := range []struct {
		field string
		value any
		of    int // of the 40 drones
		want  int
	}{{want: 42}, {"unregistered", true, 10, 42}, {"retiredAt", f.now, 26, 16}} {
		for i := range step.of {
			if _, err := f.client.Doc(fmt.Sprintf("drones/OF-%02d", i)).Set(t.Context(), map[string]any{"unregistered": false, step.field: step.value}, firestore.MergeAll); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.CountDrones(t.Context(), []domain.Depot{{ID: "DELETED"}, known()}); err != nil {
			t.Fatal(err)
		}
		if d := known(); d.Drones != step.want {
			t.Errorf("%+v: %d drones", step, d.Drones)
		}
	}
	moved := depot
	moved.Position.Lat++
	change, err := f.ApplyDepot(t.Context(), moved, firestoretx.Change{By: "ann", Why: "moved"})
	if d := known(); err != nil || d.Drones != 16 || d.Position != moved.Position || len(change.Fields) != 1 {
		t.Errorf("applied %+v: %+v, %v", change, d, err)
	}
}
