package pubsubemu_test

import (
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
)

// A message published after a snapshot was taken is unacked after a seek to the
// snapshot, even when the publish and the seek race. P-SEEK-01, P-DEL-01
func TestSeek_RacesWithPublish(t *testing.T) {
	b := start(t, pubsubemu.Options{})
	topic := b.topic("telemetry")
	sub, snap := b.subscribe("ingest", topic, nil), snapshotName("empty")
	s, ctx := b.server, t.Context()
	if _, err := s.CreateSnapshot(ctx, &pubsubpb.CreateSnapshotRequest{Name: snap, Subscription: sub}); err != nil {
		t.Fatal(err)
	}
	const messages = 2000
	published := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < messages && err == nil; i++ {
			_, err = s.Publish(ctx, &pubsubpb.PublishRequest{Topic: topic, Messages: texts("m", 1)})
		}
		published <- err
	}()
	for publishing := true; publishing; {
		select {
		case err := <-published:
			if err != nil {
				t.Fatal(err)
			}
			publishing = false
		default:
			_, err := s.Seek(ctx, &pubsubpb.SeekRequest{Subscription: sub, Target: &pubsubpb.SeekRequest_Snapshot{Snapshot: snap}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if held := s.Counters().Subscriptions[sub].Backlog; held != messages {
		t.Errorf("%d messages published since the snapshot and none acked; after seeks to it %d are left", messages, held)
	}
}
