package model

import (
	"fmt"
	"strings"
	"time"
)

// StopKind says what a drone does at a stop.
type StopKind int

// Stop kinds; the numbers are those of the wire's WaypointType.
const (
	DepotStart      StopKind = 1
	WarehousePickup StopKind = 2
	Delivery        StopKind = 3
	DepotReturn     StopKind = 4
	Charge          StopKind = 50
	Wait            StopKind = 51
)

// String returns the wire's name.
func (k StopKind) String() string {
	switch k {
	case DepotStart:
		return "DEPOT_START"
	case WarehousePickup:
		return "WAREHOUSE_PICKUP"
	case Delivery:
		return "HOSPITAL_DELIVERY"
	case DepotReturn:
		return "DEPOT_RETURN"
	case Charge:
		return "CHARGE"
	case Wait:
		return "WAIT"
	}
	return "UNSPECIFIED"
}

// Stop is one waypoint with the state on arrival.
type Stop struct {
	Kind StopKind `json:"kind"`
	At   Location `json:"at"`
	// OrderID is set on pickups and deliveries.
	OrderID string `json:"orderId,omitempty"`
	// WarehouseID is set on pickups at a warehouse; a pickup at the order's own
	// point has none.
	WarehouseID string `json:"warehouseId,omitempty"`
	// ETA is the arrival, before any service.
	ETA time.Time `json:"eta"`
	// BatteryPercent is the charge on arrival.
	BatteryPercent float64 `json:"batteryPercent"`
	// DistanceKm is flown since the start of the route.
	DistanceKm float64 `json:"distanceKm"`
	// ChargeToPercent is the level with which a drone leaves a Charge.
	ChargeToPercent float64 `json:"chargeToPercent,omitempty"`
	// Until is when a Wait ends.
	Until time.Time `json:"until,omitzero"`
}

// Route is one drone's mission: DepotStart (where the drone is now), pickups
// and deliveries, DepotReturn.
type Route struct {
	DroneID           string        `json:"droneId"`
	Stops             []Stop        `json:"stops"`
	BatteryUsePercent float64       `json:"batteryUsePercent"`
	Duration          time.Duration `json:"duration"`
	DistanceKm        float64       `json:"distanceKm"`
}

// Amendment is a changed rest of a mission under way: its route has the stops ahead,
// from where the drone is at Problem.Now.
type Amendment struct {
	Route
	MissionID string `json:"missionId"`
	Revision  int    `json:"revision"` // that it changes
	// AddedIDs are the orders that it adds, in the order of planning.
	AddedIDs []string `json:"addedIds"`
	// ReleasedIDs are the orders that it takes away. Their parcels are not fetched; they stay
	// with the drone until it has taken the amendment.
	ReleasedIDs []string `json:"releasedIds,omitempty"`
	// Detour and DetourKm are how much longer the rest has become; negative if shorter.
	Detour   time.Duration `json:"detour"`
	DetourKm float64       `json:"detourKm"`
}

// Standby is a mission without orders: the drone flies somewhere, charges or waits there,
// and flies home. It gives way to any order. Its stops are a Charge or a Wait and the
// DepotReturn, after a DepotStart if the drone has no mission yet.
type Standby struct {
	Route
	// MissionID and Revision are those of the StandbyMission that it changes; empty for a new
	// mission.
	MissionID string `json:"missionId,omitempty"`
	Revision  int    `json:"revision,omitempty"`
}

// OrderIDs returns the orders of the route in the order of their delivery.
func (r Route) OrderIDs() []string {
	var ids []string
	for _, s := range r.Stops {
		if s.Kind == Delivery {
			ids = append(ids, s.OrderID)
		}
	}
	return ids
}

// Reason is a stable name for why an order is not in any route.
type Reason string

// Reasons for an unserved order.
const (
	// NoCompatibleWarehouse: no warehouse stocks the product (cold if needed).
	NoCompatibleWarehouse Reason = "no_compatible_warehouse"
	// OutOfRange: even a fully charged drone of this fleet, from where it is,
	// could not fetch, deliver and come home.
	OutOfRange Reason = "out_of_range"
	// NoDroneFree: feasible, but the drones serve other orders better now, or none
	// has the charge.
	NoDroneFree Reason = "no_drone_free"
	// KeptForCritical: feasible, and drones are free, but they are kept for urgent orders to
	// come. Only the planner, which keeps drones in reserve, gives this reason.
	KeptForCritical Reason = "kept_for_critical"
	// WaitsForBetterRoute: the free drones would be late; one that returns soon can
	// still be in time. The solver never gives this reason either.
	WaitsForBetterRoute Reason = "waits_for_better_route"
	// DeadlineUnreachable: no drone could still be in time, and none was free to
	// deliver late.
	DeadlineUnreachable Reason = "deadline_unreachable"
	// OverCapacity: heavier than any drone of the problem may carry.
	OverCapacity Reason = "over_capacity"
	// NoDroneAllowed: the order is pinned to a drone that is not among those of the
	// problem, or forbidden to all of them, or none that may carry it has the cold box
	// that it needs.
	NoDroneAllowed Reason = "no_drone_allowed"
	// InvalidInput: Unserved.Detail names the field.
	InvalidInput Reason = "invalid_input"
)

