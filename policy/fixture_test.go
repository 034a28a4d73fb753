package policy

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// The fixture's world: a depot, a warehouse and three hospitals, each more than
// a kilometre from the next, and one day's start. Times are seconds after it.
var (
	depotAt     = domain.Position{Lat: 48.80, Lon: 2.30}
	warehouseAt = domain.Position{Lat: 48.82, Lon: 2.30}
	hospitalsAt = []domain.Position{{Lat: 48.84, Lon: 2.30}, {Lat: 48.86, Lon: 2.30}, {Lat: 48.88, Lon: 2.30}}
	awayAt      = domain.Position{Lat: 48.81, Lon: 2.36} // near nothing
	start       = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
)

// firstFence is the first that a lock hands out.
const firstFence = "000000000000001"

func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// readyDrone is an idle drone that reported a second before the day's start.
func readyDrone(id domain.DroneID) domain.Drone {
	return domain.Drone{
		ID: id, Status: domain.DroneIdle, ReportedStatus: domain.DroneIdle, Position: depotAt,
		Battery: 90, LastUpdate: at(-1), SeenAt: at(-1), IdleSince: at(-60),
		HomeDepotID: "DEPOT", PayloadCapacityKg: 5, Revision: 2,
	}
}

// openOrder is a pending order for the nth hospital, a minute old.
func openOrder(id domain.OrderID, n int) domain.Order {
	req := request(id, n)
	return domain.Order{
		ID: id, Status: domain.OrderPending, OrderContent: req.OrderContent, ContentHash: req.Hash(),
		CreatedAt: at(-60), Deadline: at(3540), PendingSince: at(-60), Revision: 1,
	}
}

// request asks for a kilogram of blood at the nth hospital.
func request(id domain.OrderID, n int) domain.OrderRequest {
	return domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{
		Priority: domain.PriorityStandard, ProductType: "BLOOD", WeightKg: 1,
		Delivery: hospitalsAt[n%len(hospitalsAt)], RequesterID: "ward 4",
	}}
}

func cancellation(id domain.OrderID) domain.OrderRequest {
	return domain.OrderRequest{ID: id, Cancel: true, OrderContent: domain.OrderContent{RequesterID: "ward 4"}}
}

// hospitalOf is where the fixture's order is delivered: O1 at the first hospital, and so on.
func hospitalOf(id domain.OrderID) domain.Position {
	n, err := strconv.Atoi(strings.TrimPrefix(string(id), "O"))
	if err != nil || n < 1 {
		n = 1
	}
	return hospitalsAt[(n-1)%len(hospitalsAt)]
}

// stocked are the warehouses that plans name.
func stocked() map[domain.WarehouseID]domain.Warehouse {
	return map[domain.WarehouseID]domain.Warehouse{"WH": {ID: "WH", Position: warehouseAt, ProductTypes: []string{"BLOOD"}}}
}

// plan decides that a drone serve the orders: out of the depot, every parcel
// from the warehouse, to one hospital after the other, and home.
func plan(id domain.DecisionID, drone domain.DroneID, orders ...domain.OrderID) domain.Decision {
	route := []domain.Waypoint{{Type: domain.WaypointDepotStart, Position: depotAt}}
	for _, o := range orders {
		route = append(route, domain.Waypoint{Type: domain.WaypointWarehousePickup, Position: warehouseAt, OrderID: o, WarehouseID: "WH"})
	}
	for _, o := range orders {
		route = append(route, domain.Waypoint{Type: domain.WaypointHospitalDelivery, Position: hospitalOf(o), OrderID: o})
	}
	route = append(route, domain.Waypoint{Type: domain.WaypointDepotReturn, Position: depotAt})
	return domain.Decision{
		ID: id, CycleID: "C", Fence: firstFence, SnapshotTime: at(-2), DroneID: drone, OrderIDs: slices.Clone(orders), Route: route,
		EstimatedBatteryConsumption: 30, EstimatedDurationMinutes: 12, PayloadHash: "payload of " + string(id),
	}
}

// report is what a well drone with a good battery says, away from every stop.
func report(drone domain.DroneID, status domain.DroneStatus, mission domain.MissionID, measured time.Time) domain.Telemetry {
	return domain.Telemetry{
		DroneID: drone, Timestamp: measured, Position: awayAt, Battery: 80, SpeedKmh: 50,
		Status: status, MissionID: mission,
	}
}

func near(t domain.Telemetry, p domain.Position) domain.Telemetry {
	t.Position = p
	return t
}

func charged(t domain.Telemetry, percent float64) domain.Telemetry {
	t.Battery = percent
	return t
}
