package devrun

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

func lastSegment(name string) string { return name[strings.LastIndex(name, "/")+1:] }

func subdirectory(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// receiveCommands gives mission commands to the simulated drones until ctx ends. A
// command that cannot be decoded is a mistake of the product.
func (run *devRun) receiveCommands(ctx context.Context) error {
	sub := run.world.PubSub.Subscriber(missionsSubscription)
	return sub.Receive(ctx, func(_ context.Context, msg *pubsub.Message) {
		command, err := wire.DecodeCommand(msg.Data, msg.Attributes)
		if err != nil {
			run.cfg.Log.ErrorContext(ctx, "mission command cannot be decoded", "err", err)
		} else {
			run.drones.Deliver(command)
		}
		msg.Ack()
	})
}

// status keeps the user informed until ctx ends.
func (run *devRun) status(ctx context.Context) {
	status{
		console: run.console, meter: run.product.Meter, store: run.manager.Store,
		now: run.clock.Now, began: run.simBegan, speed: run.cfg.Speed, pace: run.pace,
	}.run(ctx)
}

func (run *devRun) close() error {
	var errs []error
	if run.product != nil {
		errs = append(errs, run.product.Close())
	}
	if run.world != nil {
		errs = append(errs, run.world.Close())
	}
	return errors.Join(append(errs, run.servers.close())...)
}

// resumed is what an earlier run in the data directory left; zero if there was none.
type resumed struct {
	drones   int // that go on in this run
	stored   int // drones in the store
	missions int // under way
	orders   map[domain.OrderStatus]int64
}

// print says what a run with a data directory starts with.
func (r resumed) print(dir string, drones int) string {
	if r.stored == 0 {
		return fmt.Sprintf("Keeps the fleet in %s; start again with the same --data-dir to go on.", dir)
	}
	created := int64(0)
	for _, n := range r.orders {
		created += n
	}
	text := fmt.Sprintf("Resumes the fleet in %s: %d drones, %d missions under way, %d orders (%d pending, %d assigned, %d aboard, %d delivered).",
		dir, r.stored, r.missions, created, r.orders[domain.OrderPending], r.orders[domain.OrderAssigned], r.orders[domain.OrderInDelivery], r.orders[domain.OrderDelivered])
	if grounded := r.stored - r.drones; grounded > 0 {
		text += fmt.Sprintf(" %d of the drones stay silent, because --drones is %d.", grounded, drones)
	}
	return text
}

// resume continues an earlier run in the data directory: drones stand where they
// last reported, with the charge that they had, and time does not go back. It
// returns the commands that put drones back on their missions, from the next stop
// on: a real drone would not have forgotten its mission.
func (run *devRun) resume(ctx context.Context, store *firestoretx.Store, world *fleetsim.World) ([]domain.Command, error) {
	if run.cfg.DataDir == "" {
		return nil, nil
	}
	known, err := store.Drones(ctx, "", firestoretx.Page{})
	if err != nil {
		return nil, err
	}
	byID := make(map[domain.DroneID]domain.Drone, len(known))
	for _, d := range known {
		byID[d.ID] = d
		run.clock.NotBefore(d.LastUpdate)
		run.clock.NotBefore(d.SeenAt)
	}
	for i, d := range world.Drones {
		if was, ok := byID[d.ID]; ok && !was.LastUpdate.IsZero() {
			world.Drones[i].Position, world.Drones[i].Battery = was.Position, was.Battery
			run.resumed.drones++
		}
	}
	active, err := store.Missions(ctx, domain.MissionActive, firestoretx.Page{})
	if err != nil {
		return nil, err
	}
	if run.resumed.orders, err = store.OrderCounts(ctx); err != nil {
		return nil, err
	}
	run.resumed.stored, run.resumed.missions = len(known), len(active)
	var commands []domain.Command
	for _, m := range active {
		if !byID[m.DroneID].MissionAcked {
			continue // the drone has not received its command yet
		}
		m.Route = m.Route[min(m.ReachedStops, len(m.Route)):]
		commands = append(commands, domain.Command{Mission: m, ExpiresAt: run.clock.Now().Add(time.Hour)})
	}
	return commands, nil
}
