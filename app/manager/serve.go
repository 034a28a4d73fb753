package manager

import (
	"context"
	"log/slog"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/httpapi"
)

// Serve is Run with an HTTP API on a listener, which may be nil for none. The
// API is there until the last message is settled, so that probes and operators
// see a manager that is stopping, and then finishes requests until closing ends;
// if it fails, the manager stops.
func (m *Manager) Serve(ctx, closing context.Context, listener *httpapi.Listener) error {
	if listener == nil {
		return m.Run(ctx)
	}
	apiCtx, stopAPI := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAPI()
	m.log.InfoContext(ctx, "HTTP API listening", slog.String("url", listener.URL()))
	g, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	api := httpapi.New(httpapi.Config{
		Store: m.Store, Locks: m.Locks, PubSub: m.pubsub, Meter: m.meter,
		NewID: uuid.NewString, Stopping: func() error { return context.Cause(ctx) }, Log: m.log, Access: m.cfg.Access, Operator: m.operator,
	})
	g.Go(func() error { return listener.Serve(apiCtx, closing, api) })
	g.Go(func() error { defer stopAPI(); return m.runUntil(ctx, stop) })
	return g.Wait()
}
