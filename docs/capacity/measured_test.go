package capacity_test

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/docs/capacity"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/devrun"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// What a report writes is no more than the table says, so that no change makes
// the fleet dearer unseen. A slow machine makes it cheaper: more reports share a
// write.
func TestMeasuredWritesHold(t *testing.T) {
	longtest.Only(t, "takes ten seconds of real time")
	if os.Getenv(connect.FirestoreHost) != "" || os.Getenv(connect.PubSubHost) != "" {
		t.Skip("the run starts the embedded servers by design; there is nothing to compare on others")
	}
	for hz, measured := range capacity.Measured {
		t.Run(fmt.Sprintf("%g a second", hz), func(t *testing.T) {
			t.Parallel()
			report, err := devrun.Run(t.Context(), devrun.Config{
				Duration: 10 * time.Second, Drones: 50, Hz: hz, Speed: 1, Seed: 1, SolveLimit: 100 * time.Millisecond,
				Out: io.Discard, Log: emutest.Log(t),
			})
			if err != nil {
				t.Fatal(err)
			}
			got := report.FirestorePerThousand["telemetry"].Writes / 1000
			// In so short a run the first reports, which register the drones and
			// find them idle, count for much.
			if most := 1.3*measured.Writes + 3*50/float64(report.Telemetry.Applied); got > most {
				t.Errorf("a report writes %.3f documents, the table says %.3f; measure anew with go run ./bench/telemetry", got, measured.Writes)
			}
			t.Logf("%.3f writes a report; the table says %.3f", got, measured.Writes)
		})
	}
}

// The formula of positions and changes of status gives what was measured: each
// drone changed its status once a minute then.
func TestFormulaGivesWhatWasMeasured(t *testing.T) {
	const changes = 1.0 / 60 // a second
	for hz, measured := range capacity.Measured {
		formula := (capacity.PositionWrites(hz) + 2*changes) / hz
		if off := measured.Writes/formula - 1; off < -0.15 || off > 0.15 {
			t.Errorf("at %g a second a report writes %.3f documents, by the formula %.3f", hz, measured.Writes, formula)
		}
	}
}

