package firestoretx

import (
	"maps"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// Collections and documents of the fleet.
const (
	Drones     = "drones"
	Orders     = "orders"
	Missions   = "missions"
	Decisions  = "decisions"
	Cycles     = "cycles"
	Events     = "events"
	Depots     = "depots"
	Warehouses = "warehouses"
	Control    = "control"
	Discards   = "discards"
	Replays    = "replays"
	LockBreaks = "lockBreaks"
	AlertAcks  = "alertAcks"
	Learned    = "learned"

	PlaceChanges = "placeChanges"
	DroneTypes   = "droneTypes"
	Maintenance  = "maintenance"
	Refusals     = "refusals"
	Keys         = "keys"
	Members      = "members"

	Webhooks          = "webhooks"
	WebhookSecrets    = "webhookSecrets"
	WebhookDeliveries = "webhookDeliveries"

	// expireAt is the field TTL policies delete by.
	expireAt = "expireAt"
	// keyLastUsed is when an API key was used.
	keyLastUsed = "lastUsedAt"
	// shard spreads the times of events and orders over indexes, see Config.Sharded.
	shard = "shard"
	// beatAt and shareSince of a member are by the server's clock.
	beatAt     = "beatAt"
	shareSince = "shareSince"
	// missionRevision on a drone repeats its mission's revision, so that the
	// drone's version changes whenever its mission does.
	missionRevision = "missionRevision"
	// bindingChanges on a drone counts the commits that changed its mission or an order of it; see
	// FlightCache.
	bindingChanges = "bindingChanges"
	// homeOfMission is the home that a mission's drone had when the mission began.
	homeOfMission = "homeDepotId"
)

var failedMissionCodec = codec[domain.FailedMission]{
	reference("missionId", func(f *domain.FailedMission) *domain.MissionID { return &f.ID }),
	instant("failedAt", func(f *domain.FailedMission) *time.Time { return &f.FailedAt }),
}

var sightingCodec = codec[domain.Sighting]{
	index("stop", func(s *domain.Sighting) *int { return &s.Stop }),
	instant("at", func(s *domain.Sighting) *time.Time { return &s.At }),
	flag("claimed", func(s *domain.Sighting) *bool { return &s.Claimed }),
}

var trackCodec = codec[domain.Track]{
	point("position", func(t *domain.Track) *domain.Position { return &t.Position }),
	instant("at", func(t *domain.Track) *time.Time { return &t.At }),
	text("missionId", func(t *domain.Track) *domain.MissionID { return &t.MissionID }),
	index("stops", func(t *domain.Track) *int { return &t.Stops }),
}

var motionCodec = codec[domain.Motion]{
	instant("at", func(m *domain.Motion) *time.Time { return &m.At }),
	real("north", func(m *domain.Motion) *float64 { return &m.North }),
	real("east", func(m *domain.Motion) *float64 { return &m.East }),
	real("errorMetres", func(m *domain.Motion) *float64 { return &m.ErrorMetres }),
	millis("lastsMillis", func(m *domain.Motion) *time.Duration { return &m.Lasts }),
}

var droneCodec = append(codec[domain.Drone]{
	key(func(d *domain.Drone) *domain.DroneID { return &d.ID }),
	text("status", func(d *domain.Drone) *domain.DroneStatus { return &d.Status }),
	text("reportedStatus", func(d *domain.Drone) *domain.DroneStatus { return &d.ReportedStatus }),
	whereabouts(),
	real("batteryPercentage", func(d *domain.Drone) *float64 { return &d.Battery }),
	real("speedKmh", func(d *domain.Drone) *float64 { return &d.SpeedKmh }),
	instant("lastUpdate", func(d *domain.Drone) *time.Time { return &d.LastUpdate }),
	instant("seenAt", func(d *domain.Drone) *time.Time { return &d.SeenAt }),
	motion(),
	reference("currentMissionId", func(d *domain.Drone) *domain.MissionID { return &d.CurrentMissionID }),
	mark("missionAcked", func(d *domain.Drone) *bool { return &d.MissionAcked }),
	mark("missionMoved", func(d *domain.Drone) *bool { return &d.MissionMoved }),
	counter("namedRevision", func(d *domain.Drone) *int { return &d.NamedRevision }),
	mark("supportsAmendments", func(d *domain.Drone) *bool { return &d.SupportsAmendments }),
	mark("supportsStandby", func(d *domain.Drone) *bool { return &d.SupportsStandby }),
	instant("freeAfter", func(d *domain.Drone) *time.Time { return &d.FreeAfter }),
	instant("idleSince", func(d *domain.Drone) *time.Time { return &d.IdleSince }),
	instant("faultSince", func(d *domain.Drone) *time.Time { return &d.FaultSince }),
	mark("homebound", func(d *domain.Drone) *bool { return &d.Homebound }),
	instant("homeboundSince", func(d *domain.Drone) *time.Time { return &d.HomeboundSince }),
	instant("parkedSince", func(d *domain.Drone) *time.Time { return &d.ParkedSince }),
	mark("emergencyLatched", func(d *domain.Drone) *bool { return &d.EmergencyLatched }),
	mark("grounded", func(d *domain.Drone) *bool { return &d.Grounded }),
	text("groundedReason", func(d *domain.Drone) *string { return &d.GroundedReason }),
	reference("ghostMissionId", func(d *domain.Drone) *domain.MissionID { return &d.GhostMissionID }),
	instant("ghostRevokedAt", func(d *domain.Drone) *time.Time { return &d.GhostRevokedAt }),
	structs("failedMissions", failedMissionCodec, func(d *domain.Drone) *[]domain.FailedMission { return &d.FailedMissions }),
	mark("unregistered", func(d *domain.Drone) *bool { return &d.Unregistered }),
	counter("flightSeconds", func(d *domain.Drone) *int64 { return &d.FlightSeconds }),
	counter("landings", func(d *domain.Drone) *int { return &d.Landings }),
	optionalNumber("batteryHealth", func(d *domain.Drone) **float64 { return &d.BatteryHealth }),
	text("reportedSerial", func(d *domain.Drone) *string { return &d.ReportedSerial }),
	optional("track", trackCodec, func(d *domain.Drone) **domain.Track { return &d.Track }),
	text("implausible", func(d *domain.Drone) *string { return &d.Implausible }),
	instant("implausibleAt", func(d *domain.Drone) *time.Time { return &d.ImplausibleAt }),
	instant("linkLostAt", func(d *domain.Drone) *time.Time { return &d.LinkLostAt }),
	instant("linkChangedAt", func(d *domain.Drone) *time.Time { return &d.LinkChangedAt }),
	mark("countsStops", func(d *domain.Drone) *bool { return &d.CountsStops }),
	whole("revision", func(d *domain.Drone) *int64 { return &d.Revision }),
}, slices.Concat(registryCodec, dueFields(func(d *domain.Drone) *time.Time { return &d.DueAt }, func(d *domain.Drone) domain.DepotID { return d.HomeDepotID }))...)

// whereabouts is a drone's position. A drone that has never reported has none (F-REG-19).
func whereabouts() field[domain.Drone] {
	f := point("position", func(d *domain.Drone) *domain.Position { return &d.Position })
	stored := f.get
	f.get = func(d *domain.Drone) any {
		if d.LastUpdate.IsZero() && d.Position == (domain.Position{}) {
			return nil
		}
		return stored(d)
	}
	return f
}

// motion is absent where every report is written.
func motion() field[domain.Drone] {
	f := nested("motion", motionCodec, func(d *domain.Drone) *domain.Motion { return &d.Motion })
	stored := f.get
	f.get = func(d *domain.Drone) any {
		if d.Motion.At.IsZero() {
			return nil
		}
		return stored(d)
	}
	return f
}

// registryCodec are the fields of a drone that operators set; see droneTypeCodec.
var registryCodec = codec[domain.Drone]{
	text("homeDepotId", func(d *domain.Drone) *domain.DepotID { return &d.HomeDepotID }),
	text("shortName", func(d *domain.Drone) *string { return &d.ShortName }),
	whole("batteryCapacityMah", func(d *domain.Drone) *int { return &d.BatteryCapacityMah }),
	real("consumptionPerKm", func(d *domain.Drone) *float64 { return &d.ConsumptionPerKm }),
	real("consumptionPerKmKg", func(d *domain.Drone) *float64 { return &d.ConsumptionPerKmKg }),
	whole("maxFlightTimeMinutes", func(d *domain.Drone) *int { return &d.MaxFlightTimeMinutes }),
	real("payloadCapacityKg", func(d *domain.Drone) *float64 { return &d.PayloadCapacityKg }),
	known("chargeRate", func(d *domain.Drone) *float64 { return &d.ChargeRate }),
	instant("registeredAt", func(d *domain.Drone) *time.Time { return &d.RegisteredAt }),
	text("registeredBy", func(d *domain.Drone) *string { return &d.RegisteredBy }),
	instant("retiredAt", func(d *domain.Drone) *time.Time { return &d.RetiredAt }),
	text("typeId", func(d *domain.Drone) *domain.DroneTypeID { return &d.TypeID }),
	text("registrationMark", func(d *domain.Drone) *string { return &d.RegistrationMark }),
	text("serialNumber", func(d *domain.Drone) *string { return &d.SerialNumber }),
	text("remoteId", func(d *domain.Drone) *string { return &d.RemoteID }),
	optional("coldBox", coldBoxCodec, func(d *domain.Drone) **domain.ColdBox { return &d.ColdBox }),
	structs("due", dueCodec, func(d *domain.Drone) *[]domain.DueItem { return &d.Due }),
	structs("maintained", maintainedCodec, func(d *domain.Drone) *[]domain.Maintenance { return &d.Maintained }),
	known("minBatteryHealth", func(d *domain.Drone) *float64 { return &d.MinBatteryHealth }),
	texts("ownProperties", func(d *domain.Drone) *[]string { return &d.OwnProperties }),
}

var droneTypeCodec = codec[domain.DroneType]{
	key(func(t *domain.DroneType) *domain.DroneTypeID { return &t.ID }),
	known("payloadCapacityKg", func(t *domain.DroneType) *float64 { return &t.PayloadCapacityKg }),
	known("consumptionPerKm", func(t *domain.DroneType) *float64 { return &t.ConsumptionPerKm }),
	known("consumptionPerKmKg", func(t *domain.DroneType) *float64 { return &t.ConsumptionPerKmKg }),
	counter("maxFlightTimeMinutes", func(t *domain.DroneType) *int { return &t.MaxFlightTimeMinutes }),
	known("chargeRate", func(t *domain.DroneType) *float64 { return &t.ChargeRate }),
	counter("batteryCapacityMah", func(t *domain.DroneType) *int { return &t.BatteryCapacityMah }),
	optional("coldBox", coldBoxCodec, func(t *domain.DroneType) **domain.ColdBox { return &t.ColdBox }),
	structs("due", dueCodec, func(t *domain.DroneType) *[]domain.DueItem { return &t.Due }),
	known("minBatteryHealth", func(t *domain.DroneType) *float64 { return &t.MinBatteryHealth }),
}

var coldBoxCodec = codec[domain.ColdBox]{
	real("minCelsius", func(b *domain.ColdBox) *float64 { return &b.MinCelsius }),
	real("maxCelsius", func(b *domain.ColdBox) *float64 { return &b.MaxCelsius }),
}

var limitsCodec = codec[domain.DueLimits]{
	instant("at", func(l *domain.DueLimits) *time.Time { return &l.At }),
	known("flightHours", func(l *domain.DueLimits) *float64 { return &l.FlightHours }),
	counter("landings", func(l *domain.DueLimits) *int { return &l.Landings }),
}

var dueCodec = codec[domain.DueItem]{
	text("item", func(i *domain.DueItem) *string { return &i.Item }),
	instant("at", func(i *domain.DueItem) *time.Time { return &i.At }),
	known("flightHours", func(i *domain.DueItem) *float64 { return &i.FlightHours }),
	counter("landings", func(i *domain.DueItem) *int { return &i.Landings }),
	counter("everyDays", func(i *domain.DueItem) *int { return &i.EveryDays }),
	known("everyFlightHours", func(i *domain.DueItem) *float64 { return &i.EveryFlightHours }),
	counter("everyLandings", func(i *domain.DueItem) *int { return &i.EveryLandings }),
}

var maintainedCodec = codec[domain.Maintenance]{
	text("item", func(m *domain.Maintenance) *string { return &m.Item }),
	nested("done", limitsCodec, func(m *domain.Maintenance) *domain.DueLimits { return &m.Done }),
	nested("met", limitsCodec, func(m *domain.Maintenance) *domain.DueLimits { return &m.Met }),
}

var maintenanceCodec = codec[domain.MaintenanceRecord]{
	text("droneId", func(m *domain.MaintenanceRecord) *domain.DroneID { return &m.DroneID }),
	text("item", func(m *domain.MaintenanceRecord) *string { return &m.Item }),
	whole("flightSeconds", func(m *domain.MaintenanceRecord) *int64 { return &m.FlightSeconds }),
	whole("landings", func(m *domain.MaintenanceRecord) *int { return &m.Landings }),
	optionalNumber("batteryHealth", func(m *domain.MaintenanceRecord) **float64 { return &m.BatteryHealth }),
	instant("at", func(m *domain.MaintenanceRecord) *time.Time { return &m.At }),
	text("by", func(m *domain.MaintenanceRecord) *string { return &m.By }),
	text("why", func(m *domain.MaintenanceRecord) *string { return &m.Why }),
}

var orderCodec = append(codec[domain.Order]{
	key(func(o *domain.Order) *domain.OrderID { return &o.ID }),
	text("status", func(o *domain.Order) *domain.OrderStatus { return &o.Status }),
	value("priority", "STANDARD, HIGH or CRITICAL", func(o *domain.Order) *domain.Priority { return &o.Priority }, func(p domain.Priority) any {
		if p == 0 {
			return nil
		}
		return p.String()
	}, func(found any) (domain.Priority, bool) {
		name, _ := found.(string)
		return domain.ParsePriority(name)
	}),
	text("productType", func(o *domain.Order) *string { return &o.ProductType }),
	value("pickupLocation", geographicalPoint, func(o *domain.Order) **domain.Position { return &o.Pickup }, func(p *domain.Position) any {
		if p == nil {
			return nil
		}
		return geoPoint(*p)
	}, func(found any) (*domain.Position, bool) {
		p, ok := asPosition(found)
		return &p, ok
	}),
	point("deliveryLocation", func(o *domain.Order) *domain.Position { return &o.Delivery }),
	real("packageWeightKg", func(o *domain.Order) *float64 { return &o.WeightKg }),
	flag("requiresColdChain", func(o *domain.Order) *bool { return &o.ColdChain }),
	text("requesterId", func(o *domain.Order) *string { return &o.RequesterID }),
	instant("createdAt", func(o *domain.Order) *time.Time { return &o.CreatedAt }),
	instant("deadline", func(o *domain.Order) *time.Time { return &o.Deadline }),
	instant("pendingSince", func(o *domain.Order) *time.Time { return &o.PendingSince }),
	instant("deliveredAt", func(o *domain.Order) *time.Time { return &o.DeliveredAt }),
	whole("attempts", func(o *domain.Order) *int { return &o.Attempts }),
	flag("held", func(o *domain.Order) *bool { return &o.Held }),
	text("heldReason", func(o *domain.Order) *string { return &o.HeldReason }),
	flag("late", func(o *domain.Order) *bool { return &o.Late }),
	text("warning", func(o *domain.Order) *string { return &o.Warning }),
	text("pinnedDroneId", func(o *domain.Order) *domain.DroneID { return &o.PinnedDroneID }),
	texts("forbiddenDroneIds", func(o *domain.Order) *[]domain.DroneID { return &o.ForbiddenDroneIDs }),
	text("planningDepotId", func(o *domain.Order) *domain.DepotID { return &o.PlanningDepotID }),
	instant("planningSince", func(o *domain.Order) *time.Time { return &o.PlanningSince }),
	texts("handedOverBy", func(o *domain.Order) *[]domain.DepotID { return &o.HandedOverBy }),
	reference("assignedDroneId", func(o *domain.Order) *domain.DroneID { return &o.AssignedDroneID }),
	reference("assignedMissionId", func(o *domain.Order) *domain.MissionID { return &o.AssignedMissionID }),
	flag("releasing", func(o *domain.Order) *bool { return &o.Releasing }),
	text("contentHash", func(o *domain.Order) *string { return &o.ContentHash }),
	instant("contentPublishedAt", func(o *domain.Order) *time.Time { return &o.ContentPublishedAt }),
	whole("revision", func(o *domain.Order) *int64 { return &o.Revision }),
	{
		name: shard,
		get:  func(o *domain.Order) any { return shardOf(string(o.ID)) },
		set:  func(*domain.Order, any) error { return nil },
	},
}, dueFields(func(o *domain.Order) *time.Time { return &o.DueAt }, func(o *domain.Order) domain.DepotID { return o.PlanningDepotID })...)

var waypointCodec = codec[domain.Waypoint]{
	text("type", func(w *domain.Waypoint) *domain.WaypointType { return &w.Type }),
	point("position", func(w *domain.Waypoint) *domain.Position { return &w.Position }),
	text("relatedOrderId", func(w *domain.Waypoint) *domain.OrderID { return &w.OrderID }),
	text("relatedWarehouseId", func(w *domain.Waypoint) *domain.WarehouseID { return &w.WarehouseID }),
	instant("eta", func(w *domain.Waypoint) *time.Time { return &w.ETA }),
	known("chargeToPercent", func(w *domain.Waypoint) *float64 { return &w.ChargeToPercent }),
	instant("waitUntil", func(w *domain.Waypoint) *time.Time { return &w.WaitUntil }),
}

var amendmentCodec = codec[domain.Amendment]{
	whole("revision", func(a *domain.Amendment) *int { return &a.Revision }),
	structs("route", waypointCodec, func(a *domain.Amendment) *[]domain.Waypoint { return &a.Route }),
	indexes("droppedStops", func(a *domain.Amendment) *[]int { return &a.DroppedStops }),
	references("addedOrderIds", func(a *domain.Amendment) *[]domain.OrderID { return &a.AddedIDs }),
	references("releasedOrderIds", func(a *domain.Amendment) *[]domain.OrderID { return &a.ReleasedIDs }),
	real("estimatedBatteryConsumption", func(a *domain.Amendment) *float64 { return &a.EstimatedBatteryConsumption }),
	real("estimatedDurationMinutes", func(a *domain.Amendment) *float64 { return &a.EstimatedDurationMinutes }),
	text("decisionId", func(a *domain.Amendment) *domain.DecisionID { return &a.DecisionID }),
	instant("decidedAt", func(a *domain.Amendment) *time.Time { return &a.DecidedAt }),
}

var earlierRouteCodec = codec[domain.EarlierRoute]{
	whole("revision", func(e *domain.EarlierRoute) *int { return &e.Revision }),
	index("shared", func(e *domain.EarlierRoute) *int { return &e.Shared }),
}

var missionCodec = codec[domain.Mission]{
	key(func(m *domain.Mission) *domain.MissionID { return &m.ID }),
	reference("droneId", func(m *domain.Mission) *domain.DroneID { return &m.DroneID }),
	references("orderIds", func(m *domain.Mission) *[]domain.OrderID { return &m.OrderIDs }),
	structs("route", waypointCodec, func(m *domain.Mission) *[]domain.Waypoint { return &m.Route }),
	text("status", func(m *domain.Mission) *domain.MissionStatus { return &m.Status }),
	instant("startTime", func(m *domain.Mission) *time.Time { return &m.StartTime }),
	instant("endTime", func(m *domain.Mission) *time.Time { return &m.EndTime }),
	real("estimatedBatteryConsumption", func(m *domain.Mission) *float64 { return &m.EstimatedBatteryConsumption }),
	real("estimatedDurationMinutes", func(m *domain.Mission) *float64 { return &m.EstimatedDurationMinutes }),
	text("decisionId", func(m *domain.Mission) *domain.DecisionID { return &m.DecisionID }),
	text("cycleId", func(m *domain.Mission) *domain.CycleID { return &m.CycleID }),
	text("fence", func(m *domain.Mission) *string { return &m.Fence }),
	text("failureReason", func(m *domain.Mission) *domain.FailureReason { return &m.FailureReason }),
	index("reachedStops", func(m *domain.Mission) *int { return &m.ReachedStops }),
	structs("sightings", sightingCodec, func(m *domain.Mission) *[]domain.Sighting { return &m.Sightings }),
	indexes("droppedStops", func(m *domain.Mission) *[]int { return &m.DroppedStops }),
	counter("routeRevision", func(m *domain.Mission) *int { return &m.RouteRevision }),
	optional("amendment", amendmentCodec, func(m *domain.Mission) **domain.Amendment { return &m.Amendment }),
	structs("earlierRoutes", earlierRouteCodec, func(m *domain.Mission) *[]domain.EarlierRoute { return &m.EarlierRoutes }),
	instant("amendedAt", func(m *domain.Mission) *time.Time { return &m.AmendedAt }),
	optional("track", trackCodec, func(m *domain.Mission) **domain.Track { return &m.Track }),
	instant("recalledAt", func(m *domain.Mission) *time.Time { return &m.RecalledAt }),
	text("recallReason", func(m *domain.Mission) *string { return &m.RecallReason }),
	flag("commandPending", func(m *domain.Mission) *bool { return &m.CommandPending }),
	instant("commandExpiresAt", func(m *domain.Mission) *time.Time { return &m.CommandExpiresAt }),
	instant("commandPublishedAt", func(m *domain.Mission) *time.Time { return &m.CommandPublishedAt }),
	flag("revokePending", func(m *domain.Mission) *bool { return &m.RevokePending }),
	instant("revokePublishedAt", func(m *domain.Mission) *time.Time { return &m.RevokePublishedAt }),
	whole("revision", func(m *domain.Mission) *int64 { return &m.Revision }),
}

var ledgerCodec = codec[domain.LedgerEntry]{
	key(func(e *domain.LedgerEntry) *domain.DecisionID { return &e.ID }),
	text("outcome", func(e *domain.LedgerEntry) *domain.Outcome { return &e.Outcome }),
	text("reason", func(e *domain.LedgerEntry) *string { return &e.Reason }),
	text("detail", func(e *domain.LedgerEntry) *string { return &e.Detail }),
	text("warning", func(e *domain.LedgerEntry) *string { return &e.Warning }),
	text("missionId", func(e *domain.LedgerEntry) *domain.MissionID { return &e.MissionID }),
	text("droneId", func(e *domain.LedgerEntry) *domain.DroneID { return &e.DroneID }),
	texts("orderIds", func(e *domain.LedgerEntry) *[]domain.OrderID { return &e.OrderIDs }),
	text("payloadHash", func(e *domain.LedgerEntry) *string { return &e.PayloadHash }),
	text("cycleId", func(e *domain.LedgerEntry) *domain.CycleID { return &e.CycleID }),
	text("fence", func(e *domain.LedgerEntry) *string { return &e.Fence }),
	text("depotId", func(e *domain.LedgerEntry) *domain.DepotID { return &e.DepotID }),
	instant("snapshotTime", func(e *domain.LedgerEntry) *time.Time { return &e.SnapshotTime }),
	text("messageId", func(e *domain.LedgerEntry) *string { return &e.MessageID }),
	instant("publishedAt", func(e *domain.LedgerEntry) *time.Time { return &e.PublishedAt }),
	instant("receivedAt", func(e *domain.LedgerEntry) *time.Time { return &e.ReceivedAt }),
	instant("appliedAt", func(e *domain.LedgerEntry) *time.Time { return &e.AppliedAt }),
	text("amendsMissionId", func(e *domain.LedgerEntry) *domain.MissionID { return &e.AmendsMissionID }),
	counter("amendsRevision", func(e *domain.LedgerEntry) *int { return &e.AmendsRevision }),
	counter("revision", func(e *domain.LedgerEntry) *int { return &e.Revision }),
	texts("addedOrderIds", func(e *domain.LedgerEntry) *[]domain.OrderID { return &e.AddedIDs }),
	texts("releasedOrderIds", func(e *domain.LedgerEntry) *[]domain.OrderID { return &e.ReleasedIDs }),
}

var eventCodec = codec[domain.Event]{
	text("entity", func(e *domain.Event) *domain.EntityKind { return &e.Entity }),
	text("id", func(e *domain.Event) *string { return &e.ID }),
	whole("revision", func(e *domain.Event) *int64 { return &e.Revision }),
	text("from", func(e *domain.Event) *string { return &e.From }),
	text("to", func(e *domain.Event) *string { return &e.To }),
	text("cause", func(e *domain.Event) *domain.Cause { return &e.Cause }),
	text("reason", func(e *domain.Event) *string { return &e.Reason }),
	text("by", func(e *domain.Event) *string { return &e.By }),
	instant("time", func(e *domain.Event) *time.Time { return &e.Time }),
	text("droneId", func(e *domain.Event) *domain.DroneID { return &e.DroneID }),
	text("orderId", func(e *domain.Event) *domain.OrderID { return &e.OrderID }),
	text("missionId", func(e *domain.Event) *domain.MissionID { return &e.MissionID }),
	text("decisionId", func(e *domain.Event) *domain.DecisionID { return &e.DecisionID }),
	text("cycleId", func(e *domain.Event) *domain.CycleID { return &e.CycleID }),
	value("state", "a map", func(e *domain.Event) *map[string]any { return &e.State }, func(state map[string]any) any {
		if state == nil {
			return nil
		}
		return maps.Clone(state)
	}, as),
}

var depotCodec = codec[domain.Depot]{
	key(func(d *domain.Depot) *domain.DepotID { return &d.ID }),
	text("name", func(d *domain.Depot) *string { return &d.Name }),
	place("position", func(d *domain.Depot) *domain.Position { return &d.Position }),
	whole("capacity", func(d *domain.Depot) *int { return &d.Capacity }),
	slots("chargingSlots", func(d *domain.Depot) *int { return &d.ChargingSlots }),
	text("group", func(d *domain.Depot) *string { return &d.Group }),
}

var warehouseCodec = codec[domain.Warehouse]{
	key(func(w *domain.Warehouse) *domain.WarehouseID { return &w.ID }),
	text("name", func(w *domain.Warehouse) *string { return &w.Name }),
	place("position", func(w *domain.Warehouse) *domain.Position { return &w.Position }),
	texts("authorizedProductTypes", func(w *domain.Warehouse) *[]string { return &w.ProductTypes }),
	flag("isColdStorageCapable", func(w *domain.Warehouse) *bool { return &w.ColdStorage }),
}

var legSumsCodec = codec[domain.LegSums]{
	real("legs", func(l *domain.LegSums) *float64 { return &l.Weight }),
	real("km", func(l *domain.LegSums) *float64 { return &l.Km }),
	real("seconds", func(l *domain.LegSums) *float64 { return &l.Seconds }),
	real("kmKm", func(l *domain.LegSums) *float64 { return &l.KmKm }),
	real("kmSeconds", func(l *domain.LegSums) *float64 { return &l.KmSeconds }),
}

var travelCodec = codec[domain.Travel]{
	instant("until", func(t *domain.Travel) *time.Time { return &t.Until }),
	nested("fromStart", legSumsCodec, func(t *domain.Travel) *domain.LegSums { return &t.FromStart }),
	nested("fromPickup", legSumsCodec, func(t *domain.Travel) *domain.LegSums { return &t.FromPickup }),
	nested("fromDelivery", legSumsCodec, func(t *domain.Travel) *domain.LegSums { return &t.FromDelivery }),
	listOf("delays", "an array of numbers", func(t *domain.Travel) *[]float64 { return &t.Delays },
		func(n float64) float64 { return n }, func(n float64) float64 { return n }),
	whole("missions", func(t *domain.Travel) *int { return &t.Missions }),
	whole("legs", func(t *domain.Travel) *int { return &t.Legs }),
	whole("refusedLegs", func(t *domain.Travel) *int { return &t.Refused }),
	real("speedKmh", func(t *domain.Travel) *float64 { return &t.SpeedKmh }),
	real("pickupSeconds", func(t *domain.Travel) *float64 { return &t.PickupSeconds }),
	real("deliverySeconds", func(t *domain.Travel) *float64 { return &t.DeliverySeconds }),
}

var droneTravelCodec = codec[domain.DroneTravel]{
	nested("flight", legSumsCodec, func(d *domain.DroneTravel) *domain.LegSums { return &d.Flight }),
	real("speedKmh", func(d *domain.DroneTravel) *float64 { return &d.SpeedKmh }),
}

var hourDemandCodec = codec[domain.HourDemand]{
	real("hours", func(h *domain.HourDemand) *float64 { return &h.Hours }),
	real("standard", func(h *domain.HourDemand) *float64 { return &h.Orders[0] }),
	real("high", func(h *domain.HourDemand) *float64 { return &h.Orders[1] }),
	real("critical", func(h *domain.HourDemand) *float64 { return &h.Orders[2] }),
}

var pointDemandCodec = codec[domain.PointDemand]{
	point("position", func(p *domain.PointDemand) *domain.Position { return &p.Position }),
	real("standard", func(p *domain.PointDemand) *float64 { return &p.Orders[0] }),
	real("high", func(p *domain.PointDemand) *float64 { return &p.Orders[1] }),
	real("critical", func(p *domain.PointDemand) *float64 { return &p.Orders[2] }),
	text("productType", func(p *domain.PointDemand) *string { return &p.ProductType }),
	flag("coldChain", func(p *domain.PointDemand) *bool { return &p.ColdChain }),
	real("weightKg", func(p *domain.PointDemand) *float64 { return &p.WeightKg }),
}

var demandCodec = codec[domain.Demand]{
	instant("until", func(d *domain.Demand) *time.Time { return &d.Until }),
	structs("hours", hourDemandCodec, func(d *domain.Demand) *[]domain.HourDemand { return &d.Hours }),
	structs("places", pointDemandCodec, func(d *domain.Demand) *[]domain.PointDemand { return &d.Points }),
	whole("orders", func(d *domain.Demand) *int { return &d.Seen }),
}

var unservedCodec = codec[domain.UnservedOrder]{
	text("orderId", func(u *domain.UnservedOrder) *domain.OrderID { return &u.OrderID }),
	text("reason", func(u *domain.UnservedOrder) *string { return &u.Reason }),
	counter("freeDrones", func(u *domain.UnservedOrder) *int { return &u.Obstacles.Free }),
	counter("busyDrones", func(u *domain.UnservedOrder) *int { return &u.Obstacles.Busy }),
	counter("notAllowed", func(u *domain.UnservedOrder) *int { return &u.Obstacles.NotAllowed }),
	counter("warehouse", func(u *domain.UnservedOrder) *int { return &u.Obstacles.Warehouse }),
	counter("payload", func(u *domain.UnservedOrder) *int { return &u.Obstacles.Payload }),
	counter("coldChain", func(u *domain.UnservedOrder) *int { return &u.Obstacles.ColdChain }),
	counter("range", func(u *domain.UnservedOrder) *int { return &u.Obstacles.Range }),
	counter("battery", func(u *domain.UnservedOrder) *int { return &u.Obstacles.Battery }),
	counter("taken", func(u *domain.UnservedOrder) *int { return &u.Obstacles.Taken }),
	counter("reserve", func(u *domain.UnservedOrder) *int { return &u.Obstacles.Reserve }),
	counter("unused", func(u *domain.UnservedOrder) *int { return &u.Obstacles.Unused }),
	counter("deadline", func(u *domain.UnservedOrder) *int { return &u.Obstacles.Deadline }),
}

var cycleCodec = codec[domain.Cycle]{
	key(func(c *domain.Cycle) *domain.CycleID { return &c.ID }),
	text("depotId", func(c *domain.Cycle) *domain.DepotID { return &c.DepotID }),
	texts("depotIds", func(c *domain.Cycle) *[]domain.DepotID { return &c.DepotIDs }),
	text("fence", func(c *domain.Cycle) *string { return &c.Fence }),
	text("holder", func(c *domain.Cycle) *string { return &c.Holder }),
	instant("snapshotTime", func(c *domain.Cycle) *time.Time { return &c.SnapshotTime }),
	whole("drones", func(c *domain.Cycle) *int { return &c.Drones }),
	whole("flights", func(c *domain.Cycle) *int { return &c.Flights }),
	whole("orders", func(c *domain.Cycle) *int { return &c.Orders }),
	whole("missions", func(c *domain.Cycle) *int { return &c.Missions }),
	whole("amended", func(c *domain.Cycle) *int { return &c.Amended }),
	whole("standby", func(c *domain.Cycle) *int { return &c.Standby }),
	whole("assigned", func(c *domain.Cycle) *int { return &c.Assigned }),
	whole("exchanged", func(c *domain.Cycle) *int { return &c.Exchanged }),
	whole("handedOver", func(c *domain.Cycle) *int { return &c.HandedOver }),
	text("objective", func(c *domain.Cycle) *string { return &c.Objective }),
	real("distanceKm", func(c *domain.Cycle) *float64 { return &c.DistanceKm }),
	structs("unserved", unservedCodec, func(c *domain.Cycle) *[]domain.UnservedOrder { return &c.Unserved }),
	texts("leftOut", func(c *domain.Cycle) *[]string { return &c.LeftOut }),
	instant("startedAt", func(c *domain.Cycle) *time.Time { return &c.StartedAt }),
	millis("readMs", func(c *domain.Cycle) *time.Duration { return &c.ReadTook }),
	millis("solveMs", func(c *domain.Cycle) *time.Duration { return &c.SolveTook }),
	millis("publishMs", func(c *domain.Cycle) *time.Duration { return &c.PublishTook }),
	instant("endedAt", func(c *domain.Cycle) *time.Time { return &c.EndedAt }),
	text("outcome", func(c *domain.Cycle) *domain.CycleOutcome { return &c.Outcome }),
	text("detail", func(c *domain.Cycle) *string { return &c.Detail }),
	counter(withoutOrders, func(c *domain.Cycle) *int { return &c.WithoutOrders }),
}

// withoutOrders is the field that counts an area's cycles without orders.
const withoutOrders = "withoutOrders"

var lockBreakCodec = codec[domain.LockBreak]{
	text("key", func(b *domain.LockBreak) *string { return &b.Key }),
	text("fence", func(b *domain.LockBreak) *string { return &b.Fence }),
	instant("expiresAt", func(b *domain.LockBreak) *time.Time { return &b.ExpiresAt }),
	instant("brokenAt", func(b *domain.LockBreak) *time.Time { return &b.BrokenAt }),
	text("brokenBy", func(b *domain.LockBreak) *string { return &b.BrokenBy }),
	text("why", func(b *domain.LockBreak) *string { return &b.Why }),
}

var memberCodec = codec[domain.Member]{
	key(func(m *domain.Member) *domain.MemberID { return &m.ID }),
	text("holder", func(m *domain.Member) *string { return &m.Holder }),
	flag("sweeps", func(m *domain.Member) *bool { return &m.Sweeps }),
	texts("depots", func(m *domain.Member) *[]domain.DepotID { return &m.Depots }),
	real("share", func(m *domain.Member) *float64 { return &m.Share }),
	real("shareBefore", func(m *domain.Member) *float64 { return &m.ShareBefore }),
	instant(shareSince, func(m *domain.Member) *time.Time { return &m.ShareSince }),
	instant(beatAt, func(m *domain.Member) *time.Time { return &m.BeatAt }),
}

var keyCodec = codec[domain.APIKey]{
	key(func(k *domain.APIKey) *string { return &k.Hash }),
	text("role", func(k *domain.APIKey) *domain.KeyRole { return &k.Role }),
	text("subject", func(k *domain.APIKey) *string { return &k.Subject }),
	instant("createdAt", func(k *domain.APIKey) *time.Time { return &k.CreatedAt }),
	text("createdBy", func(k *domain.APIKey) *string { return &k.CreatedBy }),
	text("why", func(k *domain.APIKey) *string { return &k.Why }),
	instant("expiresAt", func(k *domain.APIKey) *time.Time { return &k.ExpiresAt }),
	instant("revokedAt", func(k *domain.APIKey) *time.Time { return &k.RevokedAt }),
	text("revokedBy", func(k *domain.APIKey) *string { return &k.RevokedBy }),
	text("revokedWhy", func(k *domain.APIKey) *string { return &k.RevokedWhy }),
	instant(keyLastUsed, func(k *domain.APIKey) *time.Time { return &k.LastUsedAt }),
}

var alertAckCodec = codec[domain.AlertAck]{
	key(func(a *domain.AlertAck) *string { return &a.ID }),
	text("by", func(a *domain.AlertAck) *string { return &a.By }),
	instant("at", func(a *domain.AlertAck) *time.Time { return &a.At }),
	text("reason", func(a *domain.AlertAck) *string { return &a.Reason }),
}

var discardCodec = codec[domain.Discard]{
	key(func(d *domain.Discard) *domain.DiscardID { return &d.ID }),
	text("topic", func(d *domain.Discard) *string { return &d.Topic }),
	text("messageId", func(d *domain.Discard) *string { return &d.MessageID }),
	text("orderingKey", func(d *domain.Discard) *string { return &d.OrderingKey }),
	instant("publishedAt", func(d *domain.Discard) *time.Time { return &d.PublishedAt }),
	text("reason", func(d *domain.Discard) *string { return &d.Reason }),
	text("error", func(d *domain.Discard) *string { return &d.Error }),
	// Not a map: attribute names may be illegal field names.
	texts("attributes", func(d *domain.Discard) *[]string { return &d.Attributes }),
	// The payload is in one of these two: as text if the console can show it.
	value("text", "a string", func(d *domain.Discard) *[]byte { return &d.Payload }, func(payload []byte) any {
		if len(payload) == 0 || !domain.IsText(payload) {
			return nil
		}
		return string(payload)
	}, func(found any) ([]byte, bool) {
		s, ok := found.(string)
		return []byte(s), ok
	}),
	value("data", "bytes", func(d *domain.Discard) *[]byte { return &d.Payload }, func(payload []byte) any {
		if domain.IsText(payload) {
			return nil
		}
		return payload
	}, as),
	whole("bytes", func(d *domain.Discard) *int { return &d.Bytes }),
	text("payloadHash", func(d *domain.Discard) *string { return &d.PayloadHash }),
	whole("originalBytes", func(d *domain.Discard) *int { return &d.OriginalBytes }),
	whole("attributesDropped", func(d *domain.Discard) *int { return &d.AttributesDropped }),
	instant("discardedAt", func(d *domain.Discard) *time.Time { return &d.DiscardedAt }),
	text("discardedBy", func(d *domain.Discard) *string { return &d.DiscardedBy }),
	text("why", func(d *domain.Discard) *string { return &d.Why }),
}

var replayCodec = codec[domain.Replay]{
	key(func(r *domain.Replay) *domain.ReplayID { return &r.ID }),
	text("topic", func(r *domain.Replay) *string { return &r.Topic }),
	text("messageId", func(r *domain.Replay) *string { return &r.MessageID }),
	texts("newMessageIds", func(r *domain.Replay) *[]string { return &r.NewMessageIDs }),
	text("orderingKey", func(r *domain.Replay) *string { return &r.OrderingKey }),
	instant("publishedAt", func(r *domain.Replay) *time.Time { return &r.PublishedAt }),
	text("reason", func(r *domain.Replay) *string { return &r.Reason }),
	text("error", func(r *domain.Replay) *string { return &r.Error }),
	text("subject", func(r *domain.Replay) *string { return &r.Subject }),
	text("subjectId", func(r *domain.Replay) *string { return &r.SubjectID }),
	instant("replayedAt", func(r *domain.Replay) *time.Time { return &r.ReplayedAt }),
	text("replayedBy", func(r *domain.Replay) *string { return &r.ReplayedBy }),
}

// refusalCount is the field of a record that stands for many refusals.
const refusalCount = "count"

var refusalCodec = codec[domain.Refusal]{
	key(func(r *domain.Refusal) *domain.RefusalID { return &r.ID }),
	text("topic", func(r *domain.Refusal) *string { return &r.Topic }),
	text("messageId", func(r *domain.Refusal) *string { return &r.MessageID }),
	text("orderingKey", func(r *domain.Refusal) *string { return &r.OrderingKey }),
	instant("publishedAt", func(r *domain.Refusal) *time.Time { return &r.PublishedAt }),
	instant("refusedAt", func(r *domain.Refusal) *time.Time { return &r.RefusedAt }),
	text("reason", func(r *domain.Refusal) *string { return &r.Reason }),
	text("error", func(r *domain.Refusal) *string { return &r.Error }),
	counter("bytes", func(r *domain.Refusal) *int { return &r.Bytes }),
	text("replayOf", func(r *domain.Refusal) *string { return &r.ReplayOf }),
	text("orderId", func(r *domain.Refusal) *domain.OrderID { return &r.OrderID }),
	text("requesterId", func(r *domain.Refusal) *string { return &r.RequesterID }),
	counter(refusalCount, func(r *domain.Refusal) *int { return &r.Count }),
	text("outcome", func(r *domain.Refusal) *domain.RefusalOutcome { return &r.Outcome }),
	text("decidedBy", func(r *domain.Refusal) *string { return &r.DecidedBy }),
	instant("decidedAt", func(r *domain.Refusal) *time.Time { return &r.DecidedAt }),
}
