package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/lock"
)

// Run runs a cycle of each depot every interval until ctx ends. If a cycle takes
// longer than the interval the next one follows at once; further ticks are
// dropped. Failures are logged and the next tick tries again. The error is
// non-nil only if the depots could not be read at the start.
//
// Unless Config.Depots names them, the depots are listed every interval: cycles
// of an added depot begin, those of a removed depot end after the running one. A
// depot whose document is malformed does not count as removed. There may be no
// depot at the start.
func (r *Runner) Run(ctx context.Context) error {
	depots, err := r.DepotIDs(ctx)
	switch {
	case errors.Is(err, errNoDepot) && len(r.cfg.Depots) == 0:
		r.log.WarnContext(ctx, "no cycles until a depot is added", slog.Any("err", err))
	case err != nil:
		return err
	}
	running := depotLoops{runner: r, loops: map[domain.DepotID]*depotLoop{}}
	defer running.wait()
	for _, depot := range depots {
		running.start(ctx, depot)
	}
	if len(r.cfg.Depots) > 0 {
		return nil
	}
	ticker := r.clock.NewTicker(r.cfg.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.Chan():
		}
		known, err := r.store.Depots(meter.WithOperation(ctx, "cycle"))
		if err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "depots not read; cycles of the known depots continue", slog.Any("err", err))
		}
		if malformed := errors.Join(known.Malformed...); malformed != nil {
			r.log.WarnContext(ctx, "depot document malformed; the depot is neither added nor removed; correct the document", slog.Any("err", malformed))
		}
		running.follow(ctx, known, err == nil)
	}
}

// depotLoops are the loops of all depots of a runner.
type depotLoops struct {
	runner *Runner
	loops  map[domain.DepotID]*depotLoop
}

type depotLoop struct {
	stop chan struct{} // closed when the depot is gone
	done chan struct{} // closed when its last cycle has ended
	gone bool
}

func (l depotLoops) start(ctx context.Context, depot domain.DepotID) {
	loop := &depotLoop{stop: make(chan struct{}), done: make(chan struct{})}
	l.loops[depot] = loop
	go func() {
		defer close(loop.done)
		l.runner.runDepot(ctx, depot, loop.stop)
	}()
}

// follow starts loops for new depots and, if the listing is complete, stops those
// of depots that are gone. A depot that comes back gets a new loop after its old
// one has ended.
func (l depotLoops) follow(ctx context.Context, known firestoretx.Listing[domain.Depot], complete bool) {
	exists := map[domain.DepotID]bool{}
	for _, id := range known.MalformedIDs {
		exists[domain.DepotID(id)] = true
	}
	for _, d := range known.Items {
		exists[d.ID] = true
		if l.loops[d.ID] == nil {
			l.runner.log.InfoContext(ctx, "depot added", slog.String("depot_id", string(d.ID)))
			l.start(ctx, d.ID)
		}
	}
	for id, loop := range l.loops {
		if complete && !loop.gone && !exists[id] {
			l.runner.log.InfoContext(ctx, "depot removed", slog.String("depot_id", string(id)))
			loop.gone = true
			close(loop.stop)
		}
		select {
		case <-loop.done:
			delete(l.loops, id)
		default:
		}
	}
}

func (l depotLoops) wait() {
	for _, loop := range l.loops {
		<-loop.done
	}
}

var errNoDepot = errors.New("the store has no depots; add one first")

// DepotIDs returns the depots whose cycles this runner runs. Malformed depot
// documents are logged and skipped. The error says that no depot can be read, or
// that one of Config.Depots does not exist.
func (r *Runner) DepotIDs(ctx context.Context) ([]domain.DepotID, error) {
	depots, err := r.store.Depots(ctx)
	if err != nil {
		return nil, err
	}
	known, malformed := depots.Items, errors.Join(depots.Malformed...)
	if malformed != nil {
		r.log.ErrorContext(ctx, "depot document malformed; the depot has no cycles; correct the document", slog.Any("err", malformed))
	}
	if len(known) == 0 {
		return nil, errors.Join(errNoDepot, malformed)
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
			return nil, errors.Join(fmt.Errorf("the store has no depot %q", id), malformed)
		}
	}
	return r.cfg.Depots, nil
}

// isClockWrong reports whether a cycle took no lock because the local clock is wrong.
func isClockWrong(err error) bool {
	_, wrong := errors.AsType[*lock.ClockSkewError](err)
	return wrong
}

// runDepot runs the depot's cycles until ctx ends, or until stop is closed and
// the running cycle has ended.
func (r *Runner) runDepot(ctx context.Context, depot domain.DepotID, stop <-chan struct{}) {
	ticker := r.clock.NewTicker(r.cfg.Interval)
	defer ticker.Stop()
	memory := r.NewMemory()
	for {
		began := time.Now()
		_, err := r.Once(ctx, depot, memory)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrLocked):
			r.log.DebugContext(ctx, "cycle skipped", slog.String("depot_id", string(depot)))
		case isClockWrong(err):
			r.log.WarnContext(ctx, "cycle skipped: this process's clock is wrong", slog.String("depot_id", string(depot)), slog.Any("err", err))
		default:
			if r.cfg.OnFailure != nil {
				r.cfg.OnFailure(err)
			}
			r.log.WarnContext(ctx, "cycle failed; the next tick tries again", slog.Any("err", err), slog.Duration("after", time.Since(began)))
		}
		select {
		case <-ctx.Done():
			return
		case <-stop:
			return
		case <-ticker.Chan():
		}
	}
}
