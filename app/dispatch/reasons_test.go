package dispatch_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

// withWeakDrone makes the idle drone of a bench weak in payload and range, and adds
// orders that are too much for it, some of them for any drone.
func (b *bench) withWeakDrone(t *testing.T) {
	t.Helper()
	b.drone(t, domain.Drone{ID: "D1", PayloadCapacityKg: 1, ConsumptionPerKm: 4}, domain.DroneIdle)
	near, far := domain.Position{Lat: 48.86, Lon: 2.36}, domain.Position{Lat: 49.05, Lon: 2.36}
	for id, content := range map[domain.OrderID]domain.OrderContent{
		"HEAVY":     {WeightKg: 4, Delivery: near},
		"TOO-HEAVY": {WeightKg: 50, Delivery: near},
		"FAR":       {Delivery: far},
		"TOO-FAR":   {Delivery: domain.Position{Lat: 55, Lon: 2.36}},
		"BOTH":      {WeightKg: 4, Delivery: domain.Position{Lat: 55, Lon: 2.36}},
	} {
		content.Priority, content.ProductType = domain.PriorityStandard, "BLOOD"
		if err := b.store.IngestOrder(t.Context(), domain.OrderRequest{ID: id, OrderContent: content}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
}

// drone adds a drone that reports its status from the depot.
func (b *bench) drone(t *testing.T, d domain.Drone, status domain.DroneStatus) {
	t.Helper()
	d.Position = depot.Position
	if err := b.store.Setup(t.Context(), nil, nil, []domain.Drone{d}); err != nil {
		t.Fatal(err)
	}
	report := domain.Telemetry{DroneID: d.ID, Timestamp: time.Now(), Position: d.Position, Battery: 60, Status: status}
	if err := b.store.NewTelemetryApplier().Apply(t.Context(), []domain.Telemetry{report})[0]; err != nil {
		t.Fatal(err)
	}
}

// strong is a drone that can carry more than the weak one.
func strong(home domain.DepotID) domain.Drone {
	return domain.Drone{ID: "STRONG", HomeDepotID: home, PayloadCapacityKg: 5, ConsumptionPerKm: 1}
}

var (
	byTheWeakDrone = map[domain.OrderID]string{
		"HEAVY": "over_capacity", "TOO-HEAVY": "over_capacity", "FAR": "out_of_range", "TOO-FAR": "out_of_range", "BOTH": "over_capacity",
	}
	byTheOtherDepot = map[domain.OrderID]string{
		"HEAVY": "over_capacity: handed over to depot DEPOT-2", "TOO-HEAVY": "over_capacity",
		"FAR": "out_of_range: handed over to depot DEPOT-2", "TOO-FAR": "out_of_range", "BOTH": "over_capacity",
	}
	byTheStrongDrone = map[domain.OrderID]string{
		"HEAVY":     "no_drone_free: drones that can carry it are not ready at the depot",
		"TOO-HEAVY": "over_capacity", "TOO-FAR": "out_of_range", "BOTH": "out_of_range",
		"FAR": "no_drone_free: drones that can carry it are not ready at the depot",
	}
)

// left returns the recorded reasons of a cycle, without that of the order that no
// warehouse stocks.
func left(t *testing.T, b *bench, c domain.Cycle) map[domain.OrderID]string {
	t.Helper()
	stored, err := b.store.Cycle(t.Context(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[domain.OrderID]string{}
	for _, u := range stored.Unserved {
		reasons[u.OrderID] = u.Reason
	}
	if reasons["NOBODY-STOCKS-IT"] != string(solver.NoCompatibleWarehouse) {
		t.Errorf("reasons %v", reasons)
	}
	delete(reasons, "NOBODY-STOCKS-IT")
	return reasons
}

// F-OPT-04: an order that a busy drone of the depot can carry has another reason
// than one that no drone can, even in the first cycle of a process.
func TestRunner_TellsOrdersForBusyDronesFromImpossibleOnes(t *testing.T) {
	second := domain.Depot{ID: "DEPOT-2", Name: "Other", Position: depot.Position}
	for name, c := range map[string]struct {
		also func(t *testing.T, b *bench)
		want map[domain.OrderID]string
	}{
		"no other drone":    {func(*testing.T, *bench) {}, byTheWeakDrone},
		"another charges":   {func(t *testing.T, b *bench) { b.drone(t, strong(""), domain.DroneCharging) }, byTheStrongDrone},
		"another is faulty": {func(t *testing.T, b *bench) { b.drone(t, strong(""), domain.DroneProblem) }, byTheStrongDrone},
		"another of another depot": {func(t *testing.T, b *bench) {
			b.drone(t, domain.Drone{ID: "D1", HomeDepotID: depot.ID, PayloadCapacityKg: 1, ConsumptionPerKm: 4}, domain.DroneIdle)
			b.drone(t, strong(second.ID), domain.DroneCharging)
			if err := b.store.Setup(t.Context(), []domain.Depot{second}, nil, nil); err != nil {
				t.Fatal(err)
			}
		}, byTheOtherDepot},
		"another silent for long": {func(t *testing.T, b *bench) {
			b.drone(t, strong(""), domain.DroneCharging)
			long := map[string]any{"status": "CHARGING", "seenAt": time.Now().Add(-2 * time.Hour)}
			if _, err := b.clients.Firestore.Doc("drones/STRONG").Set(t.Context(), long); err != nil {
				t.Fatal(err)
			}
		}, byTheWeakDrone},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.withWeakDrone(t)
			c.also(t, b)
			cycle, err := b.runner(t, b.store, 15*time.Second).Once(t.Context(), depot.ID, nil)
			if err != nil || cycle.Missions != 1 {
				t.Fatalf("cycle %+v, %v", cycle, err)
			}
			if got := left(t, b, cycle); !maps.Equal(got, c.want) {
				t.Errorf("reasons %v, want %v", got, c.want)
			}
		})
	}
}

// F-OPT-04: orders that no drone of the depot can carry have their reason even while
// no usable drone is free; the others wait for one.
func TestRunner_FindsImpossibleOrdersWithoutFreeDrones(t *testing.T) {
	for name, free := range map[string][]domain.Drone{
		"none is idle":              nil,
		"the idle one has no depot": {{ID: "LOST", HomeDepotID: "GONE"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.withWeakDrone(t)
			b.drone(t, domain.Drone{ID: "D1", PayloadCapacityKg: 1, ConsumptionPerKm: 4}, domain.DroneCharging)
			for _, d := range free {
				b.drone(t, d, domain.DroneIdle)
			}
			cycle, err := b.runner(t, b.store, 15*time.Second).Once(t.Context(), depot.ID, nil)
			if err != nil || cycle.Drones != len(free) || len(cycle.LeftOut) != len(free) {
				t.Fatalf("cycle %+v, %v", cycle, err)
			}
			want := maps.Clone(byTheWeakDrone)
			want["SERVED"] = string(solver.NoDroneFree)
			if got := left(t, b, cycle); !maps.Equal(got, want) {
				t.Errorf("reasons %v, want %v", got, want)
			}
		})
	}
}

// asked is a store that counts reads of the depot's drones; they fail with err.
type asked struct {
	*firestoretx.Store
	times int
	err   error
}

func (s *asked) Fleet(ctx context.Context, depots []domain.DepotID, maxSilence time.Duration) ([]domain.Drone, error) {
	s.times++
	if s.err != nil {
		return nil, s.err
	}
	return s.Store.Fleet(ctx, depots, maxSilence)
}

// F-OPT-04: cycles read all drones only if an order needs it, and at most once a
// minute; if the read fails, the cycle goes on.
func TestRunner_ReadsAllDronesOnlyWhenNeeded(t *testing.T) {
	b := newBench(t)
	store := &asked{Store: b.store}
	runner := b.runner(t, store, 15*time.Second)
	memory := runner.NewMemory()
	step := func(when string, times int, want map[domain.OrderID]string) {
		t.Helper()
		cycle, err := runner.Once(t.Context(), depot.ID, memory)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if got := left(t, b, cycle); !maps.Equal(got, want) {
			t.Errorf("%s: reasons %v, want %v", when, got, want)
		}
		if store.times != times {
			t.Errorf("%s: asked %d times, want %d", when, store.times, times)
		}
	}
	step("no order is too much", 0, map[domain.OrderID]string{})
	b.withWeakDrone(t)
	b.drone(t, strong(""), domain.DroneCharging)
	store.err = errors.New("no answer")
	step("no answer", 1, byTheWeakDrone)
	store.err = nil
	step("an answer", 2, byTheStrongDrone)
	step("known by now", 2, byTheStrongDrone)
}
