package observe

import (
	"fmt"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// newSampler follows what the cause of a span decided. Of spans without a cause
// it takes those that link to a sampled one, whose story they go on with, and
// the ratio of the others.
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
