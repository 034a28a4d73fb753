package wire

import (
	"google.golang.org/protobuf/proto"

	"github.com/dronefleet/dronefleet/domain"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// snapshotToProto writes what a solve cycle sees.
func snapshotToProto(s domain.Snapshot) *pb.OptimizationSnapshot {
	return &pb.OptimizationSnapshot{
		SessionId:  string(s.CycleID),
		Timestamp:  timeToProto(s.Time),
		Depot:      depotToProto(s.Depot),
		Drones:     each(s.Drones, droneToProto),
		Flights:    each(s.Flights, flightToProto),
		Charging:   each(s.Charging, droneToProto),
		Orders:     each(s.Orders, orderToProto),
		Warehouses: each(s.Warehouses, warehouseToProto),
		ReadTime:   timeToProto(s.ReadTime),
		Fence:      s.Fence,
	}
}

// MarshalSnapshot writes a snapshot as JSON, in the form DecodeSnapshot reads.
func MarshalSnapshot(s domain.Snapshot) ([]byte, error) {
	return marshalJSON(snapshotToProto(s))
}

// DecodeSnapshot reads a snapshot file of either format and any size: it comes from a
// person, not from a topic. With a *ValidationError it also returns the snapshot, bad values
// included, for callers that can use the rest.
func DecodeSnapshot(data []byte) (domain.Snapshot, error) {
	var (
		m        pb.OptimizationSnapshot
		problems []Problem
		err      error
	)
	if sniff(data) == JSON {
		problems, err = unmarshalJSON(kindSnapshot, data, &m)
	} else if e := proto.Unmarshal(data, &m); e != nil {
		err = neither(&m, kindSnapshot)
	}
	if err != nil {
		return domain.Snapshot{}, err
	}
	return snapshot(problems, &m)
}

func snapshot(problems []Problem, m *pb.OptimizationSnapshot) (domain.Snapshot, error) {
	c := newChecker(problems)
	c.optionalID("session_id", m.GetSessionId())
	c.fence("fence", m.GetFence())
	s := domain.Snapshot{
		CycleID:    domain.CycleID(m.GetSessionId()),
		Fence:      m.GetFence(),
		Time:       c.time("timestamp", m.GetTimestamp()),
		ReadTime:   c.time("read_time", m.GetReadTime()),
		Depot:      depot(c, "depot", m.GetDepot()),
		Drones:     eachAt(c, "drones", m.GetDrones(), drone),
		Flights:    eachAt(c, "flights", m.GetFlights(), flight),
		Charging:   eachAt(c, "charging", m.GetCharging(), drone),
		Orders:     eachAt(c, "orders", m.GetOrders(), order),
		Warehouses: eachAt(c, "warehouses", m.GetWarehouses(), warehouse),
	}
	return s, c.err(kindSnapshot)
}

func depot(c *checker, path string, m *pb.Depot) domain.Depot {
	if m == nil {
		c.add(path, "is missing; give id and position")
		return domain.Depot{}
	}
	c.id(join(path, "id"), m.GetId())
	if n := m.ChargingSlots; n != nil && *n <= 0 {
		c.add(join(path, "charging_slots"), "is %d; give 1 or more, or leave it out", *n)
	}
	return domain.Depot{
		ID:            domain.DepotID(m.GetId()),
		Name:          m.GetName(),
		Position:      c.position(join(path, "position"), m.GetPosition()),
		Capacity:      int(m.GetCapacity()),
		ChargingSlots: int(m.GetChargingSlots()),
	}
}

func warehouse(c *checker, path string, m *pb.Warehouse) domain.Warehouse {
	c.id(join(path, "id"), m.GetId())
	return domain.Warehouse{
		ID:           domain.WarehouseID(m.GetId()),
		Name:         m.GetName(),
		Position:     c.position(join(path, "position"), m.GetPosition()),
		ProductTypes: nilIfEmpty(m.GetAuthorizedProductTypes()),
		ColdStorage:  m.GetIsColdStorageCapable(),
	}
}

func drone(c *checker, path string, m *pb.Drone) domain.Drone {
	c.id(join(path, "id"), m.GetId())
	c.within(join(path, "battery_percentage"), m.GetBatteryPercentage(), 0, 100)
	c.notNegative(join(path, "speed_kmh"), m.GetSpeedKmh())
	droneStatuses.check(c, join(path, "status"), m.GetStatus())
	c.optionalID(join(path, "current_mission_id"), m.GetCurrentMissionId())
	c.optionalID(join(path, "home_depot_id"), m.GetHomeDepotId())
	c.notNegative(join(path, "consumption_per_km"), m.GetConsumptionPerKm())
	c.notNegative(join(path, "payload_capacity_kg"), m.GetPayloadCapacityKg())
	c.notNegative(join(path, "consumption_per_km_kg"), m.GetConsumptionPerKmKg())
	if m.ChargeRate != nil {
		c.positive(join(path, "charge_rate"), m.GetChargeRate())
	}
	c.optionalID(join(path, "type_id"), m.GetTypeId())
	d := domain.Drone{
		ID:                   domain.DroneID(m.GetId()),
		Status:               droneStatuses.fromProto(m.GetStatus()),
		Position:             c.position(join(path, "position"), m.GetPosition()),
		Battery:              m.GetBatteryPercentage(),
		SpeedKmh:             m.GetSpeedKmh(),
		LastUpdate:           c.time(join(path, "last_update"), m.GetLastUpdate()),
		CurrentMissionID:     domain.MissionID(m.GetCurrentMissionId()),
		HomeDepotID:          domain.DepotID(m.GetHomeDepotId()),
		ShortName:            m.GetShortName(),
		BatteryCapacityMah:   int(m.GetBatteryCapacityMah()),
		ConsumptionPerKm:     m.GetConsumptionPerKm(),
		ConsumptionPerKmKg:   m.GetConsumptionPerKmKg(),
		MaxFlightTimeMinutes: int(m.GetMaxFlightTimeMinutes()),
		PayloadCapacityKg:    m.GetPayloadCapacityKg(),
		SupportsStandby:      m.GetSupportsStandby(),
		ChargeRate:           m.GetChargeRate(),
		TypeID:               domain.DroneTypeID(m.GetTypeId()),
		SerialNumber:         m.GetSerialNumber(),
		CountsStops:          m.GetCountsStops(),
	}
	least, most := m.ColdBoxMinCelsius, m.ColdBoxMaxCelsius
	switch {
	case least != nil && most != nil && *least < *most:
		d.ColdBox = &domain.ColdBox{MinCelsius: *least, MaxCelsius: *most}
	case least != nil || most != nil:
		c.add(join(path, "cold_box_min_celsius"), "and cold_box_max_celsius are %v to %v; give both, the lower first, or leave both out", m.GetColdBoxMinCelsius(), m.GetColdBoxMaxCelsius())
	}
	return d
}

func flightToProto(f domain.Flight) *pb.Flight {
	return &pb.Flight{
		Drone: droneToProto(f.Drone), Mission: missionToProto(f.Mission), Orders: each(f.Orders, orderToProto),
		ReachedStops: bounded(f.Mission.ReachedStops), ReachedAt: timeToProto(f.ReachedAt), SeenAt: timeToProto(f.Drone.SeenAt),
	}
}

func flight(c *checker, path string, m *pb.Flight) domain.Flight {
	if m.GetDrone() == nil {
		c.add(join(path, "drone"), "is missing; give the drone that flies")
	}
	if m.GetMission() == nil {
		c.add(join(path, "mission"), "is missing; give the mission that the drone flies")
	}
	if m.GetDrone() == nil || m.GetMission() == nil {
		return domain.Flight{}
	}
	f := domain.Flight{
		Drone:     drone(c, join(path, "drone"), m.GetDrone()),
		Mission:   mission(c, join(path, "mission"), m.GetMission()),
		Orders:    eachAt(c, join(path, "orders"), m.GetOrders(), order),
		ReachedAt: c.time(join(path, "reached_at"), m.GetReachedAt()),
	}
	reached := int(m.GetReachedStops())
	c.within(join(path, "reached_stops"), float64(reached), 0, float64(len(f.Mission.Route)))
	f.Mission.ReachedStops = max(0, min(reached, len(f.Mission.Route)))
	f.Drone.SeenAt = c.time(join(path, "seen_at"), m.GetSeenAt())
	if f.Drone.SeenAt.IsZero() {
		c.add(join(path, "seen_at"), "is missing; give the time of the drone's latest report")
	}
	return f
}

func order(c *checker, path string, m *pb.Order) domain.Order {
	inner := newChecker(nil)
	inner.id("id", m.GetId())
	orderStatuses.check(inner, "status", m.GetStatus())
	inner.optionalID("assigned_drone_id", m.GetAssignedDroneId())
	inner.optionalID("assigned_mission_id", m.GetAssignedMissionId())
	inner.optionalID("pinned_drone_id", m.GetPinnedDroneId())
	for i, id := range m.GetForbiddenDroneIds() {
		inner.id(at("forbidden_drone_ids", i), id)
	}
	r := orderRequest(inner, m)
	for _, p := range inner.problems {
		c.add(join(path, p.Field), "%s", p.Complaint)
	}
	return domain.Order{
		ID:                r.ID,
		Status:            orderStatuses.fromProto(m.GetStatus()),
		OrderContent:      r.OrderContent,
		CreatedAt:         r.CreatedAt,
		Deadline:          r.Deadline,
		AssignedDroneID:   domain.DroneID(m.GetAssignedDroneId()),
		AssignedMissionID: domain.MissionID(m.GetAssignedMissionId()),
		PinnedDroneID:     domain.DroneID(m.GetPinnedDroneId()),
		ForbiddenDroneIDs: each(m.GetForbiddenDroneIds(), func(id string) domain.DroneID { return domain.DroneID(id) }),
	}
}

// eachAt converts the entries of a list, each knowing its path.
func eachAt[T, U any](c *checker, path string, in []T, convert func(*checker, string, T) U) []U {
	i := -1
	return each(in, func(v T) U { i++; return convert(c, at(path, i), v) })
}
