package pubsubio

import (
	"context"
	"hash/maphash"
	"math"

	"cloud.google.com/go/pubsub/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// A message carries its trace in the attributes traceparent and tracestate of W3C Trace
// Context, so that senders in any language can take part.
//
// The Pub/Sub client's own tracing does not fit. It uses other attributes (googclient_…,
// still read here), the process-wide tracer and up to a dozen spans per message, which is
// too much for telemetry. It cannot express a commit that many messages share.

// scope names this package as the source of its spans.
const scope = "github.com/dronefleet/dronefleet/adapters/pubsubio"

const (
	attrTraceparent    = "traceparent"
	googlePrefix       = "googclient_"
	googleTraceparent  = googlePrefix + attrTraceparent
	outcomeAttribute   = "dronefleet.outcome"
	reasonAttribute    = "dronefleet.reason"
	sharedByAttribute  = "dronefleet.reports"
	telemetryCommit    = "commit " + TopicTelemetry
	telemetryDrawScale = 1 << 53 // exact in a float64
)

// googleCarrier reads what the Pub/Sub client's own tracing wrote.
type googleCarrier struct{ propagation.MapCarrier }

func (c googleCarrier) Get(key string) string { return c.MapCarrier.Get(googlePrefix + key) }

// extract adds the trace that a message's attributes name to ctx.
func extract(ctx context.Context, attrs map[string]string) context.Context {
	switch {
	case attrs[attrTraceparent] != "":
		return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(attrs))
	case attrs[googleTraceparent] != "":
		return propagation.TraceContext{}.Extract(ctx, googleCarrier{propagation.MapCarrier(attrs)})
	}
	return ctx
}

// inject names the trace of ctx, if it has one, in attrs, which may be nil.
func inject(ctx context.Context, attrs map[string]string) map[string]string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return attrs
	}
	if attrs == nil {
		attrs = map[string]string{}
	}
	propagation.TraceContext{}.Inject(ctx, propagation.MapCarrier(attrs))
	return attrs
}

// startSending begins a producer's span below a sampled one in ctx. Without one it
// does nothing: a message belongs to the trace that caused it.
func startSending(ctx context.Context, topic, orderingKey string) (context.Context, trace.Span) {
	cause := trace.SpanFromContext(ctx)
	if !cause.SpanContext().IsSampled() {
		return ctx, noop.Span{}
	}
	return cause.TracerProvider().Tracer(scope).Start(ctx, "send "+topic, trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(about(topic, orderingKey, semconv.MessagingOperationTypeSend)...))
}

// startProcessing begins a consumer's span, in the sender's trace if it has
// one.
func startProcessing(ctx context.Context, tracer trace.Tracer, topic string, msg *pubsub.Message) (context.Context, trace.Span) {
	return tracer.Start(extract(ctx, msg.Attributes), "process "+topic, trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(append(about(topic, msg.OrderingKey, semconv.MessagingOperationTypeProcess),
			semconv.MessagingMessageID(msg.ID))...))
}

func about(topic, orderingKey string, operation attribute.KeyValue) []attribute.KeyValue {
	attrs := []attribute.KeyValue{semconv.MessagingSystemGCPPubSub, semconv.MessagingDestinationName(topic), operation}
	if orderingKey != "" {
		attrs = append(attrs, semconv.MessagingGCPPubSubMessageOrderingKey(orderingKey))
	}
	return attrs
}

// conclude notes on the span of ctx how its message was settled. A rejection is not
// an error.
func conclude(ctx context.Context, outcome, reason string, failure error) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String(outcomeAttribute, outcome))
	if reason != "" {
		span.SetAttributes(attribute.String(reasonAttribute, reason))
	}
	if failure != nil {
		span.SetStatus(codes.Error, failure.Error())
	}
}

// sampling picks the telemetry reports that get a span: those traced by their
// sender, and a share of the others. The rest cost no allocation and no lock.
type sampling struct {
	tracer trace.Tracer
	seed   maphash.Seed
	limit  uint64 // of telemetryDrawScale
}

func newSampling(tracer trace.Tracer, share float64) sampling {
	share = math.Min(math.Max(share, 0), 1)
	return sampling{tracer: tracer, seed: maphash.MakeSeed(), limit: uint64(share * telemetryDrawScale)}
}

// start begins a report's span, or returns nil. The draw is by message id, so a
// redelivery is sampled if its first delivery was.
func (s sampling) start(ctx context.Context, msg *pubsub.Message) trace.Span {
	named := msg.Attributes[attrTraceparent] != "" || msg.Attributes[googleTraceparent] != ""
	if !named && (s.limit == 0 || maphash.String(s.seed, msg.ID)%telemetryDrawScale >= s.limit) {
		return nil
	}
	_, span := startProcessing(ctx, s.tracer, TopicTelemetry, msg)
	if !span.IsRecording() {
		return nil
	}
	return span
}

// startCommit begins the span of a shared commit, in a trace of its own that links
// to its reports and they to it. A commit without traced reports has no span.
func (s sampling) startCommit(ctx context.Context, batch []report) (context.Context, trace.Span) {
	var links []trace.Link
	for _, r := range batch {
		if r.span != nil {
			links = append(links, trace.Link{SpanContext: r.span.SpanContext()})
		}
	}
	if len(links) == 0 {
		return ctx, noop.Span{}
	}
	ctx, span := s.tracer.Start(ctx, telemetryCommit, trace.WithNewRoot(), trace.WithLinks(links...),
		trace.WithAttributes(attribute.Int(sharedByAttribute, len(batch))))
	for _, r := range batch {
		if r.span != nil {
			r.span.AddLink(trace.Link{SpanContext: span.SpanContext()})
		}
	}
	return ctx, span
}
