package pubsubemu_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

func TestMain(m *testing.M) {
	if runChild() {
		return
	}
	leaktest.Main(m)
}

const project = "projects/fleet"

func topicName(id string) string        { return project + "/topics/" + id }
func subscriptionName(id string) string { return project + "/subscriptions/" + id }
func snapshotName(id string) string     { return project + "/snapshots/" + id }

// bench is a server with raw stubs and a real client, closed with the test.
type bench struct {
	t      testing.TB
	server *pubsubemu.Server
	conn   *grpc.ClientConn
	pub    pubsubpb.PublisherClient
	sub    pubsubpb.SubscriberClient
	client *pubsub.Client
}

func start(t testing.TB, opts pubsubemu.Options) *bench {
	t.Helper()
	server, err := pubsubemu.Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	b := connect(t, server.Addr())
	b.server = server
	return b
}

func connect(t testing.TB, addr string) *bench {
	t.Helper()
	conn := dial(t, addr)
	client, err := pubsub.NewClient(t.Context(), "fleet", option.WithGRPCConn(dial(t, addr)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return &bench{
		t: t, conn: conn, client: client,
		pub: pubsubpb.NewPublisherClient(conn), sub: pubsubpb.NewSubscriberClient(conn),
	}
}

func dial(t testing.TB, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// deadline bounds a wait for something that must happen.
func (b *bench) deadline() context.Context {
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	b.t.Cleanup(cancel)
	return ctx
}

func (b *bench) topic(id string) string {
	b.t.Helper()
	if _, err := b.pub.CreateTopic(b.deadline(), &pubsubpb.Topic{Name: topicName(id)}); err != nil {
		b.t.Fatal(err)
	}
	return topicName(id)
}

// subscribe creates a subscription; change adapts its settings.
func (b *bench) subscribe(id, topic string, change func(*pubsubpb.Subscription)) string {
	b.t.Helper()
	config := &pubsubpb.Subscription{Name: subscriptionName(id), Topic: topic}
	if change != nil {
		change(config)
	}
	if _, err := b.sub.CreateSubscription(b.deadline(), config); err != nil {
		b.t.Fatal(err)
	}
	return config.Name
}

func texts(prefix string, n int) []*pubsubpb.PubsubMessage {
	messages := make([]*pubsubpb.PubsubMessage, n)
	for i := range messages {
		messages[i] = &pubsubpb.PubsubMessage{Data: fmt.Appendf(nil, "%s%d", prefix, i)}
	}
	return messages
}

func (b *bench) publish(topic string, messages ...*pubsubpb.PubsubMessage) []string {
	b.t.Helper()
	resp, err := b.pub.Publish(b.deadline(), &pubsubpb.PublishRequest{Topic: topic, Messages: messages})
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.MessageIds
}

// pull asks once and does not wait for messages.
func (b *bench) pull(subscription string, most int32) []*pubsubpb.ReceivedMessage {
	b.t.Helper()
	//lint:ignore SA1019 the only way to learn that nothing is there without waiting
	resp, err := b.sub.Pull(b.deadline(), &pubsubpb.PullRequest{Subscription: subscription, MaxMessages: most, ReturnImmediately: true})
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.ReceivedMessages
}

// pullWait asks until a message is there.
func (b *bench) pullWait(subscription string, most int32) []*pubsubpb.ReceivedMessage {
	b.t.Helper()
	resp, err := b.sub.Pull(b.deadline(), &pubsubpb.PullRequest{Subscription: subscription, MaxMessages: most})
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.ReceivedMessages
}

func (b *bench) ack(subscription string, messages ...*pubsubpb.ReceivedMessage) {
	b.t.Helper()
	_, err := b.sub.Acknowledge(b.deadline(), &pubsubpb.AcknowledgeRequest{Subscription: subscription, AckIds: ackIDs(messages)})
	if err != nil {
		b.t.Fatal(err)
	}
}

// modify sets the deadline of deliveries, 0 to nack.
func (b *bench) modify(subscription string, seconds int32, messages ...*pubsubpb.ReceivedMessage) {
	b.t.Helper()
	_, err := b.sub.ModifyAckDeadline(b.deadline(), &pubsubpb.ModifyAckDeadlineRequest{
		Subscription: subscription, AckIds: ackIDs(messages), AckDeadlineSeconds: seconds,
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func ackIDs(messages []*pubsubpb.ReceivedMessage) []string {
	ids := make([]string, len(messages))
	for i, m := range messages {
		ids[i] = m.AckId
	}
	return ids
}

func payloads(messages []*pubsubpb.ReceivedMessage) []string {
	var out []string
	for _, m := range messages {
		out = append(out, string(m.Message.Data))
	}
	return out
}

// stream is a raw streaming pull.
type stream struct {
	b      *bench
	call   pubsubpb.Subscriber_StreamingPullClient
	cancel context.CancelFunc
}

func (b *bench) stream(first *pubsubpb.StreamingPullRequest) *stream {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.deadline())
	b.t.Cleanup(cancel)
	call, err := b.sub.StreamingPull(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	if first.StreamAckDeadlineSeconds == 0 {
		first.StreamAckDeadlineSeconds = 10
	}
	if err := call.Send(first); err != nil {
		b.t.Fatal(err)
	}
	return &stream{b: b, call: call, cancel: cancel}
}

// receive reads until it has n messages.
func (s *stream) receive(n int) []*pubsubpb.ReceivedMessage {
	s.b.t.Helper()
	var got []*pubsubpb.ReceivedMessage
	for len(got) < n {
		resp, err := s.call.Recv()
		if err != nil {
			s.b.t.Fatalf("after %d of %d messages: %v", len(got), n, err)
		}
		got = append(got, resp.ReceivedMessages...)
	}
	return got
}

// ping sends a keepalive and reads up to its answer, which the server queues before
// any later delivery. It returns the messages that came before.
func (s *stream) ping() []*pubsubpb.ReceivedMessage {
	s.b.t.Helper()
	if err := s.call.Send(&pubsubpb.StreamingPullRequest{}); err != nil {
		s.b.t.Fatal(err)
	}
	var got []*pubsubpb.ReceivedMessage
	for {
		resp, err := s.call.Recv()
		if err != nil {
			s.b.t.Fatal(err)
		}
		if len(resp.ReceivedMessages) == 0 {
			return got
		}
		got = append(got, resp.ReceivedMessages...)
	}
}
