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

// F-OBS-01: a span's parent decides first, then its links, then the ratio.
func TestSampler_FollowsParentThenLinksThenRatio(t *testing.T) {
	of := func(cause trace.SpanContext) context.Context {
		return trace.ContextWithRemoteSpanContext(context.Background(), cause)
	}
	for name, c := range map[string]struct {
		ratio float64
		ctx   context.Context
		links []trace.Link
		want  sdk.SamplingDecision
	}{
		"parent sampled":                   {0, of(sampled), nil, sdk.RecordAndSample},
		"parent not sampled":               {1, of(dropped), nil, sdk.Drop},
		"no parent, ratio 1":               {1, context.Background(), nil, sdk.RecordAndSample},
		"no parent, ratio 0":               {0, context.Background(), nil, sdk.Drop},
		"link to a sampled span":           {0, context.Background(), []trace.Link{{SpanContext: dropped}, {SpanContext: sampled}}, sdk.RecordAndSample},
		"no link to a sampled span":        {0, context.Background(), []trace.Link{{SpanContext: dropped}}, sdk.Drop},
		"parent not sampled, sampled link": {1, of(dropped), []trace.Link{{SpanContext: sampled}}, sdk.Drop},
	} {
		got := newSampler(c.ratio).ShouldSample(sdk.SamplingParameters{ParentContext: c.ctx, TraceID: traceID, Links: c.links})
		if got.Decision != c.want {
			t.Errorf("%s: decision %v, want %v", name, got.Decision, c.want)
		}
	}
}
