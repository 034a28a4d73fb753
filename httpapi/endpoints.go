package httpapi

import (
	"context"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/dronefleet/dronefleet/httpapi/console"
	"github.com/dronefleet/dronefleet/internal/identity"
)

// fleetEndpoints show and change the fleet.
func (a *API) fleetEndpoints() []endpoint {
	return slices.Concat(
		a.snapshotEndpoints(), []endpoint{a.streamEndpoint()},
		a.orderEndpoints(), a.droneEndpoints(), a.registryEndpoints(), a.missionEndpoints(), a.decisionEndpoints(), a.placeEndpoints(),
		a.alertEndpoints(), a.auditEndpoints(), a.handoverEndpoints(), a.deadLetterEndpoints(), a.messageEndpoints(), a.lockEndpoints(),
		[]endpoint{{method: get, path: "/api/v1/session", role: viewer, requesters: true, summary: "Say who the caller is and which verbs it has.", answer: writes(a.session)}},
	)
}

// consoleEndpoints serve the page for dispatchers. It holds nothing of the fleet, so
// everybody may read it; what it shows comes from the stream.
func (a *API) consoleEndpoints() (endpoints []endpoint) {
	for path, file := range console.Files {
		endpoints = append(endpoints, handling(path, "", console.Handler(file, a.baseMap)))
	}
	endpoints = append(endpoints, handling(console.MapPath, identity.Viewer, http.HandlerFunc(a.baseMap.About)),
		handling(console.OverlayPath, identity.Viewer, http.HandlerFunc(a.baseMap.Overlay)),
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
	handlers := map[string]map[string]http.Handler{} // by path and method
	var paths []string
	for _, e := range table {
		if handlers[e.path] == nil {
			handlers[e.path] = map[string]http.Handler{}
			paths = append(paths, strings.TrimSuffix(e.path, "{$}"))
		}
		handlers[e.path][e.method] = a.serve(e)
	}
	for path, byMethod := range handlers {
		mux.Handle(path, a.methods(byMethod, handlers[path[:strings.LastIndex(path, "/")+1]+"{id}"][get]))
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
			req.now = a.store.Now
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
			for name, value := range answered.headers {
				w.Header().Set(name, value)
			}
			a.write(w, r, answered.status, "application/json", answered.body)
		default:
			a.write(w, r, http.StatusOK, "application/json", answered)
		}
	}))
}

// methods serves a path by the method of a request, and refuses others. entity, if not nil,
// reads one of the entities beside which the path is: that of GET /api/v1/drones/apply may
// have this id.
func (a *API) methods(byMethod map[string]http.Handler, entity http.Handler) http.Handler {
	allowed := slices.Sorted(maps.Keys(byMethod))
	if byMethod[get] != nil {
		allowed = append(allowed, http.MethodHead)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = get
		}
		if h := byMethod[method]; h != nil {
			h.ServeHTTP(w, r)
			return
		}
		if method == get && entity != nil {
			r.SetPathValue("id", path.Base(r.URL.Path))
			entity.ServeHTTP(w, r)
			return
		}
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
