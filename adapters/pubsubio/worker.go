package pubsubio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/ramp"
	"github.com/dronefleet/dronefleet/internal/restart"
	"github.com/dronefleet/dronefleet/internal/shutdown"
)

// Config tunes a Worker. Zero values stand for the defaults in the comments.
type Config struct {
	// TelemetryShards is the number of drone groups that commit independently;
	// default twice the processors.
	TelemetryShards int
	// TelemetryGather is how long a report that changes a status waits for
	// others to share its commit; default 20 ms.
	TelemetryGather time.Duration
	// TelemetryCoalesce is how often the document of a drone that only moves
	// is written; default 1 s.
	TelemetryCoalesce time.Duration
	// MaxOutstanding bounds the telemetry messages held; default 40,000. Orders and
	// decisions are each bounded by a fortieth of it.
	MaxOutstanding int
	// Lease is how long a message may be worked on before it is nacked; default
	// 50 s, and at least twice TelemetryCoalesce, which a position waits for its
	// commit.
	Lease time.Duration
	// Shutdown is the plan by which Run ends: it finishes messages in work during
	// Drain and returns at the end of GiveBack; default that of a State Manager.
	Shutdown shutdown.Plan
	// RequireSender dead-letters reports and orders that do not come from the drone or
	// requester that they name, as their attribute wire.AttrSender tells.
	RequireSender bool
	// Ramp, if set, holds back writes to a new database. What waits is not acked, so that the rest
	// stays in Pub/Sub.
	Ramp *ramp.Ramp
	// Now is the clock of the latency figures; default time.Now.
	Now func() time.Time
	// Tracing receives the spans; default none.
	Tracing trace.TracerProvider
	// TraceTelemetry is the share, from 0 to 1, of telemetry messages to trace in
	// addition to those that their sender traces; default none. Orders and decisions
	// are left to the sampler of Tracing.
	TraceTelemetry float64
}

