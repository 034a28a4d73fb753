package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-OPT-05: solve plans a past moment as the cycle did, which had a CRITICAL order that can be
// in time, an overdue STANDARD one and more, and kept a drone. --immediate keeps none.
func TestSolve_PlansAsTheCycleDid(t *testing.T) {
	hosts := emutest.Hosts(t)
	for _, name := range []string{connect.FirestoreHost, connect.PubSubHost} {
		t.Setenv(name, os.Getenv(name)) // connecting unsets both, for the process
	}
	clients := emutest.Connect(t, hosts)
	store := firestoretx.New(clients.Firestore, firestoretx.Config{})
	home := domain.Position{Lat: 48.8566, Lon: 2.3522}
	ctx, now := t.Context(), time.Now()
	var drones []domain.Drone
	for i := range 6 {
		drones = append(drones, domain.Drone{ID: domain.DroneID(fmt.Sprintf("D%d", i)), PayloadCapacityKg: 1})
	}
	if err := store.Setup(ctx, []domain.Depot{{ID: "DEPOT", Position: home}}, []domain.Warehouse{{ID: "W", Position: home, ProductTypes: []string{"BLOOD"}}}, drones); err != nil {
		t.Fatal(err)
	}
	for _, d := range drones {
		report := domain.Telemetry{DroneID: d.ID, Timestamp: now, Position: home, Battery: 45, Status: domain.DroneIdle}
		if err := store.NewTelemetryApplier().Apply(ctx, []domain.Telemetry{report})[0]; err != nil {
			t.Fatal(err)
		}
	}
	order := func(id domain.OrderID, p domain.Priority, lat float64, due time.Duration) {
		request := domain.OrderRequest{ID: id, Deadline: now.Add(due), OrderContent: domain.OrderContent{
			Priority: p, WeightKg: 1, ProductType: "BLOOD", Delivery: domain.Position{Lat: home.Lat + lat, Lon: home.Lon},
		}}
		if err := store.IngestOrder(ctx, request, now); err != nil {
			t.Fatal(err)
		}
	}
	order("URGENT", domain.PriorityCritical, 0.03, 12*time.Minute)
	for i := range 30 {
		order(domain.OrderID(fmt.Sprintf("LATER-%d", i)), domain.PriorityStandard, 0.01+0.004*float64(i), time.Hour)
	}
	order("OVERDUE", domain.PriorityStandard, -0.04, -time.Hour)

	var decided []domain.OrderID
	publish := func(_ context.Context, decisions []domain.Decision) []error {
		for _, d := range decisions {
			decided = append(decided, d.OrderIDs...)
		}
		return make([]error, len(decisions))
	}
	locks, err := clients.Locks(simclock.Real(), emutest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	cycle, err := dispatch.NewRunner(store, locks, publish, uuid.NewString, simclock.Real(), dispatch.Config{Iterations: 200, Seed: 1}, emutest.Log(t), clients.Meter).Once(ctx, "DEPOT", nil)
	if err != nil {
		t.Fatal(err)
	}
	plans := func(immediate bool) (planned []domain.OrderID) {
		out := filepath.Join(t.TempDir(), "plan.json")
		c := &solveCommand{
			Connection: cli.Connection{Project: hosts.Project, Database: hosts.Database, FirestoreHost: hosts.FirestoreHost, PubsubHost: hosts.PubSubHost},
			At:         cycle.SnapshotTime, SolveLimit: time.Minute, Iterations: 200, Seed: 1, Strategy: "sisr", Out: out, Immediate: immediate,
			Learn: true, confidenceFlag: confidenceFlag{0.8}, amendFlags: amendFlags{Amend: true, Position: true, TurnTime: 30 * time.Second},
		}
		if err := c.Run(ctx); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		var plan solver.Plan
		if err := json.Unmarshal(text, &plan); err != nil {
			t.Fatal(err)
		}
		for _, r := range plan.Routes {
			for _, id := range r.OrderIDs() {
				planned = append(planned, domain.OrderID(id))
			}
		}
		slices.Sort(planned)
		return planned
	}
	slices.Sort(decided)
	if got := plans(false); !slices.Equal(got, decided) || !slices.Contains(got, "URGENT") {
		t.Errorf("solve plans %v, the cycle %v", got, decided)
	}
	if got := plans(true); len(got) <= len(decided) {
		t.Errorf("--immediate plans %v, the cycle %v", got, decided)
	}
}
