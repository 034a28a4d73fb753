package mqttlink

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/restart"
)

// Config says which broker to use, and how. A field with the zero value has the default in its
// comment.
type Config struct {
	// Broker is mqtt://HOST:PORT, or mqtts:// for TLS.
	Broker *url.URL
	// TLS is used for mqtts; default the machine's authorities and no certificate.
	TLS *tls.Config
	// User and Password are shown to the broker; default none.
	User     string
	Password []byte
	// ClientID names this gateway to the broker. It must be unique, and the same after a
	// restart: the broker keeps what a gateway that was killed has not acked.
	ClientID string
	// Group is the name of the shared subscriptions; default dronefleet.
	Group string
	// SessionExpiry is for how long the broker keeps that; default 5 minutes.
	SessionExpiry time.Duration
	// Format is the form of what drones are sent; default JSON.
	Format wire.Format
	// Drain bounds how long Run and Leave take at their end; default 10 s.
	Drain time.Duration
}

func (c Config) withDefaults() Config {
	c.Group = cmp.Or(c.Group, "dronefleet")
	c.SessionExpiry = cmp.Or(c.SessionExpiry, 5*time.Minute)
	c.Format = cmp.Or(c.Format, wire.JSON)
	c.Drain = cmp.Or(c.Drain, 10*time.Second)
	return c
}

// Fleet is the gateway's core.
type Fleet interface {
	// Publish is as in dronelink.Gateway.
	Publish(ctx context.Context, who domain.DroneID, r dronelink.Report) (dronelink.Receipt, error)
	// Resume returns what a drone must know that says hello.
	Resume(ctx context.Context, hello dronelink.Hello) ([]dronelink.Message, error)
	// Linked takes that a drone has connected to the broker (LinkOpened) or that its connection
	// is gone (LinkLost). The time is the gateway's. It does not wait.
	Linked(s domain.LinkState)
}

// Clock is the fleet's time.
type Clock interface{ Now() time.Time }

// Link is a client of a broker. Its methods are safe for concurrent use.
type Link struct {
	cfg   Config
	fleet Fleet
	clock Clock
	log   *slog.Logger
	meter *meter.MQTT
	usage usages

	life     context.Context // of reports; ends after the drain
	work     sync.WaitGroup
	onTheWay chan struct{} // holds a token for each report that Pub/Sub does not have yet

	mu      sync.Mutex
	current *connection   // nil while there is none
	changed chan struct{} // closed when current changes
	outage  error         // why there is none
	warned  time.Time     // when complain last did
}

// ErrNotYet is why no reports come while the first connection is being made.
var ErrNotYet = errors.New("not connected yet")

// New returns a link that is not connected; Run connects it.
func New(cfg Config, fleet Fleet, clock Clock, log *slog.Logger, m *meter.Meter) *Link {
	return &Link{
		cfg: cfg.withDefaults(), fleet: fleet, clock: clock, log: log, meter: &m.MQTT,
		onTheWay: make(chan struct{}, window), changed: make(chan struct{}), outage: ErrNotYet,
	}
}

// Run keeps a connection to the broker until ctx ends. It returns once the reports that it has
// are published, or after Config.Drain. The broker keeps reports for this gateway until it
// returns: it would lose them if no gateway were left.
func (l *Link) Run(ctx context.Context) {
	defer l.begin(ctx)()
	restart.Until(ctx, func() {
		err := l.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		l.set(nil, err)
		l.log.WarnContext(ctx, "no connection to the MQTT broker; trying again", slog.String("broker", l.cfg.Broker.Redacted()), slog.Any("err", err))
	})
}

// Leave takes the reports that the broker keeps for this gateway, and ends its part in the
// shared subscriptions. It is for a gateway that does not return.
func (l *Link) Leave(ctx context.Context) error {
	defer l.begin(ctx)()
	c, err := l.connect(ctx)
	if err != nil {
		return err
	}
	defer c.end()
	return c.leave(ctx)
}

// begin lets reports be published. After end they are, or after Config.Drain.
func (l *Link) begin(ctx context.Context) (end func()) {
	life, kill := context.WithCancel(context.WithoutCancel(ctx))
	l.life = life
	return func() {
		late := time.AfterFunc(l.cfg.Drain, kill)
		l.work.Wait()
		late.Stop()
		kill()
	}
}

