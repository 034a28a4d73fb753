package firestorelock

import (
	"testing"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/locktest"
)

// L-TST-01
func TestContract(t *testing.T) {
	locktest.Run(t, func(t *testing.T, clock lock.Clock) lock.Backend {
		return newBackend(t, newClient(t, serverAddr), Config{Clock: clock})
	})
}
