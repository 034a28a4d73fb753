package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/emutest"
	"github.com/dronefleet/dronefleet/internal/simclock"
)

// A request that does not end must not hold a connection: the server ends it.
func TestServer_EndsRequestsThatDoNotEnd(t *testing.T) {
	hosts := emutest.Hosts(t)
	t.Setenv(connect.FirestoreHost, "") // see serveFor
	clients := emutest.Connect(t, hosts)
	locks, err := clients.Locks(simclock.Real(), emutest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close(context.Background())
	listener, err := httpapi.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Hurry(50*time.Millisecond, 100*time.Millisecond)
	api := httpapi.New(httpapi.Config{
		Store: firestoretx.New(clients.Firestore, firestoretx.Config{}), Locks: locks, PubSub: clients.PubSub, Meter: clients.Meter,
		NewID: uuid.NewString, Log: emutest.Log(t),
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- listener.Serve(ctx, context.Background(), api) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	for name, text := range map[string]string{
		"a header without an end": "GET /healthz HTTP/1.1\r\nHost: localhost\r\n",
		"nothing at all":          "",
		"a body without an end":   "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(listener.URL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		// The read ends when the server closes; the test's own patience is the
		// only bound if it does not.
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Logf("%s: %v", name, err) // reset, for what was never read
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Headers and bodies have their bounds; what is too much is answered so.
func TestServer_BoundsHeadersAndBodies(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Long", strings.Repeat("x", 32<<10))
	resp, err := g.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("long header: %s", resp.Status)
	}

	operator := g.token(asOperator)
	path := "/api/v1/orders/O1/hold"
	g.asks(operator, "POST", path, fmt.Sprintf(`{"reason": %q}`, strings.Repeat("x", httpapi.MaxBodyBytes)), 413, "more than 65536 bytes")
	g.asks(operator, "POST", path, `{"reason": "x"}`+strings.Repeat(" ", httpapi.MaxBodyBytes), 413, "more than 65536 bytes")
	g.asks(operator, "POST", path, "", 400, "empty")
	g.asks(operator, "POST", path, `{"reason": `, 400, "cannot be read")
	g.asks(operator, "POST", path, `{"reason": "x"} {}`, 400, "more after the object")
	g.asks(operator, "POST", path, `{"reasn": "x"}`, 400, `unknown field "reasn"`)
	g.asks(operator, "POST", path, `{"reason": 3}`, 400, "reason")
	g.asks(operator, "POST", path, `{"reason": " "}`, 400, "reason is blank; say why")
	g.asks(operator, "POST", path+"?x=1", `{"reason": "x"}`, 400, "no parameter here")
	g.asks(operator, "POST", "/api/v1/orders/a%2Fb/hold", `{}`, 400, "id contains", "reason is blank")

	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+path, strings.NewReader(`{"reason": "x"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+operator)
		req.Header.Set("Content-Type", kind)
		resp, err := g.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnsupportedMediaType {
			t.Errorf("content type %q: %s", kind, resp.Status)
		}
	}
}

// Two headers of one name, or a token in the URL, are no token.
func TestServer_TakesTokensFromOneHeaderOnly(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	token := g.token(asOperator)
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /api/v1/drones HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", token, token)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("two headers: %s", resp.Status)
	}
	g.asks("", "GET", "/api/v1/drones?access_token="+token, "", 401, "this needs a token")
}

// F-OBS-01: a store that does not answer in time is in the log; a client that
// did not wait is not.
func TestAPI_LogsWhatRanOutOfTime(t *testing.T) {
	hosts := emutest.Hosts(t)
	t.Setenv(connect.FirestoreHost, "") // see serveFor
	clients := emutest.Connect(t, hosts)
	var logged log
	api := httpapi.New(httpapi.Config{
		Store: firestoretx.New(clients.Firestore, firestoretx.Config{}), PubSub: clients.PubSub, Meter: clients.Meter,
		NewID: uuid.NewString, Log: slog.New(slog.NewTextHandler(&logged, nil)),
	})
	ask := func(ctx context.Context) {
		t.Helper()
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/v1/drones", nil))
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	ask(gone)
	if text := logged.String(); text != "" {
		t.Errorf("nobody waited, and yet: %s", text)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	ask(late)
	if text := logged.String(); !strings.Contains(text, "HTTP request failed") || !strings.Contains(text, "/api/v1/drones") {
		t.Errorf("the log says %q", text)
	}
}
