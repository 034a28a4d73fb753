package planner

import "time"

// rememberedFor is how long the planner remembers what it did, so that an order that was
// taken from one drone is not moved back and forth.
const rememberedFor = 30 * time.Minute

// lately holds what was done in the last rememberedFor, and when.
type lately[K comparable] map[K]time.Time

// add notes that something is done, and forgets what is long past. It returns false if it
// was done lately.
func (l *lately[K]) add(what K, now time.Time) bool {
	if *l == nil {
		*l = lately[K]{}
	}
	for k, at := range *l {
		if now.Sub(at) > rememberedFor {
			delete(*l, k)
		}
	}
	if l.has(what) {
		return false
	}
	(*l)[what] = now
	return true
}

// has reports whether something was done lately.
func (l *lately[K]) has(what K) bool {
	_, done := (*l)[what]
	return done
}
