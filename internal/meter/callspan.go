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

// scope names whoever makes the spans of this package.
const scope = "github.com/dronefleet/dronefleet/internal/meter"

// callSpan is the span of one Firestore call; nil outside a sampled trace,
// which is where nearly all calls of telemetry are made and must cost nothing.
// The general gRPC instrumentation would make one for every call, the unsampled
// too, and knows nothing of documents, which are what Firestore bills.
type callSpan struct {
	span  trace.Span
	reads atomic.Int64
	stop  func() bool // of endWith
}

// TraceCalls makes calls to Firestore that are made within a sampled trace
// spans of tracing. The provider of the span in the context will not do: the
// Firestore library puts one of its own there, which records nothing.
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
		semconv.RPCSystemNameGRPC, semconv.RPCMethod(method), attribute.String("dronefleet.operation", operation(ctx))))
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

// endWith ends the span of a stream that is given up unread, when its caller's
// context ends. The stream's own ends before the last answer is looked at.
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
