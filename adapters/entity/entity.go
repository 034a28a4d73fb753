package entity

import (
	"encoding/json"
	"math"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// Position is in degrees.
type Position struct {
	Lat float64 `json:"lat"`
	Lon float64 `json:"lon"`
}

func position(p domain.Position) Position { return Position{p.Lat, p.Lon} }

// Time is a time in UTC; nil for none.
type Time = *time.Time

func moment(t time.Time) Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Number is a number. NaN and infinities, which another tool may have stored, become
// strings as in protobuf's JSON form.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	switch f := float64(n); {
	case math.IsNaN(f):
		return []byte(`"NaN"`), nil
	case math.IsInf(f, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(f, -1):
		return []byte(`"-Infinity"`), nil
	default:
		return json.Marshal(f)
	}
}

// Drone is a drone.
type Drone struct {
	ID                   domain.DroneID     `json:"id"`
	Status               domain.DroneStatus `json:"status"`
	ReportedStatus       domain.DroneStatus `json:"reportedStatus,omitempty"`
	Position             *Position          `json:"position,omitempty" doc:"Absent if it never reported."`
	BatteryPercentage    Number             `json:"batteryPercentage"`
	SpeedKmh             Number             `json:"speedKmh"`
	LastUpdate           Time               `json:"lastUpdate,omitempty"`
	SeenAt               Time               `json:"seenAt,omitempty"`
	CurrentMissionID     domain.MissionID   `json:"currentMissionId,omitempty"`
	MissionAcked         bool               `json:"missionAcked,omitempty"`
	MissionMoved         bool               `json:"missionMoved,omitempty"`
	NamedRevision        int                `json:"namedRevision,omitempty"`
	SupportsAmendments   bool               `json:"supportsAmendments,omitempty"`
	SupportsStandby      bool               `json:"supportsStandby,omitempty"`
	FreeAfter            Time               `json:"freeAfter,omitempty"`
	IdleSince            Time               `json:"idleSince,omitempty"`
	FaultSince           Time               `json:"faultSince,omitempty"`
	Homebound            bool               `json:"homebound,omitempty"`
	HomeboundSince       Time               `json:"homeboundSince,omitempty"`
	ParkedSince          Time               `json:"parkedSince,omitempty"`
	EmergencyLatched     bool               `json:"emergencyLatched,omitempty"`
	Grounded             bool               `json:"grounded,omitempty"`
	GroundedReason       string             `json:"groundedReason,omitempty"`
	GhostMissionID       domain.MissionID   `json:"ghostMissionId,omitempty"`
	GhostRevokedAt       Time               `json:"ghostRevokedAt,omitempty"`
	FailedMissions       []FailedMission    `json:"failedMissions,omitempty"`
	HomeDepotID          domain.DepotID     `json:"homeDepotId,omitempty"`
	ShortName            string             `json:"shortName,omitempty"`
	BatteryCapacityMah   int                `json:"batteryCapacityMah,omitempty"`
	ConsumptionPerKm     Number             `json:"consumptionPerKm,omitempty"`
	ConsumptionPerKmKg   Number             `json:"consumptionPerKmKg,omitempty"`
	MaxFlightTimeMinutes int                `json:"maxFlightTimeMinutes,omitempty"`
	PayloadCapacityKg    Number             `json:"payloadCapacityKg,omitempty"`
	ChargeRate           Number             `json:"chargeRate,omitempty"`
	TypeID               domain.DroneTypeID `json:"typeId,omitempty"`
	RegistrationMark     string             `json:"registrationMark,omitempty"`
	SerialNumber         string             `json:"serialNumber,omitempty"`
	RemoteID             string             `json:"remoteId,omitempty"`
	ColdBox              *ColdBox           `json:"coldBox,omitempty"`
	Due                  []DueItem          `json:"due,omitempty"`
	Maintained           []Maintenance      `json:"maintained,omitempty" doc:"The latest maintenance of each item, from which its next limits count."`
	MinBatteryHealth     Number             `json:"minBatteryHealth,omitempty"`
	OwnProperties        []string           `json:"ownProperties,omitempty" doc:"The properties that are not its type's."`
	RegisteredAt         Time               `json:"registeredAt,omitempty"`
	RegisteredBy         string             `json:"registeredBy,omitempty"`
	Unregistered         bool               `json:"unregistered,omitempty" doc:"It is known by its reports only and takes no mission."`
	RetiredAt            Time               `json:"retiredAt,omitempty"`
	FlightSeconds        int64              `json:"flightSeconds,omitempty"`
	Landings             int                `json:"landings,omitempty"`
	BatteryHealth        *Number            `json:"batteryHealth,omitempty"`
	ReportedSerial       string             `json:"reportedSerial,omitempty"`
	CountsStops          bool               `json:"countsStops,omitempty"`
	Implausible          string             `json:"implausible,omitempty"`
	ImplausibleAt        Time               `json:"implausibleAt,omitempty"`
	LinkLostAt           Time               `json:"linkLostAt,omitempty" doc:"When its session at a gateway was lost. Whether it flies on is judged by its reports."`
	Foretold             *Whereabouts       `json:"foretold,omitempty" doc:"Where it is now, by the report that was written last; position is where it was then."`
	Revision             int64              `json:"revision"`
}

