package devrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

// FleetConfig describes simulated drones and hospitals that join a fleet.
type FleetConfig struct {
	Name            string        // begins the ids of its drones; unique among those that run
	Duration        time.Duration // machine time until it leaves; 0 until the context ends
	LeaveWithin     time.Duration // fleet's time for missions to end, and again once they are recalled
	Drones          int
	Hospitals       int     // the most of them; 0 for all
	Hz              float64 // telemetry per drone and second of the fleet's time
	OrdersPerMinute float64 // of the fleet's time
	CriticalPercent int     // of the orders
	HighPercent     int
	Seed            uint64
	Depots          []domain.Depot     // applied before anything else, as are Warehouses
	Warehouses      []domain.Warehouse // without both, what the fleet has is used

	Network        fleetsim.NetworkFaults
	CrashesPerHour float64       // of the fleet's time, of any of its drones
	ClockError     time.Duration // largest error of a drone's clock
	Check          bool          // read the whole store at the end and check the invariants

	Out      io.Writer
	Terminal bool
	Log      *slog.Logger
}

// fleetRun is the drones and hospitals of one process.
type fleetRun struct {
	*outside
	cfg      FleetConfig
	world    *fleetsim.World
	console  *console
	began    time.Time
	simBegan time.Time
	rejoined int    // drones that were here before
	orderIDs string // begins the ids of its orders
}

// RunFleet runs simulated drones and hospitals on a fleet of others until ctx ends or the
// duration is over. Then the hospitals stop ordering, and the drones finish their missions
// and go offline; when atOnce ends they go offline at once. An error means that the fleet
// could not join or could not go on.
func RunFleet(ctx, atOnce context.Context, clients *connect.Clients, clock *simclock.Clock, cfg FleetConfig) (FleetSummary, error) {
	run := &fleetRun{
		outside: &outside{clients: clients, clock: clock, log: cfg.Log, subscription: "missions-fleet-" + cfg.Name, confirmations: fleetsim.NewConfirmations()},
		cfg:     cfg, began: time.Now(), simBegan: clock.Now(),
		console: &console{out: cfg.Out, terminal: cfg.Terminal},
	}
	run.orderIDs = fmt.Sprintf("O-%s-%x-", cfg.Name, run.simBegan.UnixMilli())
	err := run.join(ctx)
	if err != nil {
		return FleetSummary{}, err
	}
	err = run.fly(ctx, atOnce)
	err = errors.Join(err, pubsubio.DeleteTemporary(atOnce, clients.PubSub, run.subscription))
	if atOnce.Err() != nil {
		run.console.print(2, "Left at once: its drones fall silent wherever they are.")
		return FleetSummary{}, err
	}
	reading, cancel := context.WithTimeout(atOnce, summaryWithin)
	defer cancel()
	summary, unread := run.summary(reading)
	return summary, errors.Join(err, unread)
}

// summaryWithin bounds reading the results, with room beyond checkFor.
const summaryWithin = 2 * time.Minute

// commands change the fleet in the name of this run.
func (run *fleetRun) commands() operator.Commands {
	return operator.Commands{Store: run.store(), By: "dronefleet fleet " + run.cfg.Name}
}

// left is why the drones of a fleet that has left are grounded.
const left = "the simulated fleet has left"

// aliveWithin is how recently a drone of a running fleet must have reported, in machine
// time.
const aliveWithin = 10 * time.Second

// join registers the drones. Those that were here before continue where they were.
func (run *fleetRun) join(ctx context.Context) error {
	if err := run.places(ctx); err != nil {
		return err
	}
	ids := run.droneIDs()
	drones, err := run.store().DronesOf(ctx, ids)
	if err != nil {
		return err
	}
	known := byID(drones)
	var missions []domain.MissionID
	for _, d := range drones {
		ago := run.clock.Real(run.clock.Since(d.SeenAt))
		if !d.Grounded && !d.SeenAt.IsZero() && ago < aliveWithin {
			return fmt.Errorf("a fleet named %s is running: its drone %s reported %s ago; give another --name, or wait %s if it was killed",
				run.cfg.Name, d.ID, ago.Round(100*time.Millisecond), aliveWithin)
		}
		if d.Bound() {
			missions = append(missions, d.CurrentMissionID)
		}
	}
	run.rejoined = placeDrones(run.world, known)
	active, err := run.store().MissionsOf(ctx, missions)
	if err != nil {
		return err
	}
	if err := pubsubio.CreateTemporary(ctx, run.clients.PubSub, run.subscription, pubsubio.TopicMissions); err != nil {
		return fmt.Errorf("%w; %s", err, pubsubio.Remedy)
	}
	if err := run.introduce(ctx, known); err != nil {
		return errors.Join(err, pubsubio.DeleteTemporary(ctx, run.clients.PubSub, run.subscription))
	}
	return run.populate(run.world, noop.NewTracerProvider(), past{missions: commandsAgain(active, known, run.clock.Now())}, run.cfg.Network,
		fleetsim.FleetConfig{Hz: run.cfg.Hz, ClockError: run.cfg.ClockError, Seed: run.cfg.Seed},
		fleetsim.OrderConfig{
			PerMinute: run.cfg.OrdersPerMinute, NoOpening: true, Seed: run.cfg.Seed, IDPrefix: strings.TrimSuffix(run.orderIDs, "-"),
			CriticalPercent: run.cfg.CriticalPercent, HighPercent: run.cfg.HighPercent,
		})
}

