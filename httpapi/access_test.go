package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/apikeys"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/httpapi/ratelimit"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/identity"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/identitytest"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

// log keeps what was logged; it is safe for concurrent use.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// guarded is an API that requires tokens, with its issuer.
type guarded struct {
	*served
	issuer    *identitytest.Issuer
	key       identitytest.Key
	log       *log
	sent      []string // tokens
	lockStore connect.LockStore
	// pubSubVia, if set, is the address by which the API reaches a Pub/Sub server.
	pubSubVia func(server string) string
	access    httpapi.Access
}

// Claims of callers.
var (
	asNobody    = identitytest.Claims{"sub": "nobody-1"}
	asViewer    = identitytest.Claims{"groups": []string{"watch"}}
	asAuditor   = identitytest.Claims{"sub": "eve-1", "groups": []string{"audit"}, "email": "ann@example.org", "email_verified": true} // an operator too
	asRequester = identitytest.Claims{"sub": "ward-1", "groups": []string{"wards"}, "requester": "HOSPITAL-7"}
	asOperator  = identitytest.Claims{"sub": "ann-1", "email": "ann@example.org", "email_verified": true}
)

func newGuarded(t *testing.T, metrics httpapi.MetricsAccess, extend ...func(*guarded, *httpapi.Access)) *guarded {
	t.Helper()
	g := &guarded{key: identitytest.EC(t, "k1"), log: new(log)}
	g.issuer = identitytest.Start(t, g.key)
	logger := slog.New(slog.NewTextHandler(io.MultiWriter(g.log, emutest.Output(t)), &slog.HandlerOptions{Level: slog.LevelDebug}))
	var viewer, auditor, operator, requester identity.Grant
	for grant, text := range map[*identity.Grant]string{&viewer: "groups=watch", &auditor: "groups=audit", &operator: "email=ann@example.org", &requester: "groups=wards"} {
		if err := grant.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	verifier, err := identity.New(identity.Config{
		Issuer: g.issuer.URL, Audiences: []string{identitytest.Audience}, Viewers: []identity.Grant{viewer},
		Auditors: []identity.Grant{auditor}, Operators: []identity.Grant{operator}, Requesters: []identity.Grant{requester}, RequesterClaim: "requester",
		Leeway: time.Minute, Log: logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	access := httpapi.Access{Verifier: verifier, Metrics: metrics}
	for _, more := range extend {
		more(g, &access)
	}
	g.access = access
	hosts := emutest.Hosts(t)
	if g.pubSubVia != nil {
		hosts.PubSubHost = g.pubSubVia(hosts.PubSubHost)
	}
	g.served = serveWithLocks(t, hosts, g.lockStore, access, logger)
	return g
}

func (g *guarded) token(claims identitytest.Claims) string {
	g.t.Helper()
	return g.issuer.Token(g.t, g.key, time.Now(), claims)
}

// answer is the response to a request.
type answer struct {
	body      string
	challenge string
}

// asks sends a request, with a token unless it is empty. It expects a status, and an
// answer (or a problem's detail) that contains every part.
func (g *guarded) asks(token, method, path, body string, status int, parts ...string) answer {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	if token != "" {
		g.sent = append(g.sent, token)
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if method != http.MethodGet {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := g.client.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	if resp.StatusCode != status {
		g.t.Errorf("%s %s: %s, want %d: %s", method, path, resp.Status, status, text)
	}
	said := string(text)
	if resp.StatusCode >= 400 {
		var p httpapi.Problem
		if err := json.Unmarshal(text, &p); err != nil {
			g.t.Errorf("%s %s: %v: %s", method, path, err, text)
		}
		said = p.Detail
	}
	for _, part := range parts {
		if !strings.Contains(said, part) {
			g.t.Errorf("%s %s: answer %s lacks %q", method, path, text, part)
		}
	}
	return answer{string(text), resp.Header.Get("WWW-Authenticate")}
}

// keepsSecrets fails if the log contains a token that was sent, or a part of one.
func (g *guarded) keepsSecrets() {
	g.t.Helper()
	text := g.log.String()
	for _, token := range g.sent {
		for _, part := range strings.Split(strings.TrimPrefix(token, apikeys.Prefix), ".") {
			if len(part) > 20 && strings.Contains(text, part) {
				g.t.Errorf("the log shows a part of a token: %s", part)
			}
		}
	}
}

// statusOf is the status of the answer to a read.
func (g *guarded) statusOf(token, path string) int {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, g.url+path, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := g.client.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// F-API-01
func TestAPI_RequiresViewerToReadAndOperatorToChange(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	g.order("O1")
	nobody, viewer, operator := g.token(asNobody), g.token(asViewer), g.token(asOperator)
	const hold, body = "/api/v1/orders/O1/hold", `{"reason": "x"}`

	if err := pubsubio.Ensure(t.Context(), g.clients.PubSub); err != nil { // for readiness
		t.Fatal(err)
	}
	var open, reads, changes int
	for _, e := range g.api.Endpoints() {
		path := strings.ReplaceAll(e.Path, "{id}", "O1")
		switch {
		case e.Role == "": // for probes, Prometheus and tools
			open++
			g.asks("", e.Method, path, "", 200)
		case e.Method == http.MethodGet:
			reads++
			if a := g.asks("", "GET", path, "", 401, "send one header"); a.challenge != `Bearer realm="dronefleet"` {
				t.Errorf("%s: challenge %q", path, a.challenge)
			}
			a := g.asks(nobody, "GET", path, "", 403, "subject nobody-1 lacks the required role viewer")
			if a.challenge != `Bearer realm="dronefleet", error="insufficient_scope", error_description="role viewer is missing"` {
				t.Errorf("%s: challenge %q", path, a.challenge)
			}
		default:
			changes++
			g.asks("", e.Method, path, body, 401)
			g.asks(nobody, e.Method, path, body, 403, "role operator")
			g.asks(viewer, e.Method, path, body, 403, "subject subject-1 lacks the required role operator")
			if path == "/api/v1/orders" || path == "/api/v1/orders/O1" {
				continue // to read, too
			}
			if path == "/api/v1/drones/apply" { // to read, it is the drone with the id apply
				g.asks(operator, "GET", path, "", 404, "drones apply: not found")
			} else {
				g.asks(operator, "GET", path, "", 405, "use POST")
			}
		}
	}
	if open != 4 || reads < 11 || changes < 6 {
		t.Errorf("the API has %d open paths, %d to read and %d to change", open, reads, changes)
	}
	if o, err := g.store.Order(t.Context(), "O1"); err != nil || o.Held {
		t.Errorf("changed without authentication: %+v, %v", o, err)
	}
	g.asks(viewer, "GET", "/api/v1/orders/O1", "", 200, `"O1"`)
	g.asks(operator, "GET", "/api/v1/orders/O1", "", 200, `"O1"`)
	g.asks(operator, "POST", hold, body, 200, "ann@example.org")

	a := g.asks("mellon", "GET", "/api/v1/drones", "", 401, "invalid token")
	if !strings.HasPrefix(a.challenge, `Bearer realm="dronefleet", error="invalid_token", error_description="`) {
		t.Errorf("challenge %q", a.challenge)
	}
	g.asks(g.token(identitytest.Claims{"aud": "x", "email": `"`}), "GET", "/api/v1/drones", "", 401, "audience")
	g.keepsSecrets()
	if text := g.log.String(); !strings.Contains(text, `operator=ann@example.org command="orders hold" id=O1 reason=x`) || !strings.Contains(text, "HTTP request rejected") {
		t.Error("the log does not say who did what")
	}
}

func TestAPI_RestrictsMetrics(t *testing.T) {
	viewers := newGuarded(t, httpapi.MetricsViewer)
	viewers.asks("", "GET", "/metrics", "", 401)
	viewers.asks(viewers.token(asNobody), "GET", "/metrics", "", 403, "role viewer")
	viewers.asks(viewers.token(asViewer), "GET", "/metrics", "", 200)
	viewers.asks("", "GET", "/healthz", "", 200)
	off := newGuarded(t, httpapi.MetricsOff)
	off.asks(off.token(asOperator), "GET", "/metrics", "", 404)
}

// F-API-01: metrics are closed unless somebody opens them.
func TestAPI_KeepsMetricsOnThisMachine(t *testing.T) {
	api := httpapi.New(httpapi.Config{Meter: meter.New(), Log: emutest.Log(t)})
	for name, c := range map[string]struct {
		remote, forwarded string
		want              int
	}{
		"a collector beside it":  {"127.0.0.1:4711", "", http.StatusOK},
		"on IPv6":                {"[::1]:4711", "", http.StatusOK},
		"another machine":        {"10.0.0.7:4711", "", http.StatusForbidden},
		"a proxy beside it":      {"127.0.0.1:4711", "X-Forwarded-For: 203.0.113.1", http.StatusForbidden},
		"another proxy":          {"127.0.0.1:4711", "Forwarded: for=203.0.113.1", http.StatusForbidden},
		"one that is like nginx": {"127.0.0.1:4711", "X-Real-Ip: 203.0.113.1", http.StatusForbidden},
		"an unknown address":     {"@", "", http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "http://localhost/metrics", nil)
			r.RemoteAddr = c.remote
			if name, value, is := strings.Cut(c.forwarded, ": "); is {
				r.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			api.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("%d, want %d: %.200s", w.Code, c.want, w.Body)
			}
		})
	}
}

// F-API-01, F-API-10: while no token can be verified, callers with tokens are limited by their
// address, and the log has a line a second.
func TestAPI_LimitsCallersWhileIssuerIsDown(t *testing.T) {
	_, limits := limited(ratelimit.Config{Reads: 2})
	g := newGuarded(t, httpapi.MetricsOpen, limits)
	g.issuer.SetDown(true)
	began := time.Now()
	answered := map[int]int{}
	for i := range 500 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/api/v1/drones", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", fmt.Sprintf("Bearer a.b%d.c", i))
		resp, err := g.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		answered[resp.StatusCode]++
	}
	lines := strings.Count(g.log.String(), "HTTP request failed")
	if answered[http.StatusServiceUnavailable] != 20 || answered[http.StatusTooManyRequests] != 480 {
		t.Errorf("answered %v, want 20 times 503 and then 429", answered)
	}
	if most := 1 + int(time.Since(began)/time.Second); lines < 1 || lines > most {
		t.Errorf("%d lines logged, want 1 to %d:\n%s", lines, most, g.log)
	}
}

// F-API-10: a rejected request counts for its address even on a path without a limit, and
// the log has one line of each kind a second.
func TestAPI_LimitsRejectedRequestsOnEveryPath(t *testing.T) {
	for _, path := range []string{"/console/map.json", "/console/map.pmtiles", "/api/v1/stream", "/nowhere"} {
		_, limits := limited(ratelimit.Config{Reads: 2})
		g := newGuarded(t, httpapi.MetricsOpen, limits)
		answered := map[int]int{}
		began := time.Now()
		for range 100 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if path == "/nowhere" {
				req.Host = "evil.example.org"
			}
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			answered[resp.StatusCode]++
		}
		if answered[http.StatusTooManyRequests] != 80 {
			t.Errorf("%s: answered %v, want 80 times 429", path, answered)
		}
		if lines, most := strings.Count(g.log.String(), "HTTP request rejected"), 1+int(time.Since(began)/time.Second); lines < 1 || lines > most {
			t.Errorf("%s: %d lines logged, want 1 to %d:\n%s", path, lines, most, g.log)
		}
	}
}

// F-API-01: a token without end has no answer in JSON.
func TestAPI_RejectsTokensWithTimesBeyondJSON(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	for _, exp := range []string{"1e18", "1e30", "253402300799"} {
		token := g.token(identitytest.Claims{"groups": []string{"watch"}, "exp": json.RawMessage(exp)})
		g.asks(token, "GET", "/api/v1/session", "", http.StatusUnauthorized, "claim exp is "+exp+", which is out of range")
	}
	g.asks(g.token(identitytest.Claims{"groups": []string{"watch"}, "exp": json.RawMessage("253370764799")}), "GET", "/api/v1/session", "", http.StatusOK, "9999-01-01T00:00:59Z")
}

// F-API-10: a subject that looks like another caller's email or network address has budgets of its
// own.
func TestAPI_LimitsCallersByIssuerAndSubject(t *testing.T) {
	_, limits := limited(ratelimit.Config{Reads: 0.2})
	g := newGuarded(t, httpapi.MetricsOpen, limits)
	ann := g.token(asOperator)
	for _, subject := range []string{"ann@example.org", "address 127.0.0.1"} {
		eve := g.token(identitytest.Claims{"sub": subject, "groups": []string{"watch"}})
		for range 2 {
			g.asks(eve, "GET", "/api/v1/drones", "", http.StatusOK)
		}
		g.asks(eve, "GET", "/api/v1/drones", "", http.StatusTooManyRequests, "has exceeded the read limit", "subject ")
	}
	g.asks(ann, "GET", "/api/v1/drones", "", http.StatusOK)
	g.asks("", "GET", "/api/v1/drones", "", http.StatusUnauthorized)
}

func TestAPI_Answers503WhileIssuerIsDown(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	g.issuer.SetDown(true)
	g.asks("", "GET", "/healthz", "", 200)
	g.asks(g.token(asViewer), "GET", "/api/v1/drones", "", 503, g.issuer.URL, "no token can be verified")
	g.asks("", "GET", "/api/v1/drones", "", 401)
	g.keepsSecrets()
}

// F-API-01: without an issuer the API is read-only.
func TestAPI_IsReadOnlyWithoutIssuer(t *testing.T) {
	serve(t).refused("POST", "/api/v1/orders/O1/hold", 403, "changes require authentication", "--oidc-issuer")
}

// paths are some of each kind: data, the console, its files, metrics, readiness, what does
// not exist, and what is redirected.
var paths = []string{"/api/v1/drones", "/api/openapi.json", "/", "/console/console.js", "/metrics", "/readyz", "/nowhere", "/api//v1/drones", "/x/../healthz"}

// F-API-01: a web page cannot read the fleet by pointing a name of its own at the API, with
// or without credentials.
func TestAPI_AnswersOnlyItsOwnHosts(t *testing.T) {
	hosts := func(access *httpapi.Access) {
		access.Hosts = []httpapi.Host{"fleet.example.org", "*.run.app", "10.9.8.7"}
	}
	open := httpapi.Access{Metrics: httpapi.MetricsOpen}
	hosts(&open)
	apis := map[string]*served{
		"without credentials": serveFor(t, emutest.Hosts(t), open, emutest.Log(t)),
		"with tokens":         newGuarded(t, httpapi.MetricsOpen, func(_ *guarded, access *httpapi.Access) { hosts(access) }).served,
	}
	asks := func(s *served, host, path string) (status int, detail string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	for kind, s := range apis {
		for _, host := range []string{
			"localhost", "LOCALHOST:99", "localhost.", "127.0.0.1:99", "[::1]:99", "127.8.8.8",
			"fleet.example.org", "Fleet.Example.org:8443", "fleet.example.org.", "statemanager-1234.run.app", "a.b.run.app", "10.9.8.7:8080",
		} {
			for _, path := range paths {
				if status, text := asks(s, host, path); strings.Contains(text, "not served here") {
					t.Errorf("%s, host %q, path %s: %d %s", kind, host, path, status, text)
				}
			}
		}
		for _, host := range []string{
			"evil.example.org", "localhost.evil.example.org:80", "10.0.0.1", "0.0.0.0", "evilrun.app", "run.app", "fleet.example.org.evil.org", "xfleet.example.org", "evil.localhost",
			"127.0.0.1.evil.org", "[::2]", "fleet.example.org:80:80", ":80",
		} {
			for _, path := range paths {
				if status, text := asks(s, host, path); status != 403 || !strings.Contains(text, "not served here; use localhost, or add the host to --http-hosts") {
					t.Errorf("%s, host %q, path %s: %d %s", kind, host, path, status, text)
				}
			}
			if status, text := asks(s, host, "/healthz"); status != 200 {
				t.Errorf("%s, host %q: /healthz: %d %s", kind, host, status, text)
			}
		}
	}
}

// F-API-01: a probe names the address of its pod.
func TestAPI_AnswersTheAddressAtWhichItIsAsked(t *testing.T) {
	api := httpapi.New(httpapi.Config{Access: httpapi.Access{Metrics: httpapi.MetricsOpen}, Meter: meter.New(), Log: emutest.Log(t)})
	for host, want := range map[string]int{"": 403, "10.1.2.3:8080": 200, "10.1.2.3": 200, "10.1.2.4:8080": 403, "pod.example.org": 403} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host = host
		local := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 8080}
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local))))
		if w.Code != want {
			t.Errorf("host %s: %d, want %d: %s", host, w.Code, want, w.Body)
		}
	}
}

