package httpapi_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/apikeys"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/httpapi/ratelimit"
	"github.com/dronefleet/dronefleet/internal/identity"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// newOpen is an API without an issuer.
func newOpen(t *testing.T, access httpapi.Access) *guarded {
	t.Helper()
	g := &guarded{log: new(log), access: access}
	logger := slog.New(slog.NewTextHandler(io.MultiWriter(g.log, emutest.Output(t)), &slog.HandlerOptions{Level: slog.LevelDebug}))
	g.served = serveWithLocks(t, emutest.Hosts(t), g.lockStore, access, logger)
	return g
}

// makeKey makes a key for a role and returns its text.
func (g *guarded) makeKey(role domain.KeyRole) string {
	g.t.Helper()
	use := operator.KeyUse{Role: role, ExpiresAt: time.Now().Add(time.Hour)}
	switch role {
	case domain.KeyRequester:
		use.Requester = "HOSPITAL-7"
	case domain.KeyDrone:
		use.Drone = "DRONE-1"
	case domain.KeyViewer, domain.KeyOperator:
	}
	text, _, err := operator.Commands{Store: g.store, By: "ann"}.CreateKey(g.t.Context(), use, "test")
	if err != nil {
		g.t.Fatal(err)
	}
	return text
}

func (g *guarded) revoke(key string) {
	g.t.Helper()
	if _, err := (operator.Commands{Store: g.store, By: "ann"}).RevokeKey(g.t.Context(), key, "stolen"); err != nil {
		g.t.Fatal(err)
	}
}

// F-INT-06: keys work beside tokens and without an issuer, where reading stays open. What a key
// changes is on record by its name. No key is logged.
func TestAPI_AcceptsKeys(t *testing.T) {
	const hold, release, body = "/api/v1/orders/O1/hold", "/api/v1/orders/O1/release", `{"reason": "x"}`
	for name, g := range map[string]*guarded{"beside tokens": newGuarded(t, httpapi.MetricsOpen), "without an issuer": newOpen(t, httpapi.Access{})} {
		t.Run(name, func(t *testing.T) {
			g.t = t
			g.order("O1")
			viewer, oper := g.makeKey(domain.KeyViewer), g.makeKey(domain.KeyOperator)
			id := apikeys.Hash(oper)
			g.asks(viewer, "GET", "/api/v1/orders/O1", "", 200, `"O1"`)
			g.asks(viewer, "POST", hold, body, 403, "key "+apikeys.Hash(viewer)[:12]+" lacks the required role operator")
			g.asks(oper, "POST", hold, body, 200, `"heldReason":"x (by key `+id[:12]+`)"`)
			g.asks(oper, "GET", "/api/v1/session", "", 200, `"method":"key","roles":["viewer","operator"]`)
			g.asks(g.makeKey(domain.KeyRequester), "GET", "/api/v1/session", "", 200, `"roles":["requester"],"requester":"HOSPITAL-7"`)
			g.asks(g.makeKey(domain.KeyDrone), "GET", "/api/v1/session", "", 403, " of DRONE-1 lacks the required role viewer, and the key of a drone only opens a gateway")

			stranger := apikeys.NewText()
			a := g.asks(stranger, "GET", "/api/v1/drones", "", 401, "invalid API key: it is unknown; copy the key again, or ask for a new one")
			if a.challenge != `Bearer realm="dronefleet", error="invalid_token", error_description="it is unknown; copy the key again, or ask for a new one"` {
				t.Errorf("challenge %q", a.challenge)
			}
			g.asks(oper[:30], "POST", release, body, 401, "it has 30 characters, and keys have 47")
			late := g.makeKey(domain.KeyOperator)
			g.revoke(late)
			g.asks(late, "POST", release, body, 401, "invalid API key: it was revoked ")
			g.asks(oper, "GET", "/api/v1/audit/person?name=key+"+id[:12], "", 200, "order O1: stays PENDING", "because x")
			g.keepsSecrets()
		})
	}
}

