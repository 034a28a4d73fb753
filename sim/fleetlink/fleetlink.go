package fleetlink

import (
	"context"
	"path"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// Missions is the subscription that carries commands to the simulated drones.
const Missions = "missions-simulated-fleet"

// Prepare creates the topics, the product's subscriptions and Missions.
func Prepare(ctx context.Context, c *pubsub.Client) error {
	if err := pubsubio.Ensure(ctx, c); err != nil {
		return err
	}
	return pubsubio.EnsureSubscription(ctx, c, Missions, pubsubio.TopicMissions, true)
}

// Publisher is a fleetsim.Publisher.
type Publisher struct{ *pubsubio.Publisher }

// Publish implements fleetsim.Publisher.
func (p Publisher) Publish(ctx context.Context, topic string, data []byte, attrs map[string]string, orderingKey string) fleetsim.Result {
	return p.Publisher.Publish(ctx, topic, data, attrs, orderingKey)
}

// ReceiveCommands gives mission commands to deliver until ctx ends or the subscription
// fails. It gives a command that cannot be decoded, which is a mistake of the product, to
// undecodable.
func ReceiveCommands(ctx context.Context, c *pubsub.Client, subscription string, deliver func(domain.Command), undecodable func(error)) error {
	return c.Subscriber(subscription).Receive(ctx, func(_ context.Context, msg *pubsub.Message) {
		if command, err := wire.DecodeCommand(msg.Data, msg.Attributes); err != nil {
			undecodable(err)
		} else {
			deliver(command)
		}
		msg.Ack()
	})
}

// Confirming returns publish with every decision that the server took added to c.
func Confirming(publish dispatch.PublishFunc, c *fleetsim.Confirmations) dispatch.PublishFunc {
	return func(ctx context.Context, decisions []domain.Decision) []error {
		errs := publish(ctx, decisions)
		for i, d := range decisions {
			if errs[i] == nil {
				c.Add(invariant.Message{Topic: pubsubio.TopicDecisions, DecisionID: d.ID, Timestamp: d.SnapshotTime})
			}
		}
		return errs
	}
}

// Backlog counts the messages that the State Managers have not settled.
func Backlog(s *pubsubemu.Server) (n int) {
	for name, subscription := range s.Counters().Subscriptions {
		for _, topic := range pubsubio.InboundTopics {
			if path.Base(name) == pubsubio.Subscription(topic) {
				n += subscription.Backlog
			}
		}
	}
	return n
}
