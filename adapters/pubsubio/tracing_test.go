package pubsubio

import (
	"context"
	"fmt"
	"math"
	"testing"

	"cloud.google.com/go/pubsub/v2"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// F-OBS-01: what is drawn depends on the message alone, and costs the others
// nothing.
func TestSampling_TracesItsShare(t *testing.T) {
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(tracetest.NewSpanRecorder()))
	const messages = 20_000
	for _, share := range []float64{0, 0.01, 0.5, 1} {
		s := newSampling(provider.Tracer("test"), share)
		drawn := 0
		for i := range messages {
			msg := &pubsub.Message{ID: fmt.Sprint(1_000_000 + i)}
			first, again := s.start(context.Background(), msg), s.start(context.Background(), msg)
			if (first == nil) != (again == nil) {
				t.Fatalf("message %s is drawn by chance", msg.ID)
			}
			if first != nil {
				drawn++
			}
		}
		// Six standard deviations: never by chance.
		if want := share * messages; math.Abs(float64(drawn)-want) > 6*math.Sqrt(want*(1-share)) {
			t.Errorf("share %g draws %d of %d", share, drawn, messages)
		}
	}
}

func TestSampling_UntracedReportsCostNoAllocation(t *testing.T) {
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(tracetest.NewSpanRecorder()))
	s := newSampling(provider.Tracer("test"), 0.01)
	msg := &pubsub.Message{Attributes: map[string]string{"content-type": "application/protobuf"}}
	for i := 0; ; i++ { // one that is not drawn
		if msg.ID = fmt.Sprint(i); s.start(context.Background(), msg) == nil {
			break
		}
	}
	ctx := context.Background()
	if n := testing.AllocsPerRun(1000, func() { s.start(ctx, msg) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
