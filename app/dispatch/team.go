package dispatch

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

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
	// followAgain is the pause before the members are polled again after an error.
	followAgain = time.Second
	// failuresInARow of each area make a member give its areas away.
	failuresInARow = 3
	// leaveLimit is how long a member may take to leave, in machine time.
	leaveLimit = 2 * time.Second

	// Lower bounds in machine time: simulated time may run faster, the machine does not.
	leastHeartbeat = 500 * time.Millisecond
	leastPause     = 10 * time.Millisecond
)

// team is what a process knows and tells as a member: its heartbeat, the others, and which areas are
// proposed to it.
type team struct {
	runner    *Runner
	heartbeat time.Duration // of machine time
	silence   time.Duration // of the store's time, after which a member counts as dead
	began     time.Time
	wake      chan struct{} // asks for a heartbeat at once
	came      chan struct{} // asks to poll at once

	mu       sync.Mutex
	self     domain.Member
	beaten   time.Time // when its heartbeat was last written, by the store's clock
	view     ownership.View
	areas    []domain.Area
	joined   bool
	wrong    error // the clock's error, or why it could not be measured; while set, this process is not a member
	load     ownership.Load
	late     time.Time              // when a cycle last waited too long for its turn to search
	owned    map[domain.DepotID]int // areas that this process owns, and how often in a row their cycles failed
	mine     map[domain.DepotID]bool
	judging  bool          // the view is up to date
	proposed chan struct{} // closed by the next proposal
}

func newTeam(r *Runner) *team {
	heartbeat := max(r.clock.Real(ownership.Heartbeat), leastHeartbeat)
	slower := float64(heartbeat) * r.clock.Speed / float64(ownership.Heartbeat) // in the store's time
	return &team{
		runner: r, heartbeat: heartbeat, silence: time.Duration(float64(ownership.Silence) * slower).Truncate(time.Microsecond),
		began: time.Now(), wake: make(chan struct{}, 1), came: make(chan struct{}, 1),
		self:     domain.Member{Holder: r.cfg.Holder, Depots: r.cfg.Depots, Share: float64(r.cfg.Searches)},
		proposed: make(chan struct{}), owned: map[domain.DepotID]int{},
	}
}

// now is a time that passes with the heartbeats, for the view.
func (t *team) now() time.Time {
	return t.began.Add(time.Duration(float64(time.Since(t.began)) * float64(ownership.Heartbeat) / float64(t.heartbeat)))
}

// real is a duration of the fleet's time in machine time.
func (t *team) real(d time.Duration) time.Duration { return max(t.runner.clock.Real(d), leastPause) }

