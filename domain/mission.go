package domain

import "time"

// Mission is a committed assignment: one drone, its orders, one route.
type Mission struct {
	ID       MissionID
	DroneID  DroneID
	OrderIDs []OrderID // those not withdrawn
	Route    []Waypoint
	Status   MissionStatus

	StartTime                   time.Time
	EndTime                     time.Time // zero while ACTIVE
	EstimatedBatteryConsumption float64   // percent of a full charge
	EstimatedDurationMinutes    float64

	DecisionID    DecisionID
	CycleID       CycleID
	Fence         string
	FailureReason FailureReason // empty unless FAILED
	ReachedStops  int           // waypoints reached, in route order, up to the last order stop
	// Sightings are what the drone's reports prove about stops; ReachedStops follows
	// from them.
	Sightings []Sighting
	// DroppedStops are the stops of withdrawn orders, by their index in the route as
	// first commanded: a drone that has not heard of the shorter route counts them.
	DroppedStops []int

	// RecalledAt is when an operator recalled the mission, zero for never, and
	// RecallReason why.
	RecalledAt   time.Time
	RecallReason string

	// The outbox: whoever sees a pending command or revocation first publishes it.
	// Each command of a mission expires later than those before it.
	CommandPending     bool
	CommandExpiresAt   time.Time
	CommandPublishedAt time.Time // zero: not yet
	RevokePending      bool
	RevokePublishedAt  time.Time

	Revision int64 // counts the mission's state changes; its events carry it

	// Version is when the store last wrote the mission, for the outbox; zero if
	// unknown. It is not part of the mission's state.
	Version time.Time
}

// Sighting is a report's evidence about one stop.
type Sighting struct {
	Stop int       // index in the route as first commanded
	At   time.Time // when it was measured, by the drone's clock
	// Claimed says that the drone counted the stop as completed by then; otherwise
	// it was near the stop.
	Claimed bool
}

// Waypoint is one stop of a route.
type Waypoint struct {
	Type        WaypointType
	Position    Position
	OrderID     OrderID     // the order this stop serves, if any
	WarehouseID WarehouseID // where a pickup happens, if at a warehouse
	ETA         time.Time   // by plan; zero if unknown
}

// ForOrder reports whether the stop picks up or delivers an order.
func (w Waypoint) ForOrder() bool {
	return w.Type == WaypointWarehousePickup || w.Type == WaypointHospitalDelivery
}

// LastOrderStopReached reports whether nothing is left to pick up or deliver.
func (m Mission) LastOrderStopReached() bool {
	for _, w := range m.Route[min(m.ReachedStops, len(m.Route)):] {
		if w.ForOrder() {
			return false
		}
	}
	return true
}

// Command is what the drone is told about the mission.
type Command struct {
	Mission Mission
	// ExpiresAt is the latest time at which a drone may accept the command; zero
	// means any time. A drone ignores a command once it has one of the same
	// mission that expires later.
	ExpiresAt time.Time
	Revoke    bool // give the mission up
}

// Revoked reports whether the drone was told, or is owed the word, to give the mission
// up: it failed, or it was recalled with nothing aboard.
func (m Mission) Revoked() bool {
	return m.Status == MissionFailed || m.RevokePending || !m.RevokePublishedAt.IsZero()
}

// Command is the message that the outbox owes the drone: the revocation of a
// failed or recalled mission, otherwise the mission itself. A revocation does not
// expire: most missions fail after their command has.
func (m Mission) Command() Command {
	if m.Revoked() {
		return Command{Mission: m, Revoke: true}
	}
	return Command{Mission: m, ExpiresAt: m.CommandExpiresAt}
}

// Owing reports whether the drone is owed a message about the mission.
func (m Mission) Owing() bool {
	return m.RevokePending || m.CommandPending
}

// PlannedKm is the length of the route in kilometres.
func (m Mission) PlannedKm() float64 {
	var metres float64
	for i := 1; i < len(m.Route); i++ {
		metres += m.Route[i-1].Position.DistanceMetres(m.Route[i].Position)
	}
	return metres / 1000
}
