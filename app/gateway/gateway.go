package gateway

import (
	"cmp"
	"context"
	"hash/fnv"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"
	"golang.org/x/sync/semaphore"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/restart"
	"github.com/dronefleet/dronefleet/policy"
)

// Config tunes a Gateway. A field with the zero value has the default in its comment.
type Config struct {
	// MaxSessions is how many drones can be connected; default 20,000.
	MaxSessions int
	// MaxInFlight is how many reports of all drones are on their way to Pub/Sub at a time;
	// default 5,000. More would wait in the publisher, and fail there when they have waited too
	// long; so they wait at their drones.
	MaxInFlight int64
	// Rate is how many reports a second a drone may send; default 10.
	Rate float64
	// ClockError is how far this process's clock is off, false if that was not measured. Without it
	// no report is refused for its time.
	ClockError func() (time.Duration, bool)
	// Meter counts what passes; default one that nobody reads.
	Meter *meter.Link
}

func (c Config) withDefaults() Config {
	c.MaxSessions = cmp.Or(c.MaxSessions, 20_000)
	c.MaxInFlight = cmp.Or(c.MaxInFlight, 5000)
	c.Rate = cmp.Or(c.Rate, 10)
	if c.Meter == nil {
		c.Meter = new(meter.Link)
	}
	return c
}

// gatherReports is how long a report waits for others, to share their request to Pub/Sub.
const gatherReports = 20 * time.Millisecond

// orderingKeys are how many ordering keys all drones share. A request to Pub/Sub has messages of
// one key only: with a key for each drone, each report would be a request.
const orderingKeys = 32

// orderingKey is the key of a drone's reports, the same at every gateway. So they stay in order,
// and with one State Manager.
func orderingKey(id domain.DroneID) string {
	sum := fnv.New32a()
	_, _ = io.WriteString(sum, string(id)) // it cannot fail
	return "drones-" + strconv.Itoa(int(sum.Sum32()%orderingKeys))
}

// MaxReport is the largest report that is taken, in bytes. Real ones have about 200.
const MaxReport = 16 << 10

// Missions reads what a drone that connects must know. firestoretx.Store is one.
type Missions interface {
	DronesOf(ctx context.Context, ids []domain.DroneID) ([]domain.Drone, error)
	MissionsOf(ctx context.Context, ids []domain.MissionID) ([]domain.Mission, error)
}

// Gateway implements dronelink.Gateway.
type Gateway struct {
	cfg       Config
	clock     clockwork.Clock
	publisher *pubsubio.Publisher
	missions  Missions
	log       *slog.Logger
	inFlight  *semaphore.Weighted // reports
	lookups   *semaphore.Weighted // of resumes
	work      sync.WaitGroup      // goroutines of sessions

	mu       sync.Mutex
	sessions map[domain.DroneID]*session
	links    links
	draining bool
	over     bool // see rest
}

var _ dronelink.Gateway = (*Gateway)(nil)

// maxLookups bounds how many drones' missions are read at a time, when all connect at once.
const maxLookups = 64

// New returns a gateway without sessions. The publisher, which must be new, stays the caller's
// to stop.
func New(publisher *pubsubio.Publisher, missions Missions, clock clockwork.Clock, cfg Config, log *slog.Logger) *Gateway {
	cfg = cfg.withDefaults()
	publisher.Gather(pubsubio.TopicTelemetry, gatherReports)
	return &Gateway{
		cfg: cfg, clock: clock, publisher: publisher, missions: missions, log: log,
		inFlight: semaphore.NewWeighted(cfg.MaxInFlight), lookups: semaphore.NewWeighted(maxLookups),
		sessions: map[domain.DroneID]*session{},
		links:    links{away: map[domain.DroneID]domain.LinkState{}, lost: map[domain.DroneID]time.Time{}},
	}
}

// Sessions counts the drones that are connected.
func (g *Gateway) Sessions() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.sessions)
}

