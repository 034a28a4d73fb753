package memlock_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/locktest"
	"github.com/dronefleet/dronefleet/lock/memlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// L-TST-01
func TestBackend_KeepsTheContract(t *testing.T) {
	locktest.Run(t, func(_ *testing.T, clock lock.Clock) lock.Backend {
		return memlock.New(memlock.WithClock(clock))
	})
}
