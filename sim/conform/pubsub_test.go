package conform_test

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/sim/conform"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// drone is a drone of another maker: it knows Pub/Sub and its own subscription, and its time runs
// faster than the machine's.
func drone(ctx context.Context, c *pubsub.Client, id domain.DroneID, speed float64) error {
	depot := domain.Position{Lat: 48.8566, Lon: 2.3522}
	commands := make(chan domain.Command, 100)
	go func() {
		_ = c.Subscriber(conform.DroneSubscription(id)).Receive(ctx, func(_ context.Context, msg *pubsub.Message) {
			if command, err := wire.DecodeCommand(msg.Data, msg.Attributes); err == nil {
				commands <- command
			}
			msg.Ack()
		}) // until ctx ends
	}()
	publisher := pubsubio.NewPublisher(c)
	defer publisher.Stop()
	d := fleetsim.NewDrone(domain.Drone{ID: id, Position: depot, Battery: 92, SupportsAmendments: true, SupportsStandby: true}, depot)
	began, now := time.Now(), time.Now()
	ticker := time.NewTicker(time.Duration(float64(time.Second) / speed))
	defer ticker.Stop()
	for {
		clock := func() time.Time { return began.Add(time.Duration(float64(time.Since(began)) * speed)) }
		select {
		case <-ctx.Done():
			return nil
		case command := <-commands:
			d, _ = d.Obey(command, clock())
		case <-ticker.C:
			d = d.After(clock().Sub(now))
			now = clock()
			var t domain.Telemetry
			d, t = d.Report(now)
			data, attrs, err := wire.EncodeTelemetry(t, wire.Protobuf)
			if err != nil {
				return err
			}
			publisher.Publish(ctx, pubsubio.TopicTelemetry, data, attrs, string(id))
		}
	}
}

// F-KIT-01, F-DOC-13: over Pub/Sub, with a subscription of its own commands, a drone whose time
// runs faster is examined in less time.
func TestPubSub_ExaminesADrone(t *testing.T) {
	t.Parallel()
	const id, speed = "DRONE-7", 50
	limit := longtest.Size(t, "minutes of flight", 2, 10)
	server := pubsubemu.StartT(t, pubsubemu.Options{})
	client := server.ClientT(t, "test")
	if err := conform.PrepareDrone(t.Context(), client, id); err != nil {
		t.Fatal(err)
	}
	line, err := conform.OpenPubSub(t.Context(), client, id, speed)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	flying := make(chan error)
	go func() { flying <- drone(ctx, server.ClientT(t, "test"), id, speed) }()
	summary, err := conform.Drone(t.Context(), conform.DroneConfig{ID: id, Keys: true, Slack: conform.Slack(speed), Limit: time.Duration(limit) * time.Minute}, line)
	stop()
	if err := <-flying; err != nil {
		t.Error(err)
	}
	if err := line.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for _, r := range summary.Results {
		if r.Verdict == conform.Broken {
			t.Errorf("%s is broken: %q", r.ID, r.Findings)
		}
		if r.Verdict == conform.Kept {
			tested++
		}
	}
	if all := len(summary.Results) - 1; limit == 10 && (tested < all || summary.Ended != "") { // nobody restarts it
		t.Errorf("%d rules of %d are tested; ended early: %q", tested, all, summary.Ended)
	}
	if tested < 8 {
		t.Errorf("%d rules are tested", tested)
	}
}
