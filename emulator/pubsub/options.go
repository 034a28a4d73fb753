package pubsubemu

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/emulator/internal/boltfile"
)

// Options configure a server. The zero value is a server in memory on a free
// loopback port.
type Options struct {
	// Addr is the loopback address to listen on; default "127.0.0.1:0", a free port.
	Addr string
	// AnyAddress lets Addr be one that other machines reach. The server checks no
	// credentials.
	AnyAddress bool
	// InProcess lets the server listen on no port. Only Server.Dial and
	// Server.Client reach it.
	InProcess bool
	// HTTPHint is a sentence that ends the answer to clients of HTTP/1, which the server does
	// not speak. It says where they can go instead.
	HTTPHint string
	// Clock drives ack deadlines, backoffs, delays and retention; default the real
	// clock.
	Clock clockwork.Clock
	// PublishTime is the source of publish_time, which seeks compare; default
	// Clock.Now. A simulation puts its own time here while ack deadlines run on
	// Clock.
	PublishTime func() time.Time
	// DataDir is the directory that keeps topics, subscriptions, snapshots and
	// messages across a crash; default none, memory only. It is created if it does
	// not exist. Only one server can use it at a time.
	DataDir string
	// Seed makes the decisions of Server.Faults repeatable; default 0.
	Seed uint64
	// Logger receives errors of the server, such as a DataDir that can no longer be
	// written, and, at debug level, refused calls; default none.
	Logger *slog.Logger
	// OnUnwritable, if set, is called with the error when DataDir can no longer be
	// written. It must not call the server.
	OnUnwritable func(error)
}

func (o Options) withDefaults() Options {
	if o.Addr == "" && !o.InProcess {
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

// check refuses an address that other machines reach, unless that is wanted.
func (o Options) check() error {
	if o.InProcess {
		if o.Addr != "" {
			return fmt.Errorf("pubsub emulator: Addr %q is set, but InProcess listens on no port; set only one of them", o.Addr)
		}
		return nil
	}
	host, _, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return fmt.Errorf("pubsub emulator: Addr %q: %w; want host:port on loopback", o.Addr, err)
	}
	if ip := net.ParseIP(host); !o.AnyAddress && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("pubsub emulator: Addr %q is not loopback, but the server checks no credentials; use 127.0.0.1, or set AnyAddress", o.Addr)
	}
	return nil
}

// Errors of Start that concern DataDir, for errors.Is.
var (
	// ErrInUse says that another server has the data file open.
	ErrInUse = boltfile.ErrInUse
	// ErrDamaged says that the data file was emptied or cut short, or that a page
	// or a record in it is not as it was written. The error names the file and the
	// record.
	ErrDamaged = boltfile.ErrDamaged
)
