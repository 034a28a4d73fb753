package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/apikeys"
	"github.com/dronefleet/dronefleet/app/live"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/app/ordering"
	"github.com/dronefleet/dronefleet/httpapi/console"
	"github.com/dronefleet/dronefleet/internal/identity"
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
	// Outages, if set, says why the process cannot consume its subscriptions at present.
	Outages func() []error
	// Limits are those of the policies; a field that is zero stands for the contract's value.
	Limits policy.Limits
	// Depots, if set, says which depots have no cycles though orders wait, or nil.
	Depots func() error
	// Reach says which orders no drone can deliver; default one that reads for itself.
	Reach *ordering.Reach
	// RequireSender says that State Managers refuse orders without a requester.
	RequireSender bool
	// Feed, if set, is what streams show.
	Feed *live.Feed
	// Access says who may call what.
	Access Access
	// BaseMap, if set, is what the console shows below the fleet.
	BaseMap *console.BaseMap
	// Incidents, if set, are those that operators may start, in a trial.
	Incidents Incidents
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
	keys     *apikeys.Checker // nil if no keys are accepted
	operator operator.Commands
	orders   *ordering.Desk
	// requireSender is Config.RequireSender.
	requireSender bool
	waits         waits
	feed          *live.Feed
	streams       shares
	// changes and reads tell requests of the site's own pages from those of others. The
	// pages of configured origins may read.
	changes, reads *http.CrossOriginProtection
	publicHost     string
	baseMap        *console.BaseMap
	incidents      Incidents              // nil for none
	document       func() ([]byte, error) // the OpenAPI document
	table          []endpoint             // what shows and changes the fleet
	// explaining holds one element while an explanation is planned.
	explaining chan struct{}
	// replaying holds an element for each replay that is being read.
	replaying chan struct{}
}

type callerKey struct{}

// callerOf is who sent the request.
func callerOf(ctx context.Context) identity.Caller {
	c, _ := ctx.Value(callerKey{}).(identity.Caller)
	return c
}

// write sends body as JSON; a []byte is JSON already.
func (a *API) write(w http.ResponseWriter, r *http.Request, status int, contentType string, body any) {
	data, isJSON := body.([]byte)
	if !isJSON {
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

// refuse answers a request with the problem of err.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := *asProblem(err)
	p.Instance = r.URL.EscapedPath()
	// A client that cancelled its request learns nothing from the log. A request
	// that ran out of time shows that the store is slow.
	if p.Status >= http.StatusInternalServerError && !errors.Is(r.Context().Err(), context.Canceled) {
		a.quiet.request(r.Context(), slog.LevelWarn, "HTTP request failed", r, p.Status, err)
	}
	for name, value := range p.headers {
		w.Header().Set(name, value)
	}
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	a.write(w, r, p.Status, problemType, p)
}
