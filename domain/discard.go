package domain

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Discard records that an operator gave up a refused message: what it was, why it was refused, who
// gave it up and why.
type Discard struct {
	ID          DiscardID
	Topic       string // the message's
	MessageID   string
	OrderingKey string
	PublishedAt time.Time
	Reason      string // of the refusal
	Error       string
	Attributes  []string // "name=value"

	// Payload is the message's data. The record may hold only its beginning;
	// Bytes and PayloadHash describe all of it.
	Payload     []byte
	Bytes       int
	PayloadHash string

	// OriginalBytes is the size of the original message, and AttributesDropped the number of
	// attributes it lost, if its dead letter could not hold all of it.
	OriginalBytes, AttributesDropped int

	DiscardedAt time.Time
	DiscardedBy string
	Why         string
}

// IsText reports whether a payload is readable text.
func IsText(payload []byte) bool {
	return utf8.Valid(payload) && !strings.ContainsFunc(string(payload), func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' && r != '\r'
	})
}