func (c Config) withDefaults() Config {
	def := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.TelemetryGather, 20*time.Millisecond)
	def(&c.TelemetryCoalesce, time.Second)
	def(&c.Lease, 50*time.Second)
	c.Lease = max(c.Lease, 2*c.TelemetryCoalesce)
	if c.Shutdown == nil {
		c.Shutdown = shutdown.StateManager(shutdown.DefaultDrain)
	}
	if c.TelemetryShards == 0 {
		c.TelemetryShards = 2 * runtime.GOMAXPROCS(0)
	}
	if c.MaxOutstanding == 0 {
		c.MaxOutstanding = 40_000
	}
	if c.Tracing == nil {
		c.Tracing = noop.NewTracerProvider()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Store applies what a Worker consumes.
type Store interface {
	OrderStore
	DecisionStore
	LinkStore
	RefusalStore
	NewTelemetryApplier() *firestoretx.TelemetryApplier
}

// Worker consumes the inbound topics and has a store apply their messages.
type Worker struct {
	client    *pubsub.Client
	store     Store
	publisher *Publisher
	cfg       Config
	log       *slog.Logger
	meter     *meter.Meter
	refusals  *refusals
	work      inWork
	outages   outages
}

// NewWorker returns a worker; Run starts it. The publisher sends the dead letters.
func NewWorker(client *pubsub.Client, store Store, publisher *Publisher, cfg Config, log *slog.Logger, m *meter.Meter) *Worker {
	cfg = cfg.withDefaults()
	return &Worker{
		client: client, store: store, publisher: publisher, cfg: cfg, log: log, meter: m, refusals: newRefusals(store, cfg.Now, log, m),
	}
}

// ShutdownPlan is the plan by which Run ends.
func (w *Worker) ShutdownPlan() shutdown.Plan { return w.cfg.Shutdown }

// Outages returns why subscriptions cannot be consumed at present. Each names its
// subscription and what creates it.
func (w *Worker) Outages() []error { return w.outages.all() }

// Run consumes until ctx ends, settles what it holds and returns nil; after the drain it
// nacks the rest. An error means that a subscription does not exist when Run begins; stop
// is told at once. A subscription that is deleted later is in Outages until it exists
// again.
func (w *Worker) Run(ctx context.Context, stop context.CancelCauseFunc) error {
	receivers, rctx := errgroup.WithContext(ctx)
	// Work outlives the order to stop, which a failed subscription is for the others. Acks
	// must still reach Pub/Sub: during an outage the client would try for a minute, even with
	// nothing to send.
	hard, giveUp := w.cfg.Shutdown.Context(rctx, shutdown.Drain)
	defer giveUp()
	gone, leave := w.cfg.Shutdown.Context(rctx, shutdown.Acks)
	defer leave()
	over, abandon := w.cfg.Shutdown.Context(rctx, shutdown.GiveBack)
	defer abandon()
	defer context.AfterFunc(rctx, func() { w.work.whenQuiet(w.cfg.Shutdown.Limit(shutdown.Acks), leave) })()

	telemetry := newTelemetryPipeline(w.settler(TopicTelemetry), w.cfg,
		func() TelemetryApplier { return w.store.NewTelemetryApplier() })
	var shards sync.WaitGroup
	for _, s := range telemetry.shards {
		shards.Go(func() { s.run(hard) })
	}

	orders := orderHandler{store: w.store, senders: senders{w.cfg.RequireSender}, settler: w.settler(TopicOrders)}
	decisions := decisionHandler{store: w.store, settler: w.settler(TopicDecisions)}
	links := linkHandler{store: w.store, settler: w.settler(TopicLinks)}
	leased := func(handle func(context.Context, *pubsub.Message), writes ...string) func(context.Context, *pubsub.Message) {
		return func(_ context.Context, msg *pubsub.Message) {
			ctx, cancel := context.WithTimeout(hard, w.cfg.Lease)
			defer cancel()
			_ = w.cfg.Ramp.Wait(ctx, writes...) // a message whose lease ends meanwhile is nacked by its handler
			handle(ctx, msg)
		}
	}
	receivers.Go(func() error {
		err := requireSubscriptions(rctx, w.client)
		if err != nil {
			stop(err)
		}
		return err
	})
	receive := func(topic string, outstanding, streams int, handle func(context.Context, *pubsub.Message)) {
		receivers.Go(func() error { w.receive(rctx, gone, topic, outstanding, streams, handle); return nil })
	}
	receive(TopicTelemetry, w.cfg.MaxOutstanding, 2, func(_ context.Context, msg *pubsub.Message) { telemetry.handle(hard, msg) })
	receive(TopicOrders, max(w.cfg.MaxOutstanding/40, 1), 1, leased(orders.handle, firestoretx.Orders, firestoretx.Events))
	receive(TopicDecisions, max(w.cfg.MaxOutstanding/40, 1), 1, leased(decisions.handle, firestoretx.Decisions, firestoretx.Missions, firestoretx.Events))
	receive(TopicLinks, max(w.cfg.MaxOutstanding/40, 1), 1, leased(links.handle))
	counting, stopCounting := context.WithCancel(over)
	defer stopCounting()
	shards.Go(func() { w.refusals.run(counting) })
	err := receivers.Wait()
	telemetry.stop()
	stopCounting()
	settled := make(chan struct{})
	go func() { shards.Wait(); w.refusals.finish(over); close(settled) }()
	select {
	case <-settled:
	case <-over.Done():
		w.log.WarnContext(ctx, "telemetry was not nacked or refusals were not recorded in time; telemetry will be redelivered")
	}
	return err
}

func (w *Worker) settler(topic string) *settler {
	return &settler{
		topic: topic, log: w.log, meter: w.meter, now: w.cfg.Now, work: &w.work,
		tracer: w.cfg.Tracing.Tracer(scope), backlog: w.meter.Backlog(topic, w.cfg.Now),
		applied: w.meter.Settlements(meter.Settlement{Kind: topic, Outcome: meter.Applied}), latency: w.meter.Latency(topic),
		deadLetters: &deadLetters{publisher: w.publisher, timeout: letterTimeout}, refusals: w.refusals, retryable: firestoretx.Retryable,
	}
}

// maxOutstandingBytes bounds the payload held per topic, far below the memory of
// a process for all three: 40,000 reports of 200 bytes are 8 MB.
const maxOutstandingBytes = 64 << 20

// receive consumes one subscription, again after a failure, until ctx ends and the server
// knows how everything was settled, or gone ends.
func (w *Worker) receive(ctx, gone context.Context, topic string, outstanding, streams int, handle func(context.Context, *pubsub.Message)) {
	sub := w.client.Subscriber(Subscription(topic))
	// The server counts each stream separately.
	sub.ReceiveSettings.MaxOutstandingMessages = max(outstanding/streams, 1)
	sub.ReceiveSettings.MaxOutstandingBytes = maxOutstandingBytes / streams
	sub.ReceiveSettings.MaxExtension = w.cfg.Lease + 10*time.Second
	// Messages of a killed or frozen process reach another one soon; Pub/Sub leases
	// for no less.
	sub.ReceiveSettings.MaxDurationPerAckExtension = 10 * time.Second
	sub.ReceiveSettings.NumGoroutines = streams
	// The client's own ShutdownOptions stay unset: with a timeout it closes the stream first
	// and then drops later acks (pubsub/v2 v2.8.1, messageIterator.sender). Run bounds the
	// drain instead: it nacks everything at its end.
	w.keepReceiving(ctx, gone, topic, func() error { return sub.Receive(ctx, handle) })
}

// errReceiveEnded stands for a receive call that returned without an error.
var errReceiveEnded = errors.New("the client stopped receiving without an error")

// receivingWell is how long the client must receive without an error for an outage of
// the subscription to be over.
const receivingWell = 2 * time.Second

// keepReceiving calls receive until ctx ends, with a pause after each return. Once gone
// ends, it no longer waits for receive to return. A permanent error, such as a deleted
// subscription, is an outage of the worker until it is repaired.
func (w *Worker) keepReceiving(ctx, gone context.Context, topic string, receive func() error) {
	restart.Until(ctx, func() {
		recovered := time.AfterFunc(receivingWell, func() { w.outages.set(topic, nil) })
		defer recovered.Stop()
		ended := make(chan error, 1)
		go func() { ended <- receive() }()
		var err error
		select {
		case err = <-ended:
		case <-gone.Done():
			w.log.WarnContext(ctx, "Pub/Sub does not answer; unsent acks are lost and their messages will be redelivered", slog.String("topic", topic))
		}
		switch {
		case ctx.Err() != nil:
		case permanent(err):
			if err = outageOf(topic, err); w.outages.set(topic, err) {
				w.log.ErrorContext(ctx, "subscription cannot be consumed; trying again every few seconds", slog.String("topic", topic), slog.Any("err", err))
			}
		default:
			w.log.WarnContext(ctx, "subscription interrupted; retrying", slog.String("topic", topic), slog.Any("err", cmp.Or(err, errReceiveEnded)))
		}
	})
}

// outageOf says what is wrong with the subscription of a topic.
func outageOf(topic string, err error) error {
	if status.Code(err) == codes.NotFound {
		return missing(Subscription(topic))
	}
	return fmt.Errorf("subscription %s: %w; if it was deleted, %s", Subscription(topic), err, Remedy)
}

// outages are why subscriptions cannot be consumed, by topic.
type outages struct {
	mu      sync.Mutex
	byTopic map[string]error
}

// set notes a topic's outage, nil for none, and reports whether there was none
// before.
func (f *outages) set(topic string, err error) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byTopic == nil {
		f.byTopic = map[string]error{}
	}
	first = f.byTopic[topic] == nil
	f.byTopic[topic] = err
	return first
}

// all lists the outages in the order of the topics.
func (f *outages) all() (errs []error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, topic := range InboundTopics {
		if err := f.byTopic[topic]; err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
