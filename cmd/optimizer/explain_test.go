package main

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// connected returns how a command reaches a store of the test's own, a client, and the store.
func connected(t *testing.T) (cli.Connection, *firestore.Client, *firestoretx.Store) {
	t.Helper()
	hosts := emutest.Hosts(t)
	for _, name := range []string{connect.FirestoreHost, connect.PubSubHost} {
		t.Setenv(name, os.Getenv(name)) // connecting unsets both, for the process
	}
	client := emutest.Connect(t, hosts).Firestore
	return cli.Connection{Project: hosts.Project, Database: hosts.Database, FirestoreHost: hosts.FirestoreHost, PubsubHost: hosts.PubSubHost},
		client, firestoretx.New(client, firestoretx.Config{})
}

// printed is what a command prints on the standard output.
func printed(t *testing.T, run func() error) string {
	t.Helper()
	out, err := os.Create(t.TempDir() + "/printed")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	os.Stdout = out
	if err := run(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// F-ORD-06: the command prints what each drone lacks, what one more would change, and
// that it plans a past moment with what was learned since.
func TestExplain_PrintsWhyAnOrderWaits(t *testing.T) {
	connection, _, store := connected(t)
	home := domain.Position{Lat: 48.85, Lon: 2.35}
	if err := store.Setup(t.Context(), []domain.Depot{{ID: "DEPOT", Position: home}},
		[]domain.Warehouse{{ID: "W", Position: home, ProductTypes: []string{"BLOOD"}}},
		[]domain.Drone{{ID: "D1", HomeDepotID: "DEPOT", PayloadCapacityKg: 5, ConsumptionPerKm: 2.5}}); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, err := range store.NewTelemetryApplier().Apply(t.Context(), []domain.Telemetry{{DroneID: "D1", Timestamp: now, Position: home, Battery: 40, Status: domain.DroneIdle}}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	far := home
	far.Lat += 8 / 111.195
	if err := store.IngestOrder(t.Context(), domain.OrderRequest{ID: "O1", OrderContent: domain.OrderContent{
		Priority: domain.PriorityHigh, ProductType: "BLOOD", WeightKg: 1, Delivery: far,
	}}, now); err != nil {
		t.Fatal(err)
	}
	c := &explainCommand{
		Connection: connection,
		Order:      "O1", AddDrones: 1, SolveLimit: 100 * time.Millisecond,
	}
	text := printed(t, func() error { return c.Run(t.Context()) })
	for _, want := range []string{
		"Order O1: HIGH, 1.0 kg, due ", "A new plan of that moment: it waits, no_drone_free; 1 free: 1 battery.",
		"20.0 % of charge (8.0 km)", "What if: drone ADDED-1 delivers at ", "no other order would change",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "learned") {
		t.Errorf("nothing was learned:\n%s", text)
	}
	c.At = time.Now()
	later := domain.Learned{Travel: domain.Travel{Until: time.Date(2099, 11, 21, 12, 0, 0, 0, time.UTC), Missions: 1}}
	if saved, err := store.SaveLearned(t.Context(), domain.LearningScope{Area: "DEPOT"}, domain.Learned{}, later); err != nil || !saved {
		t.Fatalf("saved %v, error %v", saved, err)
	}
	if text, want := printed(t, func() error { return c.Run(t.Context()) }), "learned until 2099-11-21 12:00:00 UTC"; !strings.Contains(text, want) {
		t.Errorf("the text lacks %q:\n%s", want, text)
	}
}

// F-REG-09: an explanation plans with the drones that cycles plan with.
func TestExplain_PlansUnregisteredDronesOnDemand(t *testing.T) {
	connection, _, store := connected(t)
	home := domain.Position{Lat: 48.85, Lon: 2.35}
	if err := store.Setup(t.Context(), []domain.Depot{{ID: "DEPOT", Position: home}},
		[]domain.Warehouse{{ID: "W", Position: home, ProductTypes: []string{"BLOOD"}}}, nil); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	order := domain.OrderRequest{ID: "O1", OrderContent: domain.OrderContent{
		Priority: domain.PriorityCritical, ProductType: "BLOOD", WeightKg: 1, Delivery: domain.Position{Lat: home.Lat + 0.02, Lon: home.Lon},
	}}
	report := domain.Telemetry{DroneID: "STRANGER", Timestamp: now, Position: home, Battery: 90, Status: domain.DroneIdle}
	if err := errors.Join(store.IngestOrder(t.Context(), order, now), store.NewTelemetryApplier().Apply(t.Context(), []domain.Telemetry{report})[0]); err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{"refuse": "it waits", "plan": "drone STRANGER delivers at"} {
		var g grammar
		parser, err := config.New(&g)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse([]string{"explain", "O1", "--project=fleet", "--unregistered-drones=" + flag, "--solve-limit=100ms"}); err != nil {
			t.Fatal(err)
		}
		g.Explain.Connection = connection
		if text := printed(t, func() error { return g.Explain.Run(t.Context()) }); !strings.Contains(text, want) {
			t.Errorf("--unregistered-drones=%s: the text lacks %q:\n%s", flag, want, text)
		}
	}
}

// F-ORD-06: the command adds as many drones and slots as the HTTP API does, and says so.
func TestExplain_RefusesToAddTooMany(t *testing.T) {
	parser, err := config.New(new(grammar))
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"--add-drones=100 --add-slots=100": "",
		"--add-drones=101":                 "add-drones (flag --add-drones): is 101; give 0 to 100",
		"--add-slots=-1":                   "add-slots (flag --add-slots): is -1; give 0 to 100",
	} {
		_, err := parser.Parse(append(strings.Fields("explain O1 --project=fleet"), strings.Fields(line)...))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", line, err, want)
		}
	}
}

func TestExplain_RefusesImpossibleIDs(t *testing.T) {
	parser, err := config.New(new(grammar))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{
		"":     `order (argument <order>): "" is empty; give 1 to 128 bytes`,
		"a/b":  `order (argument <order>): "a/b" contains "/", which a document id cannot`,
		"O\n1": "contains the control character U+000A",
	} {
		if _, err := parser.Parse([]string{"explain", id, "--project=fleet"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", id, err, want)
		}
	}
}
