package live

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
)

const (
	// readAfter gathers entities that are read again.
	readAfter = 100 * time.Millisecond
	// readAtOnce bounds the entities of one read.
	readAtOnce = 300
	// retryAfter is the pause after a read has failed.
	retryAfter = time.Second
)

// readAgain queues entities for a re-read. mu must be held. It never blocks, so that a listener
// can end after the reader has.
func (s *session) readAgain(kind Kind, ids []string) {
	for _, id := range ids {
		s.stale[Key{kind, id}] = true
	}
	if len(ids) > 0 {
		select {
		case s.queued <- struct{}{}:
		default: // told already
		}
	}
}

// readStale reads the queued entities, many at a time, until ctx ends.
func (s *session) readStale(ctx context.Context) {
	pause := readAfter
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.queued:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = readAfter
		s.mu.Lock()
		want := s.stale
		s.stale = map[Key]bool{}
		s.mu.Unlock()
		err := s.readThese(ctx, want)
		if err == nil || ctx.Err() != nil {
			continue
		}
		s.failed(&s.sources, "changes")
		s.cfg.Log.WarnContext(ctx, "live feed could not read what changed; retrying", slog.Any("err", err))
		pause = retryAfter
		s.mu.Lock()
		for k := range want {
			s.readAgain(k.Kind, []string{k.ID})
		}
		s.mu.Unlock()
	}
}

// readThese reads what is wanted and takes it off the list.
func (s *session) readThese(ctx context.Context, want map[Key]bool) error {
	byKind := make(map[Kind][]string)
	for k := range want {
		byKind[k.Kind] = append(byKind[k.Kind], k.ID)
	}
	for kind, ids := range byKind {
		for some := range slices.Chunk(ids, readAtOnce) {
			if err := s.read(ctx, kind, some); err != nil {
				return err
			}
			for _, id := range some {
				delete(want, Key{kind, id})
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources.recovered("changes")
	return nil
}

// read reads and shows entities, and removes those that do not exist or that no scope has. If one is malformed it
// removes none, because the store does not say which one it is.
func (s *session) read(ctx context.Context, kind Kind, ids []string) (err error) {
	found := map[string]bool{}
	var show []func()
	seen := func(id string, put func(), area func() domain.DepotID) {
		found[id] = true
		show = append(show, func() {
			if s.follows(area()) {
				put()
			} else {
				s.picture.drop(Key{kind, id})
			}
		})
	}
	switch kind {
	case KindDrone:
		err = readInto(ctx, s.cfg.Store.DronesOf, ids, func(d domain.Drone) {
			seen(string(d.ID), func() { s.picture.putDrone(d) }, func() domain.DepotID { return d.HomeDepotID })
		})
	case KindOrder:
		err = readInto(ctx, s.cfg.Store.OrdersOf, ids, func(o domain.Order) {
			seen(string(o.ID), func() { s.picture.putOrder(o) }, func() domain.DepotID { return o.PlanningDepotID })
		})
	case KindMission:
		err = readInto(ctx, s.cfg.Store.MissionsOf, ids, func(m domain.Mission) {
			seen(string(m.ID), func() { s.picture.putMission(m) }, func() domain.DepotID { return s.picture.state.Drones[m.DroneID].HomeDepotID })
		})
	case KindCycle, KindDepot, KindWarehouse, KindLock, KindAlert, KindRefusal: // followed whole
	}
	malformed, is := errors.AsType[*firestoretx.MalformedError](err)
	if err != nil && !is {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range show {
		f()
	}
	if is {
		s.malformed(malformed)
		return nil // shown as it was
	}
	for _, id := range ids {
		if !found[id] {
			s.picture.drop(Key{kind, id})
		}
	}
	return nil
}

func readInto[ID ~string, T any](ctx context.Context, read func(context.Context, []ID) ([]T, error), ids []string, each func(T)) error {
	typed := make([]ID, len(ids))
	for i, id := range ids {
		typed[i] = ID(id)
	}
	list, err := read(ctx, typed)
	for _, v := range list {
		each(v)
	}
	return err
}
