package simclock

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
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
	// The two bases are computed at different instants; they may differ by the
	// resolution of the machine's wall clock against its monotonic one.
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

func TestNew_RefusesSpeedsThatAreNone(t *testing.T) {
	for _, speed := range []float64{0, -1, 0.5, 1001} {
		if _, err := New(Rate{Epoch: time.Now(), Speed: speed}); err == nil {
			t.Errorf("speed %v was accepted", speed)
		}
	}
}
