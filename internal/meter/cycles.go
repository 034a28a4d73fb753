package meter

import (
	"maps"
	"sync"
	"time"
)

// Outcomes of a solve cycle, as counted.
const (
	CycleRun     = "run"     // ended with a plan, perhaps an empty one
	CycleSkipped = "skipped" // another process held the lock
	CycleFailed  = "failed"  // an error at the lock, snapshot or plan, or a lost lease
)

// Cycles counts solve cycles.
type Cycles struct {
	// Took is the duration of the cycles that ran, from asking for the lock to the last
	// decision published, in machine time.
	Took Histogram
	// PlansRefused counts plans that broke the rules and were not published.
	PlansRefused Counter

	run, skipped, failed Counter

	mu       sync.Mutex
	ended    time.Time
	unserved map[string]int64 // orders by priority
}

// Ended counts a cycle by its outcome.
func (c *Cycles) Ended(outcome string) {
	switch outcome {
	case CycleRun:
		c.run.Inc()
	case CycleSkipped:
		c.skipped.Inc()
	default:
		c.failed.Inc()
	}
	if outcome == CycleFailed {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = time.Now()
}

// Count returns how many cycles had an outcome.
func (c *Cycles) Count(outcome string) int64 {
	switch outcome {
	case CycleRun:
		return c.run.Value()
	case CycleSkipped:
		return c.skipped.Value()
	}
	return c.failed.Value()
}

// LastEnded returns when a cycle last ran or was skipped; the zero time if none has.
func (c *Cycles) LastEnded() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// SetUnserved stores how many orders of each priority no depot has served, as the last
// cycle found. Every depot's cycle sees all orders.
func (c *Cycles) SetUnserved(byPriority map[string]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unserved = maps.Clone(byPriority)
}

// Unserved returns the counts that SetUnserved stored last.
func (c *Cycles) Unserved() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.unserved)
}