// Whereabouts is where a drone is, how long ago it was seen, and how far from there its latest report
// can be.
type Whereabouts struct {
	Position
	AgeSeconds  Number `json:"ageSeconds"`
	ErrorMetres Number `json:"errorMetres"`
}

func whereabouts(d domain.Drone, now time.Time) *Whereabouts {
	w := d.WhereaboutsAt(now)
	return &Whereabouts{position(w.Position), Number(math.Round(w.Age.Seconds()*10) / 10), Number(math.Round(w.ErrorMetres))}
}

// OfDroneNow is the JSON form of a drone with where it is now.
func OfDroneNow(d domain.Drone, now time.Time) Drone {
	out := OfDrone(d)
	if d.Heard() {
		out.Foretold = whereabouts(d, now)
	}
	return out
}

// FailedMission is one of a drone's latest failures.
type FailedMission struct {
	MissionID domain.MissionID `json:"missionId"`
	FailedAt  Time             `json:"failedAt,omitempty"`
}

// OfDrone is the JSON form of a drone.
func OfDrone(d domain.Drone) Drone {
	out := Drone{
		ID: d.ID, Status: d.Status, ReportedStatus: d.ReportedStatus,
		BatteryPercentage: Number(d.Battery), SpeedKmh: Number(d.SpeedKmh), LastUpdate: moment(d.LastUpdate), SeenAt: moment(d.SeenAt),
		CurrentMissionID: d.CurrentMissionID, MissionAcked: d.MissionAcked, MissionMoved: d.MissionMoved, NamedRevision: d.NamedRevision, SupportsAmendments: d.SupportsAmendments,
		SupportsStandby: d.SupportsStandby,
		FreeAfter:       moment(d.FreeAfter), IdleSince: moment(d.IdleSince), FaultSince: moment(d.FaultSince), ParkedSince: moment(d.ParkedSince),
		Homebound: d.Homebound, HomeboundSince: moment(d.HomeboundSince),
		EmergencyLatched: d.EmergencyLatched, Grounded: d.Grounded, GroundedReason: d.GroundedReason, GhostMissionID: d.GhostMissionID, GhostRevokedAt: moment(d.GhostRevokedAt),
		FailedMissions: Each(d.FailedMissions, func(f domain.FailedMission) FailedMission {
			return FailedMission{f.ID, moment(f.FailedAt)}
		}),
		HomeDepotID: d.HomeDepotID, ShortName: d.ShortName, BatteryCapacityMah: d.BatteryCapacityMah,
		ConsumptionPerKm: Number(d.ConsumptionPerKm), ConsumptionPerKmKg: Number(d.ConsumptionPerKmKg), MaxFlightTimeMinutes: d.MaxFlightTimeMinutes,
		PayloadCapacityKg: Number(d.PayloadCapacityKg), ChargeRate: Number(d.ChargeRate), Revision: d.Revision,
		TypeID: d.TypeID, RegistrationMark: d.RegistrationMark, SerialNumber: d.SerialNumber, RemoteID: d.RemoteID, ColdBox: coldBox(d.ColdBox),
		Due: Each(d.Due, dueItem), Maintained: Each(d.Maintained, maintenance),
		MinBatteryHealth: Number(d.MinBatteryHealth), OwnProperties: d.OwnProperties, RegisteredAt: moment(d.RegisteredAt), RegisteredBy: d.RegisteredBy,
		Unregistered: d.Unregistered, RetiredAt: moment(d.RetiredAt), FlightSeconds: d.FlightSeconds, Landings: d.Landings,
		BatteryHealth: (*Number)(d.BatteryHealth), ReportedSerial: d.ReportedSerial, CountsStops: d.CountsStops,
		Implausible: d.Implausible, ImplausibleAt: moment(d.ImplausibleAt),
		LinkLostAt: moment(d.LinkLostAt),
	}
	if d.Heard() {
		at := position(d.Position)
		out.Position = &at
	}
	return out
}

