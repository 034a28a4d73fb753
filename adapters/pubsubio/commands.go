package pubsubio

import (
	"context"
	"fmt"
	"log/slog"

	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

// CommandsPrefix begins the ids of the subscriptions that FollowCommands creates.
const CommandsPrefix = "missions-gateway-"

// FollowCommands calls seen with every command that State Managers publish from now on, until
// ctx ends. It uses a subscription of its own, CommandsPrefix and id, and deletes it at the
// end. It calls ready once no command can be missed. It logs and skips one that cannot be
// decoded, which is a mistake of the State Manager. It never returns nil.
func FollowCommands(ctx context.Context, c *pubsub.Client, id string, log *slog.Logger, ready func(), seen func(domain.Command)) error {
	return followTopic(ctx, c, CommandsPrefix+id, TopicMissions, ready, func(msg *pubsub.Message) {
		command, err := wire.DecodeCommand(msg.Data, msg.Attributes)
		if err != nil {
			log.ErrorContext(ctx, "mission command cannot be decoded", slog.String("message_id", msg.ID), slog.Any("err", err))
			return
		}
		seen(command)
	})
}

// LinksPrefix begins the ids of the subscriptions that FollowLinks creates.
const LinksPrefix = "links-gateway-"

// FollowLinks calls seen with what gateways say of drones' sessions, as FollowCommands does
// with commands.
func FollowLinks(ctx context.Context, c *pubsub.Client, id string, log *slog.Logger, ready func(), seen func(domain.LinkState)) error {
	return followTopic(ctx, c, LinksPrefix+id, TopicLinks, ready, func(msg *pubsub.Message) {
		s, err := wire.DecodeLinkState(msg.Data, msg.Attributes)
		if err != nil {
			log.ErrorContext(ctx, "link state cannot be decoded", slog.String("message_id", msg.ID), slog.Any("err", err))
			return
		}
		seen(s)
	})
}

// followTopic receives every message of a topic from now on, by a subscription of its own.
func followTopic(ctx context.Context, c *pubsub.Client, subscription, topic string, ready func(), seen func(*pubsub.Message)) error {
	err := CreateTemporary(ctx, c, subscription, topic)
	switch status.Code(err) {
	case codes.OK:
	case codes.NotFound:
		return fmt.Errorf("topic %s does not exist; %s", topic, Remedy)
	case codes.PermissionDenied:
		return fmt.Errorf("%w; grant pubsub.subscriptions.create, and pubsub.topics.attachSubscription on %s", err, topic)
	default:
		return err
	}
	defer func() { _ = DeleteTemporary(ctx, c, subscription) }() // it expires by itself if this fails
	ready()
	sub := c.Subscriber(subscription)
	sub.ReceiveSettings.NumGoroutines = 1
	err = sub.Receive(ctx, func(_ context.Context, msg *pubsub.Message) {
		seen(msg)
		msg.Ack()
	})
	if err == nil {
		err = errReceiveEnded
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return fmt.Errorf("subscription %s: %w", subscription, err)
}
