package pubsubemu_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
)

// atOnce starts all the calls together and returns their errors.
func atOnce(calls ...func() error) []error {
	errs := make([]error, len(calls))
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() {
			<-begin
			errs[i] = call()
		})
	}
	close(begin)
	wg.Wait()
	return errs
}

// If a publish is answered OK while its topic is deleted, it came before the
// deletion and the subscriptions have its message. P-DEL-01, P-DUR-01
func TestDeleteTopic_RacesWithPublish(t *testing.T) {
	for dir, rounds := range map[string]int{"": 500, t.TempDir(): 50} {
		s := start(t, pubsubemu.Options{DataDir: dir}).server
		for i := range rounds {
			topic, sub := topicName(fmt.Sprintf("telemetry%d", i)), subscriptionName(fmt.Sprintf("ingest%d", i))
			if _, err := s.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topic}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.CreateSubscription(t.Context(), &pubsubpb.Subscription{Name: sub, Topic: topic}); err != nil {
				t.Fatal(err)
			}
			publish := func() error {
				_, err := s.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: topic, Messages: texts("m", 1)})
				return err
			}
			remove := func() error {
				_, err := s.DeleteTopic(t.Context(), &pubsubpb.DeleteTopicRequest{Topic: topic})
				return err
			}
			errs := atOnce(remove, publish, publish, publish)
			if errs[0] != nil {
				t.Fatal(errs[0])
			}
			answered := 0
			for _, err := range errs[1:] {
				switch status.Code(err) {
				case codes.OK:
					answered++
				case codes.NotFound:
				default:
					t.Errorf("publish to a topic being deleted: %v", err)
				}
			}
			if held := s.Counters().Subscriptions[sub].Backlog; held != answered {
				t.Fatalf("%d publishes answered OK while the topic was deleted, the subscription holds %d", answered, held)
			}
		}
	}
}

