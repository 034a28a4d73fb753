package pubsubemu_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/uuid"

	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
)

// target connects to the server that PUBSUB_EMULATOR_HOST names, so that the same
// benchmarks measure the official emulator, or else to an embedded one.
func target(t testing.TB) *bench {
	t.Helper()
	if addr := os.Getenv("PUBSUB_EMULATOR_HOST"); addr != "" {
		return connect(t, addr)
	}
	return start(t, pubsubemu.Options{})
}

// backlog creates a topic with a subscription that has n messages of 100 bytes.
func (b *bench) backlog(n int) (topic, subscription string) {
	id := "bench-" + uuid.NewString()
	topic = b.topic(id)
	subscription = b.subscribe(id, topic, nil)
	b.fill(topic, n)
	return topic, subscription
}

// fill publishes n messages of 100 bytes with the client.
func (b *bench) fill(topic string, n int) {
	publisher := b.client.Publisher(topic)
	publisher.PublishSettings.CountThreshold = 1000
	publisher.PublishSettings.FlowControlSettings = pubsub.FlowControlSettings{
		MaxOutstandingMessages: 20_000, MaxOutstandingBytes: 1 << 30, LimitExceededBehavior: pubsub.FlowControlBlock,
	}
	payload := make([]byte, 100)
	results := make([]*pubsub.PublishResult, n)
	for i := range results {
		results[i] = publisher.Publish(b.t.Context(), &pubsub.Message{Data: payload})
	}
	for _, r := range results {
		if _, err := r.Get(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
	}
	publisher.Stop()
}

// drain receives and acks n messages with the client's streaming pull, and
// returns how long it took.
func (b *bench) drain(subscription string, n int) time.Duration {
	b.t.Helper()
	subscriber := b.client.Subscriber(subscription)
	subscriber.ReceiveSettings.MaxOutstandingMessages = 20_000
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Minute)
	defer cancel()
	var received atomic.Int64
	begin := time.Now()
	var took time.Duration
	err := subscriber.Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		m.Ack()
		if received.Add(1) == int64(n) {
			took = time.Since(begin)
			cancel()
		}
	})
	if err != nil || received.Load() < int64(n) {
		b.t.Fatalf("received %d of %d: %v", received.Load(), n, err)
	}
	return took
}

func perSecond(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }

// BenchmarkPublish publishes 100-byte messages through the client. P-PF-01
func BenchmarkPublish(b *testing.B) {
	t := target(b)
	topic, _ := t.backlog(1)
	b.ReportAllocs()
	b.ResetTimer()
	t.fill(topic, b.N)
	b.ReportMetric(perSecond(b.N, b.Elapsed()), "msg/s")
}

// BenchmarkPublishDurable publishes with a data directory: 64 publishers at
// once, 10 messages of 100 bytes each time. P-DUR-01
func BenchmarkPublishDurable(b *testing.B) {
	t := start(b, pubsubemu.Options{DataDir: b.TempDir()})
	topic := t.topic("bench")
	t.subscribe("bench", topic, nil)
	batch := make([]*pubsubpb.PubsubMessage, 10)
	for i := range batch {
		batch[i] = &pubsubpb.PubsubMessage{Data: make([]byte, 100)}
	}
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := t.pub.Publish(b.Context(), &pubsubpb.PublishRequest{Topic: topic, Messages: batch}); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(perSecond(b.N*len(batch), b.Elapsed()), "msg/s")
}

// BenchmarkStreamingPull drains a backlog of 100,000 messages of 100 bytes
// through the client. P-PF-01
func BenchmarkStreamingPull(b *testing.B) {
	t := target(b)
	const n = 100_000
	var total time.Duration
	for range b.N {
		b.StopTimer()
		_, subscription := t.backlog(n)
		b.StartTimer()
		total += t.drain(subscription, n)
	}
	b.ReportMetric(perSecond(n*b.N, total), "msg/s")
}

// BenchmarkRoundTrip is the time from the call of Publish to the arrival of the
// message on an open stream. P-PF-01
func BenchmarkRoundTrip(b *testing.B) {
	t := start(b, pubsubemu.Options{})
	topic, subscription := t.backlog(1)
	t.ack(subscription, t.pullWait(subscription, 1)...)
	s := t.stream(&pubsubpb.StreamingPullRequest{Subscription: subscription})
	message := texts("m", 1)
	b.ResetTimer()
	for range b.N {
		t.publish(topic, message...)
		s.receive(1)
	}
}

// BenchmarkBacklogLength pulls and acks 1,000 messages at a time from short
// and long backlogs; the cost must not depend on the length. P-PF-01
func BenchmarkBacklogLength(b *testing.B) {
	for _, length := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(length), func(b *testing.B) {
			t := target(b)
			topic, subscription := t.backlog(length)
			batch := texts("m", 1000)
			b.ResetTimer()
			for range b.N {
				t.publish(topic, batch...)
				for left := len(batch); left > 0; {
					got := t.pull(subscription, int32(left))
					if len(got) > 0 {
						t.ack(subscription, got...)
					}
					left -= len(got)
				}
			}
			b.ReportMetric(perSecond(b.N*len(batch), b.Elapsed()), "msg/s")
		})
	}
}

// BenchmarkMemory reports the heap of a full backlog per message, and what is
// left of it after draining. P-PF-01, P-DEL-01
func BenchmarkMemory(b *testing.B) {
	t := start(b, pubsubemu.Options{})
	const n = 200_000
	for range b.N {
		before := heap()
		_, subscription := t.backlog(n)
		full := heap()
		t.drain(subscription, n)
		drained := heap()
		b.ReportMetric(float64(full-before)/n, "B/msg-full")
		b.ReportMetric(float64(int64(drained)-int64(before))/n, "B/msg-drained")
		if _, err := t.sub.DeleteSubscription(b.Context(), &pubsubpb.DeleteSubscriptionRequest{Subscription: subscription}); err != nil {
			b.Fatal(err)
		}
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
