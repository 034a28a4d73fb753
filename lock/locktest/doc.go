// Package locktest is the contract of lock.Backend as a test suite, and a clock
// for tests. A backend passes if Run does:
//
//	func TestContract(t *testing.T) {
//		locktest.Run(t, func(t *testing.T, clock lock.Clock) lock.Backend {
//			return mybackend.New(mybackend.WithClock(clock))
//		})
//	}
//
// A backend whose store tells the time passes if RunServerTime does, which makes the same
// checks and waits where Run moves the clock.
//
// Each call of the function gives a backend whose keys the suite has not used;
// keys are unique per run, so a shared store is fine.
//
// It must not import a backend.
package locktest
