package meter

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Histogram counts durations in buckets whose bounds grow by at most an eighth, from a
// microsecond to almost five hours. Quantiles are at most 12.5 % off. Recording takes
// no lock. The zero value is ready to use.
type Histogram struct {
	buckets [bucketCount]atomic.Int64
	sum     atomic.Int64 // nanoseconds

	exemplars [exemplarCount]atomic.Pointer[exemplar]
}

// exemplar is one duration and the trace it comes from.
type exemplar struct {
	took  time.Duration
	trace string
	at    time.Time
}

const (
	subBuckets    = 8
	bucketCount   = 32 * subBuckets
	exemplarCount = bucketCount / subBuckets // the last of each power of two
)

// bucketOf maps microseconds to a bucket: the position of the highest bit and
// the three bits after it, as in a floating point number.
func bucketOf(us uint64) int {
	if us < subBuckets {
		return int(us)
	}
	exp := bits.Len64(us) - 4 // so that us>>exp is in [8, 16)
	return min((exp+1)*subBuckets+int(us>>exp)-subBuckets, bucketCount-1)
}

// upperBound is the exclusive upper bound of bucket i, in microseconds.
func upperBound(i int) float64 {
	if i < subBuckets {
		return float64(i + 1)
	}
	exp, sub := i/subBuckets-1, i%subBuckets
	return math.Ldexp(float64(subBuckets+sub+1), exp)
}

// Record counts d. A negative duration, which a wrong clock can cause, counts as zero.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	h.buckets[bucketOf(uint64(d.Microseconds()))].Add(1)
	h.sum.Add(int64(d))
}

// RecordTraced is Record, and keeps the trace's id as an exemplar of the duration. It
// is for the few messages whose trace is sampled.
func (h *Histogram) RecordTraced(d time.Duration, traceID string) {
	h.Record(d)
	d = max(d, 0)
	h.exemplars[bucketOf(uint64(d.Microseconds()))/subBuckets].Store(&exemplar{took: d, trace: traceID, at: time.Now()})
}

// traced returns the latest exemplars.
func (h *Histogram) traced() []prometheus.Exemplar {
	var list []prometheus.Exemplar
	for i := range h.exemplars {
		if e := h.exemplars[i].Load(); e != nil {
			list = append(list, prometheus.Exemplar{Value: e.took.Seconds(), Labels: prometheus.Labels{"trace_id": e.trace}, Timestamp: e.at})
		}
	}
	return list
}

// Count returns how many durations were recorded.
func (h *Histogram) Count() int64 {
	var n int64
	for i := range h.buckets {
		n += h.buckets[i].Load()
	}
	return n
}

// Sum returns the total of all durations.
func (h *Histogram) Sum() time.Duration { return time.Duration(h.sum.Load()) }

// Quantile returns a duration that a share q of the recorded ones does not exceed; 0 if
// none was recorded.
func (h *Histogram) Quantile(q float64) time.Duration {
	total := h.Count()
	if total == 0 {
		return 0
	}
	rank := max(int64(math.Ceil(q*float64(total))), 1)
	var seen int64
	for i := range h.buckets {
		if seen += h.buckets[i].Load(); seen >= rank {
			return time.Duration(upperBound(i) * float64(time.Microsecond))
		}
	}
	return time.Duration(upperBound(bucketCount-1) * float64(time.Microsecond))
}

// bounds are the bucket bounds that a metric shows: every so many buckets between two
// durations in microseconds. They never change, as rates over time need.
type bounds struct {
	least, most float64
	every       int
}

var (
	// shortBuckets are the powers of two from 128 us to 67 s.
	shortBuckets = bounds{1 << 7, 1 << 26, subBuckets}
	// longBuckets are 34 s, 50 s and their doubles up to 2 h 23 min.
	longBuckets = bounds{1 << 25, 1 << 33, subBuckets / 2}
)

// cumulative calls f with each bound, in seconds, and how many durations lie below
// it.
func (h *Histogram) cumulative(b bounds, f func(bound float64, count uint64)) {
	var seen uint64
	for i := range h.buckets {
		seen += uint64(h.buckets[i].Load())
		if bound := upperBound(i); i%b.every == b.every-1 && bound >= b.least && bound <= b.most {
			f(bound/1e6, seen)
		}
	}
}

// Since returns a histogram of what was recorded after earlier, an earlier result of
// h.Since(&Histogram{}), was taken.
func (h *Histogram) Since(earlier *Histogram) *Histogram {
	var d Histogram
	for i := range h.buckets {
		d.buckets[i].Store(h.buckets[i].Load() - earlier.buckets[i].Load())
	}
	d.sum.Store(h.sum.Load() - earlier.sum.Load())
	return &d
}