// run takes part until ctx ends, and leaves.
func (t *team) run(ctx context.Context) {
	t.self.ID = domain.MemberID(t.runner.newID())
	var parts sync.WaitGroup
	parts.Go(func() { t.follow(ctx) })
	parts.Go(func() { t.look(ctx) })
	t.beat(ctx)
	t.leave(ctx)
	parts.Wait()
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

// beat writes heartbeats until ctx ends.
func (t *team) beat(ctx context.Context) {
	for {
		pause := t.heartbeat
		if !t.clockIsRight(ctx) {
			pause = min(pause, t.real(t.runner.cfg.Interval))
		} else if err := t.beatOnce(ctx); err != nil && ctx.Err() == nil {
			pause = min(pause, t.real(followAgain))
			t.runner.log.WarnContext(ctx, "heartbeat not written; other optimizers may take this one for dead", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		case <-time.After(pause):
		}
	}
}

func (t *team) beatOnce(ctx context.Context) error {
	ctx, end := context.WithTimeout(meter.WithOperation(ctx, "members"), t.heartbeat)
	defer end()
	t.mu.Lock()
	if t.load.Adapt(&t.self, t.now(), t.late, t.failing(), float64(t.runner.cfg.Searches)) {
		t.runner.log.InfoContext(ctx, "share of the areas changed", slog.Float64("share", t.self.Share), slog.Float64("before", t.self.ShareBefore))
	}
	self := t.self
	t.mu.Unlock()
	at, err := t.runner.store.Beat(ctx, self)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	late := ownership.Late(t.beaten, at, t.silence)
	t.beaten = at
	switch {
	case t.self.ShareSince.IsZero():
		t.self.ShareSince = at
		signal(t.came)
	case late: // the others may take it for dead, and learn only from a change that it is not
		t.self.ShareBefore, t.self.ShareSince = t.self.Share, time.Time{}
		signal(t.wake)
	}
	return nil
}

// signal wakes whoever waits for a channel with room for one.
func signal(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// clockIsRight reports whether this process may be a member. One whose clock is wrong can take no
// lock, so areas must not be proposed to it. The clock is measured before it joins, and again after a
// lock was refused because of it.
func (t *team) clockIsRight(ctx context.Context) bool {
	t.mu.Lock()
	joined, wrong := t.joined, t.wrong
	t.mu.Unlock()
	if joined && wrong == nil {
		return true
	}
	if joined {
		t.leave(ctx)
	}
	if checker, ok := t.runner.locks.(lock.ClockChecker); ok {
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
		t.mu.Lock()
		t.joined, t.wrong = false, err
		t.mu.Unlock()
		if err != nil {
			return false
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.joined, t.wrong, t.self.ShareBefore, t.self.ShareSince = true, nil, 0, time.Time{} // it comes anew
	return true
}

// quit ends the membership because the clock is wrong.
func (t *team) quit(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong, t.mine = why, nil
	signal(t.wake)
}

func (t *team) leave(ctx context.Context) {
	ctx, end := context.WithTimeout(meter.WithOperation(context.WithoutCancel(ctx), "members"), leaveLimit)
	defer end()
	if err := t.runner.store.Leave(ctx, t.self.ID); err != nil {
		t.runner.log.WarnContext(ctx, "member not removed; its areas wait until its heartbeat is too old", slog.Any("err", err))
	}
}

// follow polls the members until ctx ends.
func (t *team) follow(ctx context.Context) {
	for {
		pause := t.heartbeat / (ownership.Heartbeat / ownership.Poll)
		if err := t.poll(ctx); err != nil && ctx.Err() == nil {
			pause = min(pause, t.real(followAgain))
			t.runner.log.WarnContext(ctx, "members not read; this optimizer takes no areas until they are", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-t.came:
		case <-time.After(pause):
		}
	}
}

func (t *team) poll(ctx context.Context) error {
	ctx, end := context.WithTimeout(meter.WithOperation(ctx, "members"), t.heartbeat)
	defer end()
	t.mu.Lock()
	ask := t.view.Ask(t.silence, t.now())
	t.mu.Unlock()
	news, err := t.runner.store.PollMembers(ctx, ask)
	if err == nil {
		t.saw(news)
	}
	return err
}

func (t *team) saw(news domain.MemberNews) {
	for _, err := range news.Malformed {
		t.runner.log.Warn("member's document malformed; areas are proposed as if it did not exist", slog.Any("err", err))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.view.Saw(news, t.now())
	if !t.judging {
		t.propose()
	}
}

// look proposes areas until ctx ends.
func (t *team) look(ctx context.Context) {
	ticker := time.NewTicker(t.real(min(lookEvery, t.runner.cfg.Interval)))
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
		} else if time.Since(idle) >= t.real(t.runner.cfg.Interval) {
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
	return !t.judging || t.wrong != nil || len(t.mine) > 0 || len(t.owned) > 0
}

// propose does so. The caller holds mu.
func (t *team) propose() {
	now := t.now()
	living, store, ok := t.view.Living(now)
	ok = ok && slices.ContainsFunc(living, func(m domain.Member) bool { return m.ID == t.self.ID })
	switch {
	case t.wrong != nil:
		t.mine, ok = nil, true
	case ok:
		t.mine = map[domain.DepotID]bool{}
		for area, member := range ownership.Propose(t.areas, living, store) {
			if member == t.self.ID {
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
	r.team.late = r.team.now()
}
