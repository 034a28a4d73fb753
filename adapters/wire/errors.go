package wire

import (
	"fmt"
	"strings"
)

// Reasons under which undecodable and invalid messages are dead-lettered.
const (
	ReasonUndecodable = "UNDECODABLE"
	ReasonInvalid     = "INVALID"
)

// Problem is one bad field of a message and its fix.
type Problem struct {
	Field     string // path by wire names, for example "route[2].position.lat"
	Complaint string // what is wrong and the fix, for example "is 95; give -90 to 90"
}

// ValidationError says that a message was understood but breaks the contract.
// It lists every bad field.
type ValidationError struct {
	Message  string // kind of message, for example "telemetry"
	Problems []Problem
}

// Error is one line naming every bad field and its fix.
func (e *ValidationError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "invalid %s: ", e.Message)
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteString(" | ")
		}
		b.WriteString(p.Field)
		b.WriteByte(' ')
		b.WriteString(p.Complaint)
	}
	return b.String()
}

// Reason is ReasonInvalid.
func (e *ValidationError) Reason() string { return ReasonInvalid }

// UndecodableError says that a payload is not the expected message at all.
type UndecodableError struct {
	Message string // kind of message, for example "telemetry"
	Detail  string // one line: what is wrong and the fix
}

func (e *UndecodableError) Error() string {
	return fmt.Sprintf("undecodable %s: %s", e.Message, e.Detail)
}

// Reason is ReasonUndecodable.
func (e *UndecodableError) Reason() string { return ReasonUndecodable }

// oneLine flattens and bounds a library's error text. Its spacing is not stable, and it
// may quote bytes of the payload that attributes and traces cannot carry.
func oneLine(err error) string {
	const most = 240
	text := strings.ToValidUTF8(err.Error(), "\ufffd")
	text = strings.ReplaceAll(text, "\u00a0", " ")
	text = strings.TrimPrefix(strings.Join(strings.Fields(text), " "), "proto: ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
