package httpapi

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/app/apikeys"
	"github.com/dronefleet/dronefleet/app/live"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/app/ordering"
	"github.com/dronefleet/dronefleet/httpapi/console"
	"github.com/dronefleet/dronefleet/httpapi/ratelimit"
	"github.com/dronefleet/dronefleet/internal/identity"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/shutdown"
)

// New returns the API of a State Manager; see Listener.Serve.
func New(cfg Config) *API {
	a := newAPI(cfg)
	if cfg.Store != nil && cfg.Access.APIKeys != KeysOff {
		a.keys = apikeys.New(apikeys.Config{Store: cfg.Store, Now: cfg.Store.Now, RecordUse: true, Log: cfg.Log})
	}
	a.table = a.fleetEndpoints()
	a.document = sync.OnceValues(func() ([]byte, error) { return describe(a.described()) })
	a.handler = a.route(slices.Concat(a.consoleEndpoints(), a.signInEndpoints(), a.incidentEndpoints(), a.described()))
	return a
}

// described are the endpoints that the OpenAPI document describes: all but those of
// the console, of signing in and of a trial's incidents, which are for its page.
func (a *API) described() []endpoint {
	return slices.Concat(a.table, []endpoint{a.documentEndpoint()}, a.probeEndpoints())
}

// NewProbes returns the API of a process that publishes to topic and shows no
// entities, such as the optimizer: /healthz, /readyz and /metrics. It uses neither
// cfg.Store nor cfg.NewID.
func NewProbes(cfg Config, topic string) *API {
	a := newAPI(cfg)
	a.ready.topic = topic
	a.handler = a.route(a.probeEndpoints())
	return a
}

func newAPI(cfg Config) *API {
	return &API{
		store: cfg.Store, limits: cfg.Limits, newID: cfg.NewID, log: cfg.Log, meter: cfg.Meter, ready: newReadiness(cfg), access: cfg.Access, operator: cfg.Operator,
		orders: ordering.New(cfg.Store, cmp.Or(cfg.Reach, ordering.NewReach(cfg.Store)), cfg.PubSub), requireSender: cfg.RequireSender, waits: waits{store: cfg.Store}, feed: cfg.Feed, baseMap: cfg.BaseMap, incidents: cfg.Incidents,
		changes: ownOrigin(cfg.Access, nil), reads: ownOrigin(cfg.Access, cfg.Access.Origins), publicHost: siteHost(cfg.Access), streams: newShares(streamShare),
		quiet:      &quiet{log: cfg.Log, kinds: map[kindOfLine]*line{}},
		explaining: make(chan struct{}, 1),
		replaying:  make(chan struct{}, replaysAtOnce),
	}
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'") // the console has its own
	w.Header().Set("X-Frame-Options", "DENY")
	ctx, cancel := context.WithTimeout(withConnection(meter.WithOperation(r.Context(), "http"), r.Context()), requestTimeout)
	defer cancel()
	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(w, r.Body, MaxBodyBytes)
	if err := a.checkHost(r); err != nil {
		a.pass(w, r, a.payerOf(r, identity.Caller{}), ratelimit.Reads, a.rejecting(err))
		return
	}
	if a.shareWith(w, r) {
		return
	}
	a.handler.ServeHTTP(w, r)
}

// Site is how a State Manager's API is served.
type Site struct {
	Access Access
	// BaseMap, if set, is what the console shows below the fleet.
	BaseMap *console.BaseMap
	// Incidents, if set, are those that operators may start, in a trial.
	Incidents Incidents
}

// ServeManager runs a State Manager, with its HTTP API if listener is not nil, until
// ctx ends. The API answers until the last message is settled, so that probes and
// operators see a manager that is stopping; then requests may finish until the
// phase HTTP of the manager's shutdown ends. If the API fails, the manager stops.
func ServeManager(ctx context.Context, m *manager.Manager, site Site, listener *Listener) error {
	if listener == nil {
		return m.Run(ctx)
	}
	apiCtx, stopAPI := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAPI()
	m.Log.InfoContext(ctx, "HTTP API listening", slog.String("url", listener.URL()))
	g, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	finishing, finished := m.ShutdownPlan().Context(ctx, shutdown.HTTP)
	defer finished()
	feed := live.New(live.Config{
		Store: m.Store, PubSub: m.PubSub, Locks: m.Locks, KnownKeys: manager.LockKeys, AreaRadius: usualAreaRadius,
		Meter: m.Meter, Now: m.Now, NewID: uuid.NewString, Process: m.Alerts, Limits: m.Limits, Log: m.Log,
	})
	defer feed.Close(finishing)
	api := New(Config{
		Store: m.Store, Locks: m.Locks, PubSub: m.PubSub, Meter: m.Meter,
		NewID: uuid.NewString, Stopping: func() error { return context.Cause(ctx) }, Outages: m.Outages, Depots: m.DepotsWatch(), Log: m.Log, Access: site.Access, BaseMap: site.BaseMap, Incidents: site.Incidents, Operator: m.Operator,
		Feed: feed, Limits: m.Limits, Reach: m.Reach, RequireSender: m.RequireSender,
	})
	g.Go(func() error { return listener.Serve(apiCtx, finishing, api) })
	g.Go(func() error { defer stopAPI(); return m.RunUntil(ctx, stop) })
	return g.Wait()
}
