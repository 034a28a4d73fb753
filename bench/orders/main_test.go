package main

import (
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/clitest"
)

func TestMain(m *testing.M) { clitest.MainOf(m, main) }

// Flags with which nothing could be measured are refused.
func TestMain_RefusesBadFlags(t *testing.T) {
	clitest.RefusesLines(t, map[string]string{
		"--rate=0":      "rate (flag --rate)",
		"--duration=0s": "duration (flag --duration)",
		"--again=2":     "again (flag --again)",
	})
}

// F-INT-01: orders that are sent twice at once are made once, and none is lost.
func TestRun_LosesNoOrder(t *testing.T) {
	t.Setenv(connect.FirestoreHost, "")
	t.Setenv(connect.PubSubHost, "")
	var out strings.Builder
	c := &command{Rate: 50, Duration: time.Second, Drones: 3, Again: 1}
	if err := c.measure(t.Context(), &out); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "documents          50") || !strings.Contains(out.String(), "answers           100") {
		t.Errorf("printed %s", out.String())
	}
}
