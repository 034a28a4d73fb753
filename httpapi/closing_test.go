package httpapi

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// piped accepts one connection, from a client in the same synctest bubble.
type piped struct{ conns chan net.Conn }

func (p piped) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p piped) Close() error   { close(p.conns); return nil }
func (p piped) Addr() net.Addr { return &net.TCPAddr{} }

// F-FLOW-01: requests in progress may finish for five seconds, but no longer than
// the process has.
func TestListener_LimitsTimeToFinishRequests(t *testing.T) {
	for _, left := range []time.Duration{0, time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			started := make(chan struct{})
			api := &API{log: slog.New(slog.DiscardHandler), handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(started)
				<-r.Context().Done() // until the client is cut off
			})}
			l := &Listener{piped{make(chan net.Conn, 1)}, defaultBounds}
			ctx, stop := context.WithCancel(t.Context())
			closing, end := context.WithCancel(t.Context())
			defer end()
			client, server := net.Pipe()
			defer client.Close()
			l.listener.(piped).conns <- server
			done := make(chan error, 1)
			go func() { done <- l.Serve(ctx, closing, api) }()
			if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			<-started
			stop()
			began := time.Now()
			time.AfterFunc(left, end)
			err := <-done
			if err == nil || !strings.Contains(err.Error(), "cut off") {
				t.Errorf("with %s left: %v", left, err)
			}
			if took := time.Since(began); took != min(left, defaultBounds.finish) {
				t.Errorf("with %s left it took %s", left, took)
			}
			// The client sees the end of its connection, and the handler its context's.
			_ = client.SetReadDeadline(time.Now().Add(time.Second)) // an error if it is cut off, as it should be
			if _, err := io.ReadAll(client); err != nil {
				t.Errorf("with %s left the connection stays open: %v", left, err)
			}
		})
	}
}

// F-FLOW-01
func TestListener_FinishesRequestsWhenItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan struct{})
		api := &API{log: slog.New(slog.DiscardHandler), handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(started)
			select {
			case <-time.After(defaultBounds.finish - time.Second):
				w.WriteHeader(http.StatusNoContent)
			case <-r.Context().Done():
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})}
		l := &Listener{piped{make(chan net.Conn, 1)}, defaultBounds}
		ctx, stop := context.WithCancel(t.Context())
		client, server := net.Pipe()
		defer client.Close()
		l.listener.(piped).conns <- server
		done := make(chan error, 1)
		go func() { done <- l.Serve(ctx, context.WithoutCancel(ctx), api) }()
		if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-started
		stop()
		resp, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNoContent {
			t.Errorf("answered %s", resp.Status)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// F-API-01
func TestAPI_EndsRequestsWhenTheStoreIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &API{handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-time.After(time.Hour):
			}
		})}
		began := time.Now()
		api.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", nil))
		if took := time.Since(began); took != requestTimeout {
			t.Errorf("it took %s", took)
		}
	})
}
