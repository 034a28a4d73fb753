package pubsubio

import (
	"context"
	"log/slog"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/restart"
)

// MissionsMQTT is the subscription of the gateways that send commands to a broker.
const MissionsMQTT = TopicMissions + "-mqtt"

// maxCommands bounds the commands that one process holds.
const maxCommands = 1000

// TakeCommands calls take with each command of a subscription that processes share, and with
// when it was published, until ctx ends. A command for which take returns an error is delivered
// again, perhaps to another process; those of one drone come in order. One that cannot be
// decoded, which is a mistake of the State Manager, is logged and given up.
func TakeCommands(ctx context.Context, c *pubsub.Client, subscription string, log *slog.Logger, take func(context.Context, domain.Command, time.Time) error) {
	sub := c.Subscriber(subscription)
	sub.ReceiveSettings.NumGoroutines = 1
	sub.ReceiveSettings.MaxOutstandingMessages = maxCommands
	sub.ReceiveSettings.MaxDurationPerAckExtension = 10 * time.Second // a killed process's commands reach another one soon
	restart.Until(ctx, func() {
		err := sub.Receive(ctx, func(ctx context.Context, msg *pubsub.Message) {
			command, err := wire.DecodeCommand(msg.Data, msg.Attributes)
			if err != nil {
				log.ErrorContext(ctx, "mission command cannot be decoded", slog.String("message_id", msg.ID), slog.Any("err", err))
				msg.Ack()
				return
			}
			if take(ctx, command, msg.PublishTime) != nil { // also at the end of ctx
				msg.Nack()
				return
			}
			msg.Ack()
		})
		if ctx.Err() == nil {
			log.WarnContext(ctx, "mission commands cannot be received; trying again", slog.String("subscription", subscription), slog.Any("err", err))
		}
	})
}
