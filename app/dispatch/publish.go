package dispatch

import (
	"context"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

// PublishDecisions returns a PublishFunc that publishes to the decisions topic,
// with the drone's id as ordering key. It sends nothing after ctx has ended.
func PublishDecisions(p *pubsubio.Publisher, format wire.Format) PublishFunc {
	return func(ctx context.Context, decisions []domain.Decision) []error {
		pending, errs := make([]pubsubio.Published, len(decisions)), make([]error, len(decisions))
		for i, d := range decisions {
			data, attrs, err := wire.EncodeDecision(d, format)
			if ctx.Err() != nil { // the client would send anyway
				err = context.Cause(ctx)
			}
			if errs[i] = err; err == nil {
				pending[i] = p.Publish(ctx, pubsubio.TopicDecisions, data, attrs, string(d.DroneID))
			}
		}
		for i, p := range pending {
			if errs[i] == nil {
				_, errs[i] = p.Wait(ctx)
			}
		}
		return errs
	}
}
