package devrun

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/sim/fleetlink"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

// outside is the world outside the product: the simulated drones and hospitals.
type outside struct {
	clients      *connect.Clients
	clock        *simclock.Clock
	log          *slog.Logger
	subscription string // of the drones' commands

	// link, if set, is how drones report instead of publishing themselves.
	link          func(fleetsim.Publisher) fleetsim.Publisher
	publisher     *pubsubio.Publisher
	network       *fleetsim.Network
	drones        *fleetsim.Fleet
	orders        *fleetsim.OrderSource
	confirmations *fleetsim.Confirmations
}

// store is for registering drones and for reading what the product did.
func (o *outside) store() *firestoretx.Store {
	return firestoretx.New(o.clients.Firestore, firestoretx.Config{Now: o.clock.Now})
}

// register registers the simulated drones, as an operator does with drones that report. by
// names who does it. Several at a time, because a store may be far away.
func (o *outside) register(ctx context.Context, by string, drones []domain.Drone) error {
	commands := operator.Commands{Store: o.store(), By: by}
	var g errgroup.Group
	g.SetLimit(16)
	for _, d := range drones {
		registration := d.Registration()
		registration.Own = d.Properties()
		g.Go(func() error {
			_, err := commands.ApplyDrones(ctx, []domain.DroneRegistration{registration}, "a simulated drone", false)
			return err
		})
	}
	return g.Wait()
}

// past is what an earlier run left: the drones' missions and the open orders.
type past struct {
	missions []domain.Command
	orders   []domain.Order
}

// populate makes the drones and hospitals of a world.
func (o *outside) populate(world *fleetsim.World, tracing trace.TracerProvider, before past,
	faults fleetsim.NetworkFaults, fleet fleetsim.FleetConfig, orders fleetsim.OrderConfig) (err error) {
	o.publisher = pubsubio.NewPublisher(o.clients.PubSub)
	var way fleetsim.Publisher = simulated{fleetlink.Publisher{Publisher: o.publisher}, tracing}
	if o.link != nil {
		way = o.link(way)
	}
	o.network = fleetsim.NewNetwork(way, faults, fleet.Seed, o.clock)
	if o.orders, err = fleetsim.NewOrderSource(world, orders, o.clock, o.network, o.confirmations); err != nil {
		return err
	}
	o.orders.Remember(before.orders)
	fleet.Weigh = o.orders.WeightKg
	if o.drones, err = fleetsim.NewFleet(world, fleet, o.clock, o.network, o.confirmations); err != nil {
		return err
	}
	for _, m := range before.missions {
		o.drones.Deliver(m)
	}
	return nil
}

// simulated is a fleetsim.Publisher. An order begins a trace; the State Manager chooses
// which reports are traced.
type simulated struct {
	fleetlink.Publisher
	tracing trace.TracerProvider
}

func (s simulated) Publish(ctx context.Context, topic string, data []byte, attrs map[string]string, orderingKey string) fleetsim.Result {
	if topic == pubsubio.TopicOrders {
		var span trace.Span
		ctx, span = s.tracing.Tracer("github.com/dronefleet/dronefleet/sim/devrun").Start(ctx, "order")
		defer span.End()
	}
	return s.Publisher.Publish(ctx, topic, data, attrs, orderingKey)
}

// receiveCommands gives mission commands to the simulated drones until ctx ends.
func (o *outside) receiveCommands(ctx context.Context) error {
	return fleetlink.ReceiveCommands(ctx, o.clients.PubSub, o.subscription,
		func(c domain.Command) { o.network.Deliver(c, o.drones.Deliver) },
		func(err error) { o.log.ErrorContext(ctx, "mission command cannot be decoded", "err", err) })
}

func byID(drones []domain.Drone) map[domain.DroneID]domain.Drone {
	known := make(map[domain.DroneID]domain.Drone, len(drones))
	for _, d := range drones {
		known[d.ID] = d
	}
	return known
}

// placeDrones puts the drones of a world where they last reported, with the charge that
// they had, and returns how many were known.
func placeDrones(world *fleetsim.World, known map[domain.DroneID]domain.Drone) (n int) {
	for i, d := range world.Drones {
		if was, ok := known[d.ID]; ok && !was.LastUpdate.IsZero() {
			world.Drones[i].Position, world.Drones[i].Battery = was.Position, was.Battery
			n++
		}
	}
	return n
}

// commandsAgain are the commands that put known drones back on their missions, from the
// next stop on: a real drone would not have forgotten its mission.
func commandsAgain(active []domain.Mission, known map[domain.DroneID]domain.Drone, now time.Time) (commands []domain.Command) {
	for _, m := range active {
		if !known[m.DroneID].MissionAcked {
			continue // the drone has not received its command yet
		}
		commands = append(commands, domain.Command{Mission: m, ExpiresAt: now.Add(time.Hour)})
	}
	return commands
}
