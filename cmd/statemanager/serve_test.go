package main

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/simclock"
)

// F-FLOW-01: a platform that kills early can have the drain end earlier.
func TestServe_DrainsAsLongAsItIsTold(t *testing.T) {
	t.Setenv("DRONEFLEET_DRAIN_TIMEOUT", "3s")
	g := new(grammar)
	parser, err := config.New(g)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"serve", "--project=my-project"}); err != nil {
		t.Fatal(err)
	}
	if got := g.Serve.worker(simclock.Real()).DrainTimeout; got != 3*time.Second {
		t.Errorf("drains for %s, want 3s", got)
	}
}