// F-INT-06: a request has one identity. A key counts before the session that a browser adds, and never
// from an address, which is logged.
func TestAPI_TakesOneIdentity(t *testing.T) {
	s := newSite(t, identity.SignInConfig{})
	s.fleet()
	session := s.signsIn(asOperator)
	viewer, oper := s.makeKey(domain.KeyViewer), s.makeKey(domain.KeyOperator)
	const hold, body = "/api/v1/orders/O2/hold", `{"reason": "x"}`
	for name, c := range map[string]struct {
		status  int
		session []*http.Cookie
		headers []string
	}{
		"a viewer's key beside an operator's session": {403, session, []string{"Authorization", "Bearer " + viewer}},
		"a wrong key beside a session":                {401, session, []string{"Authorization", "Bearer " + viewer + "x"}},
		"two keys":                                    {401, nil, []string{"Authorization", "Bearer " + oper, "Authorization", "Bearer " + oper}},
		"a password":                                  {401, nil, []string{"Authorization", "Basic " + oper}},
		"another page with a key":                     {200, nil, []string{"Authorization", "bearer " + oper, "Origin", "https://evil.org", "Sec-Fetch-Site", "cross-site"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, text := s.does("POST", hold, body, c.status, c.session, append(c.headers, "Content-Type", "application/json")...)
			if strings.Contains(text, oper) || strings.Contains(text, viewer) {
				t.Errorf("the answer shows the key: %s", text)
			}
		})
	}
	if a := s.asks(viewer, "GET", "/api/v1/drones?key="+oper, "", 400, "is not a parameter"); strings.Contains(a.body, oper) {
		t.Errorf("the answer shows the key: %s", a.body)
	}
	s.sent = append(s.sent, oper)
	s.keepsSecrets()
}

// F-INT-06: a process may require keys where there is no issuer, or accept none.
func TestAPI_RequiresOrRefusesKeys(t *testing.T) {
	g := newOpen(t, httpapi.Access{APIKeys: httpapi.KeysRequired, Metrics: httpapi.MetricsViewer})
	viewer := g.makeKey(domain.KeyViewer)
	g.asks("", "GET", "/api/v1/drones", "", 401, `send one header "Authorization: Bearer TOKEN" with an API key`)
	g.asks("a.b.c", "GET", "/api/v1/drones", "", 401, "the bearer token is not an API key, which begins with dfk_; send an API key")
	g.asks("", "GET", "/metrics", "", 401)
	g.asks(viewer, "GET", "/metrics", "", 200)
	g.asks(viewer, "GET", "/api/v1/drones", "", 200)
	g.asks("", "GET", "/healthz", "", 200)

	off := newOpen(t, httpapi.Access{APIKeys: httpapi.KeysOff})
	off.order("O1")
	off.asks(off.makeKey(domain.KeyOperator), "POST", "/api/v1/orders/O1/hold", `{"reason": "x"}`, 403, "changes require authentication")
	guarded := newGuarded(t, httpapi.MetricsOpen, func(_ *guarded, access *httpapi.Access) { access.APIKeys = httpapi.KeysOff })
	guarded.asks(guarded.makeKey(domain.KeyViewer), "GET", "/api/v1/drones", "", 401, "invalid token")
}

// F-INT-06: a stream that was opened with a key ends when the key is revoked.
func TestAPI_EndsStreamsOfRevokedKeys(t *testing.T) {
	g := newOpen(t, httpapi.Access{})
	if err := pubsubio.Ensure(t.Context(), g.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	key := g.makeKey(domain.KeyViewer)
	g.revoke(g.makeKey(domain.KeyViewer)) // another one
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/api/v1/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := g.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() {
		t.Fatal(resp.Status)
	}
	g.revoke(key)
	for lines.Scan() { // until the server ends it
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
}

// F-INT-06, F-API-10: guesses at keys cost no more reads than the address has requests. Keys that
// are known keep working meanwhile.
func TestAPI_LimitsGuessesAtKeys(t *testing.T) {
	_, limits := limited(ratelimit.Config{Reads: 2})
	g := newGuarded(t, httpapi.MetricsOpen, limits)
	key := g.makeKey(domain.KeyViewer)
	g.asks(key, "GET", "/api/v1/session", "", 200)
	before := g.clients.Meter.FirestoreTotals().Reads
	answered := map[int]int{}
	for range 200 {
		answered[g.statusOf(apikeys.NewText(), "/api/v1/session")]++
	}
	if answered[http.StatusUnauthorized] != 20 || answered[http.StatusTooManyRequests] != 180 {
		t.Errorf("answered %v, want 20 times 401 and then 429", answered)
	}
	if n := g.clients.Meter.FirestoreTotals().Reads - before; n > 20 {
		t.Errorf("%d reads for 200 guesses", n)
	}
	g.asks(key, "GET", "/api/v1/session", "", 200)
}
