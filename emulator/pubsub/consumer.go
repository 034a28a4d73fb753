package pubsubemu

import "time"

// consumer is one receiver of messages: a streaming pull for as long as it lasts, or
// a single Pull call. The subscription's lock guards its fields.
type consumer struct {
	lease       time.Duration // ack deadline its deliveries start with; 0 takes the subscription's
	maxMessages int64         // outstanding messages allowed, 0 for no limit
	maxBytes    int64         // outstanding bytes allowed, 0 for no limit
	messages    int64         // outstanding now
	bytes       int64         // outstanding now
	keys        keyList       // ordering keys bound to it with something to deliver
	halfClosed  bool          // its client takes nothing more, and may still ack what it has
	waiting     bool          // among the backlog's idle consumers
	promised    bool          // was woken and has not taken yet
	wake        chan struct{} // holds one token: look again
}

func newConsumer(maxMessages, maxBytes int64) *consumer {
	return &consumer{
		maxMessages: max(maxMessages, 0),
		maxBytes:    max(maxBytes, 0),
		wake:        make(chan struct{}, 1),
	}
}

// hasRoom says whether at least one more message may be delivered.
func (c *consumer) hasRoom() bool {
	return (c.maxMessages == 0 || c.messages < c.maxMessages) &&
		(c.maxBytes == 0 || c.bytes < c.maxBytes)
}

// fits says whether a message of this size may be delivered. A message larger than
// the whole allowance passes when it is alone; otherwise it never would.
func (c *consumer) fits(size int64) bool {
	if c.maxMessages > 0 && c.messages >= c.maxMessages {
		return false
	}
	return c.maxBytes == 0 || c.messages == 0 || c.bytes+size <= c.maxBytes
}

// nudge makes the consumer look for messages again.
func (c *consumer) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
