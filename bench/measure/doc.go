// Package measure is what the benchmarks share: their rows as JSON lines, and a clock
// that counts the processor time of this process. On a busy machine a budget by that
// clock still buys the same work; where the system has no getrusage, it counts wall time.
//
// It must not import what is measured.
package measure
