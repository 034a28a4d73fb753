package wire

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/dronefleet/dronefleet/domain"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// Kinds of messages, as errors name them.
const (
	kindTelemetry = "telemetry"
	kindOrder     = "order"
	kindDecision  = "decision"
	kindCommand   = "command"
	kindSnapshot  = "snapshot"
)

// maxFlightSeconds is longer than any drone flies.
const maxFlightSeconds = 1e9

// DecodeTelemetry reads a DroneTelemetry message. The status is empty if the drone left
// it unspecified.
func DecodeTelemetry(data []byte, attrs map[string]string) (domain.Telemetry, error) {
	var m pb.DroneTelemetry
	problems, err := unmarshal(kindTelemetry, data, attrs, &m)
	if err != nil {
		return domain.Telemetry{}, err
	}
	c := newChecker(problems)
	c.id("drone_id", m.GetDroneId())
	c.within("battery_percentage", m.GetBatteryPercentage(), 0, 100)
	c.notNegative("speed_kmh", m.GetSpeedKmh())
	droneStatuses.check(c, "status", m.GetStatus())
	c.optionalID("current_mission_id", m.GetCurrentMissionId())
	t := domain.Telemetry{
		DroneID:   domain.DroneID(m.GetDroneId()),
		Timestamp: c.requiredTime("timestamp", m.GetTimestamp()),
		Position:  c.position("position", m.GetPosition()),
		Battery:   m.GetBatteryPercentage(),
		SpeedKmh:  m.GetSpeedKmh(),
		Status:    droneStatuses.fromProto(m.GetStatus()),
		MissionID: domain.MissionID(m.GetCurrentMissionId()),
	}
	if m.CompletedStops != nil {
		completed := int(m.GetCompletedStops())
		t.CompletedStops = &completed
		if completed < 0 || completed > MaxWaypointsPerDecision {
			c.add("completed_stops", "is %d; give 0 to the number of stops of the route, at most %d", completed, MaxWaypointsPerDecision)
		}
	}
	t.MissionRevision, t.SupportsAmendments = c.revision("mission_revision", m.GetMissionRevision()), m.GetSupportsAmendments()
	t.SupportsStandby = m.GetSupportsStandby()
	t.BatteryHealth, t.FlightSeconds, t.SerialNumber = m.BatteryHealthPercent, m.FlightSeconds, m.GetSerialNumber()
	if t.BatteryHealth != nil {
		c.within("battery_health_percent", *t.BatteryHealth, 0, 100)
	}
	if t.FlightSeconds != nil {
		c.within("flight_seconds", float64(*t.FlightSeconds), 0, maxFlightSeconds)
	}
	if len(t.SerialNumber) > domain.MaxIDBytes {
		c.add("serial_number", "has %d bytes; give at most %d", len(t.SerialNumber), domain.MaxIDBytes)
	}
	if err := c.err(kindTelemetry); err != nil {
		return domain.Telemetry{}, err
	}
	return t, nil
}

// DecodeOrder reads an Order message as a request. A cancellation needs only the id and the
// order's requester, if it has one. Its other content is kept if valid and dropped if not:
// a cancellation must not fail for a field that it does not need.
func DecodeOrder(data []byte, attrs map[string]string) (domain.OrderRequest, error) {
	var m pb.Order
	problems, err := unmarshal(kindOrder, data, attrs, &m)
	if err != nil {
		return domain.OrderRequest{}, err
	}
	identity := newChecker(nil)
	identity.id("id", m.GetId())
	cancel := m.GetStatus() == pb.OrderStatus_ORDER_STATUS_CANCELLED

	c := newChecker(append(identity.problems, problems...))
	orderStatuses.check(c, "status", m.GetStatus())
	r := orderRequest(c, &m)
	r.Cancel = cancel
	switch err := c.err(kindOrder); {
	case err == nil:
		return r, nil
	case cancel && len(identity.problems) == 0:
		return domain.OrderRequest{
			ID:           r.ID,
			Cancel:       true,
			OrderContent: domain.OrderContent{Priority: domain.PriorityStandard, RequesterID: r.RequesterID},
		}, nil
	default:
		return domain.OrderRequest{}, err
	}
}

