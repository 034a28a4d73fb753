package pubsubemu

import (
	"fmt"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"
)

// State says what an unacked message waits for.
type State string

// The states of an unacked message.
const (
	Ready      State = "ready"       // for a subscriber or, with an ordering key, for earlier messages of the key
	Leased     State = "leased"      // for an ack: a subscriber has it until Until
	BackingOff State = "backing off" // for the end of its backoff or of a delay fault, at Until
	Forwarding State = "forwarding"  // for its way to the dead-letter topic
)

// BacklogMessage is one unacked message of a subscription.
type BacklogMessage struct {
	Message  *pubsubpb.PubsubMessage
	State    State
	Attempts int       // delivery attempts that ended without an ack, and the one under way
	Until    time.Time // on Clock; zero unless Leased or BackingOff
}

// Backlog lists the unacked messages of a subscription, given by its full name, in
// the order in which they arrived. It delivers nothing. It fails with NOT_FOUND
// when there is no such subscription.
func (s *Server) Backlog(subscription string) ([]BacklogMessage, error) {
	sub, err := s.subscription("subscription", subscription)
	if err != nil {
		return nil, err
	}
	sub.catchUp()
	out, wires := sub.unackedStates()
	for i, wire := range wires {
		out[i].Message = &pubsubpb.PubsubMessage{}
		if err := proto.Unmarshal(wire, out[i].Message); err != nil {
			return nil, fmt.Errorf("decode a message of %s: %w", subscription, err)
		}
	}
	return out, nil
}

// unackedStates returns the unacked messages and, beside them, their encodings.
func (sub *subscription) unackedStates() (out []BacklogMessage, wires [][]byte) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	for e := sub.backlog.all.head; e != nil; e = sub.backlog.all.after(e) {
		m := BacklogMessage{Attempts: int(e.failures)}
		switch e.state {
		case stateReady:
			m.State = Ready
		case stateLeased:
			m.State, m.Until = Leased, time.Unix(0, e.due)
			m.Attempts++
		case stateDelayed:
			m.State, m.Until = BackingOff, time.Unix(0, e.due)
		case stateForwarding:
			m.State = Forwarding
		default: // acked, and retained or waiting for an earlier one of its key
			continue
		}
		out, wires = append(out, m), append(wires, e.msg.wire)
	}
	return out, wires
}
