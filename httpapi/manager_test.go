package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/shutdown"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// withPubSub is Hosts with an embedded Pub/Sub: unlike the official emulator it ends the
// streams of deleted subscriptions as the service does.
func withPubSub(t *testing.T) connect.Config {
	t.Helper()
	hosts := emutest.Hosts(t)
	server, err := pubsubemu.Start(pubsubemu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	hosts.PubSubHost = server.Addr()
	return hosts
}

// managed is a State Manager that serves its HTTP API.
type managed struct {
	t       *testing.T
	project string
	outside *connect.Clients // of the message senders
	url     string
	client  *http.Client
	stop    context.CancelCauseFunc
	ended   <-chan error // what ServeManager returned
}

// serveManager runs a State Manager with its HTTP API until the test ends.
func serveManager(t *testing.T, hosts connect.Config, cfg manager.Config) *managed {
	t.Helper()
	hideFirestoreHost(t)
	outside := emutest.Connect(t, hosts)
	if err := pubsubio.Ensure(t.Context(), outside.PubSub); err != nil {
		t.Fatal(err)
	}
	listener, err := httpapi.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.New(emutest.Connect(t, hosts), simclock.Real(), cfg, emutest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	over, result := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(over)
		result <- httpapi.ServeManager(ctx, m, httpapi.Site{}, listener)
	}()
	t.Cleanup(func() {
		cancel(nil)
		<-over
	})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &managed{t: t, project: hosts.Project, outside: outside, url: listener.URL(), client: &http.Client{Transport: transport}, stop: cancel, ended: result}
}

// ready asks the manager for its readiness.
func (m *managed) ready() (code int, report httpapi.Readiness, err error) {
	resp, err := m.client.Get(m.url + "/readyz")
	if err != nil {
		return 0, report, err
	}
	defer resp.Body.Close()
	return resp.StatusCode, report, json.NewDecoder(resp.Body).Decode(&report)
}

// awaitReady waits until the manager is ready.
func (m *managed) awaitReady() {
	m.t.Helper()
	m.await("process", http.StatusOK, "")
}

// await waits until readiness has a status, and the named check a detail.
func (m *managed) await(check string, status int, detail string) {
	m.t.Helper()
	emutest.Eventually(m.t, fmt.Sprintf("readiness %d with %q", status, detail), func() error {
		code, report, err := m.ready()
		if err == nil && (code != status || !strings.Contains(report.Checks[check].Detail, detail)) {
			err = fmt.Errorf("%d: %+v", code, report)
		}
		return err
	})
}

// report publishes an idle drone's telemetry.
func (m *managed) report(id domain.DroneID) {
	m.t.Helper()
	data, attrs, err := wire.EncodeTelemetry(domain.Telemetry{
		DroneID: id, Timestamp: time.Now(), Position: home, Battery: 90, Status: domain.DroneIdle,
	}, wire.Protobuf)
	if err != nil {
		m.t.Fatal(err)
	}
	publisher := pubsubio.NewPublisher(m.outside.PubSub)
	defer publisher.Stop()
	if _, err := publisher.Publish(m.t.Context(), pubsubio.TopicTelemetry, data, attrs, "").Wait(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
}

// deleteSubscription deletes the manager's subscription of a topic.
func (m *managed) deleteSubscription(topic string) {
	m.t.Helper()
	gone := &pubsubpb.DeleteSubscriptionRequest{
		Subscription: fmt.Sprintf("projects/%s/subscriptions/%s", m.project, pubsubio.Subscription(topic)),
	}
	if err := m.outside.PubSub.SubscriptionAdminClient.DeleteSubscription(m.t.Context(), gone); err != nil {
		m.t.Fatal(err)
	}
}

// F-API-01: from the moment it is told to stop, a State Manager is not ready, however long
// it takes to finish its messages, and says why it stops.
func TestServeManager_IsNotReadyWhileItStops(t *testing.T) {
	faults := fault.New(1)
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	hosts := withPubSub(t)
	held := fault.NewGate()
	defer held.Open()
	faults.Add(fault.Rule{NamePrefix: "drones/D1", At: fault.Before, Do: fault.Pause(held)})
	m := serveManager(t, hosts, manager.Config{PlanUnregistered: true, Worker: pubsubio.Config{Shutdown: shutdown.StateManager(time.Hour)}})
	m.awaitReady()
	m.report("D1")
	if err := held.Arrived(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	m.stop(errors.New("told to"))
	m.await("process", http.StatusServiceUnavailable, "(told to)")
	held.Open()
	if err := <-m.ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// F-API-01: somebody deletes a subscription under a running State Manager. It is not
// ready and says what creates the subscription; once that exists, it goes on.
func TestServeManager_IsUnreadyUntilADeletedSubscriptionIsBack(t *testing.T) {
	beside(t)
	m := serveManager(t, withPubSub(t), manager.Config{PlanUnregistered: true})
	store := firestoretx.New(m.outside.Firestore, firestoretx.Config{PlanUnregistered: true})
	applied := func(id domain.DroneID) {
		m.report(id)
		emutest.Eventually(t, "the report is applied", func() error {
			_, err := store.Drone(t.Context(), id)
			return err
		})
	}
	applied("D0") // a subscription that is missing at the start would end it
	m.deleteSubscription(pubsubio.TopicTelemetry)
	m.await("pubsub", http.StatusServiceUnavailable, "telemetry-statemanager does not exist; "+pubsubio.Remedy)
	if err := pubsubio.Ensure(t.Context(), m.outside.PubSub); err != nil {
		t.Fatal(err)
	}
	m.awaitReady()
	applied("D1")
	select {
	case err := <-m.ended:
		t.Errorf("it ended with %v", err)
	default:
	}
}
