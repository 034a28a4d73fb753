package main_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/sim/conform"
	"github.com/dronefleet/dronefleet/sim/fleetlink"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// F-KIT-01: the kit prints how to connect, examines a simulated drone whose time runs faster, and
// prints its results as JSON. A drone that is not examined to the end has not passed.
func TestConform_ExaminesADrone(t *testing.T) {
	t.Parallel()
	limit := longtest.Size(t, "limit of an examination", "1m", "10m")
	restarted := filepath.Join(t.TempDir(), "restarted")
	p := dronefleet.Start(t, connect.Config{}, "conform", "drone", "--id=MAKER-001", "--pubsub=127.0.0.1:0", "--speed=50", "--limit="+limit,
		"--restart-command=: > "+restarted, "--output=json")
	host, _, _ := strings.Cut(p.Find(p.Stderr, "export "+connect.PubSubHost+"="), " ")
	ctx, stop := context.WithCancel(t.Context())
	flown := make(chan error)
	go func() { flown <- fly(ctx, t, host) }()
	var summary conform.Summary
	err := json.NewDecoder(p.Stdout).Decode(&summary)
	stop()
	if err := <-flown; err != nil {
		t.Error(err)
	}
	if err != nil || len(summary.Results) == 0 {
		t.Fatalf("results %+v, %v", summary, err)
	}
	for _, r := range summary.Results {
		if r.Verdict == conform.Broken || limit == "10m" && r.Verdict != conform.Kept {
			t.Errorf("%s is %s: %q %s", r.ID, r.Verdict, r.Findings, r.Why)
		}
	}
	failed := p.Cmd.Wait() != nil
	if _, err := os.Stat(restarted); (limit == "10m") != (err == nil) || failed != (limit != "10m") {
		t.Errorf("restarted: %v, failed: %t, ended %q", err, failed, summary.Ended)
	}
}

// fly flies a drone of the reference world at its depot, until ctx ends.
func fly(ctx context.Context, t *testing.T, host string) error {
	clients := emutest.Connect(t, connect.Config{FirestoreHost: host, PubSubHost: host})
	clock, err := simclock.New(simclock.Rate{Epoch: time.Now(), Speed: 50})
	if err != nil {
		return err
	}
	world, err := fleetsim.NewWorld(fleetsim.WorldConfig{Drones: 1, IDPrefix: "MAKER"})
	if err != nil {
		return err
	}
	world.Drones[0].Position = world.Depots[0].Position
	publisher := pubsubio.NewPublisher(clients.PubSub)
	defer publisher.Stop()
	drones, err := fleetsim.NewFleet(world, fleetsim.FleetConfig{Hz: 1}, clock, fleetlink.Publisher{Publisher: publisher}, fleetsim.NewConfirmations())
	if err != nil {
		return err
	}
	go func() {
		_ = fleetlink.ReceiveCommands(ctx, clients.PubSub, conform.DroneSubscription("MAKER-001"), func(c domain.Command) { drones.Deliver(c) },
			func(err error) { t.Error(err) }) // until ctx ends
	}()
	drones.Run(ctx)
	return nil
}

// F-KIT-01: a wrong command line is refused; a drone that never appears is an error.
func TestConform_RefusesInOneLine(t *testing.T) {
	t.Parallel()
	dronefleet.Refuses(t, connect.Config{}, 2, []string{"id (flag --id)", "subscription"}, "conform", "drone", "--id=a b")
	dronefleet.Refuses(t, connect.Config{}, 2, []string{"--id"}, "conform", "drone")
	dronefleet.Refuses(t, connect.Config{}, 2, []string{"broker", "mqtts://"}, "conform", "drone", "--id=a", "--broker=http://localhost")
	dronefleet.Refuses(t, connect.Config{}, 2, []string{"broker", "one of them"}, "conform", "drone", "--id=a", "--broker=mqtt://localhost", "--link=127.0.0.1:0")
	dronefleet.Refuses(t, connect.Config{}, 2, []string{"id", "MQTT"}, "conform", "drone", "--id=a+b", "--broker=mqtt://localhost")
	dronefleet.Refuses(t, connect.Config{}, 1, []string{"127.0.0.1:1", "refused"}, "conform", "drone", "--id=a", "--broker=mqtt://127.0.0.1:1")
	dronefleet.Refuses(t, connect.Config{}, 2, []string{"pubsub (flag --pubsub)", "loopback"}, "conform", "drone", "--id=a", "--pubsub=0.0.0.0:1")
}

// F-KIT-01: our own optimizer, as a program of its own, passes.
func TestConform_ExaminesAnOptimizer(t *testing.T) {
	t.Parallel()
	p := dronefleet.Start(t, connect.Config{}, "conform", "optimizer", "--firestore=127.0.0.1:0", "--pubsub=127.0.0.1:0", "--http-addr=127.0.0.1:0", "--limit=1m")
	plan := optimizer.Start(t, p.Hosts(), "run", "--interval=1s", "--solve-limit=200ms", "--log-level=error")
	result := p.Find(p.Stdout, "optimizer: ")
	if !strings.Contains(result, " 0 broken") {
		t.Error(result)
	}
	plan.Interrupt()
	if err := p.Cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// F-KIT-01: a hospital's program orders over HTTP, with the key that is printed; what it did wrong is
// said at the end.
func TestConform_ExaminesAHospital(t *testing.T) {
	t.Parallel()
	p := dronefleet.Start(t, connect.Config{}, "conform", "hospital", "--firestore=127.0.0.1:0", "--pubsub=127.0.0.1:0", "--http-addr=127.0.0.1:0")
	at := strings.TrimSuffix(p.Find(p.Stdout, "The HTTP API is at "), ", its key is")
	key := p.Find(p.Stdout, "dfk_")
	for body, want := range map[string]int{
		`{"id": "O-1", "productType": "MEDICINE", "deliveryLocation": {"lat": 48.8369, "lon": 2.3403}}`: http.StatusAccepted,
		`{"id": "O-2", "productType": "MEDICINE"}`:                                                      http.StatusBadRequest,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/api/v1/orders", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer dfk_"+key)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s is answered %s, want %d", body, resp.Status, want)
		}
	}
	p.Find(p.Stdout, "order O-1: ")
	if err := p.Cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if line := p.Find(p.Stdout, "broken    H-01"); line == "" {
		t.Error("the order without an address is not found")
	}
	if err := p.Cmd.Wait(); err == nil {
		t.Error("a program that broke a rule has passed")
	}
}

// F-KIT-01: over the drone link the kit issues a certificate, and removes it at the end.
func TestConform_IssuesACertificate(t *testing.T) {
	t.Parallel()
	p := dronefleet.Start(t, connect.Config{}, "conform", "drone", "--id=MAKER-1", "--link=127.0.0.1:0")
	p.Find(p.Stdout, "Let the drone connect to 127.0.0.1:")
	directory := filepath.Dir(p.Find(p.Stdout, "  "))
	for _, name := range []string{"ca.crt", "MAKER-1.crt", "MAKER-1.key"} {
		if _, err := os.Stat(filepath.Join(directory, name)); err != nil {
			t.Error(err)
		}
	}
	p.Find(p.Stdout, "waiting for the first report of drone MAKER-1")
	if err := p.Cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = p.Cmd.Wait() // it was interrupted
	if _, err := os.Stat(directory); !os.IsNotExist(err) {
		t.Errorf("the certificates are left behind: %v", err)
	}
}
