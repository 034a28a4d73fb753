package measure

import "time"

// ProcessorClock returns a clock that advances by the process's processor time divided by
// the number of goroutines that work at once.
func ProcessorClock(workers int) func() time.Time {
	if workers < 1 {
		workers = 1
	}
	began, base := time.Now(), used()
	return func() time.Time { return began.Add((used() - base) / time.Duration(workers)) }
}
