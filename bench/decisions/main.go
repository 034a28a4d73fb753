// Command decisions measures how many decisions a second the State Manager applies or
// rejects when several cycles overlap, and how many Firestore operations each takes,
// and checks that no drone or order is assigned twice. Every cycle decides about all
// drones, each in its own order, so that all cycles but one must lose for each drone.
//
//	go run ./bench/decisions
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/sim/fleethistory"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

type command struct {
	Cycles int    `help:"Number of overlapping cycles." default:"8" check:"min 1 max 1000"`
	Drones int    `help:"Number of drones, and of decisions in each cycle." default:"500" check:"min 1 max 100000"`
	Seed   uint64 `help:"Seed of the order in which the cycles decide." default:"1"`
}

func main() {
	cli.Main(&command{}, "Measures decisions a second when cycles overlap.")
}

var home = domain.Position{Lat: 48.8566, Lon: 2.3522}

// Run fills the store, publishes all decisions, measures how fast they are settled and
// checks the result.
func (c *command) Run(ctx context.Context) error {
	fs, err := firestoreemu.Start(firestoreemu.Options{})
	if err != nil {
		return err
	}
	defer fs.Close()
	ps, err := pubsubemu.Start(pubsubemu.Options{})
	if err != nil {
		return err
	}
	defer ps.Close()
	clients, err := connect.Open(ctx, connect.Config{FirestoreHost: fs.Addr(), PubSubHost: ps.Addr()}, meter.New())
	if err != nil {
		return err
	}
	defer clients.Close()
	if err := pubsubio.Ensure(ctx, clients.PubSub); err != nil {
		return err
	}
	store := firestoretx.New(clients.Firestore, firestoretx.Config{})
	if err := c.fill(ctx, store); err != nil {
		return err
	}
	publisher := pubsubio.NewPublisher(clients.PubSub)
	defer publisher.Stop()
	fence, err := c.fence(ctx, clients)
	if err != nil {
		return err
	}
	if err := c.publish(ctx, publisher, fence); err != nil {
		return err
	}

	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	m, err := manager.New(clients, simclock.Real(), manager.Config{}, log)
	if err != nil {
		return err
	}
	total := int64(c.Cycles * c.Drones)
	start := time.Now()
	if err := workOff(ctx, m.Run, func() bool { return settled(clients.Meter) >= total }); err != nil {
		return err
	}
	elapsed := time.Since(start)
	cost := clients.Meter.FirestoreByOperation()[pubsubio.TopicDecisions]
	n := float64(total)
	fmt.Fprintf(cli.Stdout, "%d decisions of %d overlapping cycles about %d drones: %.0f/s, p99 since their publication %s\n",
		total, c.Cycles, c.Drones, n/elapsed.Seconds(), clients.Meter.Latency(pubsubio.TopicDecisions).Quantile(0.99).Round(time.Millisecond))
	fmt.Fprintf(cli.Stdout, "per decision: %.2f RPCs, %.2f reads, %.2f writes\n", float64(cost.RPCs)/n, float64(cost.Reads)/n, float64(cost.Writes)/n)
	return c.judge(ctx, store)
}

// poll is how often workOff checks for the end.
const poll = 5 * time.Millisecond

// workOff runs work until done returns true. It fails if work ends earlier.
func workOff(ctx context.Context, work func(context.Context) error, done func() bool) error {
	until, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- work(until) }()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			return cmp.Or(errors.Join(err, ctx.Err()), errors.New("the State Manager ended before every decision was settled"))
		case <-ticker.C:
			if done() {
				stop()
				return errors.Join(<-ended, ctx.Err())
			}
		}
	}
}

var (
	depot     = domain.Depot{ID: "DEPOT", Name: "Depot", Position: home}
	warehouse = domain.Warehouse{ID: "W1", Name: "Warehouse", Position: home, ProductTypes: []string{"BLOOD"}}
	own       = domain.DroneProperties{PayloadCapacityKg: 5, ConsumptionPerKm: 1, MaxFlightTimeMinutes: 60}
)

