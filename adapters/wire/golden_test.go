package wire_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	measuredAt = time.Date(2026, 11, 21, 10, 15, 30, 123456000, time.UTC)
	louvre     = domain.Position{Lat: 48.8606, Lon: 2.3376}
	bercy      = domain.Position{Lat: 48.8396, Lon: 2.3822}
)

func goldenRoute() []domain.Waypoint {
	return []domain.Waypoint{
		{Type: domain.WaypointDepotStart, Position: louvre},
		{Type: domain.WaypointWarehousePickup, Position: bercy, OrderID: "O-1", WarehouseID: "WH-NORTH", ETA: measuredAt.Add(time.Minute)},
		{Type: domain.WaypointHospitalDelivery, Position: louvre, OrderID: "O-1", ETA: measuredAt.Add(2 * time.Minute)},
		{Type: domain.WaypointDepotReturn, Position: louvre},
	}
}

func goldenTelemetry() domain.Telemetry {
	return domain.Telemetry{
		DroneID: "D-001", Timestamp: measuredAt, Position: louvre, Battery: 81.5, SpeedKmh: 50,
		Status: domain.DroneDelivering, MissionID: "M-C1-D-001",
	}
}

func goldenOrder() domain.OrderRequest {
	return domain.OrderRequest{
		ID: "O-1",
		OrderContent: domain.OrderContent{
			Priority: domain.PriorityCritical, ProductType: "BLOOD", Pickup: &bercy, Delivery: louvre,
			WeightKg: 1.25, ColdChain: true, RequesterID: "HOSP-COCHIN",
		},
		CreatedAt: measuredAt, Deadline: measuredAt.Add(15 * time.Minute),
	}
}

func goldenDecision() domain.Decision {
	d := domain.Decision{
		ID: "C1-D-001", CycleID: "C1", Fence: "000000000000042", SnapshotTime: measuredAt,
		DroneID: "D-001", OrderIDs: []domain.OrderID{"O-1"}, Route: goldenRoute(),
		EstimatedBatteryConsumption: 21.5, EstimatedDurationMinutes: 10.25,
	}
	d.PayloadHash = wire.DecisionHash(d)
	return d
}

// amendedTelemetry is a report of a drone that supports amendments.
func amendedTelemetry() domain.Telemetry {
	t, completed := goldenTelemetry(), 2
	t.MissionRevision, t.SupportsAmendments, t.CompletedStops = 2, true, &completed
	return t
}

// amendingDecision changes a mission under way.
func amendingDecision() domain.Decision {
	d := goldenDecision()
	d.DepotID, d.AmendsMissionID, d.AmendsRevision = "DEPOT-PARIS-01", "M-C1-D-001", 1
	d.PayloadHash = wire.DecisionHash(d)
	return d
}

// standbyTelemetry is a report of a drone that charges on a mission without orders.
func standbyTelemetry() domain.Telemetry {
	t, completed := goldenTelemetry(), 0
	t.Status, t.MissionRevision, t.SupportsAmendments, t.SupportsStandby, t.CompletedStops = domain.DroneCharging, 1, true, true, &completed
	return t
}

// standbyDecision has a drone charge, and then wait.
func standbyDecision() domain.Decision {
	d := goldenDecision()
	d.OrderIDs, d.Route = nil, []domain.Waypoint{
		{Type: domain.WaypointCharge, Position: louvre, ChargeToPercent: 87.5},
		{Type: domain.WaypointWait, Position: bercy, WaitUntil: measuredAt.Add(time.Hour)},
	}
	d.PayloadHash = wire.DecisionHash(d)
	return d
}

func amendedCommand() domain.Command {
	c := goldenCommand()
	c.Mission.RouteRevision = 2
	return c
}

func goldenCommand() domain.Command {
	return domain.Command{
		Mission: domain.Mission{
			ID: "M-C1-D-001", DroneID: "D-001", OrderIDs: []domain.OrderID{"O-1"}, Route: goldenRoute(),
			Status: domain.MissionActive, StartTime: measuredAt,
			EstimatedBatteryConsumption: 21.5, EstimatedDurationMinutes: 10.25,
		},
		ExpiresAt: measuredAt.Add(20 * time.Second),
	}
}

// F-WIRE-01 F-WIRE-02
func TestGolden_EveryMessageKeepsItsBytesInBothFormats(t *testing.T) {
	for _, message := range []struct {
		name  string
		write func(wire.Format) ([]byte, map[string]string, error)
		read  func([]byte, map[string]string) (any, error)
		want  any
	}{
		{"telemetry", encoder(wire.EncodeTelemetry, goldenTelemetry()), decoder(wire.DecodeTelemetry), goldenTelemetry()},
		{"order", encoder(wire.EncodeOrder, goldenOrder()), decoder(wire.DecodeOrder), goldenOrder()},
		{"decision", encoder(wire.EncodeDecision, goldenDecision()), decoder(wire.DecodeDecision), goldenDecision()},
		{"command", encoder(wire.EncodeCommand, goldenCommand()), decoder(wire.DecodeCommand), goldenCommand()},
		{"telemetry-amended", encoder(wire.EncodeTelemetry, amendedTelemetry()), decoder(wire.DecodeTelemetry), amendedTelemetry()},
		{"decision-amending", encoder(wire.EncodeDecision, amendingDecision()), decoder(wire.DecodeDecision), amendingDecision()},
		{"telemetry-standby", encoder(wire.EncodeTelemetry, standbyTelemetry()), decoder(wire.DecodeTelemetry), standbyTelemetry()}, // F-AMD-06
		{"decision-standby", encoder(wire.EncodeDecision, standbyDecision()), decoder(wire.DecodeDecision), standbyDecision()},
		{"command-amended", encoder(wire.EncodeCommand, amendedCommand()), decoder(wire.DecodeCommand), amendedCommand()},
	} {
		for _, format := range []wire.Format{wire.Protobuf, wire.JSON} {
			t.Run(message.name+" as "+string(format), func(t *testing.T) {
				data, attrs, err := message.write(format)
				if err != nil {
					t.Fatal(err)
				}
				if want := "application/" + string(format); attrs["content-type"] != want {
					t.Errorf("content-type is %q, want %q", attrs["content-type"], want)
				}
				compareGolden(t, message.name, format, data)
				for _, a := range []map[string]string{attrs, nil} {
					got, err := message.read(data, a)
					if err != nil {
						t.Fatalf("attributes %v: %v", a, err)
					}
					if diff := cmp.Diff(message.want, got); diff != "" {
						t.Errorf("attributes %v: decoded value differs (-want +got):\n%s", a, diff)
					}
				}
			})
		}
	}
}

