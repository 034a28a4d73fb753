package firestoretx

import "time"

// serverClock estimates the server's clock from the times in its answers. The
// local clock may be off by any amount and may be set at any time.
type serverClock struct {
	now func() time.Time // the local clock
	// When the local clock showed local, at the last answer, the server's showed a time between
	// earliest and latest.
	earliest, latest, local time.Time
}

// trustFor is how long, by the local clock, reports may be judged by an answer.
const trustFor = 10 * time.Second

// heard notes a time in the server's answer to a call that began when the local
// clock showed began.
func (c *serverClock) heard(server, began time.Time) {
	now := c.now()
	if server.IsZero() || server.Before(c.earliest) {
		return
	}
	c.earliest, c.latest, c.local = server, server.Add(max(0, longestBetween(began, now))), now
}

// atLeast is the earliest that the server's clock may show when the local one
// shows now.
func (c serverClock) atLeast(now time.Time) time.Time {
	if passed := now.Sub(c.local); 0 <= passed && passed <= trustFor {
		return c.earliest.Add(passed)
	}
	return c.earliest
}

// atMost is the latest that the server's clock may show when the local one shows
// now; false if the last answer is too old to tell.
func (c serverClock) atMost(now time.Time) (time.Time, bool) {
	passed := longestBetween(c.local, now)
	return c.latest.Add(passed), 0 <= passed && passed <= trustFor
}

// later is the local time, or the server's known time if that is ahead.
func (c serverClock) later(now time.Time) time.Time {
	if server := c.earliest.Add(max(0, now.Sub(c.local))); server.After(now) {
		return server
	}
	return now
}

// longestBetween is the longest time that may lie between two readings of the local clock. The
// monotonic reading stops while the machine sleeps; the wall clock does not.
func longestBetween(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}