// F-API-01: where no credentials are asked for, a page of another site cannot even send
// requests: it would use up the streams and reads of its reader's address.
func TestAPI_RefusesPagesOfOtherSitesWithoutCredentials(t *testing.T) {
	s := serveFor(t, emutest.Hosts(t), httpapi.Access{Metrics: httpapi.MetricsOpen, Origins: []httpapi.Origin{board}}, emutest.Log(t))
	const site, origin = "Sec-Fetch-Site", "Origin"
	link := []string{site, "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	for name, c := range map[string]struct {
		path    string
		headers []string
		refused bool
	}{
		"a page of another site":          {"/api/v1/drones", []string{site, "cross-site"}, true},
		"another page of this machine":    {"/api/v1/drones", []string{site, "same-site", origin, "http://localhost:3000"}, true},
		"an older browser":                {"/api/v1/drones", []string{origin, "https://evil.org"}, true},
		"a page without an origin":        {"/api/v1/drones", []string{origin, "null"}, true},
		"its stream":                      {"/api/v1/stream", []string{site, "cross-site"}, true},
		"its look at metrics":             {"/metrics", []string{site, "cross-site"}, true},
		"its script tag for the console":  {"/console/console.js", []string{site, "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}, true},
		"a frame with the console":        {"/", []string{site, "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, true},
		"a link to data":                  {"/api/v1/drones", link, true},
		"a link to the console":           {"/", link, false},
		"the console":                     {"/api/v1/drones", []string{site, "same-origin"}, false},
		"a person who types the address":  {"/api/v1/drones", []string{site, "none"}, false},
		"a page of a configured origin":   {"/api/v1/drones", []string{site, "cross-site", origin, board}, false},
		"a script":                        {"/api/v1/drones", nil, false},
		"a probe, whatever it says it is": {"/healthz", []string{site, "cross-site"}, false},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(c.headers); i += 2 {
			req.Header.Set(c.headers[i], c.headers[i+1])
		}
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if refused := resp.StatusCode == http.StatusForbidden; refused != c.refused || !refused && resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s, want refused %v", name, resp.Status, c.refused)
		}
	}
}

func TestHost_AcceptsNamesAndAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"fleet.example.org": "fleet.example.org", "Fleet.Example.ORG": "fleet.example.org", "statemanager": "statemanager", "*.run.app": "*.run.app",
		"10.1.2.3": "10.1.2.3", "[2001:DB8::1]": "2001:db8::1", "2001:db8:0::1": "2001:db8::1", "xn--bcher-kva.example": "xn--bcher-kva.example",
		"": "", "*": "", "*.": "", "*.app": "", "fleet.*": "", "a.*.org": "", "https://fleet.example.org": "", "fleet.example.org:8080": "", "fleet.example.org/": "",
		"fleet.example.org.": "", ".example.org": "", "fe80::1%eth0": "", "bücher.example": "", "a b": "", "-a.org": "",
	} {
		var h httpapi.Host
		if err := h.UnmarshalText([]byte(text)); string(h) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, h, err, want)
		}
	}
}

