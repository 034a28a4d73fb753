package observe

import (
	"fmt"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// newSampler returns a sampler that follows the decision of a span's parent. Without a
// parent it samples spans that link to a sampled one, because they continue its trace,
// and the ratio of the others.
func newSampler(ratio float64) sdk.Sampler {
	return sdk.ParentBased(rootSampler{sdk.TraceIDRatioBased(ratio)})
}

type rootSampler struct{ others sdk.Sampler }

func (s rootSampler) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	for _, link := range p.Links {
		if link.SpanContext.IsSampled() {
			return sdk.AlwaysSample().ShouldSample(p)
		}
	}
	return s.others.ShouldSample(p)
}

func (s rootSampler) Description() string {
	return fmt.Sprintf("LinkedOr{%s}", s.others.Description())
}