// AlertAck is the acknowledgement of an alert.
type AlertAck struct {
	ID     string `json:"id"`
	By     string `json:"by"`
	At     Time   `json:"at,omitempty"`
	Reason string `json:"reason"`
}

// OfAlertAck is the JSON form of an acknowledgement.
func OfAlertAck(a domain.AlertAck) AlertAck {
	return AlertAck{a.ID, a.By, moment(a.At), a.Reason}
}

// APIKey is an API key, without its text.
type APIKey struct {
	ID         string         `json:"id"`
	Role       domain.KeyRole `json:"role"`
	Subject    string         `json:"subject,omitempty"`
	Ended      string         `json:"ended,omitempty"`
	CreatedAt  Time           `json:"createdAt,omitempty"`
	CreatedBy  string         `json:"createdBy"`
	Why        string         `json:"why"`
	ExpiresAt  Time           `json:"expiresAt,omitempty"`
	RevokedAt  Time           `json:"revokedAt,omitempty"`
	RevokedBy  string         `json:"revokedBy,omitempty"`
	RevokedWhy string         `json:"revokedWhy,omitempty"`
	LastUsedAt Time           `json:"lastUsedAt,omitempty"`
}

// OfAPIKey is the JSON form of an API key at a time.
func OfAPIKey(k domain.APIKey, now time.Time) APIKey {
	return APIKey{
		ID: k.Hash, Role: k.Role, Subject: k.Subject, Ended: k.Ended(now), CreatedAt: moment(k.CreatedAt), CreatedBy: k.CreatedBy, Why: k.Why, ExpiresAt: moment(k.ExpiresAt),
		RevokedAt: moment(k.RevokedAt), RevokedBy: k.RevokedBy, RevokedWhy: k.RevokedWhy, LastUsedAt: moment(k.LastUsedAt),
	}
}

// Order is an order.
type Order struct {
	ID                domain.OrderID     `json:"id"`
	Status            domain.OrderStatus `json:"status"`
	Priority          string             `json:"priority,omitempty"`
	ProductType       string             `json:"productType,omitempty"`
	PickupLocation    *Position          `json:"pickupLocation,omitempty"`
	DeliveryLocation  Position           `json:"deliveryLocation"`
	PackageWeightKg   Number             `json:"packageWeightKg,omitempty"`
	RequiresColdChain bool               `json:"requiresColdChain,omitempty"`
	RequesterID       string             `json:"requesterId,omitempty"`
	CreatedAt         Time               `json:"createdAt,omitempty"`
	Deadline          Time               `json:"deadline,omitempty"`
	PendingSince      Time               `json:"pendingSince,omitempty"`
	DeliveredAt       Time               `json:"deliveredAt,omitempty"`
	Attempts          int                `json:"attempts"`
	Held              bool               `json:"held"`
	HeldReason        string             `json:"heldReason,omitempty"`
	Late              bool               `json:"late"`
	Warning           string             `json:"warning,omitempty" doc:"Why no drone could deliver the order as things stood when it came."`
	PinnedDroneID     domain.DroneID     `json:"pinnedDroneId,omitempty"`
	ForbiddenDroneIDs []domain.DroneID   `json:"forbiddenDroneIds,omitempty"`
	PlanningDepotID   domain.DepotID     `json:"planningDepotId,omitempty"` // whose area plans it
	PlanningSince     Time               `json:"planningSince,omitempty"`
	HandedOverBy      []domain.DepotID   `json:"handedOverBy,omitempty"` // depots that planned it before
	AssignedDroneID   domain.DroneID     `json:"assignedDroneId,omitempty"`
	AssignedMissionID domain.MissionID   `json:"assignedMissionId,omitempty"`
	Releasing         bool               `json:"releasing,omitempty"`
	ContentHash       string             `json:"contentHash,omitempty"`
	// ContentPublishedAt is when the request with this content was published.
	ContentPublishedAt Time  `json:"contentPublishedAt,omitempty"`
	Revision           int64 `json:"revision"`
}

