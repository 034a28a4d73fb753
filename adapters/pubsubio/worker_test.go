package pubsubio

import (
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"go.uber.org/goleak"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/shutdown"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

// F-FLOW-01: what is let in at a time takes a small part of a process's memory,
// whatever the messages weigh and however many streams carry them.
func TestWorker_FlowControlBoundsHeldMessages(t *testing.T) {
	l := newLine(t)
	store, _ := l.store()
	l.work(store, Config{})
	allowed := func(topic string) (streams int, messages, bytes int64) {
		l.mu.Lock()
		defer l.mu.Unlock()
		opened := l.opened[Subscription(topic)]
		for _, r := range opened {
			messages, bytes = messages+r.GetMaxOutstandingMessages(), bytes+r.GetMaxOutstandingBytes()
		}
		return len(opened), messages, bytes
	}
	for _, tt := range []struct {
		topic    string
		streams  int
		messages int64
	}{
		{TopicTelemetry, 2, 40_000},
		{TopicOrders, 1, 1000},
		{TopicDecisions, 1, 1000},
	} {
		eventually(t, tt.topic+" is pulled", func() bool { streams, _, _ := allowed(tt.topic); return streams >= tt.streams })
		if _, messages, bytes := allowed(tt.topic); messages != tt.messages || bytes != 64<<20 {
			t.Errorf("%s: %d messages and %d MiB let in at a time, want %d and 64", tt.topic, messages, bytes>>20, tt.messages)
		}
	}
}

// F-FLOW-01, F-ACK-01: with a Firestore that does not answer, a worker gives back
// all it holds when its drain is over: what is being committed, what waits for
// that, and what has found no room to wait. Nothing is acked, and no goroutine
// is left.
func TestWorker_NacksEverythingAfterTheDrain(t *testing.T) {
	l := newLine(t)
	store, stall := l.store()
	// What the clients keep running is there before.
	if _, err := store.Drone(t.Context(), "NONE"); err == nil {
		t.Fatal("there is a drone NONE")
	}
	l.report("D", "")
	publisher := NewPublisher(l.client)
	if _, err := publisher.Publish(t.Context(), TopicMissions, []byte("x"), nil, "").Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	publisher.Stop()
	before := goleak.IgnoreCurrent()
	stall()
	stop := l.work(store, Config{TelemetryShards: 1, TelemetryCoalesce: 10 * time.Millisecond, Shutdown: shutdown.StateManager(time.Second)})

	const reports = 3 * 1024 // the first are being committed, the others wait
	var ids []domain.DroneID
	for i := 1; i < reports; i++ {
		ids = append(ids, domain.DroneID(fmt.Sprintf("D%d", i)))
	}
	l.reports(ids, "")
	order, attrs, err := wire.EncodeOrder(domain.OrderRequest{ID: "O1", OrderContent: domain.OrderContent{
		Priority: domain.PriorityCritical, ProductType: "BLOOD", Delivery: domain.Position{Lat: 48.86, Lon: 2.36},
	}}, wire.JSON)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.world.Publish(t.Context(), TopicOrders, order, attrs, "").Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	held := func() int64 {
		return l.meter.Backlog(TopicTelemetry, time.Now).Messages() + l.meter.Backlog(TopicOrders, time.Now).Messages()
	}
	emutest.Eventually(t, "everything is held", func() error {
		if n := held(); n != reports+1 {
			return fmt.Errorf("%d messages", n)
		}
		return nil
	})
	began := time.Now()
	stop()
	// Four seconds are allowed; a lease would be fifty.
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("stopping took %v", took)
	}
	if n := held(); n != 0 {
		t.Errorf("%d messages are still held", n)
	}
	var nacked int64
	for key, n := range l.meter.Settled() {
		if key.Outcome == meter.Nacked {
			nacked += n
		} else if n > 0 {
			t.Errorf("%d messages end as %+v", n, key)
		}
	}
	if nacked != reports+1 {
		t.Errorf("%d messages given back of %d", nacked, reports+1)
	}
	// What comes again while the streams are closed, the client gives back itself.
	eventually(t, "the server has them back", func() bool { _, nacked := l.settlements(); return nacked >= reports+1 })
	if acked, _ := l.settlements(); acked > 0 {
		t.Errorf("%d messages are acked", acked)
	}
	// The client leaves the watch over its streams behind.
	if err := leaktest.Find(before); err != nil {
		t.Error(err)
	}
}

// A project without the fleet's subscriptions, or an emulator that forgot them, is
// told so, and what creates them.
func TestWorker_NamesTheFixForAMissingSubscription(t *testing.T) {
	l := newLine(t)
	gone := &pubsubpb.DeleteSubscriptionRequest{Subscription: subscriptionName(l.outside, Subscription(TopicOrders))}
	if err := l.outside.SubscriptionAdminClient.DeleteSubscription(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	store, _ := l.store()
	publisher := NewPublisher(l.client)
	defer publisher.Stop()
	err := NewWorker(l.client, store, publisher, Config{}, emutest.Log(t), l.meter).Run(t.Context(), func(error) {})
	if want := `subscription orders-statemanager does not exist; "terraform apply" creates it, or without Terraform "statemanager serve --create-topics"`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
