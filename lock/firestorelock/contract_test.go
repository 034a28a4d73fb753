package firestorelock

import (
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/conformance/lock/history"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/locktest"
	"github.com/dronefleet/dronefleet/lock/memlock"
)

// L-TST-01
func TestBackend_KeepsTheContract(t *testing.T) {
	locktest.Run(t, func(t *testing.T, clock lock.Clock) lock.Backend {
		return newBackend(t, newClient(t, serverAddr), Config{Clock: clock})
	})
}

// L-TST-01: equal outcomes on both backends, call by call.
func TestBackend_HasTheSameOutcomesAsMemory(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		start := time.Now()
		memoryClock, storeClock := locktest.NewClock(start), locktest.NewClock(start)
		inMemory, memoryEvents := observed(t, memlock.New(memlock.WithClock(memoryClock)))
		memory := history.Script(inMemory, memoryClock, "k", seed, 200)
		b := newBackend(t, newClient(t, serverAddr), Config{Clock: storeClock})
		inStore, storeEvents := observed(t, b)
		store := history.Script(inStore, storeClock, "k", seed, 200)
		wait(t, b)
		for i := range memory {
			if memory[i] != store[i] {
				t.Errorf("seed %d, call %d: memory %q, Firestore %q", seed, i, memory[i], store[i])
				break
			}
		}
		if memory, store := memoryEvents(), storeEvents(); !slices.Equal(memory, store) { // L-EVT-01
			t.Errorf("seed %d: events %v\nof memory, Firestore's %v", seed, memory, store)
		}
	}
}

// observed is a backend whose events can be asked for once it is done. What differs
// between two runs of one script, times and lock ids, is taken out.
func observed(t *testing.T, b lock.Backend) (lock.Backend, func() []lock.Event) {
	var events []lock.Event
	o := lock.WithTelemetry(b, lock.ObserverFunc(func(e lock.Event) {
		e.Duration, e.LockIDHash = 0, ""
		events = append(events, e)
	}))
	t.Cleanup(func() { _ = o.Close(bg) })
	return o, func() []lock.Event {
		if err := o.Close(bg); err != nil {
			t.Error(err)
		}
		return events
	}
}
