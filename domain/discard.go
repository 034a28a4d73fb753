package domain

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Discard records that an operator gave up a message that was refused for good:
// what it was, why it was refused, and who gave it up and why.
type Discard struct {
	ID          DiscardID
	Topic       string // the message's
	MessageID   string
	OrderingKey string
	PublishedAt time.Time
	Reason      string // of the refusal
	Error       string
	Attributes  []string // "name=value"

	// Payload is what there was of the message's. In the record it may be cut;
	// Bytes and PayloadHash are of all of it.
	Payload     []byte
	Bytes       int
	PayloadHash string

	// OriginalBytes is how many bytes the message had, and AttributesDropped how
	// many attributes more, if its dead letter could not hold all of it.
	OriginalBytes, AttributesDropped int

	DiscardedAt time.Time
	DiscardedBy string
	Why         string
}

// IsText reports whether people can read a payload as it is.
func IsText(payload []byte) bool {
	return utf8.Valid(payload) && !strings.ContainsFunc(string(payload), func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' && r != '\r'
	})
}
