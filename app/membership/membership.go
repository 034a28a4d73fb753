package membership

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/app/ownership"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
)

const (
	// again is the pause before a heartbeat or a poll is tried again after an error.
	again = time.Second
	// leaveLimit is how long a member may take to leave, in machine time.
	leaveLimit = 2 * time.Second

	// Lower bounds in machine time: simulated time may run faster, the machine does not.
	leastHeartbeat = 500 * time.Millisecond
	leastPause     = 10 * time.Millisecond
)

// Store is what a member needs of the store.
type Store interface {
	Beat(ctx context.Context, m domain.Member) (time.Time, error)
	Leave(ctx context.Context, id domain.MemberID) error
	PollMembers(ctx context.Context, p domain.MemberPoll) (domain.MemberNews, error)
}

// Config describes a member.
type Config struct {
	Store Store
	Clock *simclock.Clock
	Log   *slog.Logger
	// Self is the member as it comes, without its id.
	Self domain.Member
	// Retry is how long a process that may not be a member waits before it asks again.
	Retry time.Duration
	// MayJoin returns nil if this process may be a member. It is asked before it joins, and after Quit.
	MayJoin func(context.Context) error
	// Adapt, if not nil, changes the share before a heartbeat, at a time of Now.
	Adapt func(self *domain.Member, now time.Time)
	// Heard, if not nil, is called after each poll.
	Heard func()
}

// Membership is that of one process. Its times are its own, which pass with the heartbeats.
type Membership struct {
	cfg       Config
	heartbeat time.Duration // of machine time
	silence   time.Duration // of the store's time, after which a member counts as dead
	began     time.Time
	wake      chan struct{} // asks for a heartbeat at once
	came      chan struct{} // asks to poll at once

	mu     sync.Mutex
	self   domain.Member
	beaten time.Time // when its heartbeat was last written, by the store's clock
	view   ownership.View
	joined bool
	wrong  error // why this process is not a member
}

// New returns the membership of a process.
func New(cfg Config) *Membership {
	heartbeat := max(cfg.Clock.Real(ownership.Heartbeat), leastHeartbeat)
	slower := float64(heartbeat) * cfg.Clock.Speed / float64(ownership.Heartbeat) // in the store's time
	return &Membership{
		cfg: cfg, heartbeat: heartbeat, silence: time.Duration(float64(ownership.Silence) * slower).Truncate(time.Microsecond),
		began: time.Now(), wake: make(chan struct{}, 1), came: make(chan struct{}, 1), self: cfg.Self,
	}
}

// Now is a time that passes with the heartbeats, for the view.
func (m *Membership) Now() time.Time {
	return m.began.Add(time.Duration(float64(time.Since(m.began)) * float64(ownership.Heartbeat) / float64(m.heartbeat)))
}

// Real is a duration of the fleet's time in machine time.
func (m *Membership) Real(d time.Duration) time.Duration {
	return max(m.cfg.Clock.Real(d), leastPause)
}

// Run takes part with an id until ctx ends, and leaves.
func (m *Membership) Run(ctx context.Context, id domain.MemberID) {
	m.mu.Lock()
	m.self.ID = id
	m.mu.Unlock()
	var following sync.WaitGroup
	following.Go(func() { m.follow(ctx) })
	m.beat(ctx)
	if m.isJoined() {
		m.leave(ctx)
	}
	following.Wait()
}

// Quit ends the membership until MayJoin returns nil.
func (m *Membership) Quit(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wrong = why
	signal(m.wake)
}

// Quitted returns why this process is not a member, nil if it is or has not joined yet.
func (m *Membership) Quitted() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wrong
}

// Living lists the members of this one's kind that live, by id, and the store's time. It returns false
// if that is not known, or if this process is not among them.
func (m *Membership) Living() (living []domain.Member, self domain.MemberID, store time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	living, store, ok = m.view.Living(m.Now())
	living = slices.DeleteFunc(living, func(other domain.Member) bool { return other.Sweeps != m.self.Sweeps })
	ok = ok && slices.ContainsFunc(living, func(other domain.Member) bool { return other.ID == m.self.ID })
	return living, m.self.ID, store, ok
}

