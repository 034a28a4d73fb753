package meter

import (
	"sync/atomic"
	"time"
)

// Offset is a measured clock offset.
type Offset struct{ last atomic.Pointer[time.Duration] }

// Set stores a measurement: the server's time minus the local one.
func (o *Offset) Set(d time.Duration) { o.last.Store(&d) }

// Last returns the last measurement, if there is one.
func (o *Offset) Last() (time.Duration, bool) {
	d := o.last.Load()
	if d == nil {
		return 0, false
	}
	return *d, true
}

// Instant is the last time of something that happens now and then.
type Instant struct{ last atomic.Pointer[time.Time] }

// Set stores a time.
func (i *Instant) Set(t time.Time) { i.last.Store(&t) }

// Last returns the last time; the zero time if there is none.
func (i *Instant) Last() time.Time {
	if t := i.last.Load(); t != nil {
		return *t
	}
	return time.Time{}
}
