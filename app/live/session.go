package live

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/restart"
)

// session follows the fleet while there are viewers.
type session struct {
	*Feed
	id     string
	ended  chan struct{}
	cancel context.CancelFunc

	ctx context.Context // of run
	all sync.WaitGroup  // of what run has begun

	mu      sync.Mutex // of what follows
	picture picture
	sources sources // of what is followed whole
	learned learning.Estimates
	stale   map[Key]bool  // entities to read again
	queued  chan struct{} // holds an element once stale has one
	viewers map[*Viewer]bool
	scopes  map[string]*scope // by their depots
	areas   []domain.Area     // of the known depots
	large   bool              // the fleet is followed by areas
	closed  bool              // run is ending, so nothing may begin
}

func (f *Feed) newSession() *session {
	return &session{
		Feed: f, id: f.cfg.NewID(), ended: make(chan struct{}), picture: newPicture(), sources: newSources(neededOfAll),
		stale: map[Key]bool{}, queued: make(chan struct{}, 1), viewers: map[*Viewer]bool{}, scopes: map[string]*scope{},
	}
}

// begin follows what viewers see until the session's context ends. Scopes may begin from then on: until
// none may, s.all has a goroutine for which run waits.
func (s *session) begin() {
	s.all.Go(func() {
		<-s.ctx.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closed = true
	})
	go s.run()
}

// run follows what all viewers see, and waits for everything to end.
func (s *session) run() {
	defer close(s.ended)
	ctx, store := s.ctx, s.cfg.Store
	keep := func(name string, follow func(context.Context) error) {
		s.all.Go(func() { s.keep(ctx, &s.sources, name, follow) })
	}
	keep("depots", func(ctx context.Context) error { return store.FollowDepots(ctx, s.sawDepots) })
	keep("warehouses", func(ctx context.Context) error { return store.FollowWarehouses(ctx, s.sawWarehouses) })
	keep("acknowledgements", func(ctx context.Context) error { return store.FollowAlertAcks(ctx, acksRead, s.sawAcks) })
	keep("refusals", func(ctx context.Context) error { return store.FollowRefusedOrders(ctx, refusalsShown, s.sawRefusals) })
	keep("locks", s.followLocks)
	keep("learned", s.followLearned)
	s.all.Go(func() { s.readStale(ctx) })
	s.all.Go(func() { s.tick(ctx) })
	s.all.Wait()
}

// keep follows again after a failure.
func (s *session) keep(ctx context.Context, of *sources, name string, follow func(context.Context) error) {
	restart.Until(ctx, func() {
		if err := follow(ctx); err != nil && ctx.Err() == nil {
			s.failed(of, name)
			s.cfg.Log.WarnContext(ctx, "live feed interrupted; retrying", slog.String("source", name), slog.Any("err", err))
		}
	})
}

func (s *session) failed(of *sources, source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of.failed(source)
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
		s.endUnused()
		s.foretell(now)
		s.picture.state.Process = process
		s.picture.dropEnded(now)
		s.picture.ledger.forget(now.Add(-decisionsBefore), s.picture.state.Cycles)
		s.picture.showAlerts(now, s.cfg.DepotPatience)
		s.picture.book.forget(time.Now())
		s.mu.Unlock()
	}
}