// OrderNames are the id and the requester of an order message that may be wrong otherwise, as far as
// they can be read. The requester is the sender if a trusted publisher names one.
func OrderNames(data []byte, attrs map[string]string) (id domain.OrderID, requester string) {
	var m pb.Order
	if _, err := unmarshal(kindOrder, data, attrs, &m); err != nil { // perhaps JSON with a value of another kind
		var names struct {
			ID, RequesterID string
			RequesterID2    string `json:"requester_id"`
		}
		_ = json.Unmarshal(data, &names) // what could be decoded is
		m.Id, m.RequesterId = names.ID, cmp.Or(names.RequesterID, names.RequesterID2)
	}
	requester = cmp.Or(attrs[AttrSender], m.GetRequesterId())
	if domain.CheckID(m.GetId()) == nil {
		id = domain.OrderID(m.GetId())
	}
	if len(requester) > maxTextBytes || domain.CheckForm(requester) != nil || !utf8.ValidString(requester) {
		requester = ""
	}
	return id, requester
}

func orderRequest(c *checker, m *pb.Order) domain.OrderRequest {
	priorities.check(c, "priority", m.GetPriority())
	if m.GetProductType() == "" && m.GetPickupLocation() == nil {
		c.add("product_type", "is missing; give a product that a warehouse stocks, or a pickup_location")
	}
	c.text("product_type", m.GetProductType())
	c.text("requester_id", m.GetRequesterId())
	c.weight("package_weight_kg", m.GetPackageWeightKg())
	return domain.OrderRequest{
		ID: domain.OrderID(m.GetId()),
		OrderContent: domain.OrderContent{
			Priority:    orStandard(priorities.fromProto(m.GetPriority())),
			ProductType: m.GetProductType(),
			Pickup:      c.optionalPosition("pickup_location", m.GetPickupLocation()),
			Delivery:    c.position("delivery_location", m.GetDeliveryLocation()),
			WeightKg:    m.GetPackageWeightKg(),
			ColdChain:   m.GetRequiresColdChain(),
			RequesterID: m.GetRequesterId(),
		},
		CreatedAt: c.time("created_at", m.GetCreatedAt()),
		Deadline:  c.time("deadline", m.GetDeadline()),
	}
}

// DecodeDecision reads a MissionAssignment message. The id and the snapshot time may be
// absent; the caller fills them from the Pub/Sub message. The payload hash covers the
// content and is the same for both forms.
func DecodeDecision(data []byte, attrs map[string]string) (domain.Decision, error) {
	var m pb.MissionAssignment
	problems, err := unmarshal(kindDecision, data, attrs, &m)
	if err != nil {
		return domain.Decision{}, err
	}
	c := newChecker(problems)
	c.id("drone_id", m.GetDroneId())
	c.optionalID("decision_id", m.GetDecisionId())
	c.optionalID("cycle_id", m.GetCycleId())
	c.fence("fence", m.GetFence())
	c.optionalID("depot_id", m.GetDepotId())
	c.optionalID("amends_mission_id", m.GetAmendsMissionId())
	c.notNegative("estimated_battery_consumption", m.GetEstimatedBatteryConsumption())
	c.notNegative("estimated_duration_minutes", m.GetEstimatedDurationMinutes())
	d := domain.Decision{
		ID:                          domain.DecisionID(m.GetDecisionId()),
		CycleID:                     domain.CycleID(m.GetCycleId()),
		Fence:                       m.GetFence(),
		DepotID:                     domain.DepotID(m.GetDepotId()),
		SnapshotTime:                c.time("snapshot_time", m.GetSnapshotTime()),
		DroneID:                     domain.DroneID(m.GetDroneId()),
		OrderIDs:                    c.orderIDs("order_ids", m.GetOrderIds(), leastOrders(m.GetRoute())),
		Route:                       c.route("route", m.GetRoute()),
		EstimatedBatteryConsumption: m.GetEstimatedBatteryConsumption(),
		EstimatedDurationMinutes:    m.GetEstimatedDurationMinutes(),
		AmendsMissionID:             domain.MissionID(m.GetAmendsMissionId()),
		AmendsRevision:              c.revision("amends_revision", m.GetAmendsRevision()),
	}
	switch {
	case d.Amends() && d.AmendsRevision == 0:
		c.add("amends_revision", "is missing; give the revision of mission %q that the change was planned on", d.AmendsMissionID)
	case !d.Amends() && d.AmendsRevision != 0:
		c.add("amends_mission_id", "is missing; give the mission whose revision %d the decision amends", d.AmendsRevision)
	}
	if err := c.err(kindDecision); err != nil {
		return domain.Decision{}, err
	}
	d.PayloadHash = DecisionHash(d)
	return d, nil
}

