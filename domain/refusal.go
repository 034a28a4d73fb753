package domain

import "time"

// Refusal records that a message was refused for good, at the moment of its dead letter.
type Refusal struct {
	ID          RefusalID
	Topic       string // the message's
	MessageID   string
	OrderingKey string
	PublishedAt time.Time
	RefusedAt   time.Time
	Reason      string
	Error       string
	Bytes       int    // of the message's data
	ReplayOf    string // the message that this one repeated
	// OrderID and RequesterID are of a refused order, as far as they could be read.
	OrderID     OrderID
	RequesterID string

	// Count is how many messages this record stands for, in the minute that begins at
	// RefusedAt; 0 if it describes one.
	Count int

	// What an operator did with the dead letter, who it was, and when.
	Outcome   RefusalOutcome
	DecidedBy string
	DecidedAt time.Time
}

// RefusalOutcome says what became of a refused message.
type RefusalOutcome string

const (
	RefusalWaiting   RefusalOutcome = "WAITING" // its dead letter does
	RefusalReplayed  RefusalOutcome = "REPLAYED"
	RefusalDiscarded RefusalOutcome = "DISCARDED"
)
