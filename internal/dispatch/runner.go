package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/domain"
)

// Run runs a cycle of each depot every interval until ctx ends. Ticks that
// fall into a running cycle are dropped, not queued. Failures are logged and
// the next tick tries again; the error says only that the depots could not be
// read at all.
func (r *Runner) Run(ctx context.Context) error {
	depots, err := r.DepotIDs(ctx)
	if err != nil {
		return err
	}
	var g errgroup.Group
	for _, depot := range depots {
		g.Go(func() error { r.runDepot(ctx, depot); return nil })
	}
	return g.Wait()
}

// DepotIDs are the depots whose cycles this runner runs.
func (r *Runner) DepotIDs(ctx context.Context) ([]domain.DepotID, error) {
	known, err := r.store.Depots(ctx)
	if err != nil {
		return nil, err
	}
	if len(known) == 0 {
		return nil, errors.New("the store has no depots; introduce one first")
	}
	if len(r.cfg.Depots) == 0 {
		ids := make([]domain.DepotID, len(known))
		for i, d := range known {
			ids[i] = d.ID
		}
		return ids, nil
	}
	for _, id := range r.cfg.Depots {
		if !slices.ContainsFunc(known, func(d domain.Depot) bool { return d.ID == id }) {
			return nil, fmt.Errorf("the store has no depot %q", id)
		}
	}
	return r.cfg.Depots, nil
}

func (r *Runner) runDepot(ctx context.Context, depot domain.DepotID) {
	ticker := r.clock.NewTicker(r.cfg.Interval)
	defer ticker.Stop()
	planner := r.NewPlanner()
	for {
		began := time.Now()
		_, err := r.Once(ctx, depot, planner)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrLocked):
			r.log.DebugContext(ctx, "cycle skipped", slog.String("depot_id", string(depot)))
		default:
			r.log.WarnContext(ctx, "cycle failed; the next tick tries again", slog.Any("err", err), slog.Duration("after", time.Since(began)))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.Chan():
		}
	}
}
