package plannersim_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// Hours of a fleet leave much garbage and keep little: collecting it seldom saves a quarter of the
// time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
