package pubsubemu_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"github.com/googleapis/gax-go/v2/apierror"
	"github.com/jonboulle/clockwork"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
)

func TestRetryPolicy_BacksOff(t *testing.T) { // P-DEL-03
	clock := clockwork.NewFakeClockAt(epoch)
	b := start(t, pubsubemu.Options{Clock: clock})
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, func(c *pubsubpb.Subscription) {
		c.RetryPolicy = &pubsubpb.RetryPolicy{MinimumBackoff: durationpb.New(20 * time.Second), MaximumBackoff: durationpb.New(60 * time.Second)}
	})
	b.publish(topic, texts("m", 1)...)
	got := b.pull(sub, 1)
	for _, pause := range []time.Duration{20 * time.Second, 40 * time.Second, 60 * time.Second, 60 * time.Second} {
		b.modify(sub, 0, got...)
		clock.Advance(pause - time.Second)
		if early := b.pull(sub, 1); len(early) != 0 {
			t.Fatalf("redelivered before %v", pause)
		}
		clock.Advance(time.Second)
		got = b.pullWait(sub, 1)
	}
	// an expiry backs off as a nack does
	clock.Advance(10 * time.Second)
	clock.Advance(59 * time.Second)
	if early := b.pull(sub, 1); len(early) != 0 {
		t.Fatal("redelivered before the backoff after an expiry")
	}
	clock.Advance(2 * time.Second)
	b.pullWait(sub, 1)
}

func TestRetryPolicy_HoldsBackOnlyItsOrderingKey(t *testing.T) { // P-DEL-03, P-DEL-04
	clock := clockwork.NewFakeClockAt(epoch)
	b := start(t, pubsubemu.Options{Clock: clock})
	topic := b.topic("orders")
	sub := b.subscribe("intake", topic, func(c *pubsubpb.Subscription) {
		c.EnableMessageOrdering = true
		c.RetryPolicy = &pubsubpb.RetryPolicy{}
	})
	b.publish(topic, keyed("k", "1", "2")...)
	b.modify(sub, 0, b.pull(sub, 10)...)
	b.publish(topic, keyed("l", "x")...)
	if diff := cmp.Diff([]string{"x"}, payloads(b.pull(sub, 10))); diff != "" {
		t.Fatal(diff)
	}
	clock.Advance(10 * time.Second) // the default minimum
	if diff := cmp.Diff([]string{"1"}, payloads(b.pullWait(sub, 1))); diff != "" {
		t.Error(diff)
	}
}

func TestDeadLetter_ForwardsAfterLastAttempt(t *testing.T) { // P-DEL-02
	clock := clockwork.NewFakeClockAt(epoch)
	simulated := epoch.Add(-300 * time.Hour)
	b := start(t, pubsubemu.Options{Clock: clock, PublishTime: func() time.Time { return simulated }})
	topic, dead := b.topic("telemetry"), b.topic("telemetry-dead")
	sub := b.subscribe("ingest", topic, func(c *pubsubpb.Subscription) {
		c.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: dead, MaxDeliveryAttempts: 6}
	})
	other := b.subscribe("audit", topic, nil)
	letters := b.subscribe("letters", dead, nil)
	b.publish(topic, &pubsubpb.PubsubMessage{Data: []byte("poison"), Attributes: map[string]string{"drone": "d1"}, OrderingKey: "d1"})
	for attempt := int32(1); attempt <= 6; attempt++ {
		got := b.pullWait(sub, 1)
		if got[0].DeliveryAttempt != attempt {
			t.Fatalf("delivery_attempt %d, want %d", got[0].DeliveryAttempt, attempt)
		}
		if attempt == 3 { // an expiry counts like a nack
			clock.Advance(11 * time.Second)
			continue
		}
		b.modify(sub, 0, got...)
	}
	letter := b.pullWait(letters, 1)[0].Message
	want := map[string]string{
		"drone": "d1",
		"CloudPubSubDeadLetterSourceSubscription":        "ingest",
		"CloudPubSubDeadLetterSourceSubscriptionProject": "fleet",
		"CloudPubSubDeadLetterSourceDeliveryCount":       "6",
		"CloudPubSubDeadLetterSourceTopicPublishTime":    simulated.Format(time.RFC3339Nano),
	}
	if diff := cmp.Diff(want, letter.Attributes); diff != "" {
		t.Error(diff)
	}
	if string(letter.Data) != "poison" || letter.OrderingKey != "d1" {
		t.Errorf("letter %v", letter)
	}
	if c := b.server.Counters().Subscriptions[sub]; c.Backlog != 0 || c.DeadLettered != 1 {
		t.Errorf("counters %+v", c)
	}
	// attempts on one subscription do not count on another, and show only with a policy
	if got := b.pull(other, 1)[0]; got.DeliveryAttempt != 0 {
		t.Errorf("delivery_attempt %d without a policy", got.DeliveryAttempt)
	}
}

