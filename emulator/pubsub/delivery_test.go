package pubsubemu_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"github.com/jonboulle/clockwork"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

var epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

func TestStart_FailsOnBusyPort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, err = pubsubemu.Start(pubsubemu.Options{Addr: listener.Addr().String()})
	if want := "pubsub emulator: listen tcp " + listener.Addr().String() + ": "; err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "Options") {
		t.Errorf("error %v, want %s and no name of a Go field", err, want)
	}
}

func TestServer_RoundTripWithClient(t *testing.T) { // P-RPC-01
	b := start(t, pubsubemu.Options{})
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, nil)
	const n = 2500
	publisher := b.client.Publisher(topic)
	var results []*pubsub.PublishResult
	for i := range n {
		results = append(results, publisher.Publish(t.Context(), &pubsub.Message{
			Data: fmt.Append(nil, i), Attributes: map[string]string{"i": fmt.Sprint(i)},
		}))
	}
	for _, r := range results {
		if _, err := r.Get(b.deadline()); err != nil {
			t.Fatal(err)
		}
	}
	publisher.Stop()
	ctx, cancel := context.WithCancel(b.deadline())
	var mu sync.Mutex
	seen := map[string]int{}
	err := b.client.Subscriber(sub).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		m.Ack()
		mu.Lock()
		defer mu.Unlock()
		if string(m.Data) != m.Attributes["i"] || m.PublishTime.IsZero() || m.ID == "" || m.DeliveryAttempt != nil {
			t.Errorf("message changed: %+v", m)
		}
		if seen[string(m.Data)]++; len(seen) == n {
			cancel()
		}
	})
	if err != nil || len(seen) != n {
		t.Fatalf("received %d of %d: %v", len(seen), n, err)
	}
	got := b.server.Counters().Subscriptions[sub]
	if got.Backlog != 0 || got.Acked != n || got.Published != n {
		t.Errorf("after acking everything: %+v", got)
	}
}

func TestDelivery_ExpiredLeaseIsRedelivered(t *testing.T) { // P-DEL-01, P-DEL-02
	clock := clockwork.NewFakeClockAt(epoch)
	b := start(t, pubsubemu.Options{Clock: clock})
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, nil)
	b.publish(topic, texts("m", 1)...)
	first := b.pull(sub, 10)
	clock.Advance(9 * time.Second)
	if again := b.pull(sub, 10); len(again) != 0 {
		t.Fatalf("redelivered %v before the ack deadline", payloads(again))
	}
	b.modify(sub, 20, first...) // extended to 29 s
	clock.Advance(19 * time.Second)
	if again := b.pull(sub, 10); len(again) != 0 {
		t.Fatalf("redelivered %v though extended", payloads(again))
	}
	clock.Advance(2 * time.Second)
	second := b.pullWait(sub, 10)
	if len(second) != 1 || second[0].AckId == first[0].AckId {
		t.Fatalf("redelivery %v; want the message under a new ack id", second)
	}
	b.ack(sub, first...) // stale: accepted and ignored
	if got := b.server.Counters().Subscriptions[sub]; got.Backlog != 1 || got.Expired != 1 || got.Delivered != 2 {
		t.Errorf("counters after a stale ack: %+v", got)
	}
	b.ack(sub, second...)
	if got := b.server.Counters().Subscriptions[sub]; got.Backlog != 0 {
		t.Errorf("counters after the ack: %+v", got)
	}
}

func TestDelivery_NackRedeliversAtOnce(t *testing.T) { // P-DEL-01, P-DEL-03
	b := start(t, pubsubemu.Options{Clock: clockwork.NewFakeClockAt(epoch)})
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, nil)
	b.publish(topic, texts("m", 3)...)
	got := b.pull(sub, 10)
	b.modify(sub, 0, got...)
	if again := b.pull(sub, 10); len(again) != 3 {
		t.Errorf("redelivered %v", payloads(again))
	}
}

func TestDelivery_BrokenStreamRedelivers(t *testing.T) { // P-DEL-01
	b := start(t, pubsubemu.Options{Clock: clockwork.NewFakeClockAt(epoch)})
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, nil)
	b.publish(topic, texts("m", 5)...)
	s := b.stream(&pubsubpb.StreamingPullRequest{Subscription: sub, StreamAckDeadlineSeconds: 600})
	s.receive(5)
	s.cancel()
	other := b.stream(&pubsubpb.StreamingPullRequest{Subscription: sub})
	want := []string{"m0", "m1", "m2", "m3", "m4"}
	if diff := cmp.Diff(want, payloads(other.receive(5))); diff != "" {
		t.Error(diff)
	}
}

// freezable is a connection whose client can be frozen: then it reads and writes
// nothing, and stays open.
type freezable struct {
	net.Conn
	frozen atomic.Bool
	thawed chan struct{}
}

