package firestorelock

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/locktest"
	"github.com/dronefleet/dronefleet/lock/memlock"
)

// L-TST-01
func TestContract(t *testing.T) {
	locktest.Run(t, func(t *testing.T, clock lock.Clock) lock.Backend {
		return newBackend(t, newClient(t, serverAddr), Config{Clock: clock})
	})
}

// L-TST-01: equal outcomes on both backends, call by call.
func TestSameOutcomesAsMemory(t *testing.T) {
	for seed := range uint64(8) {
		start := time.Now()
		memoryClock, storeClock := locktest.NewClock(start), locktest.NewClock(start)
		memory := locktest.Script(memlock.New(memlock.WithClock(memoryClock)), memoryClock, "k", seed, 200)
		b := newBackend(t, newClient(t, serverAddr), Config{Clock: storeClock})
		store := locktest.Script(b, storeClock, "k", seed, 200)
		wait(t, b)
		for i := range memory {
			if memory[i] != store[i] {
				t.Errorf("seed %d, call %d: memory %q, Firestore %q", seed, i, memory[i], store[i])
				break
			}
		}
	}
}
