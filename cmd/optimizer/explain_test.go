package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/emutest"
)

// F-ORD-06: the command prints what each drone lacks and what one more would change.
func TestExplain_PrintsWhyAnOrderWaits(t *testing.T) {
	hosts := emutest.Hosts(t)
	for _, name := range []string{connect.FirestoreHost, connect.PubSubHost} {
		t.Setenv(name, os.Getenv(name)) // connecting unsets both, for the process
	}
	store := firestoretx.New(emutest.Connect(t, hosts).Firestore, firestoretx.Config{})
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
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	out, err := os.Create(t.TempDir() + "/printed")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	os.Stdout = out
	c := &explainCommand{
		Connection: cli.Connection{Project: hosts.Project, Database: hosts.Database, FirestoreHost: hosts.FirestoreHost, PubsubHost: hosts.PubSubHost},
		Order:      "O1", AddDrones: 1, SolveLimit: 100 * time.Millisecond,
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Order O1: HIGH, 1.0 kg, due ", "A new plan of that moment: it waits, no_drone_free; 1 free: 1 battery.",
		"20.0 % of charge (8.0 km)", "What if: drone ADDED-1 delivers at ", "no other order would change",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}
