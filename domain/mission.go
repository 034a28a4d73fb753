package domain

import (
	"slices"
	"time"
)

// Mission is a committed assignment: one drone, its orders if it has any, one route.
type Mission struct {
	ID       MissionID
	DroneID  DroneID
	OrderIDs []OrderID // those not withdrawn, and those that an amendment adds or takes away
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
	// DroppedStops are the stops of withdrawn orders, by their index in the route as first
	// commanded. A drone that has not heard of the shorter route still counts them.
	DroppedStops []int

	// RouteRevision numbers the route that is in force, from 1; 0 if a version without
	// amendments made the mission. Reports and decisions name it.
	RouteRevision int
	// Amendment is a change of the route that the drone has not named yet; nil for none. The value
	// is never modified. A mission that ends meanwhile keeps it, because late reports may show that
	// the drone flew it.
	Amendment *Amendment
	// EarlierRoutes are the revisions that are no longer in force or became void, oldest first, at
	// most MaxEarlierRoutes.
	EarlierRoutes []EarlierRoute
	AmendedAt     time.Time // when the amendment in force was decided; zero for none

	// RecalledAt is when an operator recalled the mission, zero for never, and
	// RecallReason why.
	RecalledAt   time.Time
	RecallReason string

	// The outbox: the first State Manager that sees a pending command or revocation publishes it.
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
	// Track is where the drone was when the mission was made or, once the mission has ended, what
	// the drone can have done by then; nil of missions that began under an earlier version.
	Track *Track
}

// Amendment is a decided change of an ACTIVE mission. Until the drone names its
// revision, the drone may fly either route. It expires with the mission's command.
type Amendment struct {
	Revision     int
	Route        []Waypoint // the whole new one
	DroppedStops []int      // of orders withdrawn since
	AddedIDs     []OrderID  // bound at once
	ReleasedIDs  []OrderID  // stay with the drone until it names the revision

	EstimatedBatteryConsumption float64 // percent of a full charge, from the decision on
	EstimatedDurationMinutes    float64

	DecisionID DecisionID
	DecidedAt  time.Time
}

// EarlierRoute is what is kept of a revision: how many stops it shares with the beginning of the
// route in force, counted as commanded.
type EarlierRoute struct {
	Revision int
	Shared   int
}

// MaxEarlierRoutes bounds Mission.EarlierRoutes.
const MaxEarlierRoutes = 8

// LatestRevision is the highest number that a route of the mission was given.
func (m Mission) LatestRevision() int {
	latest := m.RouteRevision
	if m.Amendment != nil {
		latest = max(latest, m.Amendment.Revision)
	}
	for _, e := range m.EarlierRoutes {
		latest = max(latest, e.Revision)
	}
	return latest
}