// places makes the world around the depots and warehouses that the fleet has.
func (run *fleetRun) places(ctx context.Context) error {
	if len(run.cfg.Depots)+len(run.cfg.Warehouses) > 0 {
		const reason = "places of a simulated fleet"
		depots, err := run.commands().ApplyDepots(ctx, run.cfg.Depots, reason, false)
		if err != nil {
			return err
		}
		warehouses, err := run.commands().ApplyWarehouses(ctx, run.cfg.Warehouses, reason, false)
		if err != nil {
			return err
		}
		if n := operator.PlacesToChange(append(depots, warehouses...)); n > 0 {
			run.console.print(2, fmt.Sprintf("%d depots and warehouses created or changed.", n))
		}
	}
	depots, err := run.store().Depots(ctx)
	if err != nil {
		return err
	}
	if len(depots.Items) == 0 {
		return fmt.Errorf("this fleet has no depot yet; create one with \"statemanager depots apply -f examples/paris.yaml --reason setup\", or give --places=examples/paris.yaml")
	}
	warehouses, err := run.store().Warehouses(ctx)
	if err != nil {
		return err
	}
	run.world, err = fleetsim.NewWorld(fleetsim.WorldConfig{
		Drones: run.cfg.Drones, Seed: run.cfg.Seed, IDPrefix: run.cfg.Name, Depots: depots.Items, Warehouses: warehouses, Hospitals: run.cfg.Hospitals,
	})
	return err
}

func (run *fleetRun) droneIDs() []domain.DroneID {
	ids := make([]domain.DroneID, len(run.world.Drones))
	for i, d := range run.world.Drones {
		ids[i] = d.ID
	}
	return ids
}

// introduce registers the drones and releases those that were grounded when this fleet left.
func (run *fleetRun) introduce(ctx context.Context, known map[domain.DroneID]domain.Drone) error {
	if err := run.register(ctx, run.commands().By, run.world.Drones); err != nil {
		return err
	}
	return run.each(func(id domain.DroneID) error {
		if d := known[id]; !d.Grounded || !strings.HasPrefix(d.GroundedReason, left) {
			return nil
		}
		_, err := run.commands().ReleaseDrone(ctx, id, "the simulated fleet is back")
		return err
	})
}

// each calls do for every drone, a few at a time.
func (run *fleetRun) each(do func(domain.DroneID) error) error {
	var g errgroup.Group
	g.SetLimit(16)
	for _, id := range run.droneIDs() {
		g.Go(func() error { return do(id) })
	}
	return g.Wait()
}

// fly runs everything until ctx ends, and leaves.
func (run *fleetRun) fly(ctx, atOnce context.Context) error {
	if run.cfg.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, run.cfg.Duration)
		defer cancel()
	}
	run.announce()
	// Drones hear and report until they have landed.
	flying, landed := context.WithCancel(context.WithoutCancel(ctx))
	defer landed()
	context.AfterFunc(atOnce, landed)
	var ordering, aloft errgroup.Group
	ctx, end := context.WithCancel(ctx)
	defer end()
	run.console.failed = func(error) { end() }
	aloft.Go(func() error { run.drones.Run(flying); return nil })
	aloft.Go(func() error { run.status(flying); return nil })
	aloft.Go(func() error {
		defer end() // without commands nothing goes on
		return run.receiveCommands(flying)
	})
	ordering.Go(func() error { run.orders.Run(ctx); return nil })
	ordering.Go(func() error { run.drones.Crash(ctx, run.cfg.CrashesPerHour); return nil })
	err := ordering.Wait()
	if atOnce.Err() == nil {
		leaving, cancel := context.WithTimeout(atOnce, run.clock.Real(2*run.cfg.LeaveWithin)+storePatience)
		if err = run.leave(leaving); atOnce.Err() != nil {
			err = nil
		}
		cancel()
	}
	landed()
	err = errors.Join(err, aloft.Wait())
	run.publisher.Stop()
	return err
}

