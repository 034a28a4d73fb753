package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/httpapi/ratelimit"
	"github.com/dronefleet/dronefleet/internal/identity"
	"github.com/dronefleet/dronefleet/internal/meter"
)

// stoppedClock moves when a test says so.
type stoppedClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *stoppedClock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }

func (c *stoppedClock) advance(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.at = c.at.Add(d) }

// limited makes an API limit its callers.
func limited(cfg ratelimit.Config) (*stoppedClock, func(*guarded, *httpapi.Access)) {
	c := &stoppedClock{at: time.Now()}
	return c, func(_ *guarded, access *httpapi.Access) { access.Limiter = ratelimit.New(cfg, c.now) }
}

// F-API-10: reads and commands have budgets of their own, for each caller; a refused
// caller is told how long to wait, and served after that.
func TestAPI_LimitsEachCaller(t *testing.T) {
	clock, limits := limited(ratelimit.Config{Reads: 0.3, Commands: 0.1})
	g := newGuarded(t, httpapi.MetricsOpen, limits)
	g.fleet()
	ann, watch := g.token(asOperator), g.token(asViewer)
	for range 3 {
		g.asks(ann, "GET", "/api/v1/drones", "", http.StatusOK)
	}
	g.asks(ann, "GET", "/healthz", "", http.StatusOK) // probes are not limited
	g.asks(ann, "GET", "/api/v1/orders", "", http.StatusTooManyRequests, "ann@example.org has exceeded the read limit; retry in 4 s", "--rate-reads")
	g.asks(ann, "POST", "/api/v1/orders/O2/hold", `{"reason": "x"}`, http.StatusOK)
	g.asks(ann, "POST", "/api/v1/orders/O2/hold", `{"reason": "x"}`, http.StatusTooManyRequests, "exceeded the command limit; retry in 10 s")
	g.asks(watch, "GET", "/api/v1/drones", "", http.StatusOK)
	clock.advance(10 * time.Second)
	g.asks(ann, "GET", "/api/v1/orders", "", http.StatusOK)
	g.asks(ann, "POST", "/api/v1/orders/O2/release", `{"reason": "x"}`, http.StatusOK)
	var metrics strings.Builder
	req, err := http.NewRequestWithContext(t.Context(), "GET", g.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	page, err := g.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Body.Close()
	if _, err := io.Copy(&metrics, page.Body); err != nil {
		t.Fatal(err)
	}
	for budget, n := range map[string]int{"reads": 1, "commands": 1, "streams": 0} {
		if want := fmt.Sprintf("dronefleet_http_limited_total{budget=%q} %d\n", budget, n); !strings.Contains(metrics.String(), want) {
			t.Errorf("the metrics lack %q", want)
		}
	}
}

// F-API-10: guesses at tokens count for the address, not for those who are signed in.
func TestAPI_LimitsRequestsWithoutCredentialsByAddress(t *testing.T) {
	_, limits := limited(ratelimit.Config{Reads: 0.2})
	g := newGuarded(t, httpapi.MetricsOpen, limits)
	for range 2 {
		g.asks("", "GET", "/api/v1/drones", "", http.StatusUnauthorized)
	}
	g.asks("a.b.c", "GET", "/api/v1/drones", "", http.StatusTooManyRequests, "address 127.0.0.1 has exceeded the read limit")
	g.asks("", "GET", "/api/openapi.json", "", http.StatusTooManyRequests)
	g.asks(g.token(asViewer), "GET", "/api/v1/drones", "", http.StatusOK)
}

// F-API-10: a caller that gives up its stream may open another one.
func TestAPI_LimitsTheStreamsOfACaller(t *testing.T) {
	_, limits := limited(ratelimit.Config{Streams: 1})
	g := newGuarded(t, httpapi.MetricsOpen, limits)
	token := g.token(asViewer)
	open := func(ctx context.Context) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, "GET", g.url+"/api/v1/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := g.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	ctx, leave := context.WithCancel(t.Context())
	first := open(ctx)
	defer first.Body.Close()
	if _, err := bufio.NewReader(first.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	g.asks(token, "GET", "/api/v1/stream", "", http.StatusTooManyRequests, "has reached the limit of open streams")
	g.asks(token, "GET", "/api/v1/drones", "", http.StatusOK)
	leave()
	for { // until the server has noticed
		again := open(t.Context())
		again.Body.Close()
		if again.StatusCode == http.StatusOK {
			break
		}
		if again.StatusCode != http.StatusTooManyRequests || again.Header.Get("Retry-After") != "10" {
			t.Fatalf("%s %v", again.Status, again.Header)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// F-API-10: only what trusted proxies have written into X-Forwarded-For is believed.
func TestAPI_TellsCallersApartByTheAddressThatProxiesSaw(t *testing.T) {
	const behind = "169.254.1.1:4711"
	for name, c := range map[string]struct {
		proxies, remote string
		forwarded       []string
		want            string
	}{
		"no proxy is trusted":                    {"", "198.51.100.9:1", []string{"203.0.113.1"}, "address 198.51.100.9"},
		"a client forges the header":             {"169.254.0.0/16", "198.51.100.9:1", []string{"203.0.113.1"}, "address 198.51.100.9"},
		"a proxy names its client":               {"169.254.0.0/16", behind, []string{"203.0.113.1"}, "address 203.0.113.1"},
		"a client forges entries before":         {"169.254.0.0/16", behind, []string{"10.9.9.9, 169.254.7.7, 203.0.113.1"}, "address 203.0.113.1"},
		"a client forges a header before":        {"169.254.0.0/16", behind, []string{"10.9.9.9", "203.0.113.1"}, "address 203.0.113.1"},
		"a load balancer before the proxy":       {"169.254.0.0/16 34.1.2.3", behind, []string{"10.9.9.9, 203.0.113.1, 34.1.2.3"}, "address 203.0.113.1"},
		"the proxy says nothing":                 {"169.254.0.0/16", behind, nil, "address 169.254.1.1"},
		"an entry that is not an address":        {"169.254.0.0/16", behind, []string{"203.0.113.1, unknown"}, "address 169.254.1.1"},
		"an address of IPv6":                     {"::1", "[::1]:4711", []string{"2001:db8:1:2:3::4"}, "network 2001:db8:1:2::/64"},
		"an address of IPv4 in the form of IPv6": {"::1", "[::1]:4711", []string{"::ffff:203.0.113.1"}, "address 203.0.113.1"},
	} {
		t.Run(name, func(t *testing.T) {
			access := httpapi.Access{Limiter: ratelimit.New(ratelimit.Config{Reads: 0.1}, time.Now)}
			for text := range strings.FieldsSeq(c.proxies) {
				var p httpapi.Proxy
				if err := p.UnmarshalText([]byte(text)); err != nil {
					t.Fatal(err)
				}
				access.Proxies = append(access.Proxies, p)
			}
			api := httpapi.New(httpapi.Config{Access: access, Meter: meter.New()})
			var last *httptest.ResponseRecorder
			for range 2 {
				r := httptest.NewRequest(http.MethodGet, "http://localhost/api/openapi.json", nil)
				r.RemoteAddr = c.remote
				r.Header["X-Forwarded-For"] = c.forwarded
				last = httptest.NewRecorder()
				api.ServeHTTP(last, r)
			}
			if last.Code != http.StatusTooManyRequests || !strings.Contains(last.Body.String(), `"`+c.want+" has exceeded the read limit") {
				t.Errorf("%d %s, want %s", last.Code, last.Body, c.want)
			}
		})
	}
}

func TestProxy_RefusesWhatIsNoAddress(t *testing.T) {
	for _, text := range []string{"", "proxy.example.org", "10.0.0.1/8", "10.0.0.0/33", "fe80::1%eth0", "*"} {
		var p httpapi.Proxy
		if err := p.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted as %s", text, p)
		}
	}
}

const board = "https://board.example.org"

func sharing(_ *guarded, access *httpapi.Access) { access.Origins = []httpapi.Origin{board} }

// asksFrom sends a request of a page of an origin.
func (g *guarded) asksFrom(origin, token, method, path string, status int, headers ...string) http.Header {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Origin", origin)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := g.client.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != status {
		g.t.Errorf("%s %s of %s: %s, want %d", method, path, origin, resp.Status, status)
	}
	if resp.Header.Get("Access-Control-Allow-Credentials") != "" {
		g.t.Errorf("%s %s of %s allows credentials", method, path, origin)
	}
	return resp.Header
}

// F-API-11
func TestAPI_SharesAnswersWithConfiguredOriginsOnly(t *testing.T) {
	const allowed, preflight = "Access-Control-Allow-Origin", "Access-Control-Request-Method"
	closed, g := newGuarded(t, httpapi.MetricsOpen), newGuarded(t, httpapi.MetricsOpen, sharing)
	token := g.token(asViewer)
	if h := closed.asksFrom(board, closed.token(asViewer), "GET", "/api/v1/drones", http.StatusOK); h.Get(allowed) != "" || h.Get("Vary") != "" {
		t.Errorf("shared without a setting: %v", h)
	}
	closed.asksFrom(board, "", "OPTIONS", "/api/v1/drones", http.StatusMethodNotAllowed, preflight, "GET")
	for _, path := range []string{"/api/v1/drones", "/api/openapi.json", "/api/v1/stream"} {
		if h := g.asksFrom(board, token, "GET", path, http.StatusOK); h.Get(allowed) != board || h.Get("Vary") != "Origin" || h.Get("Access-Control-Expose-Headers") == "" {
			t.Errorf("%s is not shared: %v", path, h)
		}
	}
	if h := g.asksFrom(board, "", "GET", "/api/v1/drones", http.StatusUnauthorized); h.Get(allowed) != board {
		t.Errorf("the page cannot read why: %v", h)
	}
	h := g.asksFrom(board, "", "OPTIONS", "/api/v1/orders/O1/hold", http.StatusNoContent, preflight, "POST", "Access-Control-Request-Headers", "authorization, content-type")
	if h.Get(allowed) != board || h.Get("Access-Control-Allow-Methods") != "GET, HEAD, PATCH, POST" || h.Get("Access-Control-Max-Age") != "600" ||
		!strings.Contains(h.Get("Access-Control-Allow-Headers"), "Authorization, Content-Type") || !strings.HasPrefix(h.Values("Vary")[0], "Origin") {
		t.Errorf("preflight: %v", h)
	}
	for _, origin := range []string{
		"https://board.example.org.evil.org", "http://board.example.org", "https://board.example.org:8443", "https://BOARD.example.org", "https://evil.org", "null", "*",
	} {
		if h := g.asksFrom(origin, token, "GET", "/api/v1/drones", http.StatusOK); h.Get(allowed) != "" || h.Get("Vary") != "Origin" {
			t.Errorf("%s: %v", origin, h)
		}
		if h := g.asksFrom(origin, "", "OPTIONS", "/api/v1/drones", http.StatusForbidden, preflight, "GET"); h.Get(allowed) != "" {
			t.Errorf("preflight of %s: %v", origin, h)
		}
	}
	for _, path := range []string{"/", "/metrics", "/healthz"} {
		if h := g.asksFrom(board, "", "GET", path, http.StatusOK); h.Get(allowed) != "" {
			t.Errorf("%s is shared: %v", path, h)
		}
	}
}

// F-API-11: an origin that may read answers must not use a browser's session: its page could make
// changes that the browser's user did not ask for.
func TestAPI_RefusesChangesOfOtherOriginsWithASession(t *testing.T) {
	s := newSite(t, identity.SignInConfig{})
	session := s.signsIn(asOperator)
	extended := newGuarded(t, httpapi.MetricsOpen, func(_ *guarded, access *httpapi.Access) {
		*access = s.access
		sharing(nil, access)
	})
	shared := &site{guarded: extended}
	shared.fleet()
	for _, origin := range []string{board, "https://evil.org"} {
		_, text := shared.does("POST", "/api/v1/orders/O2/hold", `{"reason": "x"}`, http.StatusForbidden, session,
			"Content-Type", "application/json", "Origin", origin, "Sec-Fetch-Site", "cross-site")
		if !strings.Contains(text, "only pages of this site can make changes with a session") {
			t.Errorf("%s: %s", origin, text)
		}
	}
	shared.does("POST", "/api/v1/orders/O2/hold", `{"reason": "x"}`, http.StatusOK, nil,
		"Content-Type", "application/json", "Origin", board, "Sec-Fetch-Site", "cross-site", "Authorization", "Bearer "+s.token(asOperator))
	shared.does("POST", "/api/v1/orders/O2/release", `{"reason": "x"}`, http.StatusOK, session,
		"Content-Type", "application/json", "Origin", siteURL, "Sec-Fetch-Site", "same-origin")
}

func TestOrigin_AcceptsExactOriginsOnly(t *testing.T) {
	for text, ok := range map[string]bool{
		board: true, "http://localhost:3000": true, "https://board.example.org:8443": true, "http://[::1]:3000": true,
		"": false, "*": false, "null": false, "https://*.example.org": false, "board.example.org": false, board + "/": false, board + "/x": false,
		"https://Board.example.org": false, "https://board.example.org:443": false, "http://board.example.org:80": false, "https://board.example.org:": false,
		"https://ann@board.example.org": false, board + "?x": false, board + "#x": false, "ftp://board.example.org": false, "HTTPS://board.example.org": false,
	} {
		var o httpapi.Origin
		if err := o.UnmarshalText([]byte(text)); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
