package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/restart"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
)

// Run runs a cycle of each area that this process owns every interval until ctx ends. If a cycle
// takes longer than the interval the next one follows at once; further ticks are dropped.
// With Config.LockEachCycle it runs those of each area whose lock is free. Failures are logged and the next tick tries again. The error is
// non-nil only if the depots could not be read at the start, or if one of
// Config.Depots does not exist then.
//
// The depots are listed every interval: cycles of a new area begin, those of a removed area end
// after the running one. A depot with a malformed document does not count as removed. There may be
// no depot at the start.
func (r *Runner) Run(ctx context.Context) error {
	areas, err := r.Areas(ctx)
	switch {
	case errors.Is(err, errNoDepot) && len(r.cfg.Depots) == 0:
		r.log.WarnContext(ctx, "no cycles until a depot is added", slog.Any("err", err))
	case err != nil:
		return err
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { r.followPlaces(ctx) })
	if r.team != nil {
		beside.Go(func() { r.team.run(ctx) })
	}
	running := areaLoops{runner: r, loops: map[domain.DepotID]*areaLoop{}}
	defer running.wait()
	for _, area := range areas {
		running.start(ctx, area)
	}
	counted := map[domain.DepotID]time.Time{}
	ticker := r.clock.NewTicker(r.cfg.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.Chan():
		}
		known, err := r.store.KnownDepots(meter.WithOperation(ctx, "cycle"))
		if err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "depots not read; cycles of the known areas continue", slog.Any("err", err))
		}
		if malformed := errors.Join(known.Malformed...); malformed != nil {
			r.log.WarnContext(ctx, "depot document malformed; the depot is neither added nor removed; correct the document", slog.Any("err", malformed))
		}
		running.follow(ctx, known, err == nil)
		if err == nil {
			r.countDrones(ctx, known.Items, counted)
		}
	}
}

// countEvery is the time between two counts of the drones of an area's depots.
const countEvery = 10 * time.Minute

// countDrones counts the drones of the areas that this process runs and that a cap may cut: those
// with several depots, and those cut before. counted is when it last did so, by area.
func (r *Runner) countDrones(ctx context.Context, known []domain.Depot, counted map[domain.DepotID]time.Time) {
	ctx, end := context.WithTimeout(meter.WithOperation(ctx, "cycle"), r.cfg.ReadLimit)
	defer end()
	now := r.clock.Now()
	for _, chain := range policy.ChainsOf(known, r.cfg.AreaRadius) {
		if len(chain.Depots) == 1 {
			continue
		}
		for _, area := range policy.AreasOf(chain.Depots, r.cfg.AreaRadius) {
			if r.team != nil && !r.team.owns(area.ID()) || now.Sub(counted[area.ID()]) < countEvery {
				continue
			}
			counted[area.ID()] = now
			if err := r.store.CountDrones(ctx, area.Depots); err != nil && ctx.Err() == nil {
				r.log.WarnContext(ctx, "drones of an area not counted; its size stays as it is", slog.String("depot_id", string(area.ID())), slog.Any("err", err))
			}
		}
	}
}

// followPlaces keeps the places that cycles need up to date until ctx ends.
func (r *Runner) followPlaces(ctx context.Context) {
	restart.Until(ctx, func() {
		if err := r.store.FollowPlaces(meter.WithOperation(ctx, "places")); err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "places not followed; cycles read them until they are", slog.Any("err", err))
		}
	})
}

// areasOf names the areas of the depots that this runner plans for.
func (r *Runner) areasOf(known []domain.Depot) (names []domain.DepotID) {
	for _, area := range policy.AreasOf(known, r.cfg.AreaRadius) {
		if len(r.cfg.Depots) == 0 || slices.ContainsFunc(r.cfg.Depots, area.Has) {
			names = append(names, area.ID())
		}
	}
	return names
}

// areaLoops are the loops of all areas of a runner, by the depot that names the area.
type areaLoops struct {
	runner *Runner
	loops  map[domain.DepotID]*areaLoop
}

type areaLoop struct {
	stop chan struct{} // closed when the area is gone
	done chan struct{} // closed when its last cycle has ended
	gone bool
}

func (l areaLoops) start(ctx context.Context, area domain.DepotID) {
	loop := &areaLoop{stop: make(chan struct{}), done: make(chan struct{})}
	l.loops[area] = loop
	go func() {
		defer close(loop.done)
		if l.runner.team != nil {
			l.runner.ownArea(ctx, area, loop.stop)
		} else {
			l.runner.runArea(ctx, area, loop.stop)
		}
	}()
}

