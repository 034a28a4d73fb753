package pubsubemu_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"github.com/jonboulle/clockwork"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/emulator/pubsub/fault"
)

// faulty is a server on a fake clock with one topic and one subscription.
func faulty(t *testing.T, change func(*pubsubpb.Subscription)) (b *bench, clock *clockwork.FakeClock, topic, sub string) {
	clock = clockwork.NewFakeClockAt(epoch)
	b = start(t, pubsubemu.Options{Clock: clock, Seed: 7})
	topic = b.topic("telemetry")
	return b, clock, topic, b.subscribe("ingest", topic, change)
}

func TestFaults_Duplicate(t *testing.T) { // P-FI-01
	b, _, topic, sub := faulty(t, nil)
	b.server.Faults().Set(fault.Plan{Duplicate: 1})
	b.publish(topic, texts("m", 2)...)
	got := b.pull(sub, 10)
	if diff := cmp.Diff([]string{"m0", "m0", "m1", "m1"}, payloads(got)); diff != "" {
		t.Fatal(diff)
	}
	b.ack(sub, got...)
	if c := b.server.Counters().Subscriptions[sub]; c.Backlog != 0 || c.Acked != 2 {
		t.Errorf("counters %+v", c)
	}
}

// The ack of either copy settles the message; the ack of the other has no effect.
func TestFaults_EitherCopySettlesDuplicate(t *testing.T) { // P-FI-01
	for which := range 2 {
		b, clock, topic, sub := faulty(t, nil)
		b.server.Faults().Set(fault.Plan{Duplicate: 1})
		for range 50 {
			b.publish(topic, texts("m", 1)...)
			got := b.pull(sub, 10)
			if len(got) != 2 {
				t.Fatalf("%d deliveries", len(got))
			}
			b.ack(sub, got[which])
			if c := b.server.Counters().Subscriptions[sub]; c.Backlog != 0 {
				t.Fatalf("after the ack of copy %d: %+v", which, c)
			}
			b.ack(sub, got[1-which])
		}
		clock.Advance(time.Hour)
		if c := b.server.Counters().Subscriptions[sub]; c.Acked != 50 || c.Backlog != 0 {
			t.Errorf("counters %+v", c)
		}
	}
}

func TestFaults_DuplicateIgnoresExactlyOnce(t *testing.T) { // P-FI-01, P-DEL-05
	b, _, topic, sub := faulty(t, exactlyOnce)
	b.server.Faults().Set(fault.Plan{Duplicate: 1})
	b.publish(topic, texts("m", 2)...)
	if diff := cmp.Diff([]string{"m0", "m1"}, payloads(b.pull(sub, 10))); diff != "" {
		t.Error(diff)
	}
}

func TestFaults_Reorder(t *testing.T) { // P-FI-01
	b, _, topic, sub := faulty(t, nil)
	b.server.Faults().Set(fault.Plan{Reorder: 1})
	b.publish(topic, texts("m", 9)...)
	got := payloads(b.pull(sub, 10))
	if slices.IsSorted(got) {
		t.Errorf("in order: %v", got)
	}
	slices.Sort(got)
	if len(slices.Compact(got)) != 9 {
		t.Errorf("lost some: %v", got)
	}
}

func TestFaults_Drop(t *testing.T) { // P-FI-01
	b, clock, topic, sub := faulty(t, nil)
	b.server.Faults().Set(fault.Plan{Drop: 1})
	b.publish(topic, texts("m", 1)...)
	if got := b.pull(sub, 10); len(got) != 0 {
		t.Fatalf("delivered %v", payloads(got))
	}
	b.server.Faults().Set(fault.Plan{})
	clock.Advance(9 * time.Second)
	if got := b.pull(sub, 10); len(got) != 0 {
		t.Fatalf("delivered %v before the deadline", payloads(got))
	}
	clock.Advance(2 * time.Second)
	if got := b.pull(sub, 10); len(got) != 1 {
		t.Error("a dropped delivery did not come again")
	}
}

