package invariant

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

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
}
