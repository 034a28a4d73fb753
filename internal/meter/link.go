package meter

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Reasons for which a session ends without a refusal.
const (
	LinkGoodbye      = "GOODBYE"
	LinkDisconnected = "DISCONNECTED"
)

// Link counts the sessions of drones at a gateway. The zero value is ready to use.
type Link struct {
	Acked       Counter // reports that Pub/Sub has
	Failed      Counter // reports that it may not have
	Missions    Counter // commands sent that are to be flown
	Revocations Counter // commands sent that end a mission

	opened  Counter
	pending atomic.Int64
	ackTook Histogram

	mu      sync.Mutex
	ended   map[string]int64 // sessions by reason
	turned  map[string]int64 // connections without a session by reason
	refused map[string]int64 // reports by reason
	states  map[string]int64 // by status
}

// Opened counts a session that begins.
func (l *Link) Opened() { l.opened.Inc() }

// Ended counts the end of a session.
func (l *Link) Ended(reason string) { l.inc(&l.ended, reason) }

// TurnedAway counts a connection that gets no session.
func (l *Link) TurnedAway(reason string) { l.inc(&l.turned, reason) }

// Refused counts a report that is refused.
func (l *Link) Refused(reason string) { l.inc(&l.refused, reason) }

// Published counts a link state that Pub/Sub has.
func (l *Link) Published(status string) { l.inc(&l.states, status) }

// Pending adds n to the reports that are on their way to Pub/Sub.
func (l *Link) Pending(n int64) { l.pending.Add(n) }

// AckTook counts a report that is acked after that time.
func (l *Link) AckTook(d time.Duration) {
	l.Acked.Inc()
	l.ackTook.Record(d)
}

func (l *Link) inc(in *map[string]int64, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *in == nil {
		*in = map[string]int64{}
	}
	(*in)[key]++
}

func (l *Link) collect(c collector) {
	// A rate needs the count before the first event.
	ended := map[string]int64{LinkGoodbye: 0, LinkDisconnected: 0}
	turned := map[string]int64{"UNAUTHENTICATED": 0}
	refused := map[string]int64{"INVALID": 0}
	states := map[string]int64{"LOST": 0, "RESTORED": 0}
	l.mu.Lock()
	maps.Copy(ended, l.ended)
	maps.Copy(turned, l.turned)
	maps.Copy(refused, l.refused)
	maps.Copy(states, l.states)
	l.mu.Unlock()
	sessions := l.opened.Value() // read after those that have ended
	for reason, n := range ended {
		sessions -= n
		c.count(linkEndedTotal, n, reason)
	}
	c.value(linkSessions, float64(sessions))
	c.count(linkOpenedTotal, l.opened.Value())
	for reason, n := range turned {
		c.count(linkRefusedTotal, n, reason)
	}
	c.count(linkReportsTotal, l.Acked.Value(), "acked", "")
	c.count(linkReportsTotal, l.Failed.Value(), "failed", "")
	for reason, n := range refused {
		c.count(linkReportsTotal, n, "refused", reason)
	}
	c.value(linkPending, float64(l.pending.Load()))
	c.durations(linkAckSeconds, &l.ackTook, shortBuckets)
	c.count(linkCommandsTotal, l.Missions.Value(), "mission")
	c.count(linkCommandsTotal, l.Revocations.Value(), "revocation")
	for status, n := range states {
		c.count(linkStatesTotal, n, status)
	}
}
