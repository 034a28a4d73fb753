package devrun

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/wire"
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
	status{out: f.cfg.Out, terminal: f.cfg.Terminal, meter: f.product.Meter, store: f.manager.Store, now: f.clock.Now, began: f.simBegan, speed: f.cfg.Speed}.run(ctx)
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