// EveryOrder lists the mission's orders and those that its amendment adds. An ended mission no
// longer lists the latter in OrderIDs.
func (m Mission) EveryOrder() []OrderID {
	ids := slices.Clone(m.OrderIDs)
	if m.Amendment != nil {
		for _, id := range m.Amendment.AddedIDs {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// StopsAhead lists the stops that the drone may still fly to: those of the route that are
// not reached, and those of an amendment that it has not named.
func (m Mission) StopsAhead() []Waypoint {
	reached := min(m.ReachedStops, len(m.Route))
	ahead := slices.Clone(m.Route[reached:])
	if m.Amendment == nil {
		return ahead
	}
	for i, stop := range m.Amendment.Route {
		behind := i < reached && m.Route[i].Type == stop.Type && m.Route[i].OrderID == stop.OrderID
		if !behind {
			ahead = append(ahead, stop)
		}
	}
	return ahead
}

// ExpectedAt is when the mission plans to deliver an order, or will once its drone has named the
// amendment that adds it; zero if it does not.
func (m Mission) ExpectedAt(id OrderID) time.Time {
	route := m.Route
	if m.Amendment != nil {
		route = slices.Concat(route, m.Amendment.Route)
	}
	for _, w := range route {
		if w.OrderID == id && w.Type == WaypointHospitalDelivery {
			return w.ETA
		}
	}
	return time.Time{}
}

// AwaitsAdded reports whether an amendment adds orders that the drone may still fly to.
func (m Mission) AwaitsAdded() bool { return m.Amendment != nil && len(m.Amendment.AddedIDs) > 0 }

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

	ChargeToPercent float64   // of a CHARGE: the level to leave with
	WaitUntil       time.Time // of a WAIT: when it ends
}

// ForOrder reports whether the stop picks up or delivers an order.
func (w Waypoint) ForOrder() bool {
	return w.Type == WaypointWarehousePickup || w.Type == WaypointHospitalDelivery
}

// Duty reports whether the drone charges or waits at the stop.
func (w Waypoint) Duty() bool { return w.Type == WaypointCharge || w.Type == WaypointWait }

// Standby reports whether a route serves no order: its drone flies somewhere to charge or to
// wait, and gives way to orders.
func Standby(route []Waypoint) bool {
	return slices.ContainsFunc(route, Waypoint.Duty) && !slices.ContainsFunc(route, Waypoint.ForOrder)
}

// Standby reports whether the mission's route serves no order.
func (m Mission) Standby() bool { return Standby(m.Route) }

// LastOrderStopReached reports whether nothing is left to pick up or deliver. In a mission without
// orders it reports whether no stop is left to charge or wait at.
func (m Mission) LastOrderStopReached() bool {
	standby := m.Standby()
	for _, w := range m.Route[min(m.ReachedStops, len(m.Route)):] {
		if w.ForOrder() || standby && w.Duty() {
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

// Revoked reports whether the drone was told, or must be told, to give the mission up: it failed,
// or it was recalled with nothing aboard.
func (m Mission) Revoked() bool {
	return m.Status == MissionFailed || m.RevokePending || !m.RevokePublishedAt.IsZero()
}

// Command is the message that the outbox sends to the drone: the revocation of a failed or recalled
// mission, otherwise the mission itself. A revocation does not expire, because most missions fail
// after their command has expired.
func (m Mission) Command() Command {
	if m.Revoked() {
		return Command{Mission: m, Revoke: true}
	}
	return Command{Mission: m.commanded(), ExpiresAt: m.CommandExpiresAt}
}

// commanded is the mission as its drone is told to fly it: as amended.
func (m Mission) commanded() Mission {
	a := m.Amendment
	if a == nil || m.Status != MissionActive {
		return m
	}
	m.RouteRevision, m.Route, m.DroppedStops = a.Revision, a.Route, a.DroppedStops
	m.OrderIDs = slices.DeleteFunc(slices.Clone(m.OrderIDs), func(id OrderID) bool { return slices.Contains(a.ReleasedIDs, id) })
	m.EstimatedBatteryConsumption, m.EstimatedDurationMinutes = a.EstimatedBatteryConsumption, a.EstimatedDurationMinutes
	return m
}

// Unconfirmed is what a drone was told, or will be told, about its mission and has not confirmed by a
// report.
type Unconfirmed string

const (
	UnconfirmedMission   Unconfirmed = "MISSION"   // to fly it
	UnconfirmedAmendment Unconfirmed = "AMENDMENT" // to fly another route
	UnconfirmedRecall    Unconfirmed = "RECALL"    // to give it up, once nothing is aboard
)

// Unconfirmeds lists every Unconfirmed.
var Unconfirmeds = []Unconfirmed{UnconfirmedMission, UnconfirmedAmendment, UnconfirmedRecall}

// Unconfirmed is what the mission's drone has not confirmed, as far as the mission tells; "" for
// nothing. Whether the drone has named the mission at all, its own document says.
func (m Mission) Unconfirmed() Unconfirmed {
	switch {
	case m.Status != MissionActive:
	case !m.RecalledAt.IsZero():
		return UnconfirmedRecall
	case m.Amendment != nil:
		return UnconfirmedAmendment
	}
	return ""
}

// Owing reports whether the outbox has a message for the drone about the mission.
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
