package httpapi

import (
	"net/http"
	"slices"
	"strings"
)

const (
	corsMethods = "GET, HEAD, PATCH, POST"
	corsHeaders = "Authorization, Content-Type, Last-Event-ID"
	corsExposed = "Retry-After, WWW-Authenticate"
	// corsMaxAge is for how many seconds a browser may remember a preflight.
	corsMaxAge = "600"
)

// shareWith lets the pages of the configured origins read the API's answers
// (Cross-Origin Resource Sharing). It never allows credentials: such a page sends a
// bearer token of its own, and the browser adds neither session nor proxy's cookies. It
// reports whether it has answered the request, which was a preflight.
func (a *API) shareWith(w http.ResponseWriter, r *http.Request) (answered bool) {
	if len(a.access.Origins) == 0 || !strings.HasPrefix(r.URL.Path, "/api/") {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin") // whatever the origin: a cache must not give one's answer to another
	origin := r.Header.Get("Origin")
	preflight := r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
	if preflight {
		h.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
	}
	if origin == "" || len(r.Header.Values("Origin")) != 1 || !slices.Contains(a.access.Origins, Origin(origin)) {
		if preflight {
			a.refuse(w, r, problem(http.StatusForbidden, "requests from pages of %.128q are not allowed; add the origin to --cors-origins", origin))
		}
		return preflight
	}
	h.Set("Access-Control-Allow-Origin", origin)
	if !preflight {
		h.Set("Access-Control-Expose-Headers", corsExposed)
		return false
	}
	h.Set("Access-Control-Allow-Methods", corsMethods)
	h.Set("Access-Control-Allow-Headers", corsHeaders)
	h.Set("Access-Control-Max-Age", corsMaxAge)
	w.WriteHeader(http.StatusNoContent)
	return true
}