// Open implements dronelink.Gateway.
func (g *Gateway) Open(_ context.Context, who dronelink.Identity, hello dronelink.Hello, out dronelink.Outlet) (dronelink.Session, error) {
	s, err := g.open(who, hello, out)
	if err != nil {
		g.cfg.Meter.TurnedAway(string(err.Reason))
		return nil, err
	}
	return s, nil
}

func (g *Gateway) open(who dronelink.Identity, hello dronelink.Hello, out dronelink.Outlet) (*session, *dronelink.Refusal) {
	if hello.Drone != who.Drone {
		return nil, mismatch("hello: drone_id", hello.Drone, who.Drone)
	}
	now := g.clock.Now()
	s := &session{
		gateway: g, who: who, hello: hello, out: out, id: uuid.NewString(), began: now,
		window: make(chan struct{}, window), closing: make(chan struct{}), ended: make(chan struct{}), allowance: newAllowance(g.cfg.Rate, now),
	}
	older, refused := g.enter(s)
	if refused != nil {
		return nil, refused
	}
	g.cfg.Meter.Opened()
	if older != nil {
		older.end(superseded(s.id))
	}
	g.opened(s)
	s.send(dronelink.Message{Welcome: &dronelink.Welcome{Session: s.id, At: now}})
	g.work.Go(s.resume)
	g.log.Debug("drone connected", slog.String("drone_id", string(who.Drone)), slog.String("session", s.id), slog.String("method", who.Method),
		slog.String("mission_id", string(hello.Mission)), slog.Bool("amendments", hello.SupportsAmendments), slog.Bool("standby", hello.SupportsStandby))
	return s, nil
}

// enter makes s the session of its drone and returns the one that it replaces, if any.
func (g *Gateway) enter(s *session) (older *session, refused *dronelink.Refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	older = g.sessions[s.who.Drone]
	switch {
	case g.draining:
		return nil, reconnect()
	case older == nil && len(g.sessions) >= g.cfg.MaxSessions:
		return nil, &dronelink.Refusal{Reason: dronelink.Full, Final: true, RetryAfter: spread(fullRetry),
			Text: "this gateway has as many drones as it can; reconnect, and another one may answer"}
	}
	g.sessions[s.who.Drone] = s
	return older, nil
}

// leave forgets a session that has ended. The session's lock must be held.
func (g *Gateway) leave(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sessions[s.who.Drone] != s { // superseded here
		return
	}
	delete(g.sessions, s.who.Drone)
	if elsewhere := s.why != nil && s.why.Reason == dronelink.Superseded; !s.goodbye && !elsewhere {
		g.left(s)
	}
}

// Run sends connected drones their commands, and ends sessions whose credentials end, until
// ctx does. It follows the topic of commands by a subscription that has id in its name, and
// calls ready once no command can be missed: drones must not connect before.
func (g *Gateway) Run(ctx context.Context, client *pubsub.Client, id string, ready func()) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { g.watchCredentials(ctx) })
	running.Go(func() {
		restart.Until(ctx, func() {
			if err := pubsubio.FollowLinks(ctx, client, id, g.log, func() {}, g.heard); ctx.Err() == nil {
				g.log.WarnContext(ctx, "sessions of other gateways cannot be followed; trying again", slog.Any("err", err))
			}
		})
	})
	followed := false
	restart.Until(ctx, func() {
		err := pubsubio.FollowCommands(ctx, client, id, g.log, func() {
			if followed {
				g.catchUp() // on what was published while there was no subscription
				return
			}
			followed = true
			ready()
		}, g.Deliver)
		if ctx.Err() == nil {
			g.log.WarnContext(ctx, "mission commands cannot be followed; trying again", slog.Any("err", err))
		}
	})
}

// all lists the sessions.
func (g *Gateway) all() []*session {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Values(g.sessions))
}

// catchUp reads again what each connected drone must know.
func (g *Gateway) catchUp() {
	for _, s := range g.all() {
		g.work.Go(s.catchUp)
	}
}

// watchEvery is how often the credentials of sessions are checked, by the machine's clock.
const watchEvery = time.Second

