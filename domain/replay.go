package domain

import "time"

// Replay records that an operator published a refused message again: which message, why it was
// refused, and the ids that it was given since.
type Replay struct {
	ID            ReplayID
	Topic         string // the message's
	MessageID     string // of the message that was refused
	NewMessageIDs []string
	OrderingKey   string
	PublishedAt   time.Time
	Reason        string // of the refusal
	Error         string
	// Subject and SubjectID name what the message is about, such as an order, if it
	// could be decoded when it was replayed.
	Subject, SubjectID string

	ReplayedAt time.Time // the latest
	ReplayedBy string
}