func TestCheckOpenAddress_RefusesReachableAddresses(t *testing.T) {
	for addr, fine := range map[string]bool{
		"127.0.0.1:8080": true, "localhost:8080": true, "[::1]:0": true, "127.1.2.3:1": true,
		"0.0.0.0:8080": false, ":8080": false, "[::]:8080": false, "10.1.2.3:8080": false, "fleet.example.org:80": false, "[fe80::1]:80": false,
	} {
		err := httpapi.CheckOpenAddress(addr)
		if fine != (err == nil) || err != nil && !strings.Contains(err.Error(), "--insecure-http") {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// order creates an order.
func (s *served) order(id domain.OrderID) {
	s.t.Helper()
	err := s.store.IngestOrder(s.t.Context(), domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{
		Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: domain.Position{Lat: 48.86, Lon: 2.36},
	}}, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
}

// events lists the causes and reasons of an order's events.
func (g *guarded) events(id string) (texts []string) {
	g.t.Helper()
	events, err := g.store.EventsOf(g.t.Context(), "orderId", id)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, e := range events.Items {
		texts = append(texts, string(e.Cause)+" "+e.Reason)
	}
	return texts
}

// F-ORD-04: a repeated command succeeds and changes nothing; the audit names the
// operator who sent the first.
func TestAPI_HoldsReleasesAndCancelsOrders(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	g.order("O1")
	ann := g.token(asOperator)
	for range 2 {
		g.asks(ann, "POST", "/api/v1/orders/O1/hold", `{"reason": "address in doubt"}`, 200, `"heldReason":"address in doubt (by ann@example.org)"`)
	}
	if n := len(g.events("O1")); n != 2 { // new, held
		t.Errorf("%d events: %q", n, g.events("O1"))
	}
	for range 2 {
		a := g.asks(ann, "POST", "/api/v1/orders/O1/release", `{"reason": "resolved"}`, 200, `"status":"PENDING"`)
		if strings.Contains(a.body, "heldReason") {
			t.Errorf("still held: %s", a.body)
		}
	}
	for range 2 {
		g.asks(ann, "POST", "/api/v1/orders/O1/cancel", `{"reason": "obsolete"}`, 200, `"status":"CANCELLED"`)
	}
	events := g.events("O1")
	if len(events) != 4 || events[len(events)-1] != "OPERATOR obsolete (by ann@example.org)" {
		t.Errorf("events %q", events)
	}
	g.asks(ann, "POST", "/api/v1/orders/O1/hold", `{"reason": "too late"}`, 409, "NOT_PENDING")
	g.asks(ann, "POST", "/api/v1/orders/O1/release", `{"reason": "too late"}`, 409, "NOT_HELD")
	for _, command := range []string{"hold", "release", "cancel"} {
		g.asks(ann, "POST", "/api/v1/orders/O9/"+command, `{"reason": "x"}`, 404, "O9")
	}
}

// L-END-03: an operator breaks the lock of a holder that does not let it expire.
func TestAPI_BreaksLocks(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	locks, err := g.clients.Locks(simclock.Real(), emutest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	held, err := locks.Acquire(t.Context(), lock.AcquireRequest{Key: "optimizer:cycle:DEPOT-1", TTL: time.Hour})
	if err != nil || !held.OK {
		t.Fatal(held, err)
	}
	ann := g.token(asOperator)
	const path, body = "/api/v1/locks/break", `{"key": "optimizer:cycle:DEPOT-1", "reason": "its clock is ahead"}`
	g.asks(ann, "POST", path, `{"key": "", "reason": ""}`, 400, "key is empty", "reason is blank")
	g.asks(ann, "POST", path, `{"key": "a/b", "reason": "x"}`, 400, "key \"a/b\" is invalid")
	g.asks(ann, "POST", path, body, 200, `"broken":true`, string(held.Fence))
	g.asks(ann, "POST", path, body, 200, `"broken":false`)
	if is, err := locks.IsLocked(t.Context(), "optimizer:cycle:DEPOT-1"); is || err != nil {
		t.Errorf("still held: %v, %v", is, err)
	}
	breaks, err := g.store.LockBreaks(t.Context())
	if err != nil || len(breaks) != 1 || breaks[0].BrokenBy != "ann@example.org" || breaks[0].Why != "its clock is ahead" {
		t.Errorf("on record: %+v, %v", breaks, err)
	}
	if err := locks.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// L-END-03, F-API-04: locks in Redis are listed and broken like others. While Redis is
// down the API says so, and shows no password.
func TestAPI_LocksInAStoreOfTheirOwn(t *testing.T) {
	server := storeserver.Redis(t)
	g := newGuarded(t, httpapi.MetricsOpen, func(g *guarded, _ *httpapi.Access) {
		var err error
		if g.lockStore, err = connect.ParseLockStore(server.URL); err != nil {
			t.Fatal(err)
		}
	})
	held, err := g.locks.Acquire(t.Context(), lock.AcquireRequest{Key: "optimizer:cycle:DEPOT-1", TTL: time.Hour})
	if err != nil || !held.OK {
		t.Fatal(held, err)
	}
	ann := g.token(asOperator)
	const list, path, body = "/api/v1/locks", "/api/v1/locks/break", `{"key": "optimizer:cycle:DEPOT-1", "reason": "its holder hangs"}`
	g.asks(ann, "GET", list, "", 200, string(held.Fence))
	g.asks(ann, "POST", path, `{"key": "id:`+held.LockID+`", "reason": "x"}`, 400, "looks like an entry of the id index")
	g.asks(ann, "POST", path, body, 200, `"broken":true`, string(held.Fence))
	g.asks(ann, "GET", list, "", 200, `"locks":[]`)
	server.Kill()
	g.asks(ann, "GET", list, "", 503, "try again")
	g.asks(ann, "POST", path, body, 503, "try again")
}

// F-API-05: operators apply and delete places over HTTP, under their own names; a body
// with a mistake names it and changes nothing.
func TestAPI_AppliesAndDeletesPlaces(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	ann := g.token(asOperator)
	const depots, body = "/api/v1/depots/apply", `{"reason": "first", "depots": [{"id": "NORTH", "position": {"lat": 48.5, "lon": 2}, "capacity": 3}]}`
	g.asks(ann, "POST", depots, `{"reason": "", "depots": [{"id": "a/b", "position": {"lat": 99, "lon": 2}, "colour": 1}]}`, 400,
		"reason is blank", `depots 1: "colour" is not a field`, `depots 1: id "a/b" contains`, "depots 1: position.lat is 99; give -90 to 90")
	g.asks(ann, "POST", depots, `{"reason": "x"}`, 400, "has no depots")
	g.asks(ann, "POST", depots, strings.Replace(body, "{", `{"dryRun": true, `, 1), 200, `"action":"CREATED"`, `"dryRun":true`)
	g.asks(ann, "GET", "/api/v1/depots", "", 200, `"depots":[]`)
	g.asks(ann, "POST", depots, body, 200, `"action":"CREATED"`, `capacity: none -\u003e 3`)
	g.asks(ann, "POST", depots, body, 200, `"action":"UNCHANGED"`)
	g.asks(ann, "GET", "/api/v1/depots", "", 200, `"id":"NORTH"`, `"capacity":3`)
	g.asks(ann, "POST", "/api/v1/warehouses/apply", `{"reason": "x", "warehouses": [{"id": "W", "position": {"lat": 1, "lon": 2}, "authorizedProductTypes": ["BLOOD"]}]}`, 200, "CREATED")
	g.asks(ann, "GET", "/api/v1/warehouses", "", 200, `"authorizedProductTypes":["BLOOD"]`)
	g.order("O1")
	g.asks(ann, "POST", "/api/v1/depots/NORTH/delete", `{"reason": "closed"}`, 409, "used by order O1")
	g.asks(ann, "POST", "/api/v1/warehouses/W/delete", `{"reason": "closed"}`, 200, "DELETED")
	g.asks(ann, "POST", "/api/v1/warehouses/W/delete", `{"reason": "closed"}`, 404, "no such warehouse")
	changes, err := g.store.PlaceChanges(t.Context())
	if err != nil || len(changes) != 3 {
		t.Fatalf("on record: %+v, %v", changes, err)
	}
	for _, c := range changes {
		if c.ChangedBy != "ann@example.org" {
			t.Errorf("on record: %+v", c)
		}
	}
}

// F-TEL-08
func TestAPI_ClearsEmergencies(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	for _, err := range g.store.NewTelemetryApplier().Apply(t.Context(), []domain.Telemetry{{
		DroneID: "D1", Timestamp: time.Now().Add(-time.Second), Position: domain.Position{Lat: 48, Lon: 2}, Battery: 80, Status: domain.DroneEmergency,
	}}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	ann := g.token(asOperator)
	for range 2 {
		g.asks(ann, "POST", "/api/v1/drones/D1/clear", `{"reason": "inspected"}`, 200, `"status":"UNKNOWN"`)
	}
	for range 2 { // F-OPR-01
		g.asks(ann, "POST", "/api/v1/drones/D1/ground", `{"reason": "rotor"}`, 200, `"grounded":true`)
	}
	for range 2 {
		g.asks(ann, "POST", "/api/v1/drones/D1/release", `{"reason": "replaced"}`, 200, `"status":"UNKNOWN"`)
	}
	for range 2 { // F-OPR-04
		g.asks(ann, "POST", "/api/v1/alerts/acknowledge", `{"id": "GHOST:D1", "reason": "seen"}`, 200, `"reason":"seen"`)
	}
	g.asks(ann, "POST", "/api/v1/alerts/acknowledge", `{"id": "D1", "reason": "seen"}`, 400, "is not an alert's id")
	g.asks(ann, "POST", "/api/v1/orders/O9/priority", `{"priority": "HIGH", "reason": "ward"}`, 404, "no such order") // F-OPR-03
	g.asks(ann, "POST", "/api/v1/orders/O9/priority", `{"priority": "high", "reason": "ward"}`, 400, "CRITICAL")
	g.asks(ann, "POST", "/api/v1/orders/O9/deadline", `{"deadline": "2126-11-21T12:00:00Z", "reason": "ward"}`, 404, "no such order")
	g.asks(ann, "POST", "/api/v1/orders/O9/deadline", `{"deadline": "tomorrow", "reason": "ward"}`, 400, "give a time")
	g.order("O1") // F-OPR-05
	for range 2 {
		g.asks(ann, "POST", "/api/v1/orders/O1/pin", `{"droneId": "D1", "reason": "trained"}`, 200, `"pinnedDroneId":"D1"`)
	}
	g.asks(ann, "POST", "/api/v1/orders/O1/forbid", `{"droneId": "D1", "reason": "noise"}`, 409, "DRONE_PINNED", "orders unpin")
	g.asks(ann, "POST", "/api/v1/orders/O1/pin", `{"droneId": "D9", "reason": "trained"}`, 409, "no drone D9")
	g.asks(ann, "POST", "/api/v1/orders/O1/pin", `{"reason": "trained"}`, 400, "droneId")
	g.asks(ann, "POST", "/api/v1/orders/O9/pin", `{"droneId": "D1", "reason": "trained"}`, 404, "no such order")
	for range 2 {
		if a := g.asks(ann, "POST", "/api/v1/orders/O1/unpin", `{"reason": "landed"}`, 200); strings.Contains(a.body, "pinnedDroneId") {
			t.Errorf("still pinned: %s", a.body)
		}
		g.asks(ann, "POST", "/api/v1/orders/O1/forbid", `{"droneId": "D1", "reason": "noise"}`, 200, `"forbiddenDroneIds":["D1"]`)
	}
	if a := g.asks(ann, "POST", "/api/v1/orders/O1/allow", `{"droneId": "D1", "reason": "quiet"}`, 200); strings.Contains(a.body, "forbiddenDroneIds") {
		t.Errorf("still forbidden: %s", a.body)
	}
	g.asks(ann, "POST", "/api/v1/drones/D9/clear", `{"reason": "inspected"}`, 404, "no such drone")
}

// F-DLQ-01
func TestAPI_ListsReplayedLettersWhenAReplayFails(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	if err := pubsubio.Ensure(t.Context(), g.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	publisher := pubsubio.NewPublisher(g.clients.PubSub)
	defer publisher.Stop()
	for id, bytes := range map[string]string{"m1": "", "m2": "9"} { // the second is incomplete
		attrs := map[string]string{pubsubio.AttrMessageID: id, pubsubio.AttrDataBytes: bytes}
		if _, err := publisher.Publish(t.Context(), pubsubio.DeadLetterTopic(pubsubio.TopicOrders), []byte("{not"), attrs, "").Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	answer := g.asks(g.token(asOperator), "POST", "/api/v1/deadletters/replay", `{"topic": "orders"}`, 409, "message m2", "only the first 4 of 9 bytes")
	var problem struct {
		Replay struct {
			Replayed    int
			DeadLetters []struct {
				MessageID string
				Replayed  bool
			}
		}
	}
	if err := json.Unmarshal([]byte(answer.body), &problem); err != nil {
		t.Fatal(err)
	}
	if problem.Replay.Replayed != 1 || len(problem.Replay.DeadLetters) != 2 {
		t.Fatalf("answered %s", answer.body)
	}
	for _, l := range problem.Replay.DeadLetters {
		if l.Replayed != (l.MessageID == "m1") {
			t.Errorf("letter %+v", l)
		}
	}
}

// F-DLQ-01
func TestAPI_ReplaysDeadLettersOnce(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	ann := g.token(asOperator)
	const replay = "/api/v1/deadletters/replay"
	g.asks(ann, "POST", replay, `{"topic": "missions", "limit": -1, "ids": [""]}`, 400, "topic is", "telemetry, orders, decisions or links", "limit is -1", "ids has an empty entry")
	if err := pubsubio.Ensure(t.Context(), g.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	publisher := pubsubio.NewPublisher(g.clients.PubSub)
	defer publisher.Stop()
	_, err := publisher.Publish(t.Context(), pubsubio.DeadLetterTopic(pubsubio.TopicOrders), []byte("{not json"), map[string]string{
		pubsubio.AttrTopic: pubsubio.TopicOrders, pubsubio.AttrMessageID: "m1", pubsubio.AttrReason: "UNDECODABLE",
	}, "").Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// An empty selection must not select all.
	for body, part := range map[string]string{
		`{"ids": []}`: "ids is an empty list", `{"topic": ""}`: "topic is", `{"topic": "orders", "reason": ""}`: "reason is empty",
		`null`: "not an object", `["m1"]`: "not an object",
		`{}`: "all is not set", `{"limit": 5}`: "all is not set", `{"all": true, "ids": ["m1"]}`: "set one or the other", `{"all": true, "dryRun": true, "topic": "orders"}`: "set one or the other",
	} {
		g.asks(ann, "POST", replay, body, 400, part)
	}
	named := func(n int) string { return `{"dryRun": true, "ids": ["m1"` + strings.Repeat(`, "x"`, n-1) + `]}` }
	g.asks(ann, "POST", replay, named(1001), 400, "ids has 1001 entries; give at most 1000")
	g.asks(ann, "POST", replay, named(1000), 200, `"messageId":"m1"`)
	g.asks(ann, "POST", replay, `{"dryRun": true}`, 200, `"messageId":"m1"`, `"replayed":0`, `"missing":[]`)
	g.asks(ann, "POST", replay, `{"ids": ["m1"]}`, 200, `"messageId":"m1"`, `"newMessageId":"`, `"replayed":1`, `"missing":[]`)
	g.asks(ann, "POST", replay, `{"all": true}`, 200, `"replayed":0`)
	g.asks(ann, "POST", replay, `{"ids": ["m1"]}`, 200, `"deadLetters":[]`, `"replayed":0`, `"missing":["m1"]`)

	_, err = publisher.Publish(t.Context(), pubsubio.DeadLetterTopic(pubsubio.TopicOrders), []byte("{not"), map[string]string{
		pubsubio.AttrMessageID: "m2", pubsubio.AttrReason: "UNDECODABLE", pubsubio.AttrDataBytes: "9",
	}, "").Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	refused := g.asks(ann, "POST", replay, `{"ids": ["m2"]}`, 409, "message m2", "only the first 4 of 9 bytes")
	if strings.Contains(refused.body, `"replay":`) {
		t.Errorf("nothing was replayed: %s", refused.body)
	}
	g.asks(ann, "POST", replay, `{"ids": ["m2"], "dryRun": true}`, 200, `"messageId":"m2"`, `"originalBytes":9`)
}

// F-DLQ-01: a discard needs a selection and a reason, and leaves a record.
func TestAPI_DiscardsDeadLettersOnce(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	ann := g.token(asOperator)
	const discard = "/api/v1/deadletters/discard"
	if err := pubsubio.Ensure(t.Context(), g.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	publisher := pubsubio.NewPublisher(g.clients.PubSub)
	defer publisher.Stop()
	_, err := publisher.Publish(t.Context(), pubsubio.DeadLetterTopic(pubsubio.TopicOrders), []byte("{not json"), map[string]string{
		pubsubio.AttrTopic: pubsubio.TopicOrders, pubsubio.AttrMessageID: "m1", pubsubio.AttrReason: "UNDECODABLE",
	}, "").Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for body, parts := range map[string][]string{
		`{"why": "noise"}`:                                  {"ids is empty", "topic and reason"},
		`{"why": "noise", "limit": 1}`:                      {"ids is empty"},
		`{"why": "noise", "ids": []}`:                       {"ids is an empty list"},
		`{"why": "noise", "topic": "orders", "reason": ""}`: {"reason is empty"},
		`{"why": "noise", "topic": "", "ids": ["m1"]}`:      {"topic is"},
		`{"ids": ["m1"]}`:                                   {"why is blank"},
		`{"topic": "missions"}`:                             {"topic is", "why is blank"},
		`{"ids": ["m1"], "because": ""}`:                    {"because"},
	} {
		g.asks(ann, "POST", discard, body, 400, parts...)
	}
	g.asks(ann, "POST", "/api/v1/deadletters/replay", `{"ids": ["m1"], "why": "noise"}`, 400, "why")
	g.asks(ann, "POST", discard, `{"topic": "orders", "why": "noise", "dryRun": true}`, 200, `"messageId":"m1"`, `"discarded":0`, `"missing":[]`)
	if discards, err := g.store.Discards(t.Context()); err != nil || len(discards) != 0 {
		t.Errorf("recorded by a dry run: %+v, %v", discards, err)
	}
	g.asks(ann, "POST", discard, `{"ids": ["m1"], "why": "noise"}`, 200, `"messageId":"m1"`, `"discarded":true`, `"discarded":1`, `"missing":[]`)
	g.asks(ann, "POST", discard, `{"ids": ["m1"], "why": "noise"}`, 200, `"deadLetters":[]`, `"discarded":0`, `"missing":["m1"]`)
	discards, err := g.store.Discards(t.Context())
	if err != nil || len(discards) != 1 || discards[0].MessageID != "m1" || discards[0].DiscardedBy != "ann@example.org" || discards[0].Why != "noise" {
		t.Errorf("recorded %+v, %v", discards, err)
	}
	if line := g.log.String(); !strings.Contains(line, `command="deadletters discard" dry_run=false discarded=1 why=noise`) {
		t.Errorf("logged %s", line)
	}
}

// F-DLQ-01: a letter that could not be recorded is kept.
func TestAPI_ListsDiscardedLettersWhenADiscardFails(t *testing.T) {
	faults := fault.New(1)
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	g := newGuarded(t, httpapi.MetricsOpen)
	if err := pubsubio.Ensure(t.Context(), g.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	publisher := pubsubio.NewPublisher(g.clients.PubSub)
	defer publisher.Stop()
	for topic, id := range map[string]string{pubsubio.TopicTelemetry: "m1", pubsubio.TopicOrders: "m2"} {
		attrs := map[string]string{pubsubio.AttrMessageID: id, pubsubio.AttrReason: "UNDECODABLE"}
		if _, err := publisher.Publish(t.Context(), pubsubio.DeadLetterTopic(topic), []byte("{not"), attrs, "").Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	faults.Add(fault.Rule{RPC: "Commit", NamePrefix: "discards/orders-m2", Times: 1, Do: fault.Fail(codes.PermissionDenied)})
	const body = `{"reason": "UNDECODABLE", "why": "noise"}`
	answer := g.asks(g.token(asOperator), "POST", "/api/v1/deadletters/discard", body, 503, "record dead letters of orders", "message m2")
	var problem struct {
		Discard struct {
			Discarded   int
			DeadLetters []struct {
				MessageID string
				Discarded bool
			}
		}
	}
	if err := json.Unmarshal([]byte(answer.body), &problem); err != nil {
		t.Fatal(err)
	}
	if problem.Discard.Discarded != 1 || len(problem.Discard.DeadLetters) != 2 {
		t.Errorf("%s", answer.body)
	}
	for _, l := range problem.Discard.DeadLetters {
		if l.Discarded != (l.MessageID == "m1") {
			t.Errorf("letter %+v", l)
		}
	}
	g.asks(g.token(asOperator), "POST", "/api/v1/deadletters/discard", body, 200, `"messageId":"m2"`, `"discarded":1`)
}

// F-API-05: when applying places fails partway, the problem says what was done, what
// failed and what was not tried; the same request again does the rest.
func TestAPI_SaysWhereApplyingPlacesStopped(t *testing.T) {
	faults := fault.New(1)
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	g := newGuarded(t, httpapi.MetricsOpen)
	faults.Add(fault.Rule{RPC: "Commit", NamePrefix: "depots/B", Times: 1, Do: fault.Fail(codes.PermissionDenied)})
	var depots []string
	for _, id := range []string{"A", "B", "C", "D"} {
		depots = append(depots, `{"id": "`+id+`", "position": {"lat": 48, "lon": 2}}`)
	}
	body := `{"reason": "x", "depots": [` + strings.Join(depots, ", ") + `]}`
	answer := g.asks(g.token(asOperator), "POST", "/api/v1/depots/apply", body, 503, "depot B", "not tried: C, D")
	var problem struct{ Apply operator.PlaceChanges }
	if err := json.Unmarshal([]byte(answer.body), &problem); err != nil {
		t.Fatal(err)
	}
	if a := problem.Apply; len(a.Changes) != 1 || a.Changes[0].ID != "A" || a.Failed == nil || a.Failed.ID != "B" || a.Failed.Detail == "" || !slices.Equal(a.NotTried, []string{"C", "D"}) {
		t.Errorf("%s", answer.body)
	}
	if err := json.Unmarshal([]byte(`{"apply": `+g.asks(g.token(asOperator), "POST", "/api/v1/depots/apply", body, 200).body+`}`), &problem); err != nil {
		t.Fatal(err)
	}
	for i, want := range []domain.PlaceAction{domain.PlaceUnchanged, domain.PlaceCreated, domain.PlaceCreated, domain.PlaceCreated} {
		if got := problem.Apply.Changes[i].Action; got != want {
			t.Errorf("again: place %d is %s, want %s", i, got, want)
		}
	}
}
