package main

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/testkit/clitest"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

func TestMain(m *testing.M) { clitest.MainOf(m, main) }

// Flags with which nothing could be measured are refused.
func TestMain_RefusesNonsense(t *testing.T) {
	clitest.RefusesLines(t, map[string]string{
		"":                                   "--broker",
		"--broker=mqtt://localhost --hz=0":   "hz (flag --hz)",
		"--broker=mqtt://localhost --drones": "--drones",
	})
}

// F-GW-06: what the broker has acked arrives, and the measurement sees it arrive.
func TestRun_CountsEveryReport(t *testing.T) {
	r := run{command: &command{Broker: storeserver.Mosquitto(t, "allow_anonymous true").URL, Drones: 5, Hz: 10, Duration: 500 * time.Millisecond}}
	if err := r.measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.acked != 25 || r.missing() != 0 || len(r.toTopic) < 25 || len(r.toShown) == 0 {
		t.Errorf("acked %d, missing %d, at Pub/Sub %d, shown %d", r.acked, r.missing(), len(r.toTopic), len(r.toShown))
	}
}
