package pubsubemu_test

import (
	"fmt"
	"sync"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

// A server that is killed while it forwards dead letters, creates and deletes
// snapshots and seeks keeps what it had confirmed. P-DUR-01, P-DEL-02, P-SEEK-01
func TestDurability_SurvivesKillDuringDeadLettersAndSeeks(t *testing.T) {
	dir := t.TempDir()
	addr, kill := startChild(t, dir)
	b := connect(t, addr)
	topic, dead := b.topic("telemetry"), b.topic("dead")
	failing := b.subscribe("failing", topic, func(c *pubsubpb.Subscription) {
		c.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: dead, MaxDeliveryAttempts: 5}
	})
	forwarded, replayed := b.subscribe("forwarded", dead, nil), b.subscribe("replayed", topic, nil)
	seekTo := func(b *bench) error {
		_, err := b.sub.Seek(b.deadline(), &pubsubpb.SeekRequest{Subscription: replayed, Target: &pubsubpb.SeekRequest_Snapshot{Snapshot: snapshotName("start")}})
		return err
	}
	if _, err := b.sub.CreateSnapshot(b.deadline(), &pubsubpb.CreateSnapshotRequest{Name: snapshotName("start"), Subscription: replayed}); err != nil {
		t.Fatal(err)
	}

	answered, acked := map[string]bool{}, map[string]bool{} // acked since the last seek
	seeks, letters := make(chan struct{}, 1000), make(chan struct{}, 1000)
	tell := func(about chan struct{}) {
		select {
		case about <- struct{}{}:
		default:
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			text := fmt.Sprint("m", i)
			_, err := b.pub.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: topic, Messages: []*pubsubpb.PubsubMessage{{Data: []byte(text)}}})
			if err != nil {
				return
			}
			answered[text] = true
		}
	})
	wg.Go(func() {
		for {
			got, err := b.sub.Pull(t.Context(), &pubsubpb.PullRequest{Subscription: failing, MaxMessages: 10})
			if err != nil {
				return
			}
			if _, err = b.sub.ModifyAckDeadline(t.Context(), &pubsubpb.ModifyAckDeadlineRequest{Subscription: failing, AckIds: ackIDs(got.ReceivedMessages)}); err != nil {
				return
			}
			for _, r := range got.ReceivedMessages {
				if r.DeliveryAttempt == 5 {
					tell(letters)
				}
			}
		}
	})
	wg.Go(func() {
		for i := 0; ; i++ {
			got, err := b.sub.Pull(t.Context(), &pubsubpb.PullRequest{Subscription: replayed, MaxMessages: 10})
			if err != nil {
				return
			}
			for _, text := range payloads(got.ReceivedMessages) {
				acked[text] = true // before the call: the ack may land though its answer does not
			}
			if _, err = b.sub.Acknowledge(t.Context(), &pubsubpb.AcknowledgeRequest{Subscription: replayed, AckIds: ackIDs(got.ReceivedMessages)}); err != nil {
				return
			}
			other := snapshotName(fmt.Sprint("other", i))
			if _, err = b.sub.CreateSnapshot(t.Context(), &pubsubpb.CreateSnapshotRequest{Name: other, Subscription: replayed}); err != nil {
				return
			}
			if i%2 == 0 {
				if seekTo(b) != nil {
					return
				}
				clear(acked)
				tell(seeks)
			}
			if _, err = b.sub.DeleteSnapshot(t.Context(), &pubsubpb.DeleteSnapshotRequest{Snapshot: other}); err != nil {
				return
			}
		}
	})
	for range 3 {
		for _, about := range []chan struct{}{seeks, letters} {
			select {
			case <-about:
			case <-b.deadline().Done():
				t.Fatalf("the traffic stalled after %d more seeks and %d more dead letters", len(seeks), len(letters))
			}
		}
	}
	kill()
	wg.Wait()

	addr, kill = startChild(t, dir)
	again := connect(t, addr)
	left, given := everything(again, failing), everything(again, forwarded)
	unacked := everything(again, replayed)
	if err := seekTo(again); err != nil {
		t.Fatal(err)
	}
	all := everything(again, replayed)
	kill()
	for text := range answered {
		if left[text]+given[text] == 0 {
			t.Errorf("%s is neither unacked nor a dead letter", text)
		}
		if !acked[text] && unacked[text] == 0 {
			t.Errorf("%s was not acked since the last seek and is gone", text)
		}
		if all[text] == 0 {
			t.Errorf("%s is no longer in the snapshot", text)
		}
	}
}
