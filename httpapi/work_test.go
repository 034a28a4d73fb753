package httpapi

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/internal/meter"
)

// F-OBS-01, F-OPT-06: a backlog or a sweeper that is late is a warning; an optimizer
// without a cycle for three intervals is not ready, and says why.
func TestReadiness_ReportsLateWork(t *testing.T) {
	began := time.Now()
	for name, c := range map[string]struct {
		before func(*meter.Meter)
		after  time.Duration // since the process began
		want   map[string]string
		detail string
	}{
		"a process without work": {func(*meter.Meter) {}, time.Hour, map[string]string{}, ""},
		"no message in memory": {func(m *meter.Meter) { m.Backlog("orders", time.Now) }, time.Hour,
			map[string]string{"backlog": CheckOK}, ""},
		"a young backlog": {func(m *meter.Meter) { held(m, "orders", 29*time.Second) }, 0,
			map[string]string{"backlog": CheckOK}, ""},
		"an old backlog of one kind": {func(m *meter.Meter) { held(m, "orders", time.Second); held(m, "telemetry", 31*time.Second) }, 0,
			map[string]string{"backlog": CheckWarning}, "1 telemetry messages in memory is 31s old"},
		"a sweeper that has just begun": {func(m *meter.Meter) { m.Lock(meter.LockSweeper) }, 20 * time.Second,
			map[string]string{"lock-sweeper": CheckOK}, ""},
		"a sweeper that never got an answer": {func(m *meter.Meter) { m.Lock(meter.LockSweeper) }, 40 * time.Second,
			map[string]string{"lock-sweeper": CheckWarning}, "40s ago"},
		"a sweeper whose lock another process holds": {func(m *meter.Meter) { m.Lock(meter.LockSweeper).Tried(time.Now(), false) }, 20 * time.Second,
			map[string]string{"lock-sweeper": CheckOK}, ""},
		"a long sweep": {func(m *meter.Meter) { m.Lock(meter.LockSweeper).Tried(time.Now(), true) }, time.Hour,
			map[string]string{"lock-sweeper": CheckOK}, ""},
		"a cycle of another process": {func(m *meter.Meter) { m.Lock(meter.LockCycle); m.Cycles.Ended(meter.CycleSkipped) }, 29 * time.Second,
			map[string]string{"lock-cycle": CheckOK, "cycle": CheckOK}, ""},
		"failing cycles": {func(m *meter.Meter) {
			m.Lock(meter.LockCycle)
			m.Cycles.Ended(meter.CycleFailed)
			m.Cycles.Hindered(errors.New("the lock is stuck"))
		}, 31 * time.Second,
			map[string]string{"lock-cycle": CheckOK, "cycle": CheckFailing}, "no cycle has ended for 31s, more than 3 intervals of 10s: the lock is stuck"},
		"cycles that a wrong clock skips": {func(m *meter.Meter) { m.Lock(meter.LockCycle); m.Cycles.Ended(meter.CycleClockWrong) }, 31 * time.Second,
			map[string]string{"lock-cycle": CheckOK, "cycle": CheckFailing}, "3 intervals of 10s: the log says what fails"},
		"cycles that stopped": {func(m *meter.Meter) { m.Lock(meter.LockCycle); m.Cycles.Ended(meter.CycleRun) }, 53 * time.Second,
			map[string]string{"lock-cycle": CheckOK, "cycle": CheckFailing}, "no cycle has ended for 5"},
		"cycles that wait for their turn": {func(m *meter.Meter) { // F-OWN-02
			m.Lock(meter.LockCycle)
			m.Cycles.Ended(meter.CycleRun)
			m.Cycles.NoteWait(14 * time.Second)
			m.Cycles.NoteWait(time.Second)
		}, time.Second, map[string]string{"lock-cycle": CheckOK, "cycle": CheckWarning}, "waited 14s for its turn to search, more than the interval of 10s"},
		"cycles a minute apart": {func(m *meter.Meter) {
			m.Lock(meter.LockCycle)
			m.Cycles.SetPeriod(time.Minute)
			m.Cycles.Ended(meter.CycleRun)
		}, 179 * time.Second, map[string]string{"lock-cycle": CheckOK, "cycle": CheckOK}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := meter.New()
			c.before(m)
			r := &work{meter: m, began: began}
			got := r.check(began.Add(c.after))
			if len(got) != len(c.want) {
				t.Errorf("checks %v, want %v", got, c.want)
			}
			for name, want := range c.want {
				if got[name].Status != want {
					t.Errorf("%s is %+v, want %s", name, got[name], want)
				}
				if want != CheckOK && !strings.Contains(got[name].Detail, c.detail) {
					t.Errorf("%s says %q, want %q", name, got[name].Detail, c.detail)
				}
			}
		})
	}
}

