package httpapi_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-OBS-01
func TestNewProbes_ServesHealthReadinessAndMetricsOnly(t *testing.T) {
	hosts := emutest.Hosts(t)
	hideFirestoreHost(t)
	clients := emutest.Connect(t, hosts)
	locks, err := clients.Locks(simclock.Real(), emutest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := locks.Close(context.Background()); err != nil {
			t.Errorf("close locks: %v", err)
		}
	}()
	clients.Meter.Cycles.Ended(meter.CycleRun)
	clients.Meter.Lock(meter.LockCycle)
	probe := func(method, path string) (int, string) {
		t.Helper()
		// Readiness is cached for a second, so each probe here has a server of its own.
		server := httptest.NewServer(httpapi.NewProbes(httpapi.Config{
			Locks: locks, PubSub: clients.PubSub, Meter: clients.Meter, Log: emutest.Log(t),
		}, pubsubio.TopicDecisions))
		defer server.Close()
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}

	if code, body := probe(http.MethodGet, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "topic decisions does not exist") {
		t.Errorf("without the topic: %d %s", code, body)
	}
	if err := pubsubio.Ensure(t.Context(), clients.PubSub); err != nil {
		t.Fatal(err)
	}
	code, body := probe(http.MethodGet, "/readyz")
	var ready httpapi.Readiness
	if err := json.Unmarshal([]byte(body), &ready); err != nil || code != http.StatusOK {
		t.Fatalf("%d %s: %v", code, body, err)
	}
	for _, name := range []string{"firestore", "pubsub", "clock", "lock-cycle", "cycle"} {
		if ready.Checks[name].Status != httpapi.CheckOK {
			t.Errorf("check %s is %+v", name, ready.Checks[name])
		}
	}
	if offset, measured := clients.Meter.ClockOffset.Last(); !measured || offset.Abs() > time.Minute {
		t.Errorf("the probe measured a clock offset of %v (%v)", offset, measured)
	}
	if code, body := probe(http.MethodGet, "/metrics"); code != http.StatusOK || !strings.Contains(body, `dronefleet_cycles_total{outcome="run"} 1`) {
		t.Errorf("metrics: %d\n%s", code, body)
	}
	for _, c := range []struct {
		method, path string
		code         int
	}{
		{http.MethodGet, "/healthz", http.StatusOK},
		{http.MethodHead, "/readyz", http.StatusOK},
		{http.MethodPost, "/healthz", http.StatusMethodNotAllowed},
		{http.MethodGet, "/api/v1/drones", http.StatusNotFound},
	} {
		if code, body := probe(c.method, c.path); code != c.code {
			t.Errorf("%s %s: %d, want %d\n%s", c.method, c.path, code, c.code, body)
		}
	}
}
