package deploy_test

import (
	"errors"
	"fmt"
	"os"
	"path"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/iterator"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/deploy/internal/tfmodule"
	"github.com/dronefleet/dronefleet/internal/emutest"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
)

// world is what the code needs of Google Cloud, as the code itself says it.
type world struct {
	schema        *tfmodule.Schema
	topics        []string
	subscriptions map[string]*pubsubpb.Subscription // by short name
	collections   []string
	metrics       map[string]bool
	settings      map[string]map[string]bool // environment variables by command, such as "statemanager serve"
}

// newWorld asks the code: a Pub/Sub server on which it made its topics, the
// names it exports, the help of its binaries.
func newWorld(t *testing.T) *world {
	t.Helper()
	text, err := os.ReadFile("testdata/google-6.50.0.json")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := tfmodule.ReadSchema(text)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		schema: schema, subscriptions: map[string]*pubsubpb.Subscription{},
		collections: []string{
			firestoretx.Drones, firestoretx.Orders, firestoretx.Missions, firestoretx.Decisions, firestoretx.Cycles,
			firestoretx.Events, firestoretx.Depots, firestoretx.Warehouses, firestoretx.Control,
			firestorelock.DefaultCollection, firestorelock.DefaultFenceCollection,
		},
		metrics: metricNames(), settings: environmentOf(t),
	}
	if err := w.readPubSub(t); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) readPubSub(t *testing.T) error {
	ctx, clients := t.Context(), emutest.Clients(t)
	if err := pubsubio.Ensure(ctx, clients.PubSub); err != nil {
		return err
	}
	project := "projects/" + clients.PubSub.Project()
	topics := clients.PubSub.TopicAdminClient.ListTopics(ctx, &pubsubpb.ListTopicsRequest{Project: project})
	for {
		topic, err := topics.Next()
		if errors.Is(err, iterator.Done) {
			break
		}
		if err != nil {
			return fmt.Errorf("list topics: %w", err)
		}
		w.topics = append(w.topics, path.Base(topic.GetName()))
	}
	subs := clients.PubSub.SubscriptionAdminClient.ListSubscriptions(ctx, &pubsubpb.ListSubscriptionsRequest{Project: project})
	for {
		sub, err := subs.Next()
		if errors.Is(err, iterator.Done) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list subscriptions: %w", err)
		}
		w.subscriptions[path.Base(sub.GetName())] = sub
	}
}
