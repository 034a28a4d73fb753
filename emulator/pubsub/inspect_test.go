package pubsubemu_test

import (
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"github.com/jonboulle/clockwork"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
)

// Backlog lists what is unacked with its state, its attempts and the end of its
// lease or backoff, and delivers nothing. P-DEL-01, P-DEL-02, P-DEL-03
func TestServer_Backlog(t *testing.T) {
	clock := clockwork.NewFakeClockAt(epoch)
	b := start(t, pubsubemu.Options{Clock: clock})
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, func(c *pubsubpb.Subscription) {
		c.RetainAckedMessages = true // an acked message is not in the backlog, though it is kept
		c.RetryPolicy = &pubsubpb.RetryPolicy{MinimumBackoff: durationpb.New(20 * time.Second)}
	})
	ids := b.publish(topic, texts("m", 4)...)
	first := b.pull(sub, 3)
	b.ack(sub, first[0])
	b.modify(sub, 0, first[1])

	type row struct {
		ID, Text string
		State    pubsubemu.State
		Attempts int
		Until    time.Time
	}
	rows := func() (out []row) {
		t.Helper()
		backlog, err := b.server.Backlog(sub)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range backlog {
			out = append(out, row{m.Message.MessageId, string(m.Message.Data), m.State, m.Attempts, m.Until.UTC()})
		}
		return out
	}
	never := time.Time{}
	want := []row{
		{ids[1], "m1", pubsubemu.BackingOff, 1, epoch.Add(20 * time.Second)},
		{ids[2], "m2", pubsubemu.Leased, 1, epoch.Add(10 * time.Second)},
		{ids[3], "m3", pubsubemu.Ready, 0, never},
	}
	for range 2 { // looking changes nothing
		if diff := cmp.Diff(want, rows()); diff != "" {
			t.Fatal(diff)
		}
	}
	clock.Advance(20 * time.Second)
	want[0].State, want[0].Until = pubsubemu.Ready, never
	want[1].State, want[1].Until = pubsubemu.BackingOff, epoch.Add(30*time.Second) // from its ack deadline on
	if diff := cmp.Diff(want, rows()); diff != "" {
		t.Error(diff)
	}

	if _, err := b.server.Backlog(subscriptionName("missing")); status.Code(err) != codes.NotFound {
		t.Errorf("backlog of a missing subscription: %v", err)
	}
}
