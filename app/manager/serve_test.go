package manager_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/emutest"
	"github.com/dronefleet/dronefleet/internal/simclock"
)

// servePubSub has Hosts name an embedded Pub/Sub from now on, which cuts
// subscriptions off as the service does.
func servePubSub(t *testing.T) {
	t.Helper()
	server, err := pubsubemu.Start(pubsubemu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv(connect.PubSubHost, server.Addr())
}

// serveManager runs a State Manager with its HTTP API, whose readiness ready
// asks for, until stop is called or the test ends; ended has what it ended with.
func (s *system) serveManager(cfg manager.Config) (ready func() (code int, report httpapi.Readiness, err error), stop func(), ended <-chan error) {
	s.t.Helper()
	listener, err := httpapi.Listen("127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	m, err := manager.New(emutest.Connect(s.t, s.hosts), simclock.Real(), cfg, emutest.Log(s.t))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over, result := make(chan struct{}), make(chan error, 1)
	go func() { defer close(over); result <- httpapi.ServeManager(ctx, context.Background(), m, httpapi.Access{}, listener) }()
	s.t.Cleanup(func() {
		cancel()
		<-over
	})
	transport := &http.Transport{}
	s.t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	return func() (int, httpapi.Readiness, error) {
		var report httpapi.Readiness
		resp, err := client.Get(listener.URL() + "/readyz")
		if err != nil {
			return 0, report, err
		}
		defer resp.Body.Close()
		return resp.StatusCode, report, json.NewDecoder(resp.Body).Decode(&report)
	}, cancel, result
}

// F-API-01: a State Manager that stops by itself is not ready from then on,
// however long it still settles what it holds, and says what made it stop.
func TestServe_IsNotReadyWhileItStopsByItself(t *testing.T) {
	faults := fault.New(1)
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	servePubSub(t)
	s := newSystem(t)
	held := fault.NewGate()
	defer held.Open()
	faults.Add(fault.Rule{NamePrefix: "drones/D1", At: fault.Before, Do: fault.Pause(held)})
	ready, _, ended := s.serveManager(manager.Config{Worker: pubsubio.Config{DrainTimeout: time.Hour}})
	emutest.Eventually(t, "ready", func() error {
		code, report, err := ready()
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d: %+v", code, report)
		}
		return err
	})
	s.report("D1", time.Now(), domain.DroneIdle, "", home)
	if err := held.Arrived(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	gone := &pubsubpb.DeleteSubscriptionRequest{
		Subscription: fmt.Sprintf("projects/%s/subscriptions/%s", s.hosts.Project, pubsubio.Subscription(pubsubio.TopicOrders)),
	}
	if err := s.outside.PubSub.SubscriptionAdminClient.DeleteSubscription(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	emutest.Eventually(t, "not ready any more", func() error {
		code, report, err := ready()
		if detail := report.Checks["process"].Detail; err == nil && (code != http.StatusServiceUnavailable || !strings.Contains(detail, "orders-statemanager does not exist")) {
			err = fmt.Errorf("%d: %+v", code, report)
		}
		return err
	})
	held.Open()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "orders-statemanager does not exist") {
		t.Errorf("it ended with %v", err)
	}
}
