package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/manager"
)

type serveCommand struct {
	cli.Connection
	cli.Logging
	CreateTopics      bool          `help:"Create topics and subscriptions that do not exist."`
	TelemetryCoalesce time.Duration `help:"How often the document of a drone that only moves is written." default:"1s"`
	MaxOutstanding    int           `help:"Bound of the telemetry messages held in memory." default:"40000"`
	Format            wire.Format   `help:"Form of published messages: protobuf or json." default:"protobuf" enum:"protobuf,json"`
}

// Run serves until interrupted, then settles what it holds.
func (c *serveCommand) Run(ctx context.Context) error {
	log := c.Logger(os.Stderr)
	clients, clock, err := c.Open(ctx)
	if err != nil {
		return err
	}
	defer clients.Close()
	if c.CreateTopics || clients.Config.Emulated() {
		if err := pubsubio.Ensure(ctx, clients.PubSub); err != nil {
			return err
		}
	}
	m, err := manager.New(clients, clock, manager.Config{
		Format: c.Format,
		Worker: pubsubio.Config{TelemetryCoalesce: clock.Real(c.TelemetryCoalesce), MaxOutstanding: c.MaxOutstanding},
	}, log)
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "State Manager serving", slog.String("project", clients.Config.Project),
		slog.String("firestore", clients.Config.FirestoreHost), slog.String("pubsub", clients.Config.PubSubHost), slog.Float64("speed", clock.Speed))
	err = m.Run(ctx)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	if err == nil {
		log.Info("State Manager stopped; everything it held is settled")
	}
	return err
}
