package simclock

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/memlock"
)

var _ clockwork.Clock = (*Clock)(nil)

func TestClock_SharedRateAgrees(t *testing.T) {
	rate := Rate{Epoch: time.Now().Add(-time.Minute), Speed: 20}
	a, err := New(rate)
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(rate)
	if err != nil {
		t.Fatal(err)
	}
	before, other, after := a.Now(), b.Now(), a.Now()
	// The two bases are computed at different instants, so they may differ by the
	// resolution of the machine's wall clock.
	const slack = 20 * time.Millisecond
	if other.Before(before.Add(-slack)) || other.After(after.Add(slack)) {
		t.Errorf("clocks of one rate differ: %s not in [%s, %s]", other, before, after)
	}
	if ahead := time.Until(before); ahead < 18*time.Minute {
		t.Errorf("after a minute at speed 20 the clock is %s ahead, want 19 minutes", ahead)
	}
	if got := a.Real(20 * time.Second); got != time.Second {
		t.Errorf("20 s take %s at speed 20", got)
	}
}

func TestClock_TicksAtIntervalsShorterThanTheMachineCanMeasure(t *testing.T) {
	clock, err := New(Rate{Epoch: time.Now(), Speed: 20})
	if err != nil {
		t.Fatal(err)
	}
	ticker := clock.NewTicker(time.Nanosecond)
	defer ticker.Stop()
	<-ticker.Chan()
	ticker.Reset(time.Nanosecond)
	<-ticker.Chan()
}

func TestNew_RefusesInvalidSpeeds(t *testing.T) {
	for _, speed := range []float64{0, -1, 0.5, 1001} {
		if _, err := New(Rate{Epoch: time.Now(), Speed: speed}); err == nil {
			t.Errorf("speed %v was accepted", speed)
		}
	}
}

// Under simulated time a lease is still long enough for the machine.
func TestClock_LockOptionsAllowForTheMachine(t *testing.T) {
	clock, err := New(Rate{Epoch: time.Now(), Speed: 100})
	if err != nil {
		t.Fatal(err)
	}
	before := clock.Now().Truncate(time.Millisecond) // as the end of a lease
	h, err := lock.Acquire(t.Context(), memlock.New(memlock.WithClock(clock.ForLocks())), "key", clock.LockOptions(15*time.Second)...)
	if err != nil {
		t.Fatal(err)
	}
	if lease := clock.Real(h.ExpiresAt().Sub(before)); lease < shortestLease {
		t.Errorf("the lease lasts %s of the machine's time, want at least %s", lease, shortestLease)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if n := len(Real().LockOptions(15 * time.Second)); n != 1 {
		t.Errorf("%d options under machine time, want the length of the lease alone", n)
	}
}
