package meter

import (
	"maps"
	"sync"
	"time"
)

// Outcomes of a solve cycle, as counted.
const (
	CycleRun     = "run"     // ended with a plan, perhaps an empty one
	CycleSkipped = "skipped" // another process owns the area, or held its lock
	CycleFailed  = "failed"  // an error at the lock, snapshot or plan, or a lost lease
	// CycleClockWrong is a cycle that took no lock because this process's clock is wrong.
	CycleClockWrong = "clock_wrong"
)

// Cycles counts solve cycles.
type Cycles struct {
	// Took is the duration of the cycles that ran, from asking for the lock to the last
	// decision published, in machine time.
	Took Histogram
	// Remembered counts the cycles that ran with what the area's cycle before had left in memory.
	Remembered Counter
	// Waited is how long cycles waited for their turn to search, in machine time.
	Waited Histogram
	// PlansRefused counts plans that broke the rules and were not published.
	PlansRefused Counter
	// Amended counts published changes of missions under way.
	Amended Counter
	// Exchanged counts the orders that these take from drones for other ones.
	Exchanged Counter
	// HandedOver counts orders that a cycle handed over to another area.
	HandedOver Counter
	// Standby counts published missions without orders, new or changed.
	Standby Counter

	run, skipped, failed, clockWrong Counter

	mu       sync.Mutex
	period   time.Duration
	ended    time.Time
	obstacle string        // why the cycles since have not ended
	late     time.Duration // the longest wait of lateAt
	lateAt   time.Time
	unserved map[string]unserved // by area
}

// count is the counter of an outcome.
func (c *Cycles) count(outcome string) *Counter {
	switch outcome {
	case CycleRun:
		return &c.run
	case CycleSkipped:
		return &c.skipped
	case CycleClockWrong:
		return &c.clockWrong
	}
	return &c.failed
}

// Ended counts a cycle by its outcome.
func (c *Cycles) Ended(outcome string) {
	c.count(outcome).Inc()
	if outcome != CycleRun && outcome != CycleSkipped {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended, c.obstacle = time.Now(), ""
}

// Hindered stores why a cycle did not end. The next cycle that ends clears it.
func (c *Cycles) Hindered(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.obstacle = why.Error()
}

// Obstacle is the latest reason why a cycle since LastEnded has not ended; may be empty.
func (c *Cycles) Obstacle() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.obstacle
}

// lateShown is how long a wait counts for Late.
const lateShown = time.Minute

// NoteWait records how long a cycle waited for its turn to search.
func (c *Cycles) NoteWait(d time.Duration) {
	c.Waited.Record(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); d >= c.late || now.Sub(c.lateAt) > lateShown {
		c.late, c.lateAt = d, now
	}
}

// Late is the longest wait of the last minute or two.
func (c *Cycles) Late() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.lateAt) > 2*lateShown {
		return 0
	}
	return c.late
}

// SetPeriod sets how often a cycle must end, in machine time: the interval between two
// or, if longer, how long one may take.
func (c *Cycles) SetPeriod(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.period = d
}

// Period is the latest value of SetPeriod; zero before the first.
func (c *Cycles) Period() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.period
}

// Count returns how many cycles had an outcome.
func (c *Cycles) Count(outcome string) int64 { return c.count(outcome).Value() }

// LastEnded returns when a cycle last ran or was skipped; the zero time if none has.
func (c *Cycles) LastEnded() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// unservedCounts is how long an area's count is valid. After that another process runs the
// area's cycles, or the area is gone.
const unservedCounts = 5 * time.Minute

// unserved is what the latest cycle of an area left.
type unserved struct {
	byPriority map[string]int64
	at         time.Time
}

// SetUnserved stores how many of the orders that an area plans its latest cycle left
// without a drone, by priority.
func (c *Cycles) SetUnserved(area string, byPriority map[string]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unserved == nil {
		c.unserved = map[string]unserved{}
	}
	c.unserved[area] = unserved{maps.Clone(byPriority), time.Now()}
}

// Unserved sums the areas' latest counts; nil before the first.
func (c *Cycles) Unserved() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var sum map[string]int64
	for area, of := range c.unserved {
		if time.Since(of.at) > unservedCounts {
			delete(c.unserved, area)
			continue
		}
		if sum == nil {
			sum = map[string]int64{}
		}
		for priority, n := range of.byPriority {
			sum[priority] += n
		}
	}
	return sum
}