// exhaust publishes messages to a subscription with a dead-letter topic and nacks
// each until it is forwarded. Each publish to that topic calls forwarding first.
func exhaust(t *testing.T, dataDir string, messages int, forwarding func(*bench)) *bench {
	t.Helper()
	var b *bench
	var exhausted atomic.Bool
	b = start(t, pubsubemu.Options{DataDir: dataDir, PublishTime: func() time.Time {
		if exhausted.Load() {
			forwarding(b)
		}
		return epoch
	}})
	topic, dead := b.topic("telemetry"), b.topic("telemetry-dead")
	sub := b.subscribe("ingest", topic, func(c *pubsubpb.Subscription) {
		c.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: dead, MaxDeliveryAttempts: 5}
	})
	b.subscribe("letters", dead, nil)
	b.publish(topic, texts("m", messages)...)
	exhausted.Store(true)
	for range 5 {
		b.modify(sub, 0, b.pull(sub, int32(messages))...)
	}
	return b
}

// Messages that had their last attempt at the same time are forwarded together, with
// one write to disk: one wait for each would outlast the leases of others.
func TestDeadLetter_ForwardsInOnePublish(t *testing.T) { // P-DEL-02, P-DUR-01
	var forwards atomic.Int32
	b := exhaust(t, t.TempDir(), 500, func(*bench) { forwards.Add(1) })
	if got := b.pull(subscriptionName("letters"), 1000); len(got) != 500 || forwards.Load() != 1 {
		t.Errorf("%d letters in %d publishes, want 500 in 1", len(got), forwards.Load())
	}
}

func TestDeadLetter_SubscriptionDetachedMeanwhile(t *testing.T) { // P-RPC-01, P-DEL-02
	ingest := subscriptionName("ingest")
	b := exhaust(t, "", 3, func(b *bench) {
		_, err := b.server.DetachSubscription(t.Context(), &pubsubpb.DetachSubscriptionRequest{Subscription: ingest})
		if err != nil {
			t.Error(err)
		}
	})
	if c := b.server.Counters().Subscriptions[ingest]; c.Backlog != 0 {
		t.Errorf("a detached subscription has a backlog of %d", c.Backlog)
	}
}

func TestDeadLetter_WithoutTopicKeepsDelivering(t *testing.T) { // P-DEL-02
	b := start(t, pubsubemu.Options{Clock: clockwork.NewFakeClockAt(epoch)})
	topic, dead := b.topic("telemetry"), b.topic("telemetry-dead")
	sub := b.subscribe("ingest", topic, func(c *pubsubpb.Subscription) {
		c.EnableMessageOrdering = true
		c.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: dead}
	})
	if _, err := b.pub.DeleteTopic(b.deadline(), &pubsubpb.DeleteTopicRequest{Topic: dead}); err != nil {
		t.Fatal(err)
	}
	b.publish(topic, keyed("k", "1", "2")...)
	for range 8 {
		got := b.pull(sub, 10)
		if diff := cmp.Diff([]string{"1", "2"}, payloads(got)); diff != "" {
			t.Fatal(diff)
		}
		b.modify(sub, 0, got[0])
	}
}

