package conform

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"cloud.google.com/go/pubsub/v2"
	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

// DroneSubscription is the name of the subscription in which a drone finds its own commands.
func DroneSubscription(id domain.DroneID) string { return "missions-" + string(id) }

// PrepareDrone creates the topics, and a subscription of the drone's own commands.
func PrepareDrone(ctx context.Context, c *pubsub.Client, id domain.DroneID) error {
	if err := pubsubio.Ensure(ctx, c); err != nil {
		return err
	}
	return pubsubio.CreateTemporaryOrdered(ctx, c, DroneSubscription(id), pubsubio.TopicMissions, fmt.Sprintf("attributes.%s = %q", wire.AttrDrone, id))
}

// PubSub is a Line over Google Pub/Sub.
type PubSub struct {
	client    *pubsub.Client
	name      string // of the subscription of telemetry
	publisher *pubsubio.Publisher
	messages  chan Message
	stop      context.CancelFunc
	receiving sync.WaitGroup
	failed    error // once messages is closed

	*droneTime
}

// ahead of the examination, so that a burst of other drones' reports does not hold up Pub/Sub.
const messageQueue = 10_000

// OpenPubSub connects with a drone over Pub/Sub; speed is that of the drone's time. Close ends it.
func OpenPubSub(ctx context.Context, c *pubsub.Client, id domain.DroneID, speed float64) (*PubSub, error) {
	p := &PubSub{
		client: c, name: "telemetry-conform-" + uuid.NewString()[:8], publisher: pubsubio.NewPublisher(c),
		messages: make(chan Message, messageQueue), droneTime: newDroneTime(id, speed),
	}
	if err := pubsubio.CreateTemporaryOrdered(ctx, c, p.name, pubsubio.TopicTelemetry, ""); err != nil {
		return nil, err
	}
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.receiving.Go(func() {
		p.failed = c.Subscriber(p.name).Receive(ctx, func(ctx context.Context, msg *pubsub.Message) {
			p.receive(ctx, msg)
			msg.Ack()
		})
		close(p.messages)
	})
	return p, nil
}

func (p *PubSub) receive(ctx context.Context, msg *pubsub.Message) {
	p.meet(msg.Data, msg.Attributes)
	select {
	case p.messages <- Message{Data: msg.Data, Attributes: msg.Attributes, OrderingKey: msg.OrderingKey, Arrived: p.Now()}:
	case <-ctx.Done():
	}
}

// Next implements Line.
func (p *PubSub) Next(ctx context.Context) (Message, bool, error) {
	second := p.second()
	defer second.Stop()
	select {
	case m, ok := <-p.messages:
		if !ok {
			return Message{}, false, errors.Join(errors.New("the subscription of telemetry has ended"), p.failed)
		}
		return m, true, nil
	case <-second.C:
		return Message{}, false, nil
	case <-ctx.Done():
		return Message{}, false, ctx.Err()
	}
}

// Send implements Line.
func (p *PubSub) Send(ctx context.Context, c domain.Command) error {
	data, attrs, err := wire.EncodeCommand(c, wire.Protobuf)
	if err != nil {
		return err
	}
	_, err = p.publisher.Publish(ctx, pubsubio.TopicMissions, data, attrs, string(c.Mission.DroneID)).Wait(ctx)
	return err
}

// Close ends the connection and deletes its subscription.
func (p *PubSub) Close() error {
	p.stop()
	p.receiving.Wait()
	p.publisher.Stop()
	return pubsubio.DeleteTemporary(context.Background(), p.client, p.name)
}
