package live

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/restart"
)

// session follows the fleet while there are viewers.
type session struct {
	*Feed
	id     string
	ended  chan struct{}
	cancel context.CancelFunc

	mu      sync.Mutex // of what follows
	picture picture
	sources sources
	learned learning.Estimates
	stale   map[Key]bool  // entities to read again
	queued  chan struct{} // holds an element once stale has one

	tap chan bool // whether reports can be listened to
}

func (f *Feed) newSession() *session {
	return &session{
		Feed: f, id: f.cfg.NewID(), ended: make(chan struct{}), picture: newPicture(), sources: newSources(),
		stale: map[Key]bool{}, queued: make(chan struct{}, 1), tap: make(chan bool, 1),
	}
}

// run follows everything until ctx ends.
func (s *session) run(ctx context.Context) {
	defer close(s.ended)
	ctx = meter.WithOperation(ctx, "live")
	store := s.cfg.Store
	var all sync.WaitGroup
	keep := func(name string, follow func(context.Context) error) {
		all.Go(func() { s.keep(ctx, name, follow) })
	}
	keep("depots", func(ctx context.Context) error { return store.FollowDepots(ctx, s.sawDepots) })
	keep("warehouses", func(ctx context.Context) error { return store.FollowWarehouses(ctx, s.sawWarehouses) })
	keep("orders", func(ctx context.Context) error { return store.FollowOpenOrders(ctx, s.sawOrders) })
	keep("missions", func(ctx context.Context) error { return store.FollowActiveMissions(ctx, s.sawMissions) })
	keep("cycles", func(ctx context.Context) error { return store.FollowCycles(ctx, cyclesShown, s.sawCycles) })
	keep("decisions", s.followDecisions)
	keep("acknowledgements", func(ctx context.Context) error { return store.FollowAlertAcks(ctx, acksRead, s.sawAcks) })
	keep("refusals", func(ctx context.Context) error { return store.FollowRefusedOrders(ctx, refusalsShown, s.sawRefusals) })
	keep("events", s.followEvents)
	keep("drones", s.followDrones)
	keep("locks", s.followLocks)
	keep("learned", s.followLearned)
	keep("positions", s.followPositions)
	all.Go(func() { s.readStale(ctx) })
	all.Go(func() { s.tick(ctx) })
	all.Wait()
}

// keep follows again after a failure.
func (s *session) keep(ctx context.Context, name string, follow func(context.Context) error) {
	restart.Until(ctx, func() {
		if err := follow(ctx); err != nil && ctx.Err() == nil {
			s.failed(name)
			s.cfg.Log.WarnContext(ctx, "live feed interrupted; retrying", slog.String("source", name), slog.Any("err", err))
		}
	})
}

func (s *session) failed(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources.failed(source)
}

// delay is how long the session has been without an answer that it needs.
func (s *session) delay() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sources.delay()
}

// malformed logs a document that cannot be shown.
func (s *session) malformed(err error) {
	s.cfg.Log.Warn("document left out of the live feed; correct it", slog.Any("err", err))
}

// tick derives the alerts and drops what is long over, every second, and estimates now and then how
// soon orders could be delivered.
func (s *session) tick(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := s.cfg.Now()
		if n%estimateEvery == 0 {
			s.estimate(now)
		}
		process := s.cfg.Process()
		s.mu.Lock()
		s.picture.state.Process = process
		s.picture.dropEnded(now)
		s.picture.ledger.forget(now.Add(-decisionsBefore), s.picture.state.Cycles)
		s.picture.showAlerts(now, s.cfg.DepotPatience)
		s.picture.book.forget(time.Now())
		s.mu.Unlock()
	}
}
