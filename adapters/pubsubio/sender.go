package pubsubio

import (
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/policy"
)

// senders checks who a message speaks for.
type senders struct{ required bool }

// check refuses a message that does not come from name, the value of its field. The error, if
// any, is a policy.Rejection.
func (s senders) check(attrs map[string]string, field, name string) error {
	if !s.required {
		return nil
	}
	switch from, given := attrs[wire.AttrSender]; {
	case !given || from == "":
		return &policy.Rejection{Reason: policy.ReasonSenderMissing, Subject: name,
			Detail: "the message has no attribute " + wire.AttrSender + "; publish through a gateway that sets it"}
	case from != name:
		return &policy.Rejection{Reason: policy.ReasonSenderMismatch, Subject: name,
			Detail: field + " is not " + from + ", which sent the message"}
	}
	return nil
}
