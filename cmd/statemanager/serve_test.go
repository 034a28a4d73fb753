package main

import (
	"reflect"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/shutdown"
	"github.com/dronefleet/dronefleet/internal/simclock"
)

// F-FLOW-01: on a platform that kills early, the drain can be set shorter.
func TestServe_DrainTimeoutSetsTheDrain(t *testing.T) {
	t.Setenv("DRONEFLEET_DRAIN_TIMEOUT", "3s")
	g := new(grammar)
	parser, err := config.New(g)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"serve", "--project=my-project"}); err != nil {
		t.Fatal(err)
	}
	if got := g.Serve.worker(simclock.Real()).Shutdown.Limit(shutdown.Drain); got != 3*time.Second {
		t.Errorf("drains for %s, want 3s", got)
	}
}

// F-DLQ-01: every selecting flag reaches the filter. If one were lost, more letters than
// requested would be replayed or discarded.
func TestDeadLetters_FilterHasEveryFlag(t *testing.T) {
	var g grammar
	parser, err := config.New(&g)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"deadletters", "replay", "--project=p-1", "--topic=orders", "--reason=INVALID", "--id=1,2", "--id=3", "--limit=4"}
	if _, err := parser.Parse(args); err != nil {
		t.Fatal(err)
	}
	want := operator.LetterFilter{Topic: "orders", Reason: "INVALID", IDs: []string{"1", "2", "3"}, Limit: 4}
	if got := g.Deadletters.Replay.filter(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