// serve runs one connection.
func (l *Link) serve(ctx context.Context) error {
	c, err := l.connect(ctx)
	if err != nil {
		return err
	}
	defer c.end()
	l.set(c, nil)
	defer l.set(nil, errors.New("stopped"))
	l.log.InfoContext(ctx, "connected to the MQTT broker", slog.String("broker", l.cfg.Broker.Redacted()),
		slog.String("client_id", l.cfg.ClientID), slog.Bool("session_present", c.resumed))
	select {
	case err := <-c.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// admit waits until a report can be taken; one that must not wait may be refused.
func (l *Link) admit(wait bool) bool {
	select {
	case l.onTheWay <- struct{}{}:
		return true
	default:
	}
	if !wait {
		return false
	}
	select {
	case l.onTheWay <- struct{}{}:
		return true
	case <-l.life.Done():
		return false
	}
}

// release ends what admit began.
func (l *Link) release() { <-l.onTheWay }

// complainEvery keeps an outage, which meets every report, from filling the log.
const complainEvery = 10 * time.Second

// complain logs that Pub/Sub does not take reports.
func (l *Link) complain(ctx context.Context, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.warned) >= complainEvery {
		l.warned = now
		l.log.WarnContext(ctx, "reports are not published; trying again, the broker keeps them", slog.Int("waiting", len(l.onTheWay)), slog.Any("err", err))
	}
}

// set notes the present connection, or why there is none.
func (l *Link) set(c *connection, outage error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current, l.outage = c, outage
	close(l.changed)
	l.changed = make(chan struct{})
	l.meter.SetConnected(c != nil)
}

// Ready returns why no reports come from the broker; nil while they do.
func (l *Link) Ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.outage != nil {
		return fmt.Errorf("MQTT broker %s: %w", l.cfg.Broker.Redacted(), l.outage)
	}
	return nil
}

// connection waits for a connection.
func (l *Link) connection(ctx context.Context) (*connection, error) {
	for {
		l.mu.Lock()
		c, changed := l.current, l.changed
		l.mu.Unlock()
		if c != nil {
			return c, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, l.Ready()
		}
	}
}

// commandLimit bounds the sending of one command. After it Pub/Sub delivers it again.
const commandLimit = 10 * time.Second

// Command sends a command, which was published at a time, to its drone's topic. It returns nil
// once the broker has it, or if it cannot ever take it.
func (l *Link) Command(ctx context.Context, c domain.Command, published time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	log := l.log.With(slog.String("drone_id", string(c.Mission.DroneID)), slog.String("mission_id", string(c.Mission.ID)))
	out, err := l.command(c, published)
	if err != nil {
		log.ErrorContext(ctx, "mission command cannot be sent over MQTT", slog.Any("err", err))
		return nil
	}
	on, err := l.connection(ctx)
	if err == nil {
		err = on.publish(ctx, out)
	}
	if never, is := errors.AsType[*neverError](err); is {
		log.ErrorContext(ctx, "mission command cannot be sent over MQTT", slog.Any("err", never))
		return nil
	}
	if err != nil {
		l.meter.Failed.Inc()
		log.WarnContext(ctx, "the MQTT broker has not taken a mission command; it will be sent again", slog.Any("err", err))
		return err
	}
	l.meter.Sent.Inc()
	return nil
}

// command is the message of a command.
func (l *Link) command(c domain.Command, published time.Time) (outgoing, error) {
	topic, err := topicOf(c.Mission.DroneID, missionsTopic)
	if err != nil {
		return outgoing{}, err
	}
	data, attrs, err := wire.EncodeCommand(c, l.cfg.Format)
	if err != nil {
		return outgoing{}, err
	}
	return outgoing{topic: topic, data: data, contentType: attrs[wire.AttrContentType], expiry: commandExpiry(c, l.clock.Now(), published)}, nil
}

const (
	// revocationExpiry is for how long the broker keeps a revocation, which does not expire,
	// for a drone that is out of reach. Later, its hello is answered by the revocation.
	revocationExpiry = time.Hour
	// leastExpiry lets a command reach a drone that is connected, whatever the clock here says:
	// the drone judges by its own whether the command has expired.
	leastExpiry = time.Second
)

// commandExpiry is for how long the broker may keep a command. A clock that is behind must not
// make it longer than the command's life.
func commandExpiry(c domain.Command, now, published time.Time) time.Duration {
	if c.ExpiresAt.IsZero() {
		return revocationExpiry
	}
	left := min(c.ExpiresAt.Sub(now), c.ExpiresAt.Sub(published))
	return max(left, leastExpiry)
}
