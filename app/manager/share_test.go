package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/app/membership"
	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// mortal is a member's store that can be cut off, as when its process is killed, or for polls alone.
type mortal struct {
	membership.Store
	dead, deaf atomic.Bool
}

var errDead, errDeaf = errors.New("killed"), errors.New("deaf")

func (s *mortal) PollMembers(ctx context.Context, p domain.MemberPoll) (domain.MemberNews, error) {
	if s.deaf.Load() {
		return domain.MemberNews{}, errDeaf
	}
	return s.Store.PollMembers(ctx, p)
}

func (s *mortal) Beat(ctx context.Context, m domain.Member) (time.Time, error) {
	if s.dead.Load() {
		return time.Time{}, errDead
	}
	return s.Store.Beat(ctx, m)
}

func (s *mortal) Leave(ctx context.Context, id domain.MemberID) error {
	if s.dead.Load() {
		return errDead
	}
	return s.Store.Leave(ctx, id)
}

// sharing are State Managers that do nothing but sweep what is due.
type sharing struct {
	t        *testing.T
	clock    *simclock.Clock
	client   *firestore.Client
	depots   []domain.Depot
	managers []*Manager
	stores   []*mortal
	stops    []func()
}

func newSharing(t *testing.T, depots int, managers ...Config) *sharing {
	t.Helper()
	clock, err := simclock.New(simclock.Rate{Epoch: time.Now(), Speed: 20})
	if err != nil {
		t.Fatal(err)
	}
	s := &sharing{t: t, clock: clock}
	for i := range depots {
		s.depots = append(s.depots, domain.Depot{ID: domain.DepotID(fmt.Sprintf("D%02d", i)), Name: "depot", Position: domain.Position{Lat: 48, Lon: float64(i)}})
	}
	hosts := emutest.Hosts(t)
	hosts.FirestoreHost = firestoreemu.StartT(t, firestoreemu.Options{Clock: clock, Indexes: deploy.FirestoreIndexes}).Addr()
	s.client = emutest.Connect(t, hosts).Firestore
	for i, cfg := range managers {
		m, err := New(emutest.Connect(t, hosts), clock, cfg, emutest.Log(t))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := m.Store.Setup(t.Context(), s.depots, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		m.term.nextAll = clock.Now().Add(24 * time.Hour) // a sweep of everything would hide a depot that nobody sweeps
		store := &mortal{Store: m.Store}
		m.share.members = membership.New(membership.Config{
			Store: store, Clock: clock, Log: m.Log, Self: domain.Member{Sweeps: true}, Retry: m.cfg.SweepInterval, MayJoin: m.mayShare,
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { m.sweep(ctx) })
		running.Go(func() { m.share.members.Run(ctx, domain.MemberID(fmt.Sprint("M", i))) })
		s.managers = append(s.managers, m)
		s.stops = append(s.stops, sync.OnceFunc(func() {
			cancel()
			running.Wait()
			if err := m.Locks.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}))
		s.stores = append(s.stores, store)
		t.Cleanup(s.stops[i])
	}
	return s
}

// kill ends a manager without letting it leave.
func (s *sharing) kill(i int) {
	s.stores[i].dead.Store(true)
	s.stops[i]()
}

// awaitShares waits until each depot is taken by one of the living managers, and by no other, and each
// of these takes some.
func (s *sharing) awaitShares(living ...*Manager) {
	s.t.Helper()
	emutest.Eventually(s.t, "the depots to be shared", func() error {
		taken := map[domain.DepotID]int{}
		for _, m := range living {
			takes, some := m.takes(s.t.Context(), m.term.lasts()), false
			if takes == nil {
				return errors.New("a manager does not know the members")
			}
			for _, d := range s.depots {
				if takes(d.ID) {
					taken[d.ID]++
					some = true
				}
			}
			if !some {
				return errors.New("a manager takes nothing")
			}
			if takes("") != m.term.lasts() {
				return errors.New("the sweeper does not take what belongs to no depot")
			}
		}
		for _, d := range s.depots {
			if taken[d.ID] != 1 {
				return fmt.Errorf("%d managers take depot %s", taken[d.ID], d.ID)
			}
		}
		return nil
	})
}

// awaitFailure waits until a manager knows that it cannot sweep.
func (s *sharing) awaitFailure(i int) {
	s.t.Helper()
	emutest.Eventually(s.t, "the manager to fail", func() error {
		if s.managers[i].share.failed.Load() == nil {
			return errors.New("it has not failed")
		}
		return nil
	})
}

// awaitSweep makes a drone of each depot due, and waits until each was swept, once.
func (s *sharing) awaitSweep() {
	s.t.Helper()
	store, now := s.managers[len(s.managers)-1].Store, s.clock.Now()
	for _, d := range s.depots {
		drone := map[string]any{
			"status": "IDLE", "homeDepotId": string(d.ID), "revision": 1, "seenAt": now.Add(-time.Hour), "dueAt": now, "dueArea": string(d.ID),
		}
		if _, err := s.client.Doc("drones/DRONE-"+string(d.ID)).Set(s.t.Context(), drone); err != nil {
			s.t.Fatal(err)
		}
	}
	emutest.Eventually(s.t, "the drones to be swept", func() error {
		for _, d := range s.depots {
			drone, err := store.Drone(s.t.Context(), "DRONE-"+domain.DroneID(d.ID))
			if err != nil {
				return err
			}
			if drone.Status != domain.DroneUnknown {
				return fmt.Errorf("the drone of %s is %s", d.ID, drone.Status)
			}
			if drone.Revision != 2 {
				s.t.Errorf("the drone of %s was changed %d times", d.ID, drone.Revision-1)
			}
		}
		return nil
	})
	s.t.Logf("swept after %s", s.clock.Since(now))
}

// F-OWN-02, F-OWN-03: three State Managers share the depots' sweeps. When two of them are killed, the
// sweeper among them, the third sweeps all depots.
func TestManager_SharesTheSweep(t *testing.T) {
	t.Parallel()
	s := newSharing(t, unsharedDepots+2, Config{}, Config{}, Config{})
	s.awaitShares(s.managers...)
	s.awaitSweep()
	s.kill(0)
	s.kill(1)
	s.awaitSweep()
	s.awaitShares(s.managers[2])
}

// F-OWN-02, F-OWN-03: each depot is swept by a State Manager that lives, and all have some. When one
// dies, its depots go to others.
func TestSweepers_NameALivingStateManager(t *testing.T) {
	var depots []domain.Depot
	for i := range 100 {
		depots = append(depots, domain.Depot{ID: domain.DepotID(fmt.Sprint("D", i))})
	}
	living := []domain.Member{{ID: "M1", Sweeps: true}, {ID: "M2", Sweeps: true}, {ID: "M3", Sweeps: true}}
	for ; len(living) > 0; living = living[1:] {
		owners, sweeps := sweepers(depots, living, time.Time{}), map[domain.MemberID]int{}
		for _, d := range depots {
			sweeps[owners[d.ID]]++
		}
		for _, m := range living {
			if least := len(depots) / len(living) / 2; sweeps[m.ID] < least {
				t.Errorf("of %d State Managers %s sweeps %d depots, want %d", len(living), m.ID, sweeps[m.ID], least)
			}
			delete(sweeps, m.ID)
		}
		if len(sweeps) > 0 {
			t.Errorf("of %d State Managers others sweep %v", len(living), sweeps)
		}
	}
}

// F-OWN-02: the sweeper of a fleet with few depots sweeps them alone, and nobody becomes a member.
func TestManager_SharesNoSweepOfFewDepots(t *testing.T) {
	t.Parallel()
	s := newSharing(t, unsharedDepots, Config{}, Config{})
	s.awaitSweep()
	for _, m := range s.managers {
		emutest.Eventually(t, "the manager to know that it needs no share", func() error {
			if err := m.share.members.Quitted(); !errors.Is(err, errFewDepots) {
				return fmt.Errorf("it says %v", err)
			}
			return nil
		})
	}
	news, err := s.managers[0].Store.PollMembers(t.Context(), domain.MemberPoll{})
	if err != nil || !news.ReadTime.IsZero() {
		t.Errorf("members %+v, %v", news, err)
	}
}

// F-OWN-02, F-OWN-03: a State Manager that cannot sweep its share leaves it to others.
func TestManager_LeavesItsShareIfItCannotSweep(t *testing.T) {
	t.Parallel()
	s := newSharing(t, unsharedDepots+2, Config{}, Config{SweepLimit: time.Nanosecond})
	s.awaitFailure(1)
	s.awaitSweep()
}

// F-OWN-02, F-OWN-03: a State Manager that no longer hears of the members leaves its share to others.
func TestManager_LeavesItsShareIfItDoesNotKnowTheMembers(t *testing.T) {
	t.Parallel()
	s := newSharing(t, unsharedDepots+2, Config{}, Config{})
	s.awaitShares(s.managers...)
	i := slices.IndexFunc(s.managers, func(m *Manager) bool { return !m.term.lasts() }) // the sweeper sweeps all then
	s.stores[i].deaf.Store(true)
	s.awaitFailure(i)
	s.awaitSweep()
}
