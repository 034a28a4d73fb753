package firestoretx_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/genproto/googleapis/type/latlng"
	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// spoiledFleet is a fleet in which any document may be spoiled, but for those of the idle drone
// D1, the drone in flight D2 with its mission and its order O2, the waiting order O1 and DEPOT-1.
type spoiledFleet struct {
	*fleet
	sound map[string]map[string]any // every document, by its path
}

// newSpoiledFleet has D3 fly an amended mission, D4 on its way home, and D5 a ghost.
func newSpoiledFleet(t *testing.T) *spoiledFleet {
	f := newFleet(t)
	other := domain.Depot{ID: "DEPOT-2", Position: domain.Position{Lat: 48.9, Lon: 2.4}}
	var drones []domain.Drone
	for i := 1; i <= 5; i++ {
		drones = append(drones, domain.Drone{ID: domain.DroneID(fmt.Sprint("D", i)), HomeDepotID: depot.ID, PayloadCapacityKg: 5})
	}
	if err := f.Setup(t.Context(), []domain.Depot{depot, other}, []domain.Warehouse{{ID: "WH", Position: depot.Position, ProductTypes: []string{"BLOOD"}}}, drones); err != nil {
		t.Fatal(err)
	}
	for i := range drones {
		f.mustReport(t, idle(drones[i].ID, f.now))
		f.mustOrder(t, domain.OrderID(fmt.Sprint("O", i+1)))
	}
	f.mustOrder(t, "O6")
	for _, id := range []string{"2", "3", "4", "5"} {
		f.assign(t, f.decision(domain.DecisionID("DEC-"+id), domain.DroneID("D"+id), domain.OrderID("O"+id)))
	}
	f.now = f.now.Add(time.Second)
	for drone, completed := range map[domain.DroneID]int{"D2": 0, "D3": 1, "D4": 2, "D5": 0} {
		f.mustReport(t, f.says(drone, domain.MissionID("M-DEC-"+drone[1:]), 1, completed))
	}
	amendment := f.decision("DEC-6", "D3", "O3", "O6")
	amendment.AmendsMissionID, amendment.AmendsRevision = "M-DEC-3", 1
	if entry := f.assign(t, amendment); entry.Outcome != domain.OutcomeApplied {
		t.Fatalf("%+v", entry)
	}
	f.now = f.now.Add(time.Second)
	fault := f.says("D5", "M-DEC-5", 1, 0)
	fault.Status = domain.DroneMaintenance
	f.mustReport(t, fault)
	if err := f.RecordCycle(t.Context(), domain.Cycle{ID: "C1", DepotID: depot.ID, StartedAt: f.now, EndedAt: f.now, Outcome: domain.CycleEmpty, Unserved: []domain.UnservedOrder{{OrderID: "O1", Reason: "why"}}}); err != nil {
		t.Fatal(err)
	}
	f.now = f.now.Add(time.Second)
	s := &spoiledFleet{fleet: f}
	s.sound = s.documents(t, context.Background())
	return s
}

// says is a report of a drone that flies a mission.
func (f *fleet) says(drone domain.DroneID, mission domain.MissionID, revision, completed int) domain.Telemetry {
	return domain.Telemetry{
		DroneID: drone, Timestamp: f.now, Position: domain.Position{Lat: 48.9, Lon: 2.5}, Battery: 80, SpeedKmh: 50, Status: domain.DroneMoving,
		MissionID: mission, MissionRevision: revision, SupportsAmendments: true, CompletedStops: &completed,
	}
}

var spoiledCollections = []string{"drones", "orders", "missions", "depots", "warehouses", "cycles", "decisions", "learned"}

// documents are all documents that there are, by their path.
func (s *spoiledFleet) documents(t rapid.TB, ctx context.Context) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, collection := range spoiledCollections {
		docs, err := s.client.Collection(collection).Documents(ctx).GetAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range docs {
			all[collection+"/"+doc.Ref.ID] = doc.Data()
		}
	}
	return all
}

// restore makes every document what it was, but for the given ones.
func (s *spoiledFleet) restore(t rapid.TB, ctx context.Context, spoiled map[string]map[string]any) {
	//lint:ignore SA1019 the only public way to one atomic commit without reads
	batch := s.client.Batch()
	for path := range s.documents(t, ctx) {
		if s.sound[path] == nil {
			batch.Delete(s.client.Doc(path))
		}
	}
	docs := maps.Clone(s.sound)
	for path, fields := range docs {
		if strings.HasPrefix(path, "drones/") { // they reported just now
			docs[path] = maps.Clone(fields)
			docs[path]["seenAt"], docs[path]["lastUpdate"] = s.now, s.now
		}
	}
	maps.Copy(docs, spoiled)
	for path, fields := range docs {
		batch.Set(s.client.Doc(path), fields)
	}
	if _, err := batch.Commit(ctx); err != nil {
		t.Fatal(err)
	}
}

