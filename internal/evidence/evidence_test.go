package evidence_test

import (
	"fmt"
	"testing"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/emutest"
	"github.com/dronefleet/dronefleet/internal/evidence"
	"github.com/dronefleet/dronefleet/internal/invariant"
)

// I3, F-DLQ-01: an order that was refused and then discarded is on record, not lost.
func TestDocuments_TellOfWhatWasDiscarded(t *testing.T) {
	store := firestoretx.New(emutest.Clients(t).Firestore, firestoretx.Config{})
	refused := invariant.Message{ID: "17", Topic: "orders", OrderID: "O1"}
	for _, lost := range []bool{true, false} {
		h, err := evidence.Documents(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		h.Journal = []invariant.Message{refused}
		if v := invariant.Check(h).Violations; len(v) > 0 != lost {
			t.Errorf("violations %v, want some: %t", v, lost)
		}
		if err := store.RecordDiscard(t.Context(), domain.Discard{ID: "orders-17", Topic: "orders", MessageID: "17", Reason: "INVALID"}); err != nil {
			t.Fatal(err)
		}
	}
}

// I9: a letter that is not looked at would stand for a message that was lost.
func TestDeadLetters_AreAllRead(t *testing.T) {
	c := emutest.Clients(t).PubSub
	if err := pubsubio.Ensure(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	const letters = 10_500 // more than one review holds
	topic := c.Publisher(pubsubio.DeadLetterTopic(pubsubio.TopicTelemetry))
	defer topic.Stop()
	results := make([]*pubsub.PublishResult, letters)
	for i := range results {
		results[i] = topic.Publish(t.Context(), &pubsub.Message{Attributes: map[string]string{
			pubsubio.AttrReason: "FUTURE_TIMESTAMP", pubsubio.AttrMessageID: fmt.Sprint(i),
		}})
	}
	for _, r := range results {
		if _, err := r.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // it leaves them where they are
		read, err := evidence.DeadLetters(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		for _, l := range read {
			ids[l.MessageID] = true
		}
		if len(ids) != letters {
			t.Errorf("read %d of %d letters", len(ids), letters)
		}
	}
}
