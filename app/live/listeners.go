package live

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
)

const (
	// decisionsBefore is how far back decisions are read at the start.
	decisionsBefore = 10 * time.Minute
	// cyclesShown is how many cycles of all depots are shown.
	cyclesShown = 120
	// acksRead is how many acknowledgements are known, the latest ones.
	acksRead = 500
	// refusalsShown is how many refused orders are shown, the latest ones.
	refusalsShown = 100
	// eventsBefore is how far back events are read at the start: the clock of a State Manager may
	// be behind.
	eventsBefore = 2 * time.Minute
	// eventsFor is how long a listener follows events and decisions before it starts again: its
	// result only grows.
	eventsFor = 15 * time.Minute
	// locksEvery is how often the locks are read.
	locksEvery = 5 * time.Second
	// dronesEvery is how often all drones are read again, for documents that people edit: no event
	// tells of that.
	dronesEvery = 10 * time.Minute
	// withoutTap is the least time between two reads of all drones where the feed cannot subscribe
	// to reports; readsWithoutTap bounds the reads a second.
	withoutTap      = 10 * time.Second
	readsWithoutTap = 100
)

// look changes the picture after a source has answered with a sight of its entities.
func look[T any](s *session, source string, sight firestoretx.Sight[T], change func(*picture)) {
	for _, err := range sight.Malformed {
		s.malformed(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.picture)
	s.sources.answered(source, sight.ReadTime)
}

func (s *session) sawDepots(sight firestoretx.Sight[domain.Depot]) {
	look(s, "depots", sight, func(p *picture) { p.putDepots(sight.Now, goneFrom(sight)) })
}

func (s *session) sawWarehouses(sight firestoretx.Sight[domain.Warehouse]) {
	look(s, "warehouses", sight, func(p *picture) { p.putWarehouses(sight.Now, goneFrom(sight)) })
}

// goneFrom tells which of the entities that are shown exist no longer.
func goneFrom[T any](sight firestoretx.Sight[T]) func(id string, seen bool) bool {
	return func(id string, seen bool) bool { return sight.Whole && !seen || slices.Contains(sight.Gone, id) }
}

func (s *session) sawOrders(sight firestoretx.Sight[domain.Order]) {
	look(s, "orders", sight, func(p *picture) {
		over := sawOpen(sight, p.state.Orders, func(o domain.Order) domain.OrderID { return o.ID }, p.putOrder, func(o domain.Order) bool { return !o.Status.Final() })
		s.readAgain(KindOrder, over)
	})
}

func (s *session) sawMissions(sight firestoretx.Sight[domain.Mission]) {
	look(s, "missions", sight, func(p *picture) {
		over := sawOpen(sight, p.state.Missions, func(m domain.Mission) domain.MissionID { return m.ID }, p.putMission, func(m domain.Mission) bool { return m.Status == domain.MissionActive })
		s.readAgain(KindMission, over)
	})
}

// sawOpen shows entities that are open. It returns the ids of those that are no longer open: how
// they ended must be read.
func sawOpen[ID ~string, T any](sight firestoretx.Sight[T], known map[ID]T, id func(T) ID, put func(T), open func(T) bool) (over []string) {
	seen := map[ID]bool{}
	for _, v := range sight.Now {
		seen[id(v)] = true
		put(v)
	}
	if sight.Whole {
		for id, v := range known {
			if !seen[id] && open(v) {
				over = append(over, string(id))
			}
		}
	}
	return append(over, sight.Gone...)
}

func (s *session) sawAcks(sight firestoretx.Sight[domain.AlertAck]) {
	look(s, "acknowledgements", sight, func(p *picture) { p.putAcks(sight.Now, sight.Whole) })
}

func (s *session) sawRefusals(sight firestoretx.Sight[domain.Refusal]) {
	look(s, "refusals", sight, func(p *picture) { p.putRefusals(sight.Now, goneFrom(sight)) })
}

func (s *session) sawCycles(sight firestoretx.Sight[domain.Cycle]) {
	look(s, "cycles", sight, func(p *picture) { p.putCycles(sight.Now, sight.Gone, sight.Whole) })
}

// followDecisions has cycles shown with what came of their decisions.
func (s *session) followDecisions(ctx context.Context) error {
	return forAWhile(ctx, func(ctx context.Context) error {
		return s.cfg.Store.FollowDecisions(ctx, s.cfg.Now().Add(-decisionsBefore), s.sawDecisions)
	})
}

func (s *session) sawDecisions(sight firestoretx.Sight[domain.LedgerEntry]) {
	look(s, "decisions", sight, func(p *picture) { p.putDecisions(sight.Now) })
}

// followEvents has drones read again whose state changed.
func (s *session) followEvents(ctx context.Context) error {
	return forAWhile(ctx, func(ctx context.Context) error {
		return s.cfg.Store.FollowEvents(ctx, s.cfg.Now().Add(-eventsBefore), s.sawEvents)
	})
}

// forAWhile follows for eventsFor at most. Reaching that is not an error: the caller starts again.
func forAWhile(ctx context.Context, follow func(context.Context) error) error {
	limited, stop := context.WithTimeout(ctx, eventsFor)
	defer stop()
	if err := follow(limited); limited.Err() == nil {
		return err
	}
	return nil
}

func (s *session) sawEvents(sight firestoretx.Sight[domain.Event]) {
	look(s, "events", sight, func(p *picture) {
		var changed []string
		for _, e := range sight.Now {
			if e.Entity == domain.EntityDrone && p.state.Drones[domain.DroneID(e.ID)].Revision < e.Revision {
				changed = append(changed, e.ID)
			}
			if e.Reason == string(policy.ReasonPickedUpAgain) {
				p.state.PickedUpAgain[domain.OrderID(e.ID)] = e.Time
			}
		}
		s.readAgain(KindDrone, changed)
	})
}

// followDrones reads all drones at the start and then periodically: often if the feed cannot
// subscribe to reports.
func (s *session) followDrones(ctx context.Context) error {
	pause := dronesEvery
	for {
		l, err := s.cfg.Store.ListDrones(ctx, firestoretx.DroneFilter{}, firestoretx.Page{})
		if err != nil {
			return err
		}
		look(s, "drones", firestoretx.Sight[domain.Drone]{Now: l.Items, Malformed: l.Malformed}, func(p *picture) {
			for _, d := range l.Items {
				p.putDrone(d)
			}
		})
		slow := max(withoutTap, time.Duration(len(l.Items))*time.Second/readsWithoutTap)
		if pause != dronesEvery {
			pause = slow
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case tapped := <-s.tap:
			if pause = dronesEvery; !tapped {
				pause = slow
			}
		case <-time.After(pause):
		}
	}
}

// followPositions shows the position of every report. If it cannot subscribe to them, the drones
// are read often instead.
func (s *session) followPositions(ctx context.Context) error {
	err := pubsubio.Tap(ctx, s.cfg.PubSub, s.cfg.Meter, s.id, func() { s.tapped(ctx, true) }, s.sawReports)
	if _, is := errors.AsType[*pubsubio.TapError](err); is {
		s.cfg.Log.WarnContext(ctx, "live positions come from the drones' documents", slog.Any("err", err))
		s.tapped(ctx, false)
		<-ctx.Done()
	}
	return err
}

func (s *session) tapped(ctx context.Context, is bool) {
	select {
	case s.tap <- is:
	case <-ctx.Done():
	}
}

func (s *session) sawReports(reports []domain.Telemetry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources.recovered("positions")
	for _, t := range reports {
		s.picture.move(t)
	}
}

// followLocks reads the locks every few seconds: each lease is renewed so often that a
// listener would read more.
func (s *session) followLocks(ctx context.Context) error {
	for {
		began := time.Now()
		locks, err := s.cfg.Locks.List(ctx)
		if err != nil {
			return err
		}
		s.sawLocks(locks)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(began.Add(locksEvery))):
		}
	}
}

func (s *session) sawLocks(locks []lock.RawInfo) {
	look(s, "locks", firestoretx.Sight[lock.RawInfo]{Now: locks}, func(p *picture) { p.putLocks(locks, s.cfg.KnownKeys) })
}
