// Package cputime is a clock that counts the processor time of this process, for
// measurements on busy machines: a budget then buys the same work whatever else
// runs. It must import the standard library only. It does not fail: where the
// system has no getrusage it counts wall time.
package cputime
