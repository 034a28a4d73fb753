package dispatch_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/dispatch"
	"github.com/dronefleet/dronefleet/internal/emutest"
)

// F-OPT-03: one decision that no message can carry keeps no other from being
// published, before it or behind it.
func TestPublisher_LeavesOutWhatNoMessageCanCarry(t *testing.T) {
	clients := emutest.Clients(t)
	if err := pubsubio.Ensure(t.Context(), clients.PubSub); err != nil {
		t.Fatal(err)
	}
	publisher := pubsubio.NewPublisher(clients.PubSub)
	t.Cleanup(publisher.Stop)
	var decisions []domain.Decision
	for _, id := range []domain.DroneID{"D1", "no text: \xff", "D3"} {
		decisions = append(decisions, domain.Decision{ID: "C-" + domain.DecisionID(id), DroneID: id, OrderIDs: []domain.OrderID{"O"}, SnapshotTime: time.Now()})
	}
	errs := dispatch.Publisher(publisher, wire.Protobuf)(t.Context(), decisions)
	if len(errs) != 3 || errs[0] != nil || errs[1] == nil || errs[2] != nil {
		t.Errorf("errors %v", errs)
	}
	ctx, enough := context.WithTimeout(t.Context(), time.Minute)
	defer enough()
	var mu sync.Mutex
	received := map[string]bool{}
	err := clients.PubSub.Subscriber(pubsubio.Subscription(pubsubio.TopicDecisions)).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		m.Ack()
		mu.Lock()
		defer mu.Unlock()
		if received[m.OrderingKey] = true; len(received) == 2 {
			enough()
		}
	})
	if err != nil || !received["D1"] || !received["D3"] {
		t.Errorf("received decisions on %v, %v", received, err)
	}
}
