package redislock

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dronefleet/dronefleet/conformance/lock/history"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/locktest"
	"github.com/dronefleet/dronefleet/lock/memlock"
)

// L-TST-01
func TestBackend_KeepsTheContract(t *testing.T) {
	server := startRedis(t)
	locktest.RunServerTime(t, func(t *testing.T) lock.Backend {
		return newBackend(t, dial(t, server.Addr()), Config{Prefix: fresh(), SkipDurabilityCheck: true})
	}, 0)
}

// L-TST-01, L-EVT-01: equal outcomes and events as in memory, call by call.
func TestBackend_HasTheSameOutcomesAsMemory(t *testing.T) {
	t.Parallel()
	client := dial(t, startRedis(t).Addr())
	for seed := range uint64(8) {
		run := func(b lock.Backend) (lines, events []string) {
			o := lock.WithTelemetry(b, lock.ObserverFunc(func(e lock.Event) {
				e.Duration, e.LockIDHash = 0, ""
				events = append(events, fmt.Sprint(e))
			}))
			lines = history.Script(o, nil, "k", seed, 300)
			if err := o.Close(bg); err != nil {
				t.Error(err)
			}
			return lines, events
		}
		memory, memoryEvents := run(memlock.New())
		stored, storedEvents := run(newBackend(t, client, Config{Prefix: fresh(), SkipDurabilityCheck: true}))
		for i := range memory {
			if memory[i] != stored[i] {
				t.Errorf("seed %d, call %d: memory %q, Redis %q", seed, i, memory[i], stored[i])
				break
			}
		}
		if !slices.Equal(memoryEvents, storedEvents) {
			t.Errorf("seed %d: events differ", seed)
		}
	}
}
