package pubsubemu_test

import (
	"context"
	"fmt"
	"log"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
)

// A program under test reaches the server through PUBSUB_EMULATOR_HOST set to
// Addr; here a client in the same process dials it.
func Example() {
	server, err := pubsubemu.Start(pubsubemu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	conn, err := grpc.NewClient(server.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client, err := pubsub.NewClient(ctx, "fleet", option.WithGRPCConn(conn))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	topic, sub := "projects/fleet/topics/telemetry", "projects/fleet/subscriptions/ingest"
	if _, err := client.TopicAdminClient.CreateTopic(ctx, &pubsubpb.Topic{Name: topic}); err != nil {
		log.Fatal(err)
	}
	if _, err := client.SubscriptionAdminClient.CreateSubscription(ctx, &pubsubpb.Subscription{Name: sub, Topic: topic}); err != nil {
		log.Fatal(err)
	}
	publisher := client.Publisher(topic)
	defer publisher.Stop()
	publisher.Publish(ctx, &pubsub.Message{Data: []byte("drone d1 is at the hospital")})
	err = client.Subscriber(sub).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		fmt.Println(string(m.Data))
		m.Ack()
		cancel()
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("backlog:", server.Counters().Subscriptions[sub].Backlog)
	// Output:
	// drone d1 is at the hospital
	// backlog: 0
}
