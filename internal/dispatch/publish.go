package dispatch

import (
	"context"
	"errors"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

// Publisher publishes decisions to the decisions topic, each under its drone as
// ordering key, and waits until the server has all of them.
func Publisher(p *pubsubio.Publisher, format wire.Format) Publish {
	return func(ctx context.Context, decisions []domain.Decision) error {
		pending := make([]pubsubio.Published, 0, len(decisions))
		for _, d := range decisions {
			data, attrs, err := wire.EncodeDecision(d, format)
			if err != nil {
				return err
			}
			pending = append(pending, p.Publish(ctx, pubsubio.TopicDecisions, data, attrs, string(d.DroneID)))
		}
		var errs []error
		for _, one := range pending {
			_, err := one.Wait(ctx)
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
}