// A message that cannot be forwarded is still delivered with backoff: a subscriber
// that nacks it does not get it at once again and again.
func TestDeadLetter_WithoutTopicBacksOff(t *testing.T) { // P-DEL-02, P-DEL-03
	clock := clockwork.NewFakeClockAt(epoch)
	b := start(t, pubsubemu.Options{Clock: clock})
	topic, dead := b.topic("orders"), b.topic("orders-dead")
	const pause = 20 * time.Second
	sub := b.subscribe("intake", topic, func(c *pubsubpb.Subscription) {
		c.EnableMessageOrdering = true
		c.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: dead}
		c.RetryPolicy = &pubsubpb.RetryPolicy{MinimumBackoff: durationpb.New(pause), MaximumBackoff: durationpb.New(pause)}
	})
	if _, err := b.pub.DeleteTopic(b.deadline(), &pubsubpb.DeleteTopicRequest{Topic: dead}); err != nil {
		t.Fatal(err)
	}
	b.publish(topic, append(keyed("k", "1", "2"), texts("unkeyed", 1)...)...)
	for nack := range 8 {
		got := b.pull(sub, 10)
		if len(got) != 3 {
			t.Fatalf("after %d nacks and their backoffs came %v", nack, payloads(got))
		}
		b.modify(sub, 0, got...)
		if early := b.pull(sub, 10); len(early) != 0 {
			t.Fatalf("nack %d: %v came at once", nack+1, payloads(early))
		}
		clock.Advance(pause)
	}
}

// orderedIntake makes a topic with an ordered subscription that dead-letters.
func orderedIntake(b *bench) (topic, dead, sub string) {
	topic, dead = b.topic("orders"), b.topic("orders-dead")
	sub = b.subscribe("intake", topic, func(c *pubsubpb.Subscription) {
		c.EnableMessageOrdering = true
		c.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: dead}
	})
	return topic, dead, sub
}

// Messages of a key that are nacked in one request reach the dead-letter topic in the
// order of the key.
func TestDeadLetter_KeepsOrderOfKey(t *testing.T) { // P-DEL-02, P-DEL-04
	b := start(t, pubsubemu.Options{Clock: clockwork.NewFakeClockAt(epoch)})
	topic, dead, sub := orderedIntake(b)
	letters := b.subscribe("letters", dead, ordered)
	b.publish(topic, keyed("k", "1", "2", "3")...)
	for range 5 {
		b.modify(sub, 0, b.pull(sub, 10)...)
	}
	if diff := cmp.Diff([]string{"1", "2", "3"}, payloads(b.pull(letters, 10))); diff != "" {
		t.Error(diff)
	}
}

func TestDeadLetter_LaterMessagesOfKeyFollow(t *testing.T) { // P-DEL-02, P-DEL-04
	b := start(t, pubsubemu.Options{Clock: clockwork.NewFakeClockAt(epoch)})
	topic, dead, sub := orderedIntake(b)
	letters := b.subscribe("letters", dead, nil)
	b.publish(topic, keyed("k", "poison", "good")...)
	for range 5 {
		b.modify(sub, 0, b.pull(sub, 1)...)
	}
	if diff := cmp.Diff([]string{"poison"}, payloads(b.pull(letters, 10))); diff != "" {
		t.Fatal(diff)
	}
	got := b.pull(sub, 10)
	if diff := cmp.Diff([]string{"good"}, payloads(got)); diff != "" {
		t.Fatal(diff)
	}
	b.ack(sub, got...)
}

func exactlyOnce(c *pubsubpb.Subscription) { c.EnableExactlyOnceDelivery = true }

// perID reads the results of a failed exactly-once request.
func perID(t *testing.T, err error, code codes.Code) map[string]string {
	t.Helper()
	if status.Code(err) != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	detailed, ok := apierror.FromError(err)
	if !ok {
		t.Fatalf("%v carries no details", err)
	}
	return detailed.Metadata()
}

