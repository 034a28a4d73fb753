package invariant

import (
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// History is what a run leaves behind, read when nothing is in flight any more.
type History struct {
	// Final documents.
	Drones   []domain.Drone
	Orders   []domain.Order
	Missions []domain.Mission

	Events []domain.Event       // in any order
	Ledger []domain.LedgerEntry // in the order of their commits

	// Fences are the highest fences the control documents hold, by depot; nil
	// leaves them out.
	Fences map[domain.DepotID]string

	Confirmed    []Message     // messages that a server confirmed to their senders
	DeadLetters  []DeadLetter  // those refused for good
	Observations []Observation // samples of drone documents, as they were read

	// ClockTolerance is how much later an event's time may be than its commit
	// seems to another server: clock error plus the time a commit took.
	// Default DefaultClockTolerance. Rules that need no clock ignore it.
	ClockTolerance time.Duration
}

// DefaultClockTolerance is the fleet's allowance for clock error.
const DefaultClockTolerance = 5 * time.Second

// Message is a message that a publisher saw confirmed by the server: from then
// on somebody owes it an effect or a recorded reason.
type Message struct {
	Topic string
	ID    string // the server's message id

	// What it is about: exactly one of these.
	DroneID    domain.DroneID    // of telemetry
	OrderID    domain.OrderID    // of an order or its cancellation
	DecisionID domain.DecisionID // of a decision

	Timestamp time.Time // the sender's clock: measured, created or decided
	Cancel    bool      // of an order: it asks to cancel

	// ContentHash is what an order asks for, and SentAt when it was handed over
	// to be published, by the clock that dates publishing: no copy of the
	// message is dated before. Zero if that clock is not known.
	ContentHash string
	SentAt      time.Time
}

// DeadLetter is a message that was refused for good, with its reason.
type DeadLetter struct {
	MessageID string
	Reason    string
}

// Observation is a drone document's lastUpdate as somebody read it.
type Observation struct {
	DroneID    domain.DroneID
	LastUpdate time.Time
}

// Report is the outcome of a check.
type Report struct {
	Checked    int         `json:"checked"` // facts that were compared
	Violations []Violation `json:"violations"`
}

// OK reports whether every rule held.
func (r Report) OK() bool { return len(r.Violations) == 0 }

// Violation is one fact that breaks one rule.
type Violation struct {
	Invariant string `json:"invariant"` // "I1" to "I9"
	Subject   string `json:"subject"`   // for example "drone DRONE-001"
	Detail    string `json:"detail"`
}

func (v Violation) String() string {
	return fmt.Sprintf("%s %s: %s", v.Invariant, v.Subject, v.Detail)
}
