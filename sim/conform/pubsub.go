package conform

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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
	id        domain.DroneID
	name      string // of the subscription of telemetry
	publisher *pubsubio.Publisher
	messages  chan Message
	stop      context.CancelFunc
	receiving sync.WaitGroup
	failed    error // once messages is closed

	speed float64
	began time.Time // of the machine
	mu    sync.Mutex
	ahead time.Duration // of the fleet's time at began
	met   bool
}

// ahead of the examination, so that a burst of other drones' reports does not hold up Pub/Sub.
const messageQueue = 10_000

// OpenPubSub connects with a drone over Pub/Sub. The fleet's time runs speed times as fast as the
// machine's; above 1 it is the drone's own at its first report, so that a simulated drone can
// have any time. Close ends it.
func OpenPubSub(ctx context.Context, c *pubsub.Client, id domain.DroneID, speed float64) (*PubSub, error) {
	p := &PubSub{
		client: c, id: id, name: "telemetry-conform-" + uuid.NewString()[:8], publisher: pubsubio.NewPublisher(c),
		messages: make(chan Message, messageQueue), speed: speed, began: time.Now(),
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
	p.meet(msg)
	select {
	case p.messages <- Message{Data: msg.Data, Attributes: msg.Attributes, OrderingKey: msg.OrderingKey, Arrived: p.Now()}:
	case <-ctx.Done():
	}
}

// meet takes the drone's time over at its first report, if time runs faster than the machine's.
func (p *PubSub) meet(msg *pubsub.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.met || p.speed == 1 {
		return
	}
	if t, err := wire.DecodeTelemetry(msg.Data, msg.Attributes); err == nil && t.DroneID == p.id {
		p.met = true
		p.ahead += t.Timestamp.Sub(p.nowLocked())
	}
}

// Slack is what DroneConfig.Slack should be for a speed: a quarter of a second of the machine's
// time, or nothing where no time runs faster.
func Slack(speed float64) time.Duration {
	if speed == 1 {
		return 0
	}
	return time.Duration(speed * float64(250*time.Millisecond))
}

// Now implements Line.
func (p *PubSub) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nowLocked()
}

func (p *PubSub) nowLocked() time.Time {
	return p.began.Round(0).Add(p.ahead + time.Duration(float64(time.Since(p.began))*p.speed))
}

// Next implements Line.
func (p *PubSub) Next(ctx context.Context) (Message, bool, error) {
	second := time.NewTimer(time.Duration(float64(time.Second) / p.speed))
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
