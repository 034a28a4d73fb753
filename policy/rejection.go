package policy

import (
	"errors"
	"fmt"
)

// Reason is the stable name of a refusal, as ledgers, dead letters, metrics
// and operators see it. Those against decisions stand beside their checks, in
// decision.go.
type Reason string

// Reasons for telemetry that is not applied.
const (
	ReasonStaleTelemetry  Reason = "STALE_TELEMETRY"  // not newer than what is known
	ReasonFutureTimestamp Reason = "FUTURE_TIMESTAMP" // would block the drone if applied
	ReasonTooManyStops    Reason = "TOO_MANY_STOPS"   // counts more stops than its mission has
	ReasonUnknownRevision Reason = "UNKNOWN_REVISION" // names a revision that its mission never had
)

// Reasons for order messages that change nothing.
const (
	ReasonDuplicateOrder  Reason = "DUPLICATE_ORDER"  // same content again
	ReasonOrderSuperseded Reason = "ORDER_SUPERSEDED" // older content than what was accepted since
	ReasonOrderConflict   Reason = "ORDER_CONFLICT"   // other content, too late to take it
	ReasonCancelTooLate   Reason = "CANCEL_TOO_LATE"  // the parcel is aboard
	// ReasonRequesterMismatch: it comes from another requester than the order.
	ReasonRequesterMismatch Reason = "REQUESTER_MISMATCH"
	ReasonAlreadyDelivered  Reason = "ALREADY_DELIVERED"
	ReasonAlreadyCancelled  Reason = "ALREADY_CANCELLED"
)

// Reasons for messages whose authenticated sender may not send them. They become dead
// letters.
const (
	ReasonSenderMismatch Reason = "SENDER_MISMATCH" // it speaks for another drone or requester
	ReasonSenderMissing  Reason = "SENDER_MISSING"  // nobody says who sent it
)

// Reasons for operator commands that cannot be carried out.
const (
	ReasonNotFound     Reason = "NOT_FOUND"
	ReasonNotPending   Reason = "NOT_PENDING"
	ReasonAlreadyHeld  Reason = "ALREADY_HELD"
	ReasonNotHeld      Reason = "NOT_HELD"
	ReasonNotEmergency Reason = "NOT_EMERGENCY"

	ReasonAlreadyGrounded Reason = "ALREADY_GROUNDED"
	ReasonNotGrounded     Reason = "NOT_GROUNDED"

	ReasonAlreadyAcknowledged Reason = "ALREADY_ACKNOWLEDGED"

	ReasonUnchanged      Reason = "UNCHANGED"       // the order has this priority or deadline
	ReasonDeadlinePassed Reason = "DEADLINE_PASSED" // the new deadline is not in the future

	ReasonMissionNotActive Reason = "MISSION_NOT_ACTIVE"
	ReasonAlreadyRecalled  Reason = "ALREADY_RECALLED"
)

// Rejection is a final answer: trying again cannot change it.
type Rejection struct {
	Reason  Reason
	Subject string // the entity it is about
	Detail  string // for people
}

// Error implements error.
func (r *Rejection) Error() string {
	if r.Detail == "" {
		return fmt.Sprintf("%s: %s", r.Subject, r.Reason)
	}
	return fmt.Sprintf("%s: %s: %s", r.Subject, r.Reason, r.Detail)
}

// Is matches any rejection of the same reason, so that errors.Is can ask for
// one.
func (r *Rejection) Is(target error) bool {
	other, ok := target.(*Rejection)
	return ok && other.Reason == r.Reason
}

// ReasonOf is the reason of the rejection in err, if there is one.
func ReasonOf(err error) (Reason, bool) {
	if r, ok := errors.AsType[*Rejection](err); ok {
		return r.Reason, true
	}
	return "", false
}

func reject(reason Reason, subject, format string, args ...any) error {
	return &Rejection{Reason: reason, Subject: subject, Detail: fmt.Sprintf(format, args...)}
}
