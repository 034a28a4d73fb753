package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// requestTimeout is how long the store may take to answer one request.
const requestTimeout = 15 * time.Second

// bounds limit what a slow or hostile client can take from the server. finish is how
// long requests in progress may take once the server stops.
type bounds struct {
	header, read, write, idle, finish time.Duration
	headerBytes                       int
}

var defaultBounds = bounds{
	header: 5 * time.Second, read: 10 * time.Second, write: requestTimeout + 15*time.Second, idle: 60 * time.Second, finish: 5 * time.Second,
	headerBytes: 16 << 10,
}

// Listener holds an address for an API that is assembled later, so that a port in
// use is reported before anything else starts.
type Listener struct {
	listener net.Listener
	bounds   bounds
}

// Listen listens on addr, a host:port. Port 0 chooses a free port.
func Listen(addr string) (*Listener, error) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, fmt.Errorf("HTTP address %q cannot be parsed: %w; give host:port, for example 127.0.0.1:8080", addr, err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("HTTP address %s cannot be used: %w; give another one or stop the process that uses it", addr, err)
	}
	return &Listener{l, defaultBounds}, nil
}

// URL is the API's address.
func (l *Listener) URL() string { return "http://" + l.listener.Addr().String() }

// Close releases an address that was never served.
func (l *Listener) Close() error { return l.listener.Close() }

// Serve answers requests with api until ctx ends. Requests in progress may then
// finish, for five seconds or until finishing ends.
func (l *Listener) Serve(ctx, finishing context.Context, api *API) error {
	// Streams would not end by themselves.
	streaming, endStreams := context.WithCancel(context.Background())
	defer endStreams()
	base := withStreaming(context.WithoutCancel(ctx), streaming)
	server := &http.Server{
		Handler:           api,
		ReadHeaderTimeout: l.bounds.header, ReadTimeout: l.bounds.read, WriteTimeout: l.bounds.write, IdleTimeout: l.bounds.idle,
		MaxHeaderBytes: l.bounds.headerBytes,
		ErrorLog:       slog.NewLogLogger(api.log.Handler(), slog.LevelDebug),
		// Requests may outlive ctx, until Shutdown returns.
		BaseContext: func(net.Listener) context.Context { return base },
	}
	server.RegisterOnShutdown(endStreams)
	g, serving := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := server.Serve(problemListener{l.listener, l.bounds.headerBytes}); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("HTTP API: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-serving.Done()
		limited, cancel := context.WithTimeout(finishing, l.bounds.finish)
		defer cancel()
		if err := server.Shutdown(limited); err != nil {
			return errors.Join(fmt.Errorf("HTTP API: requests in progress were cut off: %w", err), server.Close())
		}
		return nil
	})
	return g.Wait()
}
