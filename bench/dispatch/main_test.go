package main

import (
	"context"
	"errors"
	"testing"
	"time"

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

// Who is told to stop searches no longer.
func TestRun_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	f := flags{Drones: 20, Orders: 60, Instances: 2, First: 1, Time: time.Hour, Seeds: 1, Workers: 1, Strategy: "sisr", Quiet: true}
	if err := f.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended with %v", err)
	}
}
