package manager

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/membership"
	"github.com/dronefleet/dronefleet/app/ownership"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/lock"
)

const (
	// unsharedDepots is how many depots the sweeper sweeps alone. With them it sends as many queries
	// as with one, and heartbeats would cost more than they save.
	unsharedDepots = 30
	// unfitFor is how long a manager takes no share after a sweep that failed. After an outage all
	// drones are due although their reports wait: until these are applied the sweeper works alone, as
	// in a small fleet.
	unfitFor = 2 * time.Minute
)

var (
	errFewDepots  = errors.New("few depots: the sweeper sweeps them alone")
	errClockWrong = errors.New("this process's clock is wrong")
	errUnfit      = errors.New("this process's sweeps failed lately")
	errBlind      = errors.New("this process does not know the members")
)

// share is what a manager needs for its share of the sweep. Each depot is swept by the member to
// which it is proposed, without a lock: every change is judged in a transaction, so sweeping a depot
// twice does no harm. The sweeper takes whatever no other member takes.
type share struct {
	members *membership.Membership
	failed  atomic.Pointer[time.Time] // when this manager last could not sweep, by the machine
	// knew is when it last knew its share or was no member, at a time of members. Only the goroutine
	// that sweeps uses it.
	knew time.Time
}

// mayShare returns nil if this manager may take a share of the sweep.
func (m *Manager) mayShare(ctx context.Context) error {
	if failed := m.share.failed.Load(); failed != nil && time.Since(*failed) < m.clock.Real(unfitFor) {
		return errUnfit
	}
	if measured := m.measured.Load(); measured == nil || measured.Level == lock.ClockBlock {
		return errClockWrong
	}
	depots, err := m.Store.KnownDepots(ctx)
	if err == nil && len(depots.Items) <= unsharedDepots {
		err = errFewDepots
	}
	return err
}

// cannotSweep leaves this manager's share to others for a while.
func (m *Manager) cannotSweep(why error) {
	now := time.Now()
	m.share.failed.Store(&now)
	m.leaveShare(why)
}

// leaveShare leaves this manager's share to others.
func (m *Manager) leaveShare(why error) {
	if m.share.members.Quitted() == nil {
		m.share.members.Quit(why)
	}
}

// takes says which areas this manager sweeps. The sweeper takes those that no other member takes. While
// the members are unknown the result is nil: the sweeper then sweeps all areas, and the others none.
func (m *Manager) takes(ctx context.Context, sweeper bool) func(domain.DepotID) bool {
	living, self, store, ok := m.share.members.Living()
	if !ok || m.share.members.Quitted() != nil {
		return nil
	}
	depots, err := m.Store.KnownDepots(ctx)
	if err != nil {
		return nil
	}
	owners := sweepers(depots.Items, living, store)
	return func(area domain.DepotID) bool {
		owner, owned := owners[area]
		return owner == self || sweeper && !owned
	}
}

// sweepers names the member that sweeps each depot.
func sweepers(depots []domain.Depot, living []domain.Member, at time.Time) map[domain.DepotID]domain.MemberID {
	areas := make([]domain.Area, len(depots))
	for i, d := range depots {
		areas[i] = domain.Area{Depots: []domain.Depot{d}}
	}
	members := slices.Clone(living)
	for i := range members {
		members[i].Share, members[i].ShareBefore = 1, 1
	}
	return ownership.Propose(areas, members, at)
}

// sweepShare sweeps what is due in this manager's share, if it has one. A member that has not known its
// share for a while leaves, because nobody else sweeps it.
func (m *Manager) sweepShare(ctx context.Context) error {
	ctx, end := context.WithTimeout(ctx, m.cfg.SweepLimit)
	defer end()
	takes, now := m.takes(ctx, false), m.share.members.Now()
	switch {
	case takes != nil:
		m.share.knew = now
		return m.sweepAreas(ctx, takes)
	case m.share.knew.IsZero() || m.share.members.Quitted() != nil:
		m.share.knew = now
	case now.Sub(m.share.knew) > ownership.Silence:
		m.cannotSweep(errBlind)
	}
	return nil
}

// sweepAreas sweeps what is due in the areas for which takes returns true; nil means all. After a failure
// that other managers may not have, this one takes no share. If it changed something before it failed, it
// keeps its share, and its next sweep goes on.
func (m *Manager) sweepAreas(ctx context.Context, takes func(domain.DepotID) bool) error {
	result, err := m.term.sweeper.Due(ctx, m.clockHolds, takes)
	m.logSwept(ctx, result)
	if firestoretx.Retryable(err) && result == (firestoretx.SweepResult{}) {
		m.cannotSweep(err)
	}
	return err
}