// beat writes heartbeats until ctx ends.
func (m *Membership) beat(ctx context.Context) {
	for {
		pause := m.heartbeat
		if !m.join(ctx) {
			pause = min(pause, m.Real(m.cfg.Retry))
		} else if err := m.beatOnce(ctx); err != nil && ctx.Err() == nil {
			pause = min(pause, m.Real(again))
			m.cfg.Log.WarnContext(ctx, "heartbeat not written; other members may take this one for dead", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-time.After(pause):
		}
	}
}

func (m *Membership) isJoined() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.joined
}

// join reports whether this process is a member, and makes it one if it may be.
func (m *Membership) join(ctx context.Context) bool {
	m.mu.Lock()
	joined, wrong := m.joined, m.wrong
	m.mu.Unlock()
	if joined && wrong == nil {
		return true
	}
	if joined {
		m.leave(ctx)
	}
	err := m.cfg.MayJoin(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.joined, m.wrong = err == nil, err
	m.self.ShareBefore, m.self.ShareSince = 0, time.Time{} // it comes anew
	return m.joined
}

func (m *Membership) beatOnce(ctx context.Context) error {
	ctx, end := context.WithTimeout(meter.WithOperation(ctx, "members"), m.heartbeat)
	defer end()
	m.mu.Lock()
	self := m.self
	m.mu.Unlock()
	if m.cfg.Adapt != nil { // outside of mu, because it may ask this membership; only this goroutine changes self
		m.cfg.Adapt(&self, m.Now())
		m.mu.Lock()
		m.self = self
		m.mu.Unlock()
	}
	at, err := m.cfg.Store.Beat(ctx, self)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	late := ownership.Late(m.beaten, at, m.silence)
	m.beaten = at
	switch {
	case m.self.ShareSince.IsZero():
		m.self.ShareSince = at
		signal(m.came)
	case late: // the others may take it for dead, and learn only from a change that it is not
		m.self.ShareBefore, m.self.ShareSince = m.self.Share, time.Time{}
		signal(m.wake)
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

func (m *Membership) leave(ctx context.Context) {
	ctx, end := context.WithTimeout(meter.WithOperation(context.WithoutCancel(ctx), "members"), leaveLimit)
	defer end()
	if err := m.cfg.Store.Leave(ctx, m.self.ID); err != nil {
		m.cfg.Log.WarnContext(ctx, "member not removed; its areas wait until its heartbeat is too old", slog.Any("err", err))
	}
}

// follow polls the members until ctx ends.
func (m *Membership) follow(ctx context.Context) {
	for {
		pause := m.heartbeat / (ownership.Heartbeat / ownership.Poll)
		if !m.isJoined() {
			pause = m.heartbeat // the first heartbeat asks for a poll
		} else if err := m.poll(ctx); err != nil && ctx.Err() == nil {
			pause = min(pause, m.Real(again))
			m.cfg.Log.WarnContext(ctx, "members not read; no areas are taken until they are", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-m.came:
		case <-time.After(pause):
		}
	}
}

func (m *Membership) poll(ctx context.Context) error {
	ctx, end := context.WithTimeout(meter.WithOperation(ctx, "members"), m.heartbeat)
	defer end()
	m.mu.Lock()
	ask := m.view.Ask(m.silence, m.Now())
	m.mu.Unlock()
	news, err := m.cfg.Store.PollMembers(ctx, ask)
	if err == nil {
		m.saw(news)
	}
	return err
}

func (m *Membership) saw(news domain.MemberNews) {
	for _, err := range news.Malformed {
		m.cfg.Log.Warn("member's document malformed; areas are proposed as if it did not exist", slog.Any("err", err))
	}
	m.mu.Lock()
	m.view.Saw(news, m.Now())
	m.mu.Unlock()
	if m.cfg.Heard != nil {
		m.cfg.Heard()
	}
}
