package invariant

import (
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// History is what a run leaves behind. Read it when nothing is in flight any more.
type History struct {
	// Final documents.
	Drones   []domain.Drone
	Orders   []domain.Order
	Missions []domain.Mission
	// Warehouses has every state that a warehouse was in; nil skips what is checked by it.
	Warehouses []domain.Warehouse

	Events []domain.Event       // in any order
	Ledger []domain.LedgerEntry // in the order of their commits

	// Fences holds the highest fence of each depot, as in the control documents;
	// nil skips that check.
	Fences map[domain.DepotID]string

	Confirmed    []Message     // messages that a server confirmed to their senders
	DeadLetters  []DeadLetter  // messages that were dead-lettered
	Observations []Observation // samples of drone documents, in the order of reading
	Readings     []Reading     // samples of what the areas' cycles read

	// TopSpeedKmh is the drones' top speed, as the fleet is told; 0 skips what is checked by it.
	TopSpeedKmh float64

	// Unwritten is how much newer an acked report may be than its drone's document; see
	// policy.Foretelling. Zero: every report is written.
	Unwritten time.Duration

	// PlansUnregistered says that the fleet gives missions to drones that nobody registered.
	PlansUnregistered bool

	// ClockTolerance is how far the times of two servers' events may be out of
	// commit order: clock error plus the duration of a commit. Default
	// DefaultClockTolerance. Rules that need no clock ignore it.
	ClockTolerance time.Duration
}

// DefaultClockTolerance is the clock error that the fleet tolerates.
const DefaultClockTolerance = 5 * time.Second

// Message is a message that the server confirmed to its publisher: from then on it
// must have an effect or a recorded reason.
type Message struct {
	Topic string
	ID    string // the server's message id

	// At most one of these is set.
	DroneID    domain.DroneID    // of telemetry
	OrderID    domain.OrderID    // of an order or its cancellation
	DecisionID domain.DecisionID // of a decision

	Timestamp time.Time        // when it was measured, created or decided, by the sender's clock
	Where     *domain.Position // of telemetry, where the drone was; nil if it is unknown or made up
	Stop      *StopReport      // of telemetry that was measured at a stop for an order; may be nil
	Cancel    bool             // cancels the order

	// ContentHash identifies the order's content. SentAt is when it was handed to
	// the publisher, by the clock of publish times: no copy of the message has an
	// earlier publish time. Zero if that clock is unknown.
	ContentHash string
	SentAt      time.Time
}

// StopReport is what a drone did when it reported from a stop for an order, as the
// drone knows it.
type StopReport struct {
	MissionID domain.MissionID
	// Route is the mission's route as far as the drone has come, with the stop where
	// it stands as the last one.
	Route []domain.Waypoint
}

// DeadLetter is a message that was dead-lettered, with the reason.
type DeadLetter struct {
	MessageID string
	Reason    string
}

// Observation is the lastUpdate of a drone document when it was read.
type Observation struct {
	DroneID    domain.DroneID
	LastUpdate time.Time
}

// Reading is what the cycles of all areas read at one time.
type Reading struct {
	At      time.Time
	Waiting []domain.OrderID                    // all orders that wait for a drone
	Read    map[domain.DepotID][]domain.OrderID // by the depot that names the area
}

// Result is what a check found.
type Result struct {
	Checked    int         `json:"checked"` // facts that were compared
	Violations []Violation `json:"violations"`
}

// OK reports whether every rule held.
func (r Result) OK() bool { return len(r.Violations) == 0 }

// Violation is one fact that breaks one rule.
type Violation struct {
	Invariant string `json:"invariant"` // "I1" to "I12", or the id of a requirement
	Subject   string `json:"subject"`   // for example "drone DRONE-001"
	Detail    string `json:"detail"`
}

func (v Violation) String() string {
	return fmt.Sprintf("%s %s: %s", v.Invariant, v.Subject, v.Detail)
}
