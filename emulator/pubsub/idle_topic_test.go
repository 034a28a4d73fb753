package pubsubemu

import (
	"runtime"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/jonboulle/clockwork"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dronefleet/dronefleet/emulator/pubsub/internal/journal"
)

// Messages past their retention are removed from memory and disk, even when there
// are no more publishes or calls. P-SEEK-01, P-DUR-01
func TestRetention_EndsOnIdleTopic(t *testing.T) {
	dir, clock := t.TempDir(), clockwork.NewFakeClock()
	s, err := Start(Options{DataDir: dir, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const name, ingest, snap = "projects/fleet/topics/telemetry", "projects/fleet/subscriptions/ingest", "projects/fleet/snapshots/snap"
	topic := &pubsubpb.Topic{Name: name, MessageRetentionDuration: durationpb.New(time.Hour)}
	if _, err := s.CreateTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateSubscription(t.Context(), &pubsubpb.Subscription{Name: ingest, Topic: name}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateSnapshot(t.Context(), &pubsubpb.CreateSnapshotRequest{Name: snap, Subscription: ingest}); err != nil {
		t.Fatal(err)
	}
	_, err = s.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: name, Messages: []*pubsubpb.PubsubMessage{{Data: []byte("m")}}})
	if err != nil {
		t.Fatal(err)
	}

	retained, snapshots := func() int {
		of := s.topics[name]
		of.retainedMu.Lock()
		defer of.retainedMu.Unlock()
		return len(of.retained)
	}, func() int {
		s.mu.RLock()
		defer s.mu.RUnlock()
		return len(s.snapshots)
	}
	for _, until := range []struct {
		after time.Duration
		gone  func() bool
	}{
		{time.Hour, func() bool { return retained() == 0 }},
		{snapshotLife, func() bool { return snapshots() == 0 }},
	} {
		// The timers of the subscription and of the server.
		if err := clock.BlockUntilContext(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		clock.Advance(until.after + housekeeping)
		for began := time.Now(); !until.gone(); runtime.Gosched() {
			if time.Since(began) > time.Minute {
				t.Fatalf("%v later the topic retains %d messages, and there are %d snapshots", until.after, retained(), snapshots())
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	j, state, err := journal.Open(dir, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if len(state.Messages) != 0 {
		t.Errorf("%d messages are still on disk, held by %v", len(state.Messages), state.Holds)
	}
}
