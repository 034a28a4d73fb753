package meter

import (
	"context"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/status"
)

// scope is the instrumentation scope of this package's spans.
const scope = "github.com/dronefleet/dronefleet/internal/meter"

// callSpan is the span of one Firestore call; nil outside a sampled trace, where nearly
// all of telemetry's calls are made, so that it costs nothing there. The general gRPC
// instrumentation creates a span for every call and does not count documents.
type callSpan struct {
	span  trace.Span
	reads atomic.Int64
	stop  func() bool // of endWith
}

// TraceCalls records Firestore calls within a sampled trace as spans of tracing. The
// provider of the span in the context cannot be used: the Firestore library puts its
// own there, which records nothing.
func (m *Meter) TraceCalls(tracing trace.TracerProvider) {
	tracer := tracing.Tracer(scope)
	m.tracer.Store(&tracer)
}

func (m *Meter) startCall(ctx context.Context, method string) (context.Context, *callSpan) {
	tracer := m.tracer.Load()
	if tracer == nil || !trace.SpanContextFromContext(ctx).IsSampled() {
		return ctx, nil
	}
	method = strings.TrimPrefix(method, "/")
	ctx, span := (*tracer).Start(ctx, method, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		semconv.RPCSystemNameGRPC, semconv.RPCMethod(method), attribute.String("dronefleet.operation", Operation(ctx))))
	return ctx, &callSpan{span: span}
}

func (c *callSpan) wrote(documents int64) {
	if c != nil && documents > 0 {
		c.span.SetAttributes(attribute.Int64("dronefleet.firestore.writes", documents))
	}
}

func (c *callSpan) read() {
	if c != nil {
		c.reads.Add(1)
	}
}

// endWith ends the span of an abandoned stream when the caller's context ends. The
// stream's own context ends too early, before the last answer is read.
func (c *callSpan) endWith(caller context.Context) {
	if c != nil {
		c.stop = context.AfterFunc(caller, func() { c.span.End() })
	}
}

func (c *callSpan) end(err error) {
	if c == nil {
		return
	}
	if c.stop != nil {
		c.stop()
	}
	if n := c.reads.Load(); n > 0 {
		c.span.SetAttributes(attribute.Int64("dronefleet.firestore.reads", n))
	}
	c.span.SetAttributes(semconv.RPCResponseStatusCode(status.Code(err).String()))
	if err != nil {
		c.span.SetStatus(codes.Error, err.Error())
	}
	c.span.End()
}
