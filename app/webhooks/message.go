package webhooks

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// MaxBody bounds a message, in bytes.
const MaxBody = 64 << 10

// KindOf is the kind of message that an event of an order becomes, and whether it becomes one.
func KindOf(e domain.Event) (domain.WebhookKind, bool) {
	if e.Entity != domain.EntityOrder || e.ID == "" {
		return "", false
	}
	if e.Revision == 0 { // a note, which changes nothing
		return domain.WebhookRefused, e.Reason != string(policy.ReasonPickedUpAgain)
	}
	if e.From == e.To {
		held, _ := e.State["held"].(bool)
		late, _ := e.State["late"].(bool)
		waits := e.To == string(domain.OrderPending) && (held || late && e.Cause == domain.CauseSweeper)
		return domain.WebhookWaiting, waits
	}
	switch domain.OrderStatus(e.To) {
	case domain.OrderPending:
		if e.From == "" || e.From == string(domain.OrderCancelled) { // cancelled before it arrived, by somebody else
			return domain.WebhookAccepted, true
		}
		return domain.WebhookWaiting, true
	case domain.OrderAssigned:
		return domain.WebhookAssigned, true
	case domain.OrderInDelivery:
		return domain.WebhookPickedUp, true
	case domain.OrderDelivered:
		return domain.WebhookDelivered, true
	case domain.OrderCancelled:
		return domain.WebhookCancelled, true
	case domain.OrderSolving: // earlier versions knew it
	}
	return "", false
}

// Message is the body of a request.
type Message struct {
	Type      domain.WebhookKind `json:"type"`
	Timestamp time.Time          `json:"timestamp"` // of the event
	Data      Data               `json:"data"`
}

// Data says what became of an order. It has nothing of the parcel and no address, and no text that
// a person wrote.
type Data struct {
	OrderID        string     `json:"orderId,omitempty"`
	RequesterID    string     `json:"requesterId,omitempty"`
	Revision       int64      `json:"revision,omitempty"` // of the order; it rises with each change
	Status         string     `json:"status,omitempty"`
	PreviousStatus string     `json:"previousStatus,omitempty"`
	Reason         string     `json:"reason,omitempty"`
	Priority       string     `json:"priority,omitempty"`
	Deadline       *time.Time `json:"deadline,omitempty"`
	Late           bool       `json:"late,omitempty"`
	Held           bool       `json:"held,omitempty"`
	Warning        bool       `json:"warning,omitempty"` // no drone can deliver it as things stand
	DroneID        string     `json:"droneId,omitempty"`
	MissionID      string     `json:"missionId,omitempty"`
}

// code is a reason of the policies or of a dead letter, such as ORDER_CONFLICT.
var code = regexp.MustCompile(`^[A-Z][A-Z_]*$`)

// MessageOf is the message about an event. requester is the order's.
func MessageOf(kind domain.WebhookKind, e domain.Event, requester string) Message {
	m := Message{kind, e.Time.UTC(), Data{OrderID: e.ID, RequesterID: requester}}
	if code.MatchString(e.Reason) { // another text may have an address, or what an operator has written
		m.Data.Reason = e.Reason
	}
	if kind == domain.WebhookRefused { // perhaps another requester's request
		return m
	}
	m.Data.Revision, m.Data.Status, m.Data.PreviousStatus = e.Revision, e.To, e.From
	m.Data.DroneID, m.Data.MissionID = string(e.DroneID), string(e.MissionID)
	m.Data.Priority, _ = e.State["priority"].(string)
	m.Data.Late, _ = e.State["late"].(bool)
	m.Data.Held, _ = e.State["held"].(bool)
	m.Data.Warning = strings.Contains(e.Reason, policy.WarningText)
	if at, known := e.State["deadlineAt"].(time.Time); known {
		at = at.UTC()
		m.Data.Deadline = &at
	}
	return m
}

// RequesterOf is whom a message about an event is for: whoever made the order or, of a request that
// was refused, whoever sent that.
func RequesterOf(e domain.Event, order string) string {
	if sender, refused := e.State[domain.RefusedRequester].(string); refused {
		return sender
	}
	return order
}

// Body encodes a message.
func (m Message) Body() (string, error) {
	text, err := json.Marshal(m)
	if err == nil && len(text) > MaxBody {
		err = fmt.Errorf("message has %d bytes, more than %d", len(text), MaxBody)
	}
	return string(text), err
}
