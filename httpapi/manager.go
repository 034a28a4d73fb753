package httpapi

import (
	"context"
	"log/slog"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/app/manager"
)

// ServeManager runs a State Manager with its HTTP API on a listener, which may be nil for none. The
// API is there until the last message is settled, so that probes and operators
// see a manager that is stopping, and then finishes requests until closing ends;
// if it fails, the manager stops.
func ServeManager(ctx, closing context.Context, m *manager.Manager, access Access, listener *Listener) error {
	if listener == nil {
		return m.Run(ctx)
	}
	apiCtx, stopAPI := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAPI()
	m.Log.InfoContext(ctx, "HTTP API listening", slog.String("url", listener.URL()))
	g, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	api := New(Config{
		Store: m.Store, Locks: m.Locks, PubSub: m.PubSub, Meter: m.Meter,
		NewID: uuid.NewString, Stopping: func() error { return context.Cause(ctx) }, Log: m.Log, Access: access, Operator: m.Operator,
	})
	g.Go(func() error { return listener.Serve(apiCtx, closing, api) })
	g.Go(func() error { defer stopAPI(); return m.RunUntil(ctx, stop) })
	return g.Wait()
}
