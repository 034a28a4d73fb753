package domain

import (
	"slices"
	"time"
)

// Decision is the optimizer's request that a drone serve orders along a route, or charge or wait
// without orders.
type Decision struct {
	ID                          DecisionID
	CycleID                     CycleID
	Fence                       string    // of the depot's lock; empty: made without the lock
	DepotID                     DepotID   // whose lock issued the fence: the one that names the area; empty: the drone's home depot
	SnapshotTime                time.Time // read time of the snapshot it is based on
	DroneID                     DroneID
	OrderIDs                    []OrderID
	Route                       []Waypoint
	EstimatedBatteryConsumption float64 // percent of a full charge
	EstimatedDurationMinutes    float64
	PayloadHash                 string // identifies the message's content

	// AmendsMissionID is the mission that the decision changes under way, and AmendsRevision the
	// revision that it was planned on. Orders and route are then the whole new ones; the estimates
	// cover what is still to be flown. Empty: the decision makes a new mission.
	AmendsMissionID MissionID
	AmendsRevision  int
}

// Amends reports whether the decision changes a mission under way.
func (d Decision) Amends() bool { return d.AmendsMissionID != "" }

// Standby reports whether the decision gives a drone a mission without orders.
func (d Decision) Standby() bool { return len(d.OrderIDs) == 0 && Standby(d.Route) }

// Outcome says how a decision was judged; it never changes.
type Outcome string

const (
	OutcomeApplied  Outcome = "APPLIED"
	OutcomeRejected Outcome = "REJECTED"
)

// Outcomes lists every outcome of a decision.
var Outcomes = []Outcome{OutcomeApplied, OutcomeRejected}

// LedgerEntry records the outcome of one decision.
type LedgerEntry struct {
	ID           DecisionID
	Outcome      Outcome
	Reason       string // empty when applied
	Detail       string // for people
	Warning      string // what an applied decision would be rejected for if its stops were checked
	MissionID    MissionID
	DroneID      DroneID
	OrderIDs     []OrderID
	PayloadHash  string
	CycleID      CycleID
	Fence        string
	DepotID      DepotID // whose lock issued the fence; empty: the drone's home depot
	SnapshotTime time.Time
	MessageID    string
	PublishedAt  time.Time
	ReceivedAt   time.Time
	AppliedAt    time.Time

	// For a decision that amends: the request and, if it was applied, its result.
	AmendsMissionID MissionID
	AmendsRevision  int
	Revision        int       // that it gave the mission
	AddedIDs        []OrderID // orders that it adds
	ReleasedIDs     []OrderID // orders that it takes away
}

// Depot is where drones live and charge.
type Depot struct {
	ID            DepotID
	Name          string
	Position      Position
	Capacity      int
	ChargingSlots int    // how many drones charge at once; 0 means no limit is known
	Group         string // depots of different groups are never in one planning area; usually empty
	Drones        int    // about how many drones have it as their home; the optimizers count them
}

// Warehouse is where parcels are picked up.
type Warehouse struct {
	ID           WarehouseID
	Name         string
	Position     Position
	ProductTypes []string
	ColdStorage  bool
}

// Stocks reports whether the warehouse has a product.
func (w Warehouse) Stocks(product string) bool { return slices.Contains(w.ProductTypes, product) }

// Snapshot is everything a solve cycle sees, at one read time.
type Snapshot struct {
	CycleID    CycleID
	Fence      string
	Time       time.Time // the reader's clock
	ReadTime   time.Time // the store's read time
	Depot      Depot     // names the area, and its lock issues the fence
	Neighbours []Depot   // the other depots of the area, if any
	Beyond     []Depot   // the depots of the other areas
	Alone      bool      // the area has every depot, so its drones and orders are all there are
	Drones     []Drone
	Flights    []Flight // whose missions can be amended, and those on the way home
	Charging   []Drone  // without a mission, in slots of depots that have a limited number
	Orders     []Order
	Warehouses []Warehouse
}

// Flight is a drone on a mission that can be amended, or on its way home from a COMPLETED one.
type Flight struct {
	Drone   Drone
	Mission Mission
	Orders  []Order // those of the mission that are not delivered
	// ReachedAt is when the drone reached its latest stop, by its clock; zero if it has
	// reached none.
	ReachedAt time.Time
}

// Depots are the depots of the area, the one that names it first.
func (s Snapshot) Depots() []Depot {
	if s.Depot.ID == "" {
		return s.Neighbours
	}
	return append([]Depot{s.Depot}, s.Neighbours...)
}

// CycleOutcome is how a solve cycle ended. PUBLISHING is not an end: a later cycle with a higher
// fence shows that the cycle was cut off.
type CycleOutcome string

const (
	CyclePublishing CycleOutcome = "PUBLISHING"
	CyclePublished  CycleOutcome = "PUBLISHED"
	CycleEmpty      CycleOutcome = "EMPTY"      // nothing could be assigned
	CycleLeaseLost  CycleOutcome = "LEASE_LOST" // the lock was lost; nothing more was published
	CycleAborted    CycleOutcome = "ABORTED"    // the optimizer was told to stop; nothing more was published
	CycleFailed     CycleOutcome = "FAILED"
)

// CycleOutcomes lists every outcome of a cycle.
var CycleOutcomes = []CycleOutcome{CyclePublishing, CyclePublished, CycleEmpty, CycleLeaseLost, CycleAborted, CycleFailed}

// Cycle is one solve cycle as auditors see it.
type Cycle struct {
	ID           CycleID
	DepotID      DepotID   // names the area
	DepotIDs     []DepotID // the depots it planned for; empty: only DepotID
	Fence        string
	Holder       string
	SnapshotTime time.Time
	Drones       int // idle
	Flights      int // in flight, with missions that could be amended
	Orders       int
	Missions     int     // new ones published
	Amended      int     // missions under way that it published a change of
	Standby      int     // missions without orders that it published, new or changed
	Assigned     int     // orders of the new missions, and those that amendments add
	Exchanged    int     // orders that amendments take away, for other drones
	HandedOver   int     // unserved orders that other areas plan from now on
	Objective    string  // of the whole plan, readable: unserved by priority, kilometres
	DistanceKm   float64 // of the missions published
	Unserved     []UnservedOrder
	LeftOut      []string // malformed or unplannable drones, orders, depots and warehouses, and why
	StartedAt    time.Time
	ReadTook     time.Duration
	SolveTook    time.Duration
	PublishTook  time.Duration
	EndedAt      time.Time
	Outcome      CycleOutcome
	Detail       string
	// WithoutOrders is how many cycles that found no orders the record stands for, see
	// QuietCycleID; 0 for the record of one cycle.
	WithoutOrders int
}

// QuietCycleID is the id of the one record of all cycles of an area without orders. It counts them
// and holds the latest.
func QuietCycleID(area DepotID) CycleID { return CycleID("quiet-" + area) }

// PlannedFor reports whether the cycle planned for a depot.
func (c Cycle) PlannedFor(depot DepotID) bool {
	return c.DepotID == depot || slices.Contains(c.DepotIDs, depot)
}

// UnservedOrder is an order that a cycle did not assign, and why.
type UnservedOrder struct {
	OrderID OrderID
	Reason  string
	// Obstacles is zero if the drones were not counted.
	Obstacles Obstacles
}
