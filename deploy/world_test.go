package deploy_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/iterator"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
	"github.com/dronefleet/dronefleet/testkit/clitest"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/tfmodule"
)

// world is what the code needs from Google Cloud, obtained from the code itself.
type world struct {
	schema        *tfmodule.Schema
	topics        []string
	subscriptions map[string]*pubsubpb.Subscription // by short name
	collections   []string
	metrics       map[string]bool
	settings      map[string]map[string]bool // environment variables by command, such as "statemanager serve"
	started       map[string]started         // by command and environment
	programs      map[string]string          // where each binary is
}

// started is what came of a binary that was to start with some settings.
type started struct {
	config string // its effective configuration
	err    error
}

// start has a binary print what it would run with: whether it takes these
// arguments and variables, and nothing else of this environment.
func (w *world) start(binary string, args, environment []string) (config string, err error) {
	key := fmt.Sprint(binary, args, environment)
	if s, ok := w.started[key]; ok {
		return s.config, s.err
	}
	cmd := exec.Command(w.programs[binary], append(slices.Clone(args), "--print-config")...)
	cmd.Env = environment
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	w.started[key] = started{string(out), err}
	return string(out), err
}

// newWorld reads it from a Pub/Sub server on which the code created its topics, from
// exported names, and from the help of the binaries.
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
		schema: schema, subscriptions: map[string]*pubsubpb.Subscription{}, started: map[string]started{},
		collections: []string{
			firestoretx.Drones, firestoretx.Orders, firestoretx.Missions, firestoretx.Decisions, firestoretx.Cycles,
			firestoretx.Events, firestoretx.Depots, firestoretx.Warehouses, firestoretx.Control, firestoretx.Discards, firestoretx.Replays, firestoretx.AlertAcks, firestoretx.Learned,
			firestoretx.DroneTypes, firestoretx.Maintenance, firestoretx.Refusals, firestoretx.PlaceChanges, firestoretx.LockBreaks, firestoretx.Keys, firestoretx.Members,
			firestoretx.Webhooks, firestoretx.WebhookSecrets, firestoretx.WebhookDeliveries,
			firestorelock.DefaultCollection, firestorelock.DefaultFenceCollection,
		},
		metrics: metricNames(), settings: environmentOf(t), programs: map[string]string{},
	}
	for _, name := range strings.Fields(images) {
		w.programs[name] = clitest.Program(name).Path(t)
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
