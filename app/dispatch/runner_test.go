package dispatch_test

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
	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// watched is a store that counts the snapshots of each depot, in all and at once.
type watched struct {
	*firestoretx.Store
	mu      sync.Mutex
	began   map[domain.DepotID]int
	running map[domain.DepotID]int
	most    int
}

func (s *watched) Snapshot(ctx context.Context, req firestoretx.SnapshotRequest) (domain.Snapshot, error) {
	s.count(req.Depot, 1)
	defer s.count(req.Depot, -1)
	return s.Store.Snapshot(ctx, req)
}

func (s *watched) count(depot domain.DepotID, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[depot] += n
	s.most = max(s.most, s.running[depot])
	if n > 0 {
		s.began[depot]++
	}
}

func (s *watched) cycles(depot domain.DepotID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began[depot]
}

// told is a store that closes looked when the depots were first listed.
type told struct {
	*watched
	once   sync.Once
	looked chan struct{}
}

func (s *told) KnownDepots(ctx context.Context) (firestoretx.Listing[domain.Depot], error) {
	listing, err := s.watched.KnownDepots(ctx)
	s.once.Do(func() { close(s.looked) })
	return listing, err
}

// F-OPT-01: Run may start before there is a readable depot, as when everything is
// deployed at once; cycles begin with the first depot.
func TestRunner_WaitsForTheFirstDepot(t *testing.T) {
	for name, before := range map[string]func(*firestore.DocumentRef) error{
		"no depot": func(doc *firestore.DocumentRef) error {
			_, err := doc.Delete(t.Context())
			return err
		},
		"only a malformed depot": func(doc *firestore.DocumentRef) error {
			_, err := doc.Set(t.Context(), map[string]any{"position": "nowhere"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if err := before(b.clients.Firestore.Doc("depots/" + string(depot.ID))); err != nil {
				t.Fatal(err)
			}
			store := &told{
				watched: &watched{Store: b.store, began: map[domain.DepotID]int{}, running: map[domain.DepotID]int{}},
				looked:  make(chan struct{}),
			}
			publish := func(_ context.Context, decisions []domain.Decision) []error { return make([]error, len(decisions)) }
			cfg := dispatch.Config{Interval: 50 * time.Millisecond, Iterations: steps}
			runner := dispatch.NewRunner(store, b.locks, publish, uuid.NewString, simclock.Real(), cfg, emutest.Log(t), b.clients.Meter)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- runner.Run(ctx) }()
			<-store.looked
			if err := b.store.Setup(t.Context(), []domain.Depot{depot}, nil, nil); err != nil {
				t.Fatal(err)
			}
			emutest.Eventually(t, "a cycle of the depot", func() error {
				select {
				case err := <-ended:
					t.Fatalf("Run returned: %v", err)
				default:
				}
				if store.cycles(depot.ID) == 0 {
					return errors.New("none yet")
				}
				return nil
			})
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// F-OPT-01: without a restart, cycles of an added depot begin, those of a removed one
// end, and those of one that comes back begin again, one at a time. A malformed
// document changes none of this, and its depot does not count as removed.
func TestRunner_FollowsTheDepots(t *testing.T) {
	b := newBench(t)
	store := &watched{Store: b.store, began: map[domain.DepotID]int{}, running: map[domain.DepotID]int{}}
	var mu sync.Mutex
	var flying []domain.DroneID
	publish := func(_ context.Context, decisions []domain.Decision) []error {
		mu.Lock()
		defer mu.Unlock()
		for _, d := range decisions {
			flying = append(flying, d.DroneID)
		}
		return make([]error, len(decisions))
	}
	cfg := dispatch.Config{Interval: 50 * time.Millisecond, Iterations: steps}
	runner := dispatch.NewRunner(store, b.locks, publish, uuid.NewString, simclock.Real(), cfg, emutest.Log(t), b.clients.Meter)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	more := func(id domain.DepotID) {
		t.Helper()
		seen := store.cycles(id)
		emutest.Eventually(t, "cycles of "+string(id), func() error {
			if n := store.cycles(id); n < seen+2 {
				return fmt.Errorf("%d cycles, want %d", n, seen+2)
			}
			return nil
		})
	}
	more(depot.ID)

	second := domain.Depot{ID: "DEPOT-2", Name: "Other", Position: depot.Position}
	if err := b.store.Setup(t.Context(), []domain.Depot{second}, nil, []domain.Drone{{ID: "D2", HomeDepotID: second.ID, Position: depot.Position}}); err != nil {
		t.Fatal(err)
	}
	applier := b.store.NewTelemetryApplier()
	emutest.Eventually(t, "a mission for the drone of the new depot", func() error {
		report := domain.Telemetry{DroneID: "D2", Timestamp: time.Now(), Position: depot.Position, Battery: 90, Status: domain.DroneIdle}
		if err := applier.Apply(t.Context(), []domain.Telemetry{report})[0]; err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(flying, "D2") {
			return fmt.Errorf("missions only of %v", flying)
		}
		return nil
	})
	more(depot.ID)

	malformed := func(id domain.DepotID) {
		t.Helper()
		if _, err := b.clients.Firestore.Doc("depots/"+string(id)).Set(t.Context(), map[string]any{"position": "nowhere"}); err != nil {
			t.Fatal(err)
		}
	}
	malformed("BROKEN")
	if _, err := b.clients.Firestore.Doc("depots/DEPOT-2").Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	emutest.Eventually(t, "no more cycles of the removed depot", func() error {
		seen := store.cycles(second.ID)
		more(depot.ID)
		more(depot.ID)
		if n := store.cycles(second.ID); n > seen {
			return fmt.Errorf("%d more", n-seen)
		}
		return nil
	})
	if err := b.store.Setup(t.Context(), []domain.Depot{second}, nil, nil); err != nil {
		t.Fatal(err)
	}
	more(second.ID)
	malformed(depot.ID)
	more(second.ID)
	more(second.ID)
	more(depot.ID)
	store.mu.Lock()
	defer store.mu.Unlock()
	if store.most != 1 {
		t.Errorf("%d cycles of a depot ran at once", store.most)
	}
}

// unlisted is a store that lists the depots once and then fails.
type unlisted struct {
	*watched
	failed atomic.Int32
	listed atomic.Bool
}

func (s *unlisted) KnownDepots(ctx context.Context) (firestoretx.Listing[domain.Depot], error) {
	if s.listed.Swap(true) {
		s.failed.Add(1)
		return firestoretx.Listing[domain.Depot]{}, errors.New("not now")
	}
	return s.watched.KnownDepots(ctx)
}

// F-OPT-01: depots do not count as removed while they cannot be listed.
func TestRunner_KeepsItsDepotsWhenListingFails(t *testing.T) {
	b := newBench(t)
	store := &unlisted{watched: &watched{Store: b.store, began: map[domain.DepotID]int{}, running: map[domain.DepotID]int{}}}
	publish := func(_ context.Context, decisions []domain.Decision) []error { return make([]error, len(decisions)) }
	cfg := dispatch.Config{Interval: 20 * time.Millisecond, Iterations: steps}
	runner := dispatch.NewRunner(store, b.locks, publish, uuid.NewString, simclock.Real(), cfg, emutest.Log(t), b.clients.Meter)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	emutest.Eventually(t, "listings that fail", func() error {
		if n := store.failed.Load(); n < 3 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	seen := store.cycles(depot.ID)
	emutest.Eventually(t, "further cycles", func() error {
		if n := store.cycles(depot.ID); n < seen+10 {
			return fmt.Errorf("%d cycles, want %d", n, seen+10)
		}
		return nil
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// silent is a store that does not answer the second listing of depots or the second
// snapshot.
type silent struct {
	*watched
	listed, seen atomic.Int32
}

func (s *silent) KnownDepots(ctx context.Context) (firestoretx.Listing[domain.Depot], error) {
	if s.listed.Add(1) == 2 {
		<-ctx.Done()
		return firestoretx.Listing[domain.Depot]{}, ctx.Err()
	}
	return s.watched.KnownDepots(ctx)
}

func (s *silent) Snapshot(ctx context.Context, req firestoretx.SnapshotRequest) (domain.Snapshot, error) {
	if s.seen.Add(1) == 2 {
		<-ctx.Done()
		return domain.Snapshot{}, ctx.Err()
	}
	return s.watched.Snapshot(ctx, req)
}

// F-OPT-01: a read without an answer ends one cycle; later cycles run and depots are
// still found.
func TestRunner_ContinuesAfterAReadWithoutAnswer(t *testing.T) {
	b := newBench(t)
	store := &silent{watched: &watched{Store: b.store, began: map[domain.DepotID]int{}, running: map[domain.DepotID]int{}}}
	publish := func(_ context.Context, decisions []domain.Decision) []error { return make([]error, len(decisions)) }
	cfg := dispatch.Config{Interval: 20 * time.Millisecond, Iterations: steps, ReadLimit: 2 * time.Second}
	runner := dispatch.NewRunner(store, b.locks, publish, uuid.NewString, simclock.Real(), cfg, emutest.Log(t), b.clients.Meter)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	emutest.Eventually(t, "more cycles and listings", func() error {
		if cycles, listings := store.seen.Load(), store.listed.Load(); cycles < 4 || listings < 4 {
			return fmt.Errorf("%d cycles, %d listings", cycles, listings)
		}
		return nil
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
