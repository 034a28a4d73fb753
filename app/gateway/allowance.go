package gateway

import "time"

// allowance is how many reports a drone may send: a second's worth at once, and then as they
// come in again.
type allowance struct {
	rate float64 // a second
	left float64
	at   time.Time
}

func newAllowance(rate float64, now time.Time) allowance {
	return allowance{rate: rate, left: max(1, rate), at: now}
}

// take takes one report and returns how long to wait before the next is read. A clock that
// jumps back gives nothing and takes nothing.
func (a *allowance) take(now time.Time) (wait time.Duration) {
	if passed := now.Sub(a.at); passed > 0 {
		a.left = min(max(1, a.rate), a.left+passed.Seconds()*a.rate)
	}
	a.at = now
	if a.left--; a.left >= 0 {
		return 0
	}
	return time.Duration(-a.left / a.rate * float64(time.Second))
}