// Unserved is an order that no route carries.
type Unserved struct {
	OrderID string `json:"orderId"`
	// Index is the order's index in Problem.Orders (ids may be duplicated).
	Index  int    `json:"index"`
	Reason Reason `json:"reason"`
	// Detail names the bad field, or is empty.
	Detail string `json:"detail,omitempty"`
}

// String is the reason with its detail, as cycles record it.
func (u Unserved) String() string {
	if u.Detail == "" {
		return string(u.Reason)
	}
	return string(u.Reason) + ": " + u.Detail
}

// Ignored is a drone, depot or warehouse that was left out of the problem.
type Ignored struct {
	Kind   string `json:"kind"` // "drone", "depot" or "warehouse"
	ID     string `json:"id"`
	Index  int    `json:"index"`
	Detail string `json:"detail"`
}

// LateTolerance is how far past the deadline an arrival still counts as in time.
// It covers rounding only.
const LateTolerance = 5 * time.Millisecond

// RankCount is the number of service ranks, see Objective.
const RankCount = 2 * PriorityCount

// Objective is what a plan is worth; Less orders objectives.
//
// The rank of an order: 0, 1, 2 for CRITICAL, HIGH, STANDARD orders that some
// drone could still deliver in time; 3, 4, 5 for the same when it is too late
// for every drone, less one for each Params.AgingStep it is overdue. An order
// served after its deadline although it was not too late counts as missed in
// its own rank and as served in the late one.
type Objective struct {
	// MissedByRank counts orders not served as their rank demands.
	MissedByRank [RankCount]int `json:"missedByRank"`
	// Unserved counts, by Priority, the valid orders in no route.
	Unserved [PriorityCount]int `json:"unserved"`
	// Late counts, by Priority, the orders served after their deadline.
	Late       [PriorityCount]int `json:"late"`
	DistanceKm float64            `json:"distanceKm"`
	LongestKm  float64            `json:"longestKm"`
}

// Less reports whether o is better: fewer missed orders rank by rank, then fewer
// unserved, then less distance. No distance outweighs an order.
func (o Objective) Less(p Objective) bool {
	for r := range o.MissedByRank {
		if o.MissedByRank[r] != p.MissedByRank[r] {
			return o.MissedByRank[r] < p.MissedByRank[r]
		}
	}
	for c := PriorityCount - 1; c >= 0; c-- {
		if o.Unserved[c] != p.Unserved[c] {
			return o.Unserved[c] < p.Unserved[c]
		}
	}
	return o.DistanceKm < p.DistanceKm
}

// UnservedTotal is the number of valid orders in no route.
func (o Objective) UnservedTotal() int {
	n := 0
	for _, c := range o.Unserved {
		n += c
	}
	return n
}

// Stats say how the plan was found.
type Stats struct {
	Iterations int64         `json:"iterations"`
	Elapsed    time.Duration `json:"elapsed"`
	FirstPlan  time.Duration `json:"firstPlan"`
	Clusters   int           `json:"clusters"`
}

// Plan is the solver's answer: every valid order is in exactly one route or in
// Unserved.
type Plan struct {
	Routes []Route `json:"routes"`
	// Amendments change missions under way, at most one for each flight.
	Amendments []Amendment `json:"amendments,omitempty"`
	// Standby are missions without orders, for drones that serve none in this plan. They do
	// not count in the objective.
	Standby   []Standby  `json:"standby,omitempty"`
	Unserved  []Unserved `json:"unserved"`
	Ignored   []Ignored  `json:"ignored,omitempty"`
	Objective Objective  `json:"objective"`
	Stats     Stats      `json:"stats"`
}

// ReferenceScalar is the cost of the reference optimizer, in metres: distance,
// 100 x the longest route, 200 000 for each order left out. It serves comparisons
// only.
func (o Objective) ReferenceScalar() float64 {
	return 1000*o.DistanceKm + 100*1000*o.LongestKm + 200_000*float64(o.UnservedTotal())
}

// LateTotal is the number of orders served after their deadline.
func (o Objective) LateTotal() int {
	n := 0
	for _, c := range o.Late {
		n += c
	}
	return n
}

// UnservedByPriority names the counts of unserved orders for people, the most
// urgent first: "0 CRITICAL, 2 HIGH, 5 STANDARD".
func (o Objective) UnservedByPriority() string {
	var counts []string
	for p := PriorityCount - 1; p >= 0; p-- {
		counts = append(counts, fmt.Sprintf("%d %s", o.Unserved[p], Priority(p)))
	}
	return strings.Join(counts, ", ")
}
