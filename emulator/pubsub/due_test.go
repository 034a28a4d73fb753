package pubsubemu

import (
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/jonboulle/clockwork"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// lateTimers is a clock whose timers do not fire in time.
type lateTimers struct{ *clockwork.FakeClock }

func (c lateTimers) NewTimer(d time.Duration) clockwork.Timer {
	return c.FakeClock.NewTimer(d + 10000*time.Hour)
}

// The result of a call depends on the clock, not on whether the timer of the
// subscription has fired yet. P-DEL-02, P-DEL-03, P-SEEK-01
func TestServer_CallsSeeExpiredLeases(t *testing.T) {
	const topic, sub = "projects/fleet/topics/telemetry", "projects/fleet/subscriptions/ingest"
	clock := lateTimers{clockwork.NewFakeClock()}
	s, err := Start(Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topic}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateSubscription(t.Context(), &pubsubpb.Subscription{
		Name: sub, Topic: topic,
		DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: topic},
		RetryPolicy:      &pubsubpb.RetryPolicy{MinimumBackoff: durationpb.New(time.Minute)},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: topic, Messages: []*pubsubpb.PubsubMessage{{Data: []byte("m")}}}); err != nil {
		t.Fatal(err)
	}
	pull := func() []*pubsubpb.ReceivedMessage {
		t.Helper()
		//lint:ignore SA1019 an empty answer at once says that nothing is there
		resp, err := s.Pull(t.Context(), &pubsubpb.PullRequest{Subscription: sub, MaxMessages: 1, ReturnImmediately: true})
		if err != nil {
			t.Fatal(err)
		}
		return resp.ReceivedMessages
	}
	pull()
	clock.Advance(10 * time.Second)
	_, err = s.Seek(t.Context(), &pubsubpb.SeekRequest{Subscription: sub, Target: &pubsubpb.SeekRequest_Time{Time: timestamppb.New(time.Unix(0, 0))}})
	if err != nil {
		t.Fatal(err)
	}
	if got := pull(); len(got) != 0 {
		t.Errorf("after its lease ended and a seek the message came as attempt %d, before its backoff ended", got[0].DeliveryAttempt)
	}
	clock.Advance(time.Minute)
	if got := pull(); len(got) != 1 || got[0].DeliveryAttempt != 2 {
		t.Errorf("after its backoff: %v, want attempt 2", got)
	}

	stream := newConsumer(0, 0)
	held := s.subscriptions[sub]
	clock.Advance(time.Hour)
	if err := held.open(stream); err != nil {
		t.Fatal(err)
	}
	if taken := held.take(stream, largestBatch, nil, &pullResponse{}); len(taken) != 1 {
		t.Fatal("not delivered after its backoff")
	}
	clock.Advance(10 * time.Second)
	held.closeStream(stream)
	if got := pull(); len(got) != 0 {
		t.Error("a lease that ended before its stream did not back off")
	}

	clock.Advance(7 * 24 * time.Hour)
	if _, err := s.CreateSnapshot(t.Context(), &pubsubpb.CreateSnapshotRequest{Name: "projects/fleet/snapshots/snap", Subscription: sub}); err != nil {
		t.Errorf("snapshot of a message past its retention: %v", err)
	}
}

// movedMeanwhile is a clock that a test moves while the timer of a lease is set.
type movedMeanwhile struct{ *clockwork.FakeClock }

func (c movedMeanwhile) NewTimer(d time.Duration) clockwork.Timer {
	if d == 10*time.Second {
		c.Advance(d)
	}
	return c.FakeClock.NewTimer(d)
}

// A lease ends in time even if its timer was set only shortly before: a stream that
// waits for the message makes no call. P-DEL-01
func TestServer_ClockMovesWhileTimerIsSet(t *testing.T) {
	const topic, sub = "projects/fleet/topics/telemetry", "projects/fleet/subscriptions/ingest"
	clock := movedMeanwhile{clockwork.NewFakeClock()}
	s, err := Start(Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topic}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateSubscription(t.Context(), &pubsubpb.Subscription{Name: sub, Topic: topic}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: topic, Messages: []*pubsubpb.PubsubMessage{{Data: []byte("m")}}}); err != nil {
		t.Fatal(err)
	}
	if err := clock.BlockUntilContext(t.Context(), 2); err != nil { // housekeeping's, and that of the message's retention
		t.Fatal(err)
	}
	if _, err := s.Pull(t.Context(), &pubsubpb.PullRequest{Subscription: sub, MaxMessages: 1}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); s.Counters().Subscriptions[sub].Expired == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the clock has reached the end of the lease, and the message is not redelivered")
		}
	}
}