// leastOrders is the fewest orders that a decision may have: none if its drone charges or
// waits.
func leastOrders(route []*pb.Waypoint) int {
	for _, w := range route {
		if k := w.GetType(); k == pb.WaypointType_WAYPOINT_TYPE_CHARGE || k == pb.WaypointType_WAYPOINT_TYPE_WAIT {
			return 0
		}
	}
	return 1
}

// DecisionHash identifies the content of a decision: two messages with the same hash
// decide the same. It ignores PayloadHash, and DepotID, which follows from the cycle.
// Versions without amendments, standby missions or DepotID compute the same hash for
// decisions without them.
func DecisionHash(d domain.Decision) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %d %q %q %v %v\n", d.ID, d.CycleID, d.Fence, microseconds(d.SnapshotTime),
		d.DroneID, d.OrderIDs, d.EstimatedBatteryConsumption, d.EstimatedDurationMinutes)
	for _, w := range d.Route {
		fmt.Fprintf(h, "%q %v %v %q %q %d\n", w.Type, w.Position.Lat, w.Position.Lon, w.OrderID, w.WarehouseID, microseconds(w.ETA))
		if w.Duty() {
			fmt.Fprintf(h, "until %v %d\n", w.ChargeToPercent, microseconds(w.WaitUntil))
		}
	}
	if d.Amends() {
		fmt.Fprintf(h, "amends %q %d\n", d.AmendsMissionID, d.AmendsRevision)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func microseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// DecodeCommand reads a MissionCommand message, as a drone does. Its mission
// carries the fields of the wire's Mission only.
func DecodeCommand(data []byte, attrs map[string]string) (domain.Command, error) {
	var m pb.MissionCommand
	problems, err := unmarshal(kindCommand, data, attrs, &m)
	if err != nil {
		return domain.Command{}, err
	}
	c := newChecker(problems)
	if m.GetMission() == nil {
		c.add("mission", "is missing; give the mission to fly or to give up")
		return domain.Command{}, c.err(kindCommand)
	}
	command := domain.Command{
		Mission:   mission(c, "mission", m.GetMission()),
		ExpiresAt: c.time("expires_at", m.GetExpiresAt()),
		Revoke:    m.GetRevoke(),
	}
	if command.ExpiresAt.IsZero() && !command.Revoke {
		c.add("expires_at", "is missing; give a time")
	}
	if err := c.err(kindCommand); err != nil {
		return domain.Command{}, err
	}
	return command, nil
}

func mission(c *checker, path string, m *pb.Mission) domain.Mission {
	c.id(join(path, "id"), m.GetId())
	c.id(join(path, "drone_id"), m.GetDroneId())
	c.missionStatus(join(path, "status"), m.GetStatus())
	c.notNegative(join(path, "estimated_battery_consumption"), m.GetEstimatedBatteryConsumption())
	c.notNegative(join(path, "estimated_duration_minutes"), m.GetEstimatedDurationMinutes())
	return domain.Mission{
		ID:                          domain.MissionID(m.GetId()),
		DroneID:                     domain.DroneID(m.GetDroneId()),
		OrderIDs:                    c.orderIDs(join(path, "order_ids"), m.GetOrderIds(), 0),
		Route:                       c.route(join(path, "route"), m.GetRoute()),
		Status:                      domain.MissionStatus(m.GetStatus()),
		StartTime:                   c.time(join(path, "start_time"), m.GetStartTime()),
		EndTime:                     c.time(join(path, "end_time"), m.GetEndTime()),
		RouteRevision:               c.revision(join(path, "revision"), m.GetRevision()),
		EstimatedBatteryConsumption: m.GetEstimatedBatteryConsumption(),
		EstimatedDurationMinutes:    m.GetEstimatedDurationMinutes(),
	}
}

// missionStatus accepts the statuses of a mission, which are text on the wire.
func (c *checker) missionStatus(field, status string) {
	for _, s := range domain.MissionStatuses {
		if status == string(s) {
			return
		}
	}
	c.add(field, "is %.64q; give %s, %s or %s", status, domain.MissionActive, domain.MissionCompleted, domain.MissionFailed)
}
