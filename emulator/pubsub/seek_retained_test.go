package pubsubemu

import (
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/jonboulle/clockwork"
	"google.golang.org/protobuf/types/known/durationpb"
)

// A message that a seek restores is stored for the subscription before the topic may
// remove it: otherwise a crash would lose it. P-SEEK-01, P-DUR-01
func TestSeek_TopicRetentionEndsMeanwhile(t *testing.T) {
	dir, clock := t.TempDir(), clockwork.NewFakeClock()
	open := func() *Server {
		s, err := Start(Options{DataDir: dir, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	const name, ingest = "projects/fleet/topics/telemetry", "projects/fleet/subscriptions/ingest"
	topic := &pubsubpb.Topic{Name: name, MessageRetentionDuration: durationpb.New(time.Hour)}
	if _, err := s.CreateTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	publish := func(data string) {
		t.Helper()
		_, err := s.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: name, Messages: []*pubsubpb.PubsubMessage{{Data: []byte(data)}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	publish("replayed")
	if _, err := s.CreateSubscription(t.Context(), &pubsubpb.Subscription{Name: ingest, Topic: name}); err != nil {
		t.Fatal(err)
	}
	sub, err := s.subscription("subscription", ingest)
	if err != nil {
		t.Fatal(err)
	}

	// The retention ends in the middle of the seek. A publish, if the topic is not
	// locked, makes the topic remove the message.
	looked := false
	err = sub.replay(func(*message) bool {
		if !looked {
			looked = true
			clock.Advance(time.Hour)
			if sub.topic.mu.TryRLock() {
				sub.topic.mu.RUnlock()
				publish("later")
			}
		}
		return true
	})
	if err != nil || !looked {
		t.Fatalf("seek: %v, looked at what is retained: %v", err, looked)
	}
	publish("last")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = open()
	defer s.Close()
	got, err := s.Pull(t.Context(), &pubsubpb.PullRequest{Subscription: ingest, MaxMessages: 10})
	if err != nil || len(got.ReceivedMessages) == 0 || string(got.ReceivedMessages[0].Message.Data) != "replayed" {
		t.Errorf("after a restart the subscription holds %v: %v", got.GetReceivedMessages(), err)
	}
}
