package observe_test

import (
	"testing"

	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

// A dead collector leaves no goroutine behind.
func TestMain(m *testing.M) {
	leaktest.Main(m)
}
