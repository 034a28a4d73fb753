package httpapi

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/dronefleet/dronefleet/httpapi/console"
	"github.com/dronefleet/dronefleet/httpapi/identity"
)

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
		p := problem(http.StatusTemporaryRedirect, "path %.128q is not canonical; use %.128q", escaped, clean)
		p.headers = map[string]string{"Location": location}
		a.refuse(w, r, p)
	})
}
