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
	// decisionsEvery is how often the decisions of an area's new cycle are read at first.
	decisionsEvery = time.Second
	// locksEvery is how often the locks are read, and lockReads how many of them a second at most.
	locksEvery = 5 * time.Second
	lockReads  = 20
	// dronesEvery is how often all drones are read again, for documents that people edit: no event
	// tells of that.
	dronesEvery = 10 * time.Minute
	// withoutTap is the least time between two reads of all drones where the feed cannot subscribe
	// to reports; readsWithoutTap bounds the reads a second.
	withoutTap      = 10 * time.Second
	readsWithoutTap = 100
)

// look changes the picture after a source has answered with a sight of its entities.
func look[T any](s *session, of *sources, source string, sight firestoretx.Sight[T], change func(*picture)) {
	for _, err := range sight.Malformed {
		s.malformed(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if of.over {
		return
	}
	change(&s.picture)
	of.answered(source, sight.ReadTime)
}

func (s *session) sawDepots(sight firestoretx.Sight[domain.Depot]) {
	look(s, &s.sources, "depots", sight, func(p *picture) {
		p.putDepots(sight.Now, goneFrom(sight))
		s.sources.known["depots"] = true
		s.divide()
	})
}

func (s *session) sawWarehouses(sight firestoretx.Sight[domain.Warehouse]) {
	look(s, &s.sources, "warehouses", sight, func(p *picture) { p.putWarehouses(sight.Now, goneFrom(sight)) })
}

// goneFrom tells which of the entities that are shown exist no longer.
func goneFrom[T any](sight firestoretx.Sight[T]) func(id string, seen bool) bool {
	return func(id string, seen bool) bool { return sight.Whole && !seen || slices.Contains(sight.Gone, id) }
}

func (sc *scope) sawOrders(sight firestoretx.Sight[domain.Order]) {
	look(sc.session, &sc.sources, "orders", sight, func(p *picture) {
		over := sawOpen(sight, p.state.Orders, func(o domain.Order) domain.OrderID { return o.ID }, p.putOrder, func(o domain.Order) bool { return !o.Status.Final() && sc.has(o.PlanningDepotID) })
		sc.readAgain(KindOrder, over)
	})
}

func (sc *scope) sawMissions(sight firestoretx.Sight[domain.Mission]) {
	look(sc.session, &sc.sources, "missions", sight, func(p *picture) {
		over := sawOpen(sight, p.state.Missions, func(m domain.Mission) domain.MissionID { return m.ID }, p.putMission, func(m domain.Mission) bool {
			return m.Status == domain.MissionActive && sc.has(p.shown(Key{KindMission, string(m.ID)}).depot)
		})
		sc.readAgain(KindMission, over)
	})
}

// sawDrones shows the drones of an area.
func (sc *scope) sawDrones(sight firestoretx.Sight[domain.Drone]) {
	look(sc.session, &sc.sources, "drones", sight, func(p *picture) {
		over := sawOpen(sight, p.state.Drones, func(d domain.Drone) domain.DroneID { return d.ID }, p.moveDrone, func(d domain.Drone) bool { return sc.has(d.HomeDepotID) })
		sc.readAgain(KindDrone, over)
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
	look(s, &s.sources, "acknowledgements", sight, func(p *picture) { p.putAcks(sight.Now, sight.Whole) })
}

func (s *session) sawRefusals(sight firestoretx.Sight[domain.Refusal]) {
	look(s, &s.sources, "refusals", sight, func(p *picture) { p.putRefusals(sight.Now, goneFrom(sight)) })
}

func (sc *scope) sawCycles(sight firestoretx.Sight[domain.Cycle]) {
	look(sc.session, &sc.sources, "cycles", sight, func(p *picture) { p.putCycles(sight.Now, sight.Gone, sight.Whole, sc.has) })
}

// followDecisions has cycles shown with what came of their decisions.
func (sc *scope) followDecisions(ctx context.Context) error {
	return forAWhile(ctx, func(ctx context.Context) error {
		return sc.cfg.Store.FollowDecisions(ctx, sc.cfg.Now().Add(-decisionsBefore), sc.sawDecisions)
	})
}

func (sc *scope) sawDecisions(sight firestoretx.Sight[domain.LedgerEntry]) {
	look(sc.session, &sc.sources, "decisions", sight, func(p *picture) { p.putDecisions(sight.Now) })
}

// followEvents has drones read again whose state changed.
func (sc *scope) followEvents(ctx context.Context) error {
	return forAWhile(ctx, func(ctx context.Context) error {
		return sc.cfg.Store.FollowEvents(ctx, sc.cfg.Now().Add(-eventsBefore), sc.sawEvents)
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

func (sc *scope) sawEvents(sight firestoretx.Sight[domain.Event]) {
	look(sc.session, &sc.sources, "events", sight, func(p *picture) {
		var changed []string
		for _, e := range sight.Now {
			if e.Entity == domain.EntityDrone && p.state.Drones[domain.DroneID(e.ID)].Revision < e.Revision {
				changed = append(changed, e.ID)
			}
			if e.Reason == string(policy.ReasonPickedUpAgain) {
				p.state.PickedUpAgain[domain.OrderID(e.ID)] = e.Time
			}
		}
		sc.readAgain(KindDrone, changed)
	})
}

// followDrones reads all drones at the start and then periodically: often if the feed cannot
// subscribe to reports.
func (sc *scope) followDrones(ctx context.Context) error {
	pause := dronesEvery
	for {
		l, err := sc.cfg.Store.ListDrones(ctx, firestoretx.DroneFilter{}, firestoretx.Page{})
		if err != nil {
			return err
		}
		look(sc.session, &sc.sources, "drones", firestoretx.Sight[domain.Drone]{Now: l.Items, Malformed: l.Malformed}, func(p *picture) {
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
		case tapped := <-sc.tap:
			if pause = dronesEvery; !tapped {
				pause = slow
			}
		case <-time.After(pause):
		}
	}
}

// followPositions shows the position of every report. If it cannot subscribe to them, the drones
// are read often instead.
func (sc *scope) followPositions(ctx context.Context) error {
	err := pubsubio.Tap(ctx, sc.cfg.PubSub, sc.cfg.Meter, sc.cfg.NewID(), func() { sc.tapped(ctx, true) }, sc.sawReports)
	if _, is := errors.AsType[*pubsubio.TapError](err); is {
		sc.cfg.Log.WarnContext(ctx, "live positions come from the drones' documents", slog.Any("err", err))
		sc.tapped(ctx, false)
		<-ctx.Done()
	}
	return err
}

func (sc *scope) tapped(ctx context.Context, is bool) {
	select {
	case sc.tap <- is:
	case <-ctx.Done():
	}
}

func (sc *scope) sawReports(reports []domain.Telemetry) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.sources.recovered("positions")
	for _, t := range reports {
		sc.picture.move(t)
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
		case <-time.After(time.Until(began.Add(max(locksEvery, time.Duration(len(locks))*time.Second/lockReads)))):
		}
	}
}

func (s *session) sawLocks(locks []lock.RawInfo) {
	look(s, &s.sources, "locks", firestoretx.Sight[lock.RawInfo]{Now: locks}, func(p *picture) { p.putLocks(locks, s.cfg.KnownKeys) })
}