// leave grounds the drones and waits until their missions have ended, first by themselves
// and then recalled.
func (run *fleetRun) leave(ctx context.Context) error {
	err := run.each(func(id domain.DroneID) error {
		_, err := run.commands().GroundDrone(ctx, id, left)
		return err
	})
	if err != nil {
		return err
	}
	run.console.print(2, "Leaving: nothing more is ordered, and the drones finish their missions. Ctrl-C again leaves at once.")
	bound, err := run.awaitLanding(ctx)
	if err != nil || len(bound) == 0 {
		return err
	}
	run.console.print(2, fmt.Sprintf("%d drones still fly missions; recalling them.", len(bound)))
	for _, d := range bound {
		if _, err := run.commands().RecallMission(ctx, d.CurrentMissionID, left); err != nil {
			if _, ended := policy.ReasonOf(err); !ended { // it may have ended just now
				return err
			}
		}
	}
	if bound, err = run.awaitLanding(ctx); err == nil && len(bound) > 0 {
		run.console.print(2, fmt.Sprintf("%d drones go offline on their missions, which fail once the State Manager misses them.", len(bound)))
	}
	return err
}

// awaitLanding waits until no drone has a mission or flies, for at most LeaveWithin, and
// returns those that have a mission.
func (run *fleetRun) awaitLanding(ctx context.Context) (bound []domain.Drone, err error) {
	until := run.clock.Now().Add(run.cfg.LeaveWithin)
	ticker := time.NewTicker(landingPoll)
	defer ticker.Stop()
	for {
		reading, cancel := context.WithTimeout(ctx, storePatience)
		drones, err := run.store().DronesOf(reading, run.droneIDs())
		cancel()
		if err != nil {
			return nil, err
		}
		bound = slices.DeleteFunc(drones, func(d domain.Drone) bool { return !d.Bound() })
		if len(bound) == 0 && run.drones.Flying() == 0 || run.clock.Now().After(until) {
			return bound, nil
		}
		select {
		case <-ctx.Done():
			return bound, ctx.Err()
		case <-ticker.C:
		}
	}
}

// storePatience is how long a leaving fleet waits for Firestore to answer.
const storePatience = 30 * time.Second

// landingPoll is how often awaitLanding looks, in machine time.
const landingPoll = 500 * time.Millisecond

// announce prints who has joined what.
func (run *fleetRun) announce() {
	where := "project " + run.clients.Config.Project
	if run.clients.Config.Emulated() {
		where = fmt.Sprintf("the emulators at %s and %s", run.clients.Config.FirestoreHost, run.clients.Config.PubSubHost)
	}
	lines := []string{
		fmt.Sprintf("Fleet %s: %d drones of %d depots, %d hospitals, telemetry %g/s each, %g orders/min, time x%g, seed %d", run.cfg.Name, run.cfg.Drones,
			len(run.world.Depots), len(run.world.Hospitals), run.cfg.Hz, run.cfg.OrdersPerMinute, run.clock.Speed, run.cfg.Seed),
		"Joined " + where + ".",
	}
	if run.rejoined > 0 {
		lines = append(lines, fmt.Sprintf("%d of the drones were here before and go on where they last reported.", run.rejoined))
	}
	run.console.print(2, append(lines, "Ctrl-C leaves: the drones finish their missions first.")...)
}

// status keeps the user informed until ctx ends.
func (run *fleetRun) status(ctx context.Context) {
	every := printEvery
	if run.cfg.Terminal {
		every = redrawEvery
	}
	var counts storeCounts
	var counting errgroup.Group
	counting.Go(func() error { countStore(ctx, run.store(), &counts); return nil })
	defer func() { _ = counting.Wait() }() // it returns no error
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var last int64
	lastAt := time.Now()
	for {
		select {
		case <-ctx.Done():
			run.console.show()
			return
		case <-ticker.C:
		}
		now, drones, c := time.Now(), run.drones.Stats(), counts.copy()
		row := fmt.Sprintf("%6s  sent: %.0f reports/s, %d orders  flying: %d  whole fleet: %d pending, %d assigned, %d aboard, %d delivered",
			run.clock.Since(run.simBegan).Truncate(time.Second), float64(drones.Telemetry.Confirmed-last)/now.Sub(lastAt).Seconds(), run.orders.Stats().Confirmed, run.drones.Flying(),
			c.orders[domain.OrderPending], c.orders[domain.OrderAssigned], c.orders[domain.OrderInDelivery], c.orders[domain.OrderDelivered])
		if age := c.age(now); age != "" {
			row += "  (" + age + ")"
		}
		last, lastAt = drones.Telemetry.Confirmed, now
		if run.cfg.Terminal {
			run.console.show(strings.Split(wrap(row, printColumns, 8), "\n")...)
		} else {
			run.console.print(8, row)
		}
	}
}

// ownOrders reads the orders of this run: their ids have a prefix of their own.
func (run *fleetRun) ownOrders(ctx context.Context) (own []domain.Order, err error) {
	const pageSize = 1000
	after := run.orderIDs
	for {
		page, err := run.store().Orders(ctx, "", firestoretx.Page{Limit: pageSize, After: after})
		if err != nil {
			return nil, err
		}
		for _, o := range page {
			if !strings.HasPrefix(string(o.ID), run.orderIDs) {
				return own, nil
			}
			own, after = append(own, o), string(o.ID)
		}
		if len(page) < pageSize {
			return own, nil
		}
	}
}