// spoilable are the documents that may be spoiled.
func (s *spoiledFleet) spoilable() (paths []string) {
	kept := []string{"drones/D1", "drones/D2", "missions/M-DEC-2", "orders/O1", "orders/O2", "depots/DEPOT-1"}
	for path := range s.sound {
		if !slices.Contains(kept, path) {
			paths = append(paths, path)
		}
	}
	return slices.Sorted(slices.Values(paths))
}

// fieldsOf are the fields that documents of a path's collection have.
func (s *spoiledFleet) fieldsOf(path string) []string {
	collection, _, _ := strings.Cut(path, "/")
	names := map[string]bool{}
	for other, fields := range s.sound {
		if strings.HasPrefix(other, collection+"/") {
			for name := range fields {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// spoiledValue is a value that a document may have in place of another.
func spoiledValue(t *rapid.T, was any) any {
	if rapid.Bool().Draw(t, "inside") {
		switch was := was.(type) {
		case []any:
			if len(was) > 0 {
				list, i := slices.Clone(was), rapid.IntRange(0, len(was)-1).Draw(t, "entry")
				list[i] = spoiledValue(t, was[i])
				return list
			}
		case map[string]any:
			if len(was) > 0 {
				m, name := maps.Clone(was), rapid.SampledFrom(slices.Sorted(maps.Keys(was))).Draw(t, "name")
				m[name] = spoiledValue(t, was[name])
				return m
			}
		}
	}
	switch was.(type) {
	case string, nil:
		return rapid.SampledFrom([]any{"", "a/b", "__x__", ".", strings.Repeat("x", 1501), "D1", "D2", "D3", "M-DEC-2", "M-DEC-3", "M-DEC-4", "M-DEC-5", "O1", "O2", "GONE", "ACTIVE", "IDLE", "MOVING", "PENDING", "IN_DELIVERY", "FLYING", "\x07", nil, 1}).Draw(t, "text")
	case []any:
		return rapid.SampledFrom([]any{nil, []any{}, []any{""}, []any{"a/b"}, []any{"O1", "O1"}, []any{"O2"}, []any{int64(math.MaxInt64)}, []any{map[string]any{}}, []any{nil}}).Draw(t, "list")
	case bool:
		return rapid.Bool().Draw(t, "flag")
	case int64, float64:
		return rapid.SampledFrom([]any{int64(-1), int64(0), int64(7), int64(math.MaxInt64), int64(math.MinInt64), math.NaN(), math.Inf(1), math.Inf(-1), 1e300, 0.5, nil, "1"}).Draw(t, "number")
	case time.Time:
		return rapid.SampledFrom([]any{nil, time.Time{}, time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC), time.Unix(0, 0), time.Now().Add(time.Hour), ""}).Draw(t, "time")
	case *latlng.LatLng:
		return rapid.SampledFrom([]any{nil, &latlng.LatLng{Latitude: -90, Longitude: 180}, map[string]any{"lat": 1.0, "lon": 2.0}}).Draw(t, "point")
	}
	return rapid.SampledFrom([]any{nil, map[string]any{}, "x"}).Draw(t, "value")
}

// named reports whether an error is ours, and not one of Firestore about a request.
func named(err error) bool {
	return err == nil || !strings.Contains(err.Error(), "rpc error")
}

// F-TEL-09, F-OPT-02: whatever another document says, cycles, sweeps and reports go on with the
// sound ones, and the store takes every request.
func TestStore_GoesOnBesideSpoiledDocuments(t *testing.T) {
	fewerChecks(t)
	s := newSpoiledFleet(t)
	rapid.Check(t, func(rt *rapid.T) {
		ctx := t.Context()
		spoiled := map[string]map[string]any{}
		for range rapid.IntRange(1, 3).Draw(rt, "spoiled documents") {
			path := rapid.SampledFrom(s.spoilable()).Draw(rt, "document")
			fields := maps.Clone(s.sound[path])
			for range rapid.IntRange(1, 3).Draw(rt, "fields") {
				name := rapid.SampledFrom(s.fieldsOf(path)).Draw(rt, "field")
				if value := spoiledValue(rt, fields[name]); value != nil {
					fields[name] = value
				} else {
					delete(fields, name)
				}
			}
			spoiled[path] = fields
		}
		s.now, s.applier = time.Now().UTC().Truncate(time.Microsecond), s.NewTelemetryApplier()
		s.restore(rt, ctx, spoiled)
		s.worksOn(rt, ctx)
	})
}

// fewerChecks lowers the number of checks, each of which takes long, unless a flag sets one.
func fewerChecks(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() != checks.DefValue {
		return
	}
	if err := checks.Value.Set("20"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Value.Set(checks.DefValue) }) // it was valid before
}

// worksOn does everything that is done with documents.
func (s *spoiledFleet) worksOn(t *rapid.T, ctx context.Context) {
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	tell := func(what string, err error) {
		t.Helper()
		if !named(err) {
			t.Fatalf("%s: %v", what, err)
		}
	}
	request := wanted
	request.AreaRadius = 30
	snap, err := s.Snapshot(ctx, request)
	must("snapshot", err)
	if !slices.ContainsFunc(snap.Drones, func(d domain.Drone) bool { return d.ID == "D1" }) ||
		!slices.ContainsFunc(snap.Flights, func(f domain.Flight) bool { return f.Drone.ID == "D2" && len(f.Orders) == 1 }) ||
		!slices.ContainsFunc(snap.Orders, func(o domain.Order) bool { return o.ID == "O1" }) {
		t.Fatalf("the snapshot lacks sound documents: %+v", snap)
	}
	_, err = s.PastAt(ctx, time.Now())
	tell("past", err)
	_, err = s.Census(ctx)
	must("census", err)
	_, _, err = s.Waits(ctx)
	must("waits", err)
	_, _, err = s.Learned(ctx)
	must("learned", err)
	_, err = s.MissionsEnded(ctx, domain.LearningScope{}, s.now.Add(-time.Hour), s.now, 100)
	must("ended missions", err)
	_, err = s.ListMissions(ctx, "", firestoretx.Page{})
	must("missions", err)

	s.now = s.now.Add(time.Second)
	reports := []domain.Telemetry{
		idle("D1", s.now), s.says("D2", "M-DEC-2", 1, 1), s.says("D3", "M-DEC-3", rapid.IntRange(1, 2).Draw(t, "revision"), 1),
		rapid.SampledFrom([]domain.Telemetry{s.says("D4", "M-DEC-4", 1, 2), idle("D4", s.now)}).Draw(t, "report of D4"),
		s.says("D5", "M-DEC-5", 1, rapid.IntRange(0, 2).Draw(t, "completed")),
	}
	for i, err := range s.applier.Apply(ctx, reports) {
		if i < 2 {
			must("report of "+string(reports[i].DroneID), err)
		}
		tell("report of "+string(reports[i].DroneID), err)
	}
	owed, err := s.OwedCommands(ctx, 0)
	tell("owed commands", err)
	for _, m := range owed {
		m.Command()
	}
	tell("mark", s.MarkCommandsPublished(ctx, owed))
	d := s.decision("DEC-9", "D1", "O1")
	entry, err := s.AssignMission(ctx, d, policy.Delivery{})
	must("decision", err)
	if entry.Outcome != domain.OutcomeApplied {
		t.Fatalf("%+v", entry)
	}
	s.now = s.now.Add(10 * time.Minute)
	_, err = s.Sweep(ctx, nil)
	tell("sweep", err)
	for _, id := range []string{"M-DEC-2", "M-DEC-9"} {
		if m, err := s.Mission(ctx, domain.MissionID(id)); err != nil || m.Status != domain.MissionFailed {
			t.Fatalf("after the sweep mission %s is %s, %v", id, m.Status, err)
		}
	}
	for i := range 6 {
		order, drone := domain.OrderID(fmt.Sprint("O", i+1)), domain.DroneID(fmt.Sprint("D", i+1))
		tell("cancel", s.CancelOrder(firestoretx.By(ctx, "ann"), order, "why"))
		tell("recall", s.RecallMission(firestoretx.By(ctx, "ann"), domain.MissionID("M-DEC-"+order[1:]), "why"))
		tell("ground", s.GroundDrone(firestoretx.By(ctx, "ann"), drone, "why"))
		tell("clear", s.ClearDrone(firestoretx.By(ctx, "ann"), drone, "why"))
	}
}

// F-TEL-09, F-OPT-02: an id that no document can have makes the document malformed that names it.
// Firestore refuses to read it, and all that is read with it.
func TestStore_NamesReferencesThatNoDocumentCanHave(t *testing.T) {
	s := newSpoiledFleet(t)
	for path, spoiled := range map[string]map[string]any{
		"drones/D3":        {"currentMissionId": "a/b"},
		"drones/D4":        {"currentMissionId": "__x__"},
		"drones/D5":        {"failedMissions": []any{map[string]any{"missionId": "a/b", "failedAt": s.now}}},
		"missions/M-DEC-3": {"orderIds": []any{"O3", ""}},
		"missions/M-DEC-4": {"droneId": "a/b"},
		"orders/O5":        {"assignedDroneId": "a/b"},
	} {
		fields := maps.Clone(s.sound[path])
		maps.Copy(fields, spoiled)
		s.set(t, path, fields)
		var malformed []error
		request := wanted
		request.OnMalformed = func(err error) { malformed = append(malformed, err) }
		if snap := s.snapshot(t, request); !slices.ContainsFunc(snap.Flights, func(f domain.Flight) bool { return f.Drone.ID == "D2" }) {
			t.Errorf("%s: in flight %+v", path, snap.Flights)
		}
		collection, id, _ := strings.Cut(path, "/")
		var err error
		switch collection {
		case "drones":
			_, err = s.Store.Drone(t.Context(), domain.DroneID(id))
		case "missions":
			_, err = s.Store.Mission(t.Context(), domain.MissionID(id))
		default:
			_, err = s.Store.Order(t.Context(), domain.OrderID(id))
		}
		if malformed := new(firestoretx.MalformedError); !errors.As(err, &malformed) {
			t.Errorf("%s: %v, want an error that names the document", path, err)
		}
		if _, err := s.Sweep(t.Context(), nil); !named(err) {
			t.Errorf("%s: sweep: %v", path, err)
		}
		s.set(t, path, s.sound[path])
	}
	if _, err := s.Mission(t.Context(), "a/b"); !errors.Is(err, firestoretx.ErrNotFound) {
		t.Errorf("a mission that cannot be: %v", err)
	}
	if missions, err := s.MissionsOf(t.Context(), []domain.MissionID{"a/b", "M-DEC-2"}); err != nil || len(missions) != 1 {
		t.Errorf("missions %+v, %v", missions, err)
	}
}

// F-ORD-03: an order that is ASSIGNED without a drone, or to one that does not fly for it, can be
// cancelled.
func TestStore_CancelsAnOrderThatNobodyFliesFor(t *testing.T) {
	f := newFleet(t)
	for _, drone := range []string{"", "GONE", "D1"} {
		id := domain.OrderID("O-" + drone)
		f.mustOrder(t, id)
		if _, err := f.client.Doc("orders/"+string(id)).Set(t.Context(), map[string]any{"status": "ASSIGNED", "assignedDroneId": drone}, firestore.MergeAll); err != nil {
			t.Fatal(err)
		}
		if err := f.CancelOrder(firestoretx.By(t.Context(), "ann"), id, "why"); err != nil || f.order(t, id).Status != domain.OrderCancelled {
			t.Errorf("assigned to %q: %v, it is %s", drone, err, f.order(t, id).Status)
		}
	}
}

// F-TEL-09, F-ORD-04: the orders of a mission whose drone was deleted or freed by hand wait again,
// and a parcel that is aboard is held.
func TestStore_SweepFailsMissionsThatHoldNoDrone(t *testing.T) {
	s := newSpoiledFleet(t)
	if _, err := s.client.Doc("drones/D2").Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Doc("drones/D3").Update(t.Context(), []firestore.Update{{Path: "currentMissionId", Value: ""}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{2, 0} {
		if result, err := s.Sweep(t.Context(), nil); err != nil || result.MissionsFailed != want {
			t.Errorf("%d missions failed, want %d: %v", result.MissionsFailed, want, err)
		}
	}
	for id, held := range map[domain.OrderID]bool{"O2": false, "O3": true, "O6": false} {
		if o := s.order(t, id); o.Status != domain.OrderPending || o.Held != held {
			t.Errorf("%+v", o)
		}
	}
	d3 := s.drone(t, "D3")
	if _, failed := d3.FailedAt("M-DEC-3"); !failed {
		t.Error("D3 cannot be told as a ghost")
	}
}
