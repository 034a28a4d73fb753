package pubsubemu

import "time"

// Counters tell what a server has done since it started.
type Counters struct {
	Published     uint64                          // messages accepted by Publish, dead letters included
	Subscriptions map[string]SubscriptionCounters // by full name
}

// SubscriptionCounters tell what a subscription has done since its creation or the
// start of the server, and what is outstanding now.
type SubscriptionCounters struct {
	Published    uint64        // messages that passed the filter into the backlog
	Delivered    uint64        // deliveries, redeliveries included
	Acked        uint64        // deliveries acked
	Nacked       uint64        // deliveries nacked
	Expired      uint64        // deliveries whose ack deadline passed
	DeadLettered uint64        // messages forwarded to the dead-letter topic
	Backlog      int           // unacked messages, leased ones included
	Leased       int           // messages that a subscriber has now
	OldestAge    time.Duration // age of the oldest unacked message on Clock, 0 with none
}

// Counters returns the counters of every subscription. Server.Backlog has the
// messages behind them.
func (s *Server) Counters() Counters {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := Counters{
		Published:     s.published.Load(),
		Subscriptions: make(map[string]SubscriptionCounters, len(s.subscriptions)),
	}
	for name, sub := range s.subscriptions {
		out.Subscriptions[name] = sub.counters()
	}
	return out
}

func (sub *subscription) counters() SubscriptionCounters {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	b := sub.backlog
	out := SubscriptionCounters{
		Published: b.counts.published, Delivered: b.counts.delivered, Acked: b.counts.acked,
		Nacked: b.counts.nacked, Expired: b.counts.expired, DeadLettered: b.counts.deadLettered,
		Backlog: b.unacked, Leased: len(b.leases),
	}
	if oldest := b.oldest(); oldest != nil {
		out.OldestAge = max(time.Duration(sub.server.now()-oldest.stored), 0) // negative if the clock was set back
	}
	return out
}
