package policy

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// Every report takes this path twice: once to tell whether it is urgent, once in its commit.
func BenchmarkApplyTelemetry(b *testing.B) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	idle := Binding{Drone: domain.Drone{
		ID: "D1", Status: domain.DroneIdle, ReportedStatus: domain.DroneIdle, LastUpdate: at, SeenAt: at, IdleSince: at,
		Position: domain.Position{Lat: 48, Lon: 2},
	}}
	bound := idle
	bound.Drone.Status, bound.Drone.ReportedStatus = domain.DroneMoving, domain.DroneMoving
	bound.Drone.CurrentMissionID, bound.Drone.MissionAcked, bound.Drone.MissionMoved = "M1", true, true
	bound.Mission = &domain.Mission{
		ID: "M1", DroneID: "D1", Status: domain.MissionActive, OrderIDs: []domain.OrderID{"O1"}, StartTime: at,
		Route: []domain.Waypoint{
			{Type: domain.WaypointWarehousePickup, Position: domain.Position{Lat: 48.1, Lon: 2}, OrderID: "O1"},
			{Type: domain.WaypointHospitalDelivery, Position: domain.Position{Lat: 48.2, Lon: 2}, OrderID: "O1"},
		},
	}
	bound.Orders = map[domain.OrderID]domain.Order{"O1": {ID: "O1", Status: domain.OrderAssigned, AssignedDroneID: "D1", AssignedMissionID: "M1"}}
	for name, binding := range map[string]Binding{"idle": idle, "bound": bound} {
		t := domain.Telemetry{
			DroneID: "D1", Position: domain.Position{Lat: 48, Lon: 2.0001}, Battery: 80, Timestamp: at.Add(time.Second),
			Status: binding.Drone.Status, MissionID: binding.Drone.CurrentMissionID,
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := DefaultDronePolicy().ApplyTelemetry(binding, t, t.Timestamp); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
