package pubsubemu

import (
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/jonboulle/clockwork"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// Messages that no seek can restore take no memory. P-SEEK-01, P-DEL-01
func TestTopic_FreesWhatNoSeekRestores(t *testing.T) {
	const name, sub = "projects/fleet/topics/telemetry", "projects/fleet/subscriptions/ingest"
	clock := clockwork.NewFakeClock()
	s, err := Start(Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CreateTopic(t.Context(), &pubsubpb.Topic{Name: name, MessageRetentionDuration: durationpb.New(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	publish := func() {
		t.Helper()
		if _, err := s.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: name, Messages: []*pubsubpb.PubsubMessage{{Data: []byte("m")}}}); err != nil {
			t.Fatal(err)
		}
	}
	topic := s.topics[name]
	publish()
	if len(topic.retained) != 1 {
		t.Fatalf("the topic retains %d messages, want 1", len(topic.retained))
	}
	if _, err := s.UpdateTopic(t.Context(), &pubsubpb.UpdateTopicRequest{
		Topic: &pubsubpb.Topic{Name: name}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"message_retention_duration"}},
	}); err != nil {
		t.Fatal(err)
	}
	if n := len(topic.retained); n != 0 {
		t.Errorf("without a retention the topic retains %d messages", n)
	}

	if _, err := s.CreateSubscription(t.Context(), &pubsubpb.Subscription{Name: sub, Topic: name}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateSnapshot(t.Context(), &pubsubpb.CreateSnapshotRequest{Name: "projects/fleet/snapshots/snap", Subscription: sub}); err != nil {
		t.Fatal(err)
	}
	snap := topic.snapshots[0]
	publish()
	clock.Advance(snapshotLife)
	publish()
	// The clock has woken housekeeping too, which may be removing the snapshot.
	s.mu.RLock()
	defer s.mu.RUnlock()
	topic.mu.RLock()
	defer topic.mu.RUnlock()
	snap.mu.Lock()
	defer snap.mu.Unlock()
	if n := len(snap.messages); n != 0 || len(topic.snapshots) != 0 || len(s.snapshots) != 0 {
		t.Errorf("an expired snapshot holds %d messages", n)
	}
}

// The time of a trim depends on what it removes, not on what the topic still
// retains. P-PF-01
func TestTopic_TrimMovesNothing(t *testing.T) {
	topic := &topic{config: &pubsubpb.Topic{MessageRetentionDuration: durationpb.New(time.Hour)}}
	for i := range 3 {
		topic.retained = append(topic.retained, &message{id: uint64(i), stored: int64(i) * int64(time.Minute)})
	}
	forgotten, left := topic.retained[:1], topic.retained[1:]
	topic.trim(int64(time.Hour))
	if len(topic.retained) != 2 || &topic.retained[0] != &left[0] {
		t.Errorf("%d messages retained, want the last 2 where they were", len(topic.retained))
	}
	if forgotten[0] != nil {
		t.Error("removed messages are still referenced")
	}
}
