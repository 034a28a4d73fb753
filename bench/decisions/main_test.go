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
		"--cycles=0":                   "cycles (flag --cycles)",
		"--cycles=9223372036854775807": "cycles (flag --cycles)",
		"--drones=9223372036854775807": "drones (flag --drones)",
	})
}

// A State Manager that fails ends the measurement, with its error, at once:
// nobody would judge the rest.
func TestWorkOff_EndsWithTheWorkersError(t *testing.T) {
	broken := errors.New("broken")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fail := func(context.Context) error { return broken }
	if err := workOff(ctx, fail, func() bool { return false }); !errors.Is(err, broken) || ctx.Err() != nil {
		t.Errorf("ended with %v", err)
	}
}

// Work that ends too early, though without an error, ends it too; what is done ends
// the work.
func TestWorkOff_WaitsForWorkThatGoesOn(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := workOff(ctx, func(context.Context) error { return nil }, func() bool { return false }); err == nil || ctx.Err() != nil {
		t.Errorf("work that stopped too early ended with %v", err)
	}
	looks := 0
	goOn := func(ctx context.Context) error { <-ctx.Done(); return nil }
	if err := workOff(ctx, goOn, func() bool { looks++; return looks == 3 }); err != nil || looks != 3 {
		t.Errorf("after %d looks: %v", looks, err)
	}
}
