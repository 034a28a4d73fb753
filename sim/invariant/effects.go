package invariant

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// effects checks I9: a message that a server confirmed to its sender was applied,
// was superseded by something newer, or is recorded as refused.
func (c *checker) effects() {
	refused := c.refused()
	decided := make(map[domain.DecisionID]bool, len(c.Ledger))
	decidedBy := make(map[string]bool, len(c.Ledger))
	for _, row := range c.Ledger {
		decided[row.ID] = true
		decidedBy[row.MessageID] = true
	}
	sent, conflicts, tooLate, foreign := c.firstSent(), c.conflicts(), c.cancelledTooLate(), c.foreign()
	for _, m := range c.Confirmed {
		if refused[m.ID] {
			c.result.Checked++
			continue
		}
		switch {
		case m.DroneID != "":
			c.telemetryEffect(m)
		case m.OrderID != "":
			c.orderEffect(m, tooLate[m.OrderID] || foreign(m))
			c.contentEffect(m, sent[contentOf(m)], conflicts[contentOf(m)] || conflicts[content{order: m.OrderID}] || foreign(m))
		case m.DecisionID != "":
			c.expect(decided[m.DecisionID] || decidedBy[m.ID], "I9", decision(m.DecisionID),
				"was accepted as message %s and has neither outcome nor dead letter", m.ID)
		default:
			c.expect(decidedBy[m.ID], "I9", messageID(m.ID), "was accepted and has neither effect nor dead letter")
		}
	}
}

// telemetryEffect checks that the drone's lastUpdate is at or after the report: a
// newer one may have superseded it. A report that said nothing new was not written.
func (c *checker) telemetryEffect(m Message) {
	d, exists := c.droneByID[m.DroneID]
	c.expect(exists && !d.LastUpdate.Before(m.Timestamp.Add(-c.Unwritten)), "I9", drone(m.DroneID),
		"its report of %s, message %s, was accepted; lastUpdate is %s and there is no dead letter",
		m.Timestamp.Format(time.RFC3339Nano), m.ID, d.LastUpdate.Format(time.RFC3339Nano))
}

// orderEffect checks that the order exists, and that a cancellation cancelled it or
// is recorded as refused: too late, or another requester's. That the parcel was aboard at
// some time proves nothing: the order may have been pending when the cancellation came.
func (c *checker) orderEffect(m Message, refused bool) {
	o, exists := c.orderByID[m.OrderID]
	ok := exists
	if m.Cancel {
		ok = exists && (o.Status == domain.OrderCancelled || refused)
	}
	c.expect(ok, "I9", order(m.OrderID), "message %s, cancellation: %v, was accepted; the order is %q, and there is neither a dead letter nor a refusal on record",
		m.ID, m.Cancel, o.Status)
}

// cancelledTooLate lists the orders with a recorded refusal of a requester's
// cancellation. The refusal of an operator's command does not count: it answers no
// message.
func (c *checker) cancelledTooLate() map[domain.OrderID]bool {
	refused := make(map[domain.OrderID]bool)
	for _, note := range c.notes {
		if note.Cause == domain.CauseOrder && (note.Reason == "CANCEL_TOO_LATE" || note.Reason == "ALREADY_DELIVERED") {
			refused[note.OrderID] = true
		}
	}
	return refused
}

// foreign tells which messages are recorded as another requester's. One that came before its
// order has no note: the order came to life in spite of it.
func (c *checker) foreign() func(Message) bool {
	refused, revived := make(map[content]bool), make(map[domain.OrderID]bool)
	for _, note := range c.notes {
		if note.Cause == domain.CauseOrder && note.Reason == "REQUESTER_MISMATCH" {
			refused[content{note.OrderID, text(note, "refusedContentHash")}] = true
		}
	}
	for _, e := range c.Events {
		if e.From == string(domain.OrderCancelled) && e.To == string(domain.OrderPending) {
			revived[e.OrderID] = true
		}
	}
	return func(m Message) bool {
		return refused[contentOf(m)] || m.Cancel && revived[m.OrderID] && c.orderByID[m.OrderID].ContentHash != m.ContentHash
	}
}

// content is one content of an order, however often it was published.
type content struct {
	order domain.OrderID
	hash  string
}

func contentOf(m Message) content { return content{m.OrderID, m.ContentHash} }

// firstSent is when each content was first sent. A cancellation may carry a
// content, but does not ask for it.
func (c *checker) firstSent() map[content]time.Time {
	first := make(map[content]time.Time)
	for _, m := range c.Confirmed {
		if m.Cancel {
			continue
		}
		if known, again := first[contentOf(m)]; !again || m.SentAt.Before(known) {
			first[contentOf(m)] = m.SentAt
		}
	}
	return first
}

// conflicts lists the contents recorded as refused. A PENDING order accepts new
// content and refuses none. Older versions wrote notes without the content's hash;
// such a note, whose hash is empty, may refer to any content.
func (c *checker) conflicts() map[content]bool {
	refused := make(map[content]bool)
	for _, note := range c.notes {
		if note.Reason == "ORDER_CONFLICT" {
			c.expect(note.From != string(domain.OrderPending), "I9", order(note.OrderID), "is PENDING and yet refused other content at %s", note.Time.Format(time.RFC3339Nano))
			refused[content{note.OrderID, text(note, "refusedContentHash")}] = true
		}
	}
	return refused
}

// contentEffect checks that the newest content, by publish time, won, whatever the
// order of messages. Exceptions are content that came too late, which is recorded,
// and content after its own cancellation, which leaves an order without content.
//
// The publish time of a content that lost is unknown, but not before it was first
// sent. So content is missing only if every copy was sent after the document's
// content was published.
func (c *checker) contentEffect(m Message, sent time.Time, conflict bool) {
	o, exists := c.orderByID[m.OrderID]
	if !exists || m.Cancel {
		return
	}
	sent = sent.Truncate(time.Microsecond) // as documents keep times
	ok := o.ContentHash == m.ContentHash || o.ContentHash == "" || conflict || !o.ContentPublishedAt.Before(sent)
	c.expect(ok, "I9", order(m.OrderID), "message %s was accepted, whose content was first sent %s; the order has other content, published %s, and no conflict is recorded",
		m.ID, sent.Format(time.RFC3339Nano), o.ContentPublishedAt.Format(time.RFC3339Nano))
}

// messageID is a Stringer for the subject of a violation.
type messageID string

func (m messageID) String() string { return "message " + string(m) }
