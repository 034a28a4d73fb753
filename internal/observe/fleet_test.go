package observe_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

const missionsSubscription = "missions-test"

var home = domain.Position{Lat: 48.8566, Lon: 2.3522}

// fleet is a watched State Manager and optimizer, with publishers to drive them.
type fleet struct {
	t       *testing.T
	product *connect.Clients
	world   *connect.Clients
	outside *pubsubio.Publisher // of drones and hospitals
	inside  *pubsubio.Publisher // of the optimizer
	store   *firestoretx.Store
	manager *manager.Manager
	runner  *dispatch.Runner
	stop    func() // stops the manager; also called at the end of the test
}

// watcher starts to watch a process by its meter.
type watcher func(*meter.Meter) trace.TracerProvider

// to returns a watcher that sends spans to provider.
func to(provider trace.TracerProvider) watcher {
	return func(m *meter.Meter) trace.TracerProvider { m.TraceCalls(provider); return provider }
}

// startFleet runs a fleet of one depot, watched by watch.
func startFleet(t *testing.T, watch watcher, traceTelemetry float64) *fleet {
	t.Helper()
	hosts := emutest.Hosts(t)
	f := &fleet{t: t, product: emutest.Connect(t, hosts), world: emutest.Connect(t, hosts)}
	tracing := watch(f.product.Meter)
	if err := pubsubio.Ensure(t.Context(), f.world.PubSub); err != nil {
		t.Fatal(err)
	}
	if err := pubsubio.EnsureSubscription(t.Context(), f.world.PubSub, missionsSubscription, pubsubio.TopicMissions, true); err != nil {
		t.Fatal(err)
	}
	f.store = firestoretx.New(f.world.Firestore, firestoretx.Config{PlanUnregistered: true})
	warehouse := domain.Warehouse{ID: "WH", Position: domain.Position{Lat: 48.87, Lon: 2.35}, ProductTypes: []string{"BLOOD"}, ColdStorage: true}
	if err := f.store.Setup(t.Context(), []domain.Depot{{ID: "DEPOT-1", Name: "Main", Position: home}}, []domain.Warehouse{warehouse}, nil); err != nil {
		t.Fatal(err)
	}
	f.outside, f.inside = pubsubio.NewPublisher(f.world.PubSub), pubsubio.NewPublisher(f.product.PubSub)
	t.Cleanup(f.outside.Stop)
	t.Cleanup(f.inside.Stop)

	var err error
	f.manager, err = manager.New(f.product, simclock.Real(), manager.Config{
		PlanUnregistered: true,
		SweepInterval:    100 * time.Millisecond, CensusInterval: 100 * time.Millisecond, Tracing: tracing, Worker: pubsubio.Config{TraceTelemetry: traceTelemetry},
	}, emutest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	f.product.Meter.SetIdleDepots([]string{"DEPOT-1"})                        // its cycles never pause for long enough here
	f.product.Meter.SetWebhooksWaiting(map[string]time.Time{"W": time.Now()}) // it has no webhooks
	f.product.Meter.HistoryRows("events").Inc()                               // nor a history
	f.product.Meter.HistoryBehind.Set(0)
	f.product.Meter.RampHeld("drones").Inc()
	f.runner = dispatch.NewRunner(f.manager.Store, f.manager.Locks, dispatch.PublishDecisions(f.inside, wire.Protobuf), uuid.NewString, simclock.Real(),
		dispatch.Config{Iterations: 100, Immediate: true, Tracing: tracing}, emutest.Log(t), f.product.Meter)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.manager.Run(ctx) }()
	stopped := false
	f.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("manager: %v", err)
		}
	}
	t.Cleanup(f.stop)
	return f
}

// send publishes in the trace of ctx.
func (f *fleet) send(ctx context.Context, topic string, data []byte, attrs map[string]string, err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.outside.Publish(ctx, topic, data, attrs, "").Wait(ctx); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) report(ctx context.Context, id domain.DroneID, at time.Time, status domain.DroneStatus) {
	f.t.Helper()
	data, attrs, err := wire.EncodeTelemetry(domain.Telemetry{DroneID: id, Timestamp: at, Position: home, Battery: 90, Status: status}, wire.Protobuf)
	f.send(ctx, pubsubio.TopicTelemetry, data, attrs, err)
}

func (f *fleet) order(ctx context.Context, id domain.OrderID) {
	f.t.Helper()
	data, attrs, err := wire.EncodeOrder(domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{
		Priority: domain.PriorityCritical, ProductType: "BLOOD", Delivery: domain.Position{Lat: 48.86, Lon: 2.36},
	}}, wire.JSON)
	f.send(ctx, pubsubio.TopicOrders, data, attrs, err)
}

func (f *fleet) awaitDrone(id domain.DroneID, ok func(domain.Drone) bool) {
	f.t.Helper()
	emutest.Eventually(f.t, "drone "+string(id), func() error {
		d, err := f.store.Drone(f.t.Context(), id)
		if err == nil && !ok(d) {
			err = fmt.Errorf("drone is %+v", d)
		}
		return err
	})
}

func (f *fleet) awaitOrder(id domain.OrderID, want domain.OrderStatus) {
	f.t.Helper()
	emutest.Eventually(f.t, fmt.Sprintf("order %s %s", id, want), func() error {
		o, err := f.store.Order(f.t.Context(), id)
		if err == nil && o.Status != want {
			err = fmt.Errorf("order is %+v", o)
		}
		return err
	})
}

// command returns the next message to a drone.
func (f *fleet) command() *pubsub.Message {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*time.Minute)
	defer cancel()
	received := make(chan *pubsub.Message, 100)
	err := f.world.PubSub.Subscriber(missionsSubscription).Receive(ctx, func(_ context.Context, msg *pubsub.Message) {
		msg.Ack()
		received <- msg
		cancel()
	})
	if err != nil {
		f.t.Fatal(err)
	}
	select {
	case msg := <-received:
		return msg
	default:
		f.t.Fatal("no command within two minutes")
		return nil
	}
}

// fly runs a cycle that assigns the order and returns the command that the drone got.
// The drone and the order must exist.
func (f *fleet) fly(id domain.OrderID) *pubsub.Message {
	f.t.Helper()
	if _, err := f.runner.Once(f.t.Context(), "DEPOT-1", nil); err != nil {
		f.t.Fatal(err)
	}
	f.awaitOrder(id, domain.OrderAssigned)
	return f.command()
}