func (c *freezable) wait() {
	if c.frozen.Load() {
		<-c.thawed
	}
}

func (c *freezable) Read(data []byte) (int, error) {
	n, err := c.Conn.Read(data)
	c.wait()
	return n, err
}

func (c *freezable) Write(data []byte) (int, error) {
	c.wait()
	return c.Conn.Write(data)
}

// A client that is frozen, and set no deadline on its stream, is noticed after 20 s. It
// would get the same messages again and again, because it seems to be idle.
func TestDelivery_FrozenClientLosesItsStream(t *testing.T) { // P-DEL-01
	longtest.Only(t, "the server notices after 20 s")
	t.Parallel()
	b := start(t, pubsubemu.Options{})
	topic := b.topic("orders")
	sub := b.subscribe("ingest", topic, nil)
	frozen := &freezable{thawed: make(chan struct{})}
	conn, err := grpc.NewClient("passthrough:///"+b.server.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, "tcp", addr)
			if frozen.Conn == nil {
				frozen.Conn, conn = conn, frozen
			}
			return conn, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { close(frozen.thawed); _ = conn.Close() })
	stuck, err := pubsubpb.NewSubscriberClient(conn).StreamingPull(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stuck.Send(&pubsubpb.StreamingPullRequest{Subscription: sub, StreamAckDeadlineSeconds: 600}); err != nil {
		t.Fatal(err)
	}
	b.publish(topic, texts("before", 1)...)
	if _, err := stuck.Recv(); err != nil {
		t.Fatal(err)
	}
	frozen.frozen.Store(true)
	b.publish(topic, texts("after", 1)...)
	well := b.stream(&pubsubpb.StreamingPullRequest{Subscription: sub})
	if diff := cmp.Diff([]string{"after0", "before0"}, slices.Sorted(slices.Values(payloads(well.receive(2))))); diff != "" {
		t.Error(diff)
	}
}

// A client that half-closes a stream, to go on with another one, keeps the leases of
// what it has.
func TestDelivery_HalfClosedStreamKeepsLeases(t *testing.T) { // P-DEL-01, P-DEL-04
	clock := clockwork.NewFakeClockAt(epoch)
	b := start(t, pubsubemu.Options{Clock: clock})
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, ordered)
	b.publish(topic, append(texts("m", 2), keyed("D1", "k0", "k1")...)...)
	s := b.stream(&pubsubpb.StreamingPullRequest{Subscription: sub, StreamAckDeadlineSeconds: 30})
	got := s.receive(4)
	if err := s.call.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if resp, err := s.call.Recv(); !errors.Is(err, io.EOF) {
		t.Fatalf("after the half-close: %v, %v; want io.EOF", resp, err)
	}
	other := b.stream(&pubsubpb.StreamingPullRequest{Subscription: sub})
	if early := other.ping(); len(early) != 0 {
		t.Fatalf("redelivered %v while the leases of the half-closed stream run", payloads(early))
	}
	b.ack(sub, slices.DeleteFunc(got, func(m *pubsubpb.ReceivedMessage) bool {
		return !slices.Contains([]string{"m0", "k0"}, string(m.Message.Data))
	})...)
	b.publish(topic, keyed("D1", "k2")...)
	if early := other.ping(); len(early) != 0 {
		t.Fatalf("%v delivered while an earlier message of the key is out", payloads(early))
	}
	clock.Advance(31 * time.Second)
	if diff := cmp.Diff([]string{"k1", "k2", "m1"}, slices.Sorted(slices.Values(payloads(other.receive(3))))); diff != "" {
		t.Error(diff)
	}
}

func TestDelivery_StreamDeadline(t *testing.T) { // P-DEL-01
	clock := clockwork.NewFakeClockAt(epoch)
	b := start(t, pubsubemu.Options{Clock: clock})
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, nil)
	b.publish(topic, texts("m", 1)...)
	s := b.stream(&pubsubpb.StreamingPullRequest{Subscription: sub, StreamAckDeadlineSeconds: 100})
	s.receive(1)
	clock.Advance(99 * time.Second)
	if early := s.ping(); len(early) != 0 {
		t.Fatalf("redelivered %v before the stream's deadline", payloads(early))
	}
	clock.Advance(2 * time.Second)
	s.receive(1)
}

