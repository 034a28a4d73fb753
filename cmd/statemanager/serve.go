package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/app/webhooks"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/observe"
	"github.com/dronefleet/dronefleet/internal/shutdown"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/policy"
)

type serveCommand struct {
	cli.Connection
	cli.Keeping
	cli.Locks
	cli.Logging
	cli.Watching
	TraceTelemetry     float64            `help:"Share of telemetry that is traced, unless its sender decided." default:"0.01" check:"min 0 max 1"`
	CreateTopics       bool               `help:"Create topics and subscriptions that do not exist."`
	PositionError      float64            `help:"How many metres a drone may be from where readers foretell it before its document is written; 0 writes every report. See docs/positions.md." default:"25" check:"min 0 max 1000"`
	Heartbeat          time.Duration      `help:"How old the document of a drone becomes before a report is written that says nothing new." default:"8s" check:"over 0s max 1m"`
	TelemetryCoalesce  time.Duration      `help:"The shortest time between two writes of a drone that only moves." default:"1s" check:"over 0s max 1m"`
	MaxOutstanding     int                `help:"Most telemetry messages to hold in memory." default:"40000" check:"min 1 max 10000000"`
	ShardedIndexes     bool               `help:"The database has the indexes of fleets that write more than 500 events or orders a second, deploy/firestore.indexes.sharded.json. See docs/auditing.md."`
	Ramp               rampRate           `help:"How many writes a second to each collection a new database takes from this process at first; half more every five minutes. Divide 500 by the number of State Managers. off: the database is used to this fleet. A fleet that never writes as much does not notice. See docs/capacity.md." default:"500" placeholder:"WRITES"`
	History            bool               `help:"Publish events, decisions, refused messages, and orders and missions that have ended, for BigQuery. See docs/history.md."`
	TurnTime           time.Duration      `help:"Reject amendments that turn a drone away from a stop that it reaches within this time. The optimizers' --turn-time must not be less." default:"30s" check:"min 1s max 10m"`
	StopTolerance      float64            `help:"How many metres a stop of a decision may be from its order's address, its warehouse, or a depot." default:"10" check:"min 0 max 75"`
	UnregisteredDrones string             `help:"What to do with drones that report and that nobody has registered: refuse missions for them, or plan them as registered ones. Give the optimizers the same." default:"refuse" enum:"refuse,plan"`
	CheckStops         string             `help:"What to do with a decision whose stops are elsewhere: reject it, or apply it and record a warning." default:"reject" enum:"reject,record"`
	AllowUnfenced      bool               `help:"Apply decisions without a fence, from optimizers that do not take the depot's lock." name:"allow-unfenced-decisions"`
	RequireSender      bool               `help:"Dead-letter reports and orders that do not come from the drone or requester that they name, as the attribute dronefleet-sender tells. Only a gateway may set it. See docs/deploy.md."`
	CycleInterval      time.Duration      `help:"How often each depot has a cycle: --interval of the optimizers, or the longest time that a cycle takes if that is more. A depot without a cycle for three of these, while orders wait, makes this process not ready. 0 watches no depots." default:"10s" check:"min 0s max 24h"`
	DrainTimeout       time.Duration      `help:"How long messages being processed may take after SIGTERM. Then they are nacked, and the process ends a few seconds later." default:"15s" check:"over 0s max 10m"`
	WebhookNetworks    []webhooks.Network `help:"Private networks to which webhooks may be sent, such as 10.20.0.0/16; all others must be public. See docs/webhooks.md." placeholder:"NETWORK"`
	Format             wire.Format        `help:"Form of published messages: protobuf or json." default:"protobuf" enum:"protobuf,json"`
	HTTPAddr           string             `help:"Address of the HTTP API; \"\" or off for none." default:"127.0.0.1:8080" name:"http-addr" env:"HTTP_ADDR" check:"listen or off"`
	webhookKeys
	access
	httpapi.MapFlags
}

