package observe

import (
	"context"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

var (
	traceID = trace.TraceID{0xff, 1} // beyond any ratio below 1
	sampled = trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled, Remote: true})
	dropped = trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: trace.SpanID{1}, Remote: true})
)

// F-OBS-01: what caused a span decides first, then what it goes on with, then
// the ratio.
func TestSampler(t *testing.T) {
	of := func(cause trace.SpanContext) context.Context {
		return trace.ContextWithRemoteSpanContext(context.Background(), cause)
	}
	for name, c := range map[string]struct {
		ratio float64
		ctx   context.Context
		links []trace.Link
		want  sdk.SamplingDecision
	}{
		"a cause that is sampled":          {0, of(sampled), nil, sdk.RecordAndSample},
		"a cause that is not":              {1, of(dropped), nil, sdk.Drop},
		"no cause, ratio one":              {1, context.Background(), nil, sdk.RecordAndSample},
		"no cause, ratio none":             {0, context.Background(), nil, sdk.Drop},
		"a link to what is sampled":        {0, context.Background(), []trace.Link{{SpanContext: dropped}, {SpanContext: sampled}}, sdk.RecordAndSample},
		"links to nothing sampled":         {0, context.Background(), []trace.Link{{SpanContext: dropped}}, sdk.Drop},
		"a cause that is not, with a link": {1, of(dropped), []trace.Link{{SpanContext: sampled}}, sdk.Drop},
	} {
		got := newSampler(c.ratio).ShouldSample(sdk.SamplingParameters{ParentContext: c.ctx, TraceID: traceID, Links: c.links})
		if got.Decision != c.want {
			t.Errorf("%s: decision %v, want %v", name, got.Decision, c.want)
		}
	}
}
