package pubsubemu

import (
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// A subscription created after Close has ended the others would have a timer loop
// that nothing ends, and Close waits for all of them. P-RPC-01
func TestClose_RefusesNewSubscriptions(t *testing.T) {
	s, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	topic := &pubsubpb.Topic{Name: "projects/fleet/topics/telemetry"}
	if _, err := s.CreateTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	create := func(id string) error {
		_, err := s.CreateSubscription(t.Context(), &pubsubpb.Subscription{Name: "projects/fleet/subscriptions/" + id, Topic: topic.Name})
		return err
	}
	if err := create("early"); err != nil {
		t.Fatal(err)
	}
	s.mu.RLock()
	early := s.subscriptions["projects/fleet/subscriptions/early"]
	s.mu.RUnlock()

	underWay := make(chan struct{}) // a call that Close has to wait for
	s.serving.Go(func() { <-underWay })
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	<-early.gone
	if err := create("late"); status.Code(err) != codes.Unavailable {
		t.Errorf("subscription while the server closes: %v, want UNAVAILABLE", err)
	}
	close(underWay)
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Close waits for a subscription that nobody ends")
	}
}

// A change of a snapshot that was deleted after the call found it must not write it
// to disk again. P-SEEK-01, P-DUR-01
func TestUpdateSnapshot_DeletedMeanwhile(t *testing.T) {
	s, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const topic, sub, name = "projects/fleet/topics/t00", "projects/fleet/subscriptions/s00", "projects/fleet/snapshots/snap"
	if _, err := s.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topic}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateSubscription(t.Context(), &pubsubpb.Subscription{Name: sub, Topic: topic}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateSnapshot(t.Context(), &pubsubpb.CreateSnapshotRequest{Name: name, Subscription: sub}); err != nil {
		t.Fatal(err)
	}
	snap, err := s.snapshot("snapshot", name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteSnapshot(t.Context(), &pubsubpb.DeleteSnapshotRequest{Snapshot: name}); err != nil {
		t.Fatal(err)
	}
	_, err = s.changeSnapshot(snap, &pubsubpb.UpdateSnapshotRequest{
		Snapshot: &pubsubpb.Snapshot{Name: name}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"labels"}},
	})
	if status.Code(err) != codes.NotFound {
		t.Errorf("update of a deleted snapshot: %v, want NOT_FOUND", err)
	}
}
