package meter

import "sync/atomic"

// Counter is a count that never falls. The zero value is ready to use.
type Counter struct{ n atomic.Int64 }

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// Add adds n, which must not be negative.
func (c *Counter) Add(n int64) { c.n.Add(n) }

// Value returns the count.
func (c *Counter) Value() int64 { return c.n.Load() }