func TestExactlyOnce_StaleAckIDsFail(t *testing.T) { // P-DEL-05
	clock := clockwork.NewFakeClockAt(epoch)
	b := start(t, pubsubemu.Options{Clock: clock})
	topic := b.topic("orders")
	sub := b.subscribe("intake", topic, exactlyOnce)
	b.publish(topic, texts("m", 1)...)
	stale := b.pull(sub, 1)
	clock.Advance(11 * time.Second)
	live := b.pullWait(sub, 1)
	_, err := b.sub.Acknowledge(b.deadline(), &pubsubpb.AcknowledgeRequest{Subscription: sub, AckIds: ackIDs(stale)})
	want := map[string]string{stale[0].AckId: "PERMANENT_FAILURE_INVALID_ACK_ID"}
	if diff := cmp.Diff(want, perID(t, err, codes.InvalidArgument)); diff != "" {
		t.Error(diff)
	}
	_, err = b.sub.ModifyAckDeadline(b.deadline(), &pubsubpb.ModifyAckDeadlineRequest{Subscription: sub, AckIds: ackIDs(stale), AckDeadlineSeconds: 30})
	if diff := cmp.Diff(want, perID(t, err, codes.InvalidArgument)); diff != "" {
		t.Error(diff)
	}
	// of a mixed request the stale id fails for good, the other when repeated succeeds
	mixed := append(ackIDs(stale), ackIDs(live)...)
	_, err = b.sub.Acknowledge(b.deadline(), &pubsubpb.AcknowledgeRequest{Subscription: sub, AckIds: mixed})
	if got := perID(t, err, codes.InvalidArgument); got[mixed[0]] != "PERMANENT_FAILURE_INVALID_ACK_ID" || got[mixed[1]][:10] != "TRANSIENT_" {
		t.Errorf("mixed results %v", got)
	}
	b.ack(sub, live...)
	if c := b.server.Counters().Subscriptions[sub]; c.Backlog != 0 {
		t.Errorf("counters %+v", c)
	}
	clock.Advance(time.Hour)
	if again := b.pull(sub, 1); len(again) != 0 {
		t.Error("redelivered after its ack answered OK")
	}
}

func TestExactlyOnce_LeaseOutlivesStream(t *testing.T) { // P-DEL-05
	clock := clockwork.NewFakeClockAt(epoch)
	b := start(t, pubsubemu.Options{Clock: clock})
	topic := b.topic("orders")
	sub := b.subscribe("intake", topic, func(c *pubsubpb.Subscription) {
		c.EnableExactlyOnceDelivery, c.EnableMessageOrdering = true, true
	})
	b.publish(topic, keyed("k", "1", "2")...)
	b.publish(topic, texts("free", 1)...)
	s := b.stream(&pubsubpb.StreamingPullRequest{Subscription: sub, StreamAckDeadlineSeconds: 60})
	got := s.receive(3)
	s.cancel()
	b.publish(topic, keyed("k", "3")...)
	if early := b.pull(sub, 10); len(early) != 0 {
		t.Fatalf("%v delivered while the leases of the closed stream live", payloads(early))
	}
	b.ack(sub, got...)
	later := b.pull(sub, 10)
	for tries := 0; len(later) == 0 && tries < 100; tries++ {
		// The server had not noticed the end of the stream, and gave it the message.
		clock.Advance(time.Minute)
		later = b.pull(sub, 10)
	}
	if diff := cmp.Diff([]string{"3"}, payloads(later)); diff != "" {
		t.Error(diff)
	}
}

func TestExactlyOnce_OrderedAcksComeInOrder(t *testing.T) { // P-DEL-04, P-DEL-05
	b := start(t, pubsubemu.Options{Clock: clockwork.NewFakeClockAt(epoch)})
	topic := b.topic("orders")
	sub := b.subscribe("intake", topic, func(c *pubsubpb.Subscription) {
		c.EnableExactlyOnceDelivery, c.EnableMessageOrdering = true, true
	})
	b.publish(topic, keyed("k", "1", "2")...)
	got := b.pull(sub, 10)
	_, err := b.sub.Acknowledge(b.deadline(), &pubsubpb.AcknowledgeRequest{Subscription: sub, AckIds: ackIDs(got[1:])})
	want := map[string]string{got[1].AckId: "TRANSIENT_FAILURE_UNORDERED_ACK_ID"}
	if diff := cmp.Diff(want, perID(t, err, codes.FailedPrecondition)); diff != "" {
		t.Error(diff)
	}
	b.ack(sub, got[1], got[0]) // the acks of one request are applied in order of delivery
}