// F-OPT-06: a State Manager that watches depots is not ready while orders wait at a depot
// without cycles.
func TestReadiness_FailsForADepotWithoutCycles(t *testing.T) {
	var outage error
	r := &work{meter: meter.New(), depots: func() error { return outage }}
	for _, outage = range []error{nil, errors.New("no cycle at depot D1"), nil} {
		c := r.check(time.Now())["depots"]
		if ok := outage == nil; ok != (c.Status == CheckOK) || !ok && (c.Status != CheckFailing || c.Detail != outage.Error()) {
			t.Errorf("watch error %v is reported as %+v", outage, c)
		}
	}
}

// F-API-01: a warning does not hide a failure.
func TestReadiness_IsAsBadAsItsWorstCheck(t *testing.T) {
	ok, warning, failing := Check{Status: CheckOK}, Check{Status: CheckWarning}, Check{Status: CheckFailing}
	for want, checks := range map[string]map[string]Check{
		CheckOK:      {"firestore": ok, "clock": ok},
		CheckWarning: {"firestore": ok, "clock": warning, "pubsub": ok},
		CheckFailing: {"firestore": failing, "clock": warning, "pubsub": ok, "cycle": warning},
	} {
		for range 100 { // maps are iterated in random order
			if got := worst(checks); got != want {
				t.Fatalf("%v are %s", checks, got)
			}
		}
	}
}

// F-API-01: an account that may consume a subscription but not look it up is ready:
// Pub/Sub answered.
func TestReadiness_AcceptsPermissionDenied(t *testing.T) {
	for code, want := range map[codes.Code]string{
		codes.OK: "", codes.PermissionDenied: "",
		codes.NotFound: "topic decisions does not exist", codes.Unavailable: "Unavailable", codes.DeadlineExceeded: "DeadlineExceeded",
	} {
		err := outageOf("topic decisions", status.Error(code, ""))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", code, err, want)
		}
	}
}

// F-API-01
func TestChallenge_DropsCharactersItCannotQuote(t *testing.T) {
	want := `Bearer realm="dronefleet", error="invalid_token", error_description="it is meant for 'ab'"`
	if got := challenge("invalid_token", "it is meant for \"a\n\u00e9b\"\\"); got != want {
		t.Errorf("challenge %s", got)
	}
}

// held adds a message of an age to the backlog.
func held(m *meter.Meter, kind string, age time.Duration) {
	now := time.Now()
	m.Backlog(kind, func() time.Time { return now }).Hold(now.Add(-age))
}

// F-OBS-01
func TestReadiness_ReportsAgesAndHolders(t *testing.T) {
	m := meter.New()
	held(m, "orders", 1500*time.Millisecond)
	m.Backlog("decisions", time.Now)
	m.Lock(meter.LockSweeper).Tried(time.Now(), true)
	now := time.Now()
	got := (&work{meter: m, began: now}).check(now.Add(time.Second))
	if ages := got["backlog"].AgeMs; len(ages) != 2 || ages["orders"] < 1500 || ages["orders"] > 1510 || ages["decisions"] != 0 {
		t.Errorf("ages %v", ages)
	}
	if l := got["lock-sweeper"]; l.Held == nil || !*l.Held || l.TriedAgoMs == nil || *l.TriedAgoMs < 1000 {
		t.Errorf("lock %+v", l)
	}
}
