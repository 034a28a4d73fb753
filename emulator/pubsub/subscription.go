package pubsubemu

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"

	"github.com/dronefleet/dronefleet/emulator/pubsub/internal/filter"
)

// subscription couples a backlog with its lock, its timer and its settings.
type subscription struct {
	server   *Server
	name     string
	holder   uint64 // its id in the journal
	instance uint64 // tells subscriptions of one name apart in ack ids
	ackIDs   string // prefix of its ack ids
	filter   filter.Filter

	gone  chan struct{} // closed when deleted, detached or shut down
	rearm chan struct{} // holds one token: something is due earlier than armed

	mu      sync.Mutex
	config  *pubsubpb.Subscription
	backlog *backlog
	copies  map[uint64]uint64 // lease of each extra copy that a fault delivered, by the number in its ack id
	topic   *topic            // nil once the topic is deleted or the subscription detached
	armed   int64             // when the timer loop wakes, in Clock nanoseconds
	ended   error             // why gone is closed
}

// newSubscription builds a subscription from checked, completed settings.
func (s *Server) newSubscription(config *pubsubpb.Subscription, t *topic, f filter.Filter, holder uint64) *subscription {
	instance := s.instances + s.lastInstance.Add(1)
	sub := &subscription{
		server:   s,
		name:     config.Name,
		holder:   holder,
		instance: instance,
		ackIDs:   ackIDPrefix(instance),
		filter:   f,
		gone:     make(chan struct{}),
		rearm:    make(chan struct{}, 1),
		config:   config,
		backlog:  newBacklog(rulesOf(config)),
		topic:    t,
		armed:    math.MaxInt64,
	}
	sub.backlog.tracked = s.journal != nil
	return sub
}

func rulesOf(config *pubsubpb.Subscription) rules {
	r := rules{
		ackDeadline: time.Duration(config.AckDeadlineSeconds) * time.Second,
		retention:   config.MessageRetentionDuration.AsDuration(),
		retainAcked: config.RetainAckedMessages,
		ordered:     config.EnableMessageOrdering,
		exactlyOnce: config.EnableExactlyOnceDelivery,
	}
	if p := config.DeadLetterPolicy; p != nil {
		r.maxAttempts = p.MaxDeliveryAttempts
	}
	if p := config.RetryPolicy; p != nil {
		r.retry = true
		r.minBackoff, r.maxBackoff = p.MinimumBackoff.AsDuration(), p.MaximumBackoff.AsDuration()
	}
	return r
}

// run is the timer loop: it expires leases, ends backoffs and drops messages
// past their retention.
func (sub *subscription) run() {
	for {
		sub.mu.Lock()
		sub.backlog.advance(sub.server.now())
		due, ok := sub.backlog.nextDue()
		if !ok {
			due = math.MaxInt64
		}
		sub.armed = due
		sub.unlock()

		var fire <-chan time.Time
		stop := func() bool { return false }
		if ok {
			timer := sub.server.timerAt(due)
			fire, stop = timer.Chan(), timer.Stop
		}
		select {
		case <-fire:
		case <-sub.rearm:
		case <-sub.gone:
			stop()
			return
		}
		stop()
	}
}

// unlock releases the lock after a change of the backlog and acts on the change: it
// sets an earlier timer, tells the journal and forwards dead letters.
func (sub *subscription) unlock() {
	b := sub.backlog
	if due, ok := b.nextDue(); ok && due < sub.armed {
		sub.armed = due
		select {
		case sub.rearm <- struct{}{}:
		default:
		}
	}
	if c := b.changes; b.tracked && len(c.revived)+len(c.acked)+len(c.dropped) > 0 {
		sub.server.journal.Settle(sub.holder, c.revived, c.acked, c.dropped)
		b.changes = holdChanges{}
	}
	forwards, config := b.forwards, sub.config
	b.forwards = nil
	// A request gives up the messages of a key from the last to the first.
	slices.SortFunc(forwards, func(a, b *entry) int { return cmp.Compare(a.arrival, b.arrival) })
	sub.mu.Unlock()
	if len(forwards) > 0 {
		sub.deadLetter(config, forwards)
	}
}

// hold adds published messages to the backlog.
func (sub *subscription) hold(msgs []*message) {
	sub.mu.Lock()
	defer sub.unlock()
	if sub.ended == nil {
		sub.backlog.add(msgs)
		sub.holdBack(msgs)
		sub.backlog.wakeIdle()
	}
}

// end closes the subscription to all consumers, which get err.
func (sub *subscription) end(err error) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if sub.ended != nil {
		return
	}
	sub.ended = err
	sub.backlog.disband()
	sub.backlog = newBacklog(sub.backlog.rules)
	close(sub.gone)
}

// open registers a consumer.
func (sub *subscription) open(c *consumer) error {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if sub.ended != nil {
		return sub.ended
	}
	sub.backlog.open(c)
	return nil
}

// largestBatch is few enough bytes for every client's receive limit, and few
// enough messages that concurrent streams share a backlog.
var largestBatch = batchLimits{messages: 1000, bytes: 1 << 20}

// take leases messages to c and writes them to out. If there are none, c is queued
// to be woken.
func (sub *subscription) take(c *consumer, limits batchLimits, room []*entry, out *pullResponse) []*entry {
	taken := sub.takeLocked(c, limits, room, out)
	for i := range out.deliveries {
		out.deliveries[i].ackID = formatAckID(sub.ackIDs, out.deliveries[i].lease)
	}
	return taken
}

func (sub *subscription) takeLocked(c *consumer, limits batchLimits, room []*entry, out *pullResponse) []*entry {
	sub.mu.Lock()
	defer sub.unlock()
	b := sub.backlog
	now := sub.server.now()
	b.advance(now)
	taken := b.take(c, room[:0], limits, now)
	if len(taken) == 0 {
		b.wait(c)
	}
	out.exactlyOnce, out.ordered = b.rules.exactlyOnce, b.rules.ordered
	out.deliveries = out.deliveries[:0]
	for _, e := range taken {
		d := delivery{lease: e.lease, wire: e.msg.wire}
		if b.rules.maxAttempts > 0 {
			d.attempt = 1 + e.failures
		}
		out.deliveries = append(out.deliveries, d)
	}
	out.deliveries = sub.distort(out.deliveries)
	return taken
}

// closeStream ends a streaming pull's consumer.
func (sub *subscription) closeStream(c *consumer) {
	sub.mu.Lock()
	defer sub.unlock()
	now := sub.server.now()
	sub.backlog.advance(now)
	sub.backlog.close(c, now)
}

// catchUp does what is due, in case the timer loop has not run yet. It may publish
// dead letters, so the caller must hold no lock.
func (sub *subscription) catchUp() {
	sub.mu.Lock()
	defer sub.unlock()
	sub.backlog.advance(sub.server.now())
}

// closePull ends a Pull's consumer; its messages stay leased.
func (sub *subscription) closePull(c *consumer) {
	sub.mu.Lock()
	defer sub.unlock()
	sub.backlog.leave(c)
}

// describe returns a copy of the settings.
func (sub *subscription) describe() *pubsubpb.Subscription {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return proto.CloneOf(sub.config)
}

func (sub *subscription) journalID() uint64 { return sub.holder }