// A detached subscription shows that its topic is deleted, even if there is a new
// topic of that name. P-RPC-01, P-DUR-01
func TestDeleteTopic_DetachedSubscriptionNamesDeletedTopic(t *testing.T) {
	dir := t.TempDir()
	b := start(t, pubsubemu.Options{DataDir: dir})
	topic, other := b.topic("telemetry"), b.topic("orders")
	gone, stays := b.subscribe("gone", topic, nil), b.subscribe("stays", other, nil)
	for _, sub := range []string{gone, stays} {
		if _, err := b.pub.DetachSubscription(b.deadline(), &pubsubpb.DetachSubscriptionRequest{Subscription: sub}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.pub.DeleteTopic(b.deadline(), &pubsubpb.DeleteTopicRequest{Topic: topic}); err != nil {
		t.Fatal(err)
	}
	b.topic("telemetry")
	check := func(when string) {
		t.Helper()
		for sub, want := range map[string]string{gone: "_deleted-topic_", stays: other} {
			got, err := b.sub.GetSubscription(b.deadline(), &pubsubpb.GetSubscriptionRequest{Subscription: sub})
			if err != nil || got.Topic != want || !got.Detached {
				t.Errorf("%s: %v %v, want a detached one of %s", when, got, err, want)
			}
		}
	}
	check("at once")
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}
	b = start(t, pubsubemu.Options{DataDir: dir})
	check("after a restart")
}

// A change that comes after the deletion of its resource is NOT_FOUND and leaves
// nothing on disk, so that a restart does not restore the resource. P-RPC-01,
// P-DUR-01
func TestDelete_ConcurrentChangesRestoreNothing(t *testing.T) {
	dir := t.TempDir()
	b := start(t, pubsubemu.Options{DataDir: dir})
	s, ctx := b.server, t.Context()
	keep := b.topic("keep")
	base := b.subscribe("keep", keep, nil)
	labels := &fieldmaskpb.FieldMask{Paths: []string{"labels"}}
	only := func(_ any, err error) error { return err }
	kinds := map[string]struct{ create, change, remove func(id string) error }{
		"topic": {
			create: func(id string) error {
				return only(s.CreateTopic(ctx, &pubsubpb.Topic{Name: topicName(id)}))
			},
			change: func(id string) error {
				return only(s.UpdateTopic(ctx, &pubsubpb.UpdateTopicRequest{Topic: &pubsubpb.Topic{Name: topicName(id)}, UpdateMask: labels}))
			},
			remove: func(id string) error {
				return only(s.DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: topicName(id)}))
			},
		},
		"subscription": {
			create: func(id string) error {
				return only(s.CreateSubscription(ctx, &pubsubpb.Subscription{Name: subscriptionName(id), Topic: keep}))
			},
			change: func(id string) error {
				return only(s.UpdateSubscription(ctx, &pubsubpb.UpdateSubscriptionRequest{
					Subscription: &pubsubpb.Subscription{Name: subscriptionName(id)}, UpdateMask: labels,
				}))
			},
			remove: func(id string) error {
				return only(s.DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: subscriptionName(id)}))
			},
		},
		"detached subscription": {
			create: func(id string) error {
				return only(s.CreateSubscription(ctx, &pubsubpb.Subscription{Name: subscriptionName(id), Topic: keep}))
			},
			change: func(id string) error {
				return only(s.DetachSubscription(ctx, &pubsubpb.DetachSubscriptionRequest{Subscription: subscriptionName(id)}))
			},
			remove: func(id string) error {
				return only(s.DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: subscriptionName(id)}))
			},
		},
		"snapshot": {
			create: func(id string) error {
				return only(s.CreateSnapshot(ctx, &pubsubpb.CreateSnapshotRequest{Name: snapshotName(id), Subscription: base}))
			},
			change: func(id string) error {
				return only(s.UpdateSnapshot(ctx, &pubsubpb.UpdateSnapshotRequest{Snapshot: &pubsubpb.Snapshot{Name: snapshotName(id)}, UpdateMask: labels}))
			},
			remove: func(id string) error {
				return only(s.DeleteSnapshot(ctx, &pubsubpb.DeleteSnapshotRequest{Snapshot: snapshotName(id)}))
			},
		},
	}
	for name, kind := range kinds {
		for i := range 40 {
			id := fmt.Sprintf("%s%d", name[:3], i)
			if err := kind.create(id); err != nil {
				t.Fatal(err)
			}
			change, remove := func() error { return kind.change(id) }, func() error { return kind.remove(id) }
			errs := atOnce(remove, change, change, change)
			if errs[0] != nil {
				t.Fatal(errs[0])
			}
			for _, err := range errs[1:] {
				if code := status.Code(err); code != codes.OK && code != codes.NotFound {
					t.Errorf("change of a %s being deleted: %v", name, err)
				}
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	again := start(t, pubsubemu.Options{DataDir: dir}).server
	topics, err := again.ListTopics(ctx, &pubsubpb.ListTopicsRequest{Project: project})
	if err != nil || len(topics.Topics) != 1 {
		t.Errorf("after the restart %d topics, want 1: %v", len(topics.GetTopics()), err)
	}
	subs, err := again.ListSubscriptions(ctx, &pubsubpb.ListSubscriptionsRequest{Project: project})
	if err != nil || len(subs.Subscriptions) != 1 {
		t.Errorf("after the restart %d subscriptions, want 1: %v", len(subs.GetSubscriptions()), err)
	}
	snaps, err := again.ListSnapshots(ctx, &pubsubpb.ListSnapshotsRequest{Project: project})
	if err != nil || len(snaps.Snapshots) != 0 {
		t.Errorf("after the restart %d snapshots, want none: %v", len(snaps.GetSnapshots()), err)
	}
}

// A publish adds nothing to a resource that is being deleted: nothing would remove
// it from the disk again. P-RPC-01, P-DUR-01
func TestDelete_ConcurrentPublishLeavesNothingOnDisk(t *testing.T) {
	dir := t.TempDir()
	b := start(t, pubsubemu.Options{DataDir: dir})
	s, ctx := b.server, t.Context()
	topic := b.topic("telemetry")
	base := b.subscribe("base", topic, func(c *pubsubpb.Subscription) { c.Filter = "attributes:none" })
	publish := func() error {
		_, err := s.Publish(ctx, &pubsubpb.PublishRequest{Topic: topic, Messages: texts("m", 1)})
		return err
	}
	for i := range 20 {
		sub, snap := b.subscribe(fmt.Sprintf("sub%d", i), topic, nil), snapshotName(fmt.Sprintf("snap%d", i))
		if _, err := s.CreateSnapshot(ctx, &pubsubpb.CreateSnapshotRequest{Name: snap, Subscription: base}); err != nil {
			t.Fatal(err)
		}
		deletions := []func() error{
			func() error {
				_, err := s.DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: sub})
				return err
			},
			func() error {
				_, err := s.DeleteSnapshot(ctx, &pubsubpb.DeleteSnapshotRequest{Snapshot: snap})
				return err
			},
		}
		for _, remove := range deletions {
			if err := errors.Join(atOnce(remove, publish, publish, publish)...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	state := onDisk(t, dir)
	if len(state.Messages) != 0 {
		t.Errorf("%d messages are still on disk, of %d holders that are gone", len(state.Messages), len(state.Holds))
	}
}
