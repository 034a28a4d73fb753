package manager

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/lock/firestorelock"
)

// F-TEL-09: a manager sweeps unless its clock is known to be wrong, and says once
// that it stops, and once that it goes on.
func TestManager_SaysWhenItsClockBeginsAndEndsToBeWrong(t *testing.T) {
	const stops, goesOn = "does not sweep", "sweeps again"
	var logged bytes.Buffer
	m := &Manager{log: slog.New(slog.NewTextHandler(&logged, nil))}
	for i, step := range []struct {
		level firestorelock.ClockLevel
		says  string
		holds bool
	}{
		{firestorelock.ClockOK, "", true},
		{firestorelock.ClockBlock, stops, false},
		{firestorelock.ClockBlock, "", false},
		{firestorelock.ClockWarn, goesOn, true},
		{firestorelock.ClockOK, "", true},
		{firestorelock.ClockBlock, stops, false},
	} {
		logged.Reset()
		m.noteClock(firestorelock.ClockReport{Level: step.level})
		said := logged.String()
		if step.says == "" && said != "" || !strings.Contains(said, step.says) || strings.Count(said, "\n") > 1 {
			t.Errorf("step %d: said %q, want %q", i, said, step.says)
		}
		if holds, err := m.clockHolds(t.Context()); holds != step.holds || err != nil {
			t.Errorf("step %d: the clock holds: %t (%v)", i, holds, err)
		}
	}
	logged.Reset()
	fresh := &Manager{log: m.log}
	fresh.noteClock(firestorelock.ClockReport{Level: firestorelock.ClockBlock})
	if !strings.Contains(logged.String(), stops) {
		t.Errorf("of a clock that is wrong at the start it said %q", logged.String())
	}
}
