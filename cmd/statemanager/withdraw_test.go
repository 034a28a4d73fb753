package main_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/testkit/clitest"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-DEC-05, F-ORD-03: a drone has delivered one order and is on its way to the next when
// an operator cancels that one. The command line has no outbox; a State Manager sends the
// drone its new route, and the drone flies home.
func TestCommands_CancellationSendsTheDroneHome(t *testing.T) {
	t.Parallel()
	hosts := emutest.Hosts(t)
	clients := emutest.Connect(t, hosts)
	ctx := t.Context()
	store := firestoretx.New(clients.Firestore, firestoretx.Config{Limits: policy.Limits{TopSpeedKmh: 1e9}}) // the drone does not wait for the time that it flies
	at := func(km float64) domain.Position { return domain.Position{Lat: 48.85 + km/111, Lon: 2.35} }
	depot := domain.Depot{ID: "DEPOT", Name: "Depot", Position: at(0)}
	drone := domain.Drone{ID: "D1", HomeDepotID: depot.ID, Position: at(0), Battery: 100, ConsumptionPerKm: 1}
	if err := store.Setup(ctx, []domain.Depot{depot}, nil, []domain.Drone{drone}); err != nil {
		t.Fatal(err)
	}
	if err := pubsubio.Ensure(ctx, clients.PubSub); err != nil {
		t.Fatal(err)
	}
	commands := missionCommands(t, clients.PubSub)
	p := statemanager.Start(t, hosts, "serve", "--http-addr=127.0.0.1:0")
	defer p.Interrupt()
	url, _, _ := strings.Cut(p.Find(p.Stderr, `"url":"`), `"`)
	emutest.Eventually(t, "ready", func() error {
		resp, err := http.Get(url + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", resp.Status)
		}
		return nil
	})
	defer http.DefaultClient.CloseIdleConnections()

	d := fleetsim.NewDrone(drone, depot.Position)
	applier := store.NewTelemetryApplier()
	report := func(dt time.Duration) domain.Telemetry {
		t.Helper()
		var r domain.Telemetry
		d, r = d.After(dt).Report(time.Now())
		if err := applier.Apply(ctx, []domain.Telemetry{r})[0]; err != nil {
			t.Fatal(err)
		}
		return r
	}
	obey := func(status domain.MissionStatus) {
		t.Helper()
		select {
		case c := <-commands:
			var obeyed bool
			if d, obeyed = d.Obey(c, time.Now()); !obeyed || c.Mission.Status != status {
				t.Fatalf("the drone obeyed %t: %+v", obeyed, c)
			}
		case <-time.After(clitest.Patience):
			t.Fatal("no command")
		}
	}
	report(0)
	emutest.IssueFences(t, clients.Firestore, "1", "", depot.ID)
	decision := domain.Decision{
		ID: "DEC", DroneID: "D1", Fence: "1", SnapshotTime: time.Now().Add(time.Hour), EstimatedBatteryConsumption: 30, EstimatedDurationMinutes: 60,
	}
	for i, id := range []domain.OrderID{"O1", "O2"} {
		from, to := at(float64(10*i)+1), at(float64(10*i)+2)
		req := domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{Priority: domain.PriorityHigh, ProductType: "BLOOD", Pickup: &from, Delivery: to}}
		if err := store.IngestOrder(ctx, req, time.Now()); err != nil {
			t.Fatal(err)
		}
		decision.OrderIDs = append(decision.OrderIDs, id)
		decision.Route = append(decision.Route,
			domain.Waypoint{Type: domain.WaypointWarehousePickup, OrderID: id, Position: from},
			domain.Waypoint{Type: domain.WaypointHospitalDelivery, OrderID: id, Position: to})
	}
	data, attrs, err := wire.EncodeDecision(decision, wire.Protobuf)
	if err != nil {
		t.Fatal(err)
	}
	publisher := pubsubio.NewPublisher(clients.PubSub)
	defer publisher.Stop()
	if _, err := publisher.Publish(ctx, pubsubio.TopicDecisions, data, attrs, "D1").Wait(ctx); err != nil {
		t.Fatal(err)
	}
	obey(domain.MissionActive)
	emutest.Eventually(t, "O1 delivered", func() error {
		r := report(10 * time.Second)
		if o, err := store.Order(ctx, "O1"); err != nil || o.Status != domain.OrderDelivered {
			return fmt.Errorf("order %+v, drone %+v: %w", o, r, err)
		}
		return nil
	})
	statemanager.Run(t, hosts, 0, "orders", "cancel", "O2", "--reason=obsolete")

	report(time.Second)
	obey(domain.MissionCompleted)
	far := 0.0
	emutest.Eventually(t, "the drone home and free", func() error {
		r := report(10 * time.Second)
		far = max(far, r.Position.DistanceMetres(depot.Position))
		if known, err := store.Drone(ctx, "D1"); err != nil || known.Bound() || r.Position.DistanceMetres(depot.Position) > 50 {
			return fmt.Errorf("drone %+v at %v: %w", known, r.Position, err)
		}
		return nil
	})
	if far > 10_000 {
		t.Errorf("it flew up to %.0f m away; the withdrawn order's pickup is 11 km away", far)
	}
}

// missionCommands delivers the commands sent to drones until the test ends.
func missionCommands(t *testing.T, client *pubsub.Client) <-chan domain.Command {
	t.Helper()
	const name = "missions-test"
	if err := pubsubio.EnsureSubscription(t.Context(), client, name, pubsubio.TopicMissions, true); err != nil {
		t.Fatal(err)
	}
	commands := make(chan domain.Command, 100)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- client.Subscriber(name).Receive(ctx, func(_ context.Context, msg *pubsub.Message) {
			c, err := wire.DecodeCommand(msg.Data, msg.Attributes)
			if err != nil {
				t.Errorf("command: %v", err)
			}
			commands <- c
			msg.Ack()
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("commands: %v", err)
		}
	})
	return commands
}
