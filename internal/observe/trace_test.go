package observe_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/dronefleet/dronefleet/domain"
)

// recorded is the spans of a fleet that has stopped.
type recorded []sdk.ReadOnlySpan

// find returns the first span of a name in a trace. Redelivered messages make more.
func (r recorded) find(t *testing.T, in trace.TraceID, name string) sdk.ReadOnlySpan {
	t.Helper()
	for _, s := range r {
		if s.SpanContext().TraceID() == in && s.Name() == name {
			return s
		}
	}
	t.Fatalf("no span %q in trace %s:\n%s", name, in, r)
	return nil
}

// below returns the names of the descendants of s.
func (r recorded) below(s sdk.ReadOnlySpan) []string {
	var names []string
	for _, child := range r {
		if child.Parent().SpanID() == s.SpanContext().SpanID() && child.Parent().TraceID() == s.SpanContext().TraceID() {
			names = append(names, child.Name())
			names = append(names, r.below(child)...)
		}
	}
	return names
}

func (r recorded) String() string {
	var b strings.Builder
	for _, s := range r {
		b.WriteString(s.SpanContext().TraceID().String() + " " + s.Parent().SpanID().String() + "/" + s.SpanContext().SpanID().String() + " " + s.Name() + "\n")
	}
	return b.String()
}

func attributeOf(s sdk.ReadOnlySpan, key attribute.Key) string {
	for _, kv := range s.Attributes() {
		if kv.Key == key {
			return kv.Value.String()
		}
	}
	return ""
}

const (
	commit = "google.firestore.v1.Firestore/Commit"
	batch  = "google.firestore.v1.Firestore/BatchGetDocuments"
)

// F-OBS-01: one trace leads from a cycle to its decision, the transaction that judged it,
// the command and the drone.
func TestTrace_FromCycleToCommand(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))
	f := startFleet(t, to(provider), 0)
	f.report(t.Context(), "D1", time.Now(), domain.DroneIdle)
	f.awaitDrone("D1", func(d domain.Drone) bool { return d.Status == domain.DroneIdle })
	f.order(t.Context(), "O1")
	f.awaitOrder("O1", domain.OrderPending)
	command := f.fly("O1")
	f.stop()

	spans := recorded(recorder.Ended())
	i := slices.IndexFunc(spans, func(s sdk.ReadOnlySpan) bool { return s.Name() == "cycle" })
	if i < 0 {
		t.Fatalf("no cycle:\n%s", spans)
	}
	cycle, id := spans[i], spans[i].SpanContext().TraceID()
	if cycle.Parent().IsValid() || attributeOf(cycle, "dronefleet.outcome") != "PUBLISHED" || attributeOf(cycle, "dronefleet.cycle_id") == "" {
		t.Errorf("cycle %v with %v", cycle.Parent(), cycle.Attributes())
	}
	for _, step := range []struct {
		name   string
		kind   trace.SpanKind
		causes []string // among others
	}{
		{"cycle", trace.SpanKindInternal, []string{"solve", "send decisions"}},
		{"send decisions", trace.SpanKindProducer, []string{"process decisions"}},
		{"process decisions", trace.SpanKindConsumer, []string{batch, commit, "send missions"}},
		{"send missions", trace.SpanKindProducer, nil},
	} {
		s := spans.find(t, id, step.name)
		if s.SpanKind() != step.kind {
			t.Errorf("%s is a %s", step.name, s.SpanKind())
		}
		below := spans.below(s)
		for _, name := range step.causes {
			if !slices.Contains(below, name) {
				t.Errorf("%s causes %v, not %s", step.name, below, name)
			}
		}
	}
	process := spans.find(t, id, "process decisions")
	if attributeOf(process, "dronefleet.outcome") != "applied" || attributeOf(process, "dronefleet.drone_id") != "D1" ||
		attributeOf(process, "messaging.message.id") != attributeOf(spans.find(t, id, "send decisions"), "messaging.message.id") {
		t.Errorf("process decisions with %v", process.Attributes())
	}

	// The drone can continue the trace.
	received := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier(command.Attributes)))
	if sent := spans.find(t, id, "send missions"); received.TraceID() != id || received.SpanID() != sent.SpanContext().SpanID() || !received.IsSampled() {
		t.Errorf("the command carries %+v, attributes %v", received, command.Attributes)
	}
}

