// Package shutdown bounds how long a process takes to end after it is told to.
//
// A Plan lists the phases of a shutdown in order, each with a limit. A phase must end by
// the sum of its limit and those before it, counted from the order to stop; a phase that
// ends early leaves its time to the next. Every part of a process takes its deadline from
// this one plan, by Plan.Context.
//
// The package must not import any other package of this module. It cannot stop work
// that ignores the context of its phase; the caller has to stop waiting for it.
package shutdown
