package meter

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestHistogram_QuantileIsWithinAnEighth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		us := rapid.Int64Range(0, 3_000_000_000).Draw(t, "us")
		var h Histogram
		d := time.Duration(us) * time.Microsecond
		h.Record(d)
		got := h.Quantile(0.99)
		if got < d || float64(got) > float64(d)*1.125+float64(time.Microsecond) {
			t.Fatalf("quantile of a single %s is %s", d, got)
		}
	})
}

func TestHistogram_QuantilesOfManyDurations(t *testing.T) {
	var h Histogram
	for i := 1; i <= 1000; i++ {
		h.Record(time.Duration(i) * time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond} {
		if got := h.Quantile(q); got < want || got > want*9/8 {
			t.Errorf("quantile %v is %s, want about %s", q, got, want)
		}
	}
	h.Record(-time.Second)
	if h.Count() != 1001 {
		t.Errorf("count is %d", h.Count())
	}
}

func TestHistogram_SinceExcludesEarlierDurations(t *testing.T) {
	var h Histogram
	h.Record(time.Second)
	before := h.Since(&Histogram{})
	h.Record(time.Millisecond)
	if after := h.Since(before); after.Count() != 1 || after.Quantile(1) > 2*time.Millisecond || after.Sum() != time.Millisecond {
		t.Errorf("%d recorded, at most %s", after.Count(), after.Quantile(1))
	}
}

// F-OBS-01: a scrape has the same twenty bounds whatever was recorded, and each bucket
// counts all shorter durations.
func TestHistogram_CumulativeBoundsArePowersOfTwo(t *testing.T) {
	var h Histogram
	for _, d := range []time.Duration{0, 127 * time.Microsecond, 128 * time.Microsecond, time.Second, 60 * time.Second, time.Hour} {
		h.Record(d)
	}
	bound := 128e-6
	bounds := 0
	h.cumulative(shortBuckets, func(got float64, count uint64) {
		want := uint64(2)
		for _, longer := range []float64{128e-6, 1, 60} {
			if longer < bound {
				want++
			}
		}
		if got != bound || count != want {
			t.Errorf("%d are below %g s, want %d below %g s", count, got, want, bound)
		}
		bound *= 2
		bounds++
	})
	if bounds != 20 {
		t.Errorf("%d bounds", bounds)
	}
}