// What sweeps and snapshots read is what the formula says, document by document.
func TestReadsOfSweepsAndSnapshots(t *testing.T) {
	shape := capacity.Fleet{Drones: 8, Depots: 1, Warehouses: 3, OrdersPerMission: 2, Idle: 0.25, OnMission: 0.5}
	clients := emutest.Clients(t)
	now := time.Now()
	store := firestoretx.New(clients.Firestore, firestoretx.Config{PlanUnregistered: true, Now: func() time.Time { return now }})
	home := domain.Position{Lat: 48.85, Lon: 2.35}
	warehouses := make([]domain.Warehouse, shape.Warehouses)
	for i := range warehouses {
		warehouses[i] = domain.Warehouse{ID: domain.WarehouseID(fmt.Sprint("W", i)), Name: "W", Position: home}
	}
	if err := store.Setup(t.Context(), []domain.Depot{{ID: "DEPOT", Name: "D", Position: home}}, warehouses, nil); err != nil {
		t.Fatal(err)
	}
	emutest.IssueFences(t, clients.Firestore, "1", "DEPOT")
	applier := store.NewTelemetryApplier()
	for i := range shape.Drones {
		status := domain.DroneIdle
		if i >= 6 {
			status = domain.DroneCharging
		}
		report := domain.Telemetry{DroneID: domain.DroneID(fmt.Sprint("D", i)), Timestamp: now, Position: home, Battery: 90, Status: status}
		if err := applier.Apply(t.Context(), []domain.Telemetry{report})[0]; err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		request := domain.OrderRequest{ID: orderID(i), OrderContent: domain.OrderContent{Priority: domain.PriorityHigh, ProductType: "BLOOD", Pickup: &home, Delivery: home}}
		if err := store.IngestOrder(t.Context(), request, now); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		assign(t, store, domain.DroneID(fmt.Sprint("D", i)), []domain.OrderID{orderID(2 * i), orderID(2*i + 1)}, now, home)
	}
	missions, err := store.Missions(t.Context(), domain.MissionActive, firestoretx.Page{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.MarkCommandsPublished(t.Context(), missions); err != nil {
		t.Fatal(err)
	}

	flying := 1
	for i, m := range missions {
		report := domain.Telemetry{
			DroneID: m.DroneID, Timestamp: now.Add(time.Duration(i+1) * time.Millisecond), Position: domain.Position{Lat: 48.9, Lon: 2.4}, Battery: 80, Status: domain.DroneMoving,
			MissionID: m.ID, MissionRevision: m.RouteRevision, SupportsAmendments: true, CompletedStops: &flying,
		}
		if err := applier.Apply(t.Context(), []domain.Telemetry{report})[0]; err != nil {
			t.Fatal(err)
		}
	}

	reads := func(what string, want float64, work func() error) {
		t.Helper()
		before := clients.Meter.FirestoreTotals().Reads
		if err := work(); err != nil {
			t.Fatal(err)
		}
		if got := clients.Meter.FirestoreTotals().Reads - before; float64(got) != want {
			t.Errorf("%s reads %d documents, the formula says %g", what, got, want)
		}
	}
	reads("a sweep", shape.SweepReads(), func() error {
		if _, err := store.Sweep(t.Context(), nil); err != nil {
			return err
		}
		_, err := store.OwedCommands(t.Context(), time.Second)
		return err
	})
	rpcs := clients.Meter.FirestoreTotals().RPCs
	if _, err := store.Census(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := clients.Meter.FirestoreTotals().RPCs - rpcs; got != capacity.CensusRPCs {
		t.Errorf("a census takes %d calls, the formula says %d", got, capacity.CensusRPCs)
	}
	reads("a snapshot", shape.SnapshotReads(), func() error {
		_, err := store.Snapshot(t.Context(), firestoretx.SnapshotRequest{Depot: "DEPOT", Limits: policy.Limits{MaxSilence: time.Hour}, Flights: true})
		return err
	})
}

func orderID(i int) domain.OrderID { return domain.OrderID(fmt.Sprintf("O%02d", i)) }

func assign(t *testing.T, store *firestoretx.Store, drone domain.DroneID, orders []domain.OrderID, now time.Time, at domain.Position) {
	t.Helper()
	d := domain.Decision{
		ID: domain.DecisionID("DEC-" + string(drone)), DroneID: drone, DepotID: "DEPOT", Fence: "1", OrderIDs: orders, SnapshotTime: now.Add(time.Minute),
		EstimatedBatteryConsumption: 10, EstimatedDurationMinutes: 10,
	}
	for _, o := range orders {
		d.Route = append(d.Route,
			domain.Waypoint{Type: domain.WaypointWarehousePickup, OrderID: o, Position: at},
			domain.Waypoint{Type: domain.WaypointHospitalDelivery, OrderID: o, Position: at})
	}
	entry, err := store.AssignMission(t.Context(), d, policy.Delivery{MessageID: "m-" + string(drone)})
	if err != nil || entry.Outcome != domain.OutcomeApplied {
		t.Fatalf("decision about %s: %+v, %v", drone, entry, err)
	}
}

// A report is billed as its publish request's minimum and as its own size when
// delivered; the formula allows for both.
func TestReportBytes(t *testing.T) {
	data, attrs, err := wire.EncodeTelemetry(domain.Telemetry{
		DroneID: "DRONE-12345", Timestamp: time.Unix(1_800_000_000, 999_000_000), Position: domain.Position{Lat: 48.123456, Lon: 2.123456},
		Battery: 87.654321, SpeedKmh: 50.123, Status: domain.DroneMoving, MissionID: "M-0b7f8f0e-6c1a-4f3e-9a55-93b3a7b3d8aa-DRONE-12345",
	}, wire.Protobuf)
	if err != nil {
		t.Fatal(err)
	}
	const key, id, publishTime = len("DRONE-12345"), 16, 20
	size := len(data) + key + id + publishTime
	for name, value := range attrs {
		size += len(name) + len(value)
	}
	if float64(size) > capacity.DeliveredBytes || float64(size) > capacity.PublishBytes {
		t.Errorf("a report has %d bytes; the formula takes %g delivered and %g published", size, capacity.DeliveredBytes, capacity.PublishBytes)
	}
	t.Logf("a report has %d bytes", size)
}
