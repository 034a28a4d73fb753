package dispatch

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/app/membership"
	"github.com/dronefleet/dronefleet/app/ownership"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/lock"
)

const (
	// lookEvery is how often a member looks which areas are proposed to it.
	lookEvery = time.Second
	// tryEvery is the time between two tries to take an area that is proposed and not free yet.
	tryEvery = 2 * time.Second
	// failuresInARow of each area make a member give its areas away.
	failuresInARow = 3
)

// team is what a process knows as a member: the others, and which areas are proposed to it.
type team struct {
	runner  *Runner
	members *membership.Membership

	mu       sync.Mutex
	areas    []domain.Area
	load     ownership.Load
	late     time.Time              // when a cycle last waited too long for its turn to search
	owned    map[domain.DepotID]int // areas that this process owns, and how often in a row their cycles failed
	mine     map[domain.DepotID]bool
	judging  bool          // what is known of the members is up to date
	proposed chan struct{} // closed by the next proposal
}

func newTeam(r *Runner) *team {
	t := &team{runner: r, proposed: make(chan struct{}), owned: map[domain.DepotID]int{}}
	t.members = membership.New(membership.Config{
		Store: r.store, Clock: r.clock, Log: r.log, Retry: r.cfg.Interval,
		Self:    domain.Member{Holder: r.cfg.Holder, Depots: r.cfg.Depots, Share: float64(r.cfg.Searches)},
		MayJoin: t.clockIsRight, Adapt: t.adapt, Heard: t.heard,
	})
	return t
}

// run takes part until ctx ends, and leaves.
func (t *team) run(ctx context.Context) {
	var looking sync.WaitGroup
	looking.Go(func() { t.look(ctx) })
	t.members.Run(ctx, domain.MemberID(t.runner.newID()))
	looking.Wait()
}

// know replaces the areas of the fleet, apart from those that are kept.
func (t *team) know(areas []domain.Area, kept func(domain.DepotID) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, was := range t.areas {
		same := func(a domain.Area) bool { return a.ID() == was.ID() }
		if kept(was.ID()) && !slices.ContainsFunc(areas, same) {
			areas = append(areas, was)
		}
	}
	t.areas = areas
}

// adapt changes the share of this process to how it keeps up.
func (t *team) adapt(self *domain.Member, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.load.Adapt(self, now, t.late, t.failing(), float64(t.runner.cfg.Searches)) {
		t.runner.log.Info("share of the areas changed", slog.Float64("share", self.Share), slog.Float64("before", self.ShareBefore))
	}
}

// clockIsRight returns nil if this process may be a member. One whose clock is wrong can take no
// lock, so areas must not be proposed to it. The clock is measured before it joins, and again after a
// lock was refused because of it.
func (t *team) clockIsRight(ctx context.Context) error {
	checker, ok := t.runner.locks.(lock.ClockChecker)
	if !ok {
		return nil
	}
	measured, err := checker.CheckClock(ctx)
	if err == nil && measured.Level == lock.ClockBlock {
		err = &lock.ClockSkewError{Offset: measured.Offset, Uncertainty: measured.Uncertainty, Limit: lock.SkewBlock}
		t.runner.meter.Cycles.Ended(meter.CycleClockWrong)
	}
	if err != nil && ctx.Err() == nil {
		t.runner.meter.Cycles.Hindered(err)
		text := "clock not measured; this optimizer takes no areas until it is"
		if isClockWrong(err) {
			text = "cycle skipped: this process's clock is wrong"
		}
		t.runner.log.WarnContext(ctx, text, slog.Any("err", err))
	}
	return err
}

// quit ends the membership because the clock is wrong.
func (t *team) quit(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mine = nil
	t.members.Quit(why)
}

// heard proposes at once if this process has not known the members.
func (t *team) heard() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.judging {
		t.propose()
	}
}

// look proposes areas until ctx ends.
func (t *team) look(ctx context.Context) {
	ticker := time.NewTicker(t.members.Real(min(lookEvery, t.runner.cfg.Interval)))
	defer ticker.Stop()
	idle := time.Now() // since when it has owned nothing, or told so
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if t.proposeNow() {
			idle = time.Now()
		} else if time.Since(idle) >= t.members.Real(t.runner.cfg.Interval) {
			t.runner.meter.Cycles.Ended(meter.CycleSkipped) // so that it counts as ready
			idle = time.Now()
		}
	}
}

// proposeNow notes which areas are proposed to this member. It returns false if all areas are other
// members'.
func (t *team) proposeNow() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.propose()
	return !t.judging || t.members.Quitted() != nil || len(t.mine) > 0 || len(t.owned) > 0
}

// propose does so. The caller holds mu.
func (t *team) propose() {
	living, self, store, ok := t.members.Living()
	switch {
	case t.members.Quitted() != nil:
		t.mine, ok = nil, true
	case ok:
		t.mine = map[domain.DepotID]bool{}
		for area, member := range ownership.Propose(t.areas, living, store) {
			if member == self {
				t.mine[area] = true
			}
		}
	}
	t.judging = ok
	close(t.proposed)
	t.proposed = make(chan struct{})
}

// keeps reports whether an area that this member owns is still proposed to it, and takes whether one
// that it does not own is. Both return a channel that is closed when that may change.
func (t *team) keeps(area domain.DepotID) (bool, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mine[area] || !t.judging, t.proposed
}

func (t *team) takes(area domain.DepotID) (bool, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mine[area] && t.judging, t.proposed
}

// ran notes how a cycle of an area that this process owns ended, and gone that it owns it no more.
func (t *team) ran(area domain.DepotID, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owned[area]++
	if err == nil || isOtherArea(err) {
		t.owned[area] = 0
	}
}

func (t *team) gone(area domain.DepotID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.owned, area)
}

// owns reports whether this process owns an area.
func (t *team) owns(area domain.DepotID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, is := t.owned[area]
	return is
}

// failing reports whether the cycles of all its areas fail, again and again: the reason may be this
// process's. The caller holds mu.
func (t *team) failing() bool {
	for _, failures := range t.owned {
		if failures < failuresInARow {
			return false
		}
	}
	return len(t.owned) > 0
}

// waited notes how long a cycle waited for its turn to search.
func (r *Runner) waited(d time.Duration) {
	r.meter.Cycles.NoteWait(d)
	if r.team == nil || d <= r.clock.Real(r.cfg.Interval) {
		return
	}
	r.team.mu.Lock()
	defer r.team.mu.Unlock()
	r.team.late = r.team.members.Now()
}
