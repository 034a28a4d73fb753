package devrun

import (
	"context"
	"errors"
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

// receiveCommands hands mission commands to the simulated drones until ctx
// ends. A command that no drone understands would be a fault of ours.
func (f *fleet) receiveCommands(ctx context.Context) error {
	sub := f.world.PubSub.Subscriber(missionsSubscription)
	return sub.Receive(ctx, func(_ context.Context, msg *pubsub.Message) {
		command, err := wire.DecodeCommand(msg.Data, msg.Attributes)
		if err != nil {
			f.cfg.Log.ErrorContext(ctx, "mission command cannot be decoded", "err", err)
		} else {
			f.drones.Deliver(command)
		}
		msg.Ack()
	})
}

// status keeps the user informed until ctx ends.
func (f *fleet) status(ctx context.Context) {
	status{out: f.cfg.Out, terminal: f.cfg.Terminal, meter: f.product.Meter, store: f.manager.Store, now: f.clock.Now, began: f.simBegan, speed: f.cfg.Speed, pace: f.pace}.run(ctx)
}

func (f *fleet) close() error {
	var errs []error
	if f.product != nil {
		errs = append(errs, f.product.Close())
	}
	if f.world != nil {
		errs = append(errs, f.world.Close())
	}
	return errors.Join(append(errs, f.servers.close())...)
}

// resume makes the world go on where an earlier run in the data directory left
// it: drones stand where they last reported, with the charge they had, and time
// does not repeat. It returns the commands that put them back on their
// missions, from the next stop on; drones remember theirs.
func (f *fleet) resume(ctx context.Context, store *firestoretx.Store, world *fleetsim.World) ([]domain.Command, error) {
	if f.cfg.DataDir == "" {
		return nil, nil
	}
	known, err := store.Drones(ctx, "", firestoretx.Page{})
	if err != nil {
		return nil, err
	}
	byID := make(map[domain.DroneID]domain.Drone, len(known))
	for _, d := range known {
		byID[d.ID] = d
		f.clock.NotBefore(d.LastUpdate)
		f.clock.NotBefore(d.SeenAt)
	}
	for i, d := range world.Drones {
		if was, ok := byID[d.ID]; ok && !was.LastUpdate.IsZero() {
			world.Drones[i].Position, world.Drones[i].Battery = was.Position, was.Battery
			f.resumed = true
		}
	}
	active, err := store.Missions(ctx, domain.MissionActive, firestoretx.Page{})
	if err != nil {
		return nil, err
	}
	var commands []domain.Command
	for _, m := range active {
		if !byID[m.DroneID].MissionAcked {
			continue // it had not heard of it yet
		}
		m.Route = m.Route[min(m.ReachedStops, len(m.Route)):]
		commands = append(commands, domain.Command{Mission: m, ExpiresAt: f.clock.Now().Add(time.Hour)})
	}
	return commands, nil
}
