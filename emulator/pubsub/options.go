package pubsubemu

import (
	"log/slog"
	"time"

	"github.com/jonboulle/clockwork"
)

// Options configure a server. The zero value serves on a free port of the
// loopback interface, keeps everything in memory and runs on the real clock.
type Options struct {
	// Addr is the TCP address to listen on; default "127.0.0.1:0".
	Addr string
	// Clock runs leases, backoffs, delays and retention; default the real one.
	Clock clockwork.Clock
	// PublishTime stamps publish_time, which seeks compare; default Clock.Now.
	// A simulation stamps its own time here while leases run on Clock.
	PublishTime func() time.Time
	// DataDir keeps topics, subscriptions, snapshots and messages across a
	// crash when set. It is created when missing and serves one server at a time.
	DataDir string
	// Seed makes the decisions of Server.Faults repeatable.
	Seed uint64
	// Logger receives server faults, such as a DataDir that cannot be written any
	// more, and, at debug level, refused calls; default none.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if o.Clock == nil {
		o.Clock = clockwork.NewRealClock()
	}
	if o.PublishTime == nil {
		o.PublishTime = o.Clock.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