// follow starts loops for new areas and, if the listing is complete, stops those
// of areas that are gone. An area that comes back gets a new loop after its old
// one has ended.
func (l areaLoops) follow(ctx context.Context, known firestoretx.Listing[domain.Depot], complete bool) {
	exists := map[domain.DepotID]bool{}
	for _, id := range known.MalformedIDs {
		exists[domain.DepotID(id)] = true
	}
	for _, area := range l.runner.areasOf(known.Items) {
		exists[area] = true
		if l.loops[area] == nil {
			l.runner.log.InfoContext(ctx, "planning area added", slog.String("depot_id", string(area)))
			l.start(ctx, area)
		}
	}
	l.runner.tellTeam(known.Items, func(area domain.DepotID) bool { return !complete || exists[area] })
	for id, loop := range l.loops {
		if complete && !loop.gone && !exists[id] {
			l.runner.log.InfoContext(ctx, "planning area removed", slog.String("depot_id", string(id)))
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

func (l areaLoops) wait() {
	for _, loop := range l.loops {
		<-loop.done
	}
}

var errNoDepot = errors.New("the store has no depots; add one with \"statemanager depots apply\"")

// Areas names the areas whose cycles this runner runs, each by one of its depots.
// Malformed depot documents are logged and skipped. The error says that no depot can be
// read, or that one of Config.Depots does not exist.
func (r *Runner) Areas(ctx context.Context) ([]domain.DepotID, error) {
	depots, err := r.store.KnownDepots(ctx)
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
	for _, id := range r.cfg.Depots {
		if !slices.ContainsFunc(known, func(d domain.Depot) bool { return d.ID == id }) {
			return nil, errors.Join(fmt.Errorf("the store has no depot %q; \"statemanager depots list\" shows those it has", id), malformed)
		}
	}
	r.tellTeam(known, func(domain.DepotID) bool { return false })
	return r.areasOf(known), nil
}

// tellTeam tells which areas there are by the known depots. Others that it knows stay if kept is
// true of them.
func (r *Runner) tellTeam(known []domain.Depot, kept func(domain.DepotID) bool) {
	if r.team != nil {
		r.team.know(policy.AreasOf(known, r.cfg.AreaRadius), kept)
	}
}

// isClockWrong reports whether a cycle took no lock because the local clock is wrong.
func isClockWrong(err error) bool {
	_, wrong := errors.AsType[*lock.ClockSkewError](err)
	return wrong
}

// runArea runs an area's cycles, with its lock for each, until ctx ends, or until stop is closed and
// the running cycle has ended.
func (r *Runner) runArea(ctx context.Context, area domain.DepotID, stop <-chan struct{}) {
	ticker := r.clock.NewTicker(r.cfg.Interval)
	defer ticker.Stop()
	memory := r.NewMemory()
	for {
		began := time.Now()
		_, err := r.Once(ctx, area, memory)
		r.tell(ctx, area, began, err)
		select {
		case <-ctx.Done():
			return
		case <-stop:
			return
		case <-ticker.Chan():
		}
	}
}

// tell logs why a cycle did not end.
func (r *Runner) tell(ctx context.Context, area domain.DepotID, began time.Time, err error) {
	switch {
	case err == nil, ctx.Err() != nil:
	case errors.Is(err, ErrLocked):
		r.log.DebugContext(ctx, "cycle skipped", slog.String("depot_id", string(area)))
	case isOtherArea(err): // this loop is about to be stopped
		r.log.InfoContext(ctx, "cycle skipped", slog.String("depot_id", string(area)), slog.Any("err", err))
	case isClockWrong(err):
		r.log.WarnContext(ctx, "cycle skipped: this process's clock is wrong", slog.String("depot_id", string(area)), slog.Any("err", err))
	default:
		if r.cfg.OnFailure != nil {
			r.cfg.OnFailure(err)
		}
		r.log.WarnContext(ctx, "cycle failed; the next tick tries again", slog.Any("err", err), slog.Duration("after", time.Since(began)))
	}
}

// ownArea takes an area's lock whenever the area is proposed to this member, and runs its cycles,
// until ctx ends, or until stop is closed and the running cycle has ended.
func (r *Runner) ownArea(ctx context.Context, area domain.DepotID, stop <-chan struct{}) {
	var tried time.Time
	for {
		proposed, changed := r.team.takes(area)
		if proposed && time.Since(tried) >= r.team.members.Real(tryEvery) {
			tried = time.Now()
			h, err := r.takeOwnership(ctx, area)
			r.tell(ctx, area, tried, err)
			if err == nil {
				r.runOwned(ctx, h, area, stop)
				tried = time.Time{}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-stop:
			return
		case <-changed:
		}
	}
}

func (r *Runner) takeOwnership(ctx context.Context, area domain.DepotID) (*lock.Handle, error) {
	h, err := r.take(meter.WithOperation(ctx, "cycle"), area)
	if err == nil || ctx.Err() != nil {
		return h, err
	}
	if !errors.Is(err, ErrLocked) {
		r.meter.Cycles.Hindered(err)
	}
	if isClockWrong(err) {
		r.team.quit(err)
	}
	return nil, err
}

// runOwned runs an area's cycles while this member holds its lock, and releases it at the end. What
// the planner remembers ends with it: another member may plan the area in between.
func (r *Runner) runOwned(ctx context.Context, h *lock.Handle, area domain.DepotID, stop <-chan struct{}) {
	defer r.giveUp(ctx, h)
	r.team.ran(area, nil)
	defer r.team.gone(area)
	r.log.InfoContext(ctx, "area taken", slog.String("depot_id", string(area)), slog.String("fence", string(h.Fence())))
	ticker := r.clock.NewTicker(r.cfg.Interval)
	defer ticker.Stop()
	memory := r.NewMemory()
	for ctx.Err() == nil && h.Context().Err() == nil {
		began := time.Now()
		err := r.owned(ctx, h, area, memory)
		r.team.ran(area, err)
		r.tell(ctx, area, began, err)
		if !r.awaitTick(ctx, h, area, stop, ticker.Chan()) {
			return
		}
	}
}

// awaitTick returns true when the next cycle is due, and false when this member must run no more.
func (r *Runner) awaitTick(ctx context.Context, h *lock.Handle, area domain.DepotID, stop <-chan struct{}, tick <-chan time.Time) bool {
	for {
		kept, changed := r.team.keeps(area)
		if !kept {
			r.log.InfoContext(ctx, "area left to another optimizer", slog.String("depot_id", string(area)))
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-stop:
			return false
		case <-h.Context().Done():
			r.log.WarnContext(ctx, "area lost", slog.String("depot_id", string(area)), slog.Any("err", context.Cause(h.Context())))
			return false
		case <-tick:
			return true
		case <-changed:
		}
	}
}
