package dispatch_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
)

// interrupted is a store that calls stop when the cycle has read its snapshot, or
// before it reads if reading is set, and returns when the cycle knows.
type interrupted struct {
	store interface {
		Snapshot(ctx context.Context, req firestoretx.SnapshotRequest) (domain.Snapshot, error)
	}
	*firestoretx.Store
	stop    func()
	reading bool
}

func (s interrupted) Snapshot(ctx context.Context, req firestoretx.SnapshotRequest) (domain.Snapshot, error) {
	if s.reading {
		s.stop()
		<-ctx.Done()
	}
	snap, err := s.store.Snapshot(ctx, req)
	s.stop()
	<-ctx.Done()
	return snap, err
}

// F-OPT-01, F-FLOW-01: a cycle that a shutdown ends does not count as failed. One
// that had lost its lease before does. One that is publishing publishes all.
func TestRunner_RecordsHowACycleEndedInAShutdown(t *testing.T) {
	for name, test := range map[string]struct {
		loseLease, reading bool
		outcome            domain.CycleOutcome
		failed             int64
	}{
		"shutdown":                  {false, false, domain.CycleAborted, 0},
		"shutdown while it reads":   {false, true, domain.CycleAborted, 0},
		"lease lost, then shutdown": {true, false, domain.CycleLeaseLost, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			ctx, shutdown := context.WithCancel(t.Context())
			store, ttl := interrupted{b.store, b.store, shutdown, test.reading}, 15*time.Second
			if test.loseLease {
				store.store, ttl = thief{b.store, b.clients, t}, losable
			}
			cycle, err := b.runner(t, store, ttl).Once(ctx, depot.ID, nil)
			if err == nil || cycle.Outcome != test.outcome || len(b.published) > 0 {
				t.Errorf("cycle %+v, error %v, published %v", cycle, err, b.published)
			}
			stored, err := b.store.Cycle(t.Context(), cycle.ID)
			if err != nil || stored.Outcome != test.outcome || stored.Detail == "" {
				t.Errorf("recorded %+v, %v", stored, err)
			}
			if n := b.clients.Meter.Cycles.Count(meter.CycleFailed); n != test.failed {
				t.Errorf("%d cycles counted as failed, want %d", n, test.failed)
			}
		})
	}
	t.Run("shutdown while it publishes", func(t *testing.T) {
		b := newBench(t)
		ctx, shutdown := context.WithCancel(t.Context())
		runner := b.publishing(t, b.store, 15*time.Second, func(ctx context.Context, decisions []domain.Decision) []error {
			shutdown()
			return slices.Repeat([]error{ctx.Err()}, len(decisions))
		})
		cycle, err := runner.Once(ctx, depot.ID, nil)
		if err != nil || cycle.Outcome != domain.CyclePublished || cycle.Missions != 1 {
			t.Errorf("cycle %+v, error %v", cycle, err)
		}
		if stored, err := b.store.Cycle(t.Context(), cycle.ID); err != nil || stored.Outcome != domain.CyclePublished {
			t.Errorf("recorded %+v, %v", stored, err)
		}
		if locked, err := b.locks.IsLocked(t.Context(), domain.CycleLockKey(depot.ID)); err != nil || locked {
			t.Errorf("after the cycle the lock is held: %v, %v", locked, err)
		}
	})
	t.Run("shutdown before the lock", func(t *testing.T) {
		b := newBench(t)
		ctx, shutdown := context.WithCancel(t.Context())
		shutdown()
		if _, err := b.runner(t, b.store, 15*time.Second).Once(ctx, depot.ID, nil); err == nil {
			t.Error("the cycle ran")
		}
		if n := b.clients.Meter.Cycles.Count(meter.CycleFailed); n != 0 {
			t.Errorf("%d cycles counted as failed", n)
		}
	})
}
