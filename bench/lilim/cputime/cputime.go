// Package cputime is a clock that counts the processor time of this process, for
// measurements on busy machines: a budget then buys the same work whatever else
// runs. It must import the standard library only. It does not fail: where the
// system has no getrusage it counts wall time.
package cputime

import "time"

// Clock returns a clock that advances by the process's processor time divided by
// the number of goroutines that work at once.
func Clock(workers int) func() time.Time {
	if workers < 1 {
		workers = 1
	}
	began, base := time.Now(), used()
	return func() time.Time { return began.Add((used() - base) / time.Duration(workers)) }
}
