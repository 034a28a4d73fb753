package dispatch

import (
	"context"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

// Publisher publishes decisions to the decisions topic, each under its drone as
// ordering key, and waits until the server has answered for all of them. Once ctx has
// ended it sends no more.
func Publisher(p *pubsubio.Publisher, format wire.Format) Publish {
	return func(ctx context.Context, decisions []domain.Decision) []error {
		pending, errs := make([]pubsubio.Published, len(decisions)), make([]error, len(decisions))
		for i, d := range decisions {
			data, attrs, err := wire.EncodeDecision(d, format)
			if ctx.Err() != nil { // the client sends all the same
				err = context.Cause(ctx)
			}
			if errs[i] = err; err == nil {
				pending[i] = p.Publish(ctx, pubsubio.TopicDecisions, data, attrs, string(d.DroneID))
			}
		}
		for i, one := range pending {
			if errs[i] == nil {
				_, errs[i] = one.Wait(ctx)
			}
		}
		return errs
	}
}
