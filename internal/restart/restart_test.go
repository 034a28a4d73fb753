package restart

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestUntil_PausesLongerAfterEachFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var pauses []time.Duration
		last := time.Now()
		Until(ctx, func() {
			pauses = append(pauses, time.Since(last))
			switch len(pauses) {
			case 8:
				time.Sleep(longestPause) // it ran well
			case 9:
				stop()
			}
			last = time.Now()
		})
		within := func(pause, most time.Duration) bool { return most/2 <= pause && pause <= most+most/2 }
		if len(pauses) != 9 || pauses[0] != 0 || !within(pauses[1], firstPause) || !within(pauses[7], longestPause) || !within(pauses[8], firstPause) {
			t.Errorf("paused %v; want about %s at first, %s later, and %s after a long run", pauses, firstPause, longestPause, firstPause)
		}
	})
}

func TestUntil_EndsDuringAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), firstPause/4)
		defer stop()
		calls := 0
		began := time.Now()
		Until(ctx, func() { calls++ })
		if calls != 1 || time.Since(began) != firstPause/4 {
			t.Errorf("%d calls, ended after %s", calls, time.Since(began))
		}
	})
}
