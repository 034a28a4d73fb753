package httpapi

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/dronefleet/dronefleet/httpapi/console"
	"github.com/dronefleet/dronefleet/httpapi/identity"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/observe"
)

// endpoint is one line of the table that the API is made of: routing, the answer to
// a wrong method, the list of paths in a 404, who may call and the checks of the
// request all follow from it. docs/recipes.md says how to add one.
type endpoint struct {
	method     string        // GET answers HEAD too
	path       string        // pattern of http.ServeMux; {id} must be an entity's id
	role       identity.Role // who may call it; "" for everybody
	summary    string        // what it does, for the OpenAPI document
	parameters []parameter   // what the query may hold
	answer     answer
}

const (
	get, post    = http.MethodGet, http.MethodPost
	viewer, oper = identity.Viewer, identity.Operator
)

// answer is what an endpoint does. do returns what to write as JSON with status
// 200, a reply to choose the status, or an http.Handler to write by itself.
type answer struct {
	body  func() body // what the JSON body is decoded into; nil if there is none
	do    func(context.Context, *request) (any, error)
	shape func(*schemas) content // what is written, for the OpenAPI document
}

// writes is the answer of a function that returns what to write as JSON.
func writes[T any](do func(context.Context, *request) (T, error)) answer {
	return answer{do: func(ctx context.Context, r *request) (any, error) { return do(ctx, r) }, shape: jsonOf[T]}
}

// jsonOf is the shape of a type's JSON form.
func jsonOf[T any](s *schemas) content { return content{"application/json", s.of(typeOf[T]())} }

// writesA is the answer of a function that writes another media type, or chooses its
// status.
func writesA(mediaType string, s schema, do func(context.Context, *request) (any, error)) answer {
	return answer{do: do, shape: func(*schemas) content { return content{mediaType, s} }}
}

// reply is an answer with a status of its own.
type reply struct {
	status int
	body   any
}

// fleetEndpoints show and change the fleet.
func (a *API) fleetEndpoints() []endpoint {
	return slices.Concat(
		a.snapshotEndpoints(), []endpoint{a.streamEndpoint()},
		a.orderEndpoints(), a.droneEndpoints(), a.missionEndpoints(), a.decisionEndpoints(), a.placeEndpoints(),
		a.alertEndpoints(), a.deadLetterEndpoints(), a.messageEndpoints(), a.lockEndpoints(),
		[]endpoint{{method: get, path: "/api/v1/session", role: viewer, summary: "Say who the caller is and which verbs it has.", answer: writes(a.session)}},
	)
}

// consoleEndpoints serve the page for dispatchers. It holds nothing of the fleet, so
// everybody may read it; what it shows comes from the stream.
func (a *API) consoleEndpoints() (endpoints []endpoint) {
	for path, file := range console.Files {
		endpoints = append(endpoints, handling(path, "", console.Handler(file, a.baseMap)))
	}
	endpoints = append(endpoints, handling(console.MapPath, identity.Viewer, http.HandlerFunc(a.baseMap.About)),
		handling(console.PMTilesPath, identity.Viewer, http.HandlerFunc(a.baseMap.Archive)))
	slices.SortFunc(endpoints, func(x, y endpoint) int { return strings.Compare(x.path, y.path) })
	return endpoints
}

// handling is an endpoint that a handler answers.
func handling(path string, role identity.Role, h http.Handler) endpoint {
	return endpoint{method: http.MethodGet, path: path, role: role, answer: answer{do: func(context.Context, *request) (any, error) { return h, nil }}}
}

// healthPath is the one path that answers whatever host a request names.
const healthPath = "/healthz"

// probeEndpoints say how the process is.
func (a *API) probeEndpoints() []endpoint {
	probes := []endpoint{
		{method: get, path: healthPath, summary: "Say that the process answers.", answer: writes(a.health)},
		{method: get, path: "/readyz", summary: "Check what the process depends on; 503 if it is not ready.", answer: answer{do: a.readyz, shape: jsonOf[Readiness]}},
	}
	metrics := func(role identity.Role, answer answer) endpoint {
		return endpoint{method: get, path: "/metrics", role: role, summary: "Metrics for Prometheus.", parameters: []parameter{anyParameter}, answer: answer}
	}
	switch a.access.Metrics {
	case MetricsOff:
		return probes
	case MetricsViewer:
		return append(probes, metrics(identity.Viewer, metricsOf(a.meter)))
	case MetricsOpen:
		return append(probes, metrics("", metricsOf(a.meter)))
	case MetricsLocal:
	}
	return append(probes, metrics("", localOnly(metricsOf(a.meter))))
}

