package simclock

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
)

func TestByHand_ShowsWhatTheOtherClockShows(t *testing.T) {
	hand := clockwork.NewFakeClockAt(time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC))
	clock := ByHand(hand)
	hand.Advance(time.Minute)
	if !clock.Now().Equal(hand.Now()) || !clock.ForLocks().Now().Equal(hand.Now()) {
		t.Errorf("the clock shows %s, locks %s, after %s", clock.Now(), clock.ForLocks().Now(), hand.Now())
	}
}