func TestDelivery_Retention(t *testing.T) { // P-DEL-01
	clock := clockwork.NewFakeClockAt(epoch)
	b := start(t, pubsubemu.Options{Clock: clock})
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, nil)
	b.publish(topic, texts("old", 2)...)
	clock.Advance(6 * 24 * time.Hour)
	b.publish(topic, texts("new", 1)...)
	if age := b.server.Counters().Subscriptions[sub].OldestAge; age != 6*24*time.Hour {
		t.Errorf("oldest age %v", age)
	}
	s := b.stream(&pubsubpb.StreamingPullRequest{Subscription: sub, MaxOutstandingMessages: 1})
	if got := payloads(s.receive(1)); got[0] != "old0" {
		t.Errorf("received %v", got)
	}
	clock.Advance(25 * time.Hour) // past the retention of old0, which is leased, and old1
	if got := payloads(s.receive(1)); got[0] != "new0" {
		t.Errorf("received %v", got)
	}
	if got := b.server.Counters().Subscriptions[sub].Backlog; got != 1 {
		t.Errorf("backlog %d", got)
	}
}

func keyed(key string, data ...string) []*pubsubpb.PubsubMessage {
	var messages []*pubsubpb.PubsubMessage
	for _, d := range data {
		messages = append(messages, &pubsubpb.PubsubMessage{Data: []byte(d), OrderingKey: key})
	}
	return messages
}

func ordered(c *pubsubpb.Subscription) { c.EnableMessageOrdering = true }

func TestOrdering_NackRedeliversRestOfKey(t *testing.T) { // P-DEL-04
	b := start(t, pubsubemu.Options{Clock: clockwork.NewFakeClockAt(epoch)})
	topic := b.topic("orders")
	sub := b.subscribe("intake", topic, ordered)
	b.publish(topic, keyed("k", "1", "2", "3", "4", "5")...)
	s := b.stream(&pubsubpb.StreamingPullRequest{Subscription: sub})
	got := s.receive(5)
	if diff := cmp.Diff([]string{"1", "2", "3", "4", "5"}, payloads(got)); diff != "" {
		t.Fatal(diff)
	}
	b.ack(sub, got[0], got[3]) // 4 is acked out of order
	b.modify(sub, 0, got[1])
	again := s.receive(4)
	if diff := cmp.Diff([]string{"2", "3", "4", "5"}, payloads(again)); diff != "" {
		t.Fatal(diff)
	}
	b.ack(sub, got[2]) // stale now
	b.ack(sub, again...)
	if c := b.server.Counters().Subscriptions[sub]; c.Backlog != 0 {
		t.Errorf("counters %+v", c)
	}
}

func TestOrdering_ExpiryRedeliversInOrder(t *testing.T) { // P-DEL-04
	clock := clockwork.NewFakeClockAt(epoch)
	b := start(t, pubsubemu.Options{Clock: clock})
	topic := b.topic("orders")
	sub := b.subscribe("intake", topic, ordered)
	b.publish(topic, keyed("k", "1", "2", "3")...)
	s := b.stream(&pubsubpb.StreamingPullRequest{Subscription: sub})
	b.modify(sub, 60, s.receive(3)[1:]...)
	clock.Advance(11 * time.Second) // only 1 expires
	if diff := cmp.Diff([]string{"1", "2", "3"}, payloads(s.receive(3))); diff != "" {
		t.Error(diff)
	}
}

func TestOrdering_OneStreamPerKey(t *testing.T) { // P-DEL-04
	b := start(t, pubsubemu.Options{Clock: clockwork.NewFakeClockAt(epoch)})
	topic := b.topic("orders")
	sub := b.subscribe("intake", topic, ordered)
	b.publish(topic, keyed("k", "1")...)
	holder := b.stream(&pubsubpb.StreamingPullRequest{Subscription: sub, MaxOutstandingMessages: 2})
	first := holder.receive(1)
	other := b.stream(&pubsubpb.StreamingPullRequest{Subscription: sub})
	other.ping()
	b.publish(topic, keyed("k", "2", "3")...)
	b.publish(topic, keyed("l", "x")...) // another key is not held back
	if got := payloads(other.receive(1)); got[0] != "x" {
		t.Fatalf("other stream got %v", got)
	}
	second := holder.receive(1)
	if got := payloads(second); got[0] != "2" {
		t.Fatalf("holder got %v", got)
	}
	if got := other.ping(); len(got) != 0 {
		t.Fatalf("%v left the stream that holds its key", payloads(got))
	}
	b.ack(sub, first...)
	if got := payloads(holder.receive(1)); got[0] != "3" {
		t.Errorf("holder got %v", got)
	}
}