// F-OBS-01: a hospital's trace continues in the State Manager, in either of the two
// formats that name it.
func TestTrace_ContinuesThatOfTheSender(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder), sdk.WithSampler(sdk.ParentBased(sdk.NeverSample())))
	f := startFleet(t, to(provider), 0)
	hospital := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))
	ctx, span := hospital.Tracer("hospital").Start(t.Context(), "ward orders")
	f.order(ctx, "O1")
	span.End()
	const google = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	f.send(t.Context(), "orders", []byte("{poison"), map[string]string{"googclient_traceparent": google}, nil)
	f.order(t.Context(), "O2") // carries no trace, and this fleet starts none
	f.awaitOrder("O1", domain.OrderPending)
	f.awaitOrder("O2", domain.OrderPending)
	f.stop()

	spans := recorded(recorder.Ended())
	process := spans.find(t, span.SpanContext().TraceID(), "process orders")
	if attributeOf(process, "dronefleet.order_id") != "O1" || !slices.Contains(spans.below(process), commit) {
		t.Errorf("process orders: %v, causes %v", process.Attributes(), spans.below(process))
	}
	id, err := trace.TraceIDFromHex("0af7651916cd43dd8448eb211c80319c")
	if err != nil {
		t.Fatal(err)
	}
	process = spans.find(t, id, "process orders")
	if attributeOf(process, "dronefleet.outcome") != "dead_letter" || !slices.Contains(spans.below(process), "send orders-dead-letter") {
		t.Errorf("of the poison: %v, causes %v", process.Attributes(), spans.below(process))
	}
	for _, s := range spans {
		if attributeOf(s, "dronefleet.order_id") == "O2" {
			t.Errorf("a span of an untraced message: %v", s.Attributes())
		}
	}
}

// F-OBS-01: reports share commits; the commit's trace and those of the reports link to
// each other.
func TestTrace_TelemetryLinksToItsCommit(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))
	f := startFleet(t, to(provider), 0)
	ctx, drone := provider.Tracer("drone").Start(t.Context(), "measure")
	began := time.Now().Add(-5 * time.Second).Truncate(time.Microsecond)
	f.report(ctx, "D1", began, domain.DroneIdle)
	f.report(context.Background(), "D2", began, domain.DroneIdle) // not traced
	drone.End()
	for _, id := range []domain.DroneID{"D1", "D2"} {
		f.awaitDrone(id, func(d domain.Drone) bool { return d.LastUpdate.Equal(began) })
	}
	f.stop()

	spans := recorded(recorder.Ended())
	process := spans.find(t, drone.SpanContext().TraceID(), "process telemetry")
	if attributeOf(process, "dronefleet.drone_id") != "D1" || attributeOf(process, "dronefleet.outcome") != "applied" || len(process.Links()) != 1 {
		t.Fatalf("process telemetry with %v, links %v", process.Attributes(), process.Links())
	}
	group := spans.find(t, process.Links()[0].SpanContext.TraceID(), "commit telemetry")
	if group.Parent().IsValid() || len(group.Links()) != 1 || !group.Links()[0].SpanContext.Equal(process.SpanContext()) {
		t.Errorf("commit telemetry below %v, links %v", group.Parent(), group.Links())
	}
	if !slices.Contains(spans.below(group), commit) {
		t.Errorf("commit telemetry causes %v", spans.below(group))
	}
	for _, s := range spans {
		if s.Name() == "process telemetry" && attributeOf(s, "dronefleet.drone_id") == "D2" {
			t.Error("an unsampled report is traced")
		}
	}
}

// F-OBS-01: a share of 1 samples every report.
func TestTrace_SamplesTelemetry(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	f := startFleet(t, to(sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))), 1)
	f.report(t.Context(), "D1", time.Now(), domain.DroneIdle)
	f.awaitDrone("D1", func(d domain.Drone) bool { return d.Status == domain.DroneIdle })
	f.stop()
	for _, s := range recorder.Ended() {
		if s.Name() == "process telemetry" && attributeOf(s, "dronefleet.outcome") == "applied" {
			return
		}
	}
	t.Errorf("no report is traced:\n%s", recorded(recorder.Ended()))
}