// fill stores a depot, a warehouse, idle drones and as many pending orders.
func (c *command) fill(ctx context.Context, store *firestoretx.Store) error {
	by := firestoretx.Change{By: "bench", Why: "to measure"}
	_, err := store.ApplyDepot(ctx, depot, by)
	_, stocked := store.ApplyWarehouse(ctx, warehouse, by)
	if err := errors.Join(err, stocked); err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(16)
	for i := range c.Drones {
		g.Go(func() error {
			report := domain.Telemetry{DroneID: drone(i), Timestamp: time.Now(), Position: home, Battery: 90, Status: domain.DroneIdle}
			_, err := store.ApplyDrone(ctx, domain.DroneRegistration{ID: drone(i), HomeDepotID: depot.ID, Own: own}, by)
			return errors.Join(
				err, store.NewTelemetryApplier().Apply(ctx, []domain.Telemetry{report})[0],
				store.IngestOrder(ctx, domain.OrderRequest{ID: order(i), OrderContent: domain.OrderContent{
					Priority: domain.PriorityStandard, ProductType: "BLOOD", Delivery: home,
				}}, time.Now()))
		})
	}
	return g.Wait()
}

func drone(i int) domain.DroneID { return domain.DroneID(fmt.Sprintf("DRONE-%04d", i)) }
func order(i int) domain.OrderID { return domain.OrderID(fmt.Sprintf("ORDER-%04d", i)) }

// fence takes a fence from the lock of the drones' depot. All cycles decide with it:
// with fences of their own, most decisions would be stale and cost less.
func (c *command) fence(ctx context.Context, clients *connect.Clients) (string, error) {
	locks, err := clients.Locks(simclock.Real(), slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	defer locks.Close(context.WithoutCancel(ctx))
	h, ok, err := lock.TryAcquire(ctx, locks, domain.CycleLockKey(depot.ID))
	if err != nil || !ok {
		return "", cmp.Or(err, errors.New("the lock of a new store is held"))
	}
	return string(h.Fence()), h.Close()
}

// publish publishes the decisions of all cycles in turn. Each cycle pairs drones and
// orders in its own random way.
func (c *command) publish(ctx context.Context, p *pubsubio.Publisher, fence string) error {
	rng := rand.New(rand.NewPCG(c.Seed, 0))
	drones, orders := make([][]int, c.Cycles), make([][]int, c.Cycles)
	for k := range c.Cycles {
		drones[k], orders[k] = rng.Perm(c.Drones), rng.Perm(c.Drones)
	}
	var sent []pubsubio.Published
	for i := range c.Drones {
		for k := range c.Cycles {
			cycle := domain.CycleID(fmt.Sprintf("CYCLE-%d", k))
			o := order(orders[k][i])
			d := domain.Decision{
				ID: domain.DecisionIDFor(cycle, drone(drones[k][i])), CycleID: cycle, Fence: fence, SnapshotTime: time.Now().Add(time.Minute),
				DroneID: drone(drones[k][i]), OrderIDs: []domain.OrderID{o},
				Route: []domain.Waypoint{
					{Type: domain.WaypointWarehousePickup, WarehouseID: warehouse.ID, OrderID: o, Position: home},
					{Type: domain.WaypointHospitalDelivery, OrderID: o, Position: home},
				},
				EstimatedBatteryConsumption: 5, EstimatedDurationMinutes: 5,
			}
			data, attrs, err := wire.EncodeDecision(d, wire.Protobuf)
			if err != nil {
				return err
			}
			sent = append(sent, p.Publish(ctx, pubsubio.TopicDecisions, data, attrs, string(d.DroneID)))
		}
	}
	for _, s := range sent {
		if _, err := s.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func settled(m *meter.Meter) int64 {
	var n int64
	for s, count := range m.Settled() {
		if s.Kind == pubsubio.TopicDecisions && s.Outcome != meter.Nacked {
			n += count
		}
	}
	return n
}

// judge checks the invariants on the final documents.
func (c *command) judge(ctx context.Context, store *firestoretx.Store) error {
	h, err := fleethistory.Documents(ctx, store)
	if err != nil {
		return err
	}
	verdict := invariant.Check(h)
	fmt.Fprintf(cli.Stdout, "%d missions, %d decisions in the ledger, %d invariant checks, %d violations\n", len(h.Missions), len(h.Ledger), verdict.Checked, len(verdict.Violations))
	switch {
	case !verdict.OK():
		return fmt.Errorf("invariant violated: %s", verdict.Violations[0])
	case len(h.Missions) == 0:
		return fmt.Errorf("no decision was applied; the first in the ledger: %s %s", h.Ledger[0].Reason, h.Ledger[0].Detail)
	}
	return nil
}
