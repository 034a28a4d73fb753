// Package capacity is the model of what a fleet uses, what it costs and what breaks first.
//
// It has three parts. Run flies a small fleet in simulated time: the real policies, telemetry
// commits, sweeps, cycles, learning and census, over the embedded Firestore, with a Tally that
// counts every call by the work that made it. Fit turns the counts of such samples into costs for
// each unit of work: a report, a decision, a drone swept, a depot read. Model.Summary scales them
// to a fleet of any size by discrete events, which show how often the work is done and how long
// it waits, with the areas that package ownership proposes to each optimizer, and compares the
// result with the limits that Firestore documents.
//
// Which unit a count grows with is stated once, in laws; a test runs larger fleets and compares.
// It must not be imported by production code.
package capacity
