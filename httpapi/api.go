package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/live"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/httpapi/console"
	"github.com/dronefleet/dronefleet/httpapi/identity"
	"github.com/dronefleet/dronefleet/httpapi/ratelimit"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
)

// Config is what an API shows.
type Config struct {
	Store  *firestoretx.Store
	Locks  lock.Store // measures the clock
	PubSub *pubsub.Client
	Meter  *meter.Meter
	// NewID yields the session ids of snapshots, unique and not monotonic.
	NewID func() string
	// Stopping, if set, says why the process is stopping, nil while it is not. A
	// process that is stopping is not ready.
	Stopping func() error
	// Faults, if set, says why the process cannot consume its subscriptions at present.
	Faults func() []error
	// Limits are those of the policies; a field that is zero stands for the contract's value.
	Limits policy.Limits
	// Depots, if set, says which depots have no cycles though orders wait, or nil.
	Depots func() error
	// Feed, if set, is what streams show.
	Feed *live.Feed
	// Access says who may call what.
	Access Access
	// BaseMap, if set, is what the console shows below the fleet.
	BaseMap *console.BaseMap
	// Operator carries out the operators' commands; the API sets By for each.
	Operator operator.Commands
	Log      *slog.Logger
}

// API answers requests. It is safe for concurrent use.
type API struct {
	store    *firestoretx.Store
	limits   policy.Limits
	newID    func() string
	log      *slog.Logger
	quiet    *quiet
	meter    *meter.Meter
	handler  http.Handler
	ready    *readiness
	access   Access
	operator operator.Commands
	waits    waits
	feed     *live.Feed
	streams  shares
	// changes and reads tell requests of the site's own pages from those of others. The
	// pages of configured origins may read.
	changes, reads *http.CrossOriginProtection
	publicHost     string
	baseMap        *console.BaseMap
	document       func() ([]byte, error) // the OpenAPI document
	// explaining holds one element while an explanation is planned.
	explaining chan struct{}
}

// requestTimeout is how long the store may take to answer one request.
const requestTimeout = 15 * time.Second

// New returns the API of a State Manager; see Listener.Serve.
func New(cfg Config) *API {
	a := newAPI(cfg)
	a.document = sync.OnceValues(func() ([]byte, error) { return describe(a.described()) })
	a.handler = a.route(slices.Concat(a.consoleEndpoints(), a.signInEndpoints(), a.described()))
	return a
}

// described are the endpoints that the OpenAPI document describes: all but those of
// the console and of signing in, which are for browsers.
func (a *API) described() []endpoint {
	return slices.Concat(a.fleetEndpoints(), []endpoint{a.documentEndpoint()}, a.probeEndpoints())
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
		waits: waits{store: cfg.Store}, feed: cfg.Feed, baseMap: cfg.BaseMap,
		changes: ownOrigin(cfg.Access, nil), reads: ownOrigin(cfg.Access, cfg.Access.Origins), publicHost: publicHost(cfg.Access), streams: newShares(streamShare),
		quiet:      &quiet{log: cfg.Log, kinds: map[kindOfLine]*line{}},
		explaining: make(chan struct{}, 1),
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

// write sends body as JSON; a []byte is JSON already.
func (a *API) write(w http.ResponseWriter, r *http.Request, status int, contentType string, body any) {
	data, encoded := body.([]byte)
	if !encoded {
		var err error
		if data, err = json.Marshal(body); err != nil {
			a.log.ErrorContext(r.Context(), "HTTP answer cannot be encoded", slog.String("path", r.URL.Path), slog.Any("err", err))
			status, contentType = http.StatusInternalServerError, problemType
			data = []byte(`{"title":"Internal Server Error","status":500,"detail":"the answer cannot be encoded as JSON; see the log"}`)
		}
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	if _, err := w.Write(append(data, '\n')); err != nil {
		a.log.DebugContext(r.Context(), "HTTP answer not sent", slog.String("path", r.URL.Path), slog.Any("err", err))
	}
}
