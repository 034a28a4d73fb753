package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
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
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-API-01
func TestListener_ClosesConnectionsOfUnfinishedRequests(t *testing.T) {
	hosts := emutest.Hosts(t)
	hideFirestoreHost(t)
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
		Store: firestoretx.New(clients.Firestore, firestoretx.Config{PlanUnregistered: true}), Locks: locks, PubSub: clients.PubSub, Meter: clients.Meter,
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
		"an unfinished header": "GET /healthz HTTP/1.1\r\nHost: localhost\r\n",
		"an empty request":     "",
		"an unfinished body":   "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(listener.URL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		// The read ends when the server closes the connection.
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Logf("%s: %v", name, err) // a reset is fine: the server did not read everything
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// F-API-03: requests that reach no handler are answered in JSON too.
func TestAPI_AnswersEveryErrorWithProblemJSON(t *testing.T) {
	beside(t)
	s := serve(t)
	for name, c := range map[string]struct {
		request string
		status  int
		detail  string
	}{
		"a header that is too large":    {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: " + strings.Repeat("x", 32<<10) + "\r\n\r\n", 431, "more than 16384 bytes"},
		"no host":                       {"GET /healthz HTTP/1.1\r\n\r\n", 400, "missing required Host header"},
		"a header that is malformed":    {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX Y\r\n\r\n", 400, "cannot be parsed"},
		"an unknown transfer encoding":  {"POST /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "transfer encoding"},
		"another protocol":              {"GET /healthz HTTP/3.0\r\nHost: localhost\r\n\r\n", 505, "protocol version"},
		"a path with dot segments":      {"GET /api/v1/orders/../../etc HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 307, "/api/etc"},
		"a path with an empty segment":  {"GET /api/v1//orders?limit=3 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 307, "/api/v1/orders"},
		"a path that does not exist":    {"GET /etc HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404, "no such path \"/etc\""},
		"a slash at the end":            {"GET /healthz/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404, "no such path"},
		"a method that is not allowed":  {"BREW /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 405, "use GET"},
		"a path where a host should be": {"CONNECT /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 405, "use GET"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, c.request); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var p httpapi.Problem
			if err := json.NewDecoder(resp.Body).Decode(&p); err != nil {
				t.Error(err)
			}
			if resp.StatusCode != c.status || p.Status != c.status || !strings.Contains(p.Detail, c.detail) {
				t.Errorf("%s with the problem %+v, want %d and %q", resp.Status, p, c.status, c.detail)
			}
			if kind := resp.Header.Get("Content-Type"); kind != "application/problem+json" {
				t.Errorf("content type %q", kind)
			}
		})
	}
	// Following the redirect leads to the intended list.
	var page struct{ Orders []any }
	s.get("/api//v1/x/../orders?status=PENDING", http.StatusOK, &page)
}

// F-API-01
func TestAPI_RefusesBodiesItCannotUse(t *testing.T) {
	beside(t)
	g := newGuarded(t, httpapi.MetricsOpen)
	operator := g.token(asOperator)
	path := "/api/v1/orders/O1/hold"
	g.asks(operator, "POST", path, fmt.Sprintf(`{"reason": %q}`, strings.Repeat("x", httpapi.MaxBodyBytes)), 413, "more than 65536 bytes")
	g.asks(operator, "POST", path, `{"reason": "x"}`+strings.Repeat(" ", httpapi.MaxBodyBytes), 413, "more than 65536 bytes")
	g.asks(operator, "POST", path, "", 400, "empty")
	g.asks(operator, "POST", path, `{"reason": `, 400, "cannot be decoded")
	g.asks(operator, "POST", path, `{"reason": "x"} {}`, 400, "more than one JSON value")
	for body, want := range map[string]string{ // F-IN-01
		`{"reason": "x", "reason": "y"}`: `line 1, byte offset 16: "reason" is given twice; give it once`,
		`{"reason": "x", "Reason": "y"}`: `"reason" and "Reason" differ only in case`,
		`{"Reason": "x"}`:                "is not a field; the fields are reason",
		"{\"reason\": \"caf\xe9\"}":      "byte 0xe9 is not UTF-8",
		`{"reason": "\ud800"}`:           "half of a surrogate pair",
		`["reason"]`:                     "is not an object",
		`null`:                           "is not an object",
		` `:                              "is empty",
	} {
		g.asks(operator, "POST", path, body, 400, want)
	}
	g.asks(operator, "POST", path, `{"reasn": "x"}`, 400, `"reasn" is not a field; the fields are reason`)
	g.asks(operator, "POST", path, `{"reason": 3}`, 400, "reason")
	g.asks(operator, "POST", path, `{"reason": " "}`, 400, "reason is blank; give a reason")
	g.asks(operator, "POST", path+"?x=1", `{"reason": "x"}`, 400, "not a parameter")
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

// F-API-01: neither two headers nor a URL can hold the token.
func TestAPI_TakesTokensFromOneHeaderOnly(t *testing.T) {
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
	g.asks("", "GET", "/api/v1/drones?access_token="+token, "", 401, "authentication required")
}

// F-OBS-01: a slow store is logged, an impatient client is not.
func TestAPI_LogsTimeouts(t *testing.T) {
	hosts := emutest.Hosts(t)
	hideFirestoreHost(t)
	clients := emutest.Connect(t, hosts)
	var logged log
	api := httpapi.New(httpapi.Config{
		Store: firestoretx.New(clients.Firestore, firestoretx.Config{PlanUnregistered: true}), PubSub: clients.PubSub, Meter: clients.Meter,
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
		t.Errorf("a cancelled request was logged: %s", text)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	ask(late)
	if text := logged.String(); !strings.Contains(text, "HTTP request failed") || !strings.Contains(text, "/api/v1/drones") {
		t.Errorf("the log says %q", text)
	}
}
