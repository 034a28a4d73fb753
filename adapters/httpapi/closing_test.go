package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// piped accepts one connection, to a client in the same bubble.
type piped struct{ conns chan net.Conn }

func (p piped) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p piped) Close() error   { close(p.conns); return nil }
func (p piped) Addr() net.Addr { return &net.TCPAddr{} }

// F-FLOW-01: requests under way may finish for five seconds, but no longer than
// the process has.
func TestListener_FinishesRequestsInTheTimeThatIsLeft(t *testing.T) {
	for _, left := range []time.Duration{0, time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			started := make(chan struct{})
			api := &API{log: slog.New(slog.DiscardHandler), handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(started)
				<-r.Context().Done() // until the client is cut off
			})}
			l := &Listener{piped{make(chan net.Conn, 1)}, bounds{}}
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
			if took := time.Since(began); took != min(left, shutdownTimeout) {
				t.Errorf("with %s left it took %s", left, took)
			}
		})
	}
}