// Check implements config.Checker.
func (c *serveCommand) Check(r *config.Refuser) {
	c.CheckConnection(r)
	c.CheckLocks(r)
	c.CheckWatching(r)
	c.access.check(r, c.HTTPAddr)
	c.CheckMap(r)
	if err := c.foretelling().Check(policy.Limits{}); err != nil {
		r.Refuse("heartbeat", "%s", err)
	}
}

func (c *serveCommand) foretelling() policy.Foretelling {
	return policy.Foretelling{ErrorMetres: c.PositionError, Heartbeat: c.Heartbeat}
}

func (c *serveCommand) worker(clock *simclock.Clock) pubsubio.Config {
	return pubsubio.Config{
		TelemetryCoalesce: clock.Real(c.TelemetryCoalesce), MaxOutstanding: c.MaxOutstanding, Shutdown: shutdown.StateManager(c.DrainTimeout), TraceTelemetry: c.TraceTelemetry, RequireSender: c.RequireSender,
	}
}

// Run serves until interrupted, then settles what it holds.
func (c *serveCommand) Run(ctx context.Context) error {
	log := observe.LogTraces(c.Logger(os.Stderr), c.Project)
	exporting, exported := shutdown.StateManager(c.DrainTimeout).Context(ctx, shutdown.Export)
	defer exported()
	var listener *httpapi.Listener
	access, err := c.access.open(ctx, log)
	if err != nil {
		return err
	}
	below, err := c.OpenMap()
	if err != nil {
		return err
	}
	defer below.Close()
	if addr := cli.ListenAddr(c.HTTPAddr); addr != "" {
		if listener, err = httpapi.Listen(addr); err != nil {
			return fmt.Errorf("--http-addr: %w", err)
		}
		defer listener.Close()
	}
	clients, clock, err := c.OpenWithLocks(ctx, c.Locks)
	if err != nil {
		return err
	}
	defer clients.Close()
	if c.CreateTopics || clients.Config.Emulated() {
		if err := pubsubio.Ensure(ctx, clients.PubSub); err != nil {
			return err
		}
		if c.History {
			if err := pubsubio.EnsureHistory(ctx, clients.PubSub); err != nil {
				return err
			}
		}
	}
	tracing, stopWatch, err := c.Watch(ctx, "statemanager", clients.Meter, log)
	if err != nil {
		return err
	}
	defer stopWatch(exporting)
	m, err := manager.New(clients, clock, manager.Config{
		Format: c.Format, Tracing: tracing,
		Worker: c.worker(clock), Sharded: c.ShardedIndexes, History: c.History, Ramp: float64(c.Ramp), Retention: c.Retention, AllowUnfenced: c.AllowUnfenced, RecordStops: c.CheckStops == "record",
		PlanUnregistered: c.UnregisteredDrones == "plan", Foretelling: c.foretelling(),
		// A tolerance of 0 would stand for the default.
		Limits: policy.Limits{TurnTime: c.TurnTime, StopToleranceMetres: max(c.StopTolerance, 1e-6)}, CycleInterval: c.CycleInterval,
		WebhookNetworks: c.WebhookNetworks, WebhookKeys: c.sealing(),
	}, log)
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "State Manager serving", slog.String("project", clients.Config.Project),
		slog.String("firestore", clients.Config.FirestoreHost), slog.String("pubsub", clients.Config.PubSubHost),
		slog.String("locks", clients.LockStore.String()), slog.Float64("speed", clock.Speed))
	if err := httpapi.ServeManager(ctx, m, httpapi.Site{Access: access, BaseMap: below}, listener); err != nil {
		return err
	}
	log.Info("State Manager stopped; messages it held are settled or will be redelivered")
	return nil
}

// rampRate is a number of writes a second, 0 for off.
type rampRate float64

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *rampRate) UnmarshalText(text []byte) error {
	if string(text) == "off" {
		*r = 0
		return nil
	}
	rate, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(rate >= 1 && rate <= 1e6) {
		return fmt.Errorf("%q is not a number of writes a second; give 1 to 1000000, or off", text)
	}
	*r = rampRate(rate)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (r rampRate) MarshalText() ([]byte, error) {
	if r == 0 {
		return []byte("off"), nil
	}
	return strconv.AppendFloat(nil, float64(r), 'f', -1, 64), nil
}
