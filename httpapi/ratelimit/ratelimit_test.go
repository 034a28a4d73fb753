package ratelimit_test

import (
	"fmt"
	"testing"
	"testing/quick"
	"time"

	"github.com/dronefleet/dronefleet/httpapi/ratelimit"
)

// clock is set by tests.
type clock struct{ at time.Time }

func (c *clock) now() time.Time          { return c.at }
func (c *clock) advance(d time.Duration) { c.at = c.at.Add(d) }

func start(cfg ratelimit.Config) (*ratelimit.Limiter, *clock) {
	c := &clock{time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}
	return ratelimit.New(cfg, c.now), c
}

var ann, bob = ratelimit.Caller{ID: "ann", Known: true}, ratelimit.Caller{ID: "bob", Known: true}

// takes takes until the budget is used up and returns how often that worked.
func takes(l *ratelimit.Limiter, who ratelimit.Caller, b ratelimit.Budget) (n int) {
	for n < 1_000_000 && l.Take(who, b) == 0 {
		n++
	}
	return n
}

// F-API-10
func TestLimiter_KeepsTheBudgetsOfCallersApart(t *testing.T) {
	l, c := start(ratelimit.Config{Reads: 20, Commands: 0.5})
	for _, name := range []ratelimit.Caller{ann, bob} {
		if n := takes(l, name, ratelimit.Reads); n != 200 {
			t.Errorf("%v: %d reads at once, want those of 10 s", name, n)
		}
		if n := takes(l, name, ratelimit.Commands); n != 5 {
			t.Errorf("%v: %d commands at once, want those of 10 s", name, n)
		}
	}
	if wait := l.Take(ann, ratelimit.Commands); wait != 2*time.Second {
		t.Errorf("wait %s, want 2 s", wait)
	}
	c.advance(1999 * time.Millisecond)
	if n := takes(l, ann, ratelimit.Commands); n != 0 {
		t.Errorf("%d commands before the wait is over", n)
	}
	c.advance(time.Millisecond)
	if n := takes(l, ann, ratelimit.Commands); n != 1 {
		t.Errorf("%d commands after the wait, want 1", n)
	}
}

// F-API-10: whoever waits as long as it is told is served then.
func TestLimiter_NamesAWaitThatIsEnough(t *testing.T) {
	enough := func(perSecond uint16, asks []uint16) bool {
		l, c := start(ratelimit.Config{Reads: float64(perSecond%1000+1) / 16})
		for _, ms := range asks {
			c.advance(time.Duration(ms%500) * time.Millisecond)
			if wait := l.Take(ann, ratelimit.Reads); wait > 0 {
				c.advance(wait + time.Nanosecond) // the bucket counts in floating point
				if l.Take(ann, ratelimit.Reads) != 0 {
					return false
				}
			}
		}
		return true
	}
	if err := quick.Check(enough, nil); err != nil {
		t.Error(err)
	}
}

// F-API-10: a limit so low that the wait for the next request fits no duration is a limit.
func TestLimiter_LimitsToAlmostNothing(t *testing.T) {
	for _, perSecond := range []float64{1e-10, 1e-300, 5e-324} {
		l, c := start(ratelimit.Config{Reads: perSecond})
		for range 2 {
			if n := takes(l, ann, ratelimit.Reads); n > 1 {
				t.Errorf("%v a second: %d reads at once", perSecond, n)
			}
			if wait := l.Take(ann, ratelimit.Reads); wait <= 0 {
				t.Errorf("%v a second: wait %s", perSecond, wait)
			}
			c.advance(time.Hour)
		}
	}
}

func TestLimiter_CountsOpenStreams(t *testing.T) {
	l, _ := start(ratelimit.Config{Streams: 2})
	first, second := l.OpenStream(ann), l.OpenStream(ann)
	if first == nil || second == nil || l.OpenStream(ann) != nil {
		t.Fatal("ann has not exactly two streams")
	}
	if l.OpenStream(bob) == nil {
		t.Error("the streams of ann count for bob")
	}
	first()
	if l.OpenStream(ann) == nil {
		t.Error("a closed stream counts")
	}
	if n := takes(l, ann, ratelimit.Reads); n < 1_000_000 {
		t.Errorf("%d reads without a limit", n)
	}
}

// F-API-10: memory is bounded, and changing names helps nobody.
func TestLimiter_IsBounded(t *testing.T) {
	l, c := start(ratelimit.Config{Reads: 1, Streams: 1})
	if n := takes(l, ann, ratelimit.Reads); n != 10 {
		t.Fatalf("%d reads", n)
	}
	passed := 0
	for i := range 5 * ratelimit.MaxCallers {
		if l.Take(ratelimit.Caller{ID: fmt.Sprint("subject ", i), Known: true}, ratelimit.Reads) == 0 {
			passed++
		}
	}
	if n := l.Callers(); n != ratelimit.MaxCallers {
		t.Errorf("%d callers remembered", n)
	}
	if most := ratelimit.MaxCallers - 1 + 10; passed != most { // one each, and those of the shared bucket
		t.Errorf("%d requests passed, want %d", passed, most)
	}
	if l.Take(ann, ratelimit.Reads) == 0 {
		t.Error("the others' requests have emptied ann's record")
	}
	closed := l.OpenStream(ann)
	c.advance(ratelimit.SavedFor)
	l.Take(ann, ratelimit.Reads)
	if n := l.Callers(); n != 1 {
		t.Errorf("%d callers remembered after an idle time, want ann", n)
	}
	c.advance(ratelimit.SavedFor)
	l.Take(bob, ratelimit.Reads)
	if n := l.Callers(); n != 2 {
		t.Errorf("%d callers remembered; ann has an open stream", n)
	}
	closed()
	c.advance(ratelimit.SavedFor)
	l.Take(bob, ratelimit.Reads)
	if n := l.Callers(); n != 1 {
		t.Errorf("%d callers remembered after ann closed its stream", n)
	}
}

// F-API-10: callers without credentials, from any number of addresses, cannot use up the budgets
// of callers with credentials.
func TestLimiter_KeepsRoomForKnownCallers(t *testing.T) {
	l, _ := start(ratelimit.Config{Reads: 1, Streams: 1})
	for i := range 2 * ratelimit.MaxCallers {
		stranger := ratelimit.Caller{ID: fmt.Sprint("address ", i)}
		l.Take(stranger, ratelimit.Reads)
		l.OpenStream(stranger)
	}
	for _, c := range []struct {
		name string
		who  ratelimit.Caller
	}{{"ann", ann}, {"a subject like an address", ratelimit.Caller{ID: "address 1", Known: true}}} {
		if n := takes(l, c.who, ratelimit.Reads); n != 10 {
			t.Errorf("%s: %d reads, want 10", c.name, n)
		}
		if l.OpenStream(c.who) == nil {
			t.Errorf("%s: no stream", c.name)
		}
	}
}

func TestLimiter_NilLimitsNothing(t *testing.T) {
	var l *ratelimit.Limiter
	if l.Take(ann, ratelimit.Reads) != 0 || l.OpenStream(ann) == nil {
		t.Error("a nil limiter refuses")
	}
}
