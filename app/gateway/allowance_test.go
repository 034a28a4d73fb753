package gateway

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/domain"
)

// F-GW-03: ten reports a second pass, more must wait, and a clock that jumps either way gives
// neither a flood nor a standstill.
func TestAllowance_HoldsTheRateWhateverTheClockDoes(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	a := newAllowance(10, now)
	free := func() (n int) {
		for a.take(now) == 0 {
			n++
		}
		return n
	}
	if n := free(); n != 10 {
		t.Errorf("%d at once, want 10", n)
	}
	now = now.Add(time.Second)
	if n := free(); n < 8 || n > 10 {
		t.Errorf("%d after a second", n)
	}
	now = now.Add(24 * time.Hour)
	if n := free(); n > 10 {
		t.Errorf("%d after the clock jumped ahead", n)
	}
	now = now.Add(-48 * time.Hour)
	if wait := a.take(now); wait <= 0 || wait > time.Second {
		t.Errorf("waits %s after the clock jumped back", wait)
	}
	now = now.Add(2 * time.Second)
	if n := free(); n == 0 {
		t.Error("stands still after the clock jumped back")
	}
}

// F-GW-04: a drone gets no command that has expired, that it has, or whose mission was revoked, and
// every revocation.
func TestCommandFilter_KeepsWhatMustNotBeObeyed(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	command := func(mission domain.MissionID, expires time.Duration, revoke bool) dronelink.Message {
		return dronelink.Message{Command: &domain.Command{Mission: domain.Mission{ID: mission}, ExpiresAt: now.Add(expires), Revoke: revoke}}
	}
	var f commandFilter
	for i, step := range []struct {
		m    dronelink.Message
		want bool
	}{
		{command("M1", -time.Second, false), false}, // expired
		{command("M1", 20*time.Second, false), true},
		{command("M1", 20*time.Second, false), false}, // again
		{command("M1", 10*time.Second, false), false}, // an earlier one, late
		{command("M1", 30*time.Second, false), true},  // changed
		{command("M1", 0, true), true},
		{command("M1", 40*time.Second, false), false}, // after its end
		{command("M1", 0, true), true},                // again: the drone may not have obeyed
		{command("M2", 20*time.Second, false), true},
	} {
		if got := f.pass(step.m, now); got != step.want {
			t.Errorf("step %d passes: %v", i, got)
		}
	}
	resume := &dronelink.Resume{Mission: &domain.Mission{ID: "M1"}, CompletedStops: 2}
	if f.pass(dronelink.Message{Resume: resume}, now); resume.Mission != nil {
		t.Error("a revoked mission is resumed")
	}
}
