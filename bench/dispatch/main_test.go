package main

import (
	"testing"

	"github.com/dronefleet/dronefleet/internal/cli/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, main) }

// A benchmark that could measure nothing is refused.
func TestMain_RefusesNonsense(t *testing.T) {
	clitest.Refuses(t, map[string]string{
		"--drones=-1":   "drones (flag --drones)",
		"--instances=0": "instances (flag --instances)",
		"--seeds=0":     "seeds (flag --seeds)",
		"--fast":        "--fast",
	})
}