func TestFlowControl_LimitsMessagesAndBytes(t *testing.T) { // P-DEL-06
	b := start(t, pubsubemu.Options{Clock: clockwork.NewFakeClockAt(epoch)})
	topic := b.topic("telemetry")
	byCount, byBytes := b.subscribe("count", topic, nil), b.subscribe("bytes", topic, nil)
	var messages []*pubsubpb.PubsubMessage
	for range 10 {
		messages = append(messages, &pubsubpb.PubsubMessage{Data: make([]byte, 1000)})
	}
	b.publish(topic, messages...)
	for _, c := range []struct {
		first *pubsubpb.StreamingPullRequest
		most  int
	}{
		{&pubsubpb.StreamingPullRequest{Subscription: byCount, MaxOutstandingMessages: 3}, 3},
		{&pubsubpb.StreamingPullRequest{Subscription: byBytes, MaxOutstandingBytes: 4500}, 4},
	} {
		s := b.stream(c.first)
		got := s.receive(c.most)
		if more := s.ping(); len(got)+len(more) != c.most {
			t.Fatalf("%v: %d outstanding", c.first, len(got)+len(more))
		}
		b.ack(c.first.Subscription, got[:2]...)
		got = s.receive(2)
		if more := s.ping(); len(got)+len(more) != 2 {
			t.Errorf("%v: %d more after 2 acks", c.first, len(got)+len(more))
		}
	}
}

func TestFlowControl_SharesAreFair(t *testing.T) { // P-DEL-06
	const streams = 4
	for _, c := range []struct {
		name string
		n    int // messages
		each int // of them per publish
	}{
		{"one by one", 2000, 1}, // enough that a short pause of one stream does not matter
		{"in one burst", 400, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := start(t, pubsubemu.Options{Clock: clockwork.NewFakeClockAt(epoch)})
			topic := b.topic("telemetry")
			sub := b.subscribe("ingest", topic, nil)
			var mu sync.Mutex
			counts, total := make([]int, streams), 0
			done := make(chan struct{})
			var wg sync.WaitGroup
			var open []*stream
			for range streams {
				s := b.stream(&pubsubpb.StreamingPullRequest{Subscription: sub})
				s.ping() // the stream is open
				open = append(open, s)
			}
			for i, s := range open {
				wg.Go(func() {
					for {
						resp, err := s.call.Recv()
						if err != nil {
							return
						}
						mu.Lock()
						counts[i] += len(resp.ReceivedMessages)
						if total += len(resp.ReceivedMessages); total == c.n {
							close(done)
						}
						mu.Unlock()
					}
				})
			}
			for range c.n / c.each {
				b.publish(topic, texts("m", c.each)...)
			}
			select {
			case <-done:
			case <-b.deadline().Done():
				t.Error("not everything was delivered")
			}
			for _, s := range open {
				s.cancel()
			}
			wg.Wait()
			slices.Sort(counts)
			if counts[0] < c.n/streams*3/4 {
				t.Errorf("messages per stream %v; want about %d each", counts, c.n/streams)
			}
		})
	}
}

func TestStreamingPull_RefusesBadRequests(t *testing.T) { // P-RPC-01
	b := start(t, pubsubemu.Options{})
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, nil)
	cases := []struct {
		name     string
		requests []*pubsubpb.StreamingPullRequest
		want     codes.Code
	}{
		{"unknown subscription", []*pubsubpb.StreamingPullRequest{{Subscription: subscriptionName("none"), StreamAckDeadlineSeconds: 10}}, codes.NotFound},
		{"deadline missing", []*pubsubpb.StreamingPullRequest{{Subscription: sub}}, codes.InvalidArgument},
		{"deadline too long", []*pubsubpb.StreamingPullRequest{{Subscription: sub, StreamAckDeadlineSeconds: 601}}, codes.InvalidArgument},
		{"subscription repeated", []*pubsubpb.StreamingPullRequest{
			{Subscription: sub, StreamAckDeadlineSeconds: 10}, {Subscription: sub},
		}, codes.InvalidArgument},
		{"flow control changed", []*pubsubpb.StreamingPullRequest{
			{Subscription: sub, StreamAckDeadlineSeconds: 10}, {MaxOutstandingMessages: 5},
		}, codes.InvalidArgument},
		{"malformed ack id", []*pubsubpb.StreamingPullRequest{
			{Subscription: sub, StreamAckDeadlineSeconds: 10}, {AckIds: []string{"no"}},
		}, codes.InvalidArgument},
		{"deadlines without ids", []*pubsubpb.StreamingPullRequest{
			{Subscription: sub, StreamAckDeadlineSeconds: 10}, {ModifyDeadlineSeconds: []int32{10}},
		}, codes.InvalidArgument},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			call, err := b.sub.StreamingPull(b.deadline())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range c.requests {
				if err := call.Send(r); err != nil {
					break // the server has answered already
				}
			}
			if _, err := call.Recv(); status.Code(err) != c.want {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestStreamingPull_EndsWithSubscription(t *testing.T) { // P-RPC-01
	b := start(t, pubsubemu.Options{})
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, nil)
	s := b.stream(&pubsubpb.StreamingPullRequest{Subscription: sub})
	s.ping()
	if _, err := b.sub.DeleteSubscription(b.deadline(), &pubsubpb.DeleteSubscriptionRequest{Subscription: sub}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.call.Recv(); status.Code(err) != codes.NotFound {
		t.Errorf("stream ended with %v", err)
	}
}