// OfOrder is the JSON form of an order.
func OfOrder(o domain.Order) Order {
	order := Order{
		ID: o.ID, Status: o.Status, ProductType: o.ProductType,
		DeliveryLocation: position(o.Delivery), PackageWeightKg: Number(o.WeightKg), RequiresColdChain: o.ColdChain, RequesterID: o.RequesterID,
		CreatedAt: moment(o.CreatedAt), Deadline: moment(o.Deadline), PendingSince: moment(o.PendingSince), DeliveredAt: moment(o.DeliveredAt),
		Attempts: o.Attempts, Held: o.Held, HeldReason: o.HeldReason, Late: o.Late, Warning: o.Warning, PinnedDroneID: o.PinnedDroneID, ForbiddenDroneIDs: o.ForbiddenDroneIDs,
		PlanningDepotID: o.PlanningDepotID, PlanningSince: moment(o.PlanningSince), HandedOverBy: o.HandedOverBy,
		AssignedDroneID: o.AssignedDroneID, AssignedMissionID: o.AssignedMissionID, Releasing: o.Releasing, ContentHash: o.ContentHash, ContentPublishedAt: moment(o.ContentPublishedAt), Revision: o.Revision,
	}
	if o.Priority != 0 {
		order.Priority = o.Priority.String()
	}
	if o.Pickup != nil {
		pickup := position(*o.Pickup)
		order.PickupLocation = &pickup
	}
	return order
}

// WaitingOrder is an order with why it waits, if it does: one entry for each depot,
// the depot nearest to serving it first.
type WaitingOrder struct {
	Order
	Waiting []Wait `json:"waiting,omitempty"`
}

// Wait is what the latest complete cycle of a depot found about an order.
type Wait struct {
	DepotID      domain.DepotID `json:"depotId,omitempty"`
	CycleID      domain.CycleID `json:"cycleId,omitempty"`
	SnapshotTime Time           `json:"snapshotTime,omitempty"`
	Reason       string         `json:"reason"`
	// WithoutOrders counts the area's cycles without orders, if the latest was one.
	WithoutOrders int `json:"withoutOrders,omitempty" doc:"If the latest cycle found no orders: how many such cycles the area has had."`
	Obstacles
}

// Obstacles counts the drones that a cycle considered for an order, by what kept them from it; see
// domain.Obstacles. It is empty if the drones were not counted.
type Obstacles struct {
	FreeDrones int `json:"freeDrones,omitempty"`
	BusyDrones int `json:"busyDrones,omitempty"`
	NotAllowed int `json:"notAllowed,omitempty"`
	Warehouse  int `json:"warehouse,omitempty"`
	Payload    int `json:"payload,omitempty"`
	ColdChain  int `json:"coldChain,omitempty"`
	Range      int `json:"range,omitempty"`
	Battery    int `json:"battery,omitempty"`
	Taken      int `json:"taken,omitempty"`
	Reserve    int `json:"reserve,omitempty"`
	Unused     int `json:"unused,omitempty"`
	Deadline   int `json:"deadline,omitempty"`
}

func obstacles(o domain.Obstacles) Obstacles {
	return Obstacles{
		FreeDrones: o.Free, BusyDrones: o.Busy, NotAllowed: o.NotAllowed, Warehouse: o.Warehouse, Payload: o.Payload, ColdChain: o.ColdChain, Range: o.Range,
		Battery: o.Battery, Taken: o.Taken, Reserve: o.Reserve, Unused: o.Unused, Deadline: o.Deadline,
	}
}

// OfWaitingOrder is the JSON form of an order and why it waits.
func OfWaitingOrder(o domain.Order, waits []domain.Wait) WaitingOrder {
	return WaitingOrder{OfOrder(o), Each(waits, func(w domain.Wait) Wait {
		return Wait{w.DepotID, w.CycleID, moment(w.SnapshotTime), w.Reason, w.WithoutOrders, obstacles(w.Obstacles)}
	})}
}

