package manager

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-TEL-09: a manager sweeps unless its clock is known to be wrong, and logs once that it
// stops and once that it resumes.
func TestManager_LogsWhenItsClockBecomesWrongAndRight(t *testing.T) {
	const stops, goesOn = "sweeping disabled", "sweeping enabled again"
	var logged bytes.Buffer
	m := &Manager{Log: slog.New(slog.NewTextHandler(&logged, nil)), clock: simclock.Real()}
	for i, step := range []struct {
		level lock.ClockLevel
		says  string
		holds bool
	}{
		{lock.ClockOK, "", true},
		{lock.ClockBlock, stops, false},
		{lock.ClockBlock, "", false},
		{lock.ClockWarn, goesOn, true},
		{lock.ClockOK, "", true},
		{lock.ClockBlock, stops, false},
	} {
		logged.Reset()
		m.noteClock(lock.ClockReport{Level: step.level})
		said := logged.String()
		if step.says == "" && said != "" || !strings.Contains(said, step.says) || strings.Count(said, "\n") > 1 {
			t.Errorf("step %d: said %q, want %q", i, said, step.says)
		}
		if holds, err := m.clockIsRight(t.Context()); holds != step.holds || err != nil {
			t.Errorf("step %d: clock usable: %t (%v)", i, holds, err)
		}
	}
	logged.Reset()
	fresh := &Manager{Log: m.Log, clock: m.clock}
	fresh.noteClock(lock.ClockReport{Level: lock.ClockBlock})
	if !strings.Contains(logged.String(), stops) {
		t.Errorf("clock wrong at startup: log %q", logged.String())
	}
}

// F-TEL-09: a manager that does not get the sweeper's lock skips the sweep without an
// error.
func TestManager_DoesNotSweepWhileAnotherHoldsTheLock(t *testing.T) {
	clients := emutest.Clients(t)
	m, err := New(clients, simclock.Real(), Config{}, emutest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.endTerm(); err != nil {
			t.Error(err)
		}
		if err := m.Locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	h, ok, err := lock.TryAcquire(t.Context(), m.Locks, SweeperKey)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	for _, swept := range []int64{0, 1} {
		if err := m.sweepOnce(t.Context()); err != nil || m.Meter.Sweeps.Value() != swept {
			t.Errorf("%d sweeps, want %d: %v", m.Meter.Sweeps.Value(), swept, err)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
