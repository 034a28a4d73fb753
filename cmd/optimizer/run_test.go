package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-OPT-01, F-OBS-01: run plans repeatedly until it is told to stop, and then exits with
// success. With an address it answers probes.
func TestRun_PlansAndAnswersProbes(t *testing.T) {
	hosts := emutest.Hosts(t)
	clients := emutest.Connect(t, hosts)
	if err := pubsubio.Ensure(t.Context(), clients.PubSub); err != nil {
		t.Fatal(err)
	}
	depot := domain.Depot{ID: "D1", Position: domain.Position{Lat: 5.6, Lon: -0.2}}
	if err := firestoretx.New(clients.Firestore, firestoretx.Config{}).Setup(t.Context(), []domain.Depot{depot}, nil, nil); err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	defer func() { os.Stderr = stderr }()
	for _, addr := range []string{"127.0.0.1:0", "off"} {
		name := filepath.Join(t.TempDir(), "log")
		log, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		os.Stderr = log
		run := parseRun(t, hosts, "--interval=10ms", "--http-addr="+addr)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- run.Run(ctx) }()
		emutest.Eventually(t, "several cycles", func() error {
			select {
			case err := <-ended:
				t.Fatalf("%s: run ended early: %v", addr, err)
			default:
			}
			text, err := os.ReadFile(name)
			if n := strings.Count(string(text), `"outcome":"EMPTY"`); n < 3 {
				return fmt.Errorf("%d cycles (%w): %s", n, err, text)
			}
			return nil
		})
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, after, listens := strings.Cut(string(text), `"url":"`)
		if listens != (addr != "off") {
			t.Errorf("%s: %s", addr, text)
		}
		if listens {
			url, _, _ := strings.Cut(after, `"`)
			emutest.Eventually(t, "ready", func() error { return ready(url) })
			taken := parseRun(t, hosts, "--http-addr="+strings.TrimPrefix(url, "http://"))
			if err := taken.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "--http-addr: ") {
				t.Errorf("a second one at the same address: %v", err)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("%s: after a stop run returned %v", addr, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// F-OPT-01: a depot that another process plans for is named and skipped.
func TestOnce_NamesTheSkippedDepot(t *testing.T) {
	hosts := emutest.Hosts(t)
	clients := emutest.Connect(t, hosts)
	depot := domain.Depot{ID: "D1", Position: domain.Position{Lat: 5.6, Lon: -0.2}}
	if err := firestoretx.New(clients.Firestore, firestoretx.Config{}).Setup(t.Context(), []domain.Depot{depot}, nil, nil); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	stderr := os.Stderr
	defer func() { os.Stderr = stderr }()
	os.Stderr = log
	once := &onceCommand{parseRun(t, hosts).cycles}
	err = once.with(t.Context(), dispatch.Config{}, func(p *planning) error {
		h, ok, err := lock.TryAcquire(t.Context(), p.locks, domain.CycleLockKey(depot.ID))
		if err != nil || !ok {
			return fmt.Errorf("acquisition: %t, %w", ok, err)
		}
		return errors.Join(once.Run(t.Context()), h.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(log.Name()); err != nil || !strings.Contains(string(text), "depot D1: another cycle is running; skipped\n") {
		t.Errorf("told %q, %v", text, err)
	}
}

// F-OPT-01: published missions include the service time at stops.
func TestOnce_IncludesTheServiceTimeAtStops(t *testing.T) {
	hosts := emutest.Hosts(t)
	clients := emutest.Connect(t, hosts)
	ctx := t.Context()
	if err := pubsubio.Ensure(ctx, clients.PubSub); err != nil {
		t.Fatal(err)
	}
	home, store := domain.Position{Lat: 5.6, Lon: -0.2}, firestoretx.New(clients.Firestore, firestoretx.Config{})
	err := errors.Join(
		store.Setup(ctx, []domain.Depot{{ID: "DEPOT", Position: home}}, []domain.Warehouse{{ID: "W1", Position: home, ProductTypes: []string{"BLOOD"}, ColdStorage: true}},
			[]domain.Drone{{ID: "D1", HomeDepotID: "DEPOT", ConsumptionPerKm: 1}}),
		store.NewTelemetryApplier().Apply(ctx, []domain.Telemetry{{DroneID: "D1", Timestamp: time.Now(), Position: home, Battery: 90, Status: domain.DroneIdle}})[0],
		store.IngestOrder(ctx, domain.OrderRequest{ID: "O1", OrderContent: domain.OrderContent{
			Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: domain.Position{Lat: 5.61, Lon: -0.2},
		}}, time.Now()),
	)
	if err != nil {
		t.Fatal(err)
	}
	once := &onceCommand{parseRun(t, hosts, "--service=4m", "--solve-limit=100ms").cycles}
	if err := once.Run(ctx); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var planned domain.Decision
	err = clients.PubSub.Subscriber(pubsubio.Subscription(pubsubio.TopicDecisions)).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		var err error
		if planned, err = wire.DecodeDecision(m.Data, m.Attributes); err != nil {
			t.Error(err)
		}
		m.Ack()
		cancel()
	})
	if minutes := planned.EstimatedDurationMinutes; err != nil || minutes < 8 || minutes > 16 {
		t.Errorf("planned %v minutes (%v), want two stops and a short flight", minutes, err)
	}
}

// parseRun reads the arguments of "optimizer run".
func parseRun(t *testing.T, hosts connect.Config, args ...string) *runCommand {
	t.Helper()
	for _, name := range []string{connect.FirestoreHost, connect.PubSubHost} {
		t.Setenv(name, "") // connecting unsets both, for the process
	}
	g := new(grammar)
	parser, err := config.New(g)
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"run", "--project=" + hosts.Project, "--firestore-host=" + hosts.FirestoreHost, "--pubsub-host=" + hosts.PubSubHost}, args...)
	if _, err := parser.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &g.Run
}

// ready returns nil if a process is ready and reports its cycles.
func ready(url string) error {
	resp, err := http.Get(url + "/readyz")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var report httpapi.Readiness
	if err := json.NewDecoder(resp.Body).Decode(&report); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || report.Checks["cycle"].Status != httpapi.CheckOK {
		return fmt.Errorf("%s: %+v", resp.Status, report)
	}
	return nil
}

// F-OPT-06, L-END-02: with a clock that is an hour ahead "once" takes no lock and
// fails; it says how far the clock is off and what to do, once for all depots.
func TestOnce_FailsWithAWrongClock(t *testing.T) {
	server, err := simclock.New(simclock.Rate{Epoch: time.Now(), Speed: 1, Ahead: -time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	emutest.ServeFirestore(t, firestoreemu.Options{Clock: server})
	hosts := emutest.Hosts(t)
	clients := emutest.Connect(t, hosts)
	home := domain.Position{Lat: 5.6, Lon: -0.2}
	depots := []domain.Depot{{ID: "D1", Position: home}, {ID: "D2", Position: home}}
	if err := firestoretx.New(clients.Firestore, firestoretx.Config{}).Setup(t.Context(), depots, nil, nil); err != nil {
		t.Fatal(err)
	}
	once := &onceCommand{parseRun(t, hosts).cycles}
	err = once.Run(t.Context())
	if err == nil {
		t.Fatal("it succeeded")
	}
	for _, want := range []string{"depot D1: ", "1h0m0s ahead of the store's", "synchronise it (NTP)"} {
		if n := strings.Count(err.Error(), want); n != 1 {
			t.Errorf("%q says %q %d times", err, want, n)
		}
	}
}