func TestExactlyOnce_ClientSeesAckResults(t *testing.T) { // P-DEL-05
	b := start(t, pubsubemu.Options{})
	topic := b.topic("orders")
	sub := b.subscribe("intake", topic, exactlyOnce)
	const n = 50
	b.publish(topic, texts("m", n)...)
	ctx, cancel := context.WithCancel(b.deadline())
	defer cancel()
	var mu sync.Mutex
	deliveries, settled := map[string]int{}, 0
	err := b.client.Subscriber(sub).Receive(ctx, func(ctx context.Context, m *pubsub.Message) {
		mu.Lock()
		deliveries[m.ID]++
		first := deliveries[m.ID] == 1
		mu.Unlock()
		nth, _ := strconv.Atoi(m.ID)
		result := m.AckWithResult
		if first && nth%5 == 0 {
			result = m.NackWithResult
		}
		if got, err := result().Get(ctx); err != nil || got != pubsub.AcknowledgeStatusSuccess {
			t.Errorf("message %s: %v %v", m.ID, got, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if settled++; settled == n+n/5 {
			cancel()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for id, got := range deliveries {
		nth, _ := strconv.Atoi(id)
		want := 1
		if nth%5 == 0 {
			want = 2
		}
		if got != want {
			t.Errorf("message %s came %d times, want %d", id, got, want)
		}
	}
}

func TestExactlyOnce_StreamConfirmsAcks(t *testing.T) { // P-DEL-05
	b := start(t, pubsubemu.Options{})
	topic := b.topic("orders")
	sub := b.subscribe("intake", topic, exactlyOnce)
	b.publish(topic, texts("m", 1)...)
	s := b.stream(&pubsubpb.StreamingPullRequest{Subscription: sub})
	id := s.receive(1)[0].AckId
	for _, want := range []*pubsubpb.StreamingPullResponse_AcknowledgeConfirmation{
		{AckIds: []string{id}}, {AckIds: []string{id}}, // a repeated ack is confirmed again
	} {
		if err := s.call.Send(&pubsubpb.StreamingPullRequest{AckIds: []string{id}}); err != nil {
			t.Fatal(err)
		}
		resp, err := s.call.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if !resp.SubscriptionProperties.ExactlyOnceDeliveryEnabled {
			t.Error("the response does not say that delivery is exactly-once")
		}
		if diff := cmp.Diff(want.AckIds, resp.AcknowledgeConfirmation.GetAckIds()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestFilter_SelectsMessages(t *testing.T) { // P-DEL-07
	b := start(t, pubsubemu.Options{})
	topic := b.topic("telemetry")
	sub := b.subscribe("urgent", topic, func(c *pubsubpb.Subscription) {
		c.Filter = `attributes.kind = "alarm" AND NOT attributes:test`
	})
	for i, attributes := range []map[string]string{
		{"kind": "alarm"}, {"kind": "position"}, {"kind": "alarm", "test": ""}, {"other": ""}, {"kind": "alarm", "x": "y"},
	} {
		b.publish(topic, &pubsubpb.PubsubMessage{Data: fmt.Append(nil, i), Attributes: attributes})
	}
	if diff := cmp.Diff([]string{"0", "4"}, payloads(b.pull(sub, 10))); diff != "" {
		t.Error(diff)
	}
}

// A message that is delivered again only because an earlier one of its key was nacked
// has not used up an attempt: it is not dead-lettered early.
func TestDeadLetter_RewoundMessagesKeepTheirAttempts(t *testing.T) { // P-DEL-02, P-DEL-04
	b := start(t, pubsubemu.Options{Clock: clockwork.NewFakeClockAt(epoch)})
	topic, _, sub := orderedIntake(b)
	b.publish(topic, keyed("k", "poison", "acked", "good")...)
	for attempt := int32(1); attempt <= 5; attempt++ {
		got := b.pull(sub, 10)
		if len(got) != 3 || got[0].DeliveryAttempt != attempt || got[1].DeliveryAttempt != 1 || got[2].DeliveryAttempt != 1 {
			t.Fatalf("attempt %d: %v", attempt, got)
		}
		b.ack(sub, got[1])
		b.modify(sub, 0, got[0])
	}
	b.ack(sub, b.pull(sub, 1)...)
	b.modify(sub, 0, b.pull(sub, 1)...)
	got := b.pull(sub, 1)
	if len(got) != 1 || string(got[0].Message.Data) != "good" || got[0].DeliveryAttempt != 2 {
		t.Errorf("after its first nack came %v, want the second attempt of the last message", got)
	}
}