// OrderNow is an order with what its requester asks about it.
type OrderNow struct {
	WaitingOrder
	Summary       string         `json:"summary" doc:"Where the order stands or why it waits, in one sentence."`
	ExpectedAt    Time           `json:"expectedAt,omitempty" doc:"When its mission plans to deliver it."`
	DronePosition *DronePosition `json:"dronePosition,omitempty" doc:"Where its drone is, from ten minutes before the expected delivery on."`
}

// DronePosition is where a drone is, and when it measured the report by which that is foretold.
type DronePosition struct {
	Whereabouts
	At Time `json:"at,omitempty"`
}

// OfOrderNow is the JSON form of an order, why it waits, when its delivery is expected (or zero), and
// its drone if that is to be shown, as it is at a time.
func OfOrderNow(o domain.Order, waits []domain.Wait, expected time.Time, drone *domain.Drone, at time.Time) OrderNow {
	now := OrderNow{WaitingOrder: OfWaitingOrder(o, waits), Summary: domain.SummaryOf(o, waits, expected), ExpectedAt: moment(expected)}
	if drone != nil && drone.Heard() {
		now.DronePosition = &DronePosition{*whereabouts(*drone, at), moment(drone.LastUpdate)}
	}
	return now
}

// Waypoint is one stop of a route.
type Waypoint struct {
	Type               domain.WaypointType `json:"type"`
	Position           Position            `json:"position"`
	RelatedOrderID     domain.OrderID      `json:"relatedOrderId,omitempty"`
	RelatedWarehouseID domain.WarehouseID  `json:"relatedWarehouseId,omitempty"`
	ETA                Time                `json:"eta,omitempty"`
	ChargeToPercent    Number              `json:"chargeToPercent,omitempty"`
	WaitUntil          Time                `json:"waitUntil,omitempty"`
}

// Mission is a mission.
type Mission struct {
	ID                          domain.MissionID     `json:"id"`
	DroneID                     domain.DroneID       `json:"droneId"`
	OrderIDs                    []domain.OrderID     `json:"orderIds"`
	Route                       []Waypoint           `json:"route"`
	Status                      domain.MissionStatus `json:"status"`
	FailureReason               domain.FailureReason `json:"failureReason,omitempty"`
	ReachedStops                int                  `json:"reachedStops"`
	Sightings                   []Sighting           `json:"sightings,omitempty"`
	DroppedStops                []int                `json:"droppedStops,omitempty"`
	StartTime                   Time                 `json:"startTime,omitempty"`
	EndTime                     Time                 `json:"endTime,omitempty"`
	EstimatedBatteryConsumption Number               `json:"estimatedBatteryConsumption"`
	EstimatedDurationMinutes    Number               `json:"estimatedDurationMinutes"`
	DecisionID                  domain.DecisionID    `json:"decisionId,omitempty"`
	CycleID                     domain.CycleID       `json:"cycleId,omitempty"`
	Fence                       string               `json:"fence,omitempty"`
	RouteRevision               int                  `json:"routeRevision,omitempty"`
	Amendment                   *Amendment           `json:"amendment,omitempty"`
	EarlierRoutes               []EarlierRoute       `json:"earlierRoutes,omitempty"`
	AmendedAt                   Time                 `json:"amendedAt,omitempty"`
	RecalledAt                  Time                 `json:"recalledAt,omitempty"`
	RecallReason                string               `json:"recallReason,omitempty"`
	CommandPending              bool                 `json:"commandPending,omitempty"`
	CommandExpiresAt            Time                 `json:"commandExpiresAt,omitempty"`
	CommandPublishedAt          Time                 `json:"commandPublishedAt,omitempty"`
	RevokePending               bool                 `json:"revokePending,omitempty"`
	RevokePublishedAt           Time                 `json:"revokePublishedAt,omitempty"`
	Unconfirmed                 domain.Unconfirmed   `json:"unconfirmed,omitempty" doc:"What the drone was told, or will be, and has not confirmed by a report: RECALL until it has left the mission, AMENDMENT until it names the new route and, in the stream, MISSION until it names the mission."`
	Revision                    int64                `json:"revision"`
}

