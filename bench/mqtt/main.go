// Command mqtt measures a fleet of drones behind an MQTT broker: how long a report takes from
// the drone until its drone's document shows it, and how many are lost. Drones, gateway, State
// Manager and embedded servers run in one process; the broker is a process of its own, such as
// Mosquitto with deploy/mqtt/mosquitto.conf.
//
//	go run ./bench/mqtt --broker mqtt://localhost:1883
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"github.com/eclipse/paho.golang/paho"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/mqttlink"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/gateway"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
)

type command struct {
	Broker   string        `help:"Broker that takes anybody: mqtt://HOST:PORT." required:"" placeholder:"URL"`
	Drones   int           `help:"Size of the fleet." default:"1000" check:"min 1 max 20000"`
	Hz       float64       `help:"Reports per second and drone." default:"1" check:"over 0 max 10"`
	Duration time.Duration `help:"How long drones report." default:"60s" check:"over 0s"`
}

func main() {
	cli.Main(&command{}, "Measures how long reports take through an MQTT broker, and how many are lost.")
}

// run is one measurement.
type run struct {
	*command
	broker  *url.URL
	clients *connect.Clients
	log     *slog.Logger

	mu      sync.Mutex
	acked   int             // reports that the broker acked with success
	refused int             // others
	arrived map[string]bool // reports that Pub/Sub has: drone and time
	toTopic []time.Duration // from sending until Pub/Sub had it
	toShown []time.Duration // from sending until the document showed it
}

// Run measures and prints a table.
func (c *command) Run(ctx context.Context) error {
	r := run{command: c}
	if err := r.measure(ctx); err != nil {
		return err
	}
	r.print()
	return nil
}

func (r *run) measure(ctx context.Context) (err error) {
	r.arrived, r.log = map[string]bool{}, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if r.broker, err = url.Parse(r.Broker); err != nil {
		return fmt.Errorf("--broker: %w", err)
	}
	closers, err := r.open(ctx)
	defer func() {
		for _, c := range slices.Backward(closers) {
			err = errors.Join(err, c.Close())
		}
	}()
	if err != nil {
		return err
	}
	publisher := pubsubio.NewPublisher(r.clients.PubSub)
	defer publisher.Stop()
	store := firestoretx.New(r.clients.Firestore, firestoretx.Config{})
	if err := errors.Join(pubsubio.Ensure(ctx, r.clients.PubSub), pubsubio.EnsureSubscription(ctx, r.clients.PubSub, "bench", pubsubio.TopicTelemetry, false), r.register(ctx, store)); err != nil {
		return err
	}
	m, err := manager.New(r.clients, simclock.Real(), manager.Config{}, r.log)
	if err != nil {
		return err
	}
	core := gateway.NewBrokered(gateway.New(publisher, store, simclock.Real(), gateway.Config{}, r.log))
	link := mqttlink.New(mqttlink.Config{Broker: r.broker, ClientID: fmt.Sprintf("bench-%d", time.Now().UnixNano())}, core, simclock.Real(), r.log, r.clients.Meter)

	working, stop := context.WithCancel(ctx)
	defer stop()
	work, working := errgroup.WithContext(working)
	work.Go(func() error { return m.Run(working) })
	work.Go(func() error { link.Run(working); return nil })
	work.Go(func() error { return r.followTopic(working) })
	work.Go(func() error { return r.followDocuments(working) })
	for began := time.Now(); link.Ready() != nil && working.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > connectLimit {
			return link.Ready()
		}
	}
	err = r.fly(working)
	for deadline := time.Now().Add(10 * time.Second); r.missing() > 0 && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
	}
	stop()
	if failed := errors.Join(err, work.Wait()); failed != nil && ctx.Err() == nil {
		return failed
	}
	return ctx.Err()
}

// connectLimit bounds the wait for the broker.
const connectLimit = 15 * time.Second

// open starts the servers.
func (r *run) open(ctx context.Context) (closers []io.Closer, err error) {
	store, err := firestoreemu.Start(firestoreemu.Options{})
	if err != nil {
		return nil, err
	}
	messages, err := pubsubemu.Start(pubsubemu.Options{})
	if err != nil {
		return []io.Closer{store}, err
	}
	closers = []io.Closer{store, messages}
	r.clients, err = connect.Open(ctx, connect.Config{Project: "bench-mqtt", FirestoreHost: store.Addr(), PubSubHost: messages.Addr()}, meter.New())
	if err == nil {
		closers = append(closers, r.clients)
	}
	return closers, err
}

func droneID(d int) domain.DroneID { return domain.DroneID(fmt.Sprintf("DRONE-%05d", d)) }