func TestFaults_Delay(t *testing.T) { // P-FI-01
	b, clock, topic, sub := faulty(t, ordered)
	b.server.Faults().Set(fault.Plan{Delay: 1, DelayFor: 3 * time.Second, Resources: []string{sub}})
	b.publish(topic, append(texts("m", 1), keyed("k", "1", "2")...)...)
	clock.Advance(2 * time.Second)
	if got := b.pull(sub, 10); len(got) != 0 {
		t.Fatalf("delivered %v early", payloads(got))
	}
	clock.Advance(2 * time.Second)
	got := payloads(b.pull(sub, 10))
	slices.Sort(got)
	if diff := cmp.Diff([]string{"1", "2", "m0"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestFaults_LoseAnswer(t *testing.T) { // P-FI-01
	b, _, topic, sub := faulty(t, nil)
	b.server.Faults().Set(fault.Plan{LoseAnswer: 1})
	_, err := b.pub.Publish(b.deadline(), &pubsubpb.PublishRequest{Topic: topic, Messages: texts("m", 1)})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("answered %v", err)
	}
	if got := b.pull(sub, 10); len(got) != 1 {
		t.Error("the publish was not applied")
	}
}

func TestFaults_Outage(t *testing.T) { // P-FI-01
	b, _, topic, sub := faulty(t, nil)
	s := b.stream(&pubsubpb.StreamingPullRequest{Subscription: sub})
	s.ping()
	b.server.Faults().BeginOutage()
	for _, err := range []error{
		errorOf(s.call.Recv()),
		errorOf(b.pub.Publish(b.deadline(), &pubsubpb.PublishRequest{Topic: topic, Messages: texts("m", 1)})),
		errorOf(b.sub.Pull(b.deadline(), &pubsubpb.PullRequest{Subscription: sub, MaxMessages: 1})),
	} {
		if status.Code(err) != codes.Unavailable {
			t.Errorf("during the outage: %v", err)
		}
	}
	b.server.Faults().EndOutage()
	b.publish(topic, texts("m", 1)...)
	if got := b.pull(sub, 10); len(got) != 1 {
		t.Error("nothing delivered after the outage")
	}
}

// With all faults at once, the client still gets and acks every message.
func TestFaults_ClientGetsEverything(t *testing.T) { // P-FI-01, P-DEL-01
	b := start(t, pubsubemu.Options{Seed: 11})
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, nil)
	b.server.Faults().Set(fault.Plan{
		Duplicate: 0.1, Reorder: 0.5, Delay: 0.2, DelayFor: 20 * time.Millisecond, LoseAnswer: 0.2, BreakStream: 0.1,
	})
	publisher := b.client.Publisher(topic)
	publisher.PublishSettings.CountThreshold = 10
	const n = 500
	var results []*pubsub.PublishResult
	for _, m := range texts("m", n) {
		results = append(results, publisher.Publish(t.Context(), &pubsub.Message{Data: m.Data}))
	}
	for _, r := range results {
		if _, err := r.Get(b.deadline()); err != nil {
			t.Fatal(err)
		}
	}
	publisher.Stop()
	ctx, cancel := context.WithCancel(b.deadline())
	defer cancel()
	var mu sync.Mutex
	seen := map[string]bool{}
	err := b.client.Subscriber(sub).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		m.Ack()
		mu.Lock()
		defer mu.Unlock()
		if seen[string(m.Data)] = true; len(seen) == n {
			cancel()
		}
	})
	if err != nil || len(seen) != n {
		t.Fatalf("received %d of %d: %v", len(seen), n, err)
	}
	if c := b.server.Faults().Counts(); c[fault.Duplicate] == 0 || c[fault.LoseAnswer] == 0 || c[fault.BreakStream] == 0 || c[fault.Delay] == 0 {
		t.Errorf("some faults did not happen: %v", c)
	}
}
