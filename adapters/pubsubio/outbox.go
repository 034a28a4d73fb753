package pubsubio

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
)

// OutboxStore is what the outbox needs of the store.
type OutboxStore interface {
	OwedCommands(ctx context.Context, grace time.Duration) ([]domain.Mission, error)
	MarkCommandsPublished(ctx context.Context, missions []domain.Mission) error
}

// Outbox sends drones the commands and revocations that their missions owe them.
// Commits hand it missions; what a crash loses, the sweeper finds again. A command
// may be sent twice; none is lost.
type Outbox struct {
	store     OutboxStore
	publisher *Publisher
	format    wire.Format
	log       *slog.Logger
	meter     *meter.Meter
	queue     chan owed

	mu      sync.Mutex
	waiting map[message]int // queued or being published
}

// owed is a mission whose drone is owed a message, and the span of whatever
// made it so.
type owed struct {
	domain.Mission
	cause trace.Span
}

// message identifies one of the messages that a mission may owe its drone.
type message struct {
	mission domain.MissionID
	revoke  bool
	expires int64 // in microseconds, as the store keeps it
}

func messageOf(m domain.Mission) message {
	c := m.Command()
	if c.Revoke {
		return message{mission: m.ID, revoke: true} // one revocation is like another
	}
	return message{mission: m.ID, expires: c.ExpiresAt.UnixMicro()}
}

// outboxQueue bounds the messages that wait; the sweeper sends what exceeds it.
const outboxQueue = 10_000

// NewOutbox returns an outbox; Run starts it.
func NewOutbox(store OutboxStore, publisher *Publisher, format wire.Format, log *slog.Logger, m *meter.Meter) *Outbox {
	return &Outbox{store: store, publisher: publisher, format: format, log: log, meter: m, queue: make(chan owed, outboxQueue), waiting: map[message]int{}}
}

// Offer hands over a mission whose drone is owed a message, which continues the
// trace of ctx. It never blocks.
func (o *Outbox) Offer(ctx context.Context, m domain.Mission) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.queue <- owed{m, trace.SpanFromContext(ctx)}:
		o.waiting[messageOf(m)]++
	default:
		o.meter.OutboxOverflow.Inc()
	}
}

func (o *Outbox) waits(m domain.Mission) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waiting[messageOf(m)] > 0
}

// tried notes that a batch no longer waits, whether or not it was sent.
func (o *Outbox) tried(batch []owed) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range batch {
		of := messageOf(m.Mission)
		if o.waiting[of]--; o.waiting[of] == 0 {
			delete(o.waiting, of)
		}
	}
}

// Run publishes until stop is closed, and then what is queued; when ctx ends it
// leaves the rest to the sweeper.
func (o *Outbox) Run(ctx context.Context, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			o.flush(ctx, nil)
			return
		case m := <-o.queue:
			o.flush(ctx, []owed{m})
		}
	}
}

// outboxBatch bounds how many commands are published and marked together.
const outboxBatch = 200

// flush publishes batch together with what else is queued and marks it in one
// commit.
func (o *Outbox) flush(ctx context.Context, batch []owed) {
	for ctx.Err() == nil {
	gather:
		for len(batch) < outboxBatch {
			select {
			case m := <-o.queue:
				batch = append(batch, m)
			default:
				break gather
			}
		}
		if len(batch) == 0 {
			return
		}
		o.publish(ctx, batch)
		batch = nil
	}
}

// commandsTimeout bounds publishing commands and marking them as published; after
// it they are left to the sweeper.
const commandsTimeout = 10 * time.Second

// publish sends a batch, then marks what Pub/Sub has taken. A crash between the two repeats
// commands; the other order would lose them.
func (o *Outbox) publish(ctx context.Context, batch []owed) {
	defer o.tried(batch)
	ctx, cancel := context.WithTimeout(ctx, commandsTimeout)
	defer cancel()
	ctx = meter.WithOperation(ctx, "outbox")
	pending := make([]Published, len(batch))
	for i, m := range batch {
		data, attrs, err := wire.EncodeCommand(m.Command(), o.format)
		if err != nil {
			o.log.ErrorContext(ctx, "mission command cannot be encoded", slog.String("mission_id", string(m.ID)), slog.Any("err", err))
			continue
		}
		pending[i] = o.publisher.Publish(trace.ContextWithSpan(ctx, m.cause), TopicMissions, data, attrs, string(m.DroneID))
	}
	var sent []domain.Mission
	for i, m := range batch {
		if pending[i].result == nil {
			continue
		}
		if _, err := pending[i].Wait(ctx); err != nil {
			o.log.WarnContext(ctx, "mission command not published; the sweeper will retry", slog.String("mission_id", string(m.ID)), slog.Any("err", err))
			continue
		}
		sent = append(sent, m.Mission)
	}
	o.meter.CommandsPublished.Add(int64(len(sent)))
	if len(sent) == 0 {
		return
	}
	if err := o.store.MarkCommandsPublished(ctx, sent); err != nil {
		o.log.WarnContext(ctx, "mission commands not marked as published; they will be sent again", slog.Any("err", err))
	}
}

// Collect queues the unsent messages that the store lists, except those already queued.
// During an outage of Pub/Sub every sweep finds all of them, and new commands would expire
// behind the copies.
func (o *Outbox) Collect(ctx context.Context, grace time.Duration) error {
	missions, err := o.store.OwedCommands(ctx, grace)
	for _, m := range missions {
		if !o.waits(m) {
			o.Offer(ctx, m)
		}
	}
	return err
}