// Amendment is a change of a mission that its drone has not named yet.
type Amendment struct {
	Revision                    int               `json:"revision"`
	Route                       []Waypoint        `json:"route"`
	DroppedStops                []int             `json:"droppedStops,omitempty"`
	AddedOrderIDs               []domain.OrderID  `json:"addedOrderIds,omitempty"`
	ReleasedOrderIDs            []domain.OrderID  `json:"releasedOrderIds,omitempty"`
	EstimatedBatteryConsumption Number            `json:"estimatedBatteryConsumption"`
	EstimatedDurationMinutes    Number            `json:"estimatedDurationMinutes"`
	DecisionID                  domain.DecisionID `json:"decisionId,omitempty"`
	DecidedAt                   Time              `json:"decidedAt,omitempty"`
}

func amendment(a *domain.Amendment) *Amendment {
	if a == nil {
		return nil
	}
	return &Amendment{
		a.Revision, route(a.Route), a.DroppedStops, a.AddedIDs, a.ReleasedIDs,
		Number(a.EstimatedBatteryConsumption), Number(a.EstimatedDurationMinutes), a.DecisionID, moment(a.DecidedAt),
	}
}

// EarlierRoute is a revision of a mission that is no longer in force, and how many of its first
// stops the present route shares.
type EarlierRoute struct {
	Revision int `json:"revision"`
	Shared   int `json:"shared"`
}

func route(stops []domain.Waypoint) []Waypoint {
	return OrEmpty(Each(stops, func(w domain.Waypoint) Waypoint {
		return Waypoint{w.Type, position(w.Position), w.OrderID, w.WarehouseID, moment(w.ETA), Number(w.ChargeToPercent), moment(w.WaitUntil)}
	}))
}

// Sighting is a report's evidence about one stop.
type Sighting struct {
	Stop    int  `json:"stop"`
	At      Time `json:"at"`
	Claimed bool `json:"claimed,omitempty"`
}

// OfMission is the JSON form of a mission.
func OfMission(m domain.Mission) Mission {
	return Mission{
		ID: m.ID, DroneID: m.DroneID, OrderIDs: OrEmpty(m.OrderIDs), Status: m.Status, FailureReason: m.FailureReason,
		Route:     route(m.Route),
		Sightings: Each(m.Sightings, func(s domain.Sighting) Sighting { return Sighting{s.Stop, moment(s.At), s.Claimed} }), DroppedStops: m.DroppedStops,
		ReachedStops: m.ReachedStops, StartTime: moment(m.StartTime), EndTime: moment(m.EndTime),
		EstimatedBatteryConsumption: Number(m.EstimatedBatteryConsumption), EstimatedDurationMinutes: Number(m.EstimatedDurationMinutes),
		DecisionID: m.DecisionID, CycleID: m.CycleID, Fence: m.Fence,
		RouteRevision: m.RouteRevision, Amendment: amendment(m.Amendment), AmendedAt: moment(m.AmendedAt),
		EarlierRoutes: Each(m.EarlierRoutes, func(e domain.EarlierRoute) EarlierRoute { return EarlierRoute{e.Revision, e.Shared} }),
		RecalledAt:    moment(m.RecalledAt), RecallReason: m.RecallReason, CommandPending: m.CommandPending, CommandExpiresAt: moment(m.CommandExpiresAt), CommandPublishedAt: moment(m.CommandPublishedAt),
		RevokePending: m.RevokePending, RevokePublishedAt: moment(m.RevokePublishedAt), Unconfirmed: m.Unconfirmed(), Revision: m.Revision,
	}
}

// Decision is a decision's line in the ledger.
type Decision struct {
	ID               domain.DecisionID `json:"id"`
	Outcome          domain.Outcome    `json:"outcome"`
	Reason           string            `json:"reason,omitempty"`
	Detail           string            `json:"detail,omitempty"`
	MissionID        domain.MissionID  `json:"missionId,omitempty"`
	DroneID          domain.DroneID    `json:"droneId"`
	OrderIDs         []domain.OrderID  `json:"orderIds"`
	CycleID          domain.CycleID    `json:"cycleId,omitempty"`
	Fence            string            `json:"fence,omitempty"`
	DepotID          domain.DepotID    `json:"depotId,omitempty"`
	SnapshotTime     Time              `json:"snapshotTime,omitempty"`
	MessageID        string            `json:"messageId,omitempty"`
	PublishedAt      Time              `json:"publishedAt,omitempty"`
	ReceivedAt       Time              `json:"receivedAt,omitempty"`
	AppliedAt        Time              `json:"appliedAt,omitempty"`
	PayloadHash      string            `json:"payloadHash,omitempty"`
	AmendsMissionID  domain.MissionID  `json:"amendsMissionId,omitempty"`
	AmendsRevision   int               `json:"amendsRevision,omitempty"`
	Revision         int               `json:"revision,omitempty"`
	AddedOrderIDs    []domain.OrderID  `json:"addedOrderIds,omitempty"`
	ReleasedOrderIDs []domain.OrderID  `json:"releasedOrderIds,omitempty"`
}

