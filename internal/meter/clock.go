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
