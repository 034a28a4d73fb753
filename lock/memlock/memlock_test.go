package memlock_test

import (
	"testing"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/locktest"
	"github.com/dronefleet/dronefleet/lock/memlock"
	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// L-TST-01
func TestBackend_KeepsTheContract(t *testing.T) {
	locktest.Run(t, func(_ *testing.T, clock lock.Clock) lock.Backend {
		return memlock.New(memlock.WithClock(clock))
	})
}

// serverTime is memlock as a store whose own clock decides.
type serverTime struct{ *memlock.Backend }

func (serverTime) Capabilities() lock.Capabilities {
	return lock.Capabilities{Name: "memory", Fencing: true, TimeAuthority: lock.ServerTime}
}

// L-TST-01: the rows that wait for a store's clock say what those that move it say.
func TestBackend_KeepsTheContractInRealTime(t *testing.T) {
	locktest.RunServerTime(t, func(*testing.T) lock.Backend { return serverTime{memlock.New()} }, 0)
}