// OfDecision is the JSON form of a ledger entry.
func OfDecision(e domain.LedgerEntry) Decision {
	return Decision{
		ID: e.ID, Outcome: e.Outcome, Reason: e.Reason, Detail: e.Detail, MissionID: e.MissionID, DroneID: e.DroneID,
		OrderIDs: OrEmpty(e.OrderIDs), CycleID: e.CycleID, Fence: e.Fence, DepotID: e.DepotID, SnapshotTime: moment(e.SnapshotTime),
		MessageID: e.MessageID, PublishedAt: moment(e.PublishedAt), ReceivedAt: moment(e.ReceivedAt), AppliedAt: moment(e.AppliedAt),
		PayloadHash: e.PayloadHash, AmendsMissionID: e.AmendsMissionID, AmendsRevision: e.AmendsRevision, Revision: e.Revision, AddedOrderIDs: e.AddedIDs, ReleasedOrderIDs: e.ReleasedIDs,
	}
}

// Cycle is one solve cycle.
type Cycle struct {
	ID           domain.CycleID      `json:"id"`
	DepotID      domain.DepotID      `json:"depotId"`
	DepotIDs     []domain.DepotID    `json:"depotIds,omitempty"`
	Outcome      domain.CycleOutcome `json:"outcome"`
	Detail       string              `json:"detail,omitempty"`
	Fence        string              `json:"fence,omitempty"`
	Holder       string              `json:"holder,omitempty"`
	SnapshotTime Time                `json:"snapshotTime,omitempty"`
	Drones       int                 `json:"drones"`
	Flights      int                 `json:"flights"`
	Orders       int                 `json:"orders"`
	Missions     int                 `json:"missions"`
	Amended      int                 `json:"amended"`
	HandedOver   int                 `json:"handedOver"`
	Standby      int                 `json:"standby"`
	Assigned     int                 `json:"assigned"`
	Exchanged    int                 `json:"exchanged"`
	Objective    string              `json:"objective,omitempty"`
	DistanceKm   Number              `json:"distanceKm"`
	Unserved     []Unserved          `json:"unserved"`
	LeftOut      []string            `json:"leftOut"`
	StartedAt    Time                `json:"startedAt,omitempty"`
	EndedAt      Time                `json:"endedAt,omitempty"`
	ReadMs       int64               `json:"readMs"`
	SolveMs      int64               `json:"solveMs"`
	PublishMs    int64               `json:"publishMs"`
	// WithoutOrders is set on an area's one record of its cycles without orders.
	WithoutOrders int `json:"withoutOrders,omitempty" doc:"In an area's one record of its cycles without orders, at most a minute old: how many there were. The other fields are of the latest."`
}

// Unserved is an order that a cycle did not assign, and why.
type Unserved struct {
	OrderID domain.OrderID `json:"orderId"`
	Reason  string         `json:"reason"`
	Obstacles
}

// OfCycle is the JSON form of a cycle.
func OfCycle(c domain.Cycle) Cycle {
	return Cycle{
		ID: c.ID, DepotID: c.DepotID, DepotIDs: c.DepotIDs, Outcome: c.Outcome, Detail: c.Detail, Fence: c.Fence, Holder: c.Holder,
		SnapshotTime: moment(c.SnapshotTime), Drones: c.Drones, Flights: c.Flights, Orders: c.Orders, Missions: c.Missions, Amended: c.Amended, HandedOver: c.HandedOver, Standby: c.Standby, Assigned: c.Assigned, Exchanged: c.Exchanged,
		Objective: c.Objective, DistanceKm: Number(c.DistanceKm),
		Unserved: OrEmpty(Each(c.Unserved, func(u domain.UnservedOrder) Unserved {
			return Unserved{u.OrderID, u.Reason, obstacles(u.Obstacles)}
		})),
		LeftOut:   OrEmpty(c.LeftOut),
		StartedAt: moment(c.StartedAt), EndedAt: moment(c.EndedAt),
		ReadMs: c.ReadTook.Milliseconds(), SolveMs: c.SolveTook.Milliseconds(), PublishMs: c.PublishTook.Milliseconds(), WithoutOrders: c.WithoutOrders,
	}
}

