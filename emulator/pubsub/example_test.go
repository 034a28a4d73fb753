package pubsubemu_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/jonboulle/clockwork"

	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/emulator/pubsub/fault"
)

const (
	exampleTopic        = "projects/fleet/topics/telemetry"
	exampleSubscription = "projects/fleet/subscriptions/ingest"
)

// create makes the topic and the subscription of the examples.
func create(ctx context.Context, client *pubsub.Client) {
	if _, err := client.TopicAdminClient.CreateTopic(ctx, &pubsubpb.Topic{Name: exampleTopic}); err != nil {
		log.Fatal(err)
	}
	if _, err := client.SubscriptionAdminClient.CreateSubscription(ctx, &pubsubpb.Subscription{Name: exampleSubscription, Topic: exampleTopic}); err != nil {
		log.Fatal(err)
	}
}

func publish(ctx context.Context, client *pubsub.Client, text string) error {
	publisher := client.Publisher(exampleTopic)
	defer publisher.Stop()
	_, err := publisher.Publish(ctx, &pubsub.Message{Data: []byte(text)}).Get(ctx)
	return err
}

// receive acks and returns the first message that comes.
func receiveOne(ctx context.Context, client *pubsub.Client) string {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var text string
	err := client.Subscriber(exampleSubscription).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		text = string(m.Data)
		m.Ack()
		cancel()
	})
	if err != nil {
		log.Fatal(err)
	}
	return text
}

// In a test, NewClient(t) is all it takes: it starts a server in the process and
// closes it with the test. A program does the same in two calls.
func Example() {
	server, err := pubsubemu.Start(pubsubemu.Options{InProcess: true})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	client, err := server.Client(ctx, "fleet")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	create(ctx, client)
	if err := publish(ctx, client, "drone d1 is at the hospital"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(receiveOne(ctx, client))
	// Output:
	// drone d1 is at the hospital
}

// A server on a free port serves other processes, in any language.
func ExampleServer_Addr() {
	server, err := pubsubemu.Start(pubsubemu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	host, _, _ := strings.Cut(server.Addr(), ":")
	fmt.Printf("export PUBSUB_EMULATOR_HOST=%s:...\n", host)
	// Output:
	// export PUBSUB_EMULATOR_HOST=127.0.0.1:...
}

// Backlog shows what is outstanding without delivering it, Counters how often
// what happened.
func ExampleServer_Backlog() {
	server, err := pubsubemu.Start(pubsubemu.Options{InProcess: true})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	client, err := server.Client(ctx, "fleet")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	create(ctx, client)
	for _, text := range []string{"battery 80 %", "battery 79 %"} {
		if err := publish(ctx, client, text); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := client.SubscriptionAdminClient.Pull(ctx, &pubsubpb.PullRequest{Subscription: exampleSubscription, MaxMessages: 1}); err != nil {
		log.Fatal(err)
	}

	backlog, err := server.Backlog(exampleSubscription)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range backlog {
		fmt.Printf("%s: %s, attempts: %d\n", m.Message.Data, m.State, m.Attempts)
	}
	counters := server.Counters().Subscriptions[exampleSubscription]
	fmt.Println("delivered:", counters.Delivered, "acked:", counters.Acked)
	// Output:
	// battery 80 %: leased, attempts: 1
	// battery 79 %: ready, attempts: 0
	// delivered: 1 acked: 0
}

// Faults are seeded: the same run meets the same ones. Here every publish is
// applied but its answer is lost, until the plan is taken back; the client
// repeats the publish, and the message is there more than once.
func ExampleServer_Faults() {
	server, err := pubsubemu.Start(pubsubemu.Options{InProcess: true, Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	client, err := server.Client(ctx, "fleet")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	create(ctx, client)

	server.Faults().Set(fault.Plan{LoseAnswer: 1})
	done := make(chan error, 1)
	go func() { done <- publish(ctx, client, "order o1") }()
	for server.Faults().Counts()[fault.LoseAnswer] == 0 {
		time.Sleep(time.Millisecond)
	}
	server.Faults().Set(fault.Plan{})
	if err := <-done; err != nil {
		log.Fatal(err)
	}
	backlog, err := server.Backlog(exampleSubscription)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("published once, in the backlog more than once:", len(backlog) > 1)
	// Output:
	// published once, in the backlog more than once: true
}

// With a fake clock, an ack deadline passes when the test says so.
func ExampleOptions_clock() {
	clock := clockwork.NewFakeClock()
	server, err := pubsubemu.Start(pubsubemu.Options{InProcess: true, Clock: clock})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	client, err := server.Client(ctx, "fleet")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	create(ctx, client)
	if err := publish(ctx, client, "order o1"); err != nil {
		log.Fatal(err)
	}
	pull := &pubsubpb.PullRequest{Subscription: exampleSubscription, MaxMessages: 1}
	for range 2 {
		got, err := client.SubscriptionAdminClient.Pull(ctx, pull)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", got.ReceivedMessages[0].Message.Data)
		clock.Advance(10 * time.Second) // the default ack deadline
	}
	// Output:
	// order o1
	// order o1
}

// With a data directory, what was published is there after a restart or a crash.
// Only one server can use the directory at a time.
func ExampleOptions_dataDir() {
	dir, err := os.MkdirTemp("", "pubsub")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	for _, text := range []string{"order o1", ""} {
		server, err := pubsubemu.Start(pubsubemu.Options{InProcess: true, DataDir: dir})
		if err != nil {
			log.Fatal(err)
		}
		_, err = pubsubemu.Start(pubsubemu.Options{InProcess: true, DataDir: dir})
		fmt.Println("a second server is refused:", errors.Is(err, pubsubemu.ErrInUse))
		client, err := server.Client(ctx, "fleet")
		if err != nil {
			log.Fatal(err)
		}
		if text != "" {
			create(ctx, client)
			if err := publish(ctx, client, text); err != nil {
				log.Fatal(err)
			}
		} else {
			fmt.Println("after the restart:", receiveOne(ctx, client))
		}
		if err := errors.Join(client.Close(), server.Close()); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// a second server is refused: true
	// a second server is refused: true
	// after the restart: order o1
}
