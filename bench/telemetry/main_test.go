package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/internal/cli/clitest"
	"github.com/dronefleet/dronefleet/internal/connect"
)

func TestMain(m *testing.M) { clitest.Main(m, main) }

// A benchmark that could measure nothing is refused.
func TestMain_RefusesNonsense(t *testing.T) {
	clitest.Refuses(t, map[string]string{
		"--skip=foo":     "--skip",
		"--duration=-1s": "duration (flag --duration)",
		"--backlog=0":    "backlog (flag --backlog)",
	})
}

// A worker that fails ends its measurement, with its error, at once: nobody
// would settle what it waits for.
func TestCommand_EndsWithTheWorkersError(t *testing.T) {
	t.Setenv(connect.FirestoreHost, "")
	t.Setenv(connect.PubSubHost, "")
	broken := errors.New("broken")
	fail := func(context.Context, *connect.Clients) error { return broken }
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := &command{Drones: 2, Hz: 1, Duration: time.Hour}
	if _, err := c.drain(ctx, "drain", 3, fail); !errors.Is(err, broken) || ctx.Err() != nil {
		t.Errorf("a drain ended with %v", err)
	}
	if err := c.sustain(ctx, fail); !errors.Is(err, broken) || ctx.Err() != nil {
		t.Errorf("a sustained load ended with %v", err)
	}
}
