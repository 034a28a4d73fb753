package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-ARE-02, F-ARE-03: one cycle plans for the depots of an area with the fence of the depot
// that names it; each drone returns to its own home. A depot that no longer names its
// area plans nothing.
func TestRunner_PlansAnAreaWithOneCycle(t *testing.T) {
	b := newBench(t)
	first := domain.Depot{ID: "A-" + depot.ID, Position: domain.Position{Lat: depot.Position.Lat + 0.01, Lon: depot.Position.Lon}}
	if err := b.store.Setup(t.Context(), []domain.Depot{first}, nil, []domain.Drone{{ID: "D1", HomeDepotID: depot.ID}}); err != nil {
		t.Fatal(err)
	}
	cfg := dispatch.Config{Iterations: steps, Limits: policy.Limits{MaxSilence: patient}, AreaRadius: 3}
	var published []domain.Decision
	publish := func(_ context.Context, decisions []domain.Decision) []error {
		published = append(published, decisions...)
		return make([]error, len(decisions))
	}
	r := dispatch.NewRunner(b.store, b.locks, publish, uuid.NewString, simclock.Real(), cfg, emutest.Log(t), b.clients.Meter)
	if areas, err := r.Areas(t.Context()); err != nil || !slices.Equal(areas, []domain.DepotID{first.ID}) {
		t.Errorf("areas %v, %v", areas, err)
	}
	other, is := errors.AsType[*dispatch.OtherAreaError](func() error { _, err := r.Once(t.Context(), depot.ID, nil); return err }())
	if !is || other.Area != first.ID || len(published) > 0 {
		t.Errorf("cycle of a depot that names no area: %v, %d decisions", other, len(published))
	}
	cycle, err := r.Once(t.Context(), first.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(published) != 1 || published[0].DroneID != "D1" || published[0].DepotID != first.ID || published[0].Fence != cycle.Fence {
		t.Fatalf("published %+v", published)
	}
	if end := published[0].Route[len(published[0].Route)-1]; end.Position != depot.Position {
		t.Errorf("the drone returns to %v, not to its home", end.Position)
	}
	stored, err := b.store.Cycle(t.Context(), cycle.ID)
	if err != nil || stored.DepotID != first.ID || !slices.Equal(stored.DepotIDs, []domain.DepotID{first.ID, depot.ID}) {
		t.Errorf("recorded %s for %v, %v", stored.DepotID, stored.DepotIDs, err)
	}
	decision := published[0]
	decision.PayloadHash = wire.DecisionHash(decision)
	entry, err := b.store.AssignMission(t.Context(), decision, policy.Delivery{MessageID: "1", PublishedAt: time.Now(), ReceivedAt: time.Now()})
	if err != nil || entry.Outcome != domain.OutcomeApplied {
		t.Errorf("the decision is %s %s: %s, %v", entry.Outcome, entry.Reason, entry.Detail, err)
	}
}

// F-ARE-02: when a depot is added near another, the area's cycles move to the lock of the
// one that names it now, also if optimizers were told which depot to plan for.
func TestRunner_FollowsTheAreas(t *testing.T) {
	b := newBench(t)
	store := &watched{Store: b.store, began: map[domain.DepotID]int{}, running: map[domain.DepotID]int{}}
	publish := func(_ context.Context, decisions []domain.Decision) []error { return make([]error, len(decisions)) }
	cfg := dispatch.Config{Interval: 50 * time.Millisecond, Iterations: steps, AreaRadius: 3, Depots: []domain.DepotID{depot.ID}}
	runner := dispatch.NewRunner(store, b.locks, publish, uuid.NewString, simclock.Real(), cfg, emutest.Log(t), b.clients.Meter)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	more := func(id domain.DepotID) {
		t.Helper()
		seen := store.cycles(id)
		emutest.Eventually(t, "cycles of "+string(id), func() error {
			if store.cycles(id) < seen+2 {
				return errors.New("too few")
			}
			return nil
		})
	}
	more(depot.ID)
	near := domain.Depot{ID: "A-NEAR", Position: depot.Position}
	far := domain.Depot{ID: "FAR", Position: domain.Position{Lat: 45.76, Lon: 4.84}}
	if err := b.store.Setup(t.Context(), []domain.Depot{near, far}, nil, nil); err != nil {
		t.Fatal(err)
	}
	more(near.ID)
	emutest.Eventually(t, "no more cycles of the depot that named the area", func() error {
		seen := store.cycles(depot.ID)
		more(near.ID)
		if store.cycles(depot.ID) > seen {
			return errors.New("one more")
		}
		return nil
	})
	if _, err := b.clients.Firestore.Doc("depots/A-NEAR").Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	more(depot.ID)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := store.cycles(far.ID); n > 0 {
		t.Errorf("%d cycles of a depot that is in another area", n)
	}
}

// F-OWN-04: optimizers count the drones of areas with several depots. When there are too many for
// one cycle, the area is cut while they run, and each part has its own cycles.
func TestRunner_CutsAnAreaWithTooManyDrones(t *testing.T) {
	for name, byLock := range map[string]bool{"owned areas": false, "a lock for each cycle": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			store := &watched{Store: b.store, began: map[domain.DepotID]int{}, running: map[domain.DepotID]int{}}
			publish := func(_ context.Context, decisions []domain.Decision) []error { return make([]error, len(decisions)) }
			near := domain.Depot{ID: "Z-NEAR", Position: domain.Position{Lat: depot.Position.Lat + 0.01, Lon: depot.Position.Lon}}
			var drones []domain.Drone
			for i := range 30 {
				drones = append(drones, domain.Drone{ID: domain.DroneID(fmt.Sprint("OF-", i)), HomeDepotID: near.ID})
			}
			if err := b.store.Setup(t.Context(), []domain.Depot{near}, nil, drones); err != nil {
				t.Fatal(err)
			}
			if _, err := b.clients.Firestore.Doc("depots/"+string(depot.ID)).Set(t.Context(), map[string]any{"drones": 980}, firestore.MergeAll); err != nil {
				t.Fatal(err)
			}
			cfg := dispatch.Config{Interval: 50 * time.Millisecond, Iterations: steps, AreaRadius: 3, LockEachCycle: byLock}
			runner := dispatch.NewRunner(countless{store}, b.locks, publish, uuid.NewString, simclock.Real(), cfg, emutest.Log(t), b.clients.Meter)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- runner.Run(ctx) }()
			emutest.Eventually(t, "cycles of both parts", func() error {
				if a, z := store.cycles(depot.ID), store.cycles(near.ID); a < 2 || z < 2 {
					return fmt.Errorf("%d and %d", a, z)
				}
				return nil
			})
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			first, err := b.store.Snapshot(t.Context(), firestoretx.SnapshotRequest{Depot: depot.ID, AreaRadius: 3})
			if err != nil || len(first.Neighbours) > 0 || len(first.Beyond) != 1 || first.Beyond[0].Drones != 30 {
				t.Errorf("area %+v beside %+v, %v", first.Neighbours, first.Beyond, err)
			}
		})
	}
}

// countless leaves the first depot's number of drones as it is: 980 drones would take long to set up.
type countless struct{ *watched }

func (c countless) CountDrones(ctx context.Context, depots []domain.Depot) error {
	return c.watched.CountDrones(ctx, slices.DeleteFunc(slices.Clone(depots), func(d domain.Depot) bool { return d.ID == depot.ID }))
}
