// Package shutdown bounds how long a process takes to end after it is told to.
//
// A Plan lists the phases of a shutdown in order, each with a limit. The time of
// a phase is over when its limit and those of the phases before it have passed,
// counted from the order to stop; a phase that ends early leaves its time to the
// next. Plan.Context derives the context of a phase, so every part of a process
// takes its deadline from the one plan.
//
// The package must not import any other package of this module. It cannot stop work
// that ignores the context of its phase; the caller has to stop waiting for it.
package shutdown
