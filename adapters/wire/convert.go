package wire

import (
	"math"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dronefleet/dronefleet/domain"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// The *ToProto functions write the fields that the wire has; the State Manager's own
// bookkeeping (bindings, revisions, outbox times) is left out.

// positionToProto writes a position, coordinates of 0 included.
func positionToProto(p domain.Position) *pb.Position {
	return &pb.Position{Lat: proto.Float64(p.Lat), Lon: proto.Float64(p.Lon)}
}

// telemetryToProto writes a report.
func telemetryToProto(t domain.Telemetry) *pb.DroneTelemetry {
	m := &pb.DroneTelemetry{
		DroneId:           string(t.DroneID),
		Timestamp:         timeToProto(t.Timestamp),
		Position:          positionToProto(t.Position),
		BatteryPercentage: t.Battery,
		SpeedKmh:          t.SpeedKmh,
		Status:            droneStatuses.proto(t.Status),
		CurrentMissionId:  string(t.MissionID),
	}
	if t.CompletedStops != nil {
		m.CompletedStops = proto.Int32(bounded(*t.CompletedStops))
	}
	m.MissionRevision, m.SupportsAmendments = bounded(t.MissionRevision), t.SupportsAmendments
	m.SupportsStandby = t.SupportsStandby
	m.BatteryHealthPercent, m.FlightSeconds, m.SerialNumber = t.BatteryHealth, t.FlightSeconds, t.SerialNumber
	return m
}

// orderRequestToProto writes a request. A cancellation without content is
// written without content.
func orderRequestToProto(r domain.OrderRequest) *pb.Order {
	m := orderContentToProto(r.OrderContent)
	m.Id = string(r.ID)
	m.Status = pb.OrderStatus_ORDER_STATUS_PENDING
	m.CreatedAt, m.Deadline = timeToProto(r.CreatedAt), timeToProto(r.Deadline)
	if r.Cancel {
		m.Status = pb.OrderStatus_ORDER_STATUS_CANCELLED
		if r.ProductType == "" && r.Pickup == nil {
			m.DeliveryLocation = nil
		}
	}
	return m
}

// orderToProto writes an order as the State Manager knows it.
func orderToProto(o domain.Order) *pb.Order {
	m := orderContentToProto(o.OrderContent)
	m.Id = string(o.ID)
	m.Status = orderStatuses.proto(o.Status)
	m.CreatedAt, m.Deadline = timeToProto(o.CreatedAt), timeToProto(o.Deadline)
	m.AssignedDroneId = string(o.AssignedDroneID)
	m.AssignedMissionId = string(o.AssignedMissionID)
	m.PinnedDroneId, m.ForbiddenDroneIds = string(o.PinnedDroneID), texts(o.ForbiddenDroneIDs)
	return m
}

func orderContentToProto(c domain.OrderContent) *pb.Order {
	m := &pb.Order{
		DeliveryLocation:  positionToProto(c.Delivery),
		Priority:          priorities.proto(c.Priority),
		ProductType:       c.ProductType,
		PackageWeightKg:   c.WeightKg,
		RequiresColdChain: c.ColdChain,
		RequesterId:       c.RequesterID,
	}
	if c.Pickup != nil {
		m.PickupLocation = positionToProto(*c.Pickup)
	}
	return m
}

// droneToProto writes a drone.
func droneToProto(d domain.Drone) *pb.Drone {
	m := &pb.Drone{
		Id:                   string(d.ID),
		Position:             positionToProto(d.Position),
		BatteryPercentage:    d.Battery,
		SpeedKmh:             d.SpeedKmh,
		Status:               droneStatuses.proto(d.Status),
		CurrentMissionId:     string(d.CurrentMissionID),
		LastUpdate:           timeToProto(d.LastUpdate),
		HomeDepotId:          string(d.HomeDepotID),
		BatteryCapacityMah:   bounded(d.BatteryCapacityMah),
		ConsumptionPerKm:     d.ConsumptionPerKm,
		ConsumptionPerKmKg:   d.ConsumptionPerKmKg,
		MaxFlightTimeMinutes: bounded(d.MaxFlightTimeMinutes),
		ShortName:            d.ShortName,
		PayloadCapacityKg:    d.PayloadCapacityKg,
		SupportsStandby:      d.SupportsStandby,
		TypeId:               string(d.TypeID),
		SerialNumber:         d.SerialNumber,
		CountsStops:          d.CountsStops,
	}
	if box := d.ColdBox; box != nil {
		m.ColdBoxMinCelsius, m.ColdBoxMaxCelsius = &box.MinCelsius, &box.MaxCelsius
	}
	if d.ChargeRate != 0 {
		m.ChargeRate = proto.Float64(d.ChargeRate)
	}
	return m
}

// waypointToProto writes one stop.
func waypointToProto(w domain.Waypoint) *pb.Waypoint {
	m := &pb.Waypoint{
		Type:               waypointTypes.proto(w.Type),
		Position:           positionToProto(w.Position),
		RelatedOrderId:     string(w.OrderID),
		RelatedWarehouseId: string(w.WarehouseID),
		Eta:                timeToProto(w.ETA),
		WaitUntil:          timeToProto(w.WaitUntil),
	}
	if w.Type == domain.WaypointCharge {
		m.ChargeToPercent = proto.Float64(w.ChargeToPercent)
	}
	return m
}

// missionToProto writes a mission.
func missionToProto(m domain.Mission) *pb.Mission {
	return &pb.Mission{
		Id:                          string(m.ID),
		DroneId:                     string(m.DroneID),
		OrderIds:                    texts(m.OrderIDs),
		Route:                       each(m.Route, waypointToProto),
		Status:                      string(m.Status),
		StartTime:                   timeToProto(m.StartTime),
		EndTime:                     timeToProto(m.EndTime),
		EstimatedBatteryConsumption: m.EstimatedBatteryConsumption,
		EstimatedDurationMinutes:    m.EstimatedDurationMinutes,
		Revision:                    bounded(m.RouteRevision),
	}
}

// decisionToProto writes a decision.
func decisionToProto(d domain.Decision) *pb.MissionAssignment {
	return &pb.MissionAssignment{
		DroneId:                     string(d.DroneID),
		OrderIds:                    texts(d.OrderIDs),
		Route:                       each(d.Route, waypointToProto),
		EstimatedBatteryConsumption: d.EstimatedBatteryConsumption,
		EstimatedDurationMinutes:    d.EstimatedDurationMinutes,
		DecisionId:                  string(d.ID),
		CycleId:                     string(d.CycleID),
		Fence:                       d.Fence,
		DepotId:                     string(d.DepotID),
		SnapshotTime:                timeToProto(d.SnapshotTime),
		AmendsMissionId:             string(d.AmendsMissionID),
		AmendsRevision:              bounded(d.AmendsRevision),
	}
}

// commandToProto writes a command.
func commandToProto(c domain.Command) *pb.MissionCommand {
	return &pb.MissionCommand{
		Mission:   missionToProto(c.Mission),
		ExpiresAt: timeToProto(c.ExpiresAt),
		Revoke:    c.Revoke,
	}
}

// depotToProto writes a depot.
func depotToProto(d domain.Depot) *pb.Depot {
	m := &pb.Depot{
		Id:       string(d.ID),
		Name:     d.Name,
		Position: positionToProto(d.Position),
		Capacity: bounded(d.Capacity),
	}
	if d.ChargingSlots != 0 {
		m.ChargingSlots = proto.Int32(bounded(d.ChargingSlots))
	}
	return m
}

// warehouseToProto writes a warehouse.
func warehouseToProto(w domain.Warehouse) *pb.Warehouse {
	return &pb.Warehouse{
		Id:                     string(w.ID),
		Name:                   w.Name,
		Position:               positionToProto(w.Position),
		AuthorizedProductTypes: w.ProductTypes,
		IsColdStorageCapable:   w.ColdStorage,
	}
}

// bounded is the int32 nearest to n.
func bounded(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

// timeToProto leaves out an unknown time.
func timeToProto(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// timeFromProto cuts a valid time to the store's resolution.
func timeFromProto(t *timestamppb.Timestamp) time.Time {
	return t.AsTime().Truncate(time.Microsecond)
}

func texts[T ~string](ids []T) []string {
	return each(ids, func(id T) string { return string(id) })
}

// each converts a list, keeping an absent one absent.
func each[T, U any](in []T, convert func(T) U) []U {
	if len(in) == 0 {
		return nil
	}
	out := make([]U, 0, len(in))
	for _, v := range in {
		out = append(out, convert(v))
	}
	return out
}
