package simclock

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/lock"
)

// Clock is simulated time.
type Clock struct {
	clockwork.Clock // the machine's
	Rate
	base  time.Time    // machine time, with its monotonic reading, of Rate.Epoch
	ahead atomic.Int64 // Rate.Ahead as it is now, in nanoseconds
	hand  bool         // a simulation moves Clock by hand
}

// Rate defines simulated time relative to the machine's, so that processes can share it:
// at machine time Epoch, simulated time is Ahead of it, and from then on it runs Speed
// times as fast.
type Rate struct {
	Epoch time.Time
	Speed float64
	Ahead time.Duration
}

// New returns the clock of rate. The error says what is wrong with the rate.
func New(rate Rate) (*Clock, error) {
	if !(rate.Speed >= 1 && rate.Speed <= 1000) {
		return nil, fmt.Errorf("speed is %v; give 1 to 1000", rate.Speed)
	}
	now := time.Now()
	c := &Clock{Clock: clockwork.NewRealClock(), Rate: rate, base: now.Add(rate.Epoch.Sub(now))}
	c.ahead.Store(int64(rate.Ahead))
	return c, nil
}

// NotBefore moves the clock forward, if necessary, so that it is past t: a resumed
// simulation must not repeat time.
func (c *Clock) NotBefore(t time.Time) {
	if gap := t.Sub(c.Now()); gap > 0 {
		c.ahead.Add(int64(gap))
	}
}

// Shared returns the rate with which other processes can keep this clock's time.
func (c *Clock) Shared() Rate {
	return Rate{Epoch: c.Epoch, Speed: c.Speed, Ahead: time.Duration(c.ahead.Load())}
}

// Real is the machine's clock.
func Real() *Clock {
	now := time.Now()
	return &Clock{Clock: clockwork.NewRealClock(), Rate: Rate{Epoch: now, Speed: 1}, base: now}
}

// ByHand is the clock of a simulation that moves c itself, event by event.
func ByHand(c clockwork.Clock) *Clock { return &Clock{Clock: c, Rate: Rate{Speed: 1}, hand: true} }

// Now is simulated time. It carries no monotonic reading unless it is the
// machine's.
func (c *Clock) Now() time.Time {
	ahead := time.Duration(c.ahead.Load())
	if c.hand {
		return c.Clock.Now()
	}
	if c.Speed == 1 && ahead == 0 {
		return time.Now()
	}
	return c.Epoch.Round(0).Add(ahead + time.Duration(float64(time.Since(c.base))*c.Speed))
}

// Real converts a simulated duration to machine time. One above 0 stays above 0, which
// tickers require.
func (c *Clock) Real(d time.Duration) time.Duration {
	machine := time.Duration(float64(d) / c.Speed)
	if d > 0 {
		return max(1, machine)
	}
	return machine
}

// Since is Now minus t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Until is t minus Now.
func (c *Clock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

// The methods below wait for simulated durations; their channels carry machine time.

// After returns a channel that delivers after d.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.Clock.After(c.Real(d)) }

// Sleep waits for d.
func (c *Clock) Sleep(d time.Duration) { c.Clock.Sleep(c.Real(d)) }

// NewTicker ticks every d.
func (c *Clock) NewTicker(d time.Duration) clockwork.Ticker {
	return ticker{c.Clock.NewTicker(c.Real(d)), c}
}

// NewTimer fires after d.
func (c *Clock) NewTimer(d time.Duration) clockwork.Timer {
	return timer{c.Clock.NewTimer(c.Real(d)), c}
}

// AfterFunc calls f after d.
func (c *Clock) AfterFunc(d time.Duration, f func()) clockwork.Timer {
	return timer{c.Clock.AfterFunc(c.Real(d), f), c}
}

type ticker struct {
	clockwork.Ticker
	clock *Clock
}

func (t ticker) Reset(d time.Duration) { t.Ticker.Reset(t.clock.Real(d)) }

type timer struct {
	clockwork.Timer
	clock *Clock
}

func (t timer) Reset(d time.Duration) bool { return t.Timer.Reset(t.clock.Real(d)) }

// The machine is no faster under simulated time, so a lock must allow it at least these
// durations of machine time.
const (
	shortestLease = time.Second
	lockTimeout   = 5 * time.Second // the lock library's own
)

// LockOptions makes leases keep this clock's time, and long enough for the machine.
func (c *Clock) LockOptions(ttl time.Duration) []lock.Option {
	if c.ForLocks() == nil {
		return []lock.Option{lock.WithTTL(ttl)}
	}
	stretched := func(d time.Duration) time.Duration { return time.Duration(float64(d) * c.Speed) }
	return []lock.Option{
		lock.WithClock(lockClock{c}), lock.WithTTL(max(ttl, stretched(shortestLease).Truncate(time.Millisecond))),
		lock.WithTimeout(stretched(lockTimeout)), lock.WithCloseTimeout(stretched(lockTimeout)),
	}
}

// ForLocks returns the clock for a lock backend; nil, which stands for the machine's
// clock, at speed 1 without an offset.
func (c *Clock) ForLocks() lock.Clock {
	if c.Speed == 1 && c.ahead.Load() == 0 && !c.hand {
		return nil
	}
	return lockClock{c}
}

type lockClock struct{ *Clock }

func (c lockClock) AfterFunc(d time.Duration, f func()) lock.Timer { return c.Clock.AfterFunc(d, f) }
