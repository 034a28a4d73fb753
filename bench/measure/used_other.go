//go:build !unix

package measure

import "time"

// used is the wall clock, because this system has no getrusage.
func used() time.Duration { return time.Duration(time.Now().UnixNano()) }
