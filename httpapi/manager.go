package httpapi

import (
	"context"
	"log/slog"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/app/live"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/httpapi/console"
	"github.com/dronefleet/dronefleet/internal/shutdown"
)

// Site is how a State Manager's API is served.
type Site struct {
	Access Access
	// BaseMap, if set, is what the console shows below the fleet.
	BaseMap *console.BaseMap
}

// ServeManager runs a State Manager, with its HTTP API if listener is not nil, until
// ctx ends. The API answers until the last message is settled, so that probes and
// operators see a manager that is stopping; then requests may finish until the
// phase HTTP of the manager's shutdown ends. If the API fails, the manager stops.
func ServeManager(ctx context.Context, m *manager.Manager, site Site, listener *Listener) error {
	if listener == nil {
		return m.Run(ctx)
	}
	apiCtx, stopAPI := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAPI()
	m.Log.InfoContext(ctx, "HTTP API listening", slog.String("url", listener.URL()))
	g, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	finishing, finished := m.ShutdownPlan().Context(ctx, shutdown.HTTP)
	defer finished()
	feed := live.New(live.Config{
		Store: m.Store, PubSub: m.PubSub, Locks: m.Locks, KnownKeys: []string{manager.SweeperKey},
		Meter: m.Meter, Now: m.Now, NewID: uuid.NewString, Process: m.Alerts, Log: m.Log,
	})
	defer feed.Close(finishing)
	api := New(Config{
		Store: m.Store, Locks: m.Locks, PubSub: m.PubSub, Meter: m.Meter,
		NewID: uuid.NewString, Stopping: func() error { return context.Cause(ctx) }, Faults: m.Faults, Depots: m.DepotsWatch(), Log: m.Log, Access: site.Access, BaseMap: site.BaseMap, Operator: m.Operator,
		Feed: feed, Limits: m.Limits,
	})
	g.Go(func() error { return listener.Serve(apiCtx, finishing, api) })
	g.Go(func() error { defer stopAPI(); return m.RunUntil(ctx, stop) })
	return g.Wait()
}