// route makes the handler of all requests from the table.
func (a *API) route(table []endpoint) http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	var paths []string
	for _, e := range table {
		mux.Handle(e.method+" "+e.path, a.serve(e))
		if methods[e.path] == nil {
			paths = append(paths, strings.TrimSuffix(e.path, "{$}"))
		}
		methods[e.path] = append(methods[e.path], e.method)
	}
	for path, allowed := range methods {
		mux.Handle(path, a.wrongMethod(allowed))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		a.refuse(w, r, problem(http.StatusNotFound, "no such path %.128q; available paths: %s", r.URL.Path, strings.Join(paths, ", ")))
	})
	return a.canonical(mux)
}

// serve checks a request and writes the endpoint's answer.
func (a *API) serve(e endpoint) http.Handler {
	return a.guard(e, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := e.read(r)
		var answered any
		if err == nil {
			answered, err = e.answer.do(r.Context(), req)
		}
		if err != nil {
			a.refuse(w, r, err)
			return
		}
		switch answered := answered.(type) {
		case http.Handler:
			answered.ServeHTTP(w, r)
		case reply:
			a.write(w, r, answered.status, "application/json", answered.body)
		default:
			a.write(w, r, http.StatusOK, "application/json", answered)
		}
	}))
}

// wrongMethod answers a path that exists for other methods.
func (a *API) wrongMethod(allowed []string) http.Handler {
	if slices.Contains(allowed, http.MethodGet) {
		allowed = append(slices.Clone(allowed), http.MethodHead)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := problem(http.StatusMethodNotAllowed, "method %.16s not allowed; use %s", r.Method, oneOf(allowed))
		p.headers = map[string]string{"Allow": strings.Join(allowed, ", ")}
		a.refuse(w, r, p)
	})
}

// canonical redirects paths with empty, "." or ".." segments to the path they
// stand for. ServeMux would do the same, with a body of HTML.
func (a *API) canonical(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		escaped := r.URL.EscapedPath()
		clean := path.Clean("/" + escaped)
		if strings.HasSuffix(escaped, "/") && clean != "/" {
			clean += "/"
		}
		if clean == escaped {
			next.ServeHTTP(w, r)
			return
		}
		location := clean
		if r.URL.RawQuery != "" {
			location += "?" + r.URL.RawQuery
		}
		p := problem(http.StatusTemporaryRedirect, "the path %.128q stands for %.128q; use that", escaped, clean)
		p.headers = map[string]string{"Location": location}
		a.refuse(w, r, p)
	})
}

type health struct {
	Status string `json:"status"`
}

// health says that the process answers requests, and nothing more.
//
// Cost: no RPC.
func (a *API) health(context.Context, *request) (health, error) {
	return health{CheckOK}, nil
}

// localOnly answers callers on this machine. A proxy is on this machine, too, where it is in
// the same pod, but it says whom it asks for.
func localOnly(a answer) answer {
	return answer{do: func(ctx context.Context, r *request) (any, error) {
		forwarded := slices.ContainsFunc([]string{"X-Forwarded-For", "Forwarded", "Via", "X-Real-Ip"}, func(name string) bool { return r.Header.Get(name) != "" })
		if !parseAddress(r.RemoteAddr).IsLoopback() || forwarded {
			return nil, problem(http.StatusForbidden, "the metrics are for collectors on the same machine; see --metrics-access")
		}
		return a.do(ctx, r)
	}, shape: a.shape}
}

// metricsOf answers GET /metrics: what the process counted, and the Go runtime.
//
// Cost: no RPC.
func metricsOf(m *meter.Meter) answer {
	h := observe.MetricsHandler(m)
	return writesA("text/plain", schema{"type": "string"}, func(context.Context, *request) (any, error) { return h, nil })
}
