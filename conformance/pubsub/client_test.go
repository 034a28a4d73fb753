package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The TestConformance tests run with the client on the embedded server and on Google's
// emulator. They ask only for what every Pub/Sub server must do, and wait for no ack
// deadline.

// onEach runs a test on both servers.
func onEach(t *testing.T, test func(t *testing.T, s *server)) {
	t.Run("embedded", func(t *testing.T) { test(t, embedded(t)) })
	t.Run("official", func(t *testing.T) {
		test(t, connect(t, official(t)))
	})
}

func topicName(id string) string        { return "projects/fleet/topics/" + id }
func subscriptionName(id string) string { return "projects/fleet/subscriptions/" + id }

func (s *server) topic(id string) string {
	s.t.Helper()
	if _, err := s.pub.CreateTopic(s.deadline(), &pubsubpb.Topic{Name: topicName(id)}); err != nil {
		s.t.Fatal(err)
	}
	return topicName(id)
}

// subscribe creates a subscription; change adapts its settings.
func (s *server) subscribe(id, topic string, change func(*pubsubpb.Subscription)) string {
	s.t.Helper()
	config := &pubsubpb.Subscription{Name: subscriptionName(id), Topic: topic}
	if change != nil {
		change(config)
	}
	if _, err := s.sub.CreateSubscription(s.deadline(), config); err != nil {
		s.t.Fatal(err)
	}
	return config.Name
}

func (s *server) publish(topic string, messages ...*pubsubpb.PubsubMessage) {
	s.t.Helper()
	if _, err := s.pub.Publish(s.deadline(), &pubsubpb.PublishRequest{Topic: topic, Messages: messages}); err != nil {
		s.t.Fatal(err)
	}
}

func errorOf[T any](_ T, err error) error { return err }

// fresh creates a topic and a subscription for one test.
func fresh(t *testing.T, b *server, change func(*pubsubpb.Subscription)) (topic, subscription string) {
	t.Helper()
	id := "conformance-" + uuid.NewString()
	topic = b.topic(id)
	return topic, b.subscribe(id, topic, change)
}

// receive runs the client's Receive until handle returns true.
func receive(t *testing.T, b *server, subscription string, handle func(*pubsub.Message) (enough bool)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var mu sync.Mutex
	done := false
	err := b.client.Subscriber(subscription).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		mu.Lock()
		defer mu.Unlock()
		if done {
			m.Nack()
			return
		}
		if done = handle(m); done {
			cancel()
		}
	})
	if err != nil || !done {
		t.Fatalf("receive ended early: %v", err)
	}
}

func TestConformance_EveryMessageArrives(t *testing.T) { // P-RPC-01, P-DEL-01
	onEach(t, func(t *testing.T, b *server) {
		topic, sub := fresh(t, b, nil)
		publisher := b.client.Publisher(topic)
		const n = 300
		results := map[string]*pubsub.PublishResult{}
		for _, m := range texts("m", n) {
			text := string(m.Data)
			results[text] = publisher.Publish(t.Context(), &pubsub.Message{Data: m.Data, Attributes: map[string]string{"n": text}})
		}
		want := map[string]string{}
		for text, r := range results {
			id, err := r.Get(b.deadline())
			if err != nil {
				t.Fatal(err)
			}
			want[text] = id
		}
		publisher.Stop()
		got := map[string]string{}
		receive(t, b, sub, func(m *pubsub.Message) bool {
			m.Ack()
			if string(m.Data) != m.Attributes["n"] {
				t.Errorf("data %q under attribute %q", m.Data, m.Attributes["n"])
			}
			got[string(m.Data)] = m.ID
			return len(got) == n
		})
		for text, id := range want {
			if got[text] != id {
				t.Errorf("%s published as %s, received as %q", text, id, got[text])
			}
		}
	})
}

func TestConformance_EverySubscriptionGetsCopy(t *testing.T) { // P-RPC-01
	onEach(t, func(t *testing.T, b *server) {
		topic, first := fresh(t, b, nil)
		second := b.subscribe("conformance-"+uuid.NewString(), topic, nil)
		b.publish(topic, texts("m", 3)...)
		for _, sub := range []string{first, second} {
			seen := map[string]bool{}
			receive(t, b, sub, func(m *pubsub.Message) bool {
				m.Ack()
				seen[string(m.Data)] = true
				return len(seen) == 3
			})
		}
	})
}

func TestConformance_NackRedelivers(t *testing.T) { // P-DEL-01
	onEach(t, func(t *testing.T, b *server) {
		topic, sub := fresh(t, b, nil)
		b.publish(topic, texts("m", 5)...)
		deliveries, acked := map[string]int{}, 0
		receive(t, b, sub, func(m *pubsub.Message) bool {
			if deliveries[m.ID]++; deliveries[m.ID] < 3 {
				m.Nack()
				return false
			}
			m.Ack()
			acked++
			return acked == 5
		})
	})
}

