package pubsubio

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"golang.org/x/time/rate"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
)

// RefusalStore keeps records of refused messages.
type RefusalStore interface {
	RecordRefusal(ctx context.Context, r domain.Refusal) error
	CountRefusals(ctx context.Context, r domain.Refusal) error
}

// Limits of the records that one process writes. At worst they are 432,000 a day, 0.78 $ in
// a multi-region.
const (
	refusalsPerSecond = 5
	refusalsAtOnce    = 100
)

const (
	// refusalPatience is how long a message that was refused waits for its record before it
	// is acked. After one has waited in vain, none waits until a record is written.
	refusalPatience = 200 * time.Millisecond
	// refusalTimeout bounds the write of a record.
	refusalTimeout = 5 * time.Second
	// countEvery is how often refusals over the limits are written as numbers.
	countEvery = time.Minute
)

// refusals records refused messages, so that auditors find them in Firestore at once. A flood
// of them costs a bounded number of writes: what is over the limits is only counted, by
// minute, topic and reason.
type refusals struct {
	store    RefusalStore
	now      func() time.Time
	timeout  time.Duration
	patience time.Duration
	log      *slog.Logger
	meter    *meter.Meter
	limit    *rate.Limiter
	writes   sync.WaitGroup
	behind   atomic.Bool // a record took longer than patience

	mu     sync.Mutex
	counts map[domain.RefusalID]domain.Refusal // not written yet
}

func newRefusals(store RefusalStore, now func() time.Time, log *slog.Logger, m *meter.Meter) *refusals {
	return &refusals{
		store: store, now: now, timeout: refusalTimeout, patience: refusalPatience, log: log, meter: m,
		limit: rate.NewLimiter(refusalsPerSecond, refusalsAtOnce), counts: map[domain.RefusalID]domain.Refusal{},
	}
}

// record writes that a message has a dead letter. It waits for the write only while the store
// is quick, so that no ack waits for a store that is down.
func (r *refusals) record(ctx context.Context, topic string, msg *pubsub.Message, reason string, cause error) {
	now := r.now()
	if !r.limit.AllowN(now, 1) {
		r.count(topic, reason, now)
		return
	}
	refusal := domain.Refusal{
		ID: domain.RefusalIDFor(topic, msg.ID), Topic: topic, MessageID: msg.ID, OrderingKey: msg.OrderingKey, PublishedAt: published(msg),
		RefusedAt: now, Reason: reason, Error: errorText(cause), Bytes: len(msg.Data), ReplayOf: msg.Attributes[AttrReplayOf],
		Outcome: domain.RefusalWaiting,
	}
	if topic == TopicOrders {
		refusal.OrderID, refusal.RequesterID = wire.OrderNames(msg.Data, msg.Attributes)
	}
	ctx = context.WithoutCancel(ctx) // the record may be written after the ack
	done := make(chan struct{})
	r.writes.Go(func() {
		defer close(done)
		if r.write(ctx, refusal, 1, r.store.RecordRefusal) {
			r.meter.RefusalsRecorded.Inc()
		}
	})
	if r.behind.Load() {
		return
	}
	timer := time.NewTimer(r.patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		r.behind.Store(true)
	}
}

// count adds to the number of refusals over the limits.
func (r *refusals) count(topic, reason string, now time.Time) {
	minute := now.UTC().Truncate(time.Minute)
	id := domain.RefusalIDFor(topic, reason+"-"+minute.Format("2006-01-02T15:04Z"))
	r.mu.Lock()
	defer r.mu.Unlock()
	c, known := r.counts[id]
	if !known {
		c = domain.Refusal{ID: id, Topic: topic, Reason: reason, RefusedAt: minute}
	}
	c.Count++
	r.counts[id] = c
}

// write stores one record, which stands for n messages, by calling keep. It reports whether
// that succeeded within the timeout; a failed write is logged and not retried.
func (r *refusals) write(ctx context.Context, refusal domain.Refusal, n int, keep func(context.Context, domain.Refusal) error) bool {
	ctx, cancel := context.WithTimeout(meter.WithOperation(ctx, "refusals"), r.timeout)
	defer cancel()
	if err := keep(ctx, refusal); err != nil {
		r.meter.RefusalsLost.Add(int64(n))
		r.log.WarnContext(ctx, "refusal not recorded; the dead letter remains", slog.String("id", string(refusal.ID)), slog.Int("messages", n), slog.Any("err", err))
		return false
	}
	r.behind.Store(false)
	return true
}

// flush writes the numbers of refusals over the limits.
func (r *refusals) flush(ctx context.Context) {
	r.mu.Lock()
	counts := r.counts
	r.counts = map[domain.RefusalID]domain.Refusal{}
	r.mu.Unlock()
	for _, c := range counts {
		if r.write(ctx, c, c.Count, r.store.CountRefusals) {
			r.meter.RefusalsCounted.Add(int64(c.Count))
		}
	}
}

// run writes the numbers every minute until ctx ends.
func (r *refusals) run(ctx context.Context) {
	ticker := time.NewTicker(countEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.flush(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// finish writes what is left when nothing more is refused.
func (r *refusals) finish(ctx context.Context) {
	r.flush(ctx)
	r.writes.Wait()
}