// Event is one state change.
type Event struct {
	Time       Time              `json:"time,omitempty"`
	Entity     domain.EntityKind `json:"entity"`
	ID         string            `json:"id"`
	Revision   int64             `json:"revision"`
	From       string            `json:"from,omitempty"`
	To         string            `json:"to"`
	Cause      domain.Cause      `json:"cause"`
	Reason     string            `json:"reason,omitempty"`
	By         string            `json:"by,omitempty" doc:"The person who caused it; absent for machines."`
	DroneID    domain.DroneID    `json:"droneId,omitempty"`
	OrderID    domain.OrderID    `json:"orderId,omitempty"`
	MissionID  domain.MissionID  `json:"missionId,omitempty"`
	DecisionID domain.DecisionID `json:"decisionId,omitempty"`
	CycleID    domain.CycleID    `json:"cycleId,omitempty"`
	State      map[string]any    `json:"state,omitempty"`
}

// OfEvent is the JSON form of an event.
func OfEvent(e domain.Event) Event {
	return Event{
		Time: moment(e.Time), Entity: e.Entity, ID: e.ID, Revision: e.Revision, From: e.From, To: e.To, Cause: e.Cause, Reason: e.Reason, By: e.By,
		DroneID: e.DroneID, OrderID: e.OrderID, MissionID: e.MissionID, DecisionID: e.DecisionID, CycleID: e.CycleID, State: state(e.State),
	}
}

// state is an event's state, in which another version may have recorded anything.
func state(recorded map[string]any) map[string]any {
	if recorded == nil {
		return nil
	}
	shown := make(map[string]any, len(recorded))
	for name, value := range recorded {
		shown[name] = encodable(value)
	}
	return shown
}

func encodable(value any) any {
	switch v := value.(type) {
	case float64:
		return Number(v)
	case []any:
		return Each(v, encodable)
	case map[string]any:
		return state(v)
	}
	return value
}

// PlaceChange is what a command did to a depot, a warehouse, a drone or a type, or would do.
type PlaceChange struct {
	Kind      domain.PlaceKind   `json:"kind"`
	ID        string             `json:"id"`
	Action    domain.PlaceAction `json:"action"`
	Fields    []string           `json:"fields,omitempty"`
	ChangedAt Time               `json:"changedAt,omitempty"`
	ChangedBy string             `json:"changedBy,omitempty"`
	Why       string             `json:"why,omitempty"`
	Warning   string             `json:"warning,omitempty" doc:"What is probably a mistake."`
	Drones    int                `json:"drones,omitempty" doc:"How many drones of a type change with it."`
}

// OfPlaceChange is the JSON form of a change.
func OfPlaceChange(c domain.PlaceChange) PlaceChange {
	return PlaceChange{c.Kind, c.ID, c.Action, c.Fields, moment(c.ChangedAt), c.ChangedBy, c.Why, c.Warning, c.Drones}
}

// Page is the JSON form of one page of a collection: the entities under its name;
// nextCursor, if there is a page after the one that ends with last; and malformed, one
// line for each document that could not be decoded.
func Page[J any](name string, items []J, last string, malformed []error) map[string]any {
	page := map[string]any{name: OrEmpty(items)}
	if last != "" {
		page["nextCursor"] = Cursor(name, last)
	}
	if len(malformed) > 0 {
		page["malformed"] = Each(malformed, error.Error)
	}
	return page
}

// Each converts every entry of a list.
func Each[T, U any](in []T, convert func(T) U) []U {
	if in == nil {
		return nil
	}
	out := make([]U, len(in))
	for i, v := range in {
		out[i] = convert(v)
	}
	return out
}

// OrEmpty returns an empty list for a nil one, which JSON would show as null.
func OrEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