func TestConformance_KeysKeepTheirOrder(t *testing.T) { // P-DEL-04
	onEach(t, func(t *testing.T, b *server) {
		topic, sub := fresh(t, b, func(c *pubsubpb.Subscription) { c.EnableMessageOrdering = true })
		const keys, each = 5, 40
		for i := range each {
			var messages []*pubsubpb.PubsubMessage
			for k := range keys {
				messages = append(messages, &pubsubpb.PubsubMessage{OrderingKey: fmt.Sprint("k", k), Data: fmt.Appendf(nil, "%03d", i)})
			}
			b.publish(topic, messages...)
		}
		got := map[string][]string{}
		total := 0
		receive(t, b, sub, func(m *pubsub.Message) bool {
			m.Ack()
			got[m.OrderingKey] = append(got[m.OrderingKey], string(m.Data))
			total++
			return total >= keys*each
		})
		for key, data := range got {
			if !slices.IsSorted(data) || len(slices.Compact(data)) != each {
				t.Errorf("key %s came as %v", key, data)
			}
		}
	})
}

func TestConformance_DeadLetters(t *testing.T) { // P-DEL-02
	onEach(t, func(t *testing.T, b *server) {
		dead, letters := fresh(t, b, nil)
		topic, sub := fresh(t, b, func(c *pubsubpb.Subscription) {
			c.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: dead, MaxDeliveryAttempts: 5}
		})
		b.publish(topic, &pubsubpb.PubsubMessage{Data: []byte("poison"), Attributes: map[string]string{"drone": "d1"}})
		ctx, cancel := context.WithCancel(b.deadline())
		var wg sync.WaitGroup
		var attempts []int
		wg.Go(func() { // it continues after the last nack: the official emulator forwards at the next delivery
			err := b.client.Subscriber(sub).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
				attempts = append(attempts, *m.DeliveryAttempt)
				m.Nack()
			})
			if err != nil {
				t.Error(err)
			}
		})
		receive(t, b, letters, func(m *pubsub.Message) bool {
			m.Ack()
			if string(m.Data) != "poison" || m.Attributes["drone"] != "d1" || m.Attributes["CloudPubSubDeadLetterSourceDeliveryCount"] != "5" {
				t.Errorf("letter %s %v", m.Data, m.Attributes)
			}
			return true
		})
		cancel()
		wg.Wait()
		if !slices.Equal(attempts, []int{1, 2, 3, 4, 5}) {
			t.Errorf("delivery attempts %v", attempts)
		}
	})
}

func TestConformance_Codes(t *testing.T) { // P-LIM-01
	onEach(t, func(t *testing.T, b *server) {
		ctx := b.deadline()
		topic, sub := fresh(t, b, nil)
		missing := "conformance-" + uuid.NewString()
		for name, c := range map[string]struct {
			err  error
			want codes.Code
		}{
			"topic exists":          {errorOf(b.pub.CreateTopic(ctx, &pubsubpb.Topic{Name: topic})), codes.AlreadyExists},
			"subscription exists":   {errorOf(b.sub.CreateSubscription(ctx, &pubsubpb.Subscription{Name: sub, Topic: topic})), codes.AlreadyExists},
			"topic missing":         {errorOf(b.pub.GetTopic(ctx, &pubsubpb.GetTopicRequest{Topic: topicName(missing)})), codes.NotFound},
			"publish to no topic":   {errorOf(b.pub.Publish(ctx, &pubsubpb.PublishRequest{Topic: topicName(missing), Messages: texts("m", 1)})), codes.NotFound},
			"pull from nothing":     {errorOf(b.sub.Pull(ctx, &pubsubpb.PullRequest{Subscription: subscriptionName(missing), MaxMessages: 1})), codes.NotFound},
			"pull of no messages":   {errorOf(b.sub.Pull(ctx, &pubsubpb.PullRequest{Subscription: sub})), codes.InvalidArgument},
			"empty publish":         {errorOf(b.pub.Publish(ctx, &pubsubpb.PublishRequest{Topic: topic, Messages: []*pubsubpb.PubsubMessage{{}}})), codes.InvalidArgument},
			"subscription of none":  {errorOf(b.sub.CreateSubscription(ctx, &pubsubpb.Subscription{Name: subscriptionName(missing), Topic: topicName(missing)})), codes.NotFound},
			"reserved name":         {errorOf(b.pub.CreateTopic(ctx, &pubsubpb.Topic{Name: topicName("goog-" + missing)})), codes.InvalidArgument},
			"deadline out of range": {errorOf(b.sub.CreateSubscription(ctx, &pubsubpb.Subscription{Name: subscriptionName(missing), Topic: topic, AckDeadlineSeconds: 601})), codes.InvalidArgument},
		} {
			if status.Code(c.err) != c.want {
				t.Errorf("%s: got %v, want %v", name, c.err, c.want)
			}
		}
	})
}
