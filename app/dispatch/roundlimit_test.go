package dispatch

import (
	"testing"
	"time"
)

// F-OPT-03: rounds that all take as long as they may keep to the cycle's time,
// give or take one that was late.
func TestRoundLimit(t *testing.T) {
	const limit = 8 * time.Second
	spent := time.Duration(0)
	// The longest overdue order has a round of its own beside the pressing ones.
	for _, until := range []float64{untilUrgent, untilShared, untilPressing, untilPressing, untilJoint, untilShorter} {
		spent += roundLimit(limit, spent, until)
	}
	if spent > limit+limit/leastShare {
		t.Errorf("all rounds take %s of %s", spent, limit)
	}
	if got := roundLimit(limit, 2*limit, untilJoint); got != limit/leastShare {
		t.Errorf("a round that begins after the end gets %s", got)
	}
}
