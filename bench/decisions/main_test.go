package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/testkit/clitest"
)

func TestMain(m *testing.M) { clitest.MainOf(m, main) }

// Flags with which nothing could be measured are refused.
func TestMain_RefusesBadFlags(t *testing.T) {
	clitest.RefusesLines(t, map[string]string{
		"--cycles=0":                   "cycles (flag --cycles)",
		"--cycles=9223372036854775807": "cycles (flag --cycles)",
		"--drones=9223372036854775807": "drones (flag --drones)",
	})
}

// A State Manager that fails ends the measurement at once with its error: the other
// decisions would never be settled.
func TestWorkOff_EndsWithErrorOfWork(t *testing.T) {
	broken := errors.New("broken")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fail := func(context.Context) error { return broken }
	if err := workOff(ctx, fail, func() bool { return false }); !errors.Is(err, broken) || ctx.Err() != nil {
		t.Errorf("ended with %v", err)
	}
}

// Work that ends early without an error is a failure too; otherwise the work runs
// until everything is done.
func TestWorkOff_RunsUntilDone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := workOff(ctx, func(context.Context) error { return nil }, func() bool { return false }); err == nil || ctx.Err() != nil {
		t.Errorf("work that ended early: %v", err)
	}
	checks := 0
	goOn := func(ctx context.Context) error { <-ctx.Done(); return nil }
	if err := workOff(ctx, goOn, func() bool { checks++; return checks == 3 }); err != nil || checks != 3 {
		t.Errorf("after %d checks: %v", checks, err)
	}
}
