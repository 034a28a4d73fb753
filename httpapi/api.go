package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/httpapi/identity"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
)

// Config is what an API shows.
type Config struct {
	Store  *firestoretx.Store
	Locks  *firestorelock.Backend // measures the clock
	PubSub *pubsub.Client
	Meter  *meter.Meter
	// NewID yields the session ids of snapshots, unique and not monotonic.
	NewID func() string
	// Stopping, if set, says why the process stops once it begins to; from then
	// on it is not ready.
	Stopping func() error
	// Access says who may ask for what.
	Access Access
	// Operator carries out the operators' commands; By is set for each.
	Operator operator.Commands
	Log      *slog.Logger
}

// API answers requests. It is safe for concurrent use.
type API struct {
	store    *firestoretx.Store
	newID    func() string
	log      *slog.Logger
	handler  http.Handler
	ready    *readiness
	access   Access
	operator operator.Commands
	patterns []string
}

// requestTimeout is how long the store may take to answer one request.
const requestTimeout = 15 * time.Second

// New returns an API; see Serve.
func New(cfg Config) *API {
	a := &API{store: cfg.Store, newID: cfg.NewID, log: cfg.Log, ready: newReadiness(cfg), access: cfg.Access, operator: cfg.Operator}
	mux := http.NewServeMux()
	handle := func(method, path string, h http.Handler) {
		a.patterns = append(a.patterns, path)
		mux.Handle(method+" "+path, h)
		mux.Handle(path, a.wrongMethod(method))
	}
	get := func(path string, f func(context.Context, *http.Request) (any, error)) {
		handle(http.MethodGet, path, a.guard(identity.Viewer, a.answer(f)))
	}
	post := func(path string, f func(context.Context, *http.Request) (any, error)) {
		handle(http.MethodPost, path, a.guard(identity.Operator, a.answer(f)))
	}

	get("/api/v1/optimizer/snapshot", a.snapshot)
	get("/api/v1/drones", a.drones)
	get("/api/v1/orders", a.orders)
	get("/api/v1/missions", a.missions)
	get("/api/v1/decisions", a.decisions)
	get("/api/v1/cycles", a.cycles)
	get("/api/v1/drones/{id}", single[domain.DroneID](a.store.Drone, entity.OfDrone))
	get("/api/v1/orders/{id}", single[domain.OrderID](a.store.Order, entity.OfOrder))
	get("/api/v1/missions/{id}", single[domain.MissionID](a.store.Mission, entity.OfMission))
	get("/api/v1/decisions/{id}", single[domain.DecisionID](a.store.LedgerEntry, entity.OfDecision))
	get("/api/v1/cycles/{id}", single[domain.CycleID](a.store.Cycle, entity.OfCycle))

	post("/api/v1/orders/{id}/hold", change(a, "orders hold", entity.OfOrder, operator.Commands.HoldOrder))
	post("/api/v1/orders/{id}/release", change(a, "orders release", entity.OfOrder, operator.Commands.ReleaseOrder))
	post("/api/v1/orders/{id}/cancel", change(a, "orders cancel", entity.OfOrder, operator.Commands.CancelOrder))
	post("/api/v1/drones/{id}/clear", change(a, "drones clear", entity.OfDrone, operator.Commands.ClearDrone))
	post("/api/v1/deadletters/replay", a.replay)
	post("/api/v1/deadletters/discard", a.discard)

	handle(http.MethodGet, "/healthz", a.answer(a.health))
	handle(http.MethodGet, "/readyz", http.HandlerFunc(a.readyz))
	switch metrics := metricsHandler(cfg.Meter); cfg.Access.Metrics {
	case MetricsOff:
	case MetricsViewer:
		handle(http.MethodGet, "/metrics", a.guard(identity.Viewer, metrics))
	default:
		handle(http.MethodGet, "/metrics", metrics)
	}
	mux.HandleFunc("/", a.unknownPath)
	a.handler = mux
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	ctx, cancel := context.WithTimeout(meter.WithOperation(r.Context(), "http"), requestTimeout)
	defer cancel()
	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(w, r.Body, MaxBodyBytes)
	a.handler.ServeHTTP(w, r)
}

// answer makes a handler of a function that returns what to write as JSON.
func (a *API) answer(f func(context.Context, *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := f(r.Context(), r)
		if err != nil {
			a.refuse(w, r, err)
			return
		}
		a.write(w, r, http.StatusOK, "application/json", body)
	})
}

// write sends body as JSON; bytes are JSON already.
func (a *API) write(w http.ResponseWriter, r *http.Request, status int, contentType string, body any) {
	data, encoded := body.([]byte)
	if !encoded {
		var err error
		if data, err = json.Marshal(body); err != nil {
			a.log.ErrorContext(r.Context(), "HTTP answer cannot be encoded", slog.String("path", r.URL.Path), slog.Any("err", err))
			status, contentType = http.StatusInternalServerError, "application/problem+json"
			data = []byte(`{"title":"Internal Server Error","status":500,"detail":"the answer cannot be written as JSON; see the log"}`)
		}
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	if _, err := w.Write(append(data, '\n')); err != nil {
		a.log.DebugContext(r.Context(), "HTTP answer not received", slog.String("path", r.URL.Path), slog.Any("err", err))
	}
}

// wrongMethod answers what is there, but for another method.
func (a *API) wrongMethod(right string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := problem(http.StatusMethodNotAllowed, "method %.16s does nothing here; use %s", r.Method, right)
		if p.allow = right; right == http.MethodGet {
			p.allow = "GET, HEAD"
		}
		a.refuse(w, r, p)
	})
}

func (a *API) unknownPath(w http.ResponseWriter, r *http.Request) {
	a.refuse(w, r, problem(http.StatusNotFound, "nothing is at %.128q; there are %s", r.URL.Path, oneOf(a.patterns)))
}

// health says that the process answers requests, and nothing more.
//
// Cost: no RPC.
func (a *API) health(_ context.Context, r *http.Request) (any, error) {
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	return map[string]string{"status": "ok"}, nil
}