func TestGolden_SnapshotJSON(t *testing.T) {
	want := goldenSnapshot()
	data, err := wire.MarshalSnapshot(want)
	if err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "snapshot", wire.JSON, data)
	got, err := wire.DecodeSnapshot(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decoded snapshot differs (-want +got):\n%s", diff)
	}
}

func goldenSnapshot() domain.Snapshot {
	content := goldenOrder().OrderContent
	return domain.Snapshot{
		CycleID: "C1", Fence: "000000000000042", Time: measuredAt, ReadTime: measuredAt.Add(-time.Second),
		Depot: domain.Depot{ID: "DEPOT-PARIS-01", Name: "Paris Main Hub", Position: louvre, Capacity: 40, ChargingSlots: 10},
		Drones: []domain.Drone{{
			ID: "D-001", Status: domain.DroneIdle, Position: bercy, Battery: 90, LastUpdate: measuredAt,
			HomeDepotID: "DEPOT-PARIS-01", ShortName: "one", BatteryCapacityMah: 5000, ConsumptionPerKm: 2.5, ConsumptionPerKmKg: 0.125,
			MaxFlightTimeMinutes: 38, PayloadCapacityKg: 5,
		}},
		Orders: []domain.Order{{
			ID: "O-1", Status: domain.OrderPending, OrderContent: content,
			CreatedAt: measuredAt.Add(-time.Minute), Deadline: measuredAt.Add(14 * time.Minute),
			PinnedDroneID: "D-001", ForbiddenDroneIDs: []domain.DroneID{"D-002", "D-003"},
		}},
		Flights: []domain.Flight{{
			Drone: domain.Drone{
				ID: "D-002", Status: domain.DroneMoving, Position: louvre, Battery: 70, SpeedKmh: 50, LastUpdate: measuredAt, SeenAt: measuredAt.Add(50 * time.Millisecond),
				CurrentMissionID: "M-C1-D-002", HomeDepotID: "DEPOT-PARIS-01",
			},
			Mission: domain.Mission{
				ID: "M-C1-D-002", DroneID: "D-002", OrderIDs: []domain.OrderID{"O-1"}, Route: goldenRoute(), Status: domain.MissionActive,
				StartTime: measuredAt.Add(-time.Minute), EstimatedBatteryConsumption: 20, EstimatedDurationMinutes: 9, RouteRevision: 1, ReachedStops: 2,
			},
			Orders: []domain.Order{{
				ID: "O-1", Status: domain.OrderInDelivery, OrderContent: content, CreatedAt: measuredAt.Add(-5 * time.Minute), Deadline: measuredAt.Add(10 * time.Minute),
				AssignedDroneID: "D-002", AssignedMissionID: "M-C1-D-002",
			}},
			ReachedAt: measuredAt.Add(-10 * time.Second),
		}},
		Warehouses: []domain.Warehouse{{
			ID: "WH-NORTH", Name: "North", Position: bercy, ProductTypes: []string{"BLOOD", "VACCINE"}, ColdStorage: true,
		}},
	}
}

// compareGolden keeps protobuf as hexadecimal so that a change can be read.
func compareGolden(t *testing.T, name string, format wire.Format, data []byte) {
	t.Helper()
	path, text := filepath.Join("testdata", "golden", name+".json"), data
	if format == wire.Protobuf {
		path, text = filepath.Join("testdata", "golden", name+".hex"), hexLines(data)
	}
	text = append(bytes.Clone(text), '\n')
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("%s differs (-want +got); existing fleets would not understand it:\n%s", path, diff)
	}
}

func hexLines(data []byte) []byte {
	var lines [][]byte
	for line := range slices.Chunk(data, 32) {
		lines = append(lines, hex.AppendEncode(nil, line))
	}
	return bytes.Join(lines, []byte("\n"))
}

func encoder[T any](encode func(T, wire.Format) ([]byte, map[string]string, error), v T) func(wire.Format) ([]byte, map[string]string, error) {
	return func(f wire.Format) ([]byte, map[string]string, error) { return encode(v, f) }
}

func decoder[T any](decode func([]byte, map[string]string) (T, error)) func([]byte, map[string]string) (any, error) {
	return func(data []byte, attrs map[string]string) (any, error) {
		v, err := decode(data, attrs)
		return v, err
	}
}
