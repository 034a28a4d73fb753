package locktest

import (
	"slices"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

// Clock is a lock.Clock that stands still until it is told to move.
type Clock struct {
	mu      sync.Mutex
	changed *sync.Cond
	now     time.Time
	timers  []*timer
}

var _ lock.Clock = (*Clock)(nil)

type timer struct {
	clock *Clock
	at    time.Time
	f     func()
}

// NewClock returns a clock that stands at a time, in whole milliseconds.
func NewClock(now time.Time) *Clock {
	c := &Clock{now: now.Round(0).Truncate(time.Millisecond)}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// Now implements lock.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc implements lock.Clock. A duration that is not positive calls f at
// once, in a goroutine of its own.
func (c *Clock) AfterFunc(d time.Duration, f func()) lock.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{clock: c, at: c.now.Add(d), f: f}
	if d <= 0 {
		go f()
		return t
	}
	c.timers = append(c.timers, t)
	c.changed.Broadcast()
	return t
}

// Stop implements lock.Timer.
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.clock.remove(t)
}

func (c *Clock) remove(t *timer) bool {
	i := slices.Index(c.timers, t)
	if i < 0 {
		return false
	}
	c.timers = slices.Delete(c.timers, i, i+1)
	return true
}

// Advance moves the clock and calls, in order and one by one, what was due
// meanwhile.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	end := c.now.Add(d)
	for {
		due := c.next(end)
		if due == nil {
			break
		}
		if due.at.After(c.now) {
			c.now = due.at
		}
		c.remove(due)
		c.mu.Unlock()
		due.f()
		c.mu.Lock()
	}
	c.now = end
	c.mu.Unlock()
}

// Set moves the clock to a time, also backwards, and calls nothing.
func (c *Clock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now.Round(0)
}

func (c *Clock) next(end time.Time) *timer {
	var first *timer
	for _, t := range c.timers {
		if !t.at.After(end) && (first == nil || t.at.Before(first.at)) {
			first = t
		}
	}
	return first
}

// WaitTimers waits until at least n calls are pending: until the code under
// test has gone to sleep.
func (c *Clock) WaitTimers(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.timers) < n {
		c.changed.Wait()
	}
}

// WaitTimer waits until a call is pending that is due in exactly d: until the
// code under test has gone to sleep for that long.
func (c *Clock) WaitTimer(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !slices.ContainsFunc(c.timers, func(t *timer) bool { return t.at.Equal(c.now.Add(d)) }) {
		c.changed.Wait()
	}
}

// Timers is the number of pending calls.
func (c *Clock) Timers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}
