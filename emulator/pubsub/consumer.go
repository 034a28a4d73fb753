package pubsubemu

import "time"

// consumer is one receiver of messages: a streaming pull for its whole life,
// or a single Pull call. Its fields are guarded by the subscription's lock.
type consumer struct {
	lease       time.Duration // ack deadline its deliveries start with; 0 takes the subscription's
	maxMessages int64         // outstanding messages allowed, 0 for no limit
	maxBytes    int64         // outstanding bytes allowed, 0 for no limit
	messages    int64         // outstanding now
	bytes       int64         // outstanding now
	keys        keyList       // ordering keys bound to it that have something to deliver
	waiting     bool          // in the backlog's line of idle consumers
	promised    bool          // woken for something it has not come for yet
	wake        chan struct{} // holds one token: look again
}

func newConsumer(maxMessages, maxBytes int64) *consumer {
	return &consumer{
		maxMessages: max(maxMessages, 0),
		maxBytes:    max(maxBytes, 0),
		wake:        make(chan struct{}, 1),
	}
}

// hasRoom says whether at least one more message may be handed over.
func (c *consumer) hasRoom() bool {
	return (c.maxMessages == 0 || c.messages < c.maxMessages) &&
		(c.maxBytes == 0 || c.bytes < c.maxBytes)
}

// fits says whether a message of this size may be handed over. One message
// larger than the whole allowance still passes alone, else it never would.
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