func (r *run) register(ctx context.Context, store *firestoretx.Store) error {
	by := firestoretx.Change{By: "bench", Why: "to measure"}
	if _, err := store.ApplyDepot(ctx, domain.Depot{ID: "DEPOT", Name: "Depot", Position: domain.Position{Lat: 48.8, Lon: 2.3}}, by); err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(16)
	for d := range r.Drones {
		g.Go(func() error {
			own := domain.DroneProperties{PayloadCapacityKg: 5, ConsumptionPerKm: 1, MaxFlightTimeMinutes: 60}
			_, err := store.ApplyDrone(ctx, domain.DroneRegistration{ID: droneID(d), HomeDepotID: "DEPOT", Own: own}, by)
			return err
		})
	}
	return g.Wait()
}

// fly lets every drone report on a connection of its own.
func (r *run) fly(ctx context.Context) error {
	var g errgroup.Group
	for d := range r.Drones {
		g.Go(func() error { return r.drone(ctx, d) })
	}
	return g.Wait()
}

func (r *run) drone(ctx context.Context, d int) error {
	every := time.Duration(float64(time.Second) / r.Hz)
	time.Sleep(rand.N(min(r.Duration, 5*time.Second))) // not all connect at once
	conn, err := net.Dial("tcp", r.broker.Host)
	if err != nil {
		return err
	}
	client := paho.NewClient(paho.ClientConfig{Conn: conn})
	if _, err := client.Connect(ctx, &paho.Connect{ClientID: string(droneID(d)), KeepAlive: 30, CleanStart: true}); err != nil {
		return fmt.Errorf("drone %d: %w", d, err)
	}
	defer func() { _ = client.Disconnect(&paho.Disconnect{}) }()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for n := range int(r.Duration / every) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		t := domain.Telemetry{DroneID: droneID(d), Timestamp: time.Now(), Battery: 80, SpeedKmh: 36, Status: domain.DroneIdle, Position: domain.Position{Lat: 48.8 + float64(n)/1e4, Lon: 2.3 + float64(d)/1e4}}
		data, attrs, err := wire.EncodeTelemetry(t, wire.Protobuf)
		if err != nil {
			return err
		}
		answer, err := client.Publish(ctx, &paho.Publish{
			QoS: 1, Topic: "fleet/" + string(t.DroneID) + "/telemetry", Payload: data, Properties: &paho.PublishProperties{ContentType: attrs[wire.AttrContentType]},
		})
		r.mu.Lock()
		if err == nil && answer.ReasonCode == 0 {
			r.acked++
		} else {
			r.refused++
		}
		r.mu.Unlock()
	}
	return nil
}

// followTopic notes which reports Pub/Sub has, and since when.
func (r *run) followTopic(ctx context.Context) error {
	return r.clients.PubSub.Subscriber("bench").Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		m.Ack()
		t, err := wire.DecodeTelemetry(m.Data, m.Attributes)
		if err != nil {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.arrived[fmt.Sprint(t.DroneID, t.Timestamp.UnixNano())] = true
		r.toTopic = append(r.toTopic, m.PublishTime.Sub(t.Timestamp))
	})
}

// followDocuments notes when the drones' documents show a report.
func (r *run) followDocuments(ctx context.Context) error {
	all := r.clients.Firestore.Collection("drones").Snapshots(ctx)
	defer all.Stop()
	for {
		s, err := all.Next()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		now := time.Now()
		r.mu.Lock()
		for _, change := range s.Changes {
			if at, is := change.Doc.Data()["lastUpdate"].(time.Time); is && !at.IsZero() {
				r.toShown = append(r.toShown, now.Sub(at))
			}
		}
		r.mu.Unlock()
	}
}

// missing counts reports that the broker acked and Pub/Sub does not have.
func (r *run) missing() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, r.acked-len(r.arrived))
}

func (r *run) print() {
	fmt.Fprintf(cli.Stdout, "%d drones at %g Hz for %s\n\n", r.Drones, r.Hz, r.Duration)
	fmt.Fprintf(cli.Stdout, "%-36s %10s %10s %10s %10s\n", "", "reports", "p50", "p99", "most")
	for _, of := range []struct {
		what string
		took []time.Duration
	}{{"from the drone to Pub/Sub", r.toTopic}, {"from the drone to its document", r.toShown}} {
		slices.Sort(of.took)
		at := func(share float64) time.Duration {
			if len(of.took) == 0 {
				return 0
			}
			return of.took[int(share*float64(len(of.took)-1))].Round(time.Millisecond)
		}
		fmt.Fprintf(cli.Stdout, "%-36s %10d %10s %10s %10s\n", of.what, len(of.took), at(0.5), at(0.99), at(1))
	}
	fmt.Fprintf(cli.Stdout, "\nacked by the broker %d, not taken %d, lost %d, twice %d\n", r.acked, r.refused, r.missing(), len(r.toTopic)-len(r.arrived))
}