// watchCredentials ends sessions whose credentials have expired or are revoked.
func (g *Gateway) watchCredentials(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, s := range g.all() {
			if refused := s.checkCredentials(ctx); refused != nil {
				s.end(refused)
			}
		}
	}
}

// Deliver gives a command to its drone, if it is connected here.
func (g *Gateway) Deliver(c domain.Command) {
	g.mu.Lock()
	s := g.sessions[c.Mission.DroneID]
	g.mu.Unlock()
	if s != nil {
		s.send(dronelink.Message{Command: &c})
	}
}

// Publish implements dronelink.Gateway.
func (g *Gateway) Publish(ctx context.Context, who domain.DroneID, r dronelink.Report) (dronelink.Receipt, error) {
	return g.publish(ctx, who, r)
}

// publish checks a report and hands it to Pub/Sub. It waits while the gateway holds too much.
func (g *Gateway) publish(ctx context.Context, who domain.DroneID, r dronelink.Report) (*receipt, error) {
	size := int64(len(r.Data))
	if size > MaxReport {
		return nil, &dronelink.Refusal{Sequence: r.Sequence, Reason: dronelink.Invalid, Text: tooLarge(size)}
	}
	attrs := map[string]string{}
	if r.ContentType != "" {
		attrs[wire.AttrContentType] = r.ContentType
	}
	t, err := wire.DecodeTelemetry(r.Data, attrs)
	if err != nil {
		return nil, refusalOf(r.Sequence, err)
	}
	if t.DroneID != who {
		return nil, mismatch("drone_id", t.DroneID, who)
	}
	if ahead := g.tooFarAhead(t); ahead > 0 {
		return nil, future(r.Sequence, ahead)
	}
	if err := g.inFlight.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	if r.ContentType != "" {
		attrs[wire.AttrContentType] = wire.MediaType(r.ContentType) // Pub/Sub refuses a whole request for one long attribute
	}
	attrs[wire.AttrSender] = string(who)
	g.cfg.Meter.Pending(1)
	published := g.publisher.Publish(context.WithoutCancel(ctx), pubsubio.TopicTelemetry, r.Data, attrs, orderingKey(who))
	return &receipt{gateway: g, published: published}, nil
}

// tooFarAhead is by how much a report is measured ahead of this process's clock; 0 unless State
// Managers are sure to refuse it, too. One that they cannot write to the dead letters is delivered
// again, with the reports of all drones that share its ordering key.
func (g *Gateway) tooFarAhead(t domain.Telemetry) time.Duration {
	if g.cfg.ClockError == nil {
		return 0
	}
	off, measured := g.cfg.ClockError()
	ahead := t.Timestamp.Sub(g.clock.Now())
	const margin = time.Second // of the measurement, and for what the clock drifted since
	if !measured || ahead <= policy.DefaultLimits().MaxFuture+off.Abs()+margin {
		return 0
	}
	return ahead
}

// receipt is a report on its way to Pub/Sub. Wait must be called once.
type receipt struct {
	gateway   *Gateway
	published pubsubio.Published
}

// Wait implements dronelink.Receipt.
func (r *receipt) Wait(ctx context.Context) error {
	defer r.release()
	if _, err := r.published.Wait(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return unavailable(err)
	}
	return nil
}

func (r *receipt) release() {
	r.gateway.cfg.Meter.Pending(-1)
	r.gateway.inFlight.Release(1)
}

// Drain tells every drone to reconnect elsewhere and waits until they are gone and their
// reports are published, or until ctx ends. Nobody can connect meanwhile.
func (g *Gateway) Drain(ctx context.Context) error {
	g.mu.Lock()
	g.draining = true
	g.mu.Unlock()
	for _, s := range g.all() {
		s.end(reconnect())
	}
	gone := make(chan struct{})
	go func() { g.work.Wait(); close(gone) }()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	// fullRetry and reconnectRetry spread the drones over the gateways that are left.
	fullRetry      = 2 * time.Second
	reconnectRetry = 500 * time.Millisecond
)
