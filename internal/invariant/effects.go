package invariant

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// effects is I9: what a server confirmed to a sender was applied, was overtaken
// by something newer, or is recorded as refused.
func (c *checker) effects() {
	refused := c.refused()
	decided := make(map[domain.DecisionID]bool, len(c.Ledger))
	decidedBy := make(map[string]bool, len(c.Ledger))
	for _, row := range c.Ledger {
		decided[row.ID] = true
		decidedBy[row.MessageID] = true
	}
	for _, m := range c.Journal {
		if refused[m.ID] {
			c.report.Checked++
			continue
		}
		switch {
		case m.DroneID != "":
			c.telemetryEffect(m)
		case m.OrderID != "":
			c.orderEffect(m)
		case m.DecisionID != "":
			c.expect(decided[m.DecisionID] || decidedBy[m.ID], "I9", decision(m.DecisionID),
				"was accepted as message %s and has neither outcome nor dead letter", m.ID)
		default:
			c.expect(decidedBy[m.ID], "I9", messageID(m.ID), "was accepted and has neither effect nor dead letter")
		}
	}
}

// telemetryEffect: a newer report may have overtaken it, so that the drone's
// lastUpdate is at or beyond it.
func (c *checker) telemetryEffect(m Message) {
	d, exists := c.droneByID[m.DroneID]
	c.expect(exists && !d.LastUpdate.Before(m.Timestamp), "I9", drone(m.DroneID),
		"its report of %s, message %s, was accepted; lastUpdate is %s and there is no dead letter",
		m.Timestamp.Format(time.RFC3339Nano), m.ID, d.LastUpdate.Format(time.RFC3339Nano))
}

// orderEffect: an order exists; a cancellation came too late or cancelled.
func (c *checker) orderEffect(m Message) {
	o, exists := c.orderByID[m.OrderID]
	ok := exists
	if m.Cancel {
		tooLate := c.wasInDelivery(m.OrderID)
		ok = exists && (o.Status == domain.OrderCancelled || o.Status == domain.OrderDelivered || tooLate)
	}
	c.expect(ok, "I9", order(m.OrderID), "message %s, cancellation: %v, was accepted; the order is %q and there is no dead letter",
		m.ID, m.Cancel, o.Status)
}

func (c *checker) wasInDelivery(id domain.OrderID) bool {
	for _, e := range c.events[order(id)] {
		if e.To == string(domain.OrderInDelivery) {
			return true
		}
	}
	return false
}

// messageID is a Stringer for the subject of a violation.
type messageID string

func (m messageID) String() string { return "message " + string(m) }
