package locktest

import (
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

// timekeeper is the time as a backend under test tells it.
type timekeeper interface {
	authority() string // who tells the time: Capabilities.TimeAuthority
	clock() lock.Clock
	now() time.Time
	step()                   // lets some time pass, less than any lease lasts
	waitUntil(time.Time)     // returns at that time or later
	brief() time.Duration    // a lease whose end is waited for
	early() time.Duration    // how long before its end something is seen at its end
	margin() time.Duration   // how long after its end a lease is certainly over
	mayBeLate() bool         // whether time passes by itself
	isBefore(time.Time) bool // whether that time has certainly not come yet
	// isEnd reports whether a holder that stops then stops at a lease's end, or, where
	// that cannot be told exactly, no later.
	isEnd(deadline, end time.Time) bool
	// between reports whether t lies between an earlier time and now.
	between(t, earlier time.Time) bool
	// sideBySide runs f, beside others if time passes by itself.
	sideBySide(all *sync.WaitGroup, f func())
}

// injected is a clock that the backend was given.
type injected struct{ c *Clock }

func (i injected) authority() string     { return lock.ClientTime }
func (i injected) clock() lock.Clock     { return i.c }
func (i injected) now() time.Time        { return i.c.Now() }
func (i injected) step()                 { i.c.Advance(5 * time.Second) }
func (i injected) waitUntil(t time.Time) { i.c.Advance(t.Sub(i.c.Now())) }
func (i injected) brief() time.Duration  { return ttl }
func (i injected) early() time.Duration  { return time.Millisecond }
func (i injected) margin() time.Duration { return 0 }
func (i injected) mayBeLate() bool       { return false }

func (i injected) isBefore(t time.Time) bool              { return i.now().Before(t) }
func (i injected) isEnd(deadline, end time.Time) bool     { return deadline.Equal(end) }
func (i injected) between(t, earlier time.Time) bool      { return t.Equal(earlier) && t.Equal(i.now()) }
func (i injected) sideBySide(_ *sync.WaitGroup, f func()) { f() }

// server is the clock of a store, which differs from this machine's by up to skew.
type server struct{ skew time.Duration }

func (s server) authority() string         { return lock.ServerTime }
func (s server) clock() lock.Clock         { return lock.SystemClock() }
func (s server) now() time.Time            { return time.Now() }
func (s server) step()                     { time.Sleep(20 * time.Millisecond) }
func (s server) waitUntil(t time.Time)     { time.Sleep(time.Until(t.Add(s.skew))) }
func (s server) brief() time.Duration      { return 300 * time.Millisecond }
func (s server) early() time.Duration      { return lock.Tolerance / 2 }
func (s server) margin() time.Duration     { return 50 * time.Millisecond }
func (s server) mayBeLate() bool           { return true }
func (s server) isBefore(t time.Time) bool { return time.Now().Add(s.skew).Before(t) }

func (s server) isEnd(deadline, end time.Time) bool {
	return !deadline.After(end.Add(s.skew + time.Millisecond))
}

func (s server) between(t, earlier time.Time) bool {
	// A store may cut its time to whole milliseconds.
	return !t.Before(earlier.Add(-s.skew-time.Millisecond)) && !t.After(time.Now().Add(s.skew))
}

func (s server) sideBySide(all *sync.WaitGroup, f func()) { all.Go(f) }
