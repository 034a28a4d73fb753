package devrun

import (
	"testing"
	"time"
)

// F-API-02: a run of many orders is not kept busy with counting them for its status
// line, and one of few redraws it as often as ever.
func TestPacer(t *testing.T) {
	for _, c := range []struct {
		took time.Duration
		want int
	}{
		{2 * time.Millisecond, 240},
		{500 * time.Millisecond, 12},
		{10 * time.Second, 1},
	} {
		var p pacer
		began := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
		done := 0
		for now := began; now.Sub(began) < 2*time.Minute; now = now.Add(redrawEvery) {
			if p.due(now) {
				p.did(now, now.Add(c.took))
				done++
			}
		}
		if done != c.want {
			t.Errorf("what takes %s is done %d times in two minutes, want %d", c.took, done, c.want)
		}
	}
}
