package main

import (
	"strings"
	"testing"
	"time"
)

// Firestore refuses a read of more than an hour ago that is not of a whole
// minute. F-OPT-05
func TestSolve_readsWholeMinutesBeyondTheHour(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 30, 0, time.UTC)
	for _, c := range []struct{ at, want string }{
		{"2026-11-21T12:00:29.123456Z", "2026-11-21T12:00:29.123456Z"},
		{"2026-11-21T11:01:30.5Z", "2026-11-21T11:01:30.5Z"},
		{"2026-11-21T11:01:29.5Z", "2026-11-21T11:01:00Z"}, // is an hour ago by the time it is read
		{"2026-11-21T11:00:00Z", "2026-11-21T11:00:00Z"},
		{"2026-11-21T09:17:59.999Z", "2026-11-21T09:17:00Z"},
		{"2026-11-20T17:47:15+05:30", "2026-11-20T17:47:00+05:30"},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := readable(at, now).Format(time.RFC3339Nano); got != c.want {
			t.Errorf("%s is read at %s, want %s", c.at, got, c.want)
		}
	}
}

// F-OPT-05: a number of steps that is none is refused, not taken for no bound.
func TestSolve_RefusesABoundThatIsNone(t *testing.T) {
	for flag, c := range map[string]*solveCommand{
		"--iterations":  {SolveLimit: time.Second, Iterations: -1},
		"--solve-limit": {SolveLimit: -time.Second},
	} {
		c.In = "/dev/null"
		if err := c.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), flag+" is -1") {
			t.Errorf("%s: error %v", flag, err)
		}
	}
}
